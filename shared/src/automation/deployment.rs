//! Saves automations, and sets their active version.

pub(super) mod alerts;
pub(super) mod automation_view;
mod awaited_events;
mod called_automations;
pub(super) mod difference;
pub(super) mod duplicates;
pub(super) mod failure_pause;
pub(super) mod look_up;

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    fmt::Write,
    sync::{Arc, Mutex},
};

use futures_util::join;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use self::duplicates::duplicate_members;
use super::{
    definition::{
        Definition, LARGEST_DEFINITION,
        diagnostics::{CheckReport, CheckResult, Code, Diagnostic, Diagnostics},
        schedule::ScheduleRule,
        too_large_with_tools, too_many_bytes,
        trigger::Trigger,
    },
    triggers::{dispatch::MOST_LISTENERS, event_hooks::EventHooks},
    validation::known::{Known, KnownTool, Purpose},
};
use crate::{
    Deadline, Error, Result,
    catalogue::Catalogue,
    described::Described,
    error,
    execution::Executor,
    json_schema::JsonSchema,
    models::{
        Automation, AutomationId, AutomationQuotas, AutomationStatus, AutomationVersion, CheckedTool, Member,
        OrganizationId, RunCeilings, Timestamp,
    },
    store::{Automations, Events, Listening, NamedAutomation, OVERTAKEN, OrganizationMembers, Organizations},
};

/// Bytes of a definition with the tools it was checked against. Both share one item with other fields; DynamoDB allows 400 KB.
const LARGEST_VERSION: usize = 390_000;

const SHOWN_OCCURRENCES: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    Activation,
    /// To a version before the active one. A paused automation stays paused.
    RollBack,
}

/// The version to run, as the caller last saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenVersion {
    pub version: u64,
    /// Hash of the version's content, if given: a deleted and redeployed automation counts its versions from 1 again.
    pub content_hash: Option<String>,
}

/// Validates and saves definitions, and sets the active version. Clones share compiled schemas.
#[derive(Clone)]
pub struct Deployment {
    pub automations: Automations,
    pub catalogue: Catalogue,
    pub executor: Executor,
    pub organizations: Organizations,
    pub event_hooks: EventHooks,
    pub events: Events,
    pub members: OrganizationMembers,
    /// Of runs on the platform's key.
    pub ceilings: RunCeilings,
    pub(crate) schemas: Arc<Mutex<HashMap<String, Option<Arc<JsonSchema>>>>>,
}

/// Result of a request to validate, save or activate.
#[derive(Debug, Serialize, Described)]
pub struct Deployed {
    #[serde(flatten)]
    pub report: CheckReport,
    /// Absent if nothing changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub automation: Option<DeployedAutomation>,
    /// Of a valid schedule: its next occurrences, in the time of its zone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(maxItems = SHOWN_OCCURRENCES)]
    pub next_occurrences: Vec<String>,
    #[serde(skip)]
    pub dry_run: bool,
    /// False if the same content was saved already.
    #[serde(skip)]
    pub created: bool,
}

#[derive(Debug, Clone, Serialize, Described)]
pub struct DeployedAutomation {
    pub id: AutomationId,
    pub name: String,
    /// The version with this content.
    #[schema(minimum = 1)]
    pub version: u64,
    /// Of the definition.
    pub content_hash: String,
    pub status: AutomationStatus,
    /// The active version, if any.
    #[schema(minimum = 1)]
    pub active_version: Option<u64>,
    /// The value for `If-Match` of the next change.
    #[schema(minimum = 1)]
    pub revision: u64,
}

impl Deployed {
    pub fn to_text(&self) -> String {
        let (errors, warnings) = self.report.count();
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut text = match (&self.automation, self.report.result) {
            (None, CheckResult::Failed) => {
                let nothing = if self.dry_run { "The definition is not valid" } else { "Nothing was saved or changed" };
                format!(
                    "{nothing}: {}, {}. Repair them and send the definition again:\n",
                    counted(errors, "error"),
                    counted(warnings, "warning")
                )
            }
            (None, CheckResult::Ok) => {
                "The definition is valid. Nothing was saved, because it was a dry run.\n".to_owned()
            }
            (Some(automation), _) => {
                let DeployedAutomation { id, name, version, content_hash, status, .. } = automation;
                let mut text =
                    format!("\"{name}\" is saved as automation {id}, version {version}, {}.", status.as_str());
                if automation.active_version != Some(*version) {
                    let _ = write!(
                        text,
                        " An administrator activates it with POST /api/{{slug}}/automations/{id}/activate {{\"version\": {version}, \"content_hash\": \"{content_hash}\"}}."
                    );
                }
                text.push('\n');
                text
            }
        };
        if !self.next_occurrences.is_empty() {
            let _ = writeln!(text, "It is due at {}.", self.next_occurrences.join(", "));
        }
        text.push_str(&self.report.to_text());
        text
    }

