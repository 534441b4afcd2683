//! `executions`. Key: id. TTL on `expires_at`.
//!
//! Indexes: `by_tool` (`tool_id`, id), `by_call` (`organization_call`, id), `by_caller` (`caller`, id), `by_organization`
//! (`history_of`, id), which has only the attributes that filters name. Rows of an older version lack `history_of`.
//!
//! Ids sort by time, and so do the indexes. The caller of a tool chooses the call id, so `organization_call` is
//! `<organization>#<call>` to separate tenants. Executions of an automation's run have `<organization>#run:<run>`; no call id
//! contains a colon.
//!
//! Each further recipient has an entry, `<execution id>#<hash of the number>`, with the hash as `caller`, so that `by_caller`
//! finds executions by any recipient. Entries are in no other index. A message that Twilio did not deliver has an entry
//! `undelivered#<organization>#<sid>`, in no index.

use std::{collections::HashMap, fmt, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;

use super::{
    Cursor, Events, Page,
    cursor::begins_within,
    database::{Database, Item, from_item, id, is_of, key, number, rows, text, to_item},
    deletion::OutOfTime,
    table::{Query, Table},
    write::WriteResult,
};
use crate::{
    Deadline, Error, Result,
    models::{
        CallId, CallerHash, E164, EventId, Execution, ExecutionId, ExecutionOrigin, ExecutionStatus, Fault,
        OrganizationId, RunId, Timestamp, ToolId, Undelivered,
    },
};

const WHAT: &str = "execution";

pub(super) type Deleted = Result<u64, OutOfTime>;

#[derive(Debug, Clone)]
pub struct ExecutionFilter {
    pub limit: i32,
    pub after: Option<Cursor<ExecutionId>>,
    pub status: Option<ExecutionStatus>,
    pub failed: bool,
    pub since: Option<Timestamp>,
    pub until: Option<Timestamp>,
}

#[derive(Debug, Clone, Default)]
pub struct OfOrganization {
    pub tool: Option<ToolId>,
    pub trigger: Option<ExecutionOrigin>,
    pub fault: Option<Fault>,
}

impl ExecutionFilter {
    pub const fn newest(limit: i32) -> Self {
        Self { limit, after: None, status: None, failed: false, since: None, until: None }
    }
}

#[derive(Clone)]
pub struct Executions {
    table: Table,
    calls: Table,
    events: Events,
}

impl Executions {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("executions"), calls: database.table("calls"), events: Events::new(database) }
    }

    /// Writes an execution. A queued execution is written when queued and when done, possibly in either order and concurrently.
    /// A definite outcome stays; "unknown" and "replayed" replace only "queued".
    pub async fn put(&self, execution: &Execution) -> Result<()> {
        let mut item = to_item(execution)?;
        let organization = execution.organization_id;
        let part_of = execution.call_id.as_ref().map(|call| organization_call(organization, call));
        let part_of = part_of.or_else(|| execution.run_id.map(|run| organization_run(organization, run)));
        if let Some(part_of) = part_of {
            item.insert("organization_call".into(), text(part_of));
        }
        item.insert("history_of".into(), text(organization));
        // Entries first, so that every visible execution can be found by all recipients.
        try_join_all(execution.recipients.iter().map(|recipient| self.put_recipient(execution, recipient))).await?;
        let identity = |row: &Item| ["status", "started_at"].map(|name| row.get(name).cloned());
        let ours = identity(&item);
        let put = self.table.put_item(item);
        let put = match execution.status {
            ExecutionStatus::Queued => put.when("attribute_not_exists(#id)"),
            ExecutionStatus::Replayed | ExecutionStatus::Unknown => put
                .when("attribute_not_exists(#id) OR #status = :queued")
                .with([(":queued", text(ExecutionStatus::Queued.as_str()))]),
            _ => put.when("attribute_not_exists(#id) OR #status IN (:queued, :replayed, :unknown)").with([
                (":queued", text(ExecutionStatus::Queued.as_str())),
                (":replayed", text(ExecutionStatus::Replayed.as_str())),
                (":unknown", text(ExecutionStatus::Unknown.as_str())),
            ]),
        };
        let had_failed = match put.replacing().await? {
            WriteResult::Done(before) => before
                .get("status")
                .and_then(|status| status.as_s().ok())
                .is_some_and(|status| ExecutionStatus::NOT_SUCCEEDED.iter().any(|failed| failed.as_str() == status)),
            // The repetition of this put after a lost answer, which had the row before.
            WriteResult::Refused(row) if identity(&row) == ours => true,
            WriteResult::Refused(_) => return Ok(()),
        };
        self.note_failed(execution, had_failed).await
    }

    /// Notes an execution that did not succeed in its call, once, and takes that back if it turns out that it succeeded. A call that did
    /// not come in through us has no row.
    async fn note_failed(&self, execution: &Execution, had_failed: bool) -> Result<()> {
        let has_failed = ExecutionStatus::NOT_SUCCEEDED.contains(&execution.status);
        let change = match has_failed {
            true => "ADD #failed_executions :execution",
            false if had_failed => "DELETE #failed_executions :execution",
            false => return Ok(()),
        };
        let Some(call) = &execution.call_id else { return Ok(()) };
        let execution_id = AttributeValue::Ss(vec![execution.id.to_string()]);
        let noted = self.calls.update(id(call), change).of(execution.organization_id);
        let noted = noted.with([(":execution", execution_id)]);
        noted.unless_refused().await.map(drop)
    }

    async fn put_recipient(&self, execution: &Execution, recipient: &CallerHash) -> Result<()> {
        let attributes = [
            ("id", text(recipient_entry(execution.id, recipient.as_str()))),
            ("caller", text(recipient.as_str())),
            ("organization_id", text(execution.organization_id)),
            ("expires_at", number(execution.expires_at)),
        ];
        let entry: Item = attributes.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        self.table.put_item(entry).unless_refused().await.map(drop)
    }

    /// `sid`: Twilio's id of the message.
    pub async fn note_undelivered(
        &self,
        organization: OrganizationId,
        sid: &str,
        undelivered: &Undelivered,
        kept: Duration,
    ) -> Result<()> {
        let mut entry = to_item(undelivered)?;
        entry.extend(undelivered_entry(organization, sid));
        entry.insert("organization_id".into(), text(organization));
        entry.insert("expires_at".into(), number(Timestamp::now().plus(kept).as_seconds()));
        self.table.put_item(entry).unless_refused().await.map(drop)
    }

    pub async fn undelivered(
        &self,
        organization: OrganizationId,
        sids: &[String],
        deadline: Deadline,
    ) -> Result<HashMap<String, Undelivered>> {
        let keys = sids.iter().map(|sid| undelivered_entry(organization, sid)).collect();
        let entries = self.table.batch_get(keys, None, deadline).await?;
        let named = |entry: Item| {
            let sid = entry.get("id")?.as_s().ok()?.rsplit_once('#')?.1.to_owned();
            Some((sid, from_item(entry).ok()?))
        };
        Ok(entries.into_iter().filter_map(named).collect())
    }

    /// Ends a queued execution that will not run. Its recorded arguments stay. Call-start executions have no row yet.
    pub async fn end_queued(&self, ended: &Execution) -> Result<()> {
        let (status, why) = (text(ended.status.as_str()), text(ended.error.as_deref().unwrap_or_default()));
        let change = self
            .table
            .update(id(ended.id), "SET #status = :status, #error = :why")
            .when("#status = :queued")
            .of(ended.organization_id)
            .with([
                (":status", status.clone()),
                (":why", why.clone()),
                (":queued", text(ExecutionStatus::Queued.as_str())),
            ]);
        match change.attempt().await? {
            WriteResult::Done(_) => self.note_failed(ended, false).await,
            // The repetition of this update after a lost answer.
            WriteResult::Refused(row) if row.get("status") == Some(&status) && row.get("error") == Some(&why) => {
                self.note_failed(ended, false).await
            }
            WriteResult::Refused(_) if ended.trigger == ExecutionOrigin::CallStart => self.put(ended).await,
            WriteResult::Refused(_) => Ok(()),
        }
    }

    pub async fn get(&self, organization: OrganizationId, execution: ExecutionId) -> Result<Execution> {
        let found: Execution = self.table.owned(organization, id(execution), WHAT).await?;
        if found.expires_at > Timestamp::now().as_seconds() { Ok(found) } else { Err(Error::NotFound(WHAT)) }
    }

    /// The readable ones of these, in any order.
    pub async fn get_many(
        &self,
        organization: OrganizationId,
        executions: &[ExecutionId],
        deadline: Deadline,
    ) -> Result<Vec<Execution>> {
        let mut found = self.table.batch_get(executions.iter().map(id).collect(), None, deadline).await?;
        found.retain(|item| is_of(item, organization));
        let now = Timestamp::now().as_seconds();
        let mut found: Vec<Execution> = rows(found);
        found.retain(|execution| execution.expires_at > now);
        Ok(found)
    }

    pub async fn of_tool(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        wanted: &ExecutionFilter,
    ) -> Result<Page<Execution>> {
        let query = self
            .table
            .query_index("by_tool", "#tool_id = :tool AND #id BETWEEN :since AND :until")
            .with([(":tool", text(tool))]);
        let (found, next_cursor) = page(organization, query, ("tool_id", text(tool)), wanted, false).await?;
        Ok(Page { items: rows(found), next_cursor })
    }

    /// The page, and whether all of its rows are readable.
    pub async fn of_call(
        &self,
        organization: OrganizationId,
        call: &CallId,
        wanted: &ExecutionFilter,
    ) -> Result<(Page<Execution>, bool)> {
        let call = text(organization_call(organization, call));
        let query = self
            .table
            .query_index("by_call", "#organization_call = :call AND #id BETWEEN :since AND :until")
            .with([(":call", call.clone())]);
        let (found, next_cursor) = page(organization, query, ("organization_call", call), wanted, false).await?;
        let count = found.len();
        let items: Vec<Execution> = rows(found);
        let is_whole = items.len() == count;
        Ok((Page { items, next_cursor }, is_whole))
    }

    pub async fn of_organization(
        &self,
        organization: OrganizationId,
        wanted: &ExecutionFilter,
        more: &OfOrganization,
        deadline: Deadline,
    ) -> Result<Page<Execution>> {
        let mut query =
            self.table.query_index("by_organization", "#history_of = :organization AND #id BETWEEN :since AND :until");
        if let Some(tool) = more.tool {
            query = query.filter("#tool_id = :tool").with([(":tool", text(tool))]);
        }
        if let Some(trigger) = more.trigger {
            query = query.filter("#trigger = :trigger").with([(":trigger", text(trigger.as_str()))]);
        }
        if let Some(fault) = more.fault {
            query = query.filter("#fault = :fault").with([(":fault", text(fault.as_str()))]);
        }
        let filtered = more.tool.is_some() || more.trigger.is_some() || more.fault.is_some();
        let of_organization = ("history_of", text(organization));
        let (found, next_cursor) = page(organization, query, of_organization, wanted, filtered).await?;
        let keys = found.iter().filter_map(|entry| Some(id(entry.get("id")?.as_s().ok()?))).collect();
        let mut items: Vec<Execution> = rows(self.table.batch_get(keys, None, deadline).await?);
        items.sort_by_key(|execution| std::cmp::Reverse(execution.id));
        Ok(Page { items, next_cursor })
    }

    pub(super) async fn delete_of_call(
        &self,
        organization: OrganizationId,
        call: &CallId,
        deadline: Deadline,
    ) -> Result<Deleted> {
        self.delete_part(organization, organization_call(organization, call), deadline).await
    }

    pub(super) async fn delete_of_run(
        &self,
        organization: OrganizationId,
        run: RunId,
        deadline: Deadline,
    ) -> Result<Deleted> {
        self.delete_part(organization, organization_run(organization, run), deadline).await
    }

    async fn delete_part(&self, organization: OrganizationId, part: String, deadline: Deadline) -> Result<Deleted> {
        let query = self.table.query_index("by_call", "#organization_call = :part").with([(":part", text(part))]);
        self.delete_found(organization, query.attributes("#id"), deadline).await
    }

    /// Covers executions from and to this number.
    pub(super) async fn delete_of_number(
        &self,
        organization: OrganizationId,
        sought: &E164,
        deadline: Deadline,
    ) -> Result<Deleted> {
        let hash = CallerHash::of(organization, sought.as_str());
        let query = self.table.query_index("by_caller", "#caller = :caller").with([(":caller", text(hash.as_str()))]);
        self.delete_found(organization, query.attributes("#id"), deadline).await
    }

    /// Deletes the executions in the query's result, directly or by an entry. Index attributes go last, so that an interrupted
    /// deletion can resume.
    async fn delete_found(&self, organization: OrganizationId, query: Query, deadline: Deadline) -> Result<Deleted> {
        let query = query.of(organization);
        let (mut deleted, mut start) = (0, None);
        loop {
            let (found, next) = query.page(start, None).await?;
            let mut executions: Vec<Item> = Vec::new();
            let mut entries = Vec::new();
            for item in found {
                let Some(Ok(name)) = item.get("id").map(AttributeValue::as_s) else { continue };
                if let Some((execution, _)) = name.split_once('#') {
                    executions.push(id(execution));
                    entries.push(id(name));
                } else {
                    executions.push(id(name));
                }
            }
            executions.dedup();
            let rows = self.table.batch_get(executions, Some("#id, #recipients, #status, #trigger"), deadline).await?;
            // The events about them have copies of the reasons.
            let failed = rows.iter().filter_map(failed_in_call);
            let events = failed.map(|failed| id(EventId::of_failed_tool(organization, failed))).collect();
            if let Err(out_of_time) = self.events.table().delete_all(events, deadline).await? {
                return Ok(Err(out_of_time));
            }
            let named = rows.iter().flat_map(entries_of).filter(|entry| !entries.contains(entry)).collect();
            let rows: Vec<Item> = rows.iter().filter_map(|row| Some(id(row.get("id")?.as_s().ok()?))).collect();
            let count = u64::try_from(rows.len()).unwrap_or(u64::MAX);
            for keys in [named, rows, entries] {
                if let Err(out_of_time) = self.table.delete_all(keys, deadline).await? {
                    return Ok(Err(out_of_time));
                }
            }
            deleted += count;
            if next.is_none() {
                return Ok(Ok(deleted));
            }
            start = next;
        }
    }
}

