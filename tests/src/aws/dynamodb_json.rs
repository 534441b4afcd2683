//! Converts plain JSON to DynamoDB's types and back.

use serde_json::{Map, Value, json};

/// An object's members, each with its type.
pub(super) fn from_plain(row: &Value) -> Value {
    match row {
        Value::Object(row) => row.iter().map(|(name, value)| (name.clone(), typed(value))).collect(),
        other => panic!("a row is an object, not {other}"),
    }
}

pub(super) fn typed(value: &Value) -> Value {
    match value {
        Value::Null => json!({"NULL": true}),
        Value::Bool(value) => json!({"BOOL": value}),
        Value::Number(value) => json!({"N": value.to_string()}),
        Value::String(value) => json!({"S": value}),
        Value::Array(values) => json!({"L": values.iter().map(typed).collect::<Vec<_>>()}),
        Value::Object(_) => json!({"M": from_plain(value)}),
    }
}

pub(super) fn to_plain(item: &Value) -> Value {
    item.as_object().into_iter().flatten().map(|(name, value)| (name.clone(), plain(value))).collect()
}

fn plain(value: &Value) -> Value {
    let (kind, value) = value.as_object().and_then(|typed: &Map<String, Value>| typed.iter().next()).expect("a type");
    match kind.as_str() {
        "NULL" => Value::Null,
        "N" => serde_json::from_str(value.as_str().expect("a number is text")).expect("a number"),
        "L" => value.as_array().into_iter().flatten().map(plain).collect(),
        "M" => to_plain(value),
        _ => value.clone(),
    }
}
