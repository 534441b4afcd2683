//! Shows tools to members of their organization, with secrets masked for everybody.

use futures_util::{
    future::{join_all, try_join_all},
    join,
};
use serde::Serialize;
use shared::{
    Result,
    described::Described,
    error::found,
    http::{Access, Asked, History, Id, OfAllTools, Paged, Shown, Wanted, operation},
    lifecycle::{Attachments, Synced, shown},
    models::{Agent, AgentId, ExecutionView, OrganizationId, Tool, ToolId, ToolType},
    platform::Parts,
    store::{Executions, Page, Tools},
};

shared::routes!(
    Deps,
    "tools": list_tools,
    get_tool,
    list_agents_of_tool,
    list_tool_executions,
    list_executions,
    list_agent_tools,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub tools: Tools,
    pub attachments: Attachments,
    pub executions: Executions,
}

/// A tool as an agent has it.
#[derive(Serialize)]
struct AttachedTool {
    #[serde(flatten)]
    tool: Tool,
    /// True: the model can call it in the conversation. False: it runs on call start only.
    is_vapi_attached: bool,
}

/// All of them; there is no further page.
#[derive(Serialize, Described)]
struct AgentTools {
    items: Vec<AttachedTool>,
    next_cursor: (),
    /// False when VAPI could not be read, or the agent kept changing: the list is then from the table alone.
    synced: bool,
    /// VAPI's ids of the assistant's other tools, which do not belong to the organization.
    unmanaged: Vec<String>,
    /// VAPI's ids of tools that the assistant has and VAPI no longer has. With one of these none of the assistant's calls work: save
    /// the tool again (PATCH), or detach it.
    dead: Vec<String>,
}

shared::described! {
    AttachedTool => {"$ref": "#/components/schemas/AttachedTool"},
    AgentWithTool => {"$ref": "#/components/schemas/AgentWithTool"},
}

#[derive(Serialize)]
struct AgentWithTool {
    #[serde(flatten)]
    agent: Agent,
    /// As in [`AttachedTool`].
    is_vapi_attached: bool,
}

/// All of them; there is no further page.
#[derive(Serialize, Described)]
struct AgentsWithTool {
    items: Vec<AgentWithTool>,
    next_cursor: (),
}

/// Rows read in parallel.
const AT_ONCE: usize = 16;

shared::bool_filters! {
    Attached: "attached", "Only tools that an agent has, or only those that none has.";
}

/// List the organization's tools
///
/// Newest first. A page that is filtered by `type` or `attached` may be shorter than asked for, or empty, and go on all the
/// same: `next_cursor` tells.
///
/// - 200: A page of tools.
#[operation(GET "/api/{slug}/tools", Viewer)]
async fn list_tools(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged,
    kind: Wanted<ToolType>,
    attached: Wanted<Attached>,
) -> Result<Page<Tool>> {
    let organization = asked.organization();
    let mut page = deps.tools.page(organization, page.cursor.as_ref(), page.limit).await?;
    page.items.retain(|tool| kind.0.is_none_or(|kind| kind == tool.kind));
    if let Some(Attached(wanted)) = attached.0 {
        page.items = with_attachments(deps, organization, page.items, wanted).await?;
    }
    Ok(page.map(shown))
}

/// Show a tool
///
/// - 200: The tool's row.
#[operation(GET "/api/{slug}/tools/{id}", Viewer, resource(ListTool))]
async fn get_tool(deps: &Deps, asked: &Asked<'_>, id: Id<ToolId>) -> Result<Shown<Tool>> {
    Ok(Shown(shown(deps.tools.get(asked.organization(), id.0).await?)))
}

