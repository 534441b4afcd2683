//! Makes `agent_tools` follow an assistant's tools at VAPI when they are listed.

use futures_util::{future::join_all, join, try_join};

use super::{Attachments, SETTLING, release};
use crate::{
    Deadline, Error, Result,
    clients::vapi::AssistantModel,
    models::{Agent, AgentId, OrganizationId, Tool, ToolAttachment, ToolId},
};

#[derive(Debug)]
pub struct Synced {
    /// Oldest first, each with its tool.
    pub attached: Vec<(ToolAttachment, Tool)>,
    /// False if VAPI could not be read: the table's content, unchanged.
    pub synced: bool,
    /// VAPI's ids of the assistant's tools that are not the organization's.
    pub unmanaged: Vec<String>,
    /// VAPI's ids of the assistant's tools that VAPI no longer has: any of these breaks the assistant's calls.
    pub dead: Vec<String>,
}

#[derive(Default)]
struct Difference {
    /// In VAPI, not in the table.
    missing: Vec<Tool>,
    /// In the table as VAPI's, but not in VAPI; or of a deleted tool.
    stale: Vec<ToolAttachment>,
    unmanaged: Vec<String>,
}

impl Attachments {
    /// Lists an agent's attachments after inserting attachments known only to VAPI and removing stale rows. If VAPI cannot be read,
    /// nothing is changed.
    pub async fn sync(&self, organization: OrganizationId, agent: AgentId, deadline: Deadline) -> Result<Synced> {
        // Rows are read first: a row written meanwhile is in VAPI already, and at worst looks missing.
        let (agent, rows) =
            try_join!(self.agents.get(organization, agent), self.agent_tools.of_agent(organization, agent))?;
        let Some(model) = self.readable_model(&agent, deadline).await else {
            return self.unsynced(organization, rows, deadline).await;
        };
        let tools = self.tools.get_many(organization, &tool_ids(&rows), deadline).await?;
        let (difference, dead) =
            join!(self.compare(organization, &rows, &tools, &model), self.dead(&agent, &model, deadline));
        let difference = difference?;
        if difference.missing.is_empty() && difference.stale.is_empty() {
            return Ok(Synced { attached: pair(rows, tools), synced: true, unmanaged: difference.unmanaged, dead });
        }
        Ok(Synced { dead, ..self.repair(&agent, deadline).await? })
    }

    /// Compares again under the agent's lease, when no change is in progress, and repairs remaining differences. If the lease
    /// stays taken, nothing is changed.
    async fn repair(&self, agent: &Agent, deadline: Deadline) -> Result<Synced> {
        let organization = agent.organization_id;
        let (agent, lease) = match self.agents.acquire(organization, agent.id, deadline.reserving(SETTLING)).await {
            Ok(locked) => locked,
            Err(Error::Conflict(why)) => {
                tracing::warn!(agent.id = %agent.id, "the agent's tools could not be compared with VAPI: {why}");
                let rows = self.agent_tools.of_agent(organization, agent.id).await?;
                return self.unsynced(organization, rows, deadline).await;
            }
            Err(error) => return Err(error),
        };
        let repaired = self.repair_locked(&agent, deadline).await;
        release(lease.release()).await;
        repaired
    }

    async fn repair_locked(&self, agent: &Agent, deadline: Deadline) -> Result<Synced> {
        let organization = agent.organization_id;
        let rows = self.agent_tools.of_agent(organization, agent.id).await?;
        let Some(model) = self.readable_model(agent, deadline).await else {
            return self.unsynced(organization, rows, deadline).await;
        };
        let tools = self.tools.get_many(organization, &tool_ids(&rows), deadline).await?;
        let difference = self.compare(organization, &rows, &tools, &model).await?;
        for tool in &difference.missing {
            self.agent_tools.insert_missing(&ToolAttachment::new(organization, agent.id, tool.id, true)).await?;
        }
        for page in difference.stale.chunks(100) {
            self.agent_tools.delete_page(page).await?;
        }
        let rows = self.agent_tools.of_agent(organization, agent.id).await?;
        let tools = self.tools.get_many(organization, &tool_ids(&rows), deadline).await?;
        let (attached, unmanaged) = (pair(rows, tools), difference.unmanaged);
        Ok(Synced { attached, synced: true, unmanaged, dead: Vec::new() })
    }

