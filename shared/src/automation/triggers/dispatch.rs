//! Dispatch: starts the runs of automations that listen to an event.
//!
//! The event is recorded first, under an id made of the hook and the service's own event id. Each run's id derives from
//! automation and event, so a retry starts nothing twice. Once all runs are started the row says so, and repeats of the event do
//! nothing.
//!
//! The service waits for an answer, and many automations or slow filters take long. Automations beyond a bound therefore wait in
//! the event's row; a message on the occurrence queue has `schedule` process them in batches.
//!
//! The row stays below DynamoDB's 400 KB: 200 KB of data, 40 KB of reasons, 140 bytes for each of [`MOST_LISTENERS`] automations
//! and 100 bytes for each of [`MOST_WOKE`] runs.

use std::{collections::BTreeSet, time::Duration};

use futures_util::{
    StreamExt,
    future::{BoxFuture, try_join_all},
    stream, try_join,
};
use serde_json::Value;

use super::matching::Matched;
use crate::{
    Deadline, Error, Result,
    automation::{
        EventFilters, RunCause, RunStarter,
        expressions::{data::Lowered, work::Work},
    },
    clients::Queue,
    cut,
    error::found,
    models::{
        Automation, AutomationId, AutomationStatus, Event, EventStatus, MatchedRun, OrganizationId, RunTrigger,
        Timestamp, Unmatched, WaitingEvent,
    },
    store::Events,
};

/// Bytes of JSON: the event's data must fit into the row of the event and of each run.
pub const LARGEST_DATA: usize = 200_000;
const BESIDE: usize = 8;
/// Automations that may listen to one event of an organization; more are refused at their activation.
pub(in crate::automation) const MOST_LISTENERS: usize = 1_000;
/// Automations that are tried before the service gets its answer.
const AT_THE_START: usize = 200;
/// Reasons kept for automations that did not run, bytes of each, and of all.
const MOST_REASONS: usize = 100;
pub(super) const LONGEST_REASON: usize = 1_000;
const REASONS: usize = 40_000;
/// Woken runs that are listed.
const MOST_WOKE: usize = 100;
/// By then, a dispatch is over or its process is dead.
const REPEATED_AFTER: Duration = Duration::from_secs(60);
/// Bytes that filters may compare before the service gets its answer: a fraction of a second on the smallest Lambda.
const BEFORE_THE_ANSWER: usize = 16 << 20;
/// Bytes per message of the queue, on which other messages wait.
const AT_ONCE: usize = 64 << 20;
/// Bytes for the filter of one automation.
const MOST_OF_ONE: usize = 1 << 30;
/// With less time left, the remaining automations wait for another message.
const LEAST_TIME: Duration = Duration::from_secs(15);
/// Between attempts at an unreadable row, and how long after its event an automation is tried.
const UNTIL_READABLE: Duration = Duration::from_secs(15 * 60);
const TRIED_FOR: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Clone)]
pub struct Dispatch {
    pub events: Events,
    pub filters: EventFilters,
    pub starter: RunStarter,
    pub waiting: Queue<WaitingEvent>,
}

/// Bytes for the filters of all waiting runs.
const MOST_OF_WAITS: usize = MOST_OF_ONE;

pub(super) enum Became {
    Run(MatchedRun),
    Nothing(Unmatched),
    Waits(AutomationId),
    PutOff(AutomationId),
    Woke(MatchedRun),
    /// The filter of a waiting run is evaluated later.
    WaitsForTurn,
}

/// An event with its data, and the remaining work for its filters.
pub(super) struct Held<'a> {
    pub(super) event: &'a Event,
    pub(super) data: &'a Lowered<'a>,
    pub(super) size: usize,
    pub(super) work: &'a Work,
}

impl Dispatch {
    pub const fn work() -> Work {
        Work::of(BEFORE_THE_ANSWER)
    }

