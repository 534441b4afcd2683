//! Whether what a run waits for has happened. Until then its messages are dropped: nothing is put on the queue for it.

use shared::{
    Error, Result, error,
    injection::Ending,
    models::{ApprovalStatus, AutomationRun, QueuedRun, RunId, RunStatus, Spent, Timestamp},
    store::{Lease, RunEnd, Saved, Waits},
};

use crate::{
    Deps, report_end, report_lost,
    verdict::{LONGEST_PAUSE, Verdict},
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
            let end = RunEnd { status: RunStatus::Cancelled, result: None, error: None, outage: false };
            let written = deps.runs.end(run, lease, None, spent, end).await?;
            end_what_it_waits_for(deps, run, what).await?;
            if written { report_end(run, RunStatus::Cancelled) } else { report_lost(run) }
        }
        Saved::Lost => report_lost(run),
    }
    Ok(())
}

async fn end_what_it_waits_for(deps: &Deps, run: &AutomationRun, what: Waits) -> Result<()> {
    match what {
        Waits::ForApproval(approval, _) => {
            deps.approvals.end(run.organization_id, approval, ApprovalStatus::Cancelled).await
        }
        Waits::ForRun(child, _) => cancel(deps, run, child).await,
    }
}

async fn cancel(deps: &Deps, run: &AutomationRun, child: RunId) -> Result<()> {
    match deps.runs.cancel(run.organization_id, child, run.cancelled_by.as_ref()).await {
        Ok(_) | Err(Error::Conflict(_) | Error::NotFound(_)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Ends what a run that was cancelled has asked and begun, as far as it is on its row or in an index. An agent that it began just
/// before it died finds out by itself ([`nobody_waits_for_it`]).
pub(crate) async fn end_what_it_began(deps: &Deps, run: &AutomationRun) -> Result<()> {
    for approval in deps.approvals.pending_of_run(run.organization_id, run.id).await? {
        deps.approvals.end(run.organization_id, approval, ApprovalStatus::Cancelled).await?;
    }
    match run.waits_for_run {
        Some(child) => cancel(deps, run, child).await,
        None => Ok(()),
    }
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
    Ok(Some(Verdict::End(Ending { status: RunStatus::Cancelled, result: None, error }, None)))
}

/// Has the run go on that waits for this one. It wakes by itself, too, if this cannot be told.
pub(crate) async fn wake_parent(deps: &Deps, run: &AutomationRun) {
    let Some(parent) = run.parent_run_id else { return };
    let message = QueuedRun { organization_id: run.organization_id, run_id: parent };
    if let Err(error) = deps.queue.send(&message).await {
        tracing::warn!(run.id = %parent, "a run that waits could not be told: {}", error::chain(&error));
    }
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