fn recipient_entry(execution: impl fmt::Display, recipient: &str) -> String {
    format!("{execution}#{recipient}")
}

/// Two organizations may send from one account at Twilio.
fn undelivered_entry(organization: OrganizationId, sid: &str) -> Item {
    id(format!("undelivered#{organization}#{sid}"))
}

fn entries_of(row: &Item) -> Vec<Item> {
    let Some(Ok(execution)) = row.get("id").map(AttributeValue::as_s) else { return Vec::new() };
    let recipients = row.get("recipients").and_then(|recipients| recipients.as_l().ok()).into_iter().flatten();
    recipients.filter_map(|one| Some(id(recipient_entry(execution, one.as_s().ok()?)))).collect()
}

fn failed_in_call(row: &Item) -> Option<ExecutionId> {
    let text = |name: &str| row.get(name).and_then(|value| value.as_s().ok()).map(String::as_str);
    let in_call = matches!(text("trigger"), Some("conversation" | "call_start"));
    let failed = matches!(text("status"), Some("failed" | "unknown"));
    text("id")?.parse().ok().filter(|_| in_call && failed)
}

fn organization_call(organization: OrganizationId, call: &CallId) -> String {
    format!("{organization}#{call}")
}

fn organization_run(organization: OrganizationId, run: RunId) -> String {
    format!("{organization}#run:{run}")
}

