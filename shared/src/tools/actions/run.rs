//! Executes an action, or previews its request.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{ToolAction, no_request::NotRun, query::Knowledge, variables};
use crate::{
    Result,
    accounts::Accounts,
    clients::{CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    idempotency::Earlier,
    models::ExecutionId,
    store::{Agents, Calls, DoNotCallList, PhoneNumbers, Quotas},
    tool::{CallContext, RecipientOutcome, Subject, ToolOutcome},
};

/// Bytes of a result for a model: VAPI warns of larger ones, and models lose track in them.
const LONGEST_RESULT: usize = 8_000;
/// Bytes of a result for the later actions of a run.
const LONGEST_OUTPUT: usize = 64 * 1024;

#[derive(Clone)]
pub struct ActionClients {
    pub agents: Agents,
    pub phone_numbers: PhoneNumbers,
    pub calls: Calls,
    /// The address at which Twilio reaches us.
    pub public_url: String,
    pub secrets: Secrets,
    pub twilio: Twilio,
    pub pipedream: Pipedream,
    pub pipedream_secret: String,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub call_control: CallControl,
    pub outbound: Outbound,
    pub knowledge: Knowledge,
    pub calls_kept: Duration,
    pub quotas: Quotas,
    pub do_not_call: DoNotCallList,
}

/// A call with checked arguments.
#[derive(Clone, Copy)]
pub struct ActionCall<'a> {
    pub services: &'a ActionClients,
    pub context: &'a CallContext<'a>,
    pub arguments: &'a Map<String, Value>,
}

#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// Id of the execution. Redeliveries share it; a request repeated after a refusal has a new one.
    pub id: ExecutionId,
    /// Names the claim of the effect at the service, so that an unknown effect can be found again. Empty for a read.
    pub claim: &'a str,
    /// Outcomes of the recipients that must not be sent to again.
    pub done: &'a Map<String, Value>,
}

/// # Errors
/// Only for an outage of our own; errors of tool and vendor are in the outcome.
pub async fn run(action: &ToolAction, call: ActionCall<'_>, attempt: Attempt<'_>) -> Result<ToolOutcome> {
    // Fixed values stay hidden from the model even if a service or we quote them.
    let hidden = action.hidden_texts(call.context.conversation);
    let outcome = match action {
        ToolAction::ApiRequest(action) => action.run(call, attempt.id, &hidden).await,
        ToolAction::PipedreamAction(action) => action.run(call, &hidden).await,
        ToolAction::Query(action) => action.run(call).await,
        ToolAction::Sms(action) => action.run(call, attempt.done).await,
        ToolAction::TransferCall(action) => action.run(call, attempt.id).await,
        ToolAction::PlaceCall(action) => Box::pin(action.run(call, attempt)).await,
        ToolAction::ServiceRequest(action) => Ok(action.run(call, attempt, &hidden).await),
    };
    let outcome = outcome.or_else(NotRun::into_outcome)?;
    let outcome = match action {
        ToolAction::Sms(_) | ToolAction::TransferCall(_) | ToolAction::PlaceCall(_) => outcome.hiding(&hidden),
        _ => outcome,
    };
    Ok(match longest_result(call.context) {
        Some(longest) => outcome.cut_to(longest),
        None => outcome,
    })
}

/// In bytes. The items of a poll are compared, not read: what was cut off would count as gone.
const fn longest_result(context: &CallContext<'_>) -> Option<usize> {
    match context.subject {
        Subject::Poll(_) => None,
        Subject::Action { .. } => Some(LONGEST_OUTPUT),
        _ => Some(LONGEST_RESULT),
    }
}

/// Asks the service for the effect of an earlier attempt with an unknown outcome. `None`: it is not there, or cannot be found.
///
/// # Errors
/// Only for an outage of our own.
pub async fn find_again(action: &ToolAction, call: ActionCall<'_>, earlier: &Earlier) -> Result<Option<ToolOutcome>> {
    match action {
        ToolAction::PlaceCall(action) => Box::pin(action.find_again(call, earlier)).await,
        _ => Ok(None),
    }
}

/// The answer for some of the recipients, worded as by [`run`].
pub fn told(action: &ToolAction, context: &CallContext<'_>, recipients: Vec<RecipientOutcome>) -> ToolOutcome {
    ToolOutcome::of_recipients(recipients).hiding(&action.hidden_texts(context.conversation)).cut_to(LONGEST_RESULT)
}

/// The request of [`run`] with secrets masked, or the error for the model. Preview and `run` share the code that builds the
/// request; a preview contacts only our own tables.
///
/// # Errors
/// Only for an outage of our own.
pub async fn preview(action: &ToolAction, call: ActionCall<'_>) -> Result<Result<Value, String>> {
    let masked = action.masked();
    let request = match &masked {
        ToolAction::ApiRequest(action) => action.preview(call),
        ToolAction::PipedreamAction(action) => action.preview(call),
        ToolAction::Query(action) => action.preview(call),
        ToolAction::Sms(action) => action.preview(call).await,
        ToolAction::TransferCall(action) => action.preview(call),
        ToolAction::PlaceCall(action) => action.preview(call).await,
        ToolAction::ServiceRequest(action) => action.preview(call, "…"),
    };
    let request = match request {
        Ok(request) => request,
        Err(NotRun::NoRequest(none)) => return Ok(Err(none.into_sentence())),
        Err(NotRun::Outage(outage)) => return Err(outage),
    };
    // The caller of a preview may see fixed values, but no secrets.
    let conversation = call.context.conversation;
    let mut secrets = variables::named_secrets(&action.with_marked(action.static_config()), conversation);
    // A header that is only a variable is no secret.
    for number in [conversation.caller_number(), conversation.called.clone()].iter().flatten() {
        secrets.remove(number.as_str());
    }
    Ok(Ok(secrets.masked(request)))
}
