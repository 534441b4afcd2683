//! The end of a run: open approvals, metrics and log.

use std::time::Duration;

use crate::{
    Error, Result,
    models::{ApprovalStatus, AutomationRun, RunStatus, Timestamp, UserId},
    store::{Approvals, AutomationRuns},
    telemetry,
};

/// Cancels the approvals that a cancelled run requested, and the run it waits for; its wait for an event ends. `run` is the row from before the cancellation,
/// since the approval index may lag.
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
    let mut asked = approvals.pending_of_run(organization, run.id).await?;
    asked.extend(run.waits_for_approval.filter(|approval| !asked.contains(approval)));
    for approval in asked {
        approvals.end(organization, approval, ApprovalStatus::Cancelled).await?;
    }
    runs.waits.forget(run.id, run.pause.as_ref()).await?;
    let Some(child) = run.waits_for_run else { return Ok(()) };
    match runs.cancel(organization, child, by).await {
        Ok(_) | Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

pub fn report_end(run: &AutomationRun, status: RunStatus) {
    let took = Timestamp::now().as_millis() - run.created_at.as_millis();
    telemetry::automation_run(status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    tracing::info!(run.id = %run.id, run.status = status.as_str(), "a run is over");
}