    fn due(self, definition: &Definition) -> Self {
        let rule = definition.trigger.as_ref().and_then(ScheduleRule::of);
        let rule = rule.filter(|_| self.report.result == CheckResult::Ok);
        let next_occurrences = rule.map(|rule| rule.upcoming(Timestamp::now(), SHOWN_OCCURRENCES)).unwrap_or_default();
        Self { next_occurrences, ..self }
    }

    fn repairing(self, definition: &Value) -> Self {
        Self { report: self.report.with_repairs(definition), ..self }
    }

    fn refused(diagnostics: Diagnostics, dry_run: bool) -> Self {
        Self {
            report: diagnostics.into_report(),
            automation: None,
            next_occurrences: Vec::new(),
            dry_run,
            created: false,
        }
    }

    fn saved(
        diagnostics: Diagnostics,
        automation: &Automation,
        (version, content_hash): (u64, &str),
        created: bool,
    ) -> Self {
        let automation = DeployedAutomation {
            id: automation.id,
            name: automation.name.clone(),
            version,
            content_hash: content_hash.to_owned(),
            status: automation.status,
            active_version: automation.active_version,
            revision: automation.revision,
        };
        Self {
            report: diagnostics.into_report(),
            automation: Some(automation),
            next_occurrences: Vec::new(),
            dry_run: false,
            created,
        }
    }
}

impl Deployment {
    /// The answer to a body too large to parse.
    pub fn refuse_size(bytes: usize) -> Option<Deployed> {
        // The limit of a definition ignores whitespace, so a body may be larger.
        (bytes > 2 * LARGEST_DEFINITION).then(|| {
            let mut diagnostics = Diagnostics::default();
            diagnostics.push(too_many_bytes(bytes));
            Deployed::refused(diagnostics, false)
        })
    }

    /// The answer to a body with duplicate members, of which JSON parsers drop one.
    pub fn refuse_duplicates(body: &[u8]) -> Option<Deployed> {
        let twice = duplicate_members(body);
        let mut diagnostics = Diagnostics::default();
        for pointer in &twice {
            let message = "This field appears twice in its object, and only one value would count.";
            let hint = "Remove one of the two.";
            diagnostics.push(Diagnostic::error(Code::DuplicateField, pointer, message, hint));
        }
        (!twice.is_empty()).then(|| Deployed::refused(diagnostics, false))
    }

