//! Reads what is known of the events that runs of a definition wait for.

use std::collections::HashMap;

use futures_util::{future::try_join_all, join};

use crate::{
    Deadline, Result,
    automation::{
        AwaitedEvent, Deployment,
        definition::{Definition, diagnostics::Diagnostics, steps::Step},
        triggers::event_hooks::{HookState, hook_warning},
        validation::known::{KnownEvent, KnownService},
    },
    error,
    models::{OrganizationId, folded_name},
    webhooks::own_name,
};

/// Every awaited event, with the JSON pointer of its fields.
fn awaited_events(definition: &Definition) -> Vec<(String, &AwaitedEvent)> {
    let steps = definition.all_steps().into_iter();
    steps
        .filter_map(|step| match step {
            Step::Wait(wait) => Some((format!("{}/wait/for_event", wait.pointer), wait.awaited()?)),
            Step::Action(_) | Step::ForEach(_) | Step::Choose(_) => None,
        })
        .collect()
}

/// By [`AwaitedEvent::key`].
type ByEvent<T> = HashMap<(String, String), T>;

impl Deployment {
    pub(super) async fn awaited_events(
        &self,
        organization: OrganizationId,
        definition: &Definition,
        deadline: Deadline,
    ) -> Result<(ByEvent<KnownEvent>, ByEvent<HookState>)> {
        let distinct: HashMap<_, _> =
            awaited_events(definition).into_iter().map(|(_, awaited)| (awaited.key(), awaited)).collect();
        let looked_up = distinct.into_iter().map(async |(key, awaited)| {
            let service = self.service_of_event(organization, &awaited.service, deadline);
            let (service, hook) = join!(service, self.event_hooks.of_awaited(organization, &awaited.service));
            let service = service?;
            let events = self.samples_of(organization, &awaited.service, &awaited.event_type, &service).await;
            Ok::<_, crate::Error>((key, KnownEvent { service, events }, hook))
        });
        let (mut known, mut hooks) = (HashMap::new(), HashMap::new());
        for (key, event, hook) in Box::pin(try_join_all(looked_up)).await? {
            hooks.insert(key.clone(), hook);
            known.insert(key, event);
        }
        Ok((known, hooks))
    }

    async fn service_of_event(
        &self,
        organization: OrganizationId,
        name: &str,
        deadline: Deadline,
    ) -> Result<KnownService> {
        if own_name(name).is_some() {
            return self.own_hook(organization, name).await;
        }
        let names = [name.to_owned()];
        let services = &self.catalogue.services;
        let (found, capabilities) = join!(services.named(&names, deadline), services.capabilities(&names, deadline));
        let found = found?;
        let mut capabilities = capabilities.unwrap_or_else(|error| {
            tracing::warn!("a service's capabilities could not be looked up: {}", error::chain(&error));
            HashMap::new()
        });
        let connections = self.catalogue.connections.of(organization, &found, deadline).await;
        Ok(self.known_service(name, &found, &connections, capabilities.remove(&folded_name(name))).await)
    }
}

/// Warns of awaited events that no hook delivers.
pub(super) fn warn_of_hooks(
    definition: &Definition,
    known: &ByEvent<KnownEvent>,
    hooks: &ByEvent<HookState>,
    diagnostics: &mut Diagnostics,
) {
    for (place, awaited) in awaited_events(definition) {
        let key = awaited.key();
        let (Some(known), Some(hook)) = (known.get(&key), hooks.get(&key)) else { continue };
        if let Some(warning) = hook_warning(&awaited.event_type, &known.service, *hook, &place, true) {
            diagnostics.push(warning);
        }
    }
}
