//! `executions`. Key: id. Indexes: `by_tool` (`tool_id`, id), `by_call` (`organization_call`, id). Rows leave by themselves
//! (TTL on `expires_at`); until they do, up to two days late, they are not shown.
//!
//! Ids made later sort later, so both indexes are in the order in which the runs were asked for. A call's id is the word of
//! whoever calls the tool: `organization_call`, `<organization>#<call>`, keeps the runs that two organizations name alike
//! apart.

use aws_sdk_dynamodb::{Client, operation::query::builders::QueryFluentBuilder};

use super::{
    Page,
    database::{Database, Item, condition_failure, failed, number, readable, text, to_item},
};
use crate::{
    Error, Result,
    models::{CallId, Execution, ExecutionId, ExecutionStatus, OrganizationId, Timestamp, ToolId},
};

/// Pages of the index that are read for one of ours, when few of the rows are wanted.
const MOST_READS: usize = 5;
/// Rows read at once when few of them are wanted.
const LARGEST_READ: i32 = 200;

/// Which runs are asked for.
#[derive(Debug, Clone)]
pub struct ExecutionsWanted {
    pub limit: i32,
    /// The last run of the page before.
    pub after: Option<ExecutionId>,
    pub status: Option<ExecutionStatus>,
}

impl ExecutionsWanted {
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
    client: Client,
    table: String,
}

impl Executions {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("executions") }
    }

    /// Writes a run down. A queued run is written when it is queued and again when it has run, in whichever order that
    /// arrives, and perhaps by two at once: what came of it stays, and "replayed" says less than any other outcome.
    pub async fn put(&self, execution: &Execution) -> Result<()> {
        let mut item = to_item(execution)?;
        if let Some(call) = &execution.call_id {
            item.insert("organization_call".into(), text(organization_call(execution.organization_id, call)));
        }
        let request =
            self.client.put_item().table_name(&self.table).set_item(Some(item)).expression_attribute_names("#id", "id");
        let request = match execution.status {
            ExecutionStatus::Queued => request.condition_expression("attribute_not_exists(#id)"),
            status => request
                .condition_expression("attribute_not_exists(#id) OR #status IN (:queued, :less)")
                .expression_attribute_names("#status", "status")
                .expression_attribute_values(":queued", text(ExecutionStatus::Queued.as_str()))
                .expression_attribute_values(
                    ":less",
                    text(if status == ExecutionStatus::Replayed { "" } else { ExecutionStatus::Replayed.as_str() }),
                ),
        };
        match request.send().await {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// A page of the runs of a tool, newest first.
    pub async fn of_tool(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        wanted: &ExecutionsWanted,
    ) -> Result<Page<Execution>> {
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_tool")
            .key_condition_expression("#tool = :tool")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_values(":tool", text(tool));
        page(query, Item::from([("tool_id".into(), text(tool))]), organization, wanted).await
    }

    /// A page of the runs in a call, newest first.
    pub async fn of_call(
        &self,
        organization: OrganizationId,
        call: &CallId,
        wanted: &ExecutionsWanted,
    ) -> Result<Page<Execution>> {
        let key = organization_call(organization, call);
        let query = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_call")
            .key_condition_expression("#call = :call")
            .expression_attribute_names("#call", "organization_call")
            .expression_attribute_values(":call", text(&key));
        page(query, Item::from([("organization_call".into(), text(key))]), organization, wanted).await
    }
}

fn organization_call(organization: OrganizationId, call: &CallId) -> String {
    format!("{organization}#{call}")
}

/// A page of what `query` finds in an index by `partition` and id. It may be short, and go on all the same, when few of the
/// rows are wanted.
async fn page(
    query: QueryFluentBuilder,
    partition: Item,
    organization: OrganizationId,
    wanted: &ExecutionsWanted,
) -> Result<Page<Execution>> {
    let start_key = |id: ExecutionId| {
        let mut key = partition.clone();
        key.insert("id".into(), text(id));
        key
    };
    let most = usize::try_from(wanted.limit).unwrap_or_default();
    let query = query
        .scan_index_forward(false)
        .expression_attribute_names("#organization", "organization_id")
        .expression_attribute_names("#expires", "expires_at")
        .expression_attribute_values(":organization", text(organization))
        .expression_attribute_values(":now", number(Timestamp::now().as_seconds()));
    let present = "#organization = :organization AND #expires > :now";
    let query = match wanted.status {
        None => query.filter_expression(present).limit(wanted.limit),
        Some(status) => query
            .filter_expression(format!("{present} AND #status = :status"))
            .expression_attribute_names("#status", "status")
            .expression_attribute_values(":status", text(status.as_str()))
            .limit(LARGEST_READ),
    };
    let mut items: Vec<Execution> = Vec::new();
    let mut start = wanted.after.map(start_key);
    for _ in 0..MOST_READS {
        let found = query.clone().set_exclusive_start_key(start).send().await.map_err(failed)?;
        items.extend(found.items.unwrap_or_default().into_iter().filter_map(readable::<Execution>));
        start = found.last_evaluated_key;
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