/// List a tool's executions
///
/// Newest first. Rows are kept for 30 days, or as the stack is configured. A page that is filtered by `status` may be
/// shorter than asked for, or empty, and go on all the same: `next_cursor` tells.
#[operation(GET "/api/{slug}/tools/{id}/executions", Viewer, tag("history"))]
async fn list_tool_executions(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ToolId>,
    wanted: History,
) -> Result<Page<ExecutionView>> {
    let organization = asked.organization();
    let (tool, runs) =
        join!(deps.tools.get(organization, id.0), deps.executions.of_tool(organization, id.0, &wanted.0));
    tool?;
    Ok(runs?.map(ExecutionView::from))
}

/// List executions
///
/// Of all tools, newest first. A filtered page may be shorter than asked for, or empty, and go on all the same: `next_cursor`
/// tells. Executions of an older version of this service stand only in the lists of their tools and calls.
#[operation(GET "/api/{slug}/executions", Viewer, tag("history"))]
async fn list_executions(
    deps: &Deps,
    asked: &Asked<'_>,
    wanted: History,
    more: OfAllTools,
) -> Result<Page<ExecutionView>> {
    let page = deps.executions.of_organization(asked.organization(), &wanted.0, &more.0, asked.deadline).await?;
    Ok(page.map(ExecutionView::from))
}

/// The tools with an agent, or those without.
async fn with_attachments(deps: &Deps, of: OrganizationId, tools: Vec<Tool>, wanted: bool) -> Result<Vec<Tool>> {
    let mut kept = Vec::new();
    let store = &deps.attachments.agent_tools;
    let mut tools = tools.into_iter();
    loop {
        let some: Vec<Tool> = tools.by_ref().take(AT_ONCE).collect();
        if some.is_empty() {
            return Ok(kept);
        }
        let rows = try_join_all(some.iter().map(|tool| store.of_tool(of, tool.id))).await?;
        let some = some.into_iter().zip(rows).filter(|(_, rows)| rows.is_empty() != wanted);
        kept.extend(some.map(|(tool, _)| tool));
    }
}

/// Which agents have a tool
///
/// In the order in which they got it.
///
/// - 200: All of them; there is no further page.
#[operation(GET "/api/{slug}/tools/{id}/agents", Viewer, tag("attachments"))]
async fn list_agents_of_tool(deps: &Deps, asked: &Asked<'_>, id: Id<ToolId>) -> Result<Shown<AgentsWithTool>> {
    let (organization, tool) = (asked.organization(), id.0);
    let Attachments { agents, agent_tools, .. } = &deps.attachments;
    let (tool, rows) = join!(deps.tools.get(organization, tool), agent_tools.of_tool(organization, tool));
    tool?;
    let mut rows = rows?;
    rows.sort_by_key(|row| row.created_at);
    let mut items = Vec::new();
    for some in rows.chunks(AT_ONCE) {
        let read = join_all(some.iter().map(|row| agents.get(organization, row.agent_id))).await;
        for (row, agent) in some.iter().zip(read) {
            // Unless it was removed a moment ago.
            if let Some(agent) = found(agent)? {
                items.push(AgentWithTool { agent, is_vapi_attached: row.is_vapi_attached });
            }
        }
    }
    Ok(Shown(AgentsWithTool { items, next_cursor: () }))
}

/// List an agent's tools
///
/// In the order in which they were attached. Before, the table is brought in line with the `toolIds` of the agent's
/// assistant: tools at VAPI are added, missing ones are removed. Where VAPI cannot be read, nothing is changed.
///
/// - 200: All of them; there is no further page.
#[operation(GET "/api/{slug}/agents/{id}/tools", Viewer, tag("attachments"))]
async fn list_agent_tools(deps: &Deps, asked: &Asked<'_>, agent: Id<AgentId>) -> Result<Shown<AgentTools>> {
    let synced = deps.attachments.sync(asked.organization(), agent.0, asked.deadline).await?;
    let Synced { attached, synced, unmanaged, dead } = synced;
    let items = attached
        .into_iter()
        .map(|(row, tool)| AttachedTool { tool: shown(tool), is_vapi_attached: row.is_vapi_attached });
    Ok(Shown(AgentTools { items: items.collect(), next_cursor: (), synced, unmanaged, dead }))
}
