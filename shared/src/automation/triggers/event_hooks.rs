//! Whether the hook that delivers an automation's events exists.

use serde_json::Value;

use crate::{
    Deadline, Result,
    automation::{
        definition::{
            Definition,
            diagnostics::{Code, Diagnostic, child},
            trigger::Trigger,
        },
        nearest,
        validation::known::KnownService,
    },
    discovery::how_to_make_a_hook,
    error,
    models::{HookStatus, OrganizationId, folded_name},
    store::{Hooks, Services},
    webhooks::{Scheme, own_name, own_service},
};

/// Without the hook's id, which is part of its address: viewers read hints, too.
const SECRET_NEEDED: &str = "An administrator gives it with PATCH /api/{slug}/hooks/{id} {\"secret\": \"…\"}; GET /api/{slug}/hooks has the id.";

#[derive(Clone)]
pub struct EventHooks {
    pub hooks: Hooks,
    pub services: Services,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::automation) enum HookState {
    Active,
    Pending,
    None,
    Unknown,
}

impl EventHooks {
    pub(in crate::automation) async fn of_trigger(
        &self,
        organization: OrganizationId,
        definition: &Definition,
    ) -> HookState {
        let Some(Trigger::Webhook { service, .. }) = &definition.trigger else { return HookState::Unknown };
        self.of_awaited(organization, service).await
    }

    pub(in crate::automation) async fn of_awaited(&self, organization: OrganizationId, service: &str) -> HookState {
        self.of_service(organization, service).await.unwrap_or_else(|error| {
            tracing::warn!("the hooks of a service could not be looked up: {}", error::chain(&error));
            HookState::Unknown
        })
    }

    async fn of_service(&self, organization: OrganizationId, service: &str) -> Result<HookState> {
        let hooks = self.hooks.of_service(organization, &folded_name(service)).await?;
        if hooks.iter().any(|hook| hook.status == HookStatus::Active) {
            return Ok(HookState::Active);
        }
        let pending = hooks.iter().any(|hook| hook.status == HookStatus::Pending);
        Ok(if pending { HookState::Pending } else { HookState::None })
    }

    /// Whether a stored definition needs a hook that the organization lacks.
    pub(in crate::automation) async fn are_missing(
        &self,
        organization: OrganizationId,
        definition: &Value,
        deadline: Deadline,
    ) -> Result<bool> {
        let text = |name: &str| definition.get("trigger_config")?.get(name)?.as_str();
        let is_webhook = definition.get("trigger_type").is_some_and(|kind| kind == "webhook");
        if let (true, Some(own)) = (is_webhook, text("hook")) {
            let own = folded_name(own);
            let service = own_service(own_name(&own).unwrap_or(&own));
            return Ok(self.of_service(organization, &service).await? != HookState::Active);
        }
        let (true, Some(service), Some(event)) = (is_webhook, text("service"), text("event_type")) else {
            return Ok(false);
        };
        let names = [service.to_owned()];
        let (state, capabilities) = futures_util::try_join!(
            self.of_service(organization, service),
            self.services.capabilities(&names, deadline)
        )?;
        let needed = capabilities.get(&folded_name(service)).is_some_and(|of| of.arrives_by_hook(event));
        Ok(needed && state != HookState::Active)
    }
}

/// A warning if no hook delivers the automation's events. `place`: JSON pointer of the event's fields.
pub(in crate::automation) fn hook_warning(
    event_type: &str,
    service: &KnownService,
    hook: HookState,
    place: &str,
    is_wait: bool,
) -> Option<Diagnostic> {
    let so = if is_wait { "so no event ends this wait yet" } else { "so nothing starts this automation yet" };
    if let KnownService::OwnHook { name, all } = service {
        return own_hook_warning(name, all, hook, &child(place, "hook"), so);
    }
    let place = child(place, "event_type");
    let KnownService::Here { name, capabilities: Some(capabilities), .. } = service else { return None };
    if !capabilities.arrives_by_hook(event_type) {
        return None;
    }
    let (message, hint) = match hook {
        HookState::Active => return None,
        HookState::Unknown => {
            let message = format!("Whether there is a hook for {name}'s events could not be looked up.");
            let hint = "Validate the definition again in a minute.";
            return Some(Diagnostic::warning(Code::NotChecked, place, message, hint));
        }
        HookState::Pending => (
            format!("The hook for {name}'s events waits for its secret, {so}."),
            format!("{SECRET_NEEDED} {}", Scheme::of_service(name).set_up()),
        ),
        HookState::None => (
            format!("The organization has no hook for {name}'s events, {so}."),
            format!("{}.", how_to_make_a_hook(name)),
        ),
    };
    Some(Diagnostic::warning(Code::WaitsForHook, place, message, hint))
}

fn own_hook_warning(name: &str, all: &[String], hook: HookState, place: &str, so: &str) -> Option<Diagnostic> {
    let (message, hint) = match hook {
        HookState::Active => return None,
        HookState::Unknown => {
            let message = format!("Whether there is a hook {name} could not be looked up.");
            let hint = "Validate the definition again in a minute.".to_owned();
            return Some(Diagnostic::warning(Code::NotChecked, place, message, hint));
        }
        HookState::Pending => (format!("The hook {name} waits for its secret, {so}."), SECRET_NEEDED.to_owned()),
        HookState::None => (
            format!("The organization has no hook {name} of its own, {so}."),
            format!("An administrator makes it with POST /api/{{slug}}/hooks {{\"service\": \"{name}\"}}."),
        ),
    };
    let meant = nearest(name, all.iter().map(String::as_str)).filter(|_| hook == HookState::None);
    let warning = Diagnostic::warning(Code::WaitsForHook, place, message, hint);
    Some(warning.allowed(all.iter().cloned()).meaning(meant))
}
