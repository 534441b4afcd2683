//! Attaches tools to agents and keeps attachments consistent with their tools.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, join, stream, try_join};

use super::{
    Assistants, SETTLING, ownership, release,
    settle::{Progress, close, nothing_changed, open, settle_now},
    sync::tool_ids,
};
use crate::{
    Deadline, Error, Result,
    error::found,
    models::{Agent, AgentId, Change, Intent, OrganizationId, Tool, ToolAttachment, ToolId},
    store::{Agents, Database, Intents, Lease, ToolAttachments, Tools},
};

/// Concurrent changes of assistants; VAPI limits the rate.
const AT_ONCE: usize = 8;

#[derive(Clone)]
pub struct Attachments {
    pub agents: Agents,
    pub agent_tools: ToolAttachments,
    pub tools: Tools,
    pub intents: Intents,
    pub assistants: Assistants,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attached {
    New,
    Existing,
}

impl Attachments {
    pub fn new(database: &Database, assistants: Assistants) -> Self {
        Self {
            agents: Agents::new(database),
            agent_tools: ToolAttachments::new(database),
            tools: Tools::new(database),
            intents: Intents::new(database),
            assistants,
        }
    }

    /// Attaches a tool to an agent: to the assistant at VAPI and in the table, or only in the table if the tool only runs at
    /// call start. Idempotent.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization lacks agent or tool, [`Error::Conflict`] for a tool that cannot be attached or is
    /// being changed.
    pub async fn attach(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        tool: ToolId,
        deadline: Deadline,
    ) -> Result<(ToolAttachment, Attached)> {
        let (acquired, tool, row) = join!(
            self.agents.acquire(organization, agent, deadline.reserving(SETTLING)),
            self.tools.get(organization, tool),
            self.agent_tools.find(organization, agent, tool),
        );
        let (agent, lease) = acquired?;
        let read = match (tool, row) {
            (Ok(tool), Ok(row)) if !lease.waited() => Ok((tool, row)),
            // The rows were read while another holder had the lease, and may have changed.
            (Ok(tool), Ok(_)) => {
                try_join!(self.tools.get(organization, tool.id), self.agent_tools.find(organization, agent.id, tool.id))
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        let attached = match read {
            Ok((tool, row)) => self.attach_leased(&agent, &lease, &tool, row, deadline).await,
            Err(error) => Err(error),
        };
        // A new row released the lease in its own transaction.
        if !matches!(attached, Ok((_, Attached::New))) {
            release(lease.release()).await;
        }
        attached
    }

    async fn attach_leased(
        &self,
        agent: &Agent,
        lease: &Lease,
        tool: &Tool,
        row: Option<ToolAttachment>,
        deadline: Deadline,
    ) -> Result<(ToolAttachment, Attached)> {
        let external = match (tool.attach_to_agent, &tool.external_tool_id) {
            (true, Some(external)) => external,
            (true, None) => {
                return Err(Error::Conflict("the tool is unknown at VAPI; save it again before attaching it".into()));
            }
            (false, _) if !tool.execute_on_call_start => {
                return Err(Error::Conflict(
                    "the tool is neither for conversations nor for call start; edit it first".into(),
                ));
            }
            (false, _) => {
                return match row {
                    Some(row) => Ok((row, Attached::Existing)),
                    None => self.write_row(agent, lease, tool, None).await,
                };
            }
        };
        let change = Change::AttachTool { agent_id: agent.id, tool_id: tool.id, external_tool_id: external.clone() };
        let intent = Intent::new(agent.organization_id, change, ownership(deadline));
        let work = deadline.reserving(SETTLING);
        let (opened, model, present) = join!(
            open(&self.intents, &intent),
            self.assistants.existing_model(agent, work),
            self.assistants.has_tool(agent.organization_id, external, work),
        );
        opened?;
        let model = match (model, present) {
            (Ok(model), Ok(true)) => model,
            // A dead id among its tools would break all of the assistant's calls.
            (Ok(_), Ok(false)) => {
                let lost =
                    "VAPI no longer has the tool; save it again (PATCH), which makes it anew there, then attach it";
                return nothing_changed(&self.intents, &intent, Error::Conflict(lost.into())).await;
            }
            (Err(error), _) | (_, Err(error)) => return nothing_changed(&self.intents, &intent, error).await,
        };
        let attached = async {
            self.assistants.correct(agent, &model, &[external], &[], work).await?;
            match row {
                Some(row) => Ok((self.agent_tools.attach_again(row, lease, intent.id).await?, Attached::Existing)),
                None => self.write_row(agent, lease, tool, Some(&intent)).await,
            }
        };
        let attached = attached.await;
        if let Err(error) = &attached {
            let settling = Box::pin(self.settle_failed(agent, lease, &intent, deadline));
            settle_now(&self.intents, &intent, error, settling).await;
        }
        attached
    }

    async fn write_row(
        &self,
        agent: &Agent,
        lease: &Lease,
        tool: &Tool,
        intent: Option<&Intent>,
    ) -> Result<(ToolAttachment, Attached)> {
        let row = ToolAttachment::new(agent.organization_id, agent.id, tool.id, tool.attach_to_agent);
        let Err(error) = self.agent_tools.attach(&row, tool, lease, intent.map(|intent| intent.id)).await else {
            return Ok((row, Attached::New));
        };
        // A concurrent request wrote the row, or the answer to our own write was lost.
        match self.agent_tools.find(agent.organization_id, agent.id, tool.id).await {
            Ok(Some(found)) if found.id == row.id => Ok((found, Attached::New)),
            Ok(Some(found)) => {
                if let Some(intent) = intent {
                    close(&self.intents, intent).await;
                }
                Ok((found, Attached::Existing))
            }
            Ok(None) | Err(_) => Err(error),
        }
    }

    /// Detaches a tool from an agent, at VAPI and in the table.
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
        let (acquired, tool) = join!(
            self.agents.acquire(organization, agent, deadline.reserving(SETTLING)),
            self.tools.get(organization, tool),
        );
        let (agent, lease) = acquired?;
        let detached = match tool {
            Ok(tool) => Box::pin(self.detach_leased(&agent, &lease, &tool, deadline)).await,
            Err(error) => Err(error),
        };
        if detached.is_err() {
            release(lease.release()).await;
        }
        detached
    }

    async fn detach_leased(&self, agent: &Agent, lease: &Lease, tool: &Tool, deadline: Deadline) -> Result<()> {
        let row = self.agent_tools.find(agent.organization_id, agent.id, tool.id).await?;
        let Some(external) = &tool.external_tool_id else {
            let row = row.ok_or(Error::NotFound("attached tool"))?;
            return self.agent_tools.detach(&row, Some(tool), lease, None).await;
        };
        let change = Change::DetachTool { agent_id: agent.id, tool_id: tool.id, external_tool_id: external.clone() };
        let intent = Intent::new(agent.organization_id, change, ownership(deadline));
        let work = deadline.reserving(SETTLING);
        let (opened, model) = join!(open(&self.intents, &intent), self.assistants.model(agent, work));
        opened?;
        let model = match model {
            Ok(model) => model.filter(|model| model.tool_ids().contains(&external.as_str())),
            Err(error) => return nothing_changed(&self.intents, &intent, error).await,
        };
        if model.is_none() && row.is_none() {
            return nothing_changed(&self.intents, &intent, Error::NotFound("attached tool")).await;
        }
        let detached = async {
            if let Some(model) = model {
                self.assistants.correct(agent, &model, &[], &[external], work).await?;
            }
            // Only VAPI may have had the tool: deleting a missing row is harmless.
            let row = row.unwrap_or_else(|| ToolAttachment::new(agent.organization_id, agent.id, tool.id, true));
            self.agent_tools.detach(&row, Some(tool), lease, Some(intent.id)).await
        };
        let detached = detached.await;
        if let Err(error) = &detached {
            let settling = Box::pin(self.settle_failed(agent, lease, &intent, deadline));
            settle_now(&self.intents, &intent, error, settling).await;
        }
        detached
    }

    pub(super) async fn settle(&self, agent: AgentId, intent: &Intent, deadline: Deadline) -> Result<Progress> {
        let acquired = self.agents.acquire(intent.organization_id, agent, deadline).await;
        let Some((agent, lease)) = found(acquired)? else {
            return Ok(Progress::Settled("the agent was removed since"));
        };
        let settled = self.settle_leased(&agent, &lease, intent, deadline).await;
        release(lease.release()).await;
        settled
    }

    /// Settles a change at once, if the lease is still held. The transaction that ends a change also releases the lease; if only
    /// its answer was lost, another change may be under way, and there is nothing to settle.
    async fn settle_failed(
        &self,
        agent: &Agent,
        lease: &Lease,
        intent: &Intent,
        deadline: Deadline,
    ) -> Result<Progress> {
        if lease.renew().await? {
            self.settle_leased(agent, lease, intent, deadline).await
        } else {
            Ok(Progress::Unfinished("the lease is lost, because the change was made or took too long"))
        }
    }

    /// Makes the assistant follow the rows after an attachment; completes a detachment, unless the tool was attached since.
    pub(super) async fn settle_leased(
        &self,
        agent: &Agent,
        lease: &Lease,
        intent: &Intent,
        deadline: Deadline,
    ) -> Result<Progress> {
        let organization = agent.organization_id;
        let outcome = match &intent.change {
            Change::AttachTool { tool_id, external_tool_id, .. } => {
                let row = self.agent_tools.find(organization, agent.id, *tool_id).await?;
                if self.follow(agent, row, external_tool_id, deadline).await? {
                    "the tool is attached"
                } else {
                    "the attachment was undone"
                }
            }
            Change::DetachTool { tool_id, external_tool_id, .. } => {
                let row = self.agent_tools.find(organization, agent.id, *tool_id).await?;
                if row.as_ref().is_some_and(|row| row.updated_at > intent.created_at) {
                    self.follow(agent, row, external_tool_id, deadline).await?;
                    return Ok(Progress::Settled("the tool was attached again since"));
                }
                self.assistants.correct_under_lease(agent, &[], &[external_tool_id], deadline).await?;
                if let Some(row) = row {
                    let tool = found(self.tools.get(organization, *tool_id).await)?;
                    self.agent_tools.detach(&row, tool.as_ref(), lease, None).await?;
                }
                "the tool was detached"
            }
            Change::DetachAllTools { .. } => {
                let mut rows = self.agent_tools.of_agent(organization, agent.id).await?;
                rows.retain(|row| row.is_vapi_attached);
                let tools = self.tools.get_all(organization, &tool_ids(&rows), deadline).await?;
                let wanted: Vec<&str> = tools.iter().filter_map(|tool| tool.external_tool_id.as_deref()).collect();
                self.assistants.correct_under_lease(agent, &wanted, &[], deadline).await?;
                "the assistant has the tools that are left"
            }
            _ => return Err(Error::internal("the intent is of no agent")),
        };
        Ok(Progress::Settled(outcome))
    }

    /// Makes the assistant have a tool exactly if the row says so. `former`: VAPI's id of it in the intent. Returns whether it has.
    async fn follow(
        &self,
        agent: &Agent,
        row: Option<ToolAttachment>,
        former: &str,
        deadline: Deadline,
    ) -> Result<bool> {
        let row = row.filter(|row| row.is_vapi_attached);
        let tool = match &row {
            Some(row) => found(self.tools.get(row.organization_id, row.tool_id).await)?,
            None => None,
        };
        // VAPI may know the tool by another id now.
        let attached = tool.and_then(|tool| tool.external_tool_id);
        let wanted: Vec<&str> = attached.as_deref().into_iter().collect();
        self.assistants.correct_under_lease(agent, &wanted, &[former], deadline).await?;
        Ok(attached.is_some())
    }

    /// Makes assistants and rows of all agents with the tool, whose lease is held, consistent with it, but for those that are
    /// `done`; `former` are its previous ids at VAPI.
    pub(super) async fn update_agents(
        &self,
        tool: &Tool,
        former: &[String],
        done: Vec<AgentId>,
        deadline: Deadline,
    ) -> Result<AgentsChanged> {
        let external: Vec<&str> = tool.external_tool_id.as_deref().into_iter().collect();
        let wanted: &[&str] = if tool.attach_to_agent { &external } else { &[] };
        let unwanted: &Vec<&str> = &former.iter().map(String::as_str).chain(external.iter().copied()).collect();
        let update = |row| async move {
            self.correct_tool_ids(&row, wanted, unwanted, deadline).await?;
            self.agent_tools.set_vapi_attached(&row, tool.attach_to_agent).await
        };
        let changed = self.for_each_agent(tool, done, deadline, update).await?;
        match changed.error {
            Some(error) => Err(error),
            None => Ok(changed),
        }
    }

    /// Removes the tool, whose lease is held, from all assistants but those of agents that are `done`; the rows stay.
    ///
    /// # Errors
    /// [`Error::Partly`]
    pub(super) async fn remove_from_assistants(
        &self,
        tool: &Tool,
        external: &str,
        done: Vec<AgentId>,
        deadline: Deadline,
    ) -> Result<AgentsChanged> {
        let remove = |row| async move { self.correct_tool_ids(&row, &[], &[external], deadline).await };
        let changed = self.for_each_agent(tool, done, deadline, remove).await?;
        let Some(error) = changed.error else { return Ok(changed) };
        let text = |agents: Vec<AgentId>| agents.iter().map(ToString::to_string).collect();
        Err(Error::Partly { error: Box::new(error), done: text(changed.done), left: text(changed.left) })
    }

    /// Applies a change to every agent with the tool, until the index has no further ones: it may lag behind an attachment just
    /// before the tool's lease, even longer: callers ask once more after their next step.
    async fn for_each_agent<F, Fut>(
        &self,
        tool: &Tool,
        done: Vec<AgentId>,
        deadline: Deadline,
        change: F,
    ) -> Result<AgentsChanged>
    where
        F: Fn(ToolAttachment) -> Fut,
        Fut: Future<Output = Result<()>>,
    {
        let mut changed = AgentsChanged { done, ..AgentsChanged::default() };
        loop {
            let mut rows = self.agent_tools.of_tool(tool.organization_id, tool.id).await?;
            rows.retain(|row| !changed.done.contains(&row.agent_id));
            if rows.is_empty() {
                return Ok(changed);
            }
            let further = change_each(rows, deadline, &change).await;
            changed.done.extend(further.done);
            if !further.left.is_empty() {
                return Ok(AgentsChanged { done: changed.done, ..further });
            }
        }
    }

    /// Corrects one assistant under its agent's lease. A missing agent or assistant is ignored.
    async fn correct_tool_ids(
        &self,
        row: &ToolAttachment,
        wanted: &[&str],
        unwanted: &[&str],
        deadline: Deadline,
    ) -> Result<()> {
        let acquired = self.agents.acquire(row.organization_id, row.agent_id, deadline).await;
        let Some((agent, lease)) = found(acquired)? else { return Ok(()) };
        let corrected = self.assistants.correct_under_lease(&agent, wanted, unwanted, deadline).await;
        release(lease.release()).await;
        corrected
    }
}

#[derive(Debug, Default)]
pub(super) struct AgentsChanged {
    pub(super) done: Vec<AgentId>,
    pub(super) left: Vec<AgentId>,
    pub(super) error: Option<Error>,
}

/// Applies a change to several attachments, a few concurrently. After a failure, and near the deadline, no further one is
/// started.
async fn change_each<F, Fut>(rows: Vec<ToolAttachment>, deadline: Deadline, change: &F) -> AgentsChanged
where
    F: Fn(ToolAttachment) -> Fut,
    Fut: Future<Output = Result<()>>,
{
    let failed = AtomicBool::new(false);
    let outcomes = stream::iter(rows).map(|row| {
        let (agent, failed) = (row.agent_id, &failed);
        async move {
            if failed.load(Ordering::Relaxed) || deadline.remaining() < SETTLING {
                return (agent, None);
            }
            let outcome = change(row).await;
            failed.fetch_or(outcome.is_err(), Ordering::Relaxed);
            (agent, Some(outcome))
        }
    });
    let outcomes: Vec<_> = outcomes.buffer_unordered(AT_ONCE).collect().await;
    let mut changed = AgentsChanged::default();
    for (agent, outcome) in outcomes {
        match outcome {
            Some(Ok(())) => changed.done.push(agent),
            Some(Err(error)) => {
                changed.left.push(agent);
                changed.error.get_or_insert(error);
            }
            None => changed.left.push(agent),
        }
    }
    changed
}
