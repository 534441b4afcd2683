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
    let Metadata { caller, called, .. } = metadata;
    let conversation =
        Conversation::verified(phone_numbers, organization, caller.clone(), called.clone(), call?, line?).await?;
    let is_foreign = conversation.call.is_none() && conversation.called.is_some() && conversation.line.is_none();
    if is_foreign { Err(Error::Forbidden(NOT_OURS)) } else { Ok(conversation) }
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
