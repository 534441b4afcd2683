//! Attaching tools to agents, and keeping the attachments of a tool in line with what the tool is.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, join, stream, try_join};

use super::{Assistants, UNDO, left_open, ownership};
use crate::{
    Deadline, Error, Result,
    models::{Agent, AgentId, AgentTool, Change, Intent, OrganizationId, Tool, ToolId},
    store::{AgentTools, Agents, Database, Intents, Lease, Tools},
};

/// Assistants that are changed at the same time; VAPI limits the rate.
const AT_ONCE: usize = 8;

#[derive(Clone)]
pub struct Attachments {
    pub agents: Agents,
    pub agent_tools: AgentTools,
    pub tools: Tools,
    pub intents: Intents,
    pub assistants: Assistants,
}

/// Whether an attachment is new.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    Now,
    Before,
}

impl Attachments {
    pub fn new(database: &Database, assistants: Assistants) -> Self {
        Self {
            agents: Agents::new(database),
            agent_tools: AgentTools::new(database),
            tools: Tools::new(database),
            intents: Intents::new(database),
            assistants,
        }
    }

    /// Gives a tool to an agent: into the assistant's `toolIds` and the table, or into the table alone if it only runs on call
    /// start. Again is fine.
    ///
    /// # Errors
    /// [`Error::NotFound`] for what the organization does not have, [`Error::Conflict`] for a tool that cannot be attached or
    /// is being changed.
    pub async fn attach(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        tool: ToolId,
        deadline: Deadline,
    ) -> Result<(AgentTool, Attached)> {
        let (locked, tool, row) = join!(
            self.agents.acquire(organization, agent, deadline.reserving(UNDO)),
            self.tools.get(organization, tool),
            self.agent_tools.find(organization, agent, tool),
        );
        let (agent, lease) = locked?;
        let read = match (tool, row) {
            (Ok(tool), Ok(row)) if !lease.waited() => Ok((tool, row)),
            // What was read beside the lease may have changed under its former holder.
            (Ok(tool), Ok(_)) => {
                try_join!(self.tools.get(organization, tool.id), self.agent_tools.find(organization, agent.id, tool.id))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let attached = match read {
            Ok((tool, row)) => self.attach_locked(&agent, &lease, &tool, row, deadline).await,
            Err(error) => Err(error),
        };
        // A new row gave the lease back in its own transaction.
        if !matches!(attached, Ok((_, Attached::Now))) {
            self.release(lease).await;
        }
        attached
    }

    async fn attach_locked(
        &self,
        agent: &Agent,
        lease: &Lease,
        tool: &Tool,
        row: Option<AgentTool>,
        deadline: Deadline,
    ) -> Result<(AgentTool, Attached)> {
        let external = match (tool.attach_to_agent, &tool.external_tool_id) {
            (true, Some(external)) => Some(external),
            (true, None) => {
                return Err(Error::Conflict("the tool is unknown at VAPI; save it again before attaching it".into()));
            }
            (false, _) if !tool.execute_on_call_start => {
                return Err(Error::Conflict(
                    "the tool is neither for conversations nor for call start; edit it first".into(),
                ));
            }
            (false, _) => None,
        };
        let Some(external) = external else {
            return match row {
                Some(row) => Ok((row, Attached::Before)),
                None => self.write_row(agent, lease, tool, None).await,
            };
        };
        let change = Change::AttachTool { agent_id: agent.id, tool_id: tool.id, external_tool_id: external.clone() };
        let intent = Intent::new(agent.organization_id, change, ownership(deadline));
        let (opened, model) =
            join!(self.intents.open(&intent), self.assistants.existing_model(agent, deadline.reserving(UNDO)));
        opened?;
        let model = match model {
            Ok(model) => model,
            Err(error) => return self.abandon(&intent, error).await,
        };
        let there = model.tool_ids().contains(&external.as_str());
        if !there
            && let Err(error) = self.assistants.write(agent, &model.with_tool(external), deadline.reserving(UNDO)).await
        {
            return self.undo(agent, external, &intent, error, deadline).await;
        }
        if let Some(row) = row {
            self.intents.close(intent.id).await?;
            return Ok((row, Attached::Before));
        }
        match self.write_row(agent, lease, tool, Some(&intent)).await {
            Ok(written) => Ok(written),
            Err(error) if there => self.abandon(&intent, error).await,
            Err(error) => self.undo(agent, external, &intent, error, deadline).await,
        }
    }

    async fn write_row(
        &self,
        agent: &Agent,
        lease: &Lease,
        tool: &Tool,
        intent: Option<&Intent>,
    ) -> Result<(AgentTool, Attached)> {
        let row = AgentTool::new(agent.organization_id, agent.id, tool.id, tool.attach_to_agent);
        let Err(error) = self.agent_tools.attach(&row, tool, lease, intent.map(|intent| intent.id)).await else {
            return Ok((row, Attached::Now));
        };
        // A twin may have written it while this one waited for the lease, or the answer to our own writing was lost.
        match self.agent_tools.find(agent.organization_id, agent.id, tool.id).await {
            Ok(Some(found)) => {
                if let Some(intent) = intent {
                    self.intents.close(intent.id).await?;
                }
                let attached = if found.id == row.id { Attached::Now } else { Attached::Before };
                Ok((found, attached))
            }
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Takes the tool out of the assistant again, and closes the intent if that worked.
    async fn undo<T>(
        &self,
        agent: &Agent,
        external: &str,
        intent: &Intent,
        error: Error,
        deadline: Deadline,
    ) -> Result<T> {
        match self.assistants.correct(agent, None, &[external], deadline).await {
            Ok(_) => self.abandon(intent, error).await,
            Err(left) => {
                left_open("an attachment", &left);
                Err(error)
            }
        }
    }

    /// Nothing is left of the change: closes its intent and passes the error on.
    async fn abandon<T>(&self, intent: &Intent, error: Error) -> Result<T> {
        if let Err(left) = self.intents.close(intent.id).await {
            left_open("an intent", &left);
        }
        Err(error)
    }

    /// Takes a tool from an agent, at VAPI and in the table.
    ///
    /// # Errors
    /// [`Error::NotFound`] if it is not attached.
    pub async fn detach(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        tool: ToolId,
        deadline: Deadline,
    ) -> Result<()> {
        let (locked, tool) = join!(
            self.agents.acquire(organization, agent, deadline.reserving(UNDO)),
            self.tools.get(organization, tool),
        );
        let (agent, lease) = locked?;
        let detached = match tool {
            Ok(tool) => Box::pin(self.detach_locked(&agent, &lease, &tool, deadline)).await,
            Err(error) => Err(error),
        };
        if detached.is_err() {
            self.release(lease).await;
        }
        detached
    }

    async fn detach_locked(&self, agent: &Agent, lease: &Lease, tool: &Tool, deadline: Deadline) -> Result<()> {
        let row = self.agent_tools.find(agent.organization_id, agent.id, tool.id).await?;
        let Some(external) = &tool.external_tool_id else {
            let row = row.ok_or(Error::NotFound("attached tool"))?;
            return self.agent_tools.detach(&row, lease, None).await;
        };
        let change = Change::DetachTool { agent_id: agent.id, tool_id: tool.id, external_tool_id: external.clone() };
        let intent = Intent::new(agent.organization_id, change, ownership(deadline));
        let (opened, model) = join!(self.intents.open(&intent), self.assistants.model(agent, deadline));
        opened?;
        let model = match model {
            Ok(model) => model,
            Err(error) => return self.abandon(&intent, error).await,
        };
        let there = model.as_ref().is_some_and(|model| model.tool_ids().contains(&external.as_str()));
        if !there && row.is_none() {
            return self.abandon(&intent, Error::NotFound("attached tool")).await;
        }
        if let Some(model) = model.filter(|_| there)
            && let Err(error) = self.assistants.write(agent, &model.without_tool(external), deadline).await
        {
            // Whatever VAPI made of it, settling takes the attachment away.
            return Err(error);
        }
        // A row that VAPI's side alone had is written off the same way: deleting what is not there is fine.
        let row = row.unwrap_or_else(|| AgentTool::new(agent.organization_id, agent.id, tool.id, true));
        self.agent_tools.detach(&row, lease, Some(intent.id)).await
    }

    /// Brings the assistants and rows of all agents that have the tool in line with what the tool is now; `former` are ids
    /// VAPI knew it by before. Gives the agents that are done, and those that are not with the first error.
    pub(super) async fn align(&self, tool: &Tool, former: &[&str], deadline: Deadline) -> Result<Aligned> {
        let rows = self.agent_tools.of_tool(tool.organization_id, tool.id).await?;
        Ok(Self::each(rows, deadline, |row| async move {
            let wanted = tool.external_tool_id.as_deref().filter(|_| tool.attach_to_agent);
            let unwanted: Vec<&str> = former.iter().copied().chain(tool.external_tool_id.as_deref()).collect();
            self.correct(&row, wanted, &unwanted, deadline).await?;
            self.agent_tools.set_vapi_attached(&row, tool.attach_to_agent).await
        })
        .await)
    }

    /// Takes the tool out of the assistants of all these agents; the rows stay.
    pub(super) async fn remove_from_assistants(
        &self,
        rows: Vec<AgentTool>,
        external: &str,
        deadline: Deadline,
    ) -> Aligned {
        Self::each(rows, deadline, |row| async move { self.correct(&row, None, &[external], deadline).await }).await
    }

    /// Corrects one assistant under its agent's lease. An agent or assistant that is gone is fine.
    async fn correct(
        &self,
        row: &AgentTool,
        wanted: Option<&str>,
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<()> {
        let (agent, lease) = match self.agents.acquire(row.organization_id, row.agent_id, deadline).await {
            Ok(locked) => locked,
            Err(Error::NotFound(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let corrected = self.assistants.correct(&agent, wanted, unwanted, deadline).await;
        self.release(lease).await;
        corrected.map(drop)
    }

    /// Does the same for several attachments, a few at a time. After a failure, and near the deadline, nothing new is begun.
    async fn each<F, Fut>(rows: Vec<AgentTool>, deadline: Deadline, work: F) -> Aligned
    where
        F: Fn(AgentTool) -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let failed = AtomicBool::new(false);
        let outcomes = stream::iter(rows).map(|row| {
            let (agent, work, failed) = (row.agent_id, &work, &failed);
            async move {
                if failed.load(Ordering::Relaxed) || deadline.remaining() < UNDO {
                    return (agent, None);
                }
                let outcome = work(row).await;
                failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
                (agent, Some(outcome))
            }
        });
        let outcomes: Vec<_> = outcomes.buffer_unordered(AT_ONCE).collect().await;
        let mut aligned = Aligned::default();
        for (agent, outcome) in outcomes {
            match outcome {
                Some(Ok(())) => aligned.done.push(agent),
                Some(Err(error)) => {
                    aligned.left.push(agent);
                    aligned.error.get_or_insert(error);
                }
                None => aligned.left.push(agent),
            }
        }
        aligned
    }

    /// A lease that cannot be released runs out by itself.
    pub(super) async fn release(&self, lease: Lease) {
        if let Err(error) = lease.release().await {
            tracing::warn!("a lease could not be released: {}", crate::error::chain(&error));
        }
    }
}

/// What became of a change of many assistants.
#[derive(Debug, Default)]
pub(super) struct Aligned {
    pub(super) done: Vec<AgentId>,
    pub(super) left: Vec<AgentId>,
    pub(super) error: Option<Error>,
}
