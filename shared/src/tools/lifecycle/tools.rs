//! Creates, edits and deletes tools.

use ring::digest::{SHA256, digest};
use secrecy::SecretString;
use serde::Serialize;
use serde_json::{Value, json};

use super::{
    Assistants, Attachments, Edit, ExternalTools, References, SETTLING, StoredSecrets,
    edit::kept,
    ownership, release,
    settle::{Progress, close, open, settle_now},
};
use crate::{
    Deadline, Error, Result,
    actions::{SecretValues, ToolAction, ToolConfig},
    clients::vapi,
    error::{self, found},
    models::{
        AgentId, Change, Intent, KnowledgeBaseId, OrganizationId, SecretOwner, Speech, SpokenAtStart, Timestamp, Tool,
        ToolId, ToolName,
    },
    redaction::HiddenTexts,
    store::{Database, ExecutionFilter, Executions, Intents, KnowledgeBases, Lease, Reissues, Tools},
};

/// Numbered names tried before a random suffix: `send_sms_2` … `send_sms_5`.
const NUMBERED: u32 = 5;

/// Attachments deleted together with the tool; DynamoDB takes 100 actions per transaction.
const WITH_THE_TOOL: usize = 90;

#[derive(Clone)]
pub struct Lifecycle {
    pub tools: Tools,
    pub executions: Executions,
    pub intents: Intents,
    pub external: ExternalTools,
    pub attachments: Attachments,
    pub knowledge_bases: KnowledgeBases,
    pub secrets: StoredSecrets,
    pub reissues: Reissues,
}

#[derive(Debug)]
pub struct Updated {
    pub tool: Tool,
    /// False: the edit is saved, and its agents are updated asynchronously.
    pub settled: bool,
}

struct NewSecret {
    name: String,
    content: SecretString,
    /// Opened first, closed with the row.
    intent: Intent,
}

struct EditedSecrets {
    name: Option<String>,
    made: Option<NewSecret>,
    /// Opened in the row's transaction, for the replaced secret.
    left: Option<Intent>,
}

#[derive(Debug, Serialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum ToolDeletion {
    Deleted,
    /// Out of time; continued asynchronously.
    Deleting {
        agents_done: Vec<AgentId>,
        agents_left: Vec<AgentId>,
    },
}

impl Lifecycle {
    pub fn new(database: &Database, external: ExternalTools, assistants: Assistants) -> Self {
        Self {
            tools: Tools::new(database),
            executions: Executions::new(database),
            intents: Intents::new(database),
            secrets: StoredSecrets::new(database, external.secrets()),
            external,
            attachments: Attachments::new(database, assistants),
            knowledge_bases: KnowledgeBases::new(database),
            reissues: Reissues::new(database),
        }
    }

    /// Creates a tool in the table and, unless it only runs at call start, at VAPI. The caller has checked its references.
    pub async fn create(&self, organization: OrganizationId, config: &ToolConfig, deadline: Deadline) -> Result<Tool> {
        let name = ToolName::from_label(&config.label);
        self.create_for(organization, config, name, None, deadline).await
    }

    /// Like [`Lifecycle::create`], under this name or a similar one, optionally for a knowledge base, whose lease is held.
    pub(super) async fn create_for(
        &self,
        organization: OrganizationId,
        config: &ToolConfig,
        name: ToolName,
        base: Option<(KnowledgeBaseId, &Lease)>,
        deadline: Deadline,
    ) -> Result<Tool> {
        let id = ToolId::generate();
        let mut config = config.clone();
        let values = config.action.take_secrets(None)?;
        let (name, intent) = self.reserve_name(organization, id, name, deadline).await?;
        let mut tool = row(organization, id, name, &config);
        let secret = self.new_secret(organization, id, &values, deadline)?;
        tool.values_secret = secret.as_ref().map(|secret| secret.name.clone());
        tool.automatic_for = base.map(|(base, _)| base);
        let lease = base.map(|(_, lease)| lease);
        let creating = async {
            if tool.attach_to_agent {
                let (external, data) = self.external.upsert_as(&tool, &config, deadline.reserving(SETTLING)).await?;
                (tool.external_tool_id, tool.data) = (Some(external), data);
            }
            self.tools.create(&tool, intent.id, secret.as_ref().map(|secret| secret.intent.id), lease).await
        };
        let created = Box::pin(self.with_secret(secret.as_ref(), creating)).await;
        if let Err(error) = created {
            let settling = self.settle_creation(organization, id, &tool.name, deadline);
            Box::pin(settle_now(&self.intents, &intent, &error, settling)).await;
            return Err(error);
        }
        Ok(tool)
    }

