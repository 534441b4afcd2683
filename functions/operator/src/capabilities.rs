//! Capabilities of a service: its events with their fields, polling sources, and notes for agents.

use serde_json::{Map, Value};
use shared::{
    automation::{Condition, Diagnostics, Path},
    error::Problems,
    fields::{Fields, pointer_step},
    json_schema::JsonSchema,
    models::{ServiceCapabilities, ServiceTool, TriggerComponent, WebhookPayload},
};

use crate::reading::{bounded, texts};

const LONGEST_NOTES: usize = 4_000;
const LONGEST_DESCRIPTION: usize = 500;
const LONGEST_EVENT: usize = 80;
/// Bytes of all capabilities as JSON: an agent gets them in one answer with the tools, which some clients cut at 60,000.
const LONGEST: usize = 16_000;
const AUTH_TYPES: [&str; 5] = ["oauth2", "api_key", "basic", "phone_number", "none"];

/// Reads the member `capabilities` of a file.
pub(crate) fn read(value: &Value, problems: &mut Problems) -> Option<ServiceCapabilities> {
    let mut fields = Fields::at_pointer(value, "/capabilities", problems)?;
    let auth_types = texts(&mut fields, "auth_types");
    if auth_types.is_empty() || auth_types.iter().any(|kind| !AUTH_TYPES.contains(&kind.as_str())) {
        fields.problem("auth_types", format!("must be a list of {}", AUTH_TYPES.join(", ")));
    }
    let notes = bounded(&mut fields, "notes", LONGEST_NOTES);
    let mut capabilities = ServiceCapabilities {
        service_name: String::new(),
        supports_webhooks: false,
        webhook_events: Vec::new(),
        webhook_payload_schemas: [].into(),
        supports_polling: false,
        polling_endpoints: Map::new(),
        notes,
        auth_types,
    };
    let (events, polled) = (fields.members("webhook_payload_schemas"), fields.members("polling_endpoints"));
    for (event, payload) in events {
        let pointer = format!("/capabilities/webhook_payload_schemas/{}", pointer_step(event));
        check_event(event, &pointer, fields.problems());
        let Some(payload) = read_payload(payload, &pointer, fields.problems()) else { continue };
        capabilities.webhook_events.push(event.clone());
        capabilities.webhook_payload_schemas.insert(event.clone(), payload);
    }
    let others = fields.get("other_webhook_events").is_some();
    let others = if others { texts(&mut fields, "other_webhook_events") } else { Vec::new() };
    for (index, event) in others.into_iter().enumerate() {
        let pointer = format!("/capabilities/other_webhook_events/{index}");
        check_event(&event, &pointer, fields.problems());
        if capabilities.webhook_events.contains(&event) {
            fields.problems().add(pointer, format!("{event} is named or described already"));
        } else {
            capabilities.webhook_events.push(event);
        }
    }
    for (event, endpoint) in polled {
        let pointer = format!("/capabilities/polling_endpoints/{}", pointer_step(event));
        check_event(event, &pointer, fields.problems());
        if let Some(mut fields) = Fields::at_pointer(endpoint, &pointer, fields.problems()) {
            fields.required_text("source_tool", 200);
            bounded(&mut fields, "description", LONGEST_DESCRIPTION);
            for name in ["items", "id", "tool_params"] {
                fields.get(name);
            }
            fields.finish();
            capabilities.polling_endpoints.insert(event.clone(), endpoint.clone());
        }
    }
    fields.finish();
    if value.to_string().len() > LONGEST {
        problems
            .add("/capabilities", format!("must have at most {LONGEST} bytes: shorten the examples and descriptions"));
    }
    capabilities.supports_webhooks = !capabilities.webhook_events.is_empty();
    capabilities.supports_polling = !capabilities.polling_endpoints.is_empty();
    Some(capabilities)
}

fn check_event(event: &str, pointer: &str, problems: &mut Problems) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if !(1..=LONGEST_EVENT).contains(&event.len()) || !event.bytes().all(fits) {
        problems.add(pointer, format!("must have a name of at most {LONGEST_EVENT} letters, digits, _, . and -"));
    }
}

fn read_payload(value: &Value, pointer: &str, problems: &mut Problems) -> Option<WebhookPayload> {
    let mut fields = Fields::at_pointer(value, pointer, problems)?;
    let description = bounded(&mut fields, "description", LONGEST_DESCRIPTION);
    let of_event = fields.members("trigger_data_fields");
    let (condition, example) = (fields.required("example_condition"), fields.required("example"));
    if of_event.is_empty() {
        fields.problem("trigger_data_fields", "must name the fields of the event, each with what stands there");
    }
    let mut payload = WebhookPayload {
        description,
        example_condition: condition.cloned(),
        example: example.cloned(),
        ..WebhookPayload::default()
    };
    for (path, meaning) in of_event {
        let place = format!("{pointer}/trigger_data_fields/{}", pointer_step(path));
        match meaning.as_str().filter(|text| !text.trim().is_empty()) {
            Some(meaning) => drop(payload.trigger_data_fields.insert(path.clone(), meaning.to_owned())),
            None => fields.problems().add(place.clone(), "must say what stands there"),
        }
        if example.is_some_and(|example| !leads_into(example, path)) {
            fields.problems().add(place, "stands nowhere in the example");
        }
    }
    if let Some(condition) = condition {
        let place = format!("{pointer}/example_condition");
        check_condition(condition, example, &place, fields.problems());
    }
    payload.deployed_trigger = fields
        .get("deployed_trigger")
        .and_then(|trigger| read_trigger(trigger, &format!("{pointer}/deployed_trigger"), fields.problems()));
    payload.built_in = fields.boolean("built_in", false);
    fields.finish();
    Some(payload)
}

