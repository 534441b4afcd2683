//! Removing an agent: its tools at VAPI, then its attachments, then itself.
//!
//! The agent's lease is held from before anything is read until the row is gone, so no tool is attached meanwhile. Whatever
//! stops it, asking again goes on from there; until the last step the agent is still listed.
//!
//! The query tool of a knowledge base that was attached may now have no agent. Whether it has, and then its deletion, is left
//! to settling: intents are recorded before anything is taken away.

use std::time::Duration;

use shared::{
    Deadline, Error, Result, error,
    models::{Agent, AgentId, AgentTool, Change, Intent, OrganizationId, Tool, ToolId},
    store::{Lease, REMOVED_AT_ONCE},
};

use crate::Deps;

/// Kept back for putting VAPI right when the attachments cannot be removed.
const UNDO: Duration = Duration::from_secs(5);

/// Numbers that a refusal names; there may be more.
const NAMED: usize = 10;

pub(crate) async fn remove(deps: &Deps, organization: OrganizationId, id: AgentId, deadline: Deadline) -> Result<()> {
    let (agent, lease) = deps.agents.lock(organization, id, deadline.reserving(UNDO)).await?;
    let removed = remove_locked(deps, organization, &agent, &lease, deadline).await;
    if removed.is_err()
        && let Err(error) = deps.agents.unlock(lease).await
    {
        // It runs out by itself.
        tracing::warn!(agent.id = %id, "a lease could not be given back: {}", error::chain(&error));
    }
    removed
}

async fn remove_locked(
    deps: &Deps,
    organization: OrganizationId,
    agent: &Agent,
    lease: &Lease,
    deadline: Deadline,
) -> Result<()> {
    let (numbers, rows) = futures_util::try_join!(
        deps.phone_numbers.of_agent(organization, agent.id),
        deps.agent_tools.of_agent(organization, agent.id),
    )?;
    if !numbers.is_empty() {
        let named: Vec<&str> = numbers.iter().take(NAMED).map(|row| row.number.as_str()).collect();
        let more = if numbers.len() > NAMED { " and others" } else { "" };
        return Err(Error::Conflict(format!(
            "phone numbers ring this agent: {}{more}; give them another agent or remove them first",
            named.join(", ")
        )));
    }
    let ids: Vec<ToolId> = rows.iter().map(|row| row.tool_id).collect();
    let tools = deps.tools.get_all(organization, &ids).await?;
    for base in tools.iter().filter_map(|tool| tool.automatic_for) {
        let change = Change::QueryTool { knowledge_base_id: base };
        deps.intents.open(&Intent::new(organization, change, deadline.remaining())).await?;
    }
    let detached = detach_at_vapi(deps, organization, agent, tools, deadline).await?;
    for page in ids.chunks(REMOVED_AT_ONCE) {
        if let Err(error) = deps.agent_tools.remove(organization, agent.id, page, lease).await {
            if detached {
                attach_what_is_left(deps, organization, agent, deadline).await;
            }
            return Err(error);
        }
    }
    deps.agents.delete(organization, agent, lease).await
}

/// Takes the tools out of the assistant's `toolIds`. False: none was among them, or there is no assistant any more.
async fn detach_at_vapi(
    deps: &Deps,
    organization: OrganizationId,
    agent: &Agent,
    tools: Vec<Tool>,
    deadline: Deadline,
) -> Result<bool> {
    let ours = external_ids(tools);
    if ours.is_empty() {
        return Ok(false);
    }
    let work = deadline.reserving(UNDO);
    let account = deps.accounts.vapi(organization).await?;
    let assistant = &agent.external_assistant_id;
    let Some(model) = deps.vapi.assistant_model(&account, assistant, work).await? else { return Ok(false) };
    let changed = ours.iter().fold(model.clone(), |model, id| model.without_tool(id));
    if changed.tool_ids() == model.tool_ids() {
        return Ok(false);
    }
    match deps.vapi.set_assistant_model(&account, assistant, &changed, work).await {
        Ok(()) => Ok(true),
        Err(error) if error.status() == Some(404) => Ok(false),
        Err(error) => {
            if error.effect_possible() {
                attach_what_is_left(deps, organization, agent, deadline.at_most(UNDO)).await;
            }
            Err(error.into())
        }
    }
}

/// Puts the tools whose rows are still there among the assistant's `toolIds` again.
async fn attach_what_is_left(deps: &Deps, organization: OrganizationId, agent: &Agent, deadline: Deadline) {
    let attach = async {
        let rows = deps.agent_tools.of_agent(organization, agent.id).await?;
        let rows = rows.into_iter().filter(|row: &AgentTool| row.is_vapi_attached);
        let tools = deps.tools.get_all(organization, &rows.map(|row| row.tool_id).collect::<Vec<_>>()).await?;
        let ours = external_ids(tools);
        let account = deps.accounts.vapi(organization).await?;
        let assistant = &agent.external_assistant_id;
        let Some(model) = deps.vapi.assistant_model(&account, assistant, deadline).await? else { return Ok(()) };
        let changed = ours.iter().fold(model.clone(), |model, id| model.with_tool(id));
        if changed.tool_ids() != model.tool_ids() {
            deps.vapi.set_assistant_model(&account, assistant, &changed, deadline).await?;
        }
        Ok::<(), Error>(())
    };
    if let Err(left) = attach.await {
        tracing::error!(agent.id = %agent.id, "VAPI may lack tools whose rows are there: {}", error::chain(&left));
    }
}

/// VAPI's ids of those tools that it knows.
fn external_ids(tools: Vec<Tool>) -> Vec<String> {
    tools.into_iter().filter_map(|tool| tool.external_tool_id).collect()
}