    /// Adds the author's time zone to a definition that needs one and names none, with a warning.
    async fn in_authors_zone<'b>(
        &self,
        author: &Member,
        body: &'b Value,
    ) -> Result<(Cow<'b, Value>, Option<Diagnostic>)> {
        if !needs_zone(body) {
            return Ok((Cow::Borrowed(body), None));
        }
        let person = self.members.person(author.organization_id, &author.user_id).await?;
        let zone = person.get("timezone").and_then(Value::as_str).filter(|name| TimeZone::get(name).is_ok());
        let mut body = body.clone();
        let config = body.get_mut("trigger_config").and_then(Value::as_object_mut);
        let (Some(zone), Some(config)) = (zone, config) else { return Ok((Cow::Owned(body), None)) };
        config.insert("timezone".to_owned(), zone.into());
        let message = format!("The schedule names no time zone, so it uses yours, {zone}.");
        let hint = "For another time zone write it, for example \"timezone\": \"Europe/Berlin\".";
        let warning = Diagnostic::warning(Code::TimezoneAssumed, "/trigger_config/timezone", message, hint);
        Ok((Cow::Owned(body), Some(warning)))
    }

    /// Validates the definition in `body` and saves it as an automation that awaits review, unless it has errors or `"dry_run":
    /// true`. Saving the same content again returns the same automation.
    pub async fn deploy(&self, author: &Member, body: &Value, deadline: Deadline) -> Result<Deployed> {
        let (body, assumed) = self.in_authors_zone(author, body).await?;
        let body = &*body;
        let content_hash = AutomationVersion::hash_of(&Definition::canonical(body));
        let own = AutomationId::of_content(author.organization_id, &content_hash);
        let checked = self.validated(author, body, own, BTreeMap::new(), assumed, deadline).await?;
        let (definition, tools, diagnostics) = match checked {
            Ok(valid) => valid,
            Err(refused) => return Ok(refused),
        };
        let organization = author.organization_id;
        let version = version_of(author, body, tools);
        let now = version.created_at;
        let automation = Automation {
            id: version.automation_id,
            organization_id: organization,
            name: definition.name.clone(),
            description: definition.description.clone(),
            trigger_type: trigger_type(&definition),
            status: AutomationStatus::PendingReview,
            version: 1,
            active_version: None,
            activated_by: None,
            activated_at: None,
            pause_reason: None,
            trigger_key: None,
            paused_at: None,
            trigger_filter: None,
            failures_in_a_row: 0,
            paused_by_run: None,
            quotas: AutomationQuotas::default(),
            created_by: author.user_id.clone(),
            revision: 1,
            deleting: false,
            created_at: now,
            updated_at: now,
        };
        if self.automations.create(&automation, &version).await? {
            tracing::info!(automation.id = %automation.id, "an automation was saved");
            return Ok(Deployed::saved(diagnostics, &automation, (1, &version.content_hash), true).due(&definition));
        }
        let there = self.automations.get_including_deleting(organization, automation.id).await?;
        if there.deleting {
            let problem = "an automation with this content is being deleted; delete it again, then deploy";
            return Err(Error::Conflict(problem.into()));
        }
        Ok(Deployed::saved(diagnostics, &there, (1, &version.content_hash), false).due(&definition))
    }

    /// Saves `body` as the next version of an automation at `revision`. Content of an earlier version returns that version.
    /// Content of the newest version succeeds at any revision, since the request may be a retry.
    pub async fn update(
        &self,
        author: &Member,
        automation: AutomationId,
        revision: u64,
        body: &Value,
        deadline: Deadline,
    ) -> Result<Deployed> {
        let organization = author.organization_id;
        let (body, assumed) = self.in_authors_zone(author, body).await?;
        let body = &*body;
        let before = self.automations.get(organization, automation).await?;
        let newest = self.automations.version(organization, automation, before.version).await?;
        let is_newest = AutomationVersion::hash_of(&Definition::canonical(body)) == newest.content_hash;
        if !is_newest {
            at_revision(&before, Some(revision))?;
        }
        let earlier = newest.checked;
        let checked = self.validated(author, body, automation, earlier, assumed, deadline).await?;
        let (definition, tools, diagnostics) = match checked {
            Ok(valid) => valid,
            Err(refused) => return Ok(refused),
        };
        let version = AutomationVersion {
            automation_id: automation,
            version: before.version + 1,
            ..version_of(author, body, tools)
        };
        let same = if is_newest {
            Some(before.version)
        } else {
            self.automations.with_content(organization, automation, &version.content_hash).await?
        };
        if let Some(same) = same {
            return Ok(Deployed::saved(diagnostics, &before, (same, &version.content_hash), false).due(&definition));
        }
        let changed = Automation {
            name: definition.name.clone(),
            description: definition.description.clone(),
            trigger_type: trigger_type(&definition),
            version: version.version,
            ..before
        };
        if !self.automations.add_version(&changed, &version).await? {
            return Err(Error::Conflict(OVERTAKEN.into()));
        }
        tracing::info!(automation.id = %automation, automation.version = version.version, "a version was saved");
        let changed = Automation { revision: changed.revision + 1, ..changed };
        Ok(Deployed::saved(diagnostics, &changed, (version.version, &version.content_hash), true).due(&definition))
    }

    /// Makes `version` the active one, after a new check of everything it uses.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a rollback to a version that is not older than the active one, and for another `revision`.
    pub async fn switch(
        &self,
        by: &Member,
        automation: AutomationId,
        switch: Switch,
        version: &SeenVersion,
        revision: Option<u64>,
        deadline: Deadline,
    ) -> Result<Deployed> {
        let before = self.automations.get(by.organization_id, automation).await?;
        at_revision(&before, revision)?;
        let status = match (switch, before.active_version) {
            (Switch::Activation, _) => AutomationStatus::Active,
            (Switch::RollBack, None) => {
                return Err(Error::Conflict("no version was activated yet; activate one".into()));
            }
            (Switch::RollBack, Some(active)) if version.version >= active => {
                let version = version.version;
                let problem = format!("version {active} is active, and {version} is not older; activate it instead");
                return Err(Error::Conflict(problem));
            }
            (Switch::RollBack, Some(_)) => before.status,
        };
        self.point_to(by, &before, version, status, deadline).await
    }

    async fn point_to(
        &self,
        by: &Member,
        before: &Automation,
        seen: &SeenVersion,
        status: AutomationStatus,
        deadline: Deadline,
    ) -> Result<Deployed> {
        let AutomationVersion { version, definition, checked, content_hash, .. } =
            self.automations.version(by.organization_id, before.id, seen.version).await?;
        if seen.content_hash.as_ref().is_some_and(|seen| *seen != content_hash) {
            let problem = format!("version {version} has changed: its content_hash is {content_hash}; read it again");
            return Err(Error::Conflict(problem));
        }
        let stored: Value = serde_json::from_str(&definition).map_err(Error::internal)?;
        let mut diagnostics = Diagnostics::default();
        let (mut listens, mut quotas) = (None, AutomationQuotas::default());
        let definition = Definition::read(&stored, &mut diagnostics);
        if let Some(definition) = &definition
            && !diagnostics.has_errors()
        {
            listens = listening(by.organization_id, definition, &stored);
            quotas = definition.quotas;
            let resumes = before.status == AutomationStatus::Paused && before.active_version == Some(version);
            let purpose = if resumes { Purpose::Resumption } else { Purpose::Activation };
            (_, diagnostics) = Box::pin(self.check(by, (before.id, definition), checked, purpose, deadline)).await?;
        }
        if diagnostics.has_errors() {
            return Ok(Deployed::refused(diagnostics, false));
        }
        if let Some(listens) = &listens {
            self.one_more_listener(before, listens).await?;
        }
        let pointed = self.automations.point_to(before, version, status, &by.user_id, quotas, listens.as_ref()).await?;
        let pointed = pointed.ok_or_else(|| Error::Conflict(OVERTAKEN.into()))?;
        self.automations.wait_for_index(&pointed).await;
        tracing::info!(automation.id = %pointed.id, automation.version = version, "a version was made the active one");
        let saved = Deployed::saved(diagnostics, &pointed, (version, &content_hash), true);
        Ok(match &definition {
            Some(definition) => saved.due(definition),
            None => saved,
        })
    }

    /// # Errors
    /// [`Error::Conflict`] if as many automations as an event may start listen to it already.
    async fn one_more_listener(&self, automation: &Automation, listens: &Listening) -> Result<()> {
        if automation.trigger_key.as_ref() == Some(&listens.trigger_key) {
            return Ok(());
        }
        let listeners = self.automations.listeners(automation.organization_id, &listens.trigger_key).await?;
        if listeners.len() < MOST_LISTENERS {
            return Ok(());
        }
        Err(Error::Conflict(format!(
            "{MOST_LISTENERS} automations listen to this event already, which is the most; delete one, or let one automation tell the cases apart with choose"
        )))
    }

    /// Stops new runs. Pausing twice has no effect.
    pub async fn pause(&self, by: &Member, automation: AutomationId, revision: Option<u64>) -> Result<Automation> {
        let before = self.automations.get(by.organization_id, automation).await?;
        at_revision(&before, revision)?;
        match before.status {
            AutomationStatus::Paused => Ok(before),
            AutomationStatus::PendingReview => {
                Err(Error::Conflict("the automation does not run: no version of it was activated".into()))
            }
            AutomationStatus::Active => {
                let paused = self.automations.pause(&before, None).await?;
                let paused = paused.ok_or_else(|| Error::Conflict(OVERTAKEN.into()))?;
                self.automations.wait_for_index(&paused).await;
                Ok(paused)
            }
        }
    }

    /// Warns if another automation has the same name, which is often the one to change. A failed look-up gives no warning.
    async fn same_name(&self, organization: OrganizationId, name: &str, own: AutomationId) -> Option<Diagnostic> {
        let named = self.automations.named(organization, name).await.unwrap_or_else(|error| {
            tracing::warn!("automations of the same name could not be read: {}", error::chain(&error));
            Vec::new()
        });
        let NamedAutomation { id, name, status, revision } = named.into_iter().find(|other| other.id != own)?;
        let message = format!("There is another automation \"{name}\": {id}, {}.", status.as_str());
        let hint = format!(
            "To change that one, send the definition with update_automation {{\"id\": \"{id}\", \"revision\": {revision}}} (PUT \
             /api/{{slug}}/automations/{id}), and leave this one out; keep both only if both are to run."
        );
        Some(Diagnostic::warning(Code::SameName, "/name", message, hint))
    }

    /// The checked definition of `own` with its warnings, or the answer that rejects it.
    async fn validated(
        &self,
        author: &Member,
        body: &Value,
        own: AutomationId,
        earlier: BTreeMap<String, CheckedTool>,
        assumed: Option<Diagnostic>,
        deadline: Deadline,
    ) -> Result<Result<(Definition, BTreeMap<String, CheckedTool>, Diagnostics), Deployed>> {
        let dry_run = body.get("dry_run") == Some(&Value::Bool(true));
        let mut diagnostics = Diagnostics::default();
        if let Some(assumed) = assumed {
            diagnostics.push(assumed);
        }
        let Some(definition) = Definition::read(body, &mut diagnostics) else {
            return Ok(Err(Deployed::refused(diagnostics, dry_run).repairing(body)));
        };
        let (checked, same_name) = join!(
            Box::pin(self.check(author, (own, &definition), earlier, Purpose::Saving, deadline)),
            self.same_name(author.organization_id, &definition.name, own),
        );
        let (known, found) = checked?;
        found.iter().for_each(|diagnostic| diagnostics.push(diagnostic.clone()));
        if let Some(warning) = same_name.filter(|_| !diagnostics.has_errors()) {
            diagnostics.push(warning);
        }
        if dry_run || diagnostics.has_errors() {
            return Ok(Err(Deployed::refused(diagnostics, dry_run).repairing(body).due(&definition)));
        }
        let checked = checked_tools(&known);
        let stored = Definition::canonical(body).to_string().len()
            + serde_json::to_string(&checked).map_err(Error::internal)?.len();
        if stored > LARGEST_VERSION {
            diagnostics.push(too_large_with_tools(stored, LARGEST_VERSION));
            return Ok(Err(Deployed::refused(diagnostics, dry_run).repairing(body)));
        }
        Ok(Ok((definition, checked, diagnostics)))
    }
}