    fn new_secret(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        values: &SecretValues,
        deadline: Deadline,
    ) -> Result<Option<NewSecret>> {
        if values.is_empty() {
            return Ok(None);
        }
        let name = self.external.new_secret(organization, tool);
        let content = SecretString::from(serde_json::to_string(values).map_err(Error::internal)?);
        let intent = StoredSecrets::intent(organization, &name, SecretOwner::Tool(tool), deadline);
        Ok(Some(NewSecret { name, content, intent }))
    }

    async fn with_secret(&self, secret: Option<&NewSecret>, write: impl Future<Output = Result<()>>) -> Result<()> {
        match secret {
            Some(secret) => self.secrets.store(&secret.intent, &secret.content, write).await,
            None => write.await,
        }
    }

    /// An existing row has closed its intent. Otherwise deletes leftovers at VAPI and releases the name.
    pub(super) async fn settle_creation(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        name: &ToolName,
        deadline: Deadline,
    ) -> Result<Progress> {
        if found(self.tools.get(organization, tool).await)?.is_some() {
            return Ok(Progress::Settled("the tool is there"));
        }
        self.tools.release_name(organization, name, tool).await?;
        let left = self.external.leftover_tool_ids(organization, tool, deadline).await?;
        for external in &left {
            self.external.delete(organization, external, deadline).await?;
        }
        Ok(Progress::Settled(if left.is_empty() { "nothing was left at VAPI" } else { "the tool was deleted at VAPI" }))
    }

    async fn reserve_name(
        &self,
        organization: OrganizationId,
        id: ToolId,
        plain: ToolName,
        deadline: Deadline,
    ) -> Result<(ToolName, Intent)> {
        let numbered = (2..=NUMBERED).map(|number| plain.with_suffix(&number.to_string()));
        // The end of the id is random, so the name is practically unique.
        let tail: String = id.to_string().chars().rev().take(8).collect();
        for name in std::iter::once(plain.clone()).chain(numbered).chain([plain.with_suffix(&tail)]) {
            let change = Change::CreateTool { tool_id: id, name: name.clone() };
            let intent = Intent::new(organization, change, ownership(deadline));
            match self.tools.reserve_name(&intent, &name, id).await {
                Ok(true) => return Ok((name, intent)),
                Ok(false) => {}
                Err(error) => {
                    let settling = self.settle_creation(organization, id, &name, deadline);
                    Box::pin(settle_now(&self.intents, &intent, &error, settling)).await;
                    return Err(error);
                }
            }
        }
        Err(Error::Conflict(format!("no free name could be found like \"{plain}\"; choose another label")))
    }

    /// Edits a tool. `changes`: the fields of a `ToolConfig` to be replaced, and optionally `name`; `seen`: the version the
    /// editor saw. Changes VAPI, then the row, then the agents with the tool.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another edit came in between, [`Error::Invalid`] for invalid fields.
    pub async fn update(
        &self,
        references: &References,
        organization: OrganizationId,
        id: ToolId,
        seen: Option<u64>,
        changes: &Value,
        deadline: Deadline,
    ) -> Result<Updated> {
        let no_wait = Deadline::after(std::time::Duration::ZERO);
        let (before, lease) = self.tools.acquire(organization, id, no_wait).await?;
        let updated = Box::pin(self.update_leased(references, before, &lease, seen, changes, deadline)).await;
        release(lease.release()).await;
        updated
    }

