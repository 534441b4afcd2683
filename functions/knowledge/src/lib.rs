//! What agents can look up: knowledge bases and their entries.
//!
//! - POST /api/{slug}/knowledge-bases `{name, description?, fields?: [{name, type, label?}]}`: 201 with the row
//! - GET /api/{slug}/knowledge-bases?limit=&cursor=
//! - GET /api/{slug}/knowledge-bases/{id}: one base, with the `agent_ids` it is attached to
//! - DELETE /api/{slug}/knowledge-bases/{id}: with all entries; 409 while it is attached or a tool searches it
//! - POST /api/{slug}/knowledge-bases/{id}/entries: `{"entries": [{"id"?, "text"?, field: value, …}]}`, or a table as
//!   `text/csv`. Good rows are loaded, the others reported: `{loaded, refused_rows, refused: [{row, field, problem}]}`. An
//!   entry whose id is there is replaced.
//! - GET /api/{slug}/knowledge-bases/{id}/entries?limit=&cursor=, DELETE /api/{slug}/knowledge-bases/{id}/entries/{entry_id}
//! - POST /api/{slug}/agents/{id}/knowledge-bases/attach, /detach: see [`attachment`]

mod attachment;
mod base;
mod rows;

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::json;
use shared::{
    Deadline, Error, Platform, Result, error,
    http::{self, Access, Reply, Request},
    lifecycle::{Lifecycle, QueryToolStatus},
    models::{AgentId, EntryId, KnowledgeBase, KnowledgeBaseId, KnowledgeEntry, OrganizationId},
    platform,
    store::{AgentTools, Agents, KnowledgeBases, KnowledgeEntries, LARGEST_LOAD, Lease, Tools},
};

use crate::rows::{Refused, Rows};

/// Problems that one report names; a table with one wrong column has as many as rows.
const MOST_REPORTED: usize = 1_000;
/// Kept back from a load's time for the report.
const REPORT: std::time::Duration = std::time::Duration::from_secs(2);

pub struct Deps {
    pub access: Access,
    pub bases: KnowledgeBases,
    pub entries: KnowledgeEntries,
    pub tools: Tools,
    pub agents: Agents,
    pub agent_tools: AgentTools,
    pub lifecycle: Lifecycle,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            bases: KnowledgeBases::new(database),
            entries: KnowledgeEntries::new(database),
            tools: Tools::new(database),
            agents: Agents::new(database),
            agent_tools: AgentTools::new(database),
            lifecycle: platform.lifecycle()?,
        })
    }
}

/// A base as it is shown alone.
#[derive(Serialize)]
struct KnowledgeBaseView {
    #[serde(flatten)]
    base: KnowledgeBase,
    /// The agents it is attached to.
    agent_ids: BTreeSet<AgentId>,
}

/// What became of a load.
#[derive(Serialize)]
struct Report {
    /// Rows that are in the knowledge base now.
    loaded: usize,
    /// Rows that are not.
    refused_rows: usize,
    /// Why not, by row; at most the first 1,000 problems.
    refused: Vec<Refused>,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request);
    let organization = deps.access.member(&request).await?.organization_id;
    match http::route(&request)[..] {
        ["POST", "api", _, "knowledge-bases"] => {
            let base = base::read(organization, &http::json_body(&request)?)?;
            deps.bases.create(&base).await?;
            Reply::created(&base)
        }
        ["GET", "api", _, "knowledge-bases"] => {
            let (limit, cursor) = http::page(&request)?;
            Reply::ok(&deps.bases.page(organization, cursor.as_ref(), limit).await?)
        }
        ["GET", "api", _, "knowledge-bases", id] => {
            let base = deps.bases.get(organization, http::id(id, "knowledge base")?).await?;
            let agent_ids = deps.lifecycle.agents_of_base(&base, deadline).await?;
            Reply::ok(&KnowledgeBaseView { base, agent_ids })
        }
        ["DELETE", "api", _, "knowledge-bases", id] => {
            delete(deps, organization, http::id(id, "knowledge base")?, deadline).await
        }
        ["POST", "api", _, "knowledge-bases", id, "entries"] => {
            load(deps, organization, http::id(id, "knowledge base")?, &request, deadline).await
        }
        ["GET", "api", _, "knowledge-bases", id, "entries"] => {
            let id = http::id(id, "knowledge base")?;
            let (limit, after) = http::page(&request)?;
            deps.bases.get(organization, id).await?;
            Reply::ok(&deps.entries.page(organization, id, after.as_ref(), limit).await?)
        }
        ["DELETE", "api", _, "knowledge-bases", id, "entries", entry] => {
            let entry: EntryId = http::id(entry, "entry")?;
            deps.entries.delete(organization, http::id(id, "knowledge base")?, &entry, deadline).await?;
            Reply::ok(&json!({"id": entry, "deleted": true}))
        }
        ["POST", "api", _, "agents", agent, "knowledge-bases", "attach"] => {
            attachment::attach(&deps.lifecycle, organization, http::id(agent, "agent")?, &request, deadline).await
        }
        ["POST", "api", _, "agents", agent, "knowledge-bases", "detach"] => {
            attachment::detach(&deps.lifecycle, organization, http::id(agent, "agent")?, &request, deadline).await
        }
        _ => Err(Error::NotFound("route")),
    }
}

