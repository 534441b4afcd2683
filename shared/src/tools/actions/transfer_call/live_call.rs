//! Finds the live call that a tool may control, only among the organization's own calls.
//!
//! A call that came in through us has a row with its control URL, so it costs no further request. For any other call we ask VAPI,
//! and require the assistant of one of the organization's agents. A control URL in the request is never trusted.

use std::time::Duration;

use crate::{
    Error, Result,
    actions::ActionClients,
    clients::{Failure, UpstreamService, vapi::ExternalCall},
    error,
    models::{AgentId, Call, CallStatus, ControlUrl, OrganizationId},
    tool::{CallContext, ToolOutcome},
};

/// Time for VAPI's answer: the caller is waiting, and the transfer follows.
const ASKED_FOR: Duration = Duration::from_secs(5);

const NOTED_WITHIN: Duration = Duration::from_secs(2);

const UNKNOWN_CALL: &str = "This call is not known here and cannot be transferred. Offer to take a message instead.";

/// The reason why a call cannot be transferred, for the model and for the log.
#[derive(Debug)]
pub(super) struct Refused {
    sentence: &'static str,
    cause: crate::clients::Error,
}

impl Refused {
    pub(super) fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::failed(self.sentence).because(self.cause)
    }
}

pub(super) fn refused(sentence: &'static str, why: &str) -> Refused {
    let cause = crate::clients::Error::new(UpstreamService::CallControl, Failure::Refused(why.to_owned()));
    Refused { sentence, cause }
}

/// # Errors
/// Only for an outage of our own.
pub(super) async fn find(services: &ActionClients, context: &CallContext<'_>) -> Result<Result<ControlUrl, Refused>> {
    let Some(id) = context.call_id() else {
        return Ok(Err(refused(UNKNOWN_CALL, "the request names no call")));
    };
    let organization = context.organization;
    let ours = context.conversation.call.as_ref();
    if let Some(gone) = ours.and_then(unavailable) {
        return Ok(Err(gone));
    }
    if let Some(url) = ours.and_then(|call| call.control_url.clone()) {
        return Ok(Ok(url));
    }
    let account = services.accounts.vapi(organization).await?;
    let call = match services.vapi.call(&account, id, context.deadline.at_most(ASKED_FOR)).await {
        Ok(Some(call)) => call,
        Ok(None) => return Ok(Err(refused(UNKNOWN_CALL, "VAPI has no such call"))),
        Err(cause) => {
            let sentence = "It cannot be found out just now where this call is, and nothing was transferred. Try once \
                            more, or offer to take a message instead.";
            return Ok(Err(Refused { sentence, cause }));
        }
    };
    if ours.is_none() && !belongs(services, organization, &call).await? {
        return Ok(Err(refused(UNKNOWN_CALL, "the call's assistant belongs to no agent of the organization")));
    }
    if let Some(gone) = over(call.status) {
        return Ok(Err(gone));
    }
    Ok(call.control_url().ok_or_else(|| {
        refused(
            "This call cannot be transferred. Offer to take a message instead.",
            "VAPI gives no control URL for the call; monitorPlan.controlEnabled of its assistant may be off",
        )
    }))
}

async fn belongs(services: &ActionClients, organization: OrganizationId, call: &ExternalCall) -> Result<bool, Error> {
    match &call.assistant_id {
        Some(assistant) => Ok(services.agents.with_assistant(organization, assistant).await?.is_some()),
        None => Ok(false),
    }
}

/// A caller whom this agent transfers in vain returns to it.
pub(super) async fn note_handoff(services: &ActionClients, call: &Call, to: AgentId) {
    let noted = services.calls.note_handoff(call.organization_id, &call.id, to);
    let problem = match tokio::time::timeout(NOTED_WITHIN, noted).await {
        Ok(Ok(_open)) => return,
        Ok(Err(error)) => error::chain(&error),
        Err(elapsed) => elapsed.to_string(),
    };
    tracing::error!(call.id = %call.id, "the agent that took a call over could not be recorded: {problem}");
}

/// The reason why our own call cannot be transferred any more.
pub(super) fn unavailable(call: &Call) -> Option<Refused> {
    if call.transfer.is_some() { Some(moved_already()) } else { over(call.status) }
}

pub(super) fn moved_already() -> Refused {
    refused("The call is being transferred already; do not transfer it again.", "the call is being forwarded already")
}

fn over(status: Option<CallStatus>) -> Option<Refused> {
    match status? {
        CallStatus::Forwarding => Some(moved_already()),
        status if status.is_over() => {
            Some(refused("The call is over and cannot be transferred any more.", "the call is over"))
        }
        _ => None,
    }
}
