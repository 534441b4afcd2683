//! Verifies the numbers in VAPI's request against our records.

use shared::{
    Error, Result,
    models::{Call, Fault, OrganizationId, PhoneNumber, Unowned},
    store::PhoneNumbers,
    tool::{Conversation, ToolOutcome},
};

use crate::invocation::Metadata;

const NOT_OURS: &str = "the number that was called does not belong to the tool's organization";

/// The conversation a tool may act in. A call that came in through us has the numbers Twilio signed for; of any other, the
/// called number must be one of the organization's.
///
/// # Errors
/// [`Error::Forbidden`] for somebody else's call or number, and an outage if that could not be found out.
pub(crate) async fn verify(
    phone_numbers: &PhoneNumbers,
    organization: OrganizationId,
    metadata: &Metadata,
    call: Result<Option<Unowned<Call>>>,
    line: Result<Option<Unowned<PhoneNumber>>>,
) -> Result<Conversation> {
    let line = line?.and_then(|line| line.for_owner(organization));
    match call? {
        Some(call) => {
            let call = call
                .for_owner(organization)
                .ok_or(Error::Forbidden("the call does not belong to the tool's organization"))?;
            let called = &call.called_phone_number;
            let line = match line.filter(|line| line.number == *called) {
                Some(line) => Some(line),
                // VAPI named another number than Twilio did, or none.
                None => phone_numbers.by_number(called).await?.and_then(|line| line.for_owner(organization)),
            };
            Ok(Conversation {
                caller: Some(call.caller_phone_number.clone()),
                called: Some(call.called_phone_number.clone()),
                line,
                call: Some(call),
            })
        }
        None if metadata.called.is_some() && line.is_none() => Err(Error::Forbidden(NOT_OURS)),
        None => Ok(Conversation { caller: metadata.caller.clone(), called: metadata.called.clone(), line, call: None }),
    }
}

/// The answer to the model after a refusal of [`verify`].
pub(crate) fn sentence(refused: &Error) -> ToolOutcome {
    match refused {
        Error::Forbidden(_) => {
            ToolOutcome::failed("This tool cannot be used in this call: its phone number is not set up for it.")
                .at_fault(Fault::Configuration)
        }
        _ => shared::execution::unavailable(),
    }
}
