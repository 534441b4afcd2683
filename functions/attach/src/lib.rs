//! Attaches a tool to an agent.
//!
//! A tool goes into the assistant's `toolIds` at VAPI and into the table; a tool for call start only goes into the table alone.
//! After a failure VAPI is made to follow the table.

use shared::{
    Result,
    declared::Body,
    http::{Access, Asked, Id, Made, Sent, operation},
    lifecycle::{Attached, Attachments},
    models::{AgentId, ToolAttachment, ToolId},
    platform::Parts,
};

shared::routes!(Deps, "attachments": attach_tool);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub attachments: Attachments,
}

#[derive(Body)]
struct ToolToAttach {
    tool_id: ToolId,
}

/// Give a tool to an agent
///
/// A tool that agents can call is put among the `toolIds` of the agent's assistant at VAPI; a tool that only runs on
/// call start is stored in the table alone. Doing it again changes nothing.
///
/// - 200: It was attached before.
/// - 201: It is attached now.
///
/// ```json,tool
/// {"tool_id": "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f"}
/// ```
#[operation(POST "/api/{slug}/agents/{id}/tools/attach", Admin, also(409, 502, 504), resource(Attach))]
async fn attach_tool(
    deps: &Deps,
    asked: &Asked<'_>,
    agent: Id<AgentId>,
    body: Sent<ToolToAttach>,
) -> Result<Made<ToolAttachment>> {
    let tool = body.read()?.tool_id;
    let attached = deps.attachments.attach(asked.organization(), agent.0, tool, asked.deadline);
    Ok(match Box::pin(attached).await? {
        (row, Attached::New) => Made::New(row),
        (row, Attached::Existing) => Made::There(row),
    })
}