/// `{"component", "version", "app_prop", "parameters", "defaults"?}`.
fn read_trigger(value: &Value, pointer: &str, problems: &mut Problems) -> Option<TriggerComponent> {
    let mut fields = Fields::at_pointer(value, pointer, problems)?;
    let component = fields.required_text("component", 100);
    let version = fields.required_text("version", 40);
    let app_prop = fields.required_text("app_prop", 100);
    let parameters = fields.required("parameters").cloned();
    let defaults = fields.members("defaults").into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    fields.finish();
    let parameters = parameters?;
    if let Err(wrong) = JsonSchema::compile(&parameters) {
        for problem in wrong.iter() {
            problems.add(format!("{pointer}/parameters"), problem.problem.clone());
        }
    }
    Some(TriggerComponent { component: component?, version: version?, app_prop: app_prop?, parameters, defaults })
}

fn check_condition(condition: &Value, example: Option<&Value>, pointer: &str, problems: &mut Problems) {
    let mut diagnostics = Diagnostics::default();
    let condition = Condition::read(condition, pointer, &mut diagnostics);
    for mistake in diagnostics.iter() {
        let allowed = mistake.allowed.join(", ");
        problems.add(mistake.pointer.clone(), format!("{} {} {allowed}", mistake.message, mistake.hint).trim_end());
    }
    for clause in condition.iter().flat_map(Condition::clauses) {
        if example.is_some_and(|example| Path::follow(clause.path.steps(), example).is_none()) {
            let problem = format!("{} stands nowhere in the example", clause.path.as_str());
            problems.add(format!("{}/path", clause.pointer), problem);
        }
    }
}

/// Checks that each source tool exists, has no effect, and takes the arguments of the example.
pub(crate) fn check_polling(capabilities: &ServiceCapabilities, tools: &[ServiceTool], problems: &mut Problems) {
    for (event, endpoint) in &capabilities.polling_endpoints {
        let pointer = format!("/capabilities/polling_endpoints/{}", pointer_step(event));
        let Some(name) = endpoint.get("source_tool").and_then(Value::as_str) else { continue };
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            problems.add(format!("{pointer}/source_tool"), format!("{name} is not a tool of this file"));
            continue;
        };
        if tool.effect {
            problems.add(format!("{pointer}/source_tool"), format!("{name} changes something, so it cannot be polled"));
        }
        let schema = JsonSchema::compile(&tool.parameters);
        if let (Some(arguments), Ok(schema)) = (endpoint.get("tool_params"), schema) {
            for violation in schema.validate(arguments) {
                let problem = format!("does not fit the parameters of {name}: {violation}");
                problems.add(format!("{pointer}/tool_params"), problem);
            }
        }
    }
}

fn leads_into(example: &Value, path: &str) -> bool {
    Path::parse(path).is_ok_and(|path| Path::follow(path.steps(), example).is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_example_condition_is_one_that_an_automation_takes_and_fits_its_example() {
        let example = json!({"text": "urgent", "tags": [{"name": "bug"}]});
        let told = |condition: Value| {
            let mut problems = Problems::default();
            check_condition(&condition, Some(&example), "/c", &mut problems);
            problems.iter().map(|one| format!("{} {}", one.field, one.problem)).collect::<Vec<_>>().join("\n")
        };
        let clause = json!({"path": "tags[0].name", "op": "==", "value": "bug"});
        let about_items =
            json!({"path": "tags", "op": "any", "value": {"path": "item.name", "op": "==", "value": "bug"}});
        for fits in [clause.clone(), json!({"operator": "OR", "clauses": [clause]}), about_items] {
            assert_eq!(told(fits), "");
        }
        for (condition, place, word) in [
            (json!("x"), "/c ", "object"),
            (json!({"path": "words", "op": "exists"}), "/c/path ", "nowhere"),
            (json!({"path": "text", "op": "has"}), "/c/op ", "contains_any"),
            (json!({"path": "text", "op": "contains"}), "/c/value ", "needs a value"),
            (json!({"path": "text", "op": "in", "value": "urgent"}), "/c/value ", "a list"),
            (json!({"path": "text", "op": "exists", "colour": 1}), "/c/colour ", ""),
            (json!({"operator": "OR", "clauses": [{"op": "exists"}]}), "/c/clauses/0/path ", "required"),
        ] {
            let told = told(condition);
            assert!(told.starts_with(place) && told.contains(word), "{place}{word}: {told}");
        }
    }
}