    async fn readable_model(&self, agent: &Agent, deadline: Deadline) -> Option<AssistantModel> {
        match self.assistants.model(agent, deadline).await {
            Ok(Some(model)) => Some(model),
            Ok(None) => {
                tracing::warn!(agent.id = %agent.id, "VAPI no longer has the agent's assistant");
                None
            }
            Err(error) => {
                tracing::warn!(agent.id = %agent.id, "the agent's tools could not be compared with VAPI: {}", crate::error::chain(&error));
                None
            }
        }
    }

    async fn dead(&self, agent: &Agent, model: &AssistantModel, deadline: Deadline) -> Vec<String> {
        let ids = model.tool_ids().into_iter().map(str::to_owned).collect();
        match self.assistants.dead(agent.organization_id, ids, deadline).await {
            Ok(dead) => dead,
            Err(error) => {
                tracing::warn!(agent.id = %agent.id, "the tools of an assistant could not be read from VAPI: {}", crate::error::chain(&error));
                Vec::new()
            }
        }
    }

    async fn compare(
        &self,
        organization: OrganizationId,
        rows: &[ToolAttachment],
        tools: &[Tool],
        model: &AssistantModel,
    ) -> Result<Difference> {
        let at_vapi = model.tool_ids();
        let mut difference = Difference::default();
        for row in rows {
            let stale = match tools.iter().find(|tool| tool.id == row.tool_id) {
                // An unreadable tool still exists.
                None => matches!(self.tools.get(organization, row.tool_id).await, Err(Error::NotFound(_))),
                Some(tool) => {
                    let there = tool.external_tool_id.as_deref().is_some_and(|id| at_vapi.contains(&id));
                    // A tool that is no longer attachable is not stale: its unfinished edit will detach it.
                    row.is_vapi_attached && tool.attach_to_agent && !there
                }
            };
            if stale {
                difference.stale.push(row.clone());
            }
        }
        let known = |id: &&str| tools.iter().any(|tool| tool.external_tool_id.as_deref() == Some(*id));
        let unknown = at_vapi.iter().filter(|id| !known(id));
        let found =
            join_all(unknown.map(|id| async move { (*id, self.tools.by_external_id(organization, id).await) })).await;
        for (id, tool) in found {
            match tool {
                Ok(Some(tool)) => difference.missing.push(tool),
                Ok(None) => difference.unmanaged.push(id.to_owned()),
                Err(unreadable @ Error::Unreadable { .. }) => {
                    tracing::warn!(external_tool.id = id, "a tool at VAPI is left alone: {unreadable}");
                }
                Err(error) => return Err(error),
            }
        }
        Ok(difference)
    }

    async fn unsynced(
        &self,
        organization: OrganizationId,
        rows: Vec<ToolAttachment>,
        deadline: Deadline,
    ) -> Result<Synced> {
        let tools = self.tools.get_many(organization, &tool_ids(&rows), deadline).await?;
        Ok(Synced { attached: pair(rows, tools), synced: false, unmanaged: Vec::new(), dead: Vec::new() })
    }
}

pub(super) fn tool_ids(rows: &[ToolAttachment]) -> Vec<ToolId> {
    rows.iter().map(|row| row.tool_id).collect()
}

fn pair(mut rows: Vec<ToolAttachment>, mut tools: Vec<Tool>) -> Vec<(ToolAttachment, Tool)> {
    rows.sort_by_key(|row| row.created_at);
    let with_tool = |row: ToolAttachment| {
        let at = tools.iter().position(|tool| tool.id == row.tool_id)?;
        Some((row, tools.swap_remove(at)))
    };
    rows.into_iter().filter_map(with_tool).collect()
}
