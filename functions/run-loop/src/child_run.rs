//! Runs that an action starts and waits for without cost: those of an agent, and those of another automation.

use std::time::Duration;

use serde_json::Value;
use shared::{
    Result,
    automation::PlannedAction,
    error::found,
    injection::{AUTOMATION_ID, CALL_AUTOMATION, Ended, LLM_AGENT},
    models::{ActionResult, AutomationId, AutomationRun, QueuedRun, RunId, RunStatus, Spent, Timestamp, WholeRun},
    store::Waits,
    tool::ToolOutcome,
};

use crate::{
    deps::{Deps, Held},
    journal::{Came, Stop},
};

/// Added to the time limit of a called automation; the end of the wait is moved while it pauses longer.
const PAUSES: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether the action is a run of its own.
pub(crate) fn is_child_run(tool: &str) -> bool {
    [LLM_AGENT, CALL_AUTOMATION].contains(&tool)
}

/// The run that an action starts and waits for.
#[derive(Clone, Copy)]
pub(crate) struct Started {
    pub(crate) child: RunId,
    /// The automation of the child.
    pub(crate) automation: AutomationId,
    /// This run, or the first of its chain of retries: a retry meets the run that the first one started.
    pub(crate) claimed_by: RunId,
}

impl Started {
    /// The same at every visit of the action. `None` if its arguments name no automation. In a retry, a child that never began
    /// does not count.
    pub(crate) async fn by(held: Held<'_>, planned: &PlannedAction<'_>, claimed_by: RunId) -> Result<Option<Self>> {
        let Held { deps, run, .. } = held;
        let automation = if planned.tool == LLM_AGENT { run.automation_id } else { called_by(planned) };
        let Some(automation) = automation else { return Ok(None) };
        let under = |claimed_by| {
            let child = RunId::of_cause(run.organization_id, automation, &cause(planned, claimed_by));
            Self { child, automation, claimed_by }
        };
        let first = under(claimed_by);
        if claimed_by == run.id {
            return Ok(Some(first));
        }
        match found(deps.runs.get(run.organization_id, first.child).await)? {
            Some(earlier) if earlier.status.is_over() && earlier.started_at.is_none() => Ok(Some(under(run.id))),
            _ => Ok(Some(first)),
        }
    }
}

/// The idempotency key of an action's run.
pub(crate) fn cause(planned: &PlannedAction<'_>, claimed_by: RunId) -> String {
    format!("agent:{claimed_by}:{}", planned.id)
}

/// The automation that an action runs.
fn called_by(planned: &PlannedAction<'_>) -> Option<AutomationId> {
    planned.arguments.get(AUTOMATION_ID)?.as_str()?.trim().parse().ok()
}

/// The run of an action.
pub(crate) enum Child {
    /// It is over.
    Over(Box<WholeRun>),
    /// The action goes on later, or has failed.
    Instead(Came),
    NotStarted,
}

/// Looks for the run `child` of an action. What it cost counts for this run, too.
pub(crate) async fn look_for(
    held: Held<'_>,
    planned: &PlannedAction<'_>,
    child: RunId,
    spent: &mut Spent,
) -> Result<Child> {
    let Held { deps, run, .. } = held;
    match found(deps.runs.get(run.organization_id, child).await)? {
        Some(found) if found.status.is_over() => {
            let whole = deps.runs.whole(run.organization_id, child).await?;
            *spent += whole.run.spent;
            Ok(Child::Over(Box::new(whole)))
        }
        Some(found) => Ok(Child::Instead(wait_for(held, &found).await?)),
        // It had begun and may have had effects, so it is not started again.
        None if run.waits_for_run == Some(child) => {
            let why = format!("The run {child} was deleted before its result was taken.");
            Ok(Child::Instead(Came::Continue(Box::new(planned.failed(why, Timestamp::now())))))
        }
        None => Ok(Child::NotStarted),
    }
}

/// Whether the action's run is over: its result is taken even after the end of the run's time.
pub(crate) async fn is_over(held: Held<'_>, child: RunId) -> Result<bool> {
    let run = found(held.deps.runs.get(held.run.organization_id, child).await)?;
    Ok(run.is_some_and(|run| run.status.is_over()))
}

/// Sends the message of the action's run again, in case it was lost; a duplicate is harmless.
pub(crate) async fn wait_for(held: Held<'_>, child: &AutomationRun) -> Result<Came> {
    if child.status == RunStatus::Queued {
        let message = QueuedRun::new(child.organization_id, child.id);
        held.deps.queue.send(&message).await?;
    }
    Ok(Came::Break(Ended::Stopped(Stop::Waits(Waits::ForRun(child.id, end_of_wait(held.run, child))))))
}

/// Waiting takes no time from later actions. A called automation may pause, which an agent does not: see [`keep_waiting`].
fn end_of_wait(run: &AutomationRun, child: &AutomationRun) -> Timestamp {
    let pauses = if child.automation_id == run.automation_id { Duration::ZERO } else { PAUSES };
    Timestamp::now().plus(Duration::from_secs(child.limits.seconds) + pauses)
}

/// Moves the end of a wait for a called automation that pauses longer.
pub(crate) async fn keep_waiting(deps: &Deps, run: &AutomationRun, child: &AutomationRun) -> Result<()> {
    let until = end_of_wait(run, child);
    let near = run.time_from.is_none_or(|end| end.plus(PAUSES / 2) < until);
    if child.automation_id == run.automation_id || !near {
        return Ok(());
    }
    deps.runs.extend_wait(run, child.id, until).await
}

/// The result of an action whose run is over. `outcome`: its output, or why there is none.
pub(crate) fn result(
    planned: &PlannedAction<'_>,
    run: &AutomationRun,
    outcome: std::result::Result<Value, String>,
) -> ActionResult {
    let started_at = run.started_at.unwrap_or(run.created_at);
    let took = run.finished_at.unwrap_or(run.updated_at).as_millis() - started_at.as_millis();
    let finished = match outcome {
        Ok(output) => planned.finished(&ToolOutcome::succeeded(output), false, started_at),
        Err(why) => planned.failed(why, started_at),
    };
    let duration_ms = u64::try_from(took).unwrap_or_default();
    // Its tools may have acted, unless it never began.
    let had_no_effect = run.started_at.is_none();
    ActionResult { attempts: 1, duration_ms, outage: run.outage, had_no_effect, ..finished }
}
