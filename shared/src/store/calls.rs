//! `calls`. Key: id, which is VAPI's call id. TTL on `expires_at`.
//!
//! Index `by_caller`: `caller_phone_number`, `organization_id`.
//!
//! The row joins the results of call-start tools: the write of each result tells whether it was the last, and one conditional
//! write decides which invocation tells the model. Told results are dropped, and at the end of the call the untold ones of its start
//! and the control URL.

mod background;
mod claim_checks;
mod read_backs;
mod starting;
mod transfers;

pub use background::{AddedToCall, Interrupted, Telling, ToTell};
pub use starting::AddedEarly;

use std::{collections::BTreeMap, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;
use uuid::Uuid;

use super::{
    CreatedFilter, Cursor, Page,
    audit::Change,
    cursor::Filters,
    database::{Database, Item, from_item, id, rows, text, to_attribute},
    table::Table,
    write::{Write, WriteResult},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{
        Act, AgentId, Call, CallId, CallStatus, ControlUrl, E164, ExecutionId, FirstTime, Noun, OrganizationId,
        Timestamp, ToldLater, Transfer, Unowned,
    },
};

/// Between attempts to take the results of a call's start.
const PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// VAPI's greatest `maxDurationSeconds`: an older call is over, even if its end was never reported.
const LONGEST_CALL: Duration = Duration::from_hours(12);
/// From a call's end to VAPI's report, which has the caller's words. Assistants may send none.
const REPORT_WITHIN: Duration = Duration::from_mins(3);

#[derive(Clone)]
pub struct Calls {
    table: Table,
}

#[derive(Debug)]
pub enum Added {
    Now(Box<Call>),
    /// The result, or another outcome of the same execution, was present.
    Before(Box<Call>),
    /// The call has ended; nothing was added.
    Over(CallId),
    /// The call has no row, or none yet.
    NoCall,
}

#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    pub status: Option<CallStatus>,
    pub agent: Option<AgentId>,
    /// The caller's or the called number.
    pub number: Option<E164>,
    /// Only calls with a tool that did not succeed.
    pub failed: bool,
}

/// VAPI's report of a call's end.
#[derive(Debug, Default)]
pub struct End {
    pub at: Option<Timestamp>,
    pub reason: Option<String>,
    pub duration_seconds: Option<f64>,
    pub cost: Option<f64>,
    /// In US dollars, by item.
    pub cost_parts: BTreeMap<String, f64>,
    /// When VAPI sent its report; none for a status.
    pub told_at: Option<Timestamp>,
}

