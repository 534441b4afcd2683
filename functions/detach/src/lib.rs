//! Detaches a tool from an agent, at VAPI and in the table.

use serde::Serialize;
use shared::{
    Result,
    declared::Body,
    described::Described,
    http::{Access, Asked, Id, Sent, Shown, operation},
    lifecycle::Attachments,
    models::{AgentId, ToolId},
    platform::Parts,
};

shared::routes!(Deps, "attachments": detach_tool);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub attachments: Attachments,
}

#[derive(Body)]
struct ToolToDetach {
    tool_id: ToolId,
}

#[derive(Serialize, Described)]
struct DetachedToolView {
    agent_id: AgentId,
    tool_id: ToolId,
    #[schema(r#const = true)]
    detached: bool,
}

/// Take a tool from an agent
///
/// It leaves the `toolIds` of the agent's assistant at VAPI, if it is there, and the table. The tool itself stays. If it
/// fails on the way, the rest happens by itself.
///
/// - 200: It is no longer attached.
///
/// ```json,tool
/// {"tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f"}
/// ```
#[operation(POST "/api/{slug}/agents/{id}/tools/detach", Admin, also(409, 502, 504), resource(Detach))]
async fn detach_tool(
    deps: &Deps,
    asked: &Asked<'_>,
    agent: Id<AgentId>,
    body: Sent<ToolToDetach>,
) -> Result<Shown<DetachedToolView>> {
    let (agent_id, tool_id) = (agent.0, body.read()?.tool_id);
    deps.attachments.detach(asked.organization(), agent_id, tool_id, asked.deadline).await?;
    Ok(Shown(DetachedToolView { agent_id, tool_id, detached: true }))
}
