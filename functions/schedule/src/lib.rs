//! SQS: occurrences of schedules, polls, events whose filters take long, replays of many events, and events of calls.
//!
//! `EventBridge` Scheduler sends occurrences, and `settle` the missing ones: `{organization_id, automation_id, scheduled_for}`.
//! `trigger` sends events whose filters take long: `{organization_id, event_id}`.
//! `hooks` sends replays of many events, and each batch the next one: `{organization_id, replay_id, batch}`.
//! `calls` sends ended calls, `{organization_id, call_id}`, and answered ones, `{organization_id, answered_call_id}`.
//! `execute`, `run-tool` and `mcp` send tools that failed in calls: `{organization_id, failed_execution_id}`.
//! `EventBridge` Scheduler sends runs whose pause is over: `{organization_id, run_id}`.
//!
//! Steps of an occurrence:
//!
//! 1. The schedule's row names the next occurrence; any other is stale and ignored.
//! 2. The run is started, once, because its id is derived from the occurrence. A polled source is asked for items instead, each
//!    of which starts a run (`poll.rs`).
//! 3. The rule gives the next occurrence. One-time schedules have none, even if their run fails.
//!
//! A redelivery or the sweep repeats the steps after a crash. An occurrence that needs a newer program stays due.

mod poll;

use std::time::Duration;

use serde_json::json;
use shared::{
    Deadline, Error, Result,
    automation::{
        AnsweredCalls, Definition, Deployment, Dispatch, EndedCalls, EventReplays, FailedTools, FailurePause, RunCause,
        RunStarter, ScheduleRule, Trigger, Triggers,
    },
    backoff::Backoff,
    error::{self, found},
    models::{Automation, AutomationStatus, Occurrence, RunTrigger, Schedule, Scheduled, Timestamp},
    platform::Parts,
    store::{Automations, Schedules},
};

#[derive(Parts)]
pub struct Deps {
    pub automations: Automations,
    pub schedules: Schedules,
    pub triggers: Triggers,
    pub starter: RunStarter,
    /// For polls.
    pub deployment: Deployment,
    pub watch: FailurePause,
    pub dispatch: Dispatch,
    pub event_replays: EventReplays,
    pub ended_calls: EndedCalls,
    pub answered_calls: AnsweredCalls,
    pub failed_tools: FailedTools,
}

/// Between tries during an outage of ours. A redelivery comes after nine minutes.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(15);

pub async fn handle(deps: &Deps, message: Scheduled, deadline: Deadline) -> Result<()> {
    let mut backoff = Backoff::at_most(3, PAUSE, LONGEST_PAUSE, deadline.at_most(TRIED_AGAIN_WITHIN));
    backoff.through_outages("a scheduled message", || Box::pin(take(deps, &message, deadline))).await
}

async fn take(deps: &Deps, message: &Scheduled, deadline: Deadline) -> Result<()> {
    match message {
        Scheduled::Occurrence(occurrence) => {
            let automation = occurrence.automation_id;
            match Box::pin(carry_out(deps, occurrence, deadline)).await {
                // The sweep queues it again; a dead letter for each repetition would bury the others.
                Err(unreadable @ Error::Unreadable { .. }) => {
                    let why = error::chain(&unreadable);
                    tracing::warn!(automation.id = %automation, "an occurrence waits for a newer version: {why}");
                    Ok(())
                }
                ended => ended,
            }
        }
        Scheduled::Event(event) => Box::pin(deps.dispatch.go_on(event, deadline)).await,
        Scheduled::Replay(replay) => Box::pin(deps.event_replays.go_on(replay, deadline)).await,
        Scheduled::EndedCall(call) => Box::pin(deps.ended_calls.dispatch(call, deadline)).await,
        Scheduled::AnsweredCall(call) => Box::pin(deps.answered_calls.dispatch(call)).await,
        Scheduled::FailedTool(failed) => Box::pin(deps.failed_tools.announce(failed, &deps.dispatch, deadline)).await,
        Scheduled::Run(run) => deps.starter.queue.wake(run.organization_id, run.run_id).await,
    }
}

async fn carry_out(deps: &Deps, occurrence: &Occurrence, deadline: Deadline) -> Result<()> {
    let Occurrence { organization_id, automation_id, scheduled_for } = *occurrence;
    let now = Timestamp::now();
    let schedule = deps.schedules.get(organization_id, automation_id).await?;
    let is_next = |schedule: &Schedule| schedule.due.is_some() && schedule.next_run_at == Some(scheduled_for);
    let Some(schedule) = schedule.filter(is_next) else {
        tracing::info!(automation.id = %automation_id, "an occurrence is out of date");
        return Ok(());
    };
    let automation = found(deps.automations.get(organization_id, automation_id).await)?;
    let runs = |automation: &Automation| {
        automation.status == AutomationStatus::Active && automation.active_version == Some(schedule.automation_version)
    };
    let Some(automation) = automation.filter(runs) else {
        // Its schedule does not show the change of the automation yet.
        return Box::pin(deps.triggers.update_schedule(organization_id, automation_id)).await;
    };
    let version = deps.automations.version(organization_id, automation_id, schedule.automation_version).await?;
    let definition = Definition::stored(&version)?;
    let Some(trigger) = &definition.trigger else { return Err(Error::internal("a version has no trigger")) };
    match (trigger, ScheduleRule::of(trigger)) {
        (_, Some(rule)) => {
            start(deps, &automation, trigger, scheduled_for).await?;
            let next = rule.next_after(now.max(scheduled_for));
            let schedule = Schedule { last_run_at: Some(scheduled_for), ..schedule };
            // It updates the occurrences itself.
            deps.triggers.arm(schedule, next, now).await.map(drop)
        }
        (Trigger::Polling(polling), None) => {
            let source = poll::Source { automation: &automation, version: &version, definition: &definition, polling };
            Box::pin(poll::poll(deps, &source, schedule, now, deadline)).await
        }
        _ => Box::pin(deps.triggers.update_schedule(organization_id, automation_id)).await,
    }
}

/// Starts the run of an occurrence, unless it was started before.
async fn start(deps: &Deps, automation: &Automation, trigger: &Trigger, scheduled_for: Timestamp) -> Result<()> {
    let trigger = match trigger {
        Trigger::ScheduleOnce { .. } => RunTrigger::ScheduleOnce,
        _ => RunTrigger::ScheduleRecurring,
    };
    let (key, data) = (format!("schedule {scheduled_for}"), json!({}));
    let cause = RunCause { scheduled_for: Some(scheduled_for), ..RunCause::new(trigger, &key, &data) };
    let (run, is_new) = Box::pin(deps.starter.start(automation, &cause)).await?;
    if is_new {
        tracing::info!(automation.id = %automation.id, run.id = %run.id, "a schedule started a run");
    }
    Ok(())
}
