//! Shows tools to members of their organization, their secrets masked for everybody.
//!
//! - GET /api/{slug}/tools?limit=&cursor=: the organization's tools, newest first, as `{items, next_cursor}`
//! - GET /api/{slug}/tools/{id}: one tool
//! - GET /api/{slug}/tools/{id}/executions?limit=&cursor=&status=: what became of its executions, newest first
//! - GET /api/{slug}/agents/{id}/tools: what is attached to an agent, each tool with `is_vapi_attached`, as
//!   `{items, next_cursor, synced, unmanaged}`, after bringing the table in line with the assistant's `toolIds` at VAPI

use futures_util::join;
use serde::Serialize;
use shared::{
    Deadline, Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Attachments, Synced, shown},
    models::{AgentId, ExecutionView, OrganizationId, Tool, ToolId},
    platform,
    store::{Executions, Tools},
};

pub struct Deps {
    pub access: Access,
    pub tools: Tools,
    pub attachments: Attachments,
    pub executions: Executions,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            tools: Tools::new(database),
            attachments: platform.attachments()?,
            executions: Executions::new(database),
        })
    }
}

/// A tool as an agent has it.
#[derive(Serialize)]
struct AttachedTool {
    #[serde(flatten)]
    tool: Tool,
    /// True: the model can call it in the conversation. False: it runs on call start only.
    is_vapi_attached: bool,
}

/// The tools of an agent.
#[derive(Serialize)]
struct AgentTools {
    items: Vec<AttachedTool>,
    next_cursor: Option<String>,
    /// False: VAPI could not be read, and this is what the table says.
    synced: bool,
    /// `toolIds` of the assistant that are no tools of the organization's.
    unmanaged: Vec<String>,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["GET", "api", _, "tools"] => {
            let (limit, cursor) = http::page(&request)?;
            Reply::ok(&deps.tools.page(organization, cursor.as_ref(), limit).await?.map(shown))
        }
        ["GET", "api", _, "tools", id] => Reply::ok(&shown(deps.tools.get(organization, http::id(id, "tool")?).await?)),
        ["GET", "api", _, "tools", id, "executions"] => {
            let id: ToolId = http::id(id, "tool")?;
            let wanted = http::history(&request)?;
            let (tool, runs) =
                join!(deps.tools.get(organization, id), deps.executions.of_tool(organization, id, &wanted));
            tool?;
            Reply::ok(&runs?.map(ExecutionView::from))
        }
        ["GET", "api", _, "agents", id, "tools"] => {
            Reply::ok(&attached(deps, organization, http::id(id, "agent")?, http::deadline(&request)).await?)
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// The tools of an agent, in the order in which they were attached, after comparing with VAPI.
async fn attached(deps: &Deps, organization: OrganizationId, agent: AgentId, deadline: Deadline) -> Result<AgentTools> {
    let Synced { attached, synced, unmanaged } = deps.attachments.sync(organization, agent, deadline).await?;
    let items = attached
        .into_iter()
        .map(|(row, tool)| AttachedTool { tool: shown(tool), is_vapi_attached: row.is_vapi_attached });
    Ok(AgentTools { items: items.collect(), next_cursor: None, synced, unmanaged })
}