/// Loads what is good of the request, and reports the rest.
async fn load(
    deps: &Deps,
    organization: OrganizationId,
    id: KnowledgeBaseId,
    request: &Request,
    deadline: Deadline,
) -> Result<Reply> {
    let base = deps.bases.get(organization, id).await?;
    let content_type = request.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Rows { entries, mut refused } = rows::read(&base, content_type, http::body(request))?;
    let mut loaded = 0;
    let mut stopped = None;
    for chunk in entries.chunks(LARGEST_LOAD) {
        let (numbers, entries): (Vec<usize>, Vec<KnowledgeEntry>) = chunk.iter().cloned().unzip();
        let time_is_up = deadline.reserving(REPORT).remaining().is_zero();
        let refusal =
            |row: &usize, problem: &str| Refused { row: *row, field: "entry".to_owned(), problem: problem.to_owned() };
        if let Some(problem) = stopped.or(time_is_up.then_some("was not loaded in time; send it again")) {
            refused.extend(numbers.iter().map(|row| refusal(row, problem)));
            continue;
        }
        match deps.entries.load(organization, id, &entries, deadline.reserving(REPORT)).await {
            Ok(no_room) => {
                loaded += entries.len() - no_room.len();
                let full = "has no room: the knowledge base holds as many entries as it can";
                let without = numbers.iter().zip(&entries).filter(|(_, entry)| no_room.contains(&entry.id));
                refused.extend(without.map(|(row, _)| refusal(row, full)));
            }
            // Nothing was loaded yet: the error says it all.
            Err(error) if loaded == 0 => return Err(error),
            Err(error) => {
                tracing::error!("a load of entries stopped half way: {}", error::chain(&error));
                let problem = "could not be stored; send it again";
                stopped = Some(problem);
                refused.extend(numbers.iter().map(|row| refusal(row, problem)));
            }
        }
    }
    refused.sort_by_key(|refused| refused.row);
    let refused_rows = refused.iter().map(|refused| refused.row).collect::<BTreeSet<_>>().len();
    tracing::info!(knowledge_base.id = %id, "{loaded} entries were loaded, {refused_rows} refused");
    refused.truncate(MOST_REPORTED);
    Reply::ok(&Report { loaded, refused_rows, refused })
}

/// Removes a base and its entries, unless something still searches it. What a fault leaves half done is gone on with by
/// deleting it again: from the beginning nothing is found in it any more.
async fn delete(deps: &Deps, organization: OrganizationId, id: KnowledgeBaseId, deadline: Deadline) -> Result<Reply> {
    let (base, lease) = deps.bases.acquire(organization, id, deadline).await?;
    let begun = Box::pin(begin_deletion(deps, &base, &lease, deadline)).await;
    // What is being deleted is attached to nobody any more.
    deps.lifecycle.release_base(lease).await;
    begun?;
    deps.entries.delete_all(organization, id, deadline).await?;
    deps.bases.delete(organization, id).await?;
    Reply::ok(&json!({"id": base.id, "deleted": true}))
}

/// Marks the base as being deleted, if nothing searches it; its own query tool goes first. The base's lease is held.
async fn begin_deletion(deps: &Deps, base: &KnowledgeBase, lease: &Lease, deadline: Deadline) -> Result<()> {
    let organization = base.organization_id;
    let mut tools = deps.tools.of_knowledge_base(organization, base.id).await?;
    tools.retain(|tool| tool.automatic_for != Some(base.id));
    if !tools.is_empty() {
        let mut agents = BTreeSet::new();
        for tool in &tools {
            agents.extend(deps.agent_tools.of_tool(organization, tool.id).await?.iter().map(|row| row.agent_id));
        }
        let labels = tools.iter().map(|tool| tool.label.as_str()).collect::<Vec<_>>().join(", ");
        let attached = match names(deps, organization, agents).await? {
            names if names.is_empty() => String::new(),
            names => format!(", attached to {names}"),
        };
        return Err(Error::Conflict(format!("tools search the knowledge base: {labels}{attached}; delete them first")));
    }
    if deps.lifecycle.delete_unused_query_tool(base, lease, deadline).await? == QueryToolStatus::Kept {
        let agents = names(deps, organization, deps.lifecycle.agents_of_base(base, deadline).await?).await?;
        return Err(Error::Conflict(format!("the knowledge base is attached to {agents}; detach it first")));
    }
    deps.bases.begin_deletion(organization, base.id).await
}

/// The agents' names, for a person to read.
async fn names(deps: &Deps, organization: OrganizationId, agents: BTreeSet<AgentId>) -> Result<String> {
    let mut names = BTreeSet::new();
    for agent in agents {
        match deps.agents.get(organization, agent).await {
            Ok(agent) => names.insert(agent.name),
            // Removed just now, or its row is about to be.
            Err(Error::NotFound(_)) => false,
            Err(error) => return Err(error),
        };
    }
    Ok(names.into_iter().collect::<Vec<_>>().join(", "))
}
