//! Counters of limited actions, in the table `idempotency`. Key: id, one item per counter:
//!
//! - `quota#<organization>#<what>#call#<conversation>`: per call, run or thread;
//! - `quota#<organization>#<what>#minute#2026-11-20T16:05`: per clock minute, UTC;
//! - `quota#<organization>#<what>#hour#2026-11-20T16`: per clock hour, UTC;
//! - `quota#<organization>#<what>#day#2026-11-20`: per day, UTC;
//! - `quota#<organization>#<what>#day#2026-11-20#<hash>`: per day and person.
//!
//! `<what>` is a tool's id, or `runs:<automation>` and the like ([`Counted`]). Hours are fixed, not sliding: one conditional
//! write per counter, at the price that twice the limit may run around a full hour. Two counters are one transaction, so an
//! execution refused by one limit does not consume the other. `last` is the last counted execution. TTL on `expires_at`; keys are not reused
//! after that.

use std::{fmt, time::Duration};

use futures_util::future::join_all;
use uuid::Uuid;

use super::{
    database::{Database, Item, id, number, text},
    table::Table,
    write::{Refused, Write, WriteResult, transact},
};
use crate::{
    Deadline, Result,
    backoff::Backoff,
    models::{AutomationId, HookId, Limit, Limits, OrganizationId, PhoneNumberId, Timestamp, ToolId},
};

/// Longer than any call lasts.
const CALL_KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// Since the last effect: in between a run may wait for people, and a thread lasts 90 days.
const RUN_KEPT: Duration = Duration::from_secs(100 * 24 * 60 * 60);
/// A minute and the difference of clocks.
const MINUTE_KEPT: Duration = Duration::from_secs(60 * 60);
/// An hour and the difference of clocks.
const HOUR_KEPT: Duration = Duration::from_secs(2 * 60 * 60);
const DAY_KEPT: Duration = Duration::from_secs(25 * 60 * 60);

