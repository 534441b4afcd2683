//! The end of a run: what ends with it, and how it is told.

use std::time::Duration;

use crate::{
    Error, Result,
    models::{ApprovalStatus, AutomationRun, RunStatus, Timestamp, UserId},
    store::{Approvals, AutomationRuns},
    telemetry,
};

/// Ends every approval that a cancelled run asked for, and the run that it waits for. `run` is the row as it was when it was
/// cancelled, for the index of approvals may be a moment behind.
///
/// # Errors
/// If something of it may still be open.
pub async fn end_what_it_waits_for(
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
    let Some(child) = run.waits_for_run else { return Ok(()) };
    match runs.cancel(organization, child, by).await {
        Ok(_) | Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Counts and logs a run that is over, with its last status.
pub fn report_end(run: &AutomationRun, status: RunStatus) {
    let took = Timestamp::now().as_millis() - run.created_at.as_millis();
    telemetry::automation_run(status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    tracing::info!(run.id = %run.id, run.status = status.as_str(), "a run is over");
}
