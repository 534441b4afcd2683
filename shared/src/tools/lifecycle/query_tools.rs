//! The query tool of a knowledge base, one per base.
//!
//! Attaching the base to an agent creates it; detaching the last agent deletes it.
//!
//! The tool's `automatic_for` and the base's `query_tool_id` must agree; users' query tools have no `automatic_for`. Every
//! change that may take the last agent records an intent, and settling it checks for agents.

use std::collections::BTreeSet;

use futures_util::join;
use serde::Serialize;

use super::{
    Attached, Lifecycle, SETTLING, ToolDeletion, ownership, release,
    settle::{Progress, close, open, settle_now},
};
use crate::{
    Deadline, Error, Result,
    actions::{ToolAction, ToolConfig, query::Query},
    cut::cut,
    error::found,
    models::{
        AgentId, AsyncResult, Change, ChatRules, Intent, KnowledgeBase, KnowledgeBaseId, Limits, OrganizationId,
        Speech, Tool, ToolAttachment, ToolId, ToolName,
    },
    ranking::folded,
    redaction::Marks,
    store::Lease,
};

/// Characters of the description for models; a limit of `ToolConfig`.
const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_LABEL: usize = 100;

#[derive(Debug)]
pub struct DetachedBase {
    pub tool_id: ToolId,
    pub query_tool: QueryToolStatus,
}

crate::described!(QueryToolStatus => {"enum": ["kept", "deleted", "pending"]});

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryToolStatus {
    Kept,
    Deleted,
    /// No other agent has it, or that is unknown; settled asynchronously.
    Pending,
}

