//! The event `call.answered` of the service `Calls`: a call that a tool placed was answered, by a person or a machine.
//!
//! The event's id is derived from the call's, so a repeated message starts nothing twice. Without an automation that listens,
//! nothing is recorded.

use std::time::Duration;

use serde_json::{Value, json};

use super::{dispatch::Dispatch, ended_calls::CALLS};
use crate::{
    Result,
    clients::Queue,
    models::{AnsweredCall, Call, Event, EventId, Unowned},
    store::Calls,
};

const EVENT_TYPE: &str = "call.answered";
/// Until the answer is saved.
const AFTER_THE_ANSWER: Duration = Duration::from_secs(1);

/// Announces answered calls to [`AnsweredCalls`].
#[derive(Clone)]
pub struct AnsweredCallQueue(Queue<AnsweredCall>);

impl AnsweredCallQueue {
    pub const fn new(queue: Queue<AnsweredCall>) -> Self {
        Self(queue)
    }

    pub async fn announce(&self, call: &Call) -> Result<()> {
        let message = AnsweredCall { organization_id: call.organization_id, answered_call_id: call.id.clone() };
        Ok(self.0.send_later(&message, AFTER_THE_ANSWER).await?)
    }
}

#[derive(Clone)]
pub struct AnsweredCalls {
    pub(crate) calls: Calls,
    pub(crate) dispatch: Dispatch,
    pub(crate) kept: Duration,
}

impl AnsweredCalls {
    /// # Errors
    /// If a look-up or a start failed; the message must be delivered again.
    pub async fn dispatch(&self, message: &AnsweredCall) -> Result<()> {
        let AnsweredCall { organization_id, answered_call_id } = message;
        let id = EventId::of_answered_call(*organization_id, answered_call_id);
        let mut event = Event::of_ours(id, *organization_id, CALLS, EVENT_TYPE, self.kept);
        if !self.dispatch.has_listeners(&event).await? {
            return Ok(());
        }
        let call =
            self.calls.find(answered_call_id).await?.and_then(|call: Unowned<Call>| call.for_owner(*organization_id));
        // It was deleted.
        let Some(call) = call else { return Ok(()) };
        let data = content(&call);
        event.data = data.to_string();
        Box::pin(self.dispatch.begin(&event, &data, None, &Dispatch::work())).await
    }
}

/// As `infra/catalogue/calls.json` describes it.
fn content(call: &Call) -> Value {
    json!({
        "call": {
            "id": call.id,
            "direction": call.direction,
            "agent_id": call.agent_id,
            "caller_phone_number": call.from_number(),
            "called_phone_number": call.to_number(),
            "created_at": call.created_at,
            "connected_at": call.connected_at,
        },
    })
}
