//! Formats of tool descriptions, by model provider.

use serde_json::{Map, Value, json};

use super::AgentTool;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `tools` of OpenAI's chat completions and compatible services.
    OpenAi,
    /// `tools` of Anthropic's messages.
    Anthropic,
    /// All data, with plain JSON schemas.
    JsonSchema,
}

impl Format {
    const ALL: [(&'static str, Self); 3] =
        [("openai", Self::OpenAi), ("anthropic", Self::Anthropic), ("json-schema", Self::JsonSchema)];

    /// # Errors
    /// A sentence for the field.
    pub fn parse(name: &str) -> Result<Self, String> {
        let known = || Self::ALL.map(|(name, _)| name).join(", ");
        let found = Self::ALL.into_iter().find(|(known, _)| *known == name);
        found.map(|(_, format)| format).ok_or_else(|| format!("must be one of {}", known()))
    }
}

impl AgentTool {
    pub fn in_format(&self, format: Format) -> Value {
        let (name, description, schema) = (&self.spec.name, &self.spec.description, self.schema());
        match format {
            Format::OpenAi => {
                let strict = strict(schema);
                let function = json!({
                    "name": name, "description": description, "strict": strict.is_some(),
                    "parameters": strict.unwrap_or_else(|| schema.clone()),
                });
                json!({"type": "function", "function": function})
            }
            Format::Anthropic => json!({"name": name, "description": description, "input_schema": schema}),
            Format::JsonSchema => json!({
                "name": name, "title": self.title, "description": description, "parameters": schema,
                "annotations": {
                    "title": self.title,
                    "readOnlyHint": self.hints.read_only, "destructiveHint": self.hints.destructive,
                    "idempotentHint": self.hints.idempotent, "openWorldHint": self.hints.open_world,
                },
            }),
        }
    }
}

/// The schema for strict function calling: all members required, optional ones nullable. `None` if an object allows arbitrary
/// members, which strict mode lacks.
fn strict(schema: &Value) -> Option<Value> {
    let Value::Object(schema) = schema else { return None };
    let mut schema = schema.clone();
    if schema.get("type")? == "object" {
        if *schema.get("additionalProperties")? != false {
            return None;
        }
        let required = schema.get("required").cloned().unwrap_or_default();
        let is_required = |name: &str| required.as_array().is_some_and(|all| all.iter().any(|known| known == name));
        let properties = schema.get("properties")?.as_object()?;
        let members = properties.iter().map(|(name, member)| {
            let member = strict(member)?;
            Some((name.clone(), if is_required(name) { member } else { nullable(member) }))
        });
        let members: Map<String, Value> = members.collect::<Option<_>>()?;
        schema.insert("required".into(), members.keys().map(String::as_str).collect::<Value>());
        schema.insert("properties".into(), members.into());
    } else if let Some(items) = schema.get("items") {
        let items = strict(items)?;
        schema.insert("items".into(), items);
    }
    Some(Value::Object(schema))
}

fn nullable(mut schema: Value) -> Value {
    if let Some(kind) = schema.get_mut("type") {
        *kind = json!([kind.take(), "null"]);
    }
    if let Some(Value::Array(values)) = schema.get_mut("enum") {
        values.push(Value::Null);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authoring_tools::AGENT_TOOLS;

    #[test]
    fn a_schema_is_strict_where_it_can_be_said_so() {
        let of = |name: &str| {
            let tool = AGENT_TOOLS.iter().find(|tool| tool.spec.name == name).unwrap();
            tool.in_format(Format::OpenAi)["function"].clone()
        };
        let search = of("search_tools");
        assert_eq!(search["strict"], true);
        let required = search["parameters"]["required"].as_array().unwrap();
        assert_eq!(required.len(), search["parameters"]["properties"].as_object().unwrap().len());
        let properties = &search["parameters"]["properties"];
        assert_eq!(properties["trigger"]["type"], json!(["string", "null"]));
        assert_eq!(properties["trigger"]["enum"], json!(["webhook", "polling", null]));
        assert_eq!(of("fetch_tool_data")["parameters"]["properties"]["tool_names"]["type"], "array");
        // A definition has members of any name.
        for name in ["deploy_automation", "call_tool"] {
            assert_eq!(of(name)["strict"], false, "{name}");
        }
    }

    #[test]
    fn each_format_is_known_by_its_name() {
        assert_eq!(Format::parse("openai"), Ok(Format::OpenAi));
        assert_eq!(Format::parse("OpenAI").unwrap_err(), "must be one of openai, anthropic, json-schema");
    }
}