    async fn update_leased(
        &self,
        references: &References,
        before: Tool,
        lease: &Lease,
        seen: Option<u64>,
        changes: &Value,
        deadline: Deadline,
    ) -> Result<Updated> {
        if let Some(seen) = seen.filter(|seen| *seen != before.version) {
            let version = before.version;
            return Err(Error::Conflict(format!(
                "the tool was edited in the meantime: you saw version {seen}, it is version {version}; read it again"
            )));
        }
        let mut edit = Edit::read(&before, changes)?;
        let known = Some((before.id, &edit.known));
        references.check(before.organization_id, &mut edit.config, known, deadline).await?;
        let secrets = self.edit_secrets(&before, &mut edit, deadline).await?;
        let (config, name) = (&edit.config, edit.name.clone().filter(|name| *name != before.name));
        let external_tool_id = before.external_tool_id.clone();
        let change = Change::UpdateTool { tool_id: before.id, name: name.clone(), external_tool_id };
        let intent = Intent::new(before.organization_id, change, ownership(deadline));
        let mut after = row(before.organization_id, before.id, name.as_ref().unwrap_or(&before.name).clone(), config);
        edit.keep_unknown(&before, &mut after);
        edit.keep_parameters(&before, &mut after);
        (after.created_at, after.version) = (before.created_at, before.version);
        after.external_tool_id.clone_from(&before.external_tool_id);
        // A tool that now searches another base is no longer automatic.
        after.spoken_at_start = before.spoken_at_start;
        after.automatic_for = before.automatic_for.filter(|base| searches(config, *base));
        after.values_secret.clone_from(&secrets.name);

        let saved = async {
            match &name {
                Some(name) if !self.tools.reserve_name(&intent, name, before.id).await? => return Ok(false),
                Some(_) => {}
                None => self.intents.open(&intent).await?,
            }
            let saving = self.save(&before, &mut after, lease, &secrets, deadline);
            Box::pin(self.with_secret(secrets.made.as_ref(), saving)).await.map(|()| true)
        };
        match saved.await {
            Ok(true) => {}
            Ok(false) => return Err(Error::invalid("name", "is the name of another tool of this organization")),
            Err(error) => {
                let settling = async {
                    let row = self.tools.get(before.organization_id, before.id).await?;
                    self.settle_update(Some(&before), row, &intent, lease, deadline).await
                };
                Box::pin(settle_now(&self.intents, &intent, &error, settling)).await;
                return Err(error);
            }
        }
        if let Some(left) = &secrets.left {
            self.secrets.discard(left).await;
        }
        let former = before.external_tool_id.clone().filter(|former| after.external_tool_id.as_ref() != Some(former));
        let former: Vec<String> = former.into_iter().collect();
        let settled = match self.follow(Some(&before), &after, &former, deadline).await {
            Ok(true) => {
                close(&self.intents, &intent).await;
                true
            }
            Ok(false) => false,
            Err(error) => {
                let settling = self.settle_update(None, after.clone(), &intent, lease, deadline);
                Box::pin(settle_now(&self.intents, &intent, &error, settling)).await
            }
        };
        if !settled {
            self.leave(&intent).await;
        }
        Ok(Updated { tool: after, settled })
    }

    /// Derives whether callers of the tool hear a sentence at its start, from its latest executions. What cannot be derived now
    /// stays as it is.
    async fn spoken_at_start(&self, tool: &Tool) -> Option<SpokenAtStart> {
        if tool.is_async || tool.confirms().is_some() {
            return Some(SpokenAtStart::silent());
        }
        let latest = ExecutionFilter::newest(Speech::LOOKS_AT);
        match self.executions.of_tool(tool.organization_id, tool.id, &latest).await {
            Ok(page) => Some(SpokenAtStart::derive(&page.items)),
            Err(error) => {
                tracing::warn!(tool.id = %tool.id, "the executions of a tool could not be read: {}", error::chain(&error));
                tool.spoken_at_start
            }
        }
    }

    async fn save(
        &self,
        before: &Tool,
        after: &mut Tool,
        lease: &Lease,
        secrets: &EditedSecrets,
        deadline: Deadline,
    ) -> Result<()> {
        let former = after.external_tool_id.take();
        if after.attach_to_agent {
            after.external_tool_id = former;
            after.spoken_at_start = self.spoken_at_start(after).await;
            let (external, data) = self.external.upsert(after, deadline.reserving(SETTLING)).await?;
            (after.external_tool_id, after.data) = (Some(external), data);
        }
        let made = secrets.made.as_ref().map(|made| made.intent.id);
        self.tools.replace(after, before, lease, made, secrets.left.as_ref()).await
    }

    /// Moves the secrets out of an edited configuration. Masked values keep their content. Any change creates a new secret with
    /// all values, so that a row always names its own version.
    async fn edit_secrets(&self, before: &Tool, edit: &mut Edit, deadline: Deadline) -> Result<EditedSecrets> {
        let organization = before.organization_id;
        let (action, known) = (&mut edit.config.action, &edit.known.action);
        let named = &before.values_secret;
        // An older version may have left secrets in clear text.
        if *action == *known && *known == known.masked() {
            return Ok(EditedSecrets { name: named.clone(), made: None, left: None });
        }
        let stored = match named {
            Some(secret) => self.secrets.values(secret).await?,
            None => SecretValues::default(),
        };
        let values = action.take_secrets(Some(&known.with_secrets(&stored)))?;
        if named.is_some() && values == stored {
            return Ok(EditedSecrets { name: named.clone(), made: None, left: None });
        }
        let made = self.new_secret(organization, before.id, &values, deadline)?;
        let left =
            named.as_ref().map(|old| StoredSecrets::intent(organization, old, SecretOwner::Tool(before.id), deadline));
        Ok(EditedSecrets { name: made.as_ref().map(|made| made.name.clone()), made, left })
    }

