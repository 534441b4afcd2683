//! Knowledge bases and their entries.

mod attachment;
mod base;
#[doc(hidden)]
pub mod fuzzing;
mod rows;

use std::collections::BTreeSet;

use serde::Serialize;
use shared::{
    Deadline, Error, Result,
    described::{Described, Schemas, json},
    error::{self, found},
    http::{self, Access, Asked, Created, Found, Id, Ids, Operation, Paged, Part, Sent, Shown, operation},
    lifecycle::{Lifecycle, QueryToolStatus},
    models::{AgentId, EntryId, KnowledgeBase, KnowledgeBaseId, KnowledgeEntry, OrganizationId},
    platform::Parts,
    store::{Agents, KnowledgeBases, KnowledgeEntries, LARGEST_LOAD, Lease, Page, ToolAttachments, Tools},
};

use crate::{
    base::NewKnowledgeBase,
    rows::{Refused, Rows},
};

shared::routes!(
    Deps,
    "knowledge": create_knowledge_base,
    list_knowledge_bases,
    get_knowledge_base,
    delete_knowledge_base,
    load_knowledge_entries,
    list_knowledge_entries,
    delete_knowledge_entry,
    attachment::attach_knowledge_base,
    attachment::detach_knowledge_base,
);

/// Problems in one report; a table with one wrong column has as many as rows.
const MOST_REPORTED: usize = 1_000;
/// Kept back from a load's time for the report.
const REPORT: std::time::Duration = std::time::Duration::from_secs(2);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub bases: KnowledgeBases,
    pub entries: KnowledgeEntries,
    pub tools: Tools,
    pub agents: Agents,
    pub agent_tools: ToolAttachments,
    pub lifecycle: Lifecycle,
}

/// A base as it is shown alone.
#[derive(Serialize, Described)]
#[schema(name = "ShownKnowledgeBase")]
struct KnowledgeBaseView {
    #[serde(flatten)]
    base: KnowledgeBase,
    /// The agents it is attached to.
    #[schema(of = "Vec<AgentId>")]
    agent_ids: BTreeSet<AgentId>,
}

/// The outcome of a load.
#[derive(Serialize, Described)]
struct LoadReportView {
    /// Rows that are in the knowledge base now.
    loaded: usize,
    /// Rows that were not loaded.
    refused_rows: usize,
    /// Why not, by row; at most the first 1,000 problems.
    #[schema(maxItems = 1000)]
    refused: Vec<Refused>,
}

#[derive(Serialize, Described)]
#[schema(name = "DeletedKnowledge")]
struct Gone<T> {
    #[schema(of = "String")]
    id: T,
    #[schema(r#const = true)]
    deleted: bool,
}

/// Rows as JSON or as a table, read once the base's fields are known.
struct SentRows;

impl Part for SentRows {
    fn of(_: &Found<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let entries = json!({"type": "array", "maxItems": rows::MOST_ROWS,
            "description": "Each an object of `id`, `text` and the declared fields, all optional, not all absent."});
        let rows = json!({"type": "object", "additionalProperties": false, "required": ["entries"],
            "properties": {"entries": entries}});
        operation.sends(schemas.named("KnowledgeRows", |_| rows), true);
        let table = json!({"type": "string", "description":
            "UTF-8; commas, semicolons or tabs. The first row names the columns: `id`, `text`, and fields by name or\n\
             label. A column that is no field is refused; an empty cell is no value."});
        let table = schemas.named("KnowledgeTable", |_| table);
        let example = "id,City,price,garden,text\nH-101,Porto,450000,yes,\"House, by the river\"\n";
        operation.also_sends("text/csv", json!({"schema": table, "example": example}));
    }
}

/// Make a knowledge base
///
/// Entries can be filtered by its fields, which cannot be changed later. Every entry has an `id` and may have a free
/// `text` besides.
///
/// - 201: The knowledge base's row.
///
/// ```json,homes: The homes of an estate agent
/// {"name": "Homes for sale", "description": "What we have on offer.", "fields": [{"name": "city", "type": "text",
///  "label": "City"}, {"name": "price", "type": "number", "label": "Price in euros"}, {"name": "garden",
///  "type": "boolean"}]}
/// ```
/// ```json,answers: Text alone
/// {"name": "Questions and answers"}
/// ```
#[operation(POST "/api/{slug}/knowledge-bases", Admin, resource(KnowledgeCreate))]
async fn create_knowledge_base(
    deps: &Deps,
    asked: &Asked<'_>,
    body: Sent<NewKnowledgeBase>,
) -> Result<Created<KnowledgeBase>> {
    let base = body.read()?.of(asked.organization());
    deps.bases.create(&base).await?;
    Ok(Created(base))
}

