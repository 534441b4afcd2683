//! Holds the schema of definitions against the reader: both refuse the same mistakes of shape.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::definition_schema::definition_schema;
use crate::{
    automation::{Definition, Diagnostics, Severity},
    json_schema::{JsonSchema, properties},
};

/// Parts that the request of a run checks.
const CHECKED_AS_RUNS: [&str; 6] = ["/prompt", "/system_prompt", "/tools", "/schema", "/model", "/limits"];

/// Valid definitions that have each field of the schema at least once.
fn definitions() -> Vec<Value> {
    let clause = json!({"path": "event.text", "op": "contains", "value": "now", "case_insensitive": true});
    let group = json!({"operator": "OR", "clauses": [clause, {"path": "event.n", "op": "exists"}]});
    let actions = json!([{
        "id": "tell", "tool": "slack_post_message", "parameters": {"text": "{{event.text}}"}, "output_as": "told",
        "condition": group, "approval": {"expires_in_minutes": 60, "reason": "It leaves the house."},
        "timeout_seconds": 20, "on_error": "stop", "retries": 1,
    }, {"id": "again", "tool": "slack_post_message", "approval": true}]);
    let tell = json!([{"id": "caught", "tool": "slack_post_message"}]);
    let steps = json!([
        {"id": "each", "for_each": "{{rows}}", "as": "row", "key": "{{row.id}}", "max_items": 5, "at_once": 2, "actions": [{"id": "a", "tool": "t"}]},
        {"id": "either", "choose": [{"when": clause, "actions": [{"id": "b", "tool": "t"}]}], "otherwise": [{"id": "c", "tool": "t"}]},
        {"id": "pause", "wait": {"minutes": 5}},
        {"id": "paid", "output_as": "payment", "wait": {"for_event": {
            "service": "stripe", "event_type": "invoice.paid", "filters": clause, "timeout": 60,
        }}},
        {"id": "shipped", "wait": {"for_event": {"hook": "acme", "timeout": 60}}},
        {"id": "later", "wait": {"until": "2027-01-31T09:00:00Z"}},
        {"id": "try", "tool": "t", "catch": tell},
    ]);
    let with = |trigger_type: &str, trigger_config: Value| {
        json!({
            "name": "Urgent", "description": "Tells of it.", "trigger_type": trigger_type,
            "trigger_config": trigger_config, "actions": actions, "variables": {"channel": "C1"},
            "fingerprints": {"slack_post_message": "9f86d0"},
            "quotas": {"runs_per_hour": 10, "effects_per_run": 5, "messages_per_day": 20},
            "approvals": [{"effect": "email", "outside": ["example.com"]}, {"effect": "any"}],
        })
    };
    vec![
        with("webhook", json!({"service": "slack", "event_type": "message", "params": {}, "filters": clause})),
        with(
            "polling",
            json!({
                "service": "gmail", "event_type": "new_email", "source_tool": "gmail_find_email",
                "tool_params": {"q": "x"}, "items": "list", "id": "id", "polling_interval_minutes": 30, "filter": clause,
                "aggregation_mode": "batch", "missed": "skip",
            }),
        ),
        with("schedule_once", json!({"run_at": "2027-01-31T09:00:00+01:00", "timezone": "Europe/Berlin"})),
        with(
            "schedule_recurring",
            json!({
                "interval": "weekly", "time_of_day": "09:00", "day_of_week": "monday", "timezone": "Europe/Berlin",
                "missed": "run_once",
            }),
        ),
        with("schedule_recurring", json!({"cron": ["0 9 * * *", "30 13 * * *"], "not_on": ["12-25"]})),
        with("webhook", json!({"hook": "acme", "event_type": "order.paid"})),
        json!({"name": "Steps", "trigger_type": "manual", "actions": steps, "catch": [{"id": "end", "tool": "t"}]}),
        json!({
            "name": "Ask", "trigger_type": "manual", "prompt": "Sum it up.", "system_prompt": "Be short.",
            "tools": ["current_time"], "schema": {"type": "object"}, "model": "a/model",
            "limits": {"iterations": 3, "calls": 3, "tokens": 1_000, "cost": 1.5, "seconds": 60},
        }),
    ]
}

fn errors(definition: &Value) -> Vec<String> {
    let mut diagnostics = Diagnostics::default();
    Definition::read(definition, &mut diagnostics);
    let errors = diagnostics.iter().filter(|one| one.severity == Severity::Error);
    errors.map(|one| one.pointer.clone()).collect()
}

