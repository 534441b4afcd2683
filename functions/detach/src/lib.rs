//! POST /api/{slug}/agents/{id}/tools/detach: takes a tool from an agent.
//!
//! Body: `{"tool_id": "…"}`. Answer: 200 `{"agent_id", "tool_id", "detached": true}`. The tool leaves the assistant's `toolIds`
//! at VAPI, if it is there, and the table.

use serde_json::json;
use shared::{
    Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::Attachments,
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
    let ["POST", "api", _, "agents", agent, "tools", "detach"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let agent: AgentId = http::id(agent, "agent")?;
    let tool = http::id_body(&request, "tool_id")?;
    deps.attachments.detach(organization, agent, tool, deadline).await?;
    Reply::ok(&json!({"agent_id": agent, "tool_id": tool, "detached": true}))
}
