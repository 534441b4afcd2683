//! An event of a hook is noted, and held against the automations that it is for.

use serde_json::Value;
use shared::{
    Result,
    automation::{LARGEST_DATA, Trigger, Work},
    cut,
    error::found,
    models::{Automation, Event, EventId, EventStatus, Hook, Timestamp},
    webhooks::InboundEvent,
};

use crate::Deps;

pub(crate) async fn dispatch(deps: &Deps, hook: &Hook, inbound: &InboundEvent, work: &Work) -> Result<()> {
    let only = match hook.automation_id {
        Some(automation) => match found(deps.dispatch.filters.automations.get(hook.organization_id, automation).await)?
        {
            // The automation was deleted; its deployed trigger is deleted too.
            None => return Ok(()),
            automation => automation,
        },
        None => None,
    };
    if let Some(automation) = &only
        && is_outdated(deps, hook, automation).await?
    {
        let event = noted(deps, hook, None, inbound);
        return deps.dispatch.ignore(&event, automation.id, "It does not listen to this event any more.").await;
    }
    // Filters and runs get the whole data; only the stored copy is cut.
    let event = noted(deps, hook, only.as_ref(), inbound);
    deps.dispatch.begin(&event, &inbound.data, only, work).await
}

/// Whether the automation has another trigger than the hook was made for. Until the old one is deleted at its service, it goes on
/// posting. Events for an unreadable trigger are recorded.
async fn is_outdated(deps: &Deps, hook: &Hook, automation: &Automation) -> Result<bool> {
    let (Some(deployed_for), Some(version)) = (&hook.deployed_for, automation.active_version) else { return Ok(false) };
    let version = deps.dispatch.filters.automations.version(hook.organization_id, automation.id, version).await?;
    let definition: Option<Value> = serde_json::from_str(&version.definition).ok();
    let now = definition.as_ref().and_then(Trigger::stored);
    Ok(now.is_some_and(|now| now.deployed_for().as_ref() != Some(deployed_for)))
}

/// The event's row as it begins.
fn noted(deps: &Deps, hook: &Hook, only: Option<&Automation>, inbound: &InboundEvent) -> Event {
    let now = Timestamp::now();
    // `<organization>#linear#issue.created`
    let listens = only.and_then(|automation| automation.trigger_key.as_ref()?.split_once('#')?.1.split_once('#'));
    let (service, event_types) = match listens {
        Some((service, event_type)) => (service.to_owned(), vec![event_type.to_owned()]),
        None => (hook.service.clone(), inbound.event_types.clone()),
    };
    let whole = inbound.data.to_string();
    let in_part = whole.len() > LARGEST_DATA;
    let data = if in_part { cut::fitting(&inbound.data, LARGEST_DATA).to_string() } else { whole };
    Event {
        id: EventId::of_delivery(hook.organization_id, hook.id, &inbound.id_at_service),
        organization_id: hook.organization_id,
        hook_id: Some(hook.id),
        service,
        event_type: event_types.first().cloned().unwrap_or_default(),
        event_types,
        data,
        in_part,
        status: EventStatus::Received,
        matched: Vec::new(),
        unmatched: Vec::new(),
        waiting: Vec::new(),
        woke: Vec::new(),
        has_waits: false,
        created_at: now,
        updated_at: now,
        expires_at: now.plus(deps.kept).as_seconds(),
    }
}
