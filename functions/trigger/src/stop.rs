//! STOP, sent to a number of the organization: the sender goes on its do-not-call list.

use shared::{
    Result,
    models::{DoNotCall, DoNotCallSource, OrganizationId},
    opt_out,
    webhooks::InboundEvent,
};

use crate::Deps;

/// Lists the sender of a verified STOP. START removes nobody: only members of the organization do.
pub(crate) async fn list_sender(deps: &Deps, organization: OrganizationId, event: &InboundEvent) -> Result<()> {
    if is_text(event)
        && is_meant(event)
        && let Ok(sender) = field(event, "From").parse()
    {
        let entry = DoNotCall::new(organization, &sender, DoNotCallSource::Sms);
        if deps.do_not_call.add(&entry).await? {
            tracing::info!("a sender of STOP was put on the do-not-call list");
        }
    }
    Ok(())
}

/// Whether the message asks for no more messages.
pub(crate) fn is_meant(message: &InboundEvent) -> bool {
    field(message, "OptOutType") == "STOP" || opt_out::in_message(field(message, "Body"))
}

pub(crate) fn is_text(event: &InboundEvent) -> bool {
    event.event_types.iter().any(|kind| kind == "message.received")
}

/// A parameter of Twilio's, or nothing.
pub(crate) fn field<'a>(event: &'a InboundEvent, name: &str) -> &'a str {
    event.data.get(name).and_then(|value| value.as_str()).unwrap_or_default()
}