impl Calls {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("calls") }
    }

    /// The call, if it came in through us, read in parallel with the tool that determines its organization.
    pub async fn find(&self, call: &CallId) -> Result<Option<Unowned<Call>>> {
        let call: Option<Call> = self.table.get(id(call)).await?;
        Ok(call.filter(Call::is_kept).map(Unowned::new))
    }

    /// As [`Calls::find`], read consistently: its transfer may have begun a moment ago.
    pub async fn find_now(&self, call: &CallId) -> Result<Option<Unowned<Call>>> {
        let call: Option<Call> = self.table.get_consistent(id(call)).await?;
        Ok(call.filter(Call::is_kept).map(Unowned::new))
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        created: &CreatedFilter,
        wanted: &CallFilter,
    ) -> Result<Page<Call>> {
        let mut filters = Filters::default()
            .equal("status", wanted.status.as_ref().map(to_attribute).transpose()?)
            .equal("agent_id", wanted.agent.map(text));
        if let Some(number) = &wanted.number {
            let either = "#caller_phone_number = :number OR #called_phone_number = :number";
            filters = filters.and(either, [(":number", text(number))]);
        }
        if wanted.failed {
            filters = filters.and("attribute_exists(#failed_executions)", []);
        }
        let query = self.table.query_index(
            "by_organization",
            "#organization_id = :organization AND #created_at BETWEEN :since AND :until",
        );
        Page::filtered(organization, query, created, filters, [("organization_id", text(organization))]).await
    }

    /// Writes an incoming or placed call. An existing row stays as it is.
    pub async fn put(&self, call: &Call) -> Result<()> {
        self.table.put(call)?.when("attribute_not_exists(#id)").unless_refused().await.map(drop)
    }

    /// Adds the outcome of a call-start tool: a line for the model, or `None`. The first outcome of an execution wins. Until `deadline`
    /// it waits for a missing row and for the end of an outage.
    pub async fn add_result(
        &self,
        organization: OrganizationId,
        call: &CallId,
        execution: ExecutionId,
        line: Option<&str>,
        deadline: Deadline,
    ) -> Result<Added> {
        let worker = Uuid::new_v4().to_string();
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            match self.try_to_add(organization, call, execution, line, &worker).await {
                Ok(Added::NoCall) if backoff.pause().await => {}
                Err(outage) if outage.is_outage() && backoff.pause().await => {}
                added => return added,
            }
        }
    }

    async fn try_to_add(
        &self,
        organization: OrganizationId,
        call: &CallId,
        execution: ExecutionId,
        line: Option<&str>,
        worker: &str,
    ) -> Result<Added> {
        const NEW: &str = "attribute_not_exists(#results.#execution)";
        let add = |change: &str, condition: &str| {
            self.update(organization, call, &format!("SET #results.#execution = :line, #updated_at = :now{change}"))
                .when(format!("attribute_not_exists(#ended_at) AND {condition}"))
                .alias("#execution", &execution.to_string())
                .with([(":line", line.map_or(AttributeValue::Null(true), text))])
        };
        let in_time = add("", &format!("{NEW} AND attribute_not_exists(#context_taken_at)"));
        let mut added = in_time.attempt().await?;
        // Nobody else tells a late result. The token accepts the repetition of this update after a lost answer.
        if let WriteResult::Refused(row) = &added
            && row.contains_key("context_taken_at")
            && !row.contains_key("ended_at")
        {
            let late =
                add(" ADD #late_results_by :workers", &format!("({NEW} OR contains(#late_results_by, :worker))"));
            let workers = AttributeValue::Ss(vec![worker.to_owned()]);
            added = late.with([(":worker", text(worker)), (":workers", workers)]).attempt().await?;
        }
        match added {
            WriteResult::Done(row) => Ok(Added::Now(Box::new(from_item(row)?))),
            WriteResult::Refused(row) if row.get("organization_id") != Some(&text(organization)) => Ok(Added::NoCall),
            WriteResult::Refused(row) if row.contains_key("ended_at") => Ok(Added::Over(call.clone())),
            WriteResult::Refused(row) => Ok(Added::Before(Box::new(from_item(row)?))),
        }
    }

    /// Claims the results for delivery to the model. `None` if another invocation did, or the call does not exist. Until
    /// `deadline` a missing row is waited for, which may be written after the messages about it, and an outage of the database.
    pub async fn take_context(
        &self,
        organization: OrganizationId,
        call: &CallId,
        deadline: Deadline,
    ) -> Result<Option<Call>> {
        let (worker, owner) = (text(Uuid::new_v4()), text(organization));
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            let change = "SET #context_taken_at = :now, #context_taken_by = :worker, #updated_at = :now";
            let taken = self.update(organization, call, change);
            // The second clause accepts the repetition of this update after a lost answer.
            let taken = taken
                .when("(attribute_not_exists(#context_taken_at) OR #context_taken_by = :worker)")
                .with([(":worker", worker.clone())]);
            match taken.attempt().await {
                Ok(WriteResult::Done(row)) => return from_item(row).map(Some),
                Ok(WriteResult::Refused(row)) if row.get("organization_id") == Some(&owner) => return Ok(None),
                Ok(WriteResult::Refused(_)) if backoff.pause().await => {}
                Ok(WriteResult::Refused(_)) => return Ok(None),
                Err(outage) if outage.is_outage() && backoff.pause().await => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Records whether VAPI accepted the results of these executions (by id), and drops their text but not the fact that they
    /// came. `late`: the results came after the first delivery.
    pub async fn note_context(
        &self,
        organization: OrganizationId,
        call: &CallId,
        executions: &[String],
        late: bool,
        told: Result<(), &str>,
    ) -> Result<()> {
        let change = self.update(organization, call, "SET #updated_at = :now");
        let mut change = match told {
            Ok(()) if late => {
                let told = executions.iter().filter_map(|execution| execution.parse().ok());
                let told: Vec<ToldLater> =
                    told.map(|execution_id| ToldLater { execution_id, at: Timestamp::now() }).collect();
                change
                    .and(", #told_later = list_append(if_not_exists(#told_later, :none), :told)")
                    .with([(":none", AttributeValue::L(Vec::new())), (":told", to_attribute(&told)?)])
            }
            Ok(()) => change.and(", #context_injected_at = if_not_exists(#context_injected_at, :now)"),
            Err(why) => change.and(", #context_error = :why, #context_failed_at = :now").with([(":why", text(why))]),
        };
        for (number, execution) in executions.iter().enumerate() {
            let alias = format!("#execution_{number}");
            change = change.and(&format!(", #results.{alias} = :nothing")).alias(&alias, execution);
            change = change.with([(":nothing", AttributeValue::Null(true))]);
        }
        change.unless_refused().await.map(drop)
    }

    /// Records the call's status and, if unknown, its control URL. An ended call stays ended and a call in progress does not
    /// ring again, whatever the order of VAPI's messages. `at`: the time of VAPI's message.
    pub async fn note_status(
        &self,
        organization: OrganizationId,
        call: &CallId,
        (status, at): (CallStatus, Timestamp),
        control_url: Option<&ControlUrl>,
    ) -> Result<()> {
        let mut change = self
            .update(organization, call, "SET #status = :status, #updated_at = :now")
            .when("attribute_not_exists(#ended_at)")
            .with([(":status", to_attribute(&status)?)]);
        if matches!(status, CallStatus::Scheduled | CallStatus::Queued | CallStatus::Ringing) {
            change = change.when("NOT #status IN (:in_progress, :forwarding)").with([
                (":in_progress", to_attribute(&CallStatus::InProgress)?),
                (":forwarding", to_attribute(&CallStatus::Forwarding)?),
            ]);
        }
        if status == CallStatus::InProgress {
            change = change.and(", #connected_at = if_not_exists(#connected_at, :at)").with([(":at", text(at))]);
        }
        if let Some(url) = control_url {
            change = change.and(", #control_url = if_not_exists(#control_url, :url)");
            change = change.with([(":url", to_attribute(url)?)]);
        }
        change.unless_refused().await.map(drop)
    }

    /// Records the first time of an event; an earlier time replaces a later one.
    pub async fn note_first(
        &self,
        organization: OrganizationId,
        call: &CallId,
        what: FirstTime,
        at: Timestamp,
    ) -> Result<()> {
        let column = format!("#{}", what.column());
        self.update(organization, call, &format!("SET {column} = :at, #updated_at = :now"))
            .when(format!("(attribute_not_exists({column}) OR {column} > :at)"))
            .with([(":at", text(at))])
            .unless_refused()
            .await
            .map(drop)
    }

    /// Appends a transfer if `known` is still the number of transfers, else returns false.
    pub async fn note_transfer(
        &self,
        organization: OrganizationId,
        call: &CallId,
        transfer: &Transfer,
        known: usize,
    ) -> Result<bool> {
        let change = "SET #transfers = list_append(if_not_exists(#transfers, :none), :transfer), #updated_at = :now";
        let change = self
            .update(organization, call, change)
            .with([(":none", AttributeValue::L(Vec::new())), (":transfer", to_attribute(&[transfer])?)]);
        let change = if known == 0 {
            change.when("attribute_not_exists(#transfers)")
        } else {
            change.when("size(#transfers) = :known").with([(":known", to_attribute(&known)?)])
        };
        change.unless_refused().await
    }

    /// Closes the call with VAPI's report, which replaces only its own fields. Drops data of live calls, except results of
    /// background tools: a worker sends them after the call.
    pub async fn close(&self, organization: OrganizationId, call: &CallId, end: &End) -> Result<()> {
        let mut change = self
            .update(organization, call, "SET #status = :ended, #updated_at = :now, #results = :none")
            .with([(":ended", to_attribute(&CallStatus::Ended)?), (":none", AttributeValue::M(Item::new()))]);
        change = match end.at {
            Some(at) => change.and(", #ended_at = :at").with([(":at", text(at))]),
            None => change.and(", #ended_at = if_not_exists(#ended_at, :now)"),
        };
        if let Some(reason) = &end.reason {
            change = change.and(", #ended_reason = :reason").with([(":reason", text(reason))]);
        }
        if let Some(seconds) = end.duration_seconds {
            change = change.and(", #duration_seconds = :seconds").with([(":seconds", to_attribute(&seconds)?)]);
        }
        if let Some(cost) = end.cost {
            change = change.and(", #cost = :cost").with([(":cost", to_attribute(&cost)?)]);
        }
        if let Some(at) = end.told_at {
            change = change.and(", #cost_at = if_not_exists(#cost_at, :told_at)").with([(":told_at", text(at))]);
        }
        if !end.cost_parts.is_empty() {
            change = change.and(", #cost_parts = :parts").with([(":parts", to_attribute(&end.cost_parts)?)]);
        }
        let change = change.and(" REMOVE #control_url, #read_back, #preface");
        if change.unless_refused().await? { Ok(()) } else { Err(Error::NotFound("call")) }
    }

    pub(super) async fn of_caller(&self, organization: OrganizationId, caller: &E164) -> Result<Vec<CallId>> {
        let calls = self.table.query_index("by_caller", "#caller_phone_number = :caller AND #organization_id = :whose");
        let of_organization = [(":caller", text(caller)), (":whose", text(organization))];
        Ok(ids(calls.attributes("#id").with(of_organization).items().await?))
    }

    pub(super) async fn calls_to_number(
        &self,
        organization: OrganizationId,
        called: &E164,
        after: Option<&Cursor>,
    ) -> Result<(Vec<CallId>, Option<Cursor>)> {
        let calls = self.table.of_organization(organization).newest_first().attributes("#id");
        let calls = calls.filter("#called_phone_number = :called").with([(":called", text(called))]);
        let (page, next) = calls.page(after.map(|after| after.start_key(organization)), None).await?;
        Ok((ids(page), next.as_ref().and_then(Cursor::after)))
    }

    pub(super) async fn delete(&self, organization: OrganizationId, call: &CallId) -> Result<bool> {
        let delete = self.table.delete(id(call)).of(organization);
        delete.audited(Change::of(Act::Deleted, Noun::Call, call))?.unless_refused().await
    }

    /// Like [`Calls::delete`], refused while the call or its transfer goes on or its report is due, and without an entry of the
    /// audit log.
    pub(super) async fn delete_over(&self, organization: OrganizationId, call: &CallId) -> Result<WriteResult> {
        const OVER: &str = "(NOT #created_at > :longest_ago OR (NOT #status IN (:queued, :ringing, :in_progress, :forwarding) \
                            AND (attribute_exists(#cost_at) OR NOT #ended_at > :report_due) \
                            AND (attribute_not_exists(#transfer) OR attribute_exists(#transfer.#outcome))))";
        let now = Timestamp::now();
        let delete = self.table.delete(id(call)).of(organization).when(OVER).with([
            (":longest_ago", text(now.minus(LONGEST_CALL))),
            (":report_due", text(now.minus(REPORT_WITHIN))),
            (":queued", to_attribute(&CallStatus::Queued)?),
            (":ringing", to_attribute(&CallStatus::Ringing)?),
            (":in_progress", to_attribute(&CallStatus::InProgress)?),
            (":forwarding", to_attribute(&CallStatus::Forwarding)?),
        ]);
        delete.replacing().await
    }

    /// A change of the organization's call; `:now` is bound.
    fn update(&self, organization: OrganizationId, call: &CallId, change: &str) -> Write {
        self.table.update(id(call), change).of(organization).with([(":now", text(Timestamp::now()))])
    }
}

/// Reads only the ids, so that unreadable rows are included.
fn ids(items: Vec<Item>) -> Vec<CallId> {
    #[derive(serde::Deserialize)]
    struct Named {
        id: CallId,
    }

    rows(items).into_iter().map(|Named { id }| id).collect()
}
