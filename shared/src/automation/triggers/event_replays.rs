//! Replays of many events: planned in a request, carried out in batches from a queue.
//!
//! A run's id derives from its event and the replay, so a batch that is delivered again starts nothing twice. Progress is saved
//! before the message of the next batch is sent. Batches are small and apart, and a replay uses a part of each automation's
//! `runs_per_hour`: new events, and runs of other organizations, go on beside it.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    time::Duration,
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
    error::found,
    models::{
        Automation, AutomationId, AutomationStatus, Event, EventStatus, HookId, Member, QueuedReplay, Replay,
        ReplayFailure, ReplayFilter, ReplayId, ReplayPosition, ReplayProgress, ReplayStatus, ReplayWait,
        ReplayedAutomation, RunId, RunStatus, RunTrigger, SkipReason, Timestamp, UserId,
    },
    store::{Events, Hooks, Replays},
};

pub const MOST_REPLAYED: u32 = 10_000;
/// How long a plan may be started.
const PLAN_LASTS: Duration = Duration::from_secs(60 * 60);
/// Time reserved for the answer of a plan.
const ANSWERING: Duration = Duration::from_secs(5);
/// Automations and failures shown.
const MOST_SHOWN: usize = 100;
const MOST_FAILURES_SHOWN: usize = 20;
const BATCH: u32 = 20;
/// Events read at once for a batch, and reads of one batch: most events may be of other services.
const PAGE: i32 = 25;
const PAGES: usize = 40;
const PACE: Duration = Duration::from_secs(5);
/// In units of [`EventReplays::pace`]: while earlier runs have yet to begin.
const BACKLOG_PAUSES: u32 = 6;
/// After this delay another delivery takes over from a batch whose next message may be lost.
const TAKEN_FOR_LOST: Duration = Duration::from_secs(60);
/// With less time left, the remaining events wait for the next batch.
const LEAST_TIME: Duration = Duration::from_secs(15);
/// Bytes that filters may compare: in a plan, and with one event.
const WORK: usize = 64 << 20;

/// The cause of a replayed event's run: `key` is the request's or the replay's.
#[derive(Debug)]
pub struct ReplayCause<'a> {
    pub event: &'a Event,
    pub data: &'a Value,
    pub user: &'a UserId,
    key: String,
}

impl<'a> ReplayCause<'a> {
    pub fn new(event: &'a Event, data: &'a Value, user: &'a UserId, key: &str) -> Self {
        Self { event, data, user, key: format!("replay:{}:{key}", event.id) }
    }

    pub fn of(&self, automation: &Automation, dry_run: bool) -> RunCause<'_> {
        let version = Some(automation.active_version.unwrap_or(automation.version));
        let cause = RunCause::new(RunTrigger::Replay, &self.key, self.data);
        RunCause { event: Some(self.event.id), user: Some(self.user), version, dry_run, ..cause }
    }
}

#[derive(Clone)]
pub struct EventReplays {
    pub replays: Replays,
    pub events: Events,
    pub hooks: Hooks,
    pub filters: EventFilters,
    pub starter: RunStarter,
    pub queue: Queue<QueuedReplay>,
    pub kept: Duration,
    pub most: u32,
    pub pace: Duration,
}

/// Rows read by a walk over events.
#[derive(Default)]
struct Known {
    /// `None`: deleted.
    automations: HashMap<AutomationId, Option<Automation>>,
    hooks: HashMap<HookId, Audience>,
}

/// Which automations may have the events of a hook.
#[derive(Clone, Copy)]
enum Audience {
    All,
    One(AutomationId),
    /// The hook was deleted.
    Unknown,
}

enum Verdict {
    Start(Box<Automation>),
    /// With the automation's name.
    Skip(SkipReason, Option<String>),
}

/// Of one event.
#[derive(Default)]
struct Outcome {
    started: Vec<RunId>,
    skipped: Vec<SkipReason>,
    failed: Vec<ReplayFailure>,
}

enum Carried {
    Out(Outcome),
    /// The automation has no room this hour.
    Full(Box<Automation>),
}

impl EventReplays {
    pub fn new(
        replays: Replays,
        events: Events,
        hooks: Hooks,
        filters: EventFilters,
        starter: RunStarter,
        queue: Queue<QueuedReplay>,
    ) -> Self {
        let kept = starter.history;
        Self { replays, events, hooks, filters, starter, queue, kept, most: MOST_REPLAYED, pace: PACE }
    }

