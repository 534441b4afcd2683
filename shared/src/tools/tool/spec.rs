//! The specification of a tool: stored, listed, and shown to models.

use serde_json::{Map, Value, json};

use crate::{json_schema::properties, models::ToolEffect};

#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    pub name: String,
    /// Purpose and use of the tool, for the model.
    pub description: String,
    pub parameters: Parameters,
    /// JSON schema of the result; `{}` if it is unknown.
    pub returns: Value,
    /// Whole calls, `wget("https://example.com", 5000)`. Without them [`ToolSpec::examples`] derives some.
    pub own_examples: Vec<String>,
    pub effect: ToolEffect,
    /// An identical call in the same run may be answered from the run's record.
    pub repeatable: bool,
}

impl ToolSpec {
    /// Whether the result of an earlier identical call may answer a call. An acting tool's never may.
    pub fn is_repeatable(&self) -> bool {
        self.repeatable && !self.acts()
    }

    pub const fn acts(&self) -> bool {
        self.effect.acts()
    }

    /// The same tool with each description as `rewrite` has it.
    #[must_use]
    pub fn with_descriptions(mut self, rewrite: &impl Fn(&str) -> String) -> Self {
        self.description = rewrite(&self.description);
        rewrite_descriptions(&mut self.parameters.schema, rewrite);
        self
    }
}

fn rewrite_descriptions(schema: &mut Value, rewrite: &impl Fn(&str) -> String) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(|item| rewrite_descriptions(item, rewrite)),
        Value::Object(members) => members.iter_mut().for_each(|(name, member)| match member {
            Value::String(text) if name == "description" => *text = rewrite(text),
            member => rewrite_descriptions(member, rewrite),
        }),
        _ => {}
    }
}

/// The arguments of a tool: a JSON schema of type `object`, and the order of positional arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Parameters {
    schema: Value,
    order: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ParameterSpec<'a> {
    pub name: &'a str,
    /// JSON schema with a `description`.
    pub schema: &'a Value,
    pub required: bool,
}

impl Parameters {
    /// Takes name, schema and whether it is required, in the order of positional arguments. Required parameters come
    /// first.
    pub fn new<'a>(parameters: impl IntoIterator<Item = (&'a str, Value, bool)>) -> Self {
        let (mut properties, mut required, mut order) = (Map::new(), Vec::new(), Vec::new());
        for (name, schema, is_required) in parameters {
            properties.insert(name.to_owned(), schema);
            order.push(name.to_owned());
            if is_required {
                required.push(name);
            }
        }
        Self { schema: json!({"type": "object", "properties": properties, "required": required}), order }
    }

    /// Takes a schema without an order: required parameters come first, then the others by name.
    pub fn of_schema(schema: Value) -> Self {
        let mut order: Vec<String> = properties(&schema).map(|(name, _)| name.clone()).collect();
        order.sort_by_key(|name| !is_required(&schema, name));
        Self { schema, order }
    }

    /// The same parameters with `additionalProperties: false`.
    #[must_use]
    pub fn closed(mut self) -> Self {
        if let Value::Object(schema) = &mut self.schema {
            schema.insert("additionalProperties".into(), false.into());
        }
        self
    }

    pub fn schema(&self) -> &Value {
        &self.schema
    }

    pub fn iter(&self) -> impl Iterator<Item = ParameterSpec<'_>> {
        self.order.iter().filter_map(|name| self.get(name))
    }

    pub fn get<'a>(&'a self, name: &'a str) -> Option<ParameterSpec<'a>> {
        let schema = self.schema.get("properties")?.get(name)?;
        Some(ParameterSpec { name, schema, required: is_required(&self.schema, name) })
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

fn is_required(schema: &Value, name: &str) -> bool {
    schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|required| required == name))
}

/// Whether a text can be an ASCII name in JavaScript.
pub fn is_identifier(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    name.bytes().next().is_some_and(letter) && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

/// A value as a JavaScript literal, with unquoted member names where possible.
pub fn literal(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members = members.iter().map(|(name, value)| {
                let name = if is_identifier(name) { name.clone() } else { Value::from(name.as_str()).to_string() };
                format!("{name}: {}", literal(value))
            });
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_without_an_order_have_the_required_ones_first() {
        let schema = json!({
            "type": "object", "properties": {"a": {}, "b": {}, "c": {}, "d": {}}, "required": ["d", "b"],
        });
        let parameters = Parameters::of_schema(schema);
        let order: Vec<_> = parameters.iter().map(|parameter| (parameter.name, parameter.required)).collect();
        assert_eq!(order, [("b", true), ("d", true), ("a", false), ("c", false)]);
        assert!(Parameters::of_schema(json!({})).is_empty());
    }
}