    /// Makes VAPI's tool and the agents follow the row after an edit. `agents_have`: the version its agents have, if known.
    pub(super) async fn settle_update(
        &self,
        agents_have: Option<&Tool>,
        mut tool: Tool,
        intent: &Intent,
        lease: &Lease,
        deadline: Deadline,
    ) -> Result<Progress> {
        let Change::UpdateTool { name: reserved, external_tool_id: before, .. } = &intent.change else {
            return Err(Error::internal("the intent is of no edit"));
        };
        let replaced = tool.external_tool_id.clone();
        if tool.attach_to_agent {
            tool.spoken_at_start = self.spoken_at_start(&tool).await;
            let (external, data) = self.external.upsert(&tool, deadline).await?;
            if tool.external_tool_id.as_ref() == Some(&external) {
                tool.data = data;
                self.tools.note_at_vapi(&tool).await?;
            } else {
                let read = tool.clone();
                (tool.external_tool_id, tool.data) = (Some(external), data);
                self.tools.replace(&mut tool, &read, lease, None, None).await?;
            }
        }
        let former = [before.as_ref(), replaced.as_ref()];
        let former = self.external.former_tool_ids(&tool, former, deadline).await?;
        if !self.follow(agents_have, &tool, &former, deadline).await? {
            return Ok(Progress::Unfinished("the tool has more agents than there is time; it goes on"));
        }
        if let Some(name) = reserved.as_ref().filter(|name| **name != tool.name) {
            self.tools.release_name(tool.organization_id, name, tool.id).await?;
        }
        Ok(Progress::Settled("VAPI and the agents follow the table"))
    }

    /// Updates the agents after a change of kind or of VAPI's id, then deletes former tools at VAPI. False if out of time.
    async fn follow(
        &self,
        agents_have: Option<&Tool>,
        tool: &Tool,
        former: &[String],
        deadline: Deadline,
    ) -> Result<bool> {
        let same = |before: &Tool| {
            before.external_tool_id == tool.external_tool_id && before.attach_to_agent == tool.attach_to_agent
        };
        // Assistants that pin versions still have the former one.
        let versioned = vapi::latest_version(&tool.data).is_some();
        if former.is_empty() && !versioned && agents_have.is_some_and(same) {
            return Ok(true);
        }
        let update = |done| self.attachments.update_agents(tool, former, done, deadline);
        let changed = update(Vec::new()).await?;
        if !changed.left.is_empty() {
            return Ok(false);
        }
        // Only now that no assistant names it: the id of a deleted tool breaks an assistant's calls.
        for former in former {
            self.external.delete(tool.organization_id, former, deadline).await?;
        }
        Ok(update(changed.done).await?.left.is_empty())
    }

    /// Deletes a tool from all assistants, from VAPI and from the tables.
    ///
    /// # Errors
    /// [`Error::Partly`] if VAPI fails midway, with the agents done and left.
    pub async fn delete(&self, organization: OrganizationId, id: ToolId, deadline: Deadline) -> Result<ToolDeletion> {
        let (tool, lease) = self.tools.acquire(organization, id, deadline.reserving(SETTLING)).await?;
        let intent = Intent::new(organization, Change::DeleteTool { tool_id: id }, ownership(deadline));
        if let Err(error) = open(&self.intents, &intent).await {
            release(lease.release()).await;
            return Err(error);
        }
        let deleted = Box::pin(self.delete_leased(&tool, &lease, &intent, deadline)).await;
        match &deleted {
            Ok(ToolDeletion::Deleted) => return deleted,
            Ok(ToolDeletion::Deleting { .. }) => self.leave(&intent).await,
            Err(error) => {
                let settling = async {
                    // The answer to our own deletion may have been lost.
                    match found(self.tools.get(organization, id).await)? {
                        Some(tool) => self.settle_deletion(&tool, &lease, &intent, deadline).await,
                        None => Ok(Progress::Settled("the tool is gone")),
                    }
                };
                Box::pin(settle_now(&self.intents, &intent, error, settling)).await;
            }
        }
        release(lease.release()).await;
        deleted
    }

    pub(super) async fn settle_deletion(
        &self,
        tool: &Tool,
        lease: &Lease,
        intent: &Intent,
        deadline: Deadline,
    ) -> Result<Progress> {
        Ok(match self.delete_leased(tool, lease, intent, deadline).await? {
            ToolDeletion::Deleted => Progress::Settled("the tool was deleted"),
            ToolDeletion::Deleting { .. } => {
                Progress::Unfinished("the deletion has more agents than there is time; it goes on")
            }
        })
    }

