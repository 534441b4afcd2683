//! VAPI's published OpenAPI document, too large for the repository: read from beside it.

use jsonschema::Validator;
use serde_json::{Value, json};

/// Checks a body against a schema of the document as strictly as VAPI's validator: no unknown property.
#[track_caller]
pub fn vapi_takes(schema: &str, body: &Value) {
    let Some(validator) = vapi_schema(schema) else {
        println!("skipped: {schema} is not checked, because ../shared/vapi/openapi.json is not there");
        return;
    };
    let problems: Vec<String> =
        validator.iter_errors(body).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(problems.is_empty(), "{schema}: {problems:#?}\n{body:#}");
}

/// A strict schema of the document; `None` if the document is missing.
pub fn vapi_schema(name: &str) -> Option<Validator> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/vapi/openapi.json");
    let text = std::fs::read_to_string(path).ok()?;
    let mut document: Value = serde_json::from_str(&text).expect("the document is JSON");
    correct(&mut document["components"]["schemas"]);
    let root = json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]});
    Some(jsonschema::draft202012::new(&root).expect("the document holds schemas"))
}

/// Repairs the document: it prints patterns between slashes, and states neither that an enum of texts is text nor
/// that objects are closed.
fn correct(schema: &mut Value) {
    if let Value::Object(object) = schema {
        if let Some(Value::String(pattern)) = object.get_mut("pattern")
            && let Some(bare) = pattern.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'))
        {
            *pattern = bare.0.to_owned();
        }
        let texts =
            object.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().all(Value::is_string));
        match object.get("type").and_then(Value::as_str) {
            Some("object") if texts => drop(object.insert("type".into(), "string".into())),
            Some("array") if texts => drop(object.remove("enum")),
            Some("object") if object.get("properties").is_some_and(Value::is_object) => {
                object.entry("additionalProperties").or_insert(false.into());
            }
            _ => {}
        }
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(correct),
        Value::Array(items) => items.iter_mut().for_each(correct),
        _ => {}
    }
}
