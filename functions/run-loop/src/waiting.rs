//! Whether what a run waits for has happened. Until then its messages are dropped: nothing is put on the queue for it.

use shared::{
    Error, Result,
    models::{ApprovalStatus, AutomationRun, QueuedRun, Timestamp},
};

use crate::{Deps, verdict::LONGEST_PAUSE};

/// True for a run that waits for nothing, too.
pub(crate) async fn is_over(deps: &Deps, run: &AutomationRun, message: &QueuedRun) -> Result<bool> {
    let organization = run.organization_id;
    if let Some(approval) = run.waits_for_approval {
        return match deps.approvals.get(organization, approval).await {
            Ok(approval) => Ok(approval.status_at(Timestamp::now()) != ApprovalStatus::Pending),
            // Nobody can decide it any more.
            Err(Error::NotFound(_)) => Ok(true),
            Err(error) => Err(error),
        };
    }
    let Some(child) = run.waits_for_run else { return Ok(true) };
    let over = match deps.runs.get(organization, child).await {
        Ok(child) => child.status.is_over(),
        Err(Error::NotFound(_)) => true,
        Err(error) => return Err(error),
    };
    if !over {
        // Its end wakes this run; this is for the case that it dies just then. It ends in a few hours at most.
        deps.queue.send_later(message, LONGEST_PAUSE).await?;
    }
    Ok(over)
}
