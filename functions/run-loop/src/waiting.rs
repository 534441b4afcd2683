//! Whether the wait of a run is over: its approval, its agent, its pause or its event.
//!
//! Messages of a waiting run are dropped. A paused run gets a delayed message or a schedule for the end of its pause; a
//! run waiting for an agent gets a delayed message, in case the agent cannot wake it.

use std::time::Duration;

use shared::{
    Error, Result,
    automation::EventToAwait,
    error::found,
    injection::Ending,
    models::{ApprovalStatus, Automation, AutomationRun, CameEvent, EventWait, QueuedRun, RunPause, Spent, Timestamp},
    store::{EventWaits, Lease, Saved, Waits},
};

use crate::{
    child_run::keep_waiting,
    deps::Deps,
    ending::{end, report_lost},
    verdict::{LONGEST_PAUSE, Verdict, cancelled},
};

/// Of a wait for an event, beyond its end.
const KEPT_BEYOND: Duration = Duration::from_secs(24 * 60 * 60);

/// Releases the run until `what` has happened.
pub(crate) async fn wait(
    deps: &Deps,
    run: &AutomationRun,
    lease: Lease,
    what: Waits,
    message: &QueuedRun,
    spent: &Spent,
) -> Result<()> {
    match deps.runs.wait(run, &lease, &what).await? {
        Saved::Yes => {
            // The event may have happened just before, and its message found the run still leased.
            let waiting = deps.runs.get(run.organization_id, run.id).await?;
            if is_over(deps, &waiting, message).await? {
                deps.queue.send(message).await?;
            }
        }
        Saved::CancelRequested => {
            // The row does not name the approval or agent yet.
            let (waits_for_approval, waits_for_run, pause) = match what {
                Waits::ForApproval(approval, _) => (Some(approval), None, None),
                Waits::ForRun(child, _) => (None, Some(child), None),
                Waits::ForTime(pause) => (None, None, Some(pause)),
            };
            let run = AutomationRun { waits_for_approval, waits_for_run, pause, ..run.clone() };
            end(deps, &run, lease, &cancelled(), None, spent, false).await?;
        }
        Saved::Lost => report_lost(run),
    }
    Ok(())
}

/// Has a run woken at the end of its pause. The next message makes a lost schedule anew, as in a new stack.
async fn wake_at_end(deps: &Deps, message: &QueuedRun, pause: &RunPause, left: Duration) -> Result<()> {
    if left <= LONGEST_PAUSE {
        return Ok(deps.queue.send_later(message, left).await?);
    }
    // Schedules live in one group, and a run may pause many times.
    let name = format!("run-{}-{}", message.run_id, pause.until.as_seconds());
    Ok(deps.scheduler.send_at(&name, pause.until, message).await?)
}

/// Has events wake the run, before the run lets go. Returns the pause, with the name of the event.
pub(crate) async fn begin_to_await(
    deps: &Deps,
    run: &AutomationRun,
    pause: RunPause,
    awaited: EventToAwait,
) -> Result<RunPause> {
    let Some(automation_id) = run.automation_id else {
        return Err(Error::internal("a run that waits for an event names no automation"));
    };
    let EventToAwait { service, event_type, filter, filled } = awaited;
    let trigger_key = Automation::trigger_key_of(run.organization_id, &service, &event_type);
    let wait = EventWait {
        trigger_key: trigger_key.clone(),
        place: EventWaits::place(run.id, &pause.place),
        organization_id: run.organization_id,
        run_id: run.id,
        automation_id,
        filter,
        filled,
        until: pause.until,
        taken_by: None,
        created_at: Timestamp::now(),
        expires_at: pause.until.plus(KEPT_BEYOND).as_seconds(),
    };
    let begun = deps.runs.waits.begin(wait).await?;
    Ok(RunPause { trigger_key: Some(trigger_key), since: begun.created_at, until: begun.until, ..pause })
}

async fn event_came(deps: &Deps, run: &AutomationRun) -> Result<bool> {
    let Some(pause) = run.pause.as_ref().filter(|pause| pause.trigger_key.is_some()) else { return Ok(false) };
    Ok(deps.runs.waits.came(run.id, pause).await?.is_some())
}

/// Takes the event of the run's pause. At the end of the pause the wait is given up, unless an event came just then.
pub(crate) async fn event_of_pause(deps: &Deps, run: &AutomationRun) -> Result<Option<CameEvent>> {
    let Some(pause) = run.pause.as_ref().filter(|pause| pause.trigger_key.is_some()) else { return Ok(None) };
    let waits = &deps.runs.waits;
    let mut came = waits.came(run.id, pause).await?;
    if came.is_none() && pause.until <= Timestamp::now() && !waits.give_up(run.id, pause).await? {
        came = waits.came(run.id, pause).await?;
    }
    if came.is_some() {
        waits.forget(run.id, Some(pause)).await?;
    }
    Ok(came)
}

/// The verdict on an agent whose parent run is over: its result has no taker.
pub(crate) async fn parent_run_over(deps: &Deps, run: &AutomationRun) -> Result<Option<Verdict>> {
    let Some(parent) = run.parent_run_id else { return Ok(None) };
    let parent = found(deps.runs.get(run.organization_id, parent).await)?;
    if parent.is_some_and(|parent| !parent.status.is_over()) {
        return Ok(None);
    }
    let error = Some("The run that it worked for is over.".to_owned());
    Ok(Some(Verdict::End(Ending { error, ..cancelled() }, None)))
}

/// The rest of a pause, in whole seconds; `None` at its end.
fn left_of(pause: &RunPause, now: Timestamp) -> Option<Duration> {
    let left = u64::try_from(pause.until.as_millis() - now.as_millis()).ok().filter(|left| *left > 0)?;
    Some(Duration::from_secs(left.div_ceil(1_000)))
}

/// Also true for a run that waits for nothing.
pub(crate) async fn is_over(deps: &Deps, run: &AutomationRun, message: &QueuedRun) -> Result<bool> {
    let organization = run.organization_id;
    if let Some(pause) = &run.pause
        && let Some(left) = left_of(pause, Timestamp::now())
        && !event_came(deps, run).await?
    {
        wake_at_end(deps, message, pause, left).await?;
        return Ok(false);
    }
    if let Some(approval) = run.waits_for_approval {
        let approval = found(deps.approvals.get(organization, approval).await)?;
        // A deleted approval cannot be decided.
        return Ok(approval.is_none_or(|approval| approval.status_at(Timestamp::now()) != ApprovalStatus::Pending));
    }
    let Some(child) = run.waits_for_run else { return Ok(true) };
    match found(deps.runs.get(organization, child).await)? {
        Some(child) if !child.status.is_over() => {
            // Its end wakes this run; this message covers a crash just then.
            deps.queue.send_later(message, LONGEST_PAUSE).await?;
            keep_waiting(deps, run, &child).await?;
            Ok(false)
        }
        _ => Ok(true),
    }
}
