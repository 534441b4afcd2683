//! Deletes a call, a run or everything about a phone number, with dependent rows.
//!
//! Parents go after their children, so an interrupted deletion can resume. Rows of `idempotency` stay: their keys are hashes,
//! they prevent repeated effects, and they expire.

use std::{fmt, str::FromStr};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use serde::Serialize;

use super::{
    Approvals, AutomationMemory, AutomationRuns, Calls, Cursor, Database, Events, Executions, Threads,
    audit::{AuditLog, Change},
    automation_runs::ListedRun,
    database::{Item, is_of, text},
    deletion::{LAST_CALL, OutOfTime},
    table::Table,
    write::WriteResult,
};
use crate::{
    Deadline, Error, Result,
    declared::Given,
    described::Described,
    error::found,
    fields::Fields,
    models::{Act, CallId, E164, EventId, Noun, OrganizationId, RunId, ThreadId, acting},
    redaction,
};

/// Begins a cursor after a call or run under way was found.
const KEPT: &str = "kept.";
/// Runs read concurrently.
const BESIDE: usize = 5;
/// Events per check of the clock.
const EVENTS: i32 = 100;
/// Runs per check of the clock.
const RUNS: i32 = 25;
/// Remaining time below which no further page of calls or runs is read.
const PART_NEEDS: std::time::Duration = std::time::Duration::from_secs(3);

#[derive(Clone)]
pub struct Erasure {
    calls: Calls,
    executions: Executions,
    runs: AutomationRuns,
    events: Events,
    memory: AutomationMemory,
    approvals: Approvals,
    threads: Threads,
    audit: AuditLog,
}

/// How many rows were deleted; a run with all its steps counts as one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Described)]
pub struct Erased {
    pub calls: u64,
    pub executions: u64,
    pub runs: u64,
    pub events: u64,
    /// Conversations with the planner that name the number.
    pub threads: u64,
    /// Values in memories of automations whose key or value names the number.
    pub remembered: u64,
}

#[derive(Debug)]
pub struct NumberErased {
    pub erased: Erased,
    /// Calls from or to the number that go on; their rows were not deleted.
    pub calls_under_way: Vec<CallId>,
    /// Unfinished runs that contain the number and were not deleted.
    pub runs_under_way: Vec<RunId>,
    /// Nothing is left, and neither this nor an earlier part of the erasure found a call or run under way.
    pub complete: bool,
    /// Where to resume if the time was up.
    pub next: Option<ErasureCursor>,
}

/// Where an erasure resumes; opaque to clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErasureCursor {
    place: Place,
    /// An earlier part found a call or run under way.
    kept: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Calls(Option<Cursor>),
    /// The events, which would start runs again.
    Events(Option<Cursor>),
    Runs(Option<Cursor>),
    Threads(Option<Cursor>),
    /// The runs, which would remember it again, are gone by then.
    Memory(Option<Cursor<String>>),
    Audit(Option<Cursor<String>>),
}

crate::described!(ErasureCursor => {"type": "string"});

impl Given for ErasureCursor {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        fields.parse(name)
    }
}

impl fmt::Display for ErasureCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kept {
            f.write_str(KEPT)?;
        }
        self.place.fmt(f)
    }
}

impl FromStr for ErasureCursor {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let rest = text.strip_prefix(KEPT);
        Ok(Self { place: rest.unwrap_or(text).parse()?, kept: rest.is_some() })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (part, after) = match self {
            Self::Calls(after) => ("calls", after.as_ref().map(Cursor::to_string)),
            Self::Events(after) => ("events", after.as_ref().map(Cursor::to_string)),
            Self::Runs(after) => ("runs", after.as_ref().map(Cursor::to_string)),
            Self::Threads(after) => ("threads", after.as_ref().map(Cursor::to_string)),
            Self::Memory(after) => ("memory", after.as_ref().map(Cursor::to_string)),
            Self::Audit(after) => ("audit", after.as_ref().map(Cursor::to_string)),
        };
        match after {
            Some(after) => write!(f, "{part}.{after}"),
            None => f.write_str(part),
        }
    }
}

impl FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const WRONG: &str = "is not a next_cursor of an earlier erasure";
        let (part, after) = text.split_once('.').map_or((text, None), |(part, after)| (part, Some(after)));
        if let "audit" | "memory" = part {
            let after = after.map(Cursor::parse).transpose().map_err(|_no_cursor| WRONG)?;
            return Ok(if part == "audit" { Self::Audit(after) } else { Self::Memory(after) });
        }
        let after = after.map(Cursor::parse).transpose().map_err(|_no_cursor| WRONG)?;
        match part {
            "calls" => Ok(Self::Calls(after)),
            "events" => Ok(Self::Events(after)),
            "runs" => Ok(Self::Runs(after)),
            "threads" => Ok(Self::Threads(after)),
            _ => Err(WRONG),
        }
    }
}

