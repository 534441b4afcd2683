//! POST /api/{slug}/agents/{id}/tools/attach: gives a tool to an agent.
//!
//! Body: `{"tool_id": "…"}`. Answer: the row of `agent_tools`, 201 when it is new, 200 when it was there. A tool that agents
//! can call goes into the assistant's `toolIds` at VAPI and into the table; one that only runs on call start into the table
//! alone. If something fails on the way, VAPI is made to follow the table.

use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Attached, Attachments},
    models::AgentId,
    platform,
};

pub struct Deps {
    pub access: Access,
    pub attachments: Attachments,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, attachments: platform.attachments()? })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    let ["POST", "api", _, "agents", agent, "tools", "attach"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let agent: AgentId = http::id(agent, "agent")?;
    let tool = http::id_body(&request, "tool_id")?;
    match Box::pin(deps.attachments.attach(organization, agent, tool, deadline)).await? {
        (row, Attached::New) => Reply::created(&row),
        (row, Attached::Existing) => Reply::ok(&row),
    }
}