    /// Counts the events and the runs that they would start.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the organization does not have the filter's automation.
    pub async fn plan(&self, member: &Member, filter: ReplayFilter, deadline: Deadline) -> Result<Replay> {
        let (now, organization_id) = (Timestamp::now(), member.organization_id);
        let trigger_key = match filter.automation_id {
            Some(id) => self.filters.automations.get(organization_id, id).await?.trigger_key,
            None => None,
        };
        let mut replay = Replay {
            id: ReplayId::generate(),
            organization_id,
            filter,
            trigger_key,
            events: 0,
            runs: 0,
            automations: Vec::new(),
            bounded: false,
            progress: ReplayProgress::default(),
            skipped: BTreeMap::new(),
            failures: Vec::new(),
            waits: None,
            after: None,
            batch: 0,
            next_at: None,
            last_runs: Vec::new(),
            created_by: member.user_id.clone(),
            created_at: now,
            start_before: now.plus(PLAN_LASTS),
            started_by: None,
            started_at: None,
            finished_at: None,
            cancelled_by: None,
            cancelled_at: None,
            expires_at: now.plus(self.kept).as_seconds(),
        };
        self.count(&mut replay, deadline).await?;
        self.replays.create(&replay).await?;
        tracing::info!(replay.id = %replay.id, events = replay.events, runs = replay.runs, "a replay was planned");
        Ok(replay)
    }