impl Lifecycle {
    /// Attaches a knowledge base to an agent by its query tool, created on demand. Idempotent.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization lacks agent or base, [`Error::Conflict`] for a base being deleted.
    pub async fn attach_knowledge_base(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(Tool, ToolAttachment, Attached)> {
        let (agent, locked) = join!(
            self.attachments.agents.get(organization, agent),
            self.knowledge_bases.acquire(organization, base, deadline.reserving(SETTLING)),
        );
        let (base, lease) = locked?;
        let attached = match agent {
            Ok(agent) => Box::pin(self.attach_base_leased(&base, &lease, agent.id, deadline)).await,
            Err(error) => Err(error),
        };
        self.release_base(lease).await;
        attached
    }

    async fn attach_base_leased(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        agent: AgentId,
        deadline: Deadline,
    ) -> Result<(Tool, ToolAttachment, Attached)> {
        let organization = base.organization_id;
        if base.deleting {
            return Err(Error::Conflict("the knowledge base is being deleted".into()));
        }
        if let Some(tool) = self.query_tool(base).await? {
            let attached = Box::pin(self.attachments.attach(organization, agent, tool.id, deadline)).await;
            let (row, attached) = attached?;
            return Ok((tool, row, attached));
        }
        let config = config(base)?;
        let change = Change::QueryTool { knowledge_base_id: base.id };
        let intent = Intent::new(organization, change, ownership(deadline));
        open(&self.intents, &intent).await?;
        let attached = async {
            let name = ToolName::of_words(&folded(&config.label));
            let tool = self.create_for(organization, &config, name, Some((base.id, lease)), deadline).await?;
            let (row, attached) = self.attachments.attach(organization, agent, tool.id, deadline).await?;
            Ok((tool, row, attached))
        };
        let attached = Box::pin(attached).await;
        match &attached {
            Ok(_) => close(&self.intents, &intent).await,
            Err(error) => {
                settle_now(&self.intents, &intent, error, self.settle_base_leased(base, lease, deadline)).await;
            }
        }
        attached
    }

    /// Detaches a knowledge base from an agent, and deletes its query tool if no other agent has it.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not attached.
    pub async fn detach_knowledge_base(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<DetachedBase> {
        let (base, lease) = self.knowledge_bases.acquire(organization, base, deadline.reserving(SETTLING)).await?;
        let detached = Box::pin(self.detach_base_leased(&base, &lease, agent, deadline)).await;
        self.release_base(lease).await;
        detached
    }

    async fn detach_base_leased(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        agent: AgentId,
        deadline: Deadline,
    ) -> Result<DetachedBase> {
        let organization = base.organization_id;
        let change = Change::QueryTool { knowledge_base_id: base.id };
        let intent = Intent::new(organization, change, ownership(deadline));
        let Some(tool) = self.query_tool(base).await? else { return Err(Error::NotFound("attached knowledge base")) };
        open(&self.intents, &intent).await?;
        if let Err(error) = self.attachments.detach(organization, agent, tool.id, deadline).await {
            settle_now(&self.intents, &intent, &error, self.settle_base_leased(base, lease, deadline)).await;
            return Err(match error {
                Error::NotFound("attached tool" | "tool") => Error::NotFound("attached knowledge base"),
                error => error,
            });
        }
        let query_tool = match self.delete_unused_query_tool(base, lease, deadline).await {
            Ok(query_tool) => {
                close(&self.intents, &intent).await;
                query_tool
            }
            Err(error) => {
                settle_now(&self.intents, &intent, &error, self.settle_base_leased(base, lease, deadline)).await;
                QueryToolStatus::Pending
            }
        };
        Ok(DetachedBase { tool_id: tool.id, query_tool })
    }

    pub async fn agents_of_base(&self, base: &KnowledgeBase, deadline: Deadline) -> Result<BTreeSet<AgentId>> {
        match base.query_tool_id {
            Some(tool) => self.agents_having(base, tool, deadline).await,
            None => Ok(BTreeSet::new()),
        }
    }

    /// The agents with the tool, read consistently, among those listed by the base and by the index; the latter has agents whose
    /// assistant got the tool directly at VAPI.
    async fn agents_having(&self, base: &KnowledgeBase, tool: ToolId, deadline: Deadline) -> Result<BTreeSet<AgentId>> {
        let agent_tools = &self.attachments.agent_tools;
        let indexed = agent_tools.of_tool(base.organization_id, tool).await?;
        let asked = base.agent_ids.iter().copied().chain(indexed.iter().map(|row| row.agent_id)).collect();
        agent_tools.among(base.organization_id, tool, &asked, deadline).await
    }

    /// Deletes the base's query tool unless an agent has it. Requires the base's lease.
    pub async fn delete_unused_query_tool(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        deadline: Deadline,
    ) -> Result<QueryToolStatus> {
        // Read again: the base may have had no tool at the first read.
        let base = self.knowledge_bases.get(base.organization_id, base.id).await?;
        let Some(tool) = base.query_tool_id else { return Ok(QueryToolStatus::Deleted) };
        let acquired = self.tools.acquire(base.organization_id, tool, deadline.at_most(SETTLING)).await;
        let Some((tool, tool_lease)) = found(acquired)? else { return Ok(QueryToolStatus::Deleted) };
        if tool.automatic_for != Some(base.id) {
            release(tool_lease.release()).await;
            return Ok(QueryToolStatus::Deleted);
        }
        let dropped = Box::pin(self.delete_unused_leased(&base, lease, &tool, &tool_lease, deadline)).await;
        if !matches!(dropped, Ok(QueryToolStatus::Deleted)) {
            release(tool_lease.release()).await;
        }
        dropped
    }

    /// The tool's lease blocks attachments, so the base's `agent_ids` contain every agent that may have it.
    async fn delete_unused_leased(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        tool: &Tool,
        tool_lease: &Lease,
        deadline: Deadline,
    ) -> Result<QueryToolStatus> {
        let base = self.knowledge_bases.get(base.organization_id, base.id).await?;
        let having = self.agents_having(&base, tool.id, deadline).await?;
        if !having.is_empty() {
            let stale: BTreeSet<AgentId> = base.agent_ids.difference(&having).copied().collect();
            if !stale.is_empty() {
                self.knowledge_bases.forget_agents(&stale, lease, tool_lease).await?;
            }
            return Ok(QueryToolStatus::Kept);
        }
        // After this write the deletion is certain, and the next attachment creates another tool.
        let deletion = Intent::new(base.organization_id, Change::DeleteTool { tool_id: tool.id }, ownership(deadline));
        if let Err(error) = self.knowledge_bases.give_up_tool(lease, tool_lease, &deletion).await {
            // Only the answer may have been lost: the row decides.
            let row = self.knowledge_bases.get(base.organization_id, base.id).await;
            if !row.is_ok_and(|row| row.query_tool_id != Some(tool.id)) {
                return Err(error);
            }
        }
        match self.delete_leased(tool, tool_lease, &deletion, deadline).await {
            Ok(ToolDeletion::Deleted) => Ok(QueryToolStatus::Deleted),
            Ok(ToolDeletion::Deleting { .. }) => Ok(QueryToolStatus::Pending),
            Err(error) => {
                let settling = self.settle_deletion(tool, tool_lease, &deletion, deadline);
                settle_now(&self.intents, &deletion, &error, settling).await;
                Ok(QueryToolStatus::Pending)
            }
        }
    }

    pub(super) async fn settle_base(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<Progress> {
        let acquired = self.knowledge_bases.acquire(organization, base, deadline).await;
        let Some((base, lease)) = found(acquired)? else {
            return Ok(Progress::Settled("the knowledge base was deleted since"));
        };
        let settled = self.settle_base_leased(&base, &lease, deadline).await;
        self.release_base(lease).await;
        settled
    }

    async fn settle_base_leased(&self, base: &KnowledgeBase, lease: &Lease, deadline: Deadline) -> Result<Progress> {
        let query_tool = Box::pin(self.delete_unused_query_tool(base, lease, deadline)).await?;
        Ok(Progress::Settled(match query_tool {
            QueryToolStatus::Kept => "agents have the query tool",
            QueryToolStatus::Deleted => "no query tool is left without an agent",
            QueryToolStatus::Pending => "the query tool is being deleted",
        }))
    }

    async fn query_tool(&self, base: &KnowledgeBase) -> Result<Option<Tool>> {
        let Some(id) = base.query_tool_id else { return Ok(None) };
        let tool = found(self.tools.get(base.organization_id, id).await)?;
        Ok(tool.filter(|tool| tool.automatic_for == Some(base.id)))
    }

    pub async fn release_base(&self, lease: Lease) {
        release(lease.release()).await;
    }
}

fn config(base: &KnowledgeBase) -> Result<ToolConfig> {
    let label: String = format!("Search {}", base.name).chars().take(LONGEST_LABEL).collect();
    let label = label.trim_end().to_owned();
    let use_it = "Use it whenever the caller asks about that, and say only what it finds.";
    let about = match &base.description {
        Some(description) => format!("Looks things up in \"{}\": {description}", base.name),
        None => format!("Looks things up in \"{}\".", base.name),
    };
    let about = cut(about, LONGEST_DESCRIPTION - use_it.len() - 1);
    Ok(ToolConfig {
        label,
        description: Some(format!("{about} {use_it}")),
        action: ToolAction::Query(Query::over(base)?),
        is_async: false,
        execute_on_call_start: false,
        attach_to_agent: true,
        repeatable: true,
        declared_effect: None,
        chat: ChatRules::default(),
        limits: Limits::default(),
        redact: Marks::default(),
        speech: Speech::default(),
        async_result: AsyncResult::default(),
        if_call_over: None,
        confirm: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(name: &str, description: Option<&str>) -> ToolConfig {
        let description = description.map(str::to_owned);
        let base = KnowledgeBase::new(OrganizationId::generate(), name.to_owned(), description, Vec::new());
        config(&base).unwrap()
    }

    #[test]
    fn a_model_reads_the_description_of_the_base() {
        let config = described("Homes for sale", Some("What we have on offer."));
        assert_eq!(config.label, "Search Homes for sale");
        let description = config.description.unwrap();
        assert!(description.starts_with("Looks things up in \"Homes for sale\": What we have on offer. Use it"));
        let description = described("Answers", None).description.unwrap();
        assert!(description.starts_with("Looks things up in \"Answers\". Use it"), "{description}");
    }

    #[test]
    fn the_longest_base_still_makes_a_tool() {
        let config = described(&"é".repeat(100), Some(&"x".repeat(1_000)));
        assert_eq!(config.label.chars().count(), LONGEST_LABEL);
        let description = config.description.unwrap();
        assert!(description.chars().count() <= LONGEST_DESCRIPTION);
        assert!(description.contains("x… (cut: the first ") && description.ends_with("say only what it finds."));
    }

    #[test]
    fn a_created_query_tool_can_be_edited() {
        let config = described(&"é".repeat(100), Some(&"x".repeat(1_000)));
        assert_eq!(ToolConfig::parse(&config.to_json()).unwrap(), config);
    }
}