    /// Starts the runs of an event; `only` restricts it to one automation. Filters beyond `work` wait for [`Dispatch::go_on`].
    ///
    /// # Errors
    /// If a look-up or a start failed; the service must send the event again.
    pub async fn begin(&self, event: &Event, data: &Value, only: Option<Automation>, work: &Work) -> Result<()> {
        let mut received_before = None;
        if let Some(earlier) = self.events.receive(event).await? {
            if earlier.status == EventStatus::Dispatched {
                return Ok(());
            }
            received_before = Some(earlier.created_at);
            if !earlier.waiting.is_empty() || earlier.has_waits {
                // The earlier message may have been lost.
                self.waiting.send(&WaitingEvent::of(&earlier)).await?;
                return Ok(());
            }
        }
        self.dispatch(event, data, only, work, received_before).await
    }

    /// Records an event that starts nothing, with the reason for the automation that it was sent to.
    ///
    /// # Errors
    /// An outage; the service must send the event again.
    pub async fn ignore(&self, event: &Event, automation: AutomationId, why: &str) -> Result<()> {
        if self.events.receive(event).await?.is_some_and(|earlier| earlier.status == EventStatus::Dispatched) {
            return Ok(());
        }
        let ignored = Unmatched { automation_id: automation, why: why.to_owned() };
        self.events.dispatched(event, &[], &[ignored]).await
    }

    /// As [`Dispatch::begin`], for an event that its service sends once: if this process dies, a message begins it again.
    ///
    /// # Errors
    /// If the event was not recorded, or its start failed; the message begins it again.
    pub async fn begin_sent_once(&self, event: &Event, data: &Value, work: &Work) -> Result<()> {
        self.waiting.send_later(&WaitingEvent::of(event), REPEATED_AFTER).await?;
        self.begin(event, data, None, work).await
    }

    /// Starts the runs of a recorded event. `received_before`: the time of its row, if it was delivered before.
    async fn dispatch(
        &self,
        event: &Event,
        data: &Value,
        only: Option<Automation>,
        work: &Work,
        received_before: Option<Timestamp>,
    ) -> Result<()> {
        let (mut listening, mut waits) = match only {
            Some(automation) => (vec![automation], Vec::new()),
            None => try_join!(self.listening(event.organization_id, event), self.waiting_runs(event))?,
        };
        // A run whose wait began after the event had come waits for another one.
        waits.retain(|wait| received_before.is_none_or(|received| received >= wait.created_at));
        let data = Lowered::of(data);
        let held = Held { event, data: &data, size: data.value().to_string().len(), work };
        let mut started: Vec<BoxFuture<'_, Result<Became>>> = Vec::with_capacity(listening.len());
        let later = listening.split_off(listening.len().min(AT_THE_START));
        for automation in &listening {
            started.push(Box::pin(self.start(&held, automation)));
        }
        for wait in &waits {
            started.push(Box::pin(self.wake(&held, wait)));
        }
        // An error is returned only after all automations were tried.
        let outcomes: Vec<_> = stream::iter(started).buffered(BESIDE).collect().await;
        let none = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let (matched, unmatched, waiting, woke) = none;
        let mut done = Event { matched, unmatched, waiting, woke, has_waits: false, ..event.clone() };
        let unreadable = listening.iter().map(|automation| put_off(event, automation.id));
        let unreadable = unreadable.chain(waits.iter().map(|_| Became::WaitsForTurn));
        for (outcome, unreadable) in outcomes.into_iter().zip(unreadable) {
            note(&mut done, if_readable(outcome)?.unwrap_or(unreadable));
        }
        done.waiting.extend(later.iter().map(|automation| automation.id));
        self.save(&done, Duration::ZERO).await
    }