/// Values that `schema` refuses in place of `value`, each with the pointer of the place that is wrong.
fn mistakes(schema: &Value, value: &Value, pointer: &str) -> Vec<(String, Value)> {
    let mut mistakes = Vec::new();
    let mut add = |wrong: Value| mistakes.push((pointer.to_owned(), wrong));
    if schema.get("type").is_some() {
        for other in [json!(true), json!(7), json!("nonsense"), json!([1]), json!({"nonsense": 1})] {
            if JsonSchema::compile(schema).is_ok_and(|schema| !schema.validate(&other).is_empty()) {
                add(other);
            }
        }
    }
    if let Some(least) = schema.get("minimum").and_then(Value::as_u64) {
        least.checked_sub(1).into_iter().for_each(|below| add(json!(below)));
    }
    if let Some(most) = schema.get("maximum").and_then(Value::as_u64) {
        add(json!(most + 1));
    }
    if let (Some(Value::Object(parts)), Value::Object(members)) = (schema.get("properties"), value) {
        for name in schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            let without: Map<String, Value> = members
                .iter()
                .filter(|(member, _)| *member != name)
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            mistakes.push((format!("{pointer}/{name}"), Value::Object(without)));
        }
        if schema.get("additionalProperties") == Some(&json!(false)) {
            let mut more = members.clone();
            more.insert("nonsense".into(), json!(1));
            mistakes.push((format!("{pointer}/nonsense"), Value::Object(more)));
        }
        for (name, part) in parts {
            let Some(member) = members.get(name) else { continue };
            for (place, wrong) in self::mistakes(part, member, &format!("{pointer}/{name}")) {
                let mut whole = members.clone();
                whole.insert(name.clone(), wrong);
                mistakes.push((place, Value::Object(whole)));
            }
        }
    }
    if let (Some(part), Value::Array(items)) = (schema.get("items"), value) {
        for (index, item) in items.iter().enumerate() {
            for (place, wrong) in self::mistakes(part, item, &format!("{pointer}/{index}")) {
                let mut whole = items.clone();
                whole.splice(index..=index, [wrong]);
                mistakes.push((place, Value::Array(whole)));
            }
        }
    }
    if let Some(forms) = schema.get("anyOf").and_then(Value::as_array) {
        let form =
            forms.iter().find(|form| JsonSchema::compile(form).is_ok_and(|form| form.validate(value).is_empty()));
        mistakes.extend(form.into_iter().flat_map(|form| self::mistakes(form, value, pointer)));
    }
    mistakes
}

/// The pointers of the schema's properties, as far as definitions have them.
fn covered(schema: &Value, value: &Value, place: &str, found: &mut BTreeSet<String>) {
    for form in schema.get("anyOf").and_then(Value::as_array).into_iter().flatten() {
        covered(form, value, place, found);
    }
    match value {
        Value::Object(members) => {
            for (name, part) in properties(schema) {
                if let Some(member) = members.get(name) {
                    let place = format!("{place}/{name}");
                    covered(part, member, &place, found);
                    found.insert(place);
                }
            }
        }
        Value::Array(items) => {
            for item in items {
                covered(schema.get("items").unwrap_or(&Value::Null), item, place, found);
            }
        }
        _ => {}
    }
}

fn all_properties(schema: &Value, place: &str, all: &mut BTreeSet<String>) {
    let forms = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    forms.chain(schema.get("items")).for_each(|part| all_properties(part, place, all));
    for (name, part) in properties(schema) {
        let place = format!("{place}/{name}");
        all_properties(part, &place, all);
        all.insert(place);
    }
}

#[test]
fn the_definitions_have_each_field_of_the_schema() {
    let (shown, mut found, mut all) = (definition_schema(), BTreeSet::new(), BTreeSet::new());
    for definition in definitions() {
        covered(&shown, &definition, "", &mut found);
    }
    all_properties(&shown, "", &mut all);
    // Conditions are the same everywhere.
    let missing: Vec<&String> = all.difference(&found).filter(|place| !is_in_a_condition(place)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn is_in_a_condition(place: &str) -> bool {
    ["/condition/", "/filter/", "/filters/", "/when/"].iter().any(|part| place.contains(part))
}

#[test]
fn a_definition_without_mistakes_passes_the_schema_and_the_reader() {
    let schema = JsonSchema::compile(&definition_schema()).unwrap();
    for definition in definitions() {
        assert_eq!(errors(&definition), Vec::<String>::new(), "{definition}");
        let violations = schema.validate(&definition);
        assert!(violations.is_empty(), "{definition}: {violations:?}");
    }
}

#[test]
fn a_mistake_that_the_schema_refuses_is_refused_by_the_reader_at_its_place() {
    let shown = definition_schema();
    let schema = JsonSchema::compile(&shown).unwrap();
    let mut tried = 0;
    for definition in definitions() {
        for (pointer, wrong) in mistakes(&shown, &definition, "") {
            if CHECKED_AS_RUNS.iter().any(|part| pointer.starts_with(part)) || schema.validate(&wrong).is_empty() {
                continue;
            }
            tried += 1;
            let errors = errors(&wrong);
            let at = |error: &String| error.starts_with(&pointer) || pointer.starts_with(error.as_str());
            assert!(errors.iter().any(at), "{pointer} is wrong, but the reader reports {errors:?}: {wrong}");
        }
    }
    assert!(tried > 300, "only {tried} mistakes were made");
}
