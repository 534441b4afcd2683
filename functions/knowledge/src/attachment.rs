//! Giving a knowledge base to an agent, and taking it away.
//!
//! - POST /api/{slug}/agents/{id}/knowledge-bases/attach `{"knowledge_base_id": "…"}`: 201 `{tool, attachment}`, the base's
//!   query tool, made if there was none, and the row of `agent_tools`; 200 with the same row if it was attached before
//! - POST /api/{slug}/agents/{id}/knowledge-bases/detach `{"knowledge_base_id": "…"}`: `{agent_id, knowledge_base_id, tool_id,
//!   detached: true, query_tool: kept | deleted | pending}`. The tool is kept while other agents have it.

use serde::Serialize;
use serde_json::json;
use shared::{
    Deadline, Result,
    http::{self, Reply, Request},
    lifecycle::{Attached, Lifecycle, shown},
    models::{AgentId, AgentTool, KnowledgeBaseId, OrganizationId, Tool},
};

#[derive(Serialize)]
struct Attachment {
    tool: Tool,
    attachment: AgentTool,
}

pub(crate) async fn attach(
    lifecycle: &Lifecycle,
    organization: OrganizationId,
    agent: AgentId,
    request: &Request,
    deadline: Deadline,
) -> Result<Reply> {
    let base = base_id(request)?;
    let attached = Box::pin(lifecycle.attach_knowledge_base(organization, agent, base, deadline)).await;
    let (tool, attachment, attached) = attached?;
    let answer = Attachment { tool: shown(tool), attachment };
    match attached {
        Attached::New => Reply::created(&answer),
        Attached::Existing => Reply::ok(&answer),
    }
}

pub(crate) async fn detach(
    lifecycle: &Lifecycle,
    organization: OrganizationId,
    agent: AgentId,
    request: &Request,
    deadline: Deadline,
) -> Result<Reply> {
    let base = base_id(request)?;
    let detached = Box::pin(lifecycle.detach_knowledge_base(organization, agent, base, deadline)).await?;
    Reply::ok(&json!({
        "agent_id": agent, "knowledge_base_id": base, "tool_id": detached.tool_id, "detached": true,
        "query_tool": detached.query_tool,
    }))
}

fn base_id(request: &Request) -> Result<KnowledgeBaseId> {
    http::id_body(request, "knowledge_base_id")
}
