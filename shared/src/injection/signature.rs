//! A tool as TypeScript would declare it, and the arguments of a call held against that.

use serde_json::{Map, Value, json};

use super::{ToolDefinition, ToolParameter};
use crate::tools::arguments;

impl ToolDefinition {
    /// `wget(uri: string, timeoutMs?: number): string`. A tool with a parameter whose name is no identifier takes one object.
    pub fn signature(&self) -> String {
        let named = self.parameters.iter().any(|parameter| !is_identifier(&parameter.name));
        let parameters: Vec<String> = self.parameters.iter().map(ToolParameter::declaration).collect();
        let parameters = parameters.join(", ");
        let parameters = if named { format!("arguments: {{{parameters}}}") } else { parameters };
        format!("{}({parameters}): {}", self.name, self.returns)
    }

    /// The arguments of a call by name. They may be given in the order of the parameters, or all in one object; `null` is as
    /// good as absent.
    ///
    /// # Errors
    /// What is wrong with them, and the signature.
    pub fn bind(&self, given: Vec<Value>) -> Result<Map<String, Value>, String> {
        self.by_name(given).map_err(|wrong| format!("{wrong} The signature is {}.", self.signature()))
    }

    fn by_name(&self, given: Vec<Value>) -> Result<Map<String, Value>, String> {
        let mut arguments = match <[Value; 1]>::try_from(given) {
            Ok([Value::Object(object)]) if self.takes_as_named(&object) => object,
            Ok([one]) => self.in_order(vec![one])?,
            Err(given) => self.in_order(given)?,
        };
        arguments.retain(|_, value| !value.is_null());
        let extra: Vec<String> =
            arguments.keys().filter(|name| self.parameter(name).is_none()).map(|name| format!("\"{name}\"")).collect();
        if !extra.is_empty() {
            return Err(format!("There is no parameter {}.", extra.join(", ")));
        }
        let missing = |parameter: &&ToolParameter| parameter.required && !arguments.contains_key(&parameter.name);
        if let Some(missing) = self.parameters.iter().find(missing) {
            return Err(format!("The argument \"{}\" is missing.", missing.name));
        }
        let checked = arguments::check(&self.schema(), &arguments)?;
        if !checked.ignored.is_empty() {
            return Err(format!("There is no member {}.", checked.ignored.join(", ")));
        }
        Ok(checked.arguments)
    }

    /// An only argument that is an object is the first parameter's value if that is an object and has nothing to do with the
    /// names of parameters.
    fn takes_as_named(&self, object: &Map<String, Value>) -> bool {
        let first_is_object =
            self.parameters.first().is_some_and(|first| first.schema.get("type").is_none_or(|kind| kind == "object"));
        !first_is_object || (!object.is_empty() && object.keys().all(|name| self.parameter(name).is_some()))
    }

    fn in_order(&self, given: Vec<Value>) -> Result<Map<String, Value>, String> {
        if given.len() > self.parameters.len() {
            let (most, given) = (self.parameters.len(), given.len());
            return Err(format!("There are {given} arguments, and at most {most} can be given."));
        }
        Ok(self.parameters.iter().map(|parameter| parameter.name.clone()).zip(given).collect())
    }

    fn parameter(&self, name: &str) -> Option<&ToolParameter> {
        self.parameters.iter().find(|parameter| parameter.name == name)
    }

    /// The parameters as one JSON schema.
    pub fn schema(&self) -> Value {
        let properties: Map<String, Value> =
            self.parameters.iter().map(|parameter| (parameter.name.clone(), parameter.schema.clone())).collect();
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name.as_str())
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    }
}

impl ToolParameter {
    fn declaration(&self) -> String {
        declaration(&self.name, &self.schema, self.required)
    }
}

fn declaration(name: &str, schema: &Value, required: bool) -> String {
    let name = if is_identifier(name) { name.to_owned() } else { Value::from(name).to_string() };
    format!("{name}{}: {}", if required { "" } else { "?" }, typescript(schema))
}

