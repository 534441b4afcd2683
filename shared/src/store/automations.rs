//! `automations` and `automation_versions`.
//!
//! - `automations`. Key: id. Index `by_trigger`: `trigger_key`, `id`, of
//!   active automations that listen to events. Each change raises `revision`, conditional on the revision that was read.
//! - `automation_versions`. Key: `automation_id`, `version`. Written once, together with the automation's row.

use std::{fmt::Write as _, slice};

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

use super::{
    AutomationMemory, Cursor, Page,
    audit::Change,
    database::{Database, Item, from_item, id, is_of, key, number, rows, text, to_attribute},
    deletion::LAST_CALL,
    table::{Table, wait_for_index},
    write::{Write, WriteResult, transact_unless_refused},
};
use crate::{
    Deadline, Error, Result,
    described::Described,
    models::{
        Act, Automation, AutomationId, AutomationQuotas, AutomationStatus, AutomationVersion, Noun, OrganizationId,
        RunId, Timestamp, UserId,
    },
};

const WHAT: &str = "automation";

#[derive(Clone)]
pub struct Automations {
    automations: Table,
    versions: Table,
    memory: AutomationMemory,
}

/// A version without its definition.
#[derive(Debug, Clone, Serialize, Deserialize, Described)]
#[schema(name = "ListedAutomationVersion")]
pub struct ListedVersion {
    pub automation_id: AutomationId,
    #[schema(minimum = 1)]
    pub version: u64,
    /// SHA-256 of the definition in canonical form.
    pub content_hash: String,
    pub created_by: UserId,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Deserialize)]
pub struct NamedAutomation {
    pub id: AutomationId,
    pub name: String,
    pub status: AutomationStatus,
    #[serde(default)]
    pub revision: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listening {
    pub trigger_key: String,
    /// A condition, as JSON text.
    pub filter: Option<String>,
}

/// Runs of other versions do not count for the active version.
const OF_VERSION: &str = "#active_version = :version";
const OF_AUTOMATION: &str = "#automation_id = :automation";
/// A transaction takes 4 MB, and a row 400 kB at most.
const DELETED_AT_ONCE: usize = 9;
const LISTED: &str = "#automation_id, #version, #content_hash, #created_by, #created_at";

impl Automations {
    pub fn new(database: &Database) -> Self {
        Self {
            automations: database.table("automations"),
            versions: database.table("automation_versions"),
            memory: AutomationMemory::new(database),
        }
    }

    /// Saves an automation with its first version in one transaction. False if the id exists.
    pub async fn create(&self, automation: &Automation, version: &AutomationVersion) -> Result<bool> {
        let row = self.automations.put(automation)?.when("attribute_not_exists(#id)");
        let row = row.audited(audited(Act::Created, automation).with("version", 1))?;
        transact_unless_refused(vec![row, self.put_version(version)?]).await
    }

    fn put_version(&self, version: &AutomationVersion) -> Result<Write> {
        Ok(self.versions.put(version)?.when("attribute_not_exists(#automation_id)"))
    }

    pub async fn get(&self, organization: OrganizationId, automation: AutomationId) -> Result<Automation> {
        let found = self.get_including_deleting(organization, automation).await?;
        if found.deleting { Err(Error::NotFound(WHAT)) } else { Ok(found) }
    }

    /// Like [`Automations::get`], including automations being deleted.
    pub async fn get_including_deleting(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
    ) -> Result<Automation> {
        self.automations.owned(organization, id(automation), WHAT).await
    }

