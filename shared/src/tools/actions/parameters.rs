//! The parameters of a configuration: their places and their parsing.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Parameter;
use crate::fields::Fields;

/// Members of `params`, `headers` and `body`.
const MOST_PARAMETERS: usize = 50;

pub(super) struct Place {
    pub(super) field: String,
    pub(super) argument: String,
}

impl Place {
    pub(super) fn named(name: &str) -> Self {
        Self { field: name.to_owned(), argument: name.to_owned() }
    }
}

pub(super) fn parameter(fields: &mut Fields<'_>, name: &'static str) -> Option<Parameter> {
    let value = fields.required(name)?;
    let path = fields.path(name);
    Parameter::parse(value, path, fields.problems())
}

/// Reads parameters under names of the author's choice, which must also be valid argument names.
pub(super) fn parameters(
    fields: &mut Fields<'_>,
    name: &'static str,
    allowed: fn(&str) -> bool,
) -> BTreeMap<String, Parameter> {
    let members = fields.members(name);
    if members.len() > MOST_PARAMETERS {
        fields.problem(name, format!("has more than {MOST_PARAMETERS} members"));
        return BTreeMap::new();
    }
    let base = fields.path(name);
    let mut parameters = BTreeMap::new();
    for (member, value) in members {
        let path = format!("{base}.{member}");
        if !allowed(member) {
            fields.problems().add(path, "has characters in its name that are not allowed there");
        } else if let Some(parameter) = Parameter::parse(value, path.clone(), fields.problems()) {
            if member.contains('$') && parameter.property().is_some() {
                fields.problems().add(path, "cannot be filled in by a model: its name has a $; make it fixed");
            }
            parameters.insert(member.clone(), parameter);
        }
    }
    parameters
}

/// The fixed text of a parameter that must be one text.
pub(super) fn fixed_text<'p>(parameter: &'p Parameter, name: &str, fields: &mut Fields<'_>) -> Option<&'p str> {
    let (place, problem) = match parameter {
        Parameter::Fixed { value: Value::String(text), .. } => return Some(text),
        Parameter::Fixed { .. } => ("value", "must be text"),
        Parameter::Ai { schema, .. } if schema.get("type").is_none_or(|kind| kind != "string") => {
            ("schema.type", "must be string")
        }
        Parameter::Ai { .. } => return None,
        Parameter::ArrayExtendable { .. } => ("mode", "must be fixed or ai"),
    };
    fields.problem(&format!("{name}.{place}"), problem);
    None
}

/// Letters, digits, `_`, `-`, `.` and `$`; at most 64 with a prefix. Anthropic refuses a `$` in a model's argument.
pub(super) fn argument_name(name: &str) -> bool {
    (1..=56).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$'))
}

pub(super) fn all_hidden(parameters: &BTreeMap<String, Parameter>) -> Value {
    parameters.iter().filter_map(|(name, parameter)| Some((name.clone(), parameter.hidden()?))).collect()
}

pub(super) fn object<const N: usize>(members: [(&str, Option<Value>); N]) -> Map<String, Value> {
    members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}