    pub(super) async fn delete_leased(
        &self,
        tool: &Tool,
        lease: &Lease,
        intent: &Intent,
        deadline: Deadline,
    ) -> Result<ToolDeletion> {
        let store = &self.attachments.agent_tools;
        if let Some(external) = &tool.external_tool_id {
            let remove = |done| self.attachments.remove_from_assistants(tool, external, done, deadline);
            let mut changed = remove(Vec::new()).await?;
            if changed.left.is_empty() {
                self.external.delete(tool.organization_id, external, deadline).await?;
                changed = remove(changed.done).await?;
            }
            if !changed.left.is_empty() {
                return Ok(ToolDeletion::Deleting { agents_done: changed.done, agents_left: changed.left });
            }
        }
        let rows = store.of_tool(tool.organization_id, tool.id).await?;
        let (pages, last) = rows.split_at(rows.len().saturating_sub(WITH_THE_TOOL));
        for page in pages.chunks(WITH_THE_TOOL) {
            store.delete_page(page).await?;
        }
        let of = SecretOwner::Tool(tool.id);
        let left = tool.values_secret.as_ref();
        let left = left.map(|secret| StoredSecrets::intent(tool.organization_id, secret, of, deadline));
        self.tools.delete(tool, lease, last, intent.id, left.as_ref()).await?;
        if let Some(left) = &left {
            self.secrets.discard(left).await;
        }
        Ok(ToolDeletion::Deleted)
    }

    /// Releases a change to the next settler; if that fails, ownership expires.
    async fn leave(&self, intent: &Intent) {
        if let Err(error) = self.intents.leave(intent.id).await {
            tracing::warn!(intent.id = %intent.id, "an intent could not be left to settle: {}", error::chain(&error));
        }
    }
}

/// A tool as it would be saved, for a trial. Equal configurations get the same id, so effects and limits count as one tool's.
/// The name is fixed: deriving it from the label would need large tables in a small function.
///
/// # Errors
/// [`Error::Invalid`] for masked values, which have no stored secret.
pub fn unsaved(organization: OrganizationId, config: &ToolConfig) -> Result<Tool> {
    config.action.clone().take_secrets(None)?;
    let content = format!("unsaved {organization} {}", config.to_json());
    let mut half = [0; 16];
    half.iter_mut().zip(digest(&SHA256, content.as_bytes()).as_ref()).for_each(|(to, from)| *to = *from);
    let name = "unsaved".parse::<ToolName>().map_err(Error::internal)?;
    Ok(row(organization, ToolId::of_digest(half), name, config))
}

fn row(organization: OrganizationId, id: ToolId, name: ToolName, config: &ToolConfig) -> Tool {
    let now = Timestamp::now();
    Tool {
        id,
        label: config.label.clone(),
        description: config.description.clone(),
        organization_id: organization,
        external_tool_id: None,
        kind: config.kind(),
        function_schema: config.function_schema(&name),
        static_config: config.static_config(),
        config_metadata: config.to_json(),
        is_async: config.is_async,
        execute_on_call_start: config.execute_on_call_start,
        attach_to_agent: config.attach_to_agent,
        data: json!({}),
        values_secret: None,
        spoken_at_start: (config.is_async || config.confirm.is_some()).then(SpokenAtStart::silent),
        automatic_for: None,
        unchanged: None,
        version: 0,
        name,
        created_at: now,
        updated_at: now,
    }
}

/// The public form of a tool: without secrets, which an older version may have left in the row.
#[must_use]
pub fn shown(mut tool: Tool) -> Tool {
    (tool.values_secret, tool.unchanged) = (None, None);
    let Ok(known) = ToolConfig::stored(&tool) else {
        let hidden = HiddenTexts::of_config(&tool.static_config);
        tool.config_metadata = hidden.masked(tool.config_metadata);
        tool.static_config = hidden.masked(tool.static_config);
        return tool;
    };
    let masked = ToolConfig { action: known.action.masked(), ..known.clone() };
    if masked != known {
        tool.config_metadata = kept(&tool.config_metadata, &known.to_json(), masked.to_json());
        tool.static_config = kept(&tool.static_config, &known.static_config(), masked.static_config());
    }
    tool
}

fn searches(config: &ToolConfig, base: KnowledgeBaseId) -> bool {
    matches!(&config.action, ToolAction::Query(query) if query.knowledge_base_id() == base)
}
