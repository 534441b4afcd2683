//! Shows tools to members of their organization.
//!
//! - GET /api/{slug}/tools?limit=&cursor=: the organization's tools, newest first, as `{items, next_cursor}`
//! - GET /api/{slug}/tools/{id}: one tool
//! - GET /api/{slug}/agents/{id}/tools: what is attached to an agent, each tool with `is_vapi_attached`, as
//!   `{items, next_cursor}`

use futures_util::try_join;
use serde::Serialize;
use shared::{
    Error, Result,
    http::{self, Access, Reply, Request},
    models::{AgentId, AgentTool, OrganizationId, Tool, ToolId},
    store::{AgentTools, Agents, Page, Tools},
};

pub struct Deps {
    pub access: Access,
    pub agents: Agents,
    pub agent_tools: AgentTools,
    pub tools: Tools,
}

/// A tool as an agent has it.
#[derive(Serialize)]
struct AttachedTool {
    #[serde(flatten)]
    tool: Tool,
    /// True: the model can call it in the conversation. False: it runs on call start only.
    is_vapi_attached: bool,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let path = http::path(&request);
    match path.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["api", slug, "tools"] => {
            let member = deps.access.member(&request, slug).await?;
            let (limit, cursor) = http::page(&request)?;
            Reply::ok(&deps.tools.page(member.organization_id, cursor.as_ref(), limit).await?)
        }
        ["api", slug, "tools", id] => {
            let member = deps.access.member(&request, slug).await?;
            let id: ToolId = id.parse().map_err(|_not_an_id| Error::NotFound("tool"))?;
            Reply::ok(&deps.tools.get(member.organization_id, id).await?)
        }
        ["api", slug, "agents", id, "tools"] => {
            let member = deps.access.member(&request, slug).await?;
            let id: AgentId = id.parse().map_err(|_not_an_id| Error::NotFound("agent"))?;
            Reply::ok(&attached(deps, member.organization_id, id).await?)
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// The tools of an agent, in the order in which they were attached.
async fn attached(deps: &Deps, organization: OrganizationId, agent: AgentId) -> Result<Page<AttachedTool>> {
    let (_agent, mut rows) =
        try_join!(deps.agents.get(organization, agent), deps.agent_tools.of_agent(organization, agent))?;
    rows.sort_by_key(|row| row.created_at);
    let ids: Vec<ToolId> = rows.iter().map(|row| row.tool_id).collect();
    let mut tools = deps.tools.get_many(organization, &ids).await?;
    let with_tool = |AgentTool { tool_id, is_vapi_attached, .. }: AgentTool| {
        let at = tools.iter().position(|tool| tool.id == tool_id)?;
        Some(AttachedTool { tool: tools.swap_remove(at), is_vapi_attached })
    };
    Ok(Page { items: rows.into_iter().filter_map(with_tool).collect(), next_cursor: None })
}