impl Erasure {
    pub fn new(database: &Database) -> Self {
        Self {
            calls: Calls::new(database),
            executions: Executions::new(database),
            runs: AutomationRuns::new(database),
            events: Events::new(database),
            memory: AutomationMemory::new(database),
            approvals: Approvals::new(database),
            threads: Threads::new(database),
            audit: AuditLog::new(database),
        }
    }

    /// # Errors
    /// [`Error::NotFound`] if the organization has neither, [`Error::Conflict`] if out of time; a repetition resumes.
    pub async fn call(&self, organization: OrganizationId, call: &CallId, deadline: Deadline) -> Result<Erased> {
        let mut erased = Erased::default();
        // Its events have copies, which a replay would send on.
        for event in [EventId::of_ended_call(organization, call), EventId::of_answered_call(organization, call)] {
            erased.events += u64::from(self.events.delete(organization, event).await?);
        }
        self.erase_executions(organization, call, deadline, &mut erased).await?.map_err(too_late)?;
        let deleted = self.calls.delete(organization, call).await?;
        erased.calls += u64::from(deleted && !call.is_provisional());
        if erased.calls == 0 && erased.executions > 0 {
            // The call has no row whose transaction could hold the entry.
            self.audit.note(Change::of(Act::Deleted, Noun::Call, call)).await?;
        }
        if erased == Erased::default() { Err(Error::NotFound("call")) } else { Ok(erased) }
    }

    /// Deletes a finished run, its steps and its executions.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization has no such run, [`Error::Conflict`] if it is not finished, or if out of time.
    pub async fn run(&self, organization: OrganizationId, run: RunId, deadline: Deadline) -> Result<Erased> {
        let mut erased = Erased::default();
        self.erase_run(organization, run, deadline, &mut erased).await?.map_err(too_late)?;
        Ok(erased)
    }

    /// Deletes all data of a number, starting at `from`: calls from and to it with their executions, executions for it in calls
    /// that only VAPI knows, executions addressed to it, and events, runs and threads that contain it.
    pub async fn number(
        &self,
        organization: OrganizationId,
        number: &E164,
        from: Option<ErasureCursor>,
        deadline: Deadline,
    ) -> Result<NumberErased> {
        let mut done = NumberErased {
            erased: Erased::default(),
            calls_under_way: Vec::new(),
            runs_under_way: Vec::new(),
            complete: false,
            next: None,
        };
        let (from, kept) = from.map_or((Place::Calls(None), false), |from| (from.place, from.kept));
        self.audit.note(Change::new(Act::Erased, Noun::Erasure)).await?;
        // One entry for all of it: entries of calls and runs would tell which ones were about the number.
        let erasing = acting(None, self.erase_number(organization, number, from, deadline, &mut done));
        let next = Box::pin(erasing).await?;
        let kept = kept || !done.calls_under_way.is_empty() || !done.runs_under_way.is_empty();
        done.complete = next.is_none() && !kept;
        done.next = next.map(|place| ErasureCursor { place, kept });
        Ok(done)
    }