/// The type of a value that fits a schema.
fn typescript(schema: &Value) -> String {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => "string".into(),
        Some("number" | "integer") => "number".into(),
        Some("boolean") => "boolean".into(),
        Some("array") => {
            let item = schema.get("items").map_or_else(|| "any".into(), typescript);
            if item.contains(' ') { format!("({item})[]") } else { format!("{item}[]") }
        }
        Some("object") => match schema.get("properties").and_then(Value::as_object) {
            Some(properties) if !properties.is_empty() => {
                let required = schema.get("required").and_then(Value::as_array);
                let is_required =
                    |name: &str| required.is_some_and(|names| names.iter().any(|required| required == name));
                let members = properties.iter().map(|(name, schema)| declaration(name, schema, is_required(name)));
                format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
            }
            _ => "object".into(),
        },
        _ => "any".into(),
    }
}

/// A value as a JavaScript literal: names without quotes where they need none.
pub(super) fn literal(value: &Value) -> String {
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

/// What can be a name in JavaScript, of ASCII.
pub(super) fn is_identifier(name: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    name.bytes().next().is_some_and(letter) && name.bytes().all(|byte| letter(byte) || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::testing::tool;

    fn order() -> ToolDefinition {
        let mut order = tool("order");
        order.parameters = vec![
            ToolParameter {
                name: "item".into(),
                schema: json!({"type": "string", "enum": ["tea", "cake"]}),
                required: true,
            },
            ToolParameter { name: "count".into(), schema: json!({"type": "integer"}), required: false },
            ToolParameter {
                name: "guests".into(),
                schema: json!({"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}}),
                required: false,
            },
        ];
        order
    }

    #[test]
    fn a_signature_says_names_types_and_what_may_be_left_out() {
        assert_eq!(
            order().signature(),
            r#"order(item: "tea" | "cake", count?: number, guests?: ({name: string})[]): string"#
        );
        let mut odd = tool("odd");
        odd.parameters =
            vec![ToolParameter { name: "x-y".into(), schema: json!({"type": "boolean"}), required: false }];
        assert_eq!(odd.signature(), r#"odd(arguments: {"x-y"?: boolean}): string"#);
    }

    #[test]
    fn arguments_come_in_order_or_by_name() {
        let expected = json!({"item": "tea", "count": 2});
        for given in [
            vec![json!("tea"), json!(2)],
            vec![json!({"item": "tea", "count": 2})],
            vec![json!("tea"), json!(2.0), Value::Null],
            vec![json!({"item": "tea", "count": 2, "guests": null})],
        ] {
            assert_eq!(Value::Object(order().bind(given).unwrap()), expected);
        }
    }

    #[test]
    fn an_object_is_the_first_parameter_where_that_takes_one() {
        let mut save = tool("save");
        save.parameters = vec![
            ToolParameter { name: "record".into(), schema: json!({"type": "object"}), required: true },
            ToolParameter { name: "dry".into(), schema: json!({"type": "boolean"}), required: false },
        ];
        let bound = |given| Value::Object(save.bind(given).unwrap());
        assert_eq!(bound(vec![json!({"a": 1})]), json!({"record": {"a": 1}}));
        assert_eq!(bound(vec![json!({"record": {"a": 1}, "dry": true})]), json!({"record": {"a": 1}, "dry": true}));
    }

    #[test]
    fn known_failure_4_3_a_wrong_argument_is_told_with_the_signature() {
        for (given, wrong) in [
            (vec![], "\"item\" is missing"),
            (vec![json!({"count": 1})], "\"item\" is missing"),
            (vec![json!("beer")], "must be one of tea, cake"),
            (vec![json!("tea"), json!("two")], "\"count\" must be a whole number, not text"),
            (vec![json!("tea"), json!(1), json!([]), json!(4)], "There are 4 arguments, and at most 3"),
            (vec![json!({"item": "tea", "colour": "green"})], "no parameter \"colour\""),
            (vec![json!({"item": "tea", "guests": [{"name": "Ana", "age": 3}]})], "no member guests[0].age"),
        ] {
            let sentence = order().bind(given).unwrap_err();
            assert!(sentence.contains(wrong) && sentence.contains("The signature is order(item: "), "{sentence}");
        }
    }
}
