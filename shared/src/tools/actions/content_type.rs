//! The content type of an `api_request`: JSON, or a form if its header says so.

use std::collections::BTreeMap;

use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::{Parameter, variables};
use crate::{clients::outbound::FORM, fields::Fields, redaction::SECRET};

pub(super) fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

pub(super) fn is_form(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).is_some_and(|value| media_type(value) == FORM)
}

pub(super) fn check(
    fields: &mut Fields<'_>,
    headers: &BTreeMap<String, Parameter>,
    body: &BTreeMap<String, Parameter>,
) {
    let header = headers.iter().find(|(name, _)| CONTENT_TYPE.as_str().eq_ignore_ascii_case(name));
    let Some((name, Parameter::Fixed { value: value @ Value::String(text), .. })) = header else { return };
    if body.is_empty() || text.contains(SECRET) || variables::has_any(value) {
        return;
    }
    let named = media_type(text);
    if named == FORM {
        for member in body.iter().filter(|(_, parameter)| is_nested(parameter)).map(|(member, _)| member) {
            let problem = format!("must be a single value: headers.{name} says that the body is a form");
            fields.problem(&format!("body.{member}"), problem);
        }
    } else if !named.contains("json") {
        let problem = format!("must be a type of JSON or {FORM}: other bodies cannot be sent");
        fields.problem(&format!("headers.{name}.value"), problem);
    }
}

fn is_nested(parameter: &Parameter) -> bool {
    match parameter {
        Parameter::Fixed { value, .. } => value.is_array() || value.is_object(),
        Parameter::Ai { schema, .. } => schema.get("type").is_some_and(|kind| kind == "array" || kind == "object"),
        Parameter::ArrayExtendable { .. } => true,
    }
}