    async fn erase_number(
        &self,
        organization: OrganizationId,
        number: &E164,
        mut next: Place,
        deadline: Deadline,
        done: &mut NumberErased,
    ) -> Result<Option<Place>> {
        // Queried on every pass: there may be new rows.
        for call in self.calls.of_caller(organization, number).await? {
            if let Err(OutOfTime) = self.erase_call_over(organization, call, deadline, done).await? {
                return Ok(Some(next));
            }
        }
        match self.executions.delete_of_number(organization, number, deadline).await? {
            Ok(executions) => done.erased.executions += executions,
            Err(OutOfTime) => return Ok(Some(next)),
        }
        loop {
            if deadline.remaining() < PART_NEEDS {
                return Ok(Some(next));
            }
            next = match &next {
                Place::Calls(after) => {
                    let (calls, following) = self.calls.calls_to_number(organization, number, after.as_ref()).await?;
                    for call in calls {
                        if let Err(OutOfTime) = self.erase_call_over(organization, call, deadline, done).await? {
                            return Ok(Some(next));
                        }
                    }
                    following.map_or(Place::Events(None), |after| Place::Calls(Some(after)))
                }
                Place::Events(after) => {
                    let (events, following) =
                        self.events.keys_mentioning(organization, number, after.as_ref(), EVENTS).await?;
                    let count = u64::try_from(events.len()).unwrap_or_default();
                    if let Err(OutOfTime) = self.events.table().delete_all(events, deadline).await? {
                        return Ok(Some(next));
                    }
                    done.erased.events += count;
                    following.map_or(Place::Runs(None), |after| Place::Events(Some(after)))
                }
                Place::Runs(after) => {
                    let (runs, following) = self.runs.listed(organization, after.as_ref(), RUNS).await?;
                    if let Err(OutOfTime) = self.erase_runs(organization, number, runs, deadline, done).await? {
                        return Ok(Some(next));
                    }
                    following.map_or(Place::Threads(None), |after| Place::Runs(Some(after)))
                }
                Place::Threads(after) => {
                    let (threads, following) = self.threads.listed(organization, after.as_ref(), RUNS).await?;
                    if let Err(OutOfTime) = self.erase_threads(organization, number, threads, deadline, done).await? {
                        return Ok(Some(next));
                    }
                    match following {
                        Some(after) => Place::Threads(Some(after)),
                        None => Place::Memory(None),
                    }
                }
                Place::Memory(after) => {
                    let (keys, following) =
                        self.memory.keys_mentioning(organization, number, after.as_ref(), EVENTS).await?;
                    let count = u64::try_from(keys.len()).unwrap_or_default();
                    if let Err(OutOfTime) = self.memory.table().delete_all(keys, deadline).await? {
                        return Ok(Some(next));
                    }
                    done.erased.remembered += count;
                    following.map_or(Place::Audit(None), |after| Place::Memory(Some(after)))
                }
                Place::Audit(after) => match self.audit.mask(organization, number, after.as_ref(), EVENTS).await? {
                    Some(after) => Place::Audit(Some(after)),
                    None => return Ok(None),
                },
            };
        }
    }

