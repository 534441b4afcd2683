//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.
//!
//! Body: `{"tool_id": "…"}`. Answer: the row of `agent_tools`, 201 when it is new, 200 when it was there. A tool that agents
//! can call goes into the assistant's `toolIds` at VAPI and into the table; one that only runs on call start into the table
//! alone. VAPI has no atomic change of `toolIds`, so the agent's lease is held from before they are read until the row is
//! written; if that fails, VAPI is put back.

use std::time::Duration;

use futures_util::join;
use shared::{
    Deadline, Error, Result,
    clients::{Secrets, Vapi, vapi},
    error::{self, Problems},
    fields::Fields,
    http::{self, Access, Reply, Request},
    models::{Agent, AgentId, AgentTool, OrganizationId, Tool, ToolId},
    store::{AgentTools, Agents, Lease, Tools},
};

/// Kept back for putting VAPI right when the row cannot be written.
const UNDO: Duration = Duration::from_secs(5);

pub struct Deps {
    pub access: Access,
    pub agents: Agents,
    pub agent_tools: AgentTools,
    pub tools: Tools,
    pub vapi: Vapi,
    /// Name or ARN of VAPI's secret.
    pub vapi_secret: String,
    pub secrets: Secrets,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let path = http::path(&request);
    let ["api", slug, "agents", agent, "tools", "attach"] = path.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return Err(Error::NotFound("route"));
    };
    let organization = deps.access.member(&request, slug).await?.organization_id;
    let agent: AgentId = agent.parse().map_err(|_not_an_id| Error::NotFound("agent"))?;
    let tool = tool_id(&request)?;

    let (locked, tool, row) = join!(
        deps.agents.lock(organization, agent, deadline.reserving(UNDO)),
        deps.tools.get(organization, tool),
        deps.agent_tools.find(organization, agent, tool),
    );
    let (agent, lease) = locked?;
    let attached = attach(deps, organization, &agent, &lease, tool, row, deadline).await;
    match attached {
        // The transaction gave the lease back.
        Ok((row, Attached::Now)) => Reply::created(&row),
        Ok((row, Attached::Before)) => {
            release(deps, lease).await;
            Reply::ok(&row)
        }
        Err(error) => {
            release(deps, lease).await;
            Err(error)
        }
    }
}

enum Attached {
    Now,
    Before,
}

async fn attach(
    deps: &Deps,
    organization: OrganizationId,
    agent: &Agent,
    lease: &Lease,
    tool: Result<Tool>,
    row: Result<Option<AgentTool>>,
    deadline: Deadline,
) -> Result<(AgentTool, Attached)> {
    let (tool, row) = (tool?, row?);
    let at_vapi = match (tool.attach_to_agent, &tool.external_tool_id) {
        (true, Some(external)) => Some(add_at_vapi(deps, agent, external, deadline).await?),
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
    if let Some(row) = row {
        return Ok((row, Attached::Before));
    }
    let row = AgentTool::new(organization, agent.id, tool.id, tool.attach_to_agent);
    let error = match deps.agent_tools.attach(&row, lease).await {
        Ok(()) => return Ok((row, Attached::Now)),
        Err(error) => error,
    };
    // A twin may have written it while this one waited for the lease, or the answer to our own writing was lost.
    if let Ok(Some(found)) = deps.agent_tools.find(organization, agent.id, tool.id).await {
        let attached = if found.id == row.id { Attached::Now } else { Attached::Before };
        return Ok((found, attached));
    }
    if let Some(Added { account, external }) = at_vapi.flatten()
        && let Err(left) = remove_at_vapi(deps, agent, &account, &external, deadline).await
    {
        tracing::error!(agent.id = %agent.id, tool.id = %tool.id, "VAPI keeps a tool without a row: {}", error::chain(&left));
    }
    Err(error)
}

/// A tool that was not among the assistant's `toolIds` before.
struct Added {
    account: vapi::Account,
    external: String,
}

/// Puts the tool among the assistant's `toolIds`; `None` if it was there.
async fn add_at_vapi(deps: &Deps, agent: &Agent, external: &str, deadline: Deadline) -> Result<Option<Added>> {
    let work = deadline.reserving(UNDO);
    let account: vapi::Account = deps.secrets.get(&deps.vapi_secret).await?;
    let model = assistant_model(deps, agent, &account, work).await?;
    if model.tool_ids().contains(&external) {
        return Ok(None);
    }
    let changed = model.with_tool(external);
    match deps.vapi.set_assistant_model(&account, &agent.external_assistant_id, &changed, work).await {
        Ok(()) => Ok(Some(Added { account, external: external.to_owned() })),
        Err(error) => {
            if error.effect_possible()
                && let Err(left) = remove_at_vapi(deps, agent, &account, external, deadline).await
            {
                tracing::error!(agent.id = %agent.id, "VAPI may keep a tool without a row: {}", error::chain(&left));
            }
            Err(error.into())
        }
    }
}

/// Takes the tool out of the assistant's `toolIds` again, from what they are now.
async fn remove_at_vapi(
    deps: &Deps,
    agent: &Agent,
    account: &vapi::Account,
    external: &str,
    deadline: Deadline,
) -> Result<()> {
    let model = assistant_model(deps, agent, account, deadline).await?;
    let without = model.without_tool(external);
    deps.vapi.set_assistant_model(account, &agent.external_assistant_id, &without, deadline).await?;
    Ok(())
}

async fn assistant_model(
    deps: &Deps,
    agent: &Agent,
    account: &vapi::Account,
    deadline: Deadline,
) -> Result<vapi::AssistantModel> {
    let model = deps.vapi.assistant_model(account, &agent.external_assistant_id, deadline).await?;
    model.ok_or_else(|| Error::Conflict("VAPI no longer has the agent's assistant".into()))
}

/// A lease that cannot be given back runs out by itself.
async fn release(deps: &Deps, lease: Lease) {
    if let Err(error) = deps.agents.unlock(lease).await {
        tracing::warn!("a lease could not be given back: {}", error::chain(&error));
    }
}

fn tool_id(request: &Request) -> Result<ToolId> {
    let body = http::json_body(request)?;
    let mut problems = Problems::default();
    let id = Fields::of(&body, "", &mut problems).and_then(|mut fields| {
        let id = fields.required_parse("tool_id");
        fields.finish();
        id
    });
    problems.into_result(id)
}
