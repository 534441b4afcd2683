//! The ways by which a service's events arrive, and their set-up.

use std::fmt;

use serde::Serialize;

use crate::{
    described::Described,
    models::{ServiceCapabilities, WebhookPayload, folded_name},
    webhooks::Scheme,
};

/// Events named per line; the service's capabilities list all of them.
const MOST_NAMED: usize = 5;

#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct Arrival {
    /// `hook`: the service posts them to a hook that an administrator makes. `deployed_trigger`: a trigger brings them that
    /// is deployed at Pipedream with the automation. `polling`: a tool is asked again and again. `built_in`: they are our
    /// own events.
    pub by: ArrivesBy,
    /// Their names.
    pub events: Vec<String>,
    /// The set-up, in sentences without the last full stop.
    pub next_step: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ArrivesBy {
    Hook,
    DeployedTrigger,
    Polling,
    BuiltIn,
}

impl ArrivesBy {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Hook => "By a hook",
            Self::DeployedTrigger => "By a trigger that is deployed for the automation",
            Self::Polling => "By polling",
            Self::BuiltIn => "By itself",
        }
    }
}

impl ServiceCapabilities {
    pub fn needs_hook(&self, event: &str) -> bool {
        let without_hook = |of: &WebhookPayload| of.deployed_trigger.is_some() || of.built_in;
        let without_hook = self.webhook_payload_schemas.get(event).is_some_and(without_hook);
        self.webhook_events.iter().any(|known| known == event) && !without_hook
    }

    /// Whether the service posts to hooks, which take its events whether they are described or not.
    pub fn takes_any_event(&self) -> bool {
        self.supports_webhooks && self.webhook_events.iter().any(|event| self.needs_hook(event))
    }

    /// Whether nothing but a hook brings the event.
    pub fn arrives_by_hook(&self, event: &str) -> bool {
        let listed = self.webhook_events.iter().any(|known| known == event);
        if listed { self.needs_hook(event) } else { self.takes_any_event() }
    }
}

/// The service's ways, without empty ones.
pub fn arrivals(service: &str, capabilities: Option<&ServiceCapabilities>) -> Vec<Arrival> {
    let Some(capabilities) = capabilities else { return Vec::new() };
    let webhook = if capabilities.supports_webhooks { capabilities.webhook_events.as_slice() } else { &[] };
    let (by_hook, others): (Vec<String>, Vec<String>) =
        webhook.iter().cloned().partition(|event| capabilities.needs_hook(event));
    let (built_in, deployed) = others
        .into_iter()
        .partition(|event| capabilities.webhook_payload_schemas.get(event).is_some_and(|of| of.built_in));
    let polled = if capabilities.supports_polling {
        capabilities.polling_endpoints.keys().cloned().collect()
    } else {
        Vec::new()
    };
    let ways = [
        (ArrivesBy::Hook, by_hook, how_to_make_a_hook(service)),
        (
            ArrivesBy::DeployedTrigger,
            deployed,
            format!("It is set up when the automation is activated, once {service} is connected"),
        ),
        (
            ArrivesBy::Polling,
            polled,
            "Write \"trigger_type\": \"polling\" with the event's source_tool; it begins when the automation is activated".to_owned(),
        ),
        (ArrivesBy::BuiltIn, built_in, "Nothing has to be set up".to_owned()),
    ];
    let some = ways.into_iter().filter(|(_, events, _)| !events.is_empty());
    some.map(|(by, events, next_step)| Arrival { by, events, next_step }).collect()
}

/// The administrator's steps to create a hook, without the last full stop.
pub fn how_to_make_a_hook(service: &str) -> String {
    let scheme = Scheme::of_service(service);
    let made = format!(
        "An administrator makes the hook with POST /api/{{slug}}/hooks {{\"service\": \"{}\"}}. {}",
        folded_name(service),
        scheme.set_up()
    );
    made.trim_end_matches('.').to_owned()
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { by, events, next_step } = self;
        let named: Vec<&str> = events.iter().take(MOST_NAMED).map(String::as_str).collect();
        let more = events.len() - named.len();
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        write!(f, "{} ({}{more}): {next_step}.", by.as_str(), named.join(", "))
    }
}