    /// Processes waiting automations, as many as fit into one message; the rest waits for the next one.
    ///
    /// # Errors
    /// If a look-up or a start failed; the message must be delivered again.
    pub async fn go_on(&self, message: &WaitingEvent, deadline: Deadline) -> Result<()> {
        let WaitingEvent { organization_id, event_id } = *message;
        let event = found(self.events.get(organization_id, event_id).await)?;
        let Some(event) = event.filter(|event| event.status == EventStatus::Received) else { return Ok(()) };
        let content: Value = serde_json::from_str(&event.data).map_err(Error::internal)?;
        if event.waiting.is_empty() && !event.has_waits {
            // The process that received it died.
            return self.dispatch(&event, &content, None, &Work::of(AT_ONCE), Some(event.created_at)).await;
        }
        let (data, work, size) = (Lowered::of(&content), Work::of(AT_ONCE), event.data.len());
        let mut done = Event { waiting: Vec::new(), has_waits: false, ..event.clone() };
        let mut unreadable = Vec::new();
        if event.has_waits {
            self.wake_later(&Held { event: &event, data: &data, size, work: &Work::of(MOST_OF_WAITS) }, &mut done)
                .await?;
        }
        for (place, id) in event.waiting.iter().enumerate() {
            let late = place > 0 && deadline.remaining() < LEAST_TIME;
            let held = Held { event: &event, data: &data, size, work: &work };
            let became = if late { Ok(Became::Waits(*id)) } else { self.start_waiting(&held, *id, place == 0).await };
            let became = if_readable(became)?.unwrap_or_else(|| put_off(&event, *id));
            if let Became::PutOff(id) = became {
                unreadable.push(id);
                continue;
            }
            let stops = matches!(became, Became::Waits(_));
            note(&mut done, became);
            if stops {
                done.waiting.extend(event.waiting.iter().skip(place + 1));
                break;
            }
        }
        let pause = if done.waiting.is_empty() { UNTIL_READABLE } else { Duration::ZERO };
        done.waiting.append(&mut unreadable);
        self.save(&done, pause).await
    }

    async fn save(&self, done: &Event, pause: Duration) -> Result<()> {
        if done.waiting.is_empty() && !done.has_waits {
            return self.events.dispatched(done, &done.matched, &done.unmatched).await;
        }
        tracing::info!(event.id = %done.id, waiting = done.waiting.len(), "automations of an event are queued");
        self.events.waits(done).await?;
        Ok(self.waiting.send_later(&WaitingEvent::of(done), pause).await?)
    }

    /// Whether an automation, or a run that waits, listens to any of the event's names.
    ///
    /// # Errors
    /// If a look-up failed.
    pub async fn has_listeners(&self, event: &Event) -> Result<bool> {
        let (listening, waits) = try_join!(self.listening(event.organization_id, event), self.waiting_runs(event))?;
        Ok(!listening.is_empty() || !waits.is_empty())
    }

    /// The active automations that listen to any of the event's names, without duplicates.
    async fn listening(&self, organization: OrganizationId, event: &Event) -> Result<Vec<Automation>> {
        let keys = event.trigger_keys();
        let mut asked: Vec<BoxFuture<'_, Result<Vec<Automation>>>> = Vec::with_capacity(keys.len());
        for key in &keys {
            asked.push(Box::pin(self.filters.automations.listening(organization, key)));
        }
        let mut seen = BTreeSet::new();
        let found = try_join_all(asked).await?.into_iter().flatten();
        Ok(found.filter(|automation| seen.insert(automation.id)).collect())
    }

    /// Starts the run of a waiting automation. The first one of a message may use all of [`MOST_OF_ONE`].
    async fn start_waiting(&self, held: &Held<'_>, id: AutomationId, first: bool) -> Result<Became> {
        let nothing = |why: &str| Ok(Became::Nothing(Unmatched { automation_id: id, why: why.to_owned() }));
        let Some(automation) = found(self.filters.automations.get(held.event.organization_id, id).await)? else {
            return nothing("It was deleted before its turn.");
        };
        let keys = held.event.trigger_keys();
        if !automation.trigger_key.as_ref().is_some_and(|key| keys.contains(key)) {
            return nothing("It does not listen to this event any more.");
        }
        if held.event.in_part {
            return nothing(
                "Its filter was not evaluated: the event has more than 200 KB, and a run is given 200 KB at most.",
            );
        }
        if !first {
            return self.start(held, &automation).await;
        }
        match self.start(&Held { work: &Work::of(MOST_OF_ONE), ..*held }, &automation).await? {
            Became::Waits(_) => {
                let most = MOST_OF_ONE >> 20;
                nothing(&format!(
                    "Its filter was not evaluated: with this event it compares more than {most} MB. Use fewer clauses or values."
                ))
            }
            became => Ok(became),
        }
    }

