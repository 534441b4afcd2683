//! Validates the trigger's service: existence, connection, capabilities.

use serde_json::{Map, Value};

use super::known::{Known, KnownService, Purpose};
use crate::{
    automation::{
        definition::{
            Definition,
            diagnostics::{Code, Diagnostic, Diagnostics, child},
            trigger::{Polling, Trigger},
        },
        nearest,
    },
    connections::Connection,
    json_schema::JsonSchema,
    models::{TriggerComponent, folded_name},
    webhooks::learn,
};

/// For an event that no run can wait for.
const ASK_LATER: &str = "Wait for some minutes, and let an action ask the service; or let the sender post to a hook of the organization's own.";

/// A trigger, or an awaited event as one, with what is known of its service.
pub(super) struct Listener<'a> {
    pub(super) trigger: &'a Trigger,
    pub(super) service: &'a KnownService,
    pub(super) events: &'a [Value],
    /// JSON pointer of the fields.
    pub(super) place: &'a str,
    /// A run waits for the event.
    pub(super) is_wait: bool,
}

pub(super) fn check_service(definition: &Definition, known: &Known, diagnostics: &mut Diagnostics) {
    let Some(trigger) = &definition.trigger else { return };
    let (service, events) = (&known.trigger_service, known.events.as_slice());
    let listener = Listener { trigger, service, events, place: "/trigger_config", is_wait: false };
    check_listener(&listener, known.purpose, diagnostics);
}

pub(super) fn check_listener(listener: &Listener<'_>, purpose: Purpose, diagnostics: &mut Diagnostics) {
    let Listener { trigger, service, events: samples, place, is_wait } = *listener;
    let of = |name: &str| child(place, name);
    let kind = if is_wait { of("service") } else { "/trigger_type".to_owned() };
    let what = if is_wait { "the event" } else { "trigger_data" };
    let Some(written) = trigger.service() else { return };
    match service {
        KnownService::NotNamed => {}
        KnownService::OwnHook { name, .. } => {
            if samples.is_empty() {
                let message = format!("No such event of the hook {name} came yet, so no path into {what} is checked.");
                let hint = "Let the sender send one, and validate the definition again.";
                diagnostics.push(Diagnostic::warning(Code::NotChecked, of("hook"), message, hint));
            }
        }
        KnownService::Unknown { others } => {
            let message = format!("There is no service {written}.");
            let hint = "Search for services with search_tools, or use an allowed value.";
            let meant = nearest(written, others.iter().map(String::as_str));
            let error = Diagnostic::error(Code::UnknownService, of("service"), message, hint);
            diagnostics.push(error.allowed(others.clone()).meaning(meant));
        }
        KnownService::Inactive { name } => {
            let message = format!("{name} is switched off.");
            let hint = "Use another service, or a schedule.";
            diagnostics.push(Diagnostic::error(Code::InactiveService, of("service"), message, hint));
        }
        KnownService::Here { name, connection, capabilities } => {
            check_connection(name, connection, purpose, &of("service"), diagnostics);
            let Some(capabilities) = capabilities else {
                let message =
                    format!("The capabilities of {name} could not be read, so the event and paths are not checked.");
                let hint = "Validate the definition again in a minute.";
                diagnostics.push(Diagnostic::warning(Code::NotChecked, of("service"), message, hint));
                return;
            };
            match trigger {
                Trigger::Webhook { event_type, .. } if !capabilities.supports_webhooks => {
                    let hint = if is_wait {
                        ASK_LATER
                    } else if capabilities.supports_polling {
                        "Use \"trigger_type\": \"polling\" with one of its tools as source_tool, or a schedule."
                    } else {
                        "Use a schedule, and let an action ask the service."
                    };
                    let message = format!("{name} sends no webhooks, so there is no event {event_type}.");
                    diagnostics.push(Diagnostic::error(Code::WebhooksNotSupported, kind, message, hint));
                }
                Trigger::Webhook { event_type, params, .. } => {
                    let events = &capabilities.webhook_events;
                    if !capabilities.takes_any_event() {
                        check_event(name, event_type, events, place, diagnostics);
                    } else if !events.contains(event_type) {
                        check_other_event(name, event_type, events, listener, diagnostics);
                    }
                    let described = capabilities.webhook_payload_schemas.get(event_type);
                    if events.contains(event_type) {
                        let component = described.and_then(|payload| payload.deployed_trigger.as_ref());
                        match component {
                            Some(_) if is_wait => {
                                let message = format!(
                                    "{name}'s event {event_type} comes only to an automation that it starts, so no run can wait for it."
                                );
                                let error =
                                    Diagnostic::error(Code::WebhooksNotSupported, of("event_type"), message, ASK_LATER);
                                diagnostics.push(error);
                            }
                            component => check_params(event_type, params, component, diagnostics),
                        }
                        let has_fields = described.is_some_and(|payload| !payload.trigger_data_fields.is_empty());
                        if !has_fields && samples.is_empty() {
                            let message = format!(
                                "The fields of {name}'s event {event_type} are not described, so no path into {what} is checked."
                            );
                            let hint = "Start it with a sample event before you rely on its fields.";
                            diagnostics.push(Diagnostic::warning(Code::NotChecked, of("event_type"), message, hint));
                        }
                    }
                }
                _ if !capabilities.supports_polling => {
                    let hint = if capabilities.supports_webhooks {
                        "Use \"trigger_type\": \"webhook\" with one of its events."
                    } else {
                        "Use a schedule, and let an action ask the service."
                    };
                    let message = format!("{name} cannot be polled.");
                    diagnostics.push(Diagnostic::error(Code::PollingNotSupported, "/trigger_type", message, hint));
                }
                Trigger::Polling(Polling { event_type: Some(event), .. })
                    if !capabilities.polling_endpoints.is_empty() =>
                {
                    let events: Vec<String> = capabilities.polling_endpoints.keys().cloned().collect();
                    check_event(name, event, &events, place, diagnostics);
                }
                _ => {}
            }
        }
    }
}

