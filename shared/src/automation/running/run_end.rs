//! The end of a run: open approvals, metrics and log.

use std::time::Duration;

use crate::{
    Error, Result,
    error::found,
    models::{ApprovalStatus, AutomationRun, RunId, RunStatus, Timestamp, UserId},
    store::{Approvals, AutomationRuns},
    telemetry,
};

/// Cancels the approvals that a cancelled run requested, and the run it waits for with everything below it; the wait for an event
/// ends. `run` is the row from before the cancellation, since the approval index may lag.
///
/// # Errors
/// If an approval or a run may still be open.
pub async fn end_pending_work(
    runs: &AutomationRuns,
    approvals: &Approvals,
    run: &AutomationRun,
    by: Option<&UserId>,
) -> Result<()> {
    let organization = run.organization_id;
    let mut child = end_own_work(runs, approvals, run).await?;
    while let Some(id) = child {
        let cancelled = match found(runs.cancel(organization, id, by).await) {
            Ok(Some(run)) if run.status.is_over() => {
                report_end(&run, run.status);
                run
            }
            // A running one ends the work below it itself.
            Ok(_) => return Ok(()),
            // An earlier attempt may have ended here.
            Err(Error::Conflict(_)) => match found(runs.get(organization, id).await)? {
                Some(run) if run.status == RunStatus::Cancelled => run,
                Some(run) if !run.status.is_over() => {
                    return Err(Error::Conflict(format!("the run {id} is just being taken up; try again")));
                }
                _ => return Ok(()),
            },
            Err(error) => return Err(error),
        };
        child = end_own_work(runs, approvals, &cancelled).await?;
    }
    Ok(())
}

/// Returns the run that this one waits for.
async fn end_own_work(runs: &AutomationRuns, approvals: &Approvals, run: &AutomationRun) -> Result<Option<RunId>> {
    let organization = run.organization_id;
    let mut asked = approvals.pending_of_run(organization, run.id).await?;
    asked.extend(run.waits_for_approval.filter(|approval| !asked.contains(approval)));
    for approval in asked {
        approvals.end(organization, approval, ApprovalStatus::Cancelled).await?;
    }
    runs.waits.forget(run.id, run.pause.as_ref()).await?;
    Ok(run.waits_for_run)
}

pub fn report_end(run: &AutomationRun, status: RunStatus) {
    let took = Timestamp::now().as_millis() - run.created_at.as_millis();
    telemetry::automation_run(status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    tracing::info!(run.id = %run.id, run.status = status.as_str(), "a run is over");
}
