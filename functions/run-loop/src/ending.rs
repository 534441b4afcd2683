//! The end of a run.

use shared::{
    Error, Result,
    automation::{end_pending_work, report_end},
    error,
    injection::{Ended, Ending},
    models::{AutomationRun, QueuedRun, RunStatus, Spent},
    store::{Lease, RunEnd},
};

use crate::{
    deps::Deps,
    journal::{Stop, UnsavedSteps},
};

/// Stores the end of a run. For a cancelled run, the run or approval that it waits for ends first, so that a crash cannot leave
/// it open. An agent started just before a crash finds out by itself (`waiting::parent_run_over`).
pub(crate) async fn end(
    deps: &Deps,
    run: &AutomationRun,
    lease: Lease,
    ending: &Ending,
    unsaved: Option<&UnsavedSteps>,
    spent: &Spent,
    outage: bool,
) -> Result<()> {
    if ending.status == RunStatus::Cancelled {
        end_pending_work(&deps.runs, &deps.approvals, run, run.cancelled_by.as_ref()).await?;
    } else {
        deps.runs.waits.forget(run.id, run.pause.as_ref()).await?;
    }
    let (status, result, error) = (ending.status, ending.result.as_ref(), ending.error.as_deref());
    let end = RunEnd { status, result, error, outage };
    if deps.runs.end(run, lease, &unsaved.map(UnsavedSteps::steps).unwrap_or_default(), spent, end).await? {
        report_end(run, status);
        wake_parent(deps, run).await;
    } else {
        report_lost(run);
    }
    Ok(())
}

/// Wakes the parent run. The parent also wakes by itself if this message fails.
async fn wake_parent(deps: &Deps, run: &AutomationRun) {
    let Some(parent) = run.parent_run_id else { return };
    let message = QueuedRun::new(run.organization_id, parent);
    if let Err(error) = deps.queue.send(&message).await {
        tracing::warn!(run.id = %parent, "a waiting run could not be woken: {}", error::chain(&error));
    }
}

/// The end or delay of a run after an error before its first step.
pub(crate) fn ended_by(run: &AutomationRun, error: Error) -> Ended<Stop> {
    if error.is_outage() {
        return Ended::Outage(error);
    }
    tracing::error!(run.id = %run.id, "a run cannot continue: {}", error::chain(&error));
    Ended::Over(Ending::failed(error.to_string()))
}

pub(crate) fn report_lost(run: &AutomationRun) {
    tracing::warn!(run.id = %run.id, "another process has taken over a run");
}
