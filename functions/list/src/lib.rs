//! Shows tools to members of their organization, their secrets masked for everybody.
//!
//! - GET /api/{slug}/tools?limit=&cursor=&type=&attached=: the organization's tools, newest first, as `{items, next_cursor}`
//! - GET /api/{slug}/tools/{id}: one tool
//! - GET /api/{slug}/tools/{id}/agents: the agents that have it, as `{items, next_cursor}`
//! - GET /api/{slug}/tools/{id}/executions?limit=&cursor=&status=: what became of its executions, newest first
//! - GET /api/{slug}/agents/{id}/tools: what is attached to an agent, each tool with `is_vapi_attached`, as
//!   `{items, next_cursor, synced, unmanaged, dead}`, after bringing the table in line with the assistant at VAPI

use std::str::ParseBoolError;

use futures_util::{
    future::{join_all, try_join_all},
    join,
};
use serde::Serialize;
use shared::{
    Deadline, Error, Platform, Result,
    http::{self, Access, Reply, Request},
    lifecycle::{Attachments, Synced, shown},
    models::{Agent, AgentId, ExecutionView, NotAToolType, OrganizationId, Tool, ToolId, ToolType},
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
    /// Tools of the assistant, by VAPI's ids, that are none of the organization's.
    unmanaged: Vec<String>,
    /// Tools of the assistant, by VAPI's ids, that VAPI no longer has: with one of these none of its calls work.
    dead: Vec<String>,
}

/// An agent that has a tool.
#[derive(Serialize)]
struct AgentWithTool {
    #[serde(flatten)]
    agent: Agent,
    /// As in [`AttachedTool`].
    is_vapi_attached: bool,
}

/// The agents that have a tool: all of them.
#[derive(Serialize)]
struct AgentsWithTool {
    items: Vec<AgentWithTool>,
    next_cursor: Option<String>,
}

/// Rows that are read at the same time.
const AT_ONCE: usize = 16;

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["GET", "api", _, "tools"] => {
            let ((limit, cursor), wanted) = (http::page(&request)?, Wanted::read(&request)?);
            let mut page = deps.tools.page(organization, cursor.as_ref(), limit).await?;
            page.items = wanted.of(deps, organization, page.items).await?;
            Reply::ok(&page.map(shown))
        }
        ["GET", "api", _, "tools", id] => Reply::ok(&shown(deps.tools.get(organization, http::id(id, "tool")?).await?)),
        ["GET", "api", _, "tools", id, "agents"] => {
            Reply::ok(&agents(deps, organization, http::id(id, "tool")?).await?)
        }
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

/// Which tools of a page are wanted; a page may hold fewer for it.
struct Wanted {
    kind: Option<ToolType>,
    /// Whether any agent has them.
    attached: Option<bool>,
}

impl Wanted {
    fn read(request: &Request) -> Result<Self> {
        let query = http::query(request);
        let first = |name: &str| query.iter().find(|(of, text)| of == name && !text.is_empty()).map(|(_, text)| text);
        let kind = first("type").map(|text| text.parse()).transpose();
        let kind = kind.map_err(|error: NotAToolType| Error::invalid("type", error.to_string()))?;
        let attached = first("attached").map(|text| text.parse()).transpose();
        let attached = attached.map_err(|_word: ParseBoolError| Error::invalid("attached", "must be true or false"))?;
        Ok(Self { kind, attached })
    }

    async fn of(&self, deps: &Deps, organization: OrganizationId, mut tools: Vec<Tool>) -> Result<Vec<Tool>> {
        tools.retain(|tool| self.kind.is_none_or(|kind| kind == tool.kind));
        let Some(wanted) = self.attached else { return Ok(tools) };
        let mut kept = Vec::new();
        let store = &deps.attachments.agent_tools;
        let mut tools = tools.into_iter();
        loop {
            let some: Vec<Tool> = tools.by_ref().take(AT_ONCE).collect();
            if some.is_empty() {
                return Ok(kept);
            }
            let rows = try_join_all(some.iter().map(|tool| store.of_tool(organization, tool.id))).await?;
            let some = some.into_iter().zip(rows).filter(|(_, rows)| rows.is_empty() != wanted);
            kept.extend(some.map(|(tool, _)| tool));
        }
    }
}

/// The agents that have a tool, in the order in which they got it.
async fn agents(deps: &Deps, organization: OrganizationId, tool: ToolId) -> Result<AgentsWithTool> {
    let Attachments { agents, agent_tools, .. } = &deps.attachments;
    let (tool, rows) = join!(deps.tools.get(organization, tool), agent_tools.of_tool(organization, tool));
    tool?;
    let mut rows = rows?;
    rows.sort_by_key(|row| row.created_at);
    let mut items = Vec::new();
    for some in rows.chunks(AT_ONCE) {
        let found = join_all(some.iter().map(|row| agents.get(organization, row.agent_id))).await;
        for (row, agent) in some.iter().zip(found) {
            match agent {
                Ok(agent) => items.push(AgentWithTool { agent, is_vapi_attached: row.is_vapi_attached }),
                // Removed a moment ago.
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(AgentsWithTool { items, next_cursor: None })
}

/// The tools of an agent, in the order in which they were attached, after comparing with VAPI.
async fn attached(deps: &Deps, organization: OrganizationId, agent: AgentId, deadline: Deadline) -> Result<AgentTools> {
    let Synced { attached, synced, unmanaged, dead } = deps.attachments.sync(organization, agent, deadline).await?;
    let items = attached
        .into_iter()
        .map(|(row, tool)| AttachedTool { tool: shown(tool), is_vapi_attached: row.is_vapi_attached });
    Ok(AgentTools { items: items.collect(), next_cursor: None, synced, unmanaged, dead })
}
