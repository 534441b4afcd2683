//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.
//!
//! Body: `{"tool_id": "…"}`. Answer: the row of `agent_tools`, 201 when it is new, 200 when it was there. A tool that agents
//! can call goes into the assistant's `toolIds` at VAPI and into the table; one that only runs on call start into the table
//! alone. If something fails on the way, VAPI is made to follow the table.

use shared::{
    Error, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Attached, Attachments},
    models::AgentId,
};

pub struct Deps {
    pub access: Access,
    pub attachments: Attachments,
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
    let tool = http::id_body(&request, "tool_id")?;
    match Box::pin(deps.attachments.attach(organization, agent, tool, deadline)).await? {
        (row, Attached::New) => Reply::created(&row),
        (row, Attached::Existing) => Reply::ok(&row),
    }
}
