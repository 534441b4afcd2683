//! Example calls of a tool, derived from its schema.

use serde_json::{Map, Value};

use super::{ParameterSpec, Parameters, ToolSpec, literal};
use crate::json_schema::properties;

/// A model needs this many to see how a tool is called.
const FEWEST_EXAMPLES: usize = 3;

const ANY_TEXT: &str = "…";

impl ToolSpec {
    /// At least three whole calls: the author's, then calls derived from the schema.
    pub fn examples(&self) -> Vec<String> {
        let wanted = self.own_examples.len().max(FEWEST_EXAMPLES);
        if self.own_examples.len() == wanted {
            return self.own_examples.clone();
        }
        let all: Vec<ParameterSpec<'_>> = self.parameters.iter().collect();
        let required: Vec<ParameterSpec<'_>> = all.iter().copied().filter(|parameter| parameter.required).collect();
        let (name, first) = (&self.name, named(&all));
        let mut arguments = [first.clone(), named(&required), positional(&all), positional(&required)];
        if !self.own_examples.is_empty() {
            // The author's show what can be given; the shortest calls suffice beside them.
            arguments.swap(0, 3);
        }
        let varied = arguments.iter().map(|arguments| format!("return {name}({arguments});"));
        // The same call in another notation, where there is little to vary.
        let respelled = [format!("{name}({first})"), format!("return await {name}({first});")];
        let mut calls = self.own_examples.clone();
        for call in varied.chain(respelled) {
            if calls.len() < wanted && !calls.contains(&call) {
                calls.push(call);
            }
        }
        calls
    }
}

/// Arguments that fit a schema: the required ones, or the first if none is required.
pub fn sample_arguments(parameters: &Parameters) -> Map<String, Value> {
    let required = parameters.iter().filter(|parameter| parameter.required).count();
    let chosen = parameters.iter().take(required.max(1));
    chosen.map(|parameter| (parameter.name.to_owned(), sample(parameter.schema))).collect()
}

/// One object of named arguments; empty text without arguments.
fn named(given: &[ParameterSpec<'_>]) -> String {
    let arguments: Map<String, Value> =
        given.iter().map(|parameter| (parameter.name.to_owned(), sample(parameter.schema))).collect();
    if arguments.is_empty() { String::new() } else { literal(&Value::Object(arguments)) }
}

fn positional(given: &[ParameterSpec<'_>]) -> String {
    given.iter().map(|parameter| literal(&sample(parameter.schema))).collect::<Vec<_>>().join(", ")
}

/// A value that fits the schema; [`ANY_TEXT`] for a text with a pattern.
fn sample(schema: &Value) -> Value {
    if let Some(first) = schema.pointer("/enum/0").or_else(|| schema.get("default")) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| 1.into()),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(schema.get("items").map(sample).into_iter().collect()),
        Some("object") => {
            let members = properties(schema);
            members.map(|(name, schema)| (name.clone(), sample(schema))).collect()
        }
        _ => schema.get("format").and_then(Value::as_str).map_or(ANY_TEXT, formatted).into(),
    }
}

fn formatted(format: &str) -> &'static str {
    match format {
        "date-time" => "2026-03-01T15:00:00Z",
        "date" => "2026-03-01",
        "time" => "15:00:00",
        "duration" => "PT30M",
        "email" => "ana@example.com",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "uri" => "https://example.com/page",
        "uuid" => "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f",
        _ => ANY_TEXT,
    }
}

#[cfg(test)]
mod tests {
    use crate::models::ToolEffect;
    use serde_json::json;
    use tool_calls::{Entry, parse};

    use super::*;
    use crate::tool::arguments;

    fn tool(parameters: Value) -> ToolSpec {
        ToolSpec {
            name: "order".into(),
            description: "Orders.".into(),
            parameters: Parameters::of_schema(parameters),
            returns: json!({}),
            own_examples: Vec::new(),
            effect: ToolEffect::Other,
            repeatable: false,
        }
    }

    #[test]
    fn every_tool_has_three_different_examples_that_are_calls_of_it() {
        for parameters in [
            json!({}),
            json!({"type": "object", "properties": {"text": {"type": "string"}}}),
            json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}),
            json!({
                "type": "object",
                "properties": {
                    "when": {"type": "string", "format": "date-time"}, "who": {"type": "string", "format": "email"},
                    "host": {"type": "string", "format": "hostname"}, "size": {"type": "string", "enum": ["S", "L"]},
                    "count": {"type": "integer"}, "gift": {"type": "boolean"}, "x-y": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                    "guest": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
                },
                "required": ["when", "guest"],
            }),
        ] {
            let tool = tool(parameters);
            let mut examples = tool.examples();
            for example in &examples {
                let entries = parse(&format!("````tool\n{example}\n````")).entries;
                let [Entry::Call(call)] = &entries[..] else { panic!("{example}: {entries:?}") };
                assert_eq!(call.name, "order");
                if let [Value::Object(named)] = &call.arguments[..] {
                    let checked = arguments::check(tool.parameters.schema(), named);
                    assert!(checked.is_ok_and(|checked| checked.ignored.is_empty()), "{example}");
                }
            }
            examples.dedup();
            assert_eq!(examples.len(), FEWEST_EXAMPLES, "{examples:?}");
        }
    }

    #[test]
    fn derived_examples_follow_those_of_the_author_where_these_are_few() {
        let text = json!({"type": "string"});
        let schema = json!({"type": "object", "properties": {"text": text, "to": text}, "required": ["text"]});
        let with = |own: &[&str]| {
            let own_examples = own.iter().map(|&call| call.to_owned()).collect();
            ToolSpec { own_examples, ..tool(schema.clone()) }.examples()
        };
        let (positional, named) = ("return order(\"…\");", "return order({text: \"…\"});");
        assert_eq!(with(&["order('tea')"]), ["order('tea')", positional, named]);
        assert_eq!(with(&[named]), [named, positional, "return order(\"…\", \"…\");"]);
        assert_eq!(with(&["order('a')", "order('b')"]), ["order('a')", "order('b')", positional]);
        for own in [&["order(1)", "order(2)", "order(3)"][..], &["order(1)", "order(2)", "order(3)", "order(4)"]] {
            assert_eq!(with(own), own);
        }
        let without = ToolSpec { own_examples: vec!["return order();".into()], ..tool(json!({})) };
        assert_eq!(without.examples(), ["return order();", "order()", "return await order();"]);
    }
}
