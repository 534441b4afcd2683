//! The query tool of a knowledge base: attaching the base to an agent makes it, once per base, and it goes with the last agent
//! that has it (seed 003).
//!
//! The tool says `automatic_for`, and the base names it as its `query_tool_id`; only where both agree is it the base's. A query
//! tool that somebody made over the same base says nothing of the kind, so nothing here touches it. An intent goes ahead of
//! whatever may leave the tool without an agent, and settling it asks whether one has it.

use std::collections::BTreeSet;

use futures_util::join;
use serde::Serialize;

use super::{Attached, Deleted, Lifecycle, UNDO, left_open, ownership};
use crate::{
    Deadline, Error, Result,
    cut::cut,
    error,
    models::{
        AgentId, AgentTool, Change, Intent, KnowledgeBase, KnowledgeBaseId, Limits, OrganizationId, Tool, ToolId,
        ToolName,
    },
    redaction::Marks,
    store::Lease,
    tools::{
        Action, ToolConfig,
        query::{Query, folded},
    },
};

/// Of the description that a model reads, in characters; what a `ToolConfig` takes at most.
const LONGEST_DESCRIPTION: usize = 1_000;
const LONGEST_LABEL: usize = 100;

/// A base that was taken from an agent.
#[derive(Debug)]
pub struct DetachedBase {
    pub tool_id: ToolId,
    pub query_tool: QueryTool,
}

/// What became of a base's query tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum QueryTool {
    /// Other agents have it.
    Kept,
    Deleted,
    /// No other agent has it, or that could not be found out; what is to be done about it happens by itself.
    Pending,
}

impl Lifecycle {
    /// Gives a knowledge base to an agent: its query tool, which is made if there is none. Again is fine.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what the organization does not have, [`Error::Conflict`] for a base that is being deleted.
    pub async fn attach_knowledge_base(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(Tool, AgentTool, Attached)> {
        let (agent, locked) = join!(
            self.attachments.agents.get(organization, agent),
            self.knowledge_bases.lock(organization, base, deadline.reserving(UNDO)),
        );
        let (base, lease) = locked?;
        let attached = match agent {
            Ok(agent) => Box::pin(self.attach_base_locked(&base, &lease, agent.id, deadline)).await,
            Err(error) => Err(error),
        };
        self.release_base(lease).await;
        attached
    }

    async fn attach_base_locked(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        agent: AgentId,
        deadline: Deadline,
    ) -> Result<(Tool, AgentTool, Attached)> {
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
        self.intents.open(&intent).await?;
        let name = ToolName::of_words(&folded(&config.label));
        let made = self.create_for(organization, &config, name, Some((base.id, lease)), deadline).await;
        let attached = match made {
            Ok(tool) => {
                let attached = Box::pin(self.attachments.attach(organization, agent, tool.id, deadline)).await;
                attached.map(|(row, attached)| (tool, row, attached))
            }
            Err(error) => Err(error),
        };
        let settled = match &attached {
            Ok(_) => Ok(()),
            Err(_) => self.drop_unused(base, lease, deadline).await.map(drop),
        };
        self.close_or_leave(&intent, settled).await;
        attached
    }

    /// Takes a knowledge base from an agent: its query tool is detached, and deleted if no other agent has it.
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
        let (base, lease) = self.knowledge_bases.lock(organization, base, deadline.reserving(UNDO)).await?;
        let detached = Box::pin(self.detach_base_locked(&base, &lease, agent, deadline)).await;
        self.release_base(lease).await;
        detached
    }

    async fn detach_base_locked(
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
        self.intents.open(&intent).await?;
        match self.attachments.detach(organization, agent, tool.id, deadline).await {
            Ok(()) => {}
            Err(Error::NotFound(what)) => {
                self.close_or_leave(&intent, Ok(())).await;
                let what = if what == "agent" { what } else { "attached knowledge base" };
                return Err(Error::NotFound(what));
            }
            // Settling may yet detach it; the intent then sees to the tool.
            Err(error) => return Err(error),
        }
        let dropped = self.drop_unused(base, lease, deadline).await;
        let query_tool = *dropped.as_ref().unwrap_or(&QueryTool::Pending);
        self.close_or_leave(&intent, dropped.map(drop)).await;
        Ok(DetachedBase { tool_id: tool.id, query_tool })
    }

    /// The agents that a base is attached to: those that have its query tool.
    pub async fn agents_of_base(&self, base: &KnowledgeBase) -> Result<BTreeSet<AgentId>> {
        match base.query_tool_id {
            Some(tool) => self.agents_having(base, tool).await,
            None => Ok(BTreeSet::new()),
        }
    }

