//! The event `call.ended` of the service `Calls`: a call is over, with its receipt.
//!
//! The message waits until VAPI's report came and the tools of the call are over, at most [`MOST_WAITS`] times. The event's id is
//! derived from the call's, so a repeated message starts nothing twice. Without an automation that listens, nothing is recorded.
//!
//! The message also ends a transfer about which Twilio made no request.

use std::time::Duration;

use serde_json::{Value, json};

use super::dispatch::{Dispatch, LARGEST_DATA};
use crate::{
    Deadline, Result,
    clients::Queue,
    cut,
    error::found,
    models::{
        Call, ClaimCheck, ClaimCheckStatus, E164, EndedCall, Event, EventId, ReturningTransfer, Timestamp,
        TransferOutcome,
    },
    receipts::{CallReceipt, Receipts},
    store::Calls,
};

/// The service of the events of calls and text messages, folded.
pub const CALLS: &str = "calls";
const EVENT_TYPE: &str = "call.ended";
/// Until the executions are recorded and, as a rule, VAPI's report has come.
const AFTER_THE_END: Duration = Duration::from_secs(20);
const WAIT: Duration = Duration::from_secs(60);
const MOST_WAITS: u32 = 5;
/// Assistants may send no report.
const MOST_WAITS_FOR_REPORT: u32 = 2;
/// Twilio requests the TwiML of a moved line at once.
const REQUESTED_WITHIN: Duration = Duration::from_secs(2 * 60);

/// Announces ended calls to [`EndedCalls`].
#[derive(Clone)]
pub struct EndedCallQueue(Queue<EndedCall>);

impl EndedCallQueue {
    pub const fn new(queue: Queue<EndedCall>) -> Self {
        Self(queue)
    }

    pub async fn announce(&self, call: &Call) -> Result<()> {
        let message = EndedCall {
            organization_id: call.organization_id,
            call_id: call.id.clone(),
            waits: 0,
            unrequested_transfer: call.transfer.as_ref().is_some_and(ReturningTransfer::is_unrequested),
        };
        Ok(self.0.send_later(&message, AFTER_THE_END).await?)
    }
}

#[derive(Clone)]
pub struct EndedCalls {
    pub(crate) calls: Calls,
    pub(crate) receipts: Receipts,
    pub(crate) dispatch: Dispatch,
    pub(crate) queue: EndedCallQueue,
    pub(crate) kept: Duration,
}

impl EndedCalls {
    /// # Errors
    /// If a look-up or a start failed; the message must be delivered again.
    pub async fn dispatch(&self, message: &EndedCall, deadline: Deadline) -> Result<()> {
        let EndedCall { organization_id, call_id, waits, unrequested_transfer } = message;
        let later = EndedCall { waits: waits + 1, ..message.clone() };
        if *unrequested_transfer && !self.end_unrequested_transfer(message).await? {
            return Ok(self.queue.0.send_later(&later, WAIT).await?);
        }
        let mut event = self.event(message);
        if !self.dispatch.has_listeners(&event).await? {
            return Ok(());
        }
        let Some(record) = found(self.receipts.record(*organization_id, call_id).await)? else {
            // It was deleted.
            return Ok(());
        };
        // An end that could not be saved is announced again when VAPI repeats its report.
        let Some(call) = record.call.as_ref().filter(|call| call.ended_at.is_some()) else { return Ok(()) };
        // The report has the cost, and the words of a person who wants no more calls.
        if call.cost_at.is_none() && *waits < MOST_WAITS_FOR_REPORT {
            return Ok(self.queue.0.send_later(&later, WAIT).await?);
        }
        let receipt = self.receipts.receipt(*organization_id, &record, deadline).await?;
        let checking = |check: &ClaimCheck| check.status == ClaimCheckStatus::Checking;
        if (!receipt.is_final() || call.claim_check.as_ref().is_some_and(checking)) && *waits < MOST_WAITS {
            return Ok(self.queue.0.send_later(&later, WAIT).await?);
        }
        let data = cut::fit(content(call, &receipt), LARGEST_DATA);
        event.data = data.to_string();
        Box::pin(self.dispatch.begin(&event, &data, None, &Dispatch::work())).await
    }

    /// False: Twilio may still make its request.
    async fn end_unrequested_transfer(&self, message: &EndedCall) -> Result<bool> {
        let EndedCall { organization_id, call_id, .. } = message;
        let call = self.calls.find_now(call_id).await?.and_then(|call| call.for_owner(*organization_id));
        let transfer = call.and_then(|call| call.transfer).filter(ReturningTransfer::is_unrequested);
        let Some(mut transfer) = transfer else { return Ok(true) };
        let now = Timestamp::now();
        if transfer.at.plus(REQUESTED_WITHIN) > now {
            return Ok(false);
        }
        transfer.end(TransferOutcome::Failed, now, None);
        self.calls.note_transfer_progress(*organization_id, call_id, &transfer, 0).await.map(|_noted| true)
    }

    fn event(&self, message: &EndedCall) -> Event {
        let id = EventId::of_ended_call(message.organization_id, &message.call_id);
        Event::of_ours(id, message.organization_id, CALLS, EVENT_TYPE, self.kept)
    }
}

/// The placeholder of a withheld number looks like a number.
fn caller(call: &Call) -> &str {
    let caller = call.from_number();
    let withheld = caller.parse().is_ok_and(|number: E164| number.is_withheld());
    if withheld { "anonymous" } else { caller }
}

/// The other party, in both directions.
fn person(call: &Call) -> Option<E164> {
    call.caller_phone_number.parse().ok().filter(|number: &E164| !number.is_withheld())
}

/// As `infra/catalogue/calls.json` describes it.
fn content(call: &Call, receipt: &CallReceipt) -> Value {
    json!({
        "call": {
            "id": call.id,
            "direction": call.direction,
            "agent_id": call.agent_id,
            "caller_phone_number": caller(call),
            "called_phone_number": call.to_number(),
            "person_phone_number": person(call),
            "created_at": call.created_at,
            "ended_at": call.ended_at,
            "ended_reason": call.ended_reason,
            "duration_seconds": call.duration_seconds,
            "cost": call.cost,
            "failed_tools": call.failed_executions.len(),
            "unproven_claims": call.claim_check.as_ref().map(|check| check.unproven.len()),
            "returned_as": call.transfer.as_ref().and_then(|transfer| transfer.returned_as.as_ref()),
            "returned_from": call.returned_from,
        },
        "receipt": receipt,
    })
}