    async fn count(&self, replay: &mut Replay, deadline: Deadline) -> Result<()> {
        let (mut known, work) = (Known::default(), Work::of(WORK));
        let mut automations: BTreeMap<AutomationId, ReplayedAutomation> = BTreeMap::new();
        let (mut after, mut last) = (None, None);
        'walk: loop {
            let (events, next) = self.events.in_order(replay.organization_id, &replay.filter, after, None).await?;
            for (event, wanted) in self.wanted(replay, &mut known, events, deadline).await? {
                // Events of one millisecond stay together: the bound is a time.
                if replay.events >= self.most && last.is_some_and(|last| last < event.created_at) {
                    (replay.bounded, replay.filter.until) = (true, event.created_at);
                    break 'walk;
                }
                last = Some(event.created_at);
                replay.events += 1;
                let data: Value = serde_json::from_str(&event.data).unwrap_or_default();
                let data = Lowered::of(&data);
                for id in wanted {
                    let verdict = self.verdict(replay, &mut known, &event, &data, id, &work).await;
                    let planned = automations.entry(id).or_insert_with(|| ReplayedAutomation::none(id));
                    let (name, skipped) = match verdict {
                        Ok(Verdict::Start(automation)) => (Some(automation.name), None),
                        // The filter is evaluated when the event has its turn.
                        Ok(Verdict::Skip(SkipReason::FilterTooLarge, name)) => (name, None),
                        Ok(Verdict::Skip(reason, name)) => (name, Some(reason.sentence().to_owned())),
                        Err(error @ Error::Unreadable { .. }) => (planned.name.take(), Some(error.to_string())),
                        Err(error) => return Err(error),
                    };
                    planned.name = name;
                    if skipped.is_some() {
                        planned.skipped += 1;
                        planned.why = skipped;
                    } else {
                        planned.runs += 1;
                        replay.runs += 1;
                    }
                }
            }
            let Some(position) = next else { break };
            if deadline.remaining() < ANSWERING {
                let seen = position.created_at.plus(Duration::from_millis(1));
                (replay.bounded, replay.filter.until) = (true, seen);
                break;
            }
            after = next;
        }
        replay.automations = automations.into_values().collect();
        replay.automations.sort_by_key(|planned| std::cmp::Reverse(planned.runs + planned.skipped));
        replay.automations.truncate(MOST_SHOWN);
        Ok(())
    }

    /// Starts a planned replay; sends the message of a running one again.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it cannot run, or if another replay of the organization runs.
    pub async fn start(&self, member: &Member, id: ReplayId) -> Result<Replay> {
        let mut replay = self.replays.get(member.organization_id, id).await?;
        if replay.status(Timestamp::now()) == ReplayStatus::Planned {
            if let Some(other) = self.replays.running(member.organization_id, id).await? {
                let problem = format!("the replay {other} is running; start this one when it has ended, or cancel it");
                return Err(Error::Conflict(problem));
            }
            replay = self.replays.start(&replay, &member.user_id).await?;
            tracing::info!(replay.id = %id, events = replay.events, "a replay was started");
        }
        match replay.status(Timestamp::now()) {
            ReplayStatus::Running => self.send(&replay).await.map(|()| replay),
            ReplayStatus::Cancelled => Err(Error::Conflict("the replay was cancelled; plan it again".into())),
            ReplayStatus::Completed => Err(Error::Conflict("the replay is completed; plan it again".into())),
            ReplayStatus::Planned | ReplayStatus::Expired => {
                Err(Error::Conflict("the plan has expired; plan it again".into()))
            }
        }
    }

    /// Cancels a replay; the batch under way ends first. Its runs go on.
    ///
    /// # Errors
    /// [`Error::Conflict`] if it is completed or expired.
    pub async fn cancel(&self, member: &Member, id: ReplayId) -> Result<Replay> {
        let replay = self.replays.get(member.organization_id, id).await?;
        let replay = match replay.status(Timestamp::now()) {
            ReplayStatus::Planned | ReplayStatus::Running => self.replays.cancel(&replay, &member.user_id).await?,
            _ => replay,
        };
        match replay.status(Timestamp::now()) {
            ReplayStatus::Cancelled => Ok(replay),
            ReplayStatus::Expired => Err(Error::Conflict("the plan has expired, so nothing is left to cancel".into())),
            _ => Err(Error::Conflict("the replay is completed, so nothing is left to cancel".into())),
        }
    }

    /// Carries out the batch of a message.
    ///
    /// # Errors
    /// The message must be delivered again.
    pub async fn go_on(&self, message: &QueuedReplay, deadline: Deadline) -> Result<()> {
        let Some(replay) = found(self.replays.get(message.organization_id, message.replay_id).await)? else {
            return Ok(());
        };
        let now = Timestamp::now();
        if replay.status(now) != ReplayStatus::Running {
            return Ok(());
        }
        let next_at = replay.next_at.unwrap_or(now);
        let due = match replay.batch.checked_sub(message.batch) {
            Some(0) => next_at,
            // Its batch is saved; the message of the next one was sent, or lost in a crash.
            Some(1) => next_at.plus(TAKEN_FOR_LOST),
            _ => return Ok(()),
        };
        if due > now {
            return self.send_at(message, due).await;
        }
        let seen = replay.batch;
        let replay = self.next_batch(replay, deadline).await?;
        if !self.replays.save(&replay, seen).await? {
            // Another delivery saved the batch, or this one did and the SDK repeated the update after a lost answer. A second message
            // of the next batch is harmless, and none would leave the replay as it is.
            let saved = found(self.replays.get(message.organization_id, message.replay_id).await)?;
            let next = saved.filter(|saved| saved.batch == seen + 1 && saved.status(now) == ReplayStatus::Running);
            return match next {
                Some(saved) => self.send(&saved).await,
                None => Ok(()),
            };
        }
        if replay.finished_at.is_some() {
            tracing::info!(replay.id = %replay.id, events = replay.progress.events, "a replay is completed");
            return Ok(());
        }
        self.send(&replay).await
    }

    async fn next_batch(&self, mut replay: Replay, deadline: Deadline) -> Result<Replay> {
        replay.batch += 1;
        replay.waits = None;
        if self.has_backlog(&replay, deadline).await? {
            let until = Timestamp::now().plus(self.pace * BACKLOG_PAUSES);
            let why = "Most runs of the last events have yet to begin; the replay continues by itself.".to_owned();
            return Ok(Replay {
                next_at: Some(until),
                waits: Some(ReplayWait { until, automation_id: None, why }),
                ..replay
            });
        }
        replay.last_runs.clear();
        let (mut known, mut done) = (Known::default(), 0);
        for _ in 0..PAGES {
            let (organization, after) = (replay.organization_id, replay.after);
            let (events, next) = self.events.in_order(organization, &replay.filter, after, Some(PAGE)).await?;
            for (event, wanted) in self.wanted(&replay, &mut known, events, deadline).await? {
                if done == BATCH || (done > 0 && deadline.remaining() < LEAST_TIME) {
                    return Ok(Replay { next_at: Some(Timestamp::now().plus(self.pace)), ..replay });
                }
                match self.carry_out(&replay, &mut known, &event, wanted).await? {
                    Carried::Out(outcome) => note(&mut replay, outcome),
                    Carried::Full(automation) => {
                        let until = Timestamp::now().next_hour();
                        let most = automation.quotas.runs_per_hour;
                        let why = format!(
                            "The automation has started {} of its {most} runs an hour, the share of a replay; the replay continues by itself.",
                            share(&automation)
                        );
                        let wait = ReplayWait { until, automation_id: Some(automation.id), why };
                        return Ok(Replay { next_at: Some(until), waits: Some(wait), ..replay });
                    }
                }
                replay.after = Some(ReplayPosition { created_at: event.created_at, id: event.id });
                done += 1;
            }
            if next.is_none() {
                let gone = replay.events.saturating_sub(replay.progress.events);
                if gone > 0 {
                    *replay.skipped.entry(SkipReason::EventGone.as_str().to_owned()).or_default() += gone;
                    replay.progress.skipped += gone;
                }
                replay.finished_at = Some(Timestamp::now());
                return Ok(replay);
            }
            replay.after = next;
        }
        Ok(Replay { next_at: Some(Timestamp::now().plus(self.pace)), ..replay })
    }

    /// Whether most runs of the last batch are still queued.
    async fn has_backlog(&self, replay: &Replay, deadline: Deadline) -> Result<bool> {
        if replay.last_runs.is_empty() {
            return Ok(false);
        }
        let runs = &self.starter.queue.runs;
        let statuses = runs.last_statuses(replay.organization_id, &replay.last_runs, deadline).await?;
        let queued = statuses.values().filter(|status| **status == RunStatus::Queued).count();
        Ok(queued * 2 > replay.last_runs.len())
    }

    async fn carry_out(
        &self,
        replay: &Replay,
        known: &mut Known,
        event: &Event,
        wanted: Vec<AutomationId>,
    ) -> Result<Carried> {
        let mut outcome = Outcome::default();
        let failure = |automation_id, why: String| ReplayFailure { event_id: event.id, automation_id, why };
        let Ok(content) = serde_json::from_str::<Value>(&event.data) else {
            let why = || "The stored event cannot be read.".to_owned();
            outcome.failed = wanted.into_iter().map(|id| failure(id, why())).collect();
            return Ok(Carried::Out(outcome));
        };
        let data = Lowered::of(&content);
        let user = replay.started_by.as_ref().unwrap_or(&replay.created_by);
        let key = replay.id.to_string();
        let cause = ReplayCause::new(event, &content, user, &key);
        for id in wanted {
            let automation = match self.verdict(replay, known, event, &data, id, &Work::of(WORK)).await {
                Ok(Verdict::Start(automation)) => automation,
                Ok(Verdict::Skip(reason, _)) => {
                    outcome.skipped.push(reason);
                    continue;
                }
                Err(error @ Error::Unreadable { .. }) => {
                    outcome.failed.push(failure(id, error.to_string()));
                    continue;
                }
                Err(error) => return Err(error),
            };
            match self.starter.start_below(&automation, &cause.of(&automation, false), share(&automation)).await {
                Ok(Some(run)) => outcome.started.push(run.id),
                Ok(None) | Err(Error::OverBudget(_)) => return Ok(Carried::Full(automation)),
                Err(error @ (Error::Conflict(_) | Error::NotFound(_) | Error::Invalid(_))) => {
                    outcome.failed.push(failure(id, format!("No run was begun: {error}.")));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Carried::Out(outcome))
    }

    /// The covered events, each with the automations that get it.
    async fn wanted(
        &self,
        replay: &Replay,
        known: &mut Known,
        events: Vec<Event>,
        deadline: Deadline,
    ) -> Result<Vec<(Event, Vec<AutomationId>)>> {
        let Replay { organization_id, filter, .. } = replay;
        // Until its dispatch is over, a redelivery by its service or a queue may still start its runs.
        let covered = |event: &Event| {
            event.status == EventStatus::Dispatched
                && event.waiting.is_empty()
                && (!filter.unmatched || event.matched.is_empty())
        };
        let events: Vec<Event> = events.into_iter().filter(covered).collect();
        let statuses = if filter.only_failed {
            let runs: Vec<RunId> = events.iter().flat_map(|event| &event.matched).map(|run| run.run_id).collect();
            self.starter.queue.runs.last_statuses(*organization_id, &runs, deadline).await?
        } else {
            HashMap::new()
        };
        let failed = |run: &RunId| !filter.only_failed || statuses.get(run).is_some_and(|status| has_failed(*status));
        let mut wanted = Vec::new();
        for event in events {
            let before: BTreeSet<AutomationId> = event
                .matched
                .iter()
                .filter(|matched| failed(&matched.run_id))
                .map(|matched| matched.automation_id)
                .collect();
            let automations = match filter.automation_id {
                None => before.into_iter().collect(),
                Some(id) if before.contains(&id) => vec![id],
                Some(id) if !filter.only_failed && self.listens(replay, known, &event, id).await? => vec![id],
                Some(_) => Vec::new(),
            };
            if !automations.is_empty() {
                wanted.push((event, automations));
            }
        }
        Ok(wanted)
    }

    /// Whether the event has the name that the chosen automation listened to, and came by a hook that it gets events from.
    async fn listens(&self, replay: &Replay, known: &mut Known, event: &Event, id: AutomationId) -> Result<bool> {
        if !replay.trigger_key.as_ref().is_some_and(|key| event.trigger_keys().contains(key)) {
            return Ok(false);
        }
        // An event of our own is for every automation.
        let Some(hook) = event.hook_id else { return Ok(true) };
        let audience = match known.hooks.get(&hook) {
            Some(audience) => *audience,
            None => match found(self.hooks.get(replay.organization_id, hook).await)? {
                Some(hook) => hook.automation_id.map_or(Audience::All, Audience::One),
                None => Audience::Unknown,
            },
        };
        known.hooks.insert(hook, audience);
        Ok(match audience {
            Audience::All => true,
            Audience::One(only) => only == id,
            Audience::Unknown => false,
        })
    }

    /// Its filter counts unless the event started it before.
    async fn verdict(
        &self,
        replay: &Replay,
        known: &mut Known,
        event: &Event,
        data: &Lowered<'_>,
        id: AutomationId,
        work: &Work,
    ) -> Result<Verdict> {
        if let Entry::Vacant(unknown) = known.automations.entry(id) {
            unknown.insert(found(self.filters.automations.get(replay.organization_id, id).await)?);
        }
        let Some(automation) = known.automations.get(&id).and_then(Option::as_ref) else {
            return Ok(Verdict::Skip(SkipReason::AutomationDeleted, None));
        };
        let skip = |reason| Ok(Verdict::Skip(reason, Some(automation.name.clone())));
        if automation.status != AutomationStatus::Active {
            return skip(SkipReason::AutomationInactive);
        }
        if event.in_part {
            return skip(SkipReason::StoredInPart);
        }
        if !event.matched.iter().any(|matched| matched.automation_id == id) {
            match self.filters.check(automation, data, work).await? {
                Matched::Yes => {}
                Matched::No(_) => return skip(SkipReason::Filter),
                Matched::NotYet => return skip(SkipReason::FilterTooLarge),
            }
        }
        Ok(Verdict::Start(Box::new(automation.clone())))
    }

    async fn send(&self, replay: &Replay) -> Result<()> {
        let message =
            QueuedReplay { organization_id: replay.organization_id, replay_id: replay.id, batch: replay.batch };
        self.send_at(&message, replay.next_at.unwrap_or_else(Timestamp::now)).await
    }

    async fn send_at(&self, message: &QueuedReplay, at: Timestamp) -> Result<()> {
        let left = at.as_millis().saturating_sub(Timestamp::now().as_millis());
        let delay = Duration::from_millis(left.try_into().unwrap_or_default());
        let sent = self.queue.send_later(message, delay).await;
        sent.map_err(|error| Error::Unavailable("the queue of replays", Box::new(error)))
    }
}

fn note(replay: &mut Replay, outcome: Outcome) {
    let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
    let progress = &mut replay.progress;
    progress.events += 1;
    progress.started += count(outcome.started.len());
    progress.skipped += count(outcome.skipped.len());
    progress.failed += count(outcome.failed.len());
    for reason in outcome.skipped {
        *replay.skipped.entry(reason.as_str().to_owned()).or_default() += 1;
    }
    replay.last_runs.extend(outcome.started);
    let room = MOST_FAILURES_SHOWN.saturating_sub(replay.failures.len());
    replay.failures.extend(outcome.failed.into_iter().take(room));
}

/// The runs an hour up to which a replay starts more.
const fn share(automation: &Automation) -> u32 {
    let most = automation.quotas.runs_per_hour;
    most - most / 4
}

/// Also a run that ended at a limit; a cancelled one was ended by a user.
const fn has_failed(status: RunStatus) -> bool {
    status.is_over() && !matches!(status, RunStatus::Completed | RunStatus::Cancelled)
}