/// Checks the parameters of an event's deployed trigger; other events take none.
fn check_params(
    event: &str,
    params: &Map<String, Value>,
    component: Option<&TriggerComponent>,
    diagnostics: &mut Diagnostics,
) {
    const PLACE: &str = "/trigger_config/params";
    let Some(component) = component else {
        if !params.is_empty() {
            let message = format!("The event {event} takes no params: all events of this kind come.");
            let hint = "Leave params out, and choose events with filters.";
            diagnostics.push(Diagnostic::error(Code::UnknownField, PLACE, message, hint));
        }
        return;
    };
    let params = Value::Object(params.clone());
    // The loader of the catalogue rejects schemas that cannot be compiled.
    let Ok(schema) = JsonSchema::compile(&component.parameters) else { return };
    let known = component.parameters.get("properties").and_then(Value::as_object);
    for violation in schema.validate(&params) {
        let name = violation.pointer.trim_start_matches('/');
        if let Some(known) = known.filter(|known| !known.contains_key(name) && params.get(name).is_some()) {
            let message = format!("The event {event} has no parameter {name}.");
            let hint = "Leave it out, or use an allowed value.";
            let error = Diagnostic::error(Code::UnknownParameter, child(PLACE, name), message, hint);
            let meant = nearest(name, known.keys().map(String::as_str));
            diagnostics.push(error.allowed(known.keys().cloned()).meaning(meant));
            continue;
        }
        let message = format!("The params of the event {event} do not fit: {violation}.");
        let hint = "Take the JSON schema of its params from initial_md_fetch.";
        let pointer = format!("{PLACE}{}", violation.pointer);
        diagnostics.push(Diagnostic::error(Code::InvalidValue, pointer, message, hint));
    }
}

fn check_event(service: &str, event: &str, events: &[String], place: &str, diagnostics: &mut Diagnostics) {
    if !events.iter().any(|known| known == event) {
        let meant = nearest(event, events.iter().map(String::as_str));
        let message = format!("{service} has no event {event}.");
        let place = child(place, "event_type");
        let error = Diagnostic::error(Code::UnknownEvent, place, message, "Use an allowed value.");
        diagnostics.push(error.found(&event.into()).allowed(events.iter().map(String::as_str)).meaning(meant));
    }
}

/// An event that the catalogue does not list, of a service that posts to hooks: usable, if it is not misspelt.
fn check_other_event(
    service: &str,
    event: &str,
    events: &[String],
    listener: &Listener<'_>,
    diagnostics: &mut Diagnostics,
) {
    let place = child(listener.place, "event_type");
    let meant = nearest(event, events.iter().map(String::as_str));
    if listener.events.is_empty() && meant.is_some() {
        return check_event(service, event, events, listener.place, diagnostics);
    }
    let message = format!("{service}'s event {event} is not described here.");
    let warning = if let Some(learned) = learn(listener.events) {
        let hint = "Paths are checked against the events that came; their fields are in allowed.";
        let fields = learned.fields.into_iter().map(|field| field.path);
        Diagnostic::warning(Code::UnknownEvent, place, message, hint).allowed(fields)
    } else {
        let hint = "It is taken if the hook receives it. None came yet, so no path into trigger_data is checked.";
        Diagnostic::warning(Code::UnknownEvent, place, message, hint)
    };
    diagnostics.push(warning.found(&event.into()));
}

/// A missing connection is a warning on saving, since the reviewer can still connect it, and an error on activation.
pub(super) fn check_connection(
    service: &str,
    connection: &Connection,
    purpose: Purpose,
    pointer: &str,
    diagnostics: &mut Diagnostics,
) {
    let folded = folded_name(service);
    let link = format!("POST /api/{{slug}}/services/{folded}/connect");
    let (message, hint) = match connection {
        Connection::NotNeeded | Connection::Connected { .. } => return,
        Connection::NotConnected => (
            format!("The organization has no account at {service}."),
            format!("Let an administrator connect one ({link}) before the automation is activated."),
        ),
        Connection::Expired { .. } => (
            format!("The organization's account at {service} does not work any more."),
            format!("Before the automation is activated, {}.", connection.renewal(service)),
        ),
        Connection::Unknown => {
            let message = format!("Whether {service} is connected could not be looked up.");
            let hint = "Validate the definition again in a minute.";
            diagnostics.push(Diagnostic::warning(Code::NotChecked, pointer, message, hint));
            return;
        }
    };
    let error = Diagnostic::error(Code::NotConnected, pointer, message, hint);
    diagnostics.push(Diagnostic { severity: purpose.severity(), ..error });
}