/// The items of a page of `query`, newest first, and the next cursor. `filtered`: the query has filters of its own.
async fn page(
    organization: OrganizationId,
    query: Query,
    (partition, value): (&str, AttributeValue),
    wanted: &ExecutionFilter,
    filtered: bool,
) -> Result<(Vec<Item>, Option<String>)> {
    const EARLIEST: &str = "00000000";
    const LATEST: &str = "g";
    let since = wanted.since.map_or_else(|| EARLIEST.to_owned(), |at| ExecutionId::earliest(at).to_string());
    let until = wanted.until.map_or_else(|| LATEST.to_owned(), |at| ExecutionId::latest(at).to_string());
    if let Some(Cursor(after)) = &wanted.after
        && !begins_within(&after.to_string(), &since, &until)?
    {
        return Ok((Vec::new(), None));
    }
    let mut query = query.newest_first().filter("#expires_at > :now").of(organization).with([
        (":now", number(Timestamp::now().as_seconds())),
        (":since", text(since)),
        (":until", text(until)),
    ]);
    if let Some(status) = wanted.status {
        query = query.filter("#status = :status").with([(":status", text(status.as_str()))]);
    }
    if wanted.failed {
        let [failed, unknown, partial, limited] = ExecutionStatus::NOT_SUCCEEDED.map(|status| text(status.as_str()));
        query = query.filter("#status IN (:failed, :unknown, :partial, :limited)").with([
            (":failed", failed),
            (":unknown", unknown),
            (":partial", partial),
            (":limited", limited),
        ]);
    }
    let filtered = filtered || wanted.status.is_some() || wanted.failed;
    let start = wanted.after.as_ref().map(|Cursor(after)| key([(partition, value), ("id", text(after))]));
    let (items, last) = query.filled(start, wanted.limit, filtered).await?;
    let last = last.as_ref().and_then(|item| item.get("id")?.as_s().ok());
    let next = last.and_then(|id| id.parse::<ExecutionId>().ok()).map(|id| Cursor(id).to_string());
    Ok((items, next))
}
