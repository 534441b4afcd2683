//! Too many events of an organization's own hook are refused, so that a program that goes wild starts no flood of runs.

use shared::{
    Deadline, Result,
    http::Reply,
    models::Hook,
    store::{Counted, Room, Window},
    telemetry,
    webhooks::{InboundEvent, own_name},
};

use crate::Deps;

/// Events of a hook in a clock minute.
const MOST_A_MINUTE: u32 = 300;
/// Seconds.
const RETRY_AFTER: &str = "60";

/// The answer to an event beyond the limit. Only proven requests count, and a repeated event counts once.
pub(crate) async fn refusal(
    deps: &Deps,
    hook: &Hook,
    events: &[InboundEvent],
    deadline: Deadline,
) -> Result<Option<Reply>> {
    let Some(event) = events.first().filter(|_| own_name(&hook.service).is_some()) else { return Ok(None) };
    let wanted = [(Counted::EventsOf(hook.id), Window::Minute, MOST_A_MINUTE)];
    let name = Some(event.id_at_service.as_str());
    match deps.quotas.take_each(hook.organization_id, &wanted, name, deadline).await? {
        Room::Taken(_) => Ok(None),
        Room::None(_) => {
            deps.registry.hooks.throttled(hook).await?;
            telemetry::hook_throttled();
            tracing::warn!(hook.id = %hook.id, "an own hook gets too many events; one is refused");
            let headers = [("retry-after", RETRY_AFTER.to_owned())];
            Ok(Some(Reply::of(429, "text/plain", Vec::new()).with_headers(headers)))
        }
    }
}
