//! Types and values of parameters in words, for models.

use serde_json::Value;

use super::scope::types;

pub(super) fn words(types: &[&str]) -> String {
    let word = |name: &&str| {
        match *name {
            "string" => "text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "true or false",
            "array" => "a list",
            "object" => "an object",
            "null" => "null",
            other => other,
        }
        .to_owned()
    };
    let words: Vec<String> = types.iter().map(word).collect();
    if words.is_empty() { "a value".to_owned() } else { words.join(" or ") }
}

pub(super) fn repair(value: &Value, allowed: &[&str]) -> String {
    let allows = |name: &str| allowed.contains(&name);
    match value {
        Value::String(text) => {
            let text = text.trim();
            let number = text.parse::<f64>().is_ok_and(f64::is_finite);
            if number && (allows("number") || (allows("integer") && !text.contains(['.', 'e', 'E']))) {
                return format!("Write {text} without quotes.");
            }
            if allows("boolean") && (text == "true" || text == "false") {
                return format!("Write {text} without quotes.");
            }
            if allows("array") {
                return "Put it into a list: [\"...\"].".to_owned();
            }
            if allows("object") && text.starts_with('{') {
                return "Write the object itself, not its JSON as text.".to_owned();
            }
        }
        Value::Number(_) | Value::Bool(_) if allows("string") => return format!("Write \"{value}\" with quotes."),
        Value::Number(_) if allows("integer") => return "Write a number without decimals.".to_owned(),
        Value::Object(_) | Value::Array(_) if allows("string") => {
            return "Write it as JSON in a text, without templates in it: a quote in their values would break it."
                .to_owned();
        }
        Value::Null => return "Leave it out, or write a value.".to_owned(),
        _ => {}
    }
    format!("Write {}.", words(allowed))
}

pub(super) fn example(schema: &Value) -> String {
    let given = schema.get("example").or_else(|| schema.get("examples")?.get(0)).or_else(|| schema.get("const"));
    let given = given.or_else(|| schema.get("enum")?.get(0));
    if let Some(given) = given {
        return crate::cut::cut(given.to_string(), 100);
    }
    match types(schema).first().copied().unwrap_or("string") {
        "integer" | "number" => "1",
        "boolean" => "true",
        "array" => "[...]",
        "object" => "{...}",
        _ => "\"...\"",
    }
    .to_owned()
}
