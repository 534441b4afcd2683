//! `executions`. Key: id. Indexes: `by_tool` (`tool_id`, id), `by_call` (`organization_call`, id). Rows leave by themselves
//! (TTL on `expires_at`); until they do, up to two days late, they are not shown.
//!
//! Ids made later sort later, so both indexes are in the order in which the executions were asked for. A call's id is the word
//! of whoever calls the tool: `organization_call`, `<organization>#<call>`, keeps apart the calls that two organizations name
//! alike.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    Page,
    database::{Database, key, number, rows, text, to_item},
    table::{Query, Table},
};
use crate::{
    Error, Result,
    models::{CallId, Execution, ExecutionId, ExecutionStatus, OrganizationId, Timestamp, ToolId},
};

/// Pages of the index that are read for one of ours, when few of the rows are wanted.
const MOST_READS: usize = 5;
/// Rows read at once when few of them are wanted.
const LARGEST_READ: i32 = 200;

/// Which executions are asked for.
#[derive(Debug, Clone)]
pub struct ExecutionFilter {
    pub limit: i32,
    /// The last execution of the page before.
    pub after: Option<ExecutionId>,
    pub status: Option<ExecutionStatus>,
}

impl ExecutionFilter {
    /// Where a page begins.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `cursor` when the text is no cursor of ours.
    pub fn cursor(text: &str) -> Result<ExecutionId> {
        let wrong = || Error::invalid("cursor", "is not a cursor from next_cursor of an earlier page");
        text.parse().map_err(|_not_an_id| wrong())
    }
}

#[derive(Clone)]
pub struct Executions {
    table: Table,
}

impl Executions {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("executions") }
    }

    /// Writes an execution down. A queued one is written when it is queued and again when it is done, in whichever order that
    /// arrives, and perhaps by two at once: what came of it stays, and "replayed" says less than any other outcome.
    pub async fn put(&self, execution: &Execution) -> Result<()> {
        let mut item = to_item(execution)?;
        if let Some(call) = &execution.call_id {
            item.insert("organization_call".into(), text(organization_call(execution.organization_id, call)));
        }
        let put = self.table.put_item(item);
        let put = match execution.status {
            ExecutionStatus::Queued => put.when("attribute_not_exists(#id)"),
            status => {
                let less = if status == ExecutionStatus::Replayed { "" } else { ExecutionStatus::Replayed.as_str() };
                put.when("attribute_not_exists(#id) OR #status IN (:queued, :less)")
                    .with([(":queued", text(ExecutionStatus::Queued.as_str())), (":less", text(less))])
            }
        };
        put.unless_refused().await.map(drop)
    }

    /// Writes down that an execution came to nothing while it waited on the queue. One of which nothing else is on record is
    /// none of anybody's business.
    pub async fn end_queued(&self, organization: OrganizationId, id: ExecutionId, why: &str) -> Result<()> {
        self.table
            .update(super::database::id(id), "SET #status = :failed, #error = :why")
            .when("#organization_id = :organization AND #status = :queued")
            .with([
                (":failed", text(ExecutionStatus::Failed.as_str())),
                (":why", text(why)),
                (":organization", text(organization)),
                (":queued", text(ExecutionStatus::Queued.as_str())),
            ])
            .unless_refused()
            .await
            .map(drop)
    }

    /// A page of the executions of a tool, newest first.
    pub async fn of_tool(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        wanted: &ExecutionFilter,
    ) -> Result<Page<Execution>> {
        let query = self.table.query_index("by_tool", "#tool_id = :tool").with([(":tool", text(tool))]);
        page(organization, query, ("tool_id", text(tool)), wanted).await
    }

    /// A page of the executions in a call, newest first.
    pub async fn of_call(
        &self,
        organization: OrganizationId,
        call: &CallId,
        wanted: &ExecutionFilter,
    ) -> Result<Page<Execution>> {
        let call = text(organization_call(organization, call));
        let query = self.table.query_index("by_call", "#organization_call = :call").with([(":call", call.clone())]);
        page(organization, query, ("organization_call", call), wanted).await
    }
}

fn organization_call(organization: OrganizationId, call: &CallId) -> String {
    format!("{organization}#{call}")
}

/// A page of what `query` finds in an index by `partition` and id. It may be short, and go on all the same, when few of the
/// rows are wanted.
async fn page(
    organization: OrganizationId,
    query: Query,
    (partition, value): (&str, AttributeValue),
    wanted: &ExecutionFilter,
) -> Result<Page<Execution>> {
    const PRESENT: &str = "#organization_id = :organization AND #expires_at > :now";
    let most = usize::try_from(wanted.limit).unwrap_or_default();
    let now = number(Timestamp::now().as_seconds());
    let query = query.newest_first().with([(":organization", text(organization)), (":now", now)]);
    let (query, limit) = match wanted.status {
        None => (query.filter(PRESENT), wanted.limit),
        Some(status) => {
            let query = query.filter(format!("{PRESENT} AND #status = :status"));
            (query.with([(":status", text(status.as_str()))]), LARGEST_READ)
        }
    };
    let mut items: Vec<Execution> = Vec::new();
    let mut start = wanted.after.map(|after| key([(partition, value), ("id", text(after))]));
    for _ in 0..MOST_READS {
        let (found, next) = query.page(start, Some(limit)).await?;
        items.extend(rows(found));
        start = next;
        if start.is_none() || items.len() >= most {
            break;
        }
    }
    let next = if items.len() > most {
        items.truncate(most);
        items.last().map(|last| last.id.to_string())
    } else {
        start.and_then(|key| key.get("id")?.as_s().ok().cloned())
    };
    Ok(Page { items, next_cursor: next })
}