/// List the organization's knowledge bases
///
/// Newest first.
///
/// - 200: A page of knowledge bases.
#[operation(GET "/api/{slug}/knowledge-bases", Viewer, resource(KnowledgeList))]
async fn list_knowledge_bases(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<Page<KnowledgeBase>> {
    deps.bases.page(asked.organization(), page.cursor.as_ref(), page.limit).await
}

/// Show a knowledge base
///
/// - 200: The knowledge base's row, and the agents it is attached to.
#[operation(GET "/api/{slug}/knowledge-bases/{id}", Viewer, resource(KnowledgeGet))]
async fn get_knowledge_base(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<KnowledgeBaseId>,
) -> Result<Shown<KnowledgeBaseView>> {
    let base = deps.bases.get(asked.organization(), id.0).await?;
    let agent_ids = deps.lifecycle.agents_of_base(&base, asked.deadline).await?;
    Ok(Shown(KnowledgeBaseView { base, agent_ids }))
}

/// List the entries of a knowledge base
///
/// By id.
///
/// - 200: A page of entries.
#[operation(GET "/api/{slug}/knowledge-bases/{id}/entries", Viewer, resource(KnowledgeEntries))]
async fn list_knowledge_entries(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<KnowledgeBaseId>,
    page: Paged<EntryId>,
) -> Result<Page<KnowledgeEntry>> {
    let organization = asked.organization();
    deps.bases.get(organization, id.0).await?;
    deps.entries.page(organization, id.0, page.cursor.as_ref(), page.limit).await
}

/// Remove an entry
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/knowledge-bases/{id}/entries/{entry_id}", Admin, resource(KnowledgeDeleteEntry))]
async fn delete_knowledge_entry(
    deps: &Deps,
    asked: &Asked<'_>,
    ids: Ids<KnowledgeBaseId, EntryId>,
) -> Result<Shown<Gone<EntryId>>> {
    let Ids(base, entry) = ids;
    deps.entries.delete(asked.organization(), base, &entry, asked.deadline).await?;
    Ok(Shown(Gone { id: entry, deleted: true }))
}

/// Load entries
///
/// Valid rows are loaded; the others are reported with all their problems. An entry whose `id` is there already is
/// replaced; one without an `id` gets one made of its content, so that the same rows sent again add nothing.
///
/// At most 5,000 rows and 4 MB in one request, 4,096 bytes an entry, 10,000 entries in a knowledge base.
///
/// - 200: The result for the rows.
///
/// ```json,homes
/// {"entries": [{"id": "H-101", "city": "Porto", "price": 450000, "garden": true, "text": "House by the river"},
///  {"id": "H-102", "city": "Faro", "price": 310000, "text": "Flat near the beach"}]}
/// ```
#[operation(POST "/api/{slug}/knowledge-bases/{id}/entries", Admin, also(409), resource(KnowledgeLoad))]
async fn load_knowledge_entries(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<KnowledgeBaseId>,
    _rows: SentRows,
) -> Result<Shown<LoadReportView>> {
    let (organization, id, request, deadline) = (asked.organization(), id.0, asked.request, asked.deadline);
    let base = deps.bases.get(organization, id).await?;
    let content_type = request.headers().get("content-type").and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Rows { entries, mut refused } = rows::read(&base, content_type, http::body(request))?;
    let (mut loaded, rows) = (0, entries.len());
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
        let announced = (loaded == 0).then_some(rows);
        match deps.entries.load(organization, id, &entries, announced, deadline.reserving(REPORT)).await {
            Ok(no_room) => {
                loaded += entries.len() - no_room.len();
                let full = "has no room: the knowledge base holds as many entries as it can";
                let without = numbers.iter().zip(&entries).filter(|(_, entry)| no_room.contains(&entry.id));
                refused.extend(without.map(|(row, _)| refusal(row, full)));
            }
            // Nothing was loaded yet, so the error is the whole answer.
            Err(error) if loaded == 0 => return Err(error),
            Err(error) => {
                tracing::error!("loading entries stopped halfway: {}", error::chain(&error));
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
    Ok(Shown(LoadReportView { loaded, refused_rows, refused }))
}

/// Remove a knowledge base with its entries
///
/// Refused while it is attached or tools that somebody made search it; `detail` names the agents or the tools. A query
/// tool that attaching made, and that no agent has any more, goes with it. After a fault, repeat the deletion to
/// complete it.
///
/// - 200: It is gone.
#[operation(DELETE "/api/{slug}/knowledge-bases/{id}", Admin, also(409), resource(KnowledgeDelete))]
async fn delete_knowledge_base(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<KnowledgeBaseId>,
) -> Result<Shown<Gone<KnowledgeBaseId>>> {
    // If deletion fails midway, repeat the DELETE: from its beginning nothing is found in the base any more.
    let (organization, id, deadline) = (asked.organization(), id.0, asked.deadline);
    let (base, lease) = deps.bases.acquire(organization, id, deadline).await?;
    let begun = Box::pin(begin_deletion(deps, &base, &lease, deadline)).await;
    // A base in deletion has no agents any more.
    deps.lifecycle.release_base(lease).await;
    begun?;
    deps.entries.delete_all(organization, id, deadline).await?;
    deps.bases.delete(organization, id).await?;
    Ok(Shown(Gone { id: base.id, deleted: true }))
}

/// Marks the base as being deleted, if no tool searches it; its own query tool goes first. Requires the base's lease.
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
    deps.bases.begin_deletion(base).await
}

/// The agents' names, for a person to read.
async fn names(deps: &Deps, organization: OrganizationId, agents: BTreeSet<AgentId>) -> Result<String> {
    let mut names = BTreeSet::new();
    for agent in agents {
        // Unless it was removed just now, or its row is about to be.
        names.extend(found(deps.agents.get(organization, agent).await)?.map(|agent| agent.name));
    }
    Ok(names.into_iter().collect::<Vec<_>>().join(", "))
}