    /// Of the agents that the base notes, those that have the tool as of now; and, as the index has them, those whose
    /// assistant was given it at VAPI.
    async fn agents_having(&self, base: &KnowledgeBase, tool: ToolId) -> Result<BTreeSet<AgentId>> {
        let agent_tools = &self.attachments.agent_tools;
        let indexed = agent_tools.of_tool(base.organization_id, tool).await?;
        let asked = base.agent_ids.iter().copied().chain(indexed.iter().map(|row| row.agent_id)).collect();
        agent_tools.among(base.organization_id, tool, &asked).await
    }

    /// Deletes the base's query tool unless an agent has it. The base's lease is held.
    pub async fn drop_unused(&self, base: &KnowledgeBase, lease: &Lease, deadline: Deadline) -> Result<QueryTool> {
        // Not the base as it was read first: it may not have had a tool then.
        let base = self.knowledge_bases.get(base.organization_id, base.id).await?;
        let Some(tool) = base.query_tool_id else { return Ok(QueryTool::Deleted) };
        let (tool, tool_lease) = match self.tools.lock(base.organization_id, tool, deadline.at_most(UNDO)).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(QueryTool::Deleted),
            Err(error) => return Err(error),
        };
        if tool.automatic_for != Some(base.id) {
            self.release(tool_lease).await;
            return Ok(QueryTool::Deleted);
        }
        let dropped = Box::pin(self.drop_locked(&base, lease, &tool, &tool_lease, deadline)).await;
        if !matches!(dropped, Ok(QueryTool::Deleted)) {
            self.release(tool_lease).await;
        }
        dropped
    }

    /// Under the tool's lease nothing is attached any more, so the base's `agent_ids` name every agent that may have it.
    async fn drop_locked(
        &self,
        base: &KnowledgeBase,
        lease: &Lease,
        tool: &Tool,
        tool_lease: &Lease,
        deadline: Deadline,
    ) -> Result<QueryTool> {
        let base = self.knowledge_bases.get(base.organization_id, base.id).await?;
        let having = self.agents_having(&base, tool.id).await?;
        if !having.is_empty() {
            let stale: BTreeSet<AgentId> = base.agent_ids.difference(&having).copied().collect();
            if !stale.is_empty() {
                self.knowledge_bases.forget_agents(&stale, lease, tool_lease).await?;
            }
            return Ok(QueryTool::Kept);
        }
        // Once this is written the deletion is certain, and whoever attaches the base gets another tool.
        let deletion = Intent::new(base.organization_id, Change::DeleteTool { tool_id: tool.id }, ownership(deadline));
        self.knowledge_bases.give_up_tool(lease, tool_lease, &deletion).await?;
        match self.delete_locked(tool, tool_lease, &deletion, deadline).await {
            Ok(Deleted::Deleted) => Ok(QueryTool::Deleted),
            Ok(Deleted::Deleting { .. }) => Ok(QueryTool::Pending),
            Err(left) => {
                left_open("an unused query tool", &left);
                Ok(QueryTool::Pending)
            }
        }
    }

    pub(super) async fn settle_query_tool(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<&'static str> {
        let (base, lease) = match self.knowledge_bases.lock(organization, base, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok("the knowledge base was deleted since"),
            Err(error) => return Err(error),
        };
        let dropped = self.drop_unused(&base, &lease, deadline).await;
        self.release_base(lease).await;
        dropped.map(|query_tool| match query_tool {
            QueryTool::Kept => "agents have the query tool",
            QueryTool::Deleted => "no query tool is left without an agent",
            QueryTool::Pending => "the query tool is being deleted",
        })
    }

    /// The base's query tool, if there is one.
    async fn query_tool(&self, base: &KnowledgeBase) -> Result<Option<Tool>> {
        let Some(id) = base.query_tool_id else { return Ok(None) };
        match self.tools.get(base.organization_id, id).await {
            Ok(tool) => Ok(Some(tool).filter(|tool| tool.automatic_for == Some(base.id))),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn close_or_leave(&self, intent: &Intent, settled: Result<()>) {
        let closed = match settled {
            Ok(()) => self.intents.close(intent.id).await,
            Err(error) => Err(error),
        };
        if let Err(left) = closed {
            left_open("a query tool", &left);
        }
    }

    /// A lease that cannot be given back runs out by itself.
    pub async fn release_base(&self, lease: Lease) {
        if let Err(error) = self.knowledge_bases.unlock(lease).await {
            tracing::warn!("a lease could not be given back: {}", error::chain(&error));
        }
    }
}

/// What a model is to know of the base, and filters by all of its fields.
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
        action: Action::Query(Query::over(base)?),
        is_async: false,
        execute_on_call_start: false,
        attach_to_agent: true,
        limits: Limits::default(),
        redact: Marks::default(),
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
    fn a_model_reads_what_the_base_is_about() {
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
    fn what_is_made_can_be_edited() {
        let config = described(&"é".repeat(100), Some(&"x".repeat(1_000)));
        assert_eq!(ToolConfig::parse(&config.to_json()).unwrap(), config);
    }
}