fn needs_zone(body: &Value) -> bool {
    let config = body.get("trigger_config").and_then(Value::as_object);
    let Some(config) = config.filter(|config| config.get("timezone").is_none_or(Value::is_null)) else { return false };
    match body.get("trigger_type").and_then(Value::as_str) {
        Some("schedule_recurring") => true,
        Some("schedule_once") => {
            config.get("run_at").and_then(Value::as_str).is_some_and(|at| at.parse::<Timestamp>().is_err())
        }
        _ => false,
    }
}

fn checked_tools(known: &Known) -> BTreeMap<String, CheckedTool> {
    let checked = known.tools.iter().filter_map(|(name, tool)| match tool {
        KnownTool::Here(tool) => Some((name.clone(), tool.checked())),
        _ => None,
    });
    checked.collect()
}

/// The first version of an automation with this content.
fn version_of(author: &Member, body: &Value, checked: BTreeMap<String, CheckedTool>) -> AutomationVersion {
    let definition = Definition::canonical(body);
    let content_hash = AutomationVersion::hash_of(&definition);
    AutomationVersion {
        automation_id: AutomationId::of_content(author.organization_id, &content_hash),
        version: 1,
        organization_id: author.organization_id,
        content_hash,
        definition: definition.to_string(),
        checked,
        created_by: author.user_id.clone(),
        created_at: Timestamp::now(),
    }
}

/// The events that start this definition, from its trigger; the filter as stored.
fn listening(organization: OrganizationId, definition: &Definition, stored: &Value) -> Option<Listening> {
    let Some(Trigger::Webhook { service, event_type, filters, .. }) = &definition.trigger else { return None };
    let trigger_key = Automation::trigger_key_of(organization, service, event_type);
    let filter = filters.as_ref().and_then(|_| Some(stored.get("trigger_config")?.get("filters")?.to_string()));
    Some(Listening { trigger_key, filter })
}

fn trigger_type(definition: &Definition) -> String {
    definition.trigger.as_ref().map_or("manual", Trigger::as_str).to_owned()
}

pub fn at_revision(automation: &Automation, revision: Option<u64>) -> Result<()> {
    match revision {
        Some(revision) if revision != automation.revision => Err(Error::Conflict(format!(
            "the automation was changed: its ETag is \"{}\" now, with version {}; read it and send that as If-Match",
            automation.revision, automation.version
        ))),
        _ => Ok(()),
    }
}
