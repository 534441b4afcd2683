//! JSON Schema of model-visible parameters, in VAPI's subset.
//!
//! VAPI's `JsonSchema` knows `type, items, properties, description, pattern, format, required, enum, title`, and rejects a tool
//! with any other key. We report such keys first, so that the author learns the reason.

use serde_json::{Map, Value, json};

use super::Parameter;
use crate::{
    error::Problems,
    fields::kind,
    models::{NO_ARGUMENTS, ToolName},
};

const KEYS: [&str; 9] =
    ["type", "items", "properties", "description", "pattern", "format", "required", "enum", "title"];
const TYPES: [&str; 6] = ["string", "number", "integer", "boolean", "array", "object"];
const FORMATS: [&str; 9] = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
const DEEPEST: usize = 6;

/// The function for a model: `{name, description, parameters}`.
pub(super) fn function<'a>(
    name: &ToolName,
    description: &str,
    parameters: impl Iterator<Item = (String, &'a Parameter)>,
) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for (name, parameter) in parameters {
        if let Some((property, is_required)) = parameter.property() {
            if is_required {
                required.push(name.clone());
            }
            properties.insert(name, property);
        }
    }
    if properties.is_empty() {
        properties.insert(NO_ARGUMENTS.into(), json!({"type": "string", "description": "Leave empty."}));
    }
    json!({
        "name": name,
        "description": super::to_liquid(description),
        "parameters": {"type": "object", "properties": properties, "required": required},
    })
}

/// Checks the schema that an author declared for an AI parameter.
pub(super) fn check_declared(schema: &Map<String, Value>, path: &str, problems: &mut Problems) {
    check(schema, path, 0, problems);
}

fn check(schema: &Map<String, Value>, path: &str, depth: usize, problems: &mut Problems) {
    if depth > DEEPEST {
        problems.add(path, format!("is nested more than {DEEPEST} levels deep"));
        return;
    }
    for name in schema.keys().filter(|name| !KEYS.contains(&name.as_str())) {
        problems.add(format!("{path}.{name}"), format!("is not a key VAPI knows; known are {}", KEYS.join(", ")));
    }
    let declared = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    if !TYPES.contains(&declared) {
        problems.add(format!("{path}.type"), format!("must be one of {}", TYPES.join(", ")));
    }
    let mut text = |name: &str| {
        let value = schema.get(name)?;
        if value.as_str().is_none() {
            problems.add(format!("{path}.{name}"), format!("must be text, not {}", kind(value)));
        }
        value.as_str()
    };
    text("description");
    text("title");
    let pattern = text("pattern");
    let format = text("format");
    if let Some(error) = pattern.and_then(|pattern| regex_lite::Regex::new(pattern).err()) {
        problems.add(format!("{path}.pattern"), format!("is not a regular expression we can check: {error}"));
    }
    if format.is_some_and(|format| !FORMATS.contains(&format)) {
        problems.add(format!("{path}.format"), format!("must be one of {}", FORMATS.join(", ")));
    }
    if let Some(values) = schema.get("enum") {
        let texts = values.as_array().is_some_and(|values| !values.is_empty() && values.iter().all(Value::is_string));
        if !texts || declared != "string" {
            problems.add(format!("{path}.enum"), "must be a list of texts, for type string (VAPI takes no others)");
        }
    }
    if let Some(items) = schema.get("items") {
        check_nested(items, &format!("{path}.items"), depth, problems);
    }
    let properties = match schema.get("properties") {
        None => Map::new(),
        Some(Value::Object(properties)) => properties.clone(),
        Some(other) => {
            problems.add(format!("{path}.properties"), format!("must be an object, not {}", kind(other)));
            return;
        }
    };
    for (name, property) in &properties {
        if name.is_empty() {
            problems.add(format!("{path}.properties"), "has a property without a name");
        }
        check_nested(property, &format!("{path}.properties.{name}"), depth, problems);
    }
    if let Some(required) = schema.get("required") {
        let known = |name: &Value| name.as_str().is_some_and(|name| properties.contains_key(name));
        if !required.as_array().is_some_and(|names| names.iter().all(known)) {
            problems
                .add(format!("{path}.required"), "must be a list of names of properties (or true or false at the top)");
        }
    }
}

fn check_nested(schema: &Value, path: &str, depth: usize, problems: &mut Problems) {
    match schema {
        Value::Object(schema) => check(schema, path, depth + 1, problems),
        other => problems.add(path, format!("must be an object, not {}", kind(other))),
    }
}
