//! The fields of events, learned from the events that came.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{described::Described, redaction};

const MOST_FIELDS: usize = 200;
const DEEPEST: usize = 8;
/// Items of a list that are looked at.
const MOST_ITEMS: usize = 20;
/// Bytes of a text in the example.
const LONGEST_TEXT: usize = 200;

/// The fields of the events that came, and one of them.
#[derive(Debug, Clone, PartialEq, Serialize, Described)]
pub struct LearnedPayload {
    /// By their paths, in the order of the alphabet.
    pub fields: Vec<LearnedField>,
    /// The newest event, with placeholders for numbers, addresses and keys.
    pub example: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Described)]
pub struct LearnedField {
    /// `order.items[0].price`
    pub path: String,
    /// JSON types, more than one if the events differ.
    pub types: Vec<&'static str>,
    /// Whether all events have it.
    pub always: bool,
}

/// `None` without events. The newest comes first.
pub fn learn(events: &[Value]) -> Option<LearnedPayload> {
    let example = shown(events.first()?, "");
    let mut found: BTreeMap<String, (BTreeSet<&'static str>, usize)> = BTreeMap::new();
    for event in events {
        let mut paths = BTreeMap::new();
        walk(event, "", 0, &mut paths);
        for (path, types) in paths {
            if found.len() >= MOST_FIELDS && !found.contains_key(&path) {
                continue;
            }
            let (known, count) = found.entry(path).or_default();
            known.extend(types);
            *count += 1;
        }
    }
    let field = |(path, (types, count)): (String, (BTreeSet<&'static str>, usize))| LearnedField {
        path,
        types: types.into_iter().collect(),
        always: count == events.len(),
    };
    Some(LearnedPayload { fields: found.into_iter().map(field).collect(), example })
}

fn walk(value: &Value, path: &str, depth: usize, paths: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    if paths.len() >= MOST_FIELDS {
        return;
    }
    if !path.is_empty() {
        paths.entry(path.to_owned()).or_default().insert(kind(value));
    }
    if depth >= DEEPEST {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                walk(value, &below(path, name), depth + 1, paths);
            }
        }
        Value::Array(items) => {
            for item in items.iter().take(MOST_ITEMS) {
                walk(item, &format!("{path}[0]"), depth + 1, paths);
            }
        }
        _ => {}
    }
}

/// As templates write paths: `a.b`, `a["First name"]`.
fn below(path: &str, name: &str) -> String {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match (plain && !name.is_empty(), path.is_empty()) {
        (true, true) => name.to_owned(),
        (true, false) => format!("{path}.{name}"),
        (false, true) => format!("trigger_data[{}]", Value::from(name)),
        (false, false) => format!("{path}[{}]", Value::from(name)),
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Without secrets and personal data, as far as names and looks tell them.
fn shown(value: &Value, name: &str) -> Value {
    match value {
        Value::String(_) | Value::Number(_) if redaction::is_secret(name) => "[redacted]".into(),
        Value::String(text) => redaction::redacted(text, LONGEST_TEXT).into(),
        Value::Number(number) => {
            let text = number.to_string();
            if redaction::redacted(&text, LONGEST_TEXT) == text { value.clone() } else { "[number]".into() }
        }
        Value::Array(items) => items.iter().take(MOST_ITEMS).map(|item| shown(item, name)).collect(),
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| (name.clone(), shown(value, name)));
            Value::Object(members.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_all_events_are_known_with_their_types_and_an_example_without_personal_data() {
        assert_eq!(learn(&[]), None);
        let events = [
            json!({"id": 7, "buyer": {"email": "ada@example.com", "First name": "Ada"}, "rows": [{"sku": "a"}, {"sku": 5}]}),
            json!({"id": "8", "buyer": null, "api_key": "sk_live_abc"}),
        ];
        let learned = learn(&events).unwrap();
        let fields: Vec<String> = learned
            .fields
            .iter()
            .map(|field| {
                format!("{} {}{}", field.path, field.types.join("|"), if field.always { " always" } else { "" })
            })
            .collect();
        assert_eq!(
            fields,
            [
                "api_key string",
                "buyer null|object always",
                "buyer.email string",
                "buyer[\"First name\"] string",
                "id number|string always",
                "rows array",
                "rows[0] object",
                "rows[0].sku number|string",
            ]
        );
        assert_eq!(learned.example["buyer"]["email"], "[email]");
        assert_eq!(learn(&events[1..]).unwrap().example["api_key"], "[redacted]");
    }

    #[test]
    fn a_huge_event_costs_a_bounded_answer() {
        let wide: Value = (0..5_000).map(|n| (format!("f{n}"), json!(n))).collect::<Map<_, _>>().into();
        assert_eq!(learn(&[wide]).unwrap().fields.len(), MOST_FIELDS);
        let deep = (0..100).fold(json!(1), |value, _| json!({"a": value}));
        assert_eq!(learn(&[deep]).unwrap().fields.len(), DEEPEST);
    }
}
