//! POST /api/{slug}/agents/{id}/tools/detach: takes a tool from an agent.
//!
//! Body: `{"tool_id": "…"}`. Answer: 200 `{"agent_id", "tool_id", "detached": true}`. The tool leaves the assistant's `toolIds`
//! at VAPI, if it is there, and the table.

use serde_json::json;
use shared::{
    Error, Result,
    http::{self, Access, Reply, Request},
    lifecycle::Attachments,
    models::AgentId,
};

pub struct Deps {
    pub access: Access,
    pub attachments: Attachments,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let path = http::path(&request);
    let ["api", slug, "agents", agent, "tools", "detach"] = path.iter().map(String::as_str).collect::<Vec<_>>()[..]
    else {
        return Err(Error::NotFound("route"));
    };
    let organization = deps.access.member(&request, slug).await?.organization_id;
    let agent: AgentId = agent.parse().map_err(|_not_an_id| Error::NotFound("agent"))?;
    let tool = http::id_body(&request, "tool_id")?;
    deps.attachments.detach(organization, agent, tool, deadline).await?;
    Reply::ok(&json!({"agent_id": agent, "tool_id": tool, "detached": true}))
}
