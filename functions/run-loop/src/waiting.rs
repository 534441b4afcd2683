//! Whether what a run waits for has happened. Until then its messages are dropped: nothing is put on the queue for it.

use shared::{
    Error, Result,
    injection::Ending,
    models::{ApprovalStatus, AutomationRun, QueuedRun, Spent, Timestamp},
    store::{Lease, Saved, Waits},
};

use crate::{
    deps::Deps,
    ending::{end, report_lost},
    verdict::{LONGEST_PAUSE, Verdict, cancelled},
};

/// Lets a run go until `what` has happened.
pub(crate) async fn wait(
    deps: &Deps,
    run: &AutomationRun,
    lease: Lease,
    what: Waits,
    message: &QueuedRun,
    spent: &Spent,
) -> Result<()> {
    match deps.runs.wait(run, &lease, what).await? {
        Saved::Yes => {
            // What it waits for may have happened just before, and its message found the run still held.
            let waiting = deps.runs.get(run.organization_id, run.id).await?;
            if is_over(deps, &waiting, message).await? {
                deps.queue.send(message).await?;
            }
        }
        Saved::CancelRequested => {
            // The row does not say yet what it would have waited for.
            let (waits_for_approval, waits_for_run) = match what {
                Waits::ForApproval(approval, _) => (Some(approval), None),
                Waits::ForRun(child, _) => (None, Some(child)),
            };
            let run = AutomationRun { waits_for_approval, waits_for_run, ..run.clone() };
            end(deps, &run, lease, &cancelled(), None, spent, false).await?;
        }
        Saved::Lost => report_lost(run),
    }
    Ok(())
}

/// The end of a run that works for another one which is over: nobody would take its result.
pub(crate) async fn nobody_waits_for_it(deps: &Deps, run: &AutomationRun) -> Result<Option<Verdict>> {
    let Some(parent) = run.parent_run_id else { return Ok(None) };
    match deps.runs.get(run.organization_id, parent).await {
        Ok(parent) if !parent.status.is_over() => return Ok(None),
        Ok(_) | Err(Error::NotFound(_)) => {}
        Err(error) => return Err(error),
    }
    let error = Some("The run that it worked for is over.".to_owned());
    Ok(Some(Verdict::End(Ending { error, ..cancelled() }, None)))
}

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
