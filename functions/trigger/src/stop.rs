//! STOP, sent to a number of the organization: the sender goes on its do-not-call list.

use shared::{
    Result,
    models::{DoNotCall, DoNotCallSource, E164, Hook},
    opt_out,
    webhooks::{InboundEvent, Scheme},
};

use crate::Deps;

/// Lists the senders of STOP among verified events. START removes nobody: only members of the organization do.
pub(crate) async fn list_senders(deps: &Deps, events: &[(Hook, InboundEvent)]) -> Result<()> {
    for (hook, event) in events {
        if Scheme::of_service(&hook.service) == Scheme::Twilio
            && let Some(sender) = sender_of_stop(event)
        {
            let entry = DoNotCall::new(hook.organization_id, &sender, DoNotCallSource::Sms);
            if deps.do_not_call.add(&entry).await? {
                tracing::info!(hook.id = %hook.id, "a sender of STOP was put on the do-not-call list");
            }
        }
    }
    Ok(())
}

fn sender_of_stop(event: &InboundEvent) -> Option<E164> {
    let text = |name: &str| event.data.get(name).and_then(|value| value.as_str()).unwrap_or_default();
    if !event.event_types.iter().any(|kind| kind == "message.received") {
        return None;
    }
    let stops = text("OptOutType") == "STOP" || opt_out::in_message(text("Body"));
    text("From").parse().ok().filter(|_| stops)
}