    async fn erase_runs(
        &self,
        organization: OrganizationId,
        number: &E164,
        runs: Vec<ListedRun>,
        deadline: Deadline,
        done: &mut NumberErased,
    ) -> Result<Result<(), OutOfTime>> {
        let read = async |run: ListedRun| {
            let named = self.runs.mentions(organization, run.id, number).await?
                || self.approvals.mention(organization, run.id, number).await?;
            Ok::<_, Error>((run, named))
        };
        let read: Vec<(ListedRun, bool)> =
            stream::iter(runs.into_iter().map(read)).buffered(BESIDE).try_collect().await?;
        for (run, named) in read {
            // An interrupted deletion may have removed the part that contained the number.
            if !named && !run.is_over() {
                continue;
            }
            let mut erased = Erased::default();
            match self.erase_run(organization, run.id, deadline, &mut erased).await {
                Ok(Err(out_of_time)) => return Ok(Err(out_of_time)),
                Err(Error::Conflict(_)) if named => done.runs_under_way.push(run.id),
                // Gone, or of no concern here: the run waits or was just deleted.
                Ok(Ok(())) | Err(Error::Conflict(_) | Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
            if named {
                done.erased.executions += erased.executions;
                done.erased.runs += erased.runs;
            }
        }
        Ok(Ok(()))
    }

    async fn erase_threads(
        &self,
        organization: OrganizationId,
        number: &E164,
        threads: Vec<ThreadId>,
        deadline: Deadline,
        done: &mut NumberErased,
    ) -> Result<Result<(), OutOfTime>> {
        for thread in threads {
            if deadline.remaining() < LAST_CALL {
                return Ok(Err(OutOfTime));
            }
            if !self.threads.mentions(organization, thread, number).await? {
                continue;
            }
            match self.threads.delete(organization, thread, deadline).await {
                Ok(()) => done.erased.threads += 1,
                // Being answered, or out of time: the next attempt finds it again.
                Err(Error::Conflict(_)) => return Ok(Err(OutOfTime)),
                Err(Error::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Ok(()))
    }

    /// The row of a call that goes on stays: VAPI's later messages about the call need it.
    async fn erase_call_over(
        &self,
        organization: OrganizationId,
        call: CallId,
        deadline: Deadline,
        done: &mut NumberErased,
    ) -> Result<Result<(), OutOfTime>> {
        if let Err(out_of_time) = self.erase_executions(organization, &call, deadline, &mut done.erased).await? {
            return Ok(Err(out_of_time));
        }
        match self.calls.delete_over(organization, &call).await? {
            WriteResult::Done(_) => done.erased.calls += u64::from(!call.is_provisional()),
            WriteResult::Refused(row) if is_of(&row, organization) && !done.calls_under_way.contains(&call) => {
                done.calls_under_way.push(call);
            }
            WriteResult::Refused(_) => {}
        }
        Ok(Ok(()))
    }

    async fn erase_executions(
        &self,
        organization: OrganizationId,
        call: &CallId,
        deadline: Deadline,
        erased: &mut Erased,
    ) -> Result<Result<(), OutOfTime>> {
        if deadline.remaining() < LAST_CALL {
            return Ok(Err(OutOfTime));
        }
        let deleted = self.executions.delete_of_call(organization, call, deadline).await?;
        Ok(deleted.map(|executions| erased.executions += executions))
    }

    /// # Errors
    /// [`Error::Conflict`] if another run has yet to take this run's result.
    async fn nobody_waits_for(&self, organization: OrganizationId, run: RunId) -> Result<()> {
        // A run marked for deletion is not found; its deletion continues.
        let run = found(self.runs.get(organization, run).await)?;
        let Some(parent) = run.and_then(|run| run.parent_run_id) else { return Ok(()) };
        match found(self.runs.get(organization, parent).await)? {
            Some(run) if !run.status.is_over() => Err(Error::Conflict(format!(
                "the run works for the run {parent}, which is not over; delete it when that one has ended, or cancel that one"
            ))),
            _ => Ok(()),
        }
    }

    async fn erase_run(
        &self,
        organization: OrganizationId,
        run: RunId,
        deadline: Deadline,
        erased: &mut Erased,
    ) -> Result<Result<(), OutOfTime>> {
        if deadline.remaining() < LAST_CALL {
            return Ok(Err(OutOfTime));
        }
        self.nobody_waits_for(organization, run).await?;
        let deletion = self.runs.begin_deletion(organization, run).await?;
        match self.executions.delete_of_run(organization, run, deadline).await? {
            Ok(executions) => erased.executions += executions,
            Err(out_of_time) => return Ok(Err(out_of_time)),
        }
        if let Err(out_of_time) = self.approvals.delete_of_run(organization, run, deadline).await? {
            return Ok(Err(out_of_time));
        }
        if let Err(out_of_time) = self.runs.delete(&deletion, deadline).await? {
            return Ok(Err(out_of_time));
        }
        erased.runs += 1;
        Ok(Ok(()))
    }
}

fn too_late(OutOfTime: OutOfTime) -> Error {
    Error::Conflict("not everything could be deleted in the time there was; send the request again".into())
}

/// Whether any item under this id contains the number, in a text or an attribute's name.
pub(super) async fn mentions(
    table: &Table,
    organization: OrganizationId,
    id: impl ToString,
    named: &E164,
) -> Result<bool> {
    let (mut found, mut theirs) = (false, false);
    let parts = table.query("#id = :id").now().with([(":id", text(id))]);
    parts
        .each_page(|page| {
            theirs = theirs || page.iter().any(|item| is_of(item, organization));
            found = found || page.iter().flat_map(Item::values).any(|value| names(value, named));
            Ok(())
        })
        .await?;
    Ok(found && theirs)
}

pub(super) fn names(value: &AttributeValue, number: &E164) -> bool {
    match value {
        AttributeValue::S(text) => redaction::mentions(text, number),
        AttributeValue::L(values) => values.iter().any(|value| names(value, number)),
        AttributeValue::M(members) => {
            members.iter().any(|(name, value)| redaction::mentions(name, number) || names(value, number))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_cursor_is_read_back() {
        let after: Cursor = Cursor::parse("MjAyNi0xMS0yMFQxNjoyMDo1Mi4xMjNaIGE").unwrap();
        for place in [
            Place::Calls(None),
            Place::Calls(Some(after.clone())),
            Place::Events(None),
            Place::Events(Some(after.clone())),
            Place::Runs(None),
            Place::Runs(Some(after.clone())),
            Place::Threads(Some(after)),
            Place::Audit(Some(Cursor("2026-11-20T16:20:52.123Z#7".to_owned()))),
        ] {
            for kept in [false, true] {
                let cursor = ErasureCursor { place: place.clone(), kept };
                assert_eq!(cursor.to_string().parse::<ErasureCursor>(), Ok(cursor));
            }
        }
        for wrong in ["", "tools", "runs.x", "runs.", "kept.", "kept.kept.runs"] {
            assert!(wrong.parse::<ErasureCursor>().is_err(), "{wrong}");
        }
    }
}