/// Concurrent transactions on the same item refuse each other and must retry.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// Reserved for the execution itself.
const RESERVE: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Quotas {
    table: Table,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    Tool(ToolId),
    PlacedCalls,
    PlacedCallsOf(PhoneNumberId),
    Runs(AutomationId),
    DryRuns,
    /// Actions of an automation with an external effect.
    Effects(AutomationId),
    /// Messages to people from an automation.
    Messages(AutomationId),
    /// Events of an organization's own hook.
    EventsOf(HookId),
    /// Comparisons of an agent's words with the receipt of its call.
    ClaimChecks,
    /// Events about failures of a tool in calls.
    FailuresOf(ToolId),
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(tool) => tool.fmt(f),
            Self::PlacedCalls => f.write_str("placed-calls"),
            Self::PlacedCallsOf(number) => write!(f, "placed-calls:{number}"),
            Self::Runs(automation) => write!(f, "runs:{automation}"),
            Self::DryRuns => f.write_str("dry-runs"),
            Self::Effects(automation) => write!(f, "effects:{automation}"),
            Self::Messages(automation) => write!(f, "messages:{automation}"),
            Self::EventsOf(hook) => write!(f, "events:{hook}"),
            Self::ClaimChecks => f.write_str("claim-checks"),
            Self::FailuresOf(tool) => write!(f, "failures:{tool}"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window<'a> {
    Call(&'a str),
    /// A run or a thread: it may go on after weeks.
    Run(&'a str),
    Minute,
    Hour,
    Day,
    /// A person's day, by a hash.
    DayOf(&'a str),
}

#[derive(Debug)]
pub enum Room {
    Taken(Taken),
    None(Limit),
}

impl Room {
    pub const fn free() -> Self {
        Self::Taken(Taken { execution: String::new(), counts: Vec::new() })
    }
}

#[derive(Debug)]
pub struct Taken {
    execution: String,
    counts: Vec<Count>,
}

#[derive(Debug, Clone)]
struct Count {
    id: String,
    limit: Limit,
    most: u32,
    kept: Duration,
}

impl Quotas {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("idempotency") }
    }

    /// Counts an execution of the tool if all its limits leave room, in one round trip. Without `conversation` the execution is
    /// one of its own.
    ///
    /// # Errors
    /// If the available room is unknown.
    pub async fn take(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        conversation: Option<Window<'_>>,
        limits: Limits,
        deadline: Deadline,
    ) -> Result<Room> {
        let of_call = conversation.zip(limits.per_call);
        let of_hour = limits.per_hour.map(|most| (Window::Hour, most));
        let windows: Vec<_> = of_call.into_iter().chain(of_hour).collect();
        let wanted: Vec<_> = windows.iter().map(|&(window, most)| (Counted::Tool(tool), window, most)).collect();
        self.take_each(organization, &wanted, None, deadline).await
    }

    /// Counts one more of each, with its window and limit, if all leave room, in one round trip. A repetition of the last
    /// counted `name` is not counted again.
    ///
    /// # Errors
    /// If the available room is unknown.
    pub async fn take_each(
        &self,
        organization: OrganizationId,
        wanted: &[(Counted, Window<'_>, u32)],
        name: Option<&str>,
        deadline: Deadline,
    ) -> Result<Room> {
        let now = Timestamp::now();
        let count = |&(counted, window, most): &(Counted, Window<'_>, u32)| {
            let (limit, name, kept) = match window {
                Window::Call(name) => (Limit::PerCall, format!("call#{name}"), CALL_KEPT),
                Window::Run(name) => (Limit::PerCall, format!("call#{name}"), RUN_KEPT),
                Window::Minute => (Limit::PerMinute, format!("minute#{}", now.minute()), MINUTE_KEPT),
                Window::Hour => (Limit::PerHour, format!("hour#{}", now.hour()), HOUR_KEPT),
                Window::Day => (Limit::PerDay, format!("day#{}", now.day()), DAY_KEPT),
                Window::DayOf(person) => (Limit::PerPersonAndDay, format!("day#{}#{person}", now.day()), DAY_KEPT),
            };
            Count { id: format!("quota#{organization}#{counted}#{name}"), limit, most, kept }
        };
        let counts: Vec<Count> = wanted.iter().map(count).collect();
        let execution = name.map_or_else(|| Uuid::new_v4().to_string(), str::to_owned);
        let refused = match counts.as_slice() {
            [] => None,
            [count] => match self.count(count, &execution, now).attempt().await? {
                WriteResult::Refused(found) if found.get("last") != Some(&text(&execution)) => Some(count.limit),
                WriteResult::Refused(_) | WriteResult::Done(_) => None,
            },
            _ => self.count_all(counts.clone(), &execution, now, deadline.reserving(RESERVE)).await?,
        };
        Ok(refused.map_or(Room::Taken(Taken { execution, counts }), Room::None))
    }

    /// Gives back the room of an execution that did not begin. The same execution may take room again.
    pub async fn release(&self, taken: Taken) -> Result<()> {
        let Taken { execution, counts } = &taken;
        let given = counts.iter().map(|count| self.release_one(count, execution));
        join_all(given).await.into_iter().collect()
    }

    async fn release_one(&self, count: &Count, execution: &str) -> Result<()> {
        let given = self
            .less(count, ", #last = :released")
            .when("#count > :zero AND #last = :execution")
            .with([(":execution", text(execution)), (":released", text(released(execution)))]);
        match given.attempt().await? {
            WriteResult::Done(_) => Ok(()),
            // The SDK sent the update again after a lost answer.
            WriteResult::Refused(found) if found.get("last") == Some(&text(released(execution))) => Ok(()),
            // Others were counted since.
            WriteResult::Refused(_) => self.less(count, "").when("#count > :zero").unless_refused().await.map(drop),
        }
    }

    fn less(&self, count: &Count, change: &str) -> Write {
        let less = self.table.update(id(&count.id), format!("SET #count = #count - :one{change}"));
        less.with([(":one", number(1)), (":zero", number(0))])
    }

    fn count(&self, count: &Count, execution: &str, now: Timestamp) -> Write {
        self.table
            .update(
                id(&count.id),
                "SET #count = if_not_exists(#count, :zero) + :one, #last = :execution, #expires_at = :expires_at",
            )
            // When the SDK resends an update after a lost answer, it must not count twice.
            .when("attribute_not_exists(#count) OR (#count < :most AND #last <> :execution)")
            .with([
                (":zero", number(0)),
                (":one", number(1)),
                (":most", number(count.most.into())),
                (":execution", text(execution)),
                (":expires_at", number(now.plus(count.kept).as_seconds())),
            ])
    }

    async fn count_all(
        &self,
        mut counts: Vec<Count>,
        execution: &str,
        now: Timestamp,
        deadline: Deadline,
    ) -> Result<Option<Limit>> {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        loop {
            let writes = counts.iter().map(|count| self.count(count, execution, now)).collect();
            match transact(writes).await {
                Ok(()) => return Ok(None),
                Err(Refused::Condition(place)) => {
                    let rest = match self.left_to_count(&counts, execution).await? {
                        Some(rest) if rest.len() < counts.len() => rest,
                        _ => return Ok(counts.get(place).map(|count| count.limit)),
                    };
                    if rest.is_empty() {
                        return Ok(None);
                    }
                    counts = rest;
                }
                Err(Refused::Busy(_)) if backoff.pause().await => {}
                Err(Refused::Busy(error) | Refused::Other(error)) => return Err(error),
            }
        }
    }

    /// The counters at which an execution gave its room back, if it has room at one of the others; else `None`. Room is taken at
    /// all counters together, but may be given back at some of them only.
    async fn left_to_count(&self, counts: &[Count], execution: &str) -> Result<Option<Vec<Count>>> {
        let found = counts.iter().map(|count| self.table.item(id(&count.id), true));
        let found = join_all(found).await.into_iter().collect::<Result<Vec<_>>>()?;
        let last = |name: &str| {
            let name = text(name);
            move |row: &Option<Item>| row.as_ref().and_then(|row| row.get("last")) == Some(&name)
        };
        if !found.iter().any(last(execution)) {
            return Ok(None);
        }
        let gave_back = last(&released(execution));
        let rest = counts.iter().zip(&found).filter(|(_, row)| gave_back(row)).map(|(count, _)| count.clone());
        Ok(Some(rest.collect()))
    }
}

/// `last` of a counter at which the last counted execution gave its room back.
fn released(execution: &str) -> String {
    format!("released {execution}")
}
