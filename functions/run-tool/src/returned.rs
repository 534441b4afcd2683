//! Results of a call whose caller was transferred, and may return in another call.

use std::time::Duration;

use shared::{
    Deadline, Result,
    backoff::Backoff,
    models::{BackgroundResult, Call, CallId, Queued, ResultToTell, Timestamp},
    store::AddedToCall,
};

use crate::{
    Deps,
    after_call::{AfterCall, missed, send_after},
    context::{LONGEST_PAUSE, OVER, PAUSE, ROW_WITHIN},
};

const RETURNED: &str = "the caller is back in another call, which gets the result";
/// Longer than five destinations ring. A caller who speaks with one of them for longer gets the results by other means.
const RETURNS_WITHIN: Duration = Duration::from_secs(10 * 60);

/// The caller of a call that takes no more messages.
pub(crate) enum Caller {
    Gone,
    MayReturn,
    IsBackIn(CallId),
}

/// # Errors
/// An outage of the database.
pub(crate) async fn caller_of(deps: &Deps, call: &Call) -> Result<Caller> {
    let row = deps.calls.find_now(&call.id).await?.and_then(|row| row.for_owner(call.organization_id));
    let Some(transfer) = row.and_then(|row| row.transfer) else { return Ok(Caller::Gone) };
    let waits = transfer.returns && !transfer.is_over() && transfer.at.plus(RETURNS_WITHIN) > Timestamp::now();
    Ok(match transfer.returned_as {
        Some(next) => Caller::IsBackIn(next),
        None if waits => Caller::MayReturn,
        None => Caller::Gone,
    })
}

/// Has the results wait in `next`, the call in which the caller is back, and be sent if that call is over too.
///
/// # Errors
/// An outage of ours. Results that `next` has are not added again.
pub(crate) async fn pass_on(
    deps: &Deps,
    call: &Call,
    next: &CallId,
    results: &[ResultToTell],
    deadline: Deadline,
) -> Result<Vec<BackgroundResult>> {
    let mut outcomes = Vec::new();
    for result in results {
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline.at_most(ROW_WITHIN));
        let added = loop {
            match deps.calls.add_background(call.organization_id, next, result).await? {
                // The row is written beside the end of the transfer.
                AddedToCall::NoCall if backoff.pause().await => {}
                added => break added,
            }
        };
        outcomes.push(match added {
            AddedToCall::Waits | AddedToCall::Before => missed(AfterCall::Nothing, result, RETURNED),
            AddedToCall::Over | AddedToCall::NoCall => Box::pin(send_after(deps, call, result, OVER, deadline)).await,
        });
    }
    let due = Queued::ResultsDue { organization_id: call.organization_id, call_id: next.clone() };
    deps.executions.send(&due).await?;
    Ok(outcomes)
}
