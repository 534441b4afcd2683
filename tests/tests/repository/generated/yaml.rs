//! Writes JSON as compact YAML: short values on one line, the members of longer ones on a line each.

use serde_json::Value;

/// Maximum characters of a line.
const WIDTH: usize = 140;

/// The first members, in this order; the others are sorted by name.
const FIRST: [&str; 19] = [
    "openapi",
    "info",
    "title",
    "version",
    "servers",
    "operationId",
    "security",
    "tags",
    "summary",
    "name",
    "in",
    "required",
    "type",
    "description",
    "parameters",
    "requestBody",
    "schema",
    "paths",
    "components",
];

/// The members of an object as a block.
pub(crate) fn block(value: &Value, indent: usize) -> String {
    let mut text = String::new();
    for (name, value) in members(value) {
        text += &" ".repeat(indent);
        // A path's braces need no quotes in a block.
        text += &if name.starts_with('/') { name.clone() } else { scalar(name) };
        text.push(':');
        text += &node(value, indent, indent + name.len() + 2);
    }
    text
}

/// A value after `name:` or `-`, including the line end.
fn node(value: &Value, indent: usize, used: usize) -> String {
    let inner = indent + 2;
    let many_lines = value.as_str().is_some_and(|text| text.contains('\n'));
    let flow = flow(value);
    if !many_lines && used + flow.chars().count() <= WIDTH || !is_long(value) {
        return format!(" {flow}\n");
    }
    match value {
        Value::String(text) => {
            let line =
                |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("{}{line}\n", " ".repeat(inner)) };
            format!(" |-\n{}", text.lines().map(line).collect::<String>())
        }
        Value::Array(items) => {
            let item = |item: &Value| format!("{}-{}", " ".repeat(inner), node(item, inner, inner + 2));
            format!("\n{}", items.iter().map(item).collect::<String>())
        }
        _ => format!("\n{}", block(value, inner)),
    }
}

/// Whether a value can span several lines.
fn is_long(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\n') || text.len() > WIDTH,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        _ => false,
    }
}

fn flow(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(_) => {
            let member = |(name, value): (&String, &Value)| format!("{}: {}", scalar(name), flow(value));
            format!("{{{}}}", members(value).into_iter().map(member).collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => scalar(text),
        other => other.to_string(),
    }
}

fn members(value: &Value) -> Vec<(&String, &Value)> {
    let mut members: Vec<(&String, &Value)> = value.as_object().into_iter().flatten().collect();
    let place = |name: &str| FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len());
    members.sort_by_key(|(name, _)| place(name));
    members
}

/// A YAML scalar: plain, or quoted if plain text could be misread.
fn scalar(text: &str) -> String {
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic() || "/$".contains(letter));
    let plain = |letter: char| letter.is_alphanumeric() || "_-./$ ;()'`+".contains(letter);
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"].contains(&text.to_lowercase().as_str());
    if begins && !is_word && !text.ends_with(' ') && text.chars().all(plain) {
        return text.to_owned();
    }
    if text.chars().any(char::is_control) {
        return Value::from(text).to_string();
    }
    format!("'{}'", text.replace('\'', "''"))
}

#[test]
fn yaml_is_read_as_the_json_it_was() {
    let value = serde_json::json!({
        "/api/{slug}/x": {"$ref": "#/a", "n": "no", "seven": "7", "text": "It's: so, {really}.", "long": "One.\n\n- Two: x", "empty": []},
        "list": [{"a": "x".repeat(150)}, "two words", null, 1.5, true, "a # b"],
        "path": "y".repeat(139),
    });
    let text = block(&value, 0);
    let read: Value = serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(read, value, "{text}");
}