    /// A page of the organization's automations, newest first. `status` filters within the page, so a page may be short.
    pub async fn page(
        &self,
        organization: OrganizationId,
        status: Option<AutomationStatus>,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<Automation>> {
        let mut of = self.automations.of_organization(organization).newest_first();
        let kept = "attribute_not_exists(#deleting)";
        of = match status {
            None => of.filter(kept),
            Some(status) => {
                of.filter(format!("{kept} AND #status = :status")).with([(":status", text(status.as_str()))])
            }
        };
        let start = after.map(|cursor| cursor.start_key(organization));
        Ok(Page::created(of.page(start, Some(limit)).await?))
    }

    pub async fn named(&self, organization: OrganizationId, name: &str) -> Result<Vec<NamedAutomation>> {
        let folded = |name: &str| name.trim().to_lowercase();
        let mut named: Vec<NamedAutomation> = self
            .automations
            .of_organization(organization)
            .filter("attribute_not_exists(#deleting)")
            .attributes("#id, #name, #status, #revision")
            .collect()
            .await?;
        named.retain(|other| folded(&other.name) == folded(name));
        Ok(named)
    }

    pub async fn version(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        version: u64,
    ) -> Result<AutomationVersion> {
        self.versions.owned(organization, version_key(automation, version), "version").await
    }

    /// A page of an automation's versions below `before`, newest first.
    pub async fn versions(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        before: Option<&Cursor<u64>>,
        limit: i32,
    ) -> Result<Page<ListedVersion>> {
        let start = before.map(|Cursor(version)| version_key(automation, *version));
        let (items, next) = self.of(organization, automation).page(start, Some(limit)).await?;
        let last = next.as_ref().and_then(|key| key.get("version")?.as_n().ok().map(Cursor));
        Ok(Page { items: rows(items), next_cursor: last.map(|last| last.to_string()) })
    }

    pub async fn with_content(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        content_hash: &str,
    ) -> Result<Option<u64>> {
        let all: Vec<ListedVersion> = self.of(organization, automation).now().collect().await?;
        Ok(all.into_iter().find(|version| version.content_hash == content_hash).map(|version| version.version))
    }

    fn of(&self, organization: OrganizationId, automation: AutomationId) -> super::table::Query {
        self.versions
            .query(OF_AUTOMATION)
            .of(organization)
            .with([(":automation", text(automation))])
            .attributes(LISTED)
            .newest_first()
    }

    /// Adds a version at the revision that was read. `changed` has its number, name and description. False if the row has
    /// changed.
    pub async fn add_version(&self, changed: &Automation, version: &AutomationVersion) -> Result<bool> {
        let change = "SET #name = :name, #description = :description, #trigger_type = :trigger, #version = :version";
        let row = self.changed(changed, change, "").with([
            (":name", text(&changed.name)),
            (":description", text(&changed.description)),
            (":trigger", text(&changed.trigger_type)),
            (":version", amount(changed.version)),
        ]);
        let row = row.audited(audited(Act::Edited, changed).with("version", changed.version))?;
        transact_unless_refused(vec![row, self.put_version(version)?]).await
    }

    /// Activates a version at the revision that was read, and indexes the event it `listens` to. `None` if the row has changed.
    pub async fn point_to(
        &self,
        automation: &Automation,
        version: u64,
        status: AutomationStatus,
        by: &UserId,
        quotas: AutomationQuotas,
        listens: Option<&Listening>,
    ) -> Result<Option<Automation>> {
        const POINTED: &str = "#active_version = :version, #status = :status, #activated_by = :by, #activated_at = :now, \
                               #failures_in_a_row = :none, #quotas = :quotas";
        let (mut set, mut remove) = (POINTED.to_owned(), vec!["#pause_reason", "#paused_by_run", "#failed_runs"]);
        let mut values = vec![
            (":version", amount(version)),
            (":status", text(status.as_str())),
            (":by", text(by)),
            (":none", number(0)),
            (":quotas", to_attribute(&quotas)?),
        ];
        for (name, placeholder, value) in [
            ("#trigger_key", ":key", listens.map(|listens| &listens.trigger_key)),
            ("#trigger_filter", ":filter", listens.and_then(|listens| listens.filter.as_ref())),
        ] {
            match value {
                Some(value) => {
                    // Writing to a String cannot fail.
                    let _ok = write!(set, ", {name} = {placeholder}");
                    values.push((placeholder, text(value)));
                }
                None => remove.push(name),
            }
        }
        let pointed = self.changed(automation, &format!("SET {set}"), &format!(" REMOVE {}", remove.join(", ")));
        let back = automation.active_version.is_some_and(|active| version < active);
        let action = if back { Act::RolledBack } else { Act::Activated };
        let pointed = values.into_iter().fold(pointed, |pointed, value| pointed.with([value]));
        pointed.audited(audited(action, automation).with("version", version))?.updated().await
    }

    /// Pauses at the revision that was read; `None` if the row has changed. `reason` explains an automatic pause.
    pub async fn pause(&self, automation: &Automation, reason: Option<&str>) -> Result<Option<Automation>> {
        self.pause_after(automation, reason, None).await
    }

    /// Like [`Automations::pause`], perhaps caused by a run.
    pub async fn pause_after(
        &self,
        automation: &Automation,
        reason: Option<&str>,
        run: Option<RunId>,
    ) -> Result<Option<Automation>> {
        let (mut set, mut values) = ("SET #status = :status, #paused_at = :now".to_owned(), Vec::new());
        for (name, placeholder, value) in
            [("#pause_reason", ":reason", reason.map(text)), ("#paused_by_run", ":run", run.map(text))]
        {
            if let Some(value) = value {
                set.extend([", ", name, " = ", placeholder]);
                values.push((placeholder, value));
            }
        }
        let paused = self.changed(automation, &set, "").with([(":status", text(AutomationStatus::Paused.as_str()))]);
        let paused = values.into_iter().fold(paused, |paused, value| paused.with([value]));
        paused.audited(audited(Act::Paused, automation))?.updated().await
    }

    /// Counts a failed run of the active version, once per run. Returns the current automation, or `None` if it is gone or
    /// another version is active.
    pub async fn count_failure(
        &self,
        organization: OrganizationId,
        (automation, version): (AutomationId, u64),
        run: RunId,
    ) -> Result<Option<Automation>> {
        let counted = self
            .automations
            .update(id(automation), "ADD #failures_in_a_row :one, #failed_runs :runs")
            .when(format!("{OF_VERSION} AND NOT contains(#failed_runs, :run)"))
            .with([
                (":version", amount(version)),
                (":one", number(1)),
                (":runs", AttributeValue::Ss(vec![run.to_string()])),
                (":run", text(run)),
            ])
            .of(organization);
        match counted.attempt().await? {
            WriteResult::Done(row) => from_item(row).map(Some),
            WriteResult::Refused(row) if is_of(&row, organization) => {
                let automation: Automation = from_item(row)?;
                Ok(Some(automation).filter(|automation| automation.active_version == Some(version)))
            }
            WriteResult::Refused(_) => Ok(None),
        }
    }

    /// Resets the count of failures of the active version, with a write only if it is not zero.
    pub async fn forget_failures(
        &self,
        organization: OrganizationId,
        (automation, version): (AutomationId, u64),
    ) -> Result<()> {
        let forgotten = self
            .automations
            .update(id(automation), "SET #failures_in_a_row = :none REMOVE #failed_runs")
            .when(format!("{OF_VERSION} AND #failures_in_a_row > :none"))
            .of(organization)
            .with([(":none", number(0)), (":version", amount(version))]);
        forgotten.unless_refused().await.map(drop)
    }

    pub async fn listening(&self, organization: OrganizationId, trigger_key: &str) -> Result<Vec<Automation>> {
        let of = self.automations.query_index("by_trigger", "#trigger_key = :key");
        let kept = of.filter("attribute_not_exists(#deleting)").of(organization);
        kept.with([(":key", text(trigger_key))]).collect().await
    }

    /// Waits up to a second until events find the automation as written.
    pub async fn wait_for_index(&self, written: &Automation) {
        let Some(trigger_key) = &written.trigger_key else { return };
        let shown = || async {
            let one = self.automations.query_index("by_trigger", "#trigger_key = :key AND #id = :id");
            let one = one.with([(":key", text(trigger_key)), (":id", text(written.id))]);
            let shown: Option<Automation> = one.first().await.ok()?;
            Some(shown.is_some_and(|shown| shown.revision >= written.revision))
        };
        wait_for_index(shown).await;
    }

    /// Ids of the automations that listen to an event or would if they were not paused.
    pub async fn listeners(&self, organization: OrganizationId, trigger_key: &str) -> Result<Vec<String>> {
        let of = self.automations.query_index("by_trigger", "#trigger_key = :key").attributes("#id");
        let kept = of.filter("attribute_not_exists(#deleting)").of(organization);
        let items = kept.with([(":key", text(trigger_key))]).items().await?;
        Ok(items.iter().filter_map(|item| Some(item.get("id")?.as_s().ok()?.clone())).collect())
    }

    /// A change of the row at the revision of `read`; `rest` follows the SET clause.
    fn changed(&self, read: &Automation, set: &str, rest: &str) -> Write {
        self.automations
            .update(id(read.id), format!("{set}, #updated_at = :now, #revision = :next{rest}"))
            .when("#revision = :read AND attribute_not_exists(#deleting)")
            .of(read.organization_id)
            .with([
                (":now", text(Timestamp::now())),
                (":next", amount(read.revision + 1)),
                (":read", amount(read.revision)),
            ])
    }

    /// Deletes the automation, its memory and its versions, repeatably. With `revision`, only at that revision.
    ///
    /// # Errors
    /// [`Error::Conflict`] at another revision or out of time.
    pub async fn delete(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        revision: Option<u64>,
        deadline: Deadline,
    ) -> Result<()> {
        let before = self.automations.item(id(automation), true).await?.filter(|row| is_of(row, organization));
        let before = before.ok_or(Error::NotFound(WHAT))?;
        let mut begun = self
            .automations
            .update(id(automation), "SET #deleting = :true, #updated_at = :now ADD #revision :one")
            .of(organization)
            .with([(":true", AttributeValue::Bool(true)), (":now", text(Timestamp::now())), (":one", number(1))]);
        if let Some(revision) = revision {
            begun = begun.when("(#revision = :read OR #deleting = :true)").with([(":read", amount(revision))]);
        }
        // A repeated deletion is the same deletion.
        if !before.contains_key("deleting") {
            let deleted = Change::of(Act::Deleted, Noun::Automation, automation);
            let name = before.get("name").and_then(|name| name.as_s().ok());
            begun = begun.audited(name.map_or_else(|| deleted.clone(), |name| deleted.clone().named(name)))?;
        }
        if let WriteResult::Refused(row) = begun.attempt().await? {
            let theirs = row.get("organization_id") == Some(&text(organization));
            return Err(if theirs { Error::Conflict(OVERTAKEN.into()) } else { Error::NotFound(WHAT) });
        }
        let mut rows = self.memory.deletions(organization, automation).await?;
        let versions = self.of(organization, automation).now();
        versions
            .each_page(|items| {
                let key_of = |mut item: Item| {
                    let parts = ["automation_id", "version"]
                        .map(|name| item.remove(name).map(|value| (name.to_owned(), value)));
                    parts.into_iter().flatten().collect::<Item>()
                };
                rows.extend(items.into_iter().map(key_of).map(|key| self.versions.delete(key)));
                Ok(())
            })
            .await?;
        // The same content has the same id: if another deletion finished first, the rows may belong to a new automation.
        let deleting = self.automations.check(id(automation)).when("#deleting = :true").of(organization);
        let deleting = deleting.with([(":true", AttributeValue::Bool(true))]);
        for part in rows.chunks(DELETED_AT_ONCE) {
            if deadline.remaining() < LAST_CALL {
                return Err(Error::Conflict(LEFT.into()));
            }
            if !transact_unless_refused([slice::from_ref(&deleting), part].concat()).await? {
                return Ok(());
            }
        }
        let gone = self.automations.delete(id(automation)).when("#deleting = :true").of(organization);
        gone.with([(":true", AttributeValue::Bool(true))]).unless_refused().await.map(drop)
    }
}

pub const OVERTAKEN: &str =
    "the automation was changed in between; read it again and send the ETag that it has now as If-Match";
const LEFT: &str = "not everything of it is deleted yet; send the same request again";

fn audited(action: Act, automation: &Automation) -> Change {
    Change::of(action, Noun::Automation, automation.id).named(&automation.name)
}

fn version_key(automation: AutomationId, version: u64) -> Item {
    key([("automation_id", text(automation)), ("version", amount(version))])
}

fn amount(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}