    async fn start(&self, held: &Held<'_>, automation: &Automation) -> Result<Became> {
        let Held { event, data, size, work } = *held;
        let automation_id = automation.id;
        let nothing =
            |why: String| Ok(Became::Nothing(Unmatched { automation_id, why: cut::cut(why, LONGEST_REASON) }));
        match (automation.status, &automation.pause_reason) {
            (AutomationStatus::Active, _) => {}
            (AutomationStatus::Paused, Some(why)) => return nothing(format!("It is paused: {why}")),
            (AutomationStatus::Paused, None) => return nothing("It is paused; activate it to have it run.".to_owned()),
            (AutomationStatus::PendingReview, _) => return nothing("It is not active.".to_owned()),
        }
        let too_large = || format!("the event has {} KB, and a run is given 200 KB at most", size / 1_000);
        match self.filters.check(automation, data, work).await? {
            Matched::Yes if size > LARGEST_DATA => return nothing(format!("Its filter matched, but {}.", too_large())),
            Matched::Yes => {}
            Matched::No(why) => return nothing(why),
            // The event is too large for a run and is not kept whole, so a waiting filter could not read it.
            Matched::NotYet if size > LARGEST_DATA => {
                return nothing(format!("Its filter was not evaluated: {}.", too_large()));
            }
            Matched::NotYet => return Ok(Became::Waits(automation_id)),
        }
        let key = event.id.to_string();
        let cause = RunCause { event: Some(event.id), ..RunCause::new(RunTrigger::Webhook, &key, data.value()) };
        match self.starter.start(automation, &cause).await {
            Ok((run, _)) => Ok(Became::Run(MatchedRun { automation_id, run_id: run.id })),
            // A repeat of the event would fail in the same way.
            Err(error @ (Error::Conflict(_) | Error::OverBudget(_))) => nothing(format!("No run was begun: {error}.")),
            Err(error) => Err(error),
        }
    }
}

/// `None` for an unreadable row: it affects no other listener of the event.
pub(super) fn if_readable(outcome: Result<Became>) -> Result<Option<Became>> {
    match outcome {
        Err(unreadable @ Error::Unreadable { .. }) => {
            tracing::warn!("a listener of an event is put off: {unreadable}");
            Ok(None)
        }
        outcome => outcome.map(Some),
    }
}

pub(super) fn is_tried_again(event: &Event) -> bool {
    event.created_at.plus(TRIED_FOR) > Timestamp::now()
}

fn put_off(event: &Event, automation_id: AutomationId) -> Became {
    if is_tried_again(event) {
        return Became::PutOff(automation_id);
    }
    let why = "It cannot be read, so nothing was run. Save the automation again, then replay the event.".to_owned();
    Became::Nothing(Unmatched { automation_id, why })
}

fn reasons(event: &Event) -> usize {
    event.unmatched.iter().map(|unmatched| unmatched.why.len()).sum()
}

pub(super) fn note(event: &mut Event, became: Became) {
    match became {
        Became::Run(run) => event.matched.push(run),
        Became::Nothing(unmatched)
            if event.unmatched.len() < MOST_REASONS
                && reasons(event) + unmatched.why.len() <= REASONS
                && !event.unmatched.contains(&unmatched) =>
        {
            event.unmatched.push(unmatched);
        }
        Became::Waits(automation) | Became::PutOff(automation) => event.waiting.push(automation),
        Became::Woke(run) if event.woke.len() < MOST_WOKE && !event.woke.contains(&run) => event.woke.push(run),
        Became::Nothing(_) | Became::Woke(_) => {}
        Became::WaitsForTurn => event.has_waits = true,
    }
}
