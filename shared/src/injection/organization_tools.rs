//! The tools of an organization, offered to a run: the same that its agents have in calls.

use std::sync::Arc;

use futures_util::future::{BoxFuture, FutureExt};
use serde_json::{Map, Value};

use super::{
    CallContext, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter,
    parser::{self, Entry},
    signature::literal,
};
use crate::{
    Result,
    execution::{Executor, Order},
    models::{ExecutionId, Tool, Trigger},
    tools::{Conversation, NO_ARGUMENTS, ToolConfig, arguments},
};

/// What a tool does, when it is only described.
pub struct DescribedOnly;

impl ToolImplementation for DescribedOnly {
    fn call<'a>(&'a self, _: Map<String, Value>, _: &'a CallContext<'a>) -> BoxFuture<'a, Result<ToolOutput>> {
        std::future::ready(Ok(ToolOutput::failed("This tool cannot be called here."))).boxed()
    }
}

/// Runs the tool as in a call that nobody is in: its effect once for the run, however often the call is made.
pub struct Carried {
    pub tool: Tool,
    pub executor: Executor,
}

impl ToolImplementation for Carried {
    fn call<'a>(
        &'a self,
        arguments: Map<String, Value>,
        context: &'a CallContext<'a>,
    ) -> BoxFuture<'a, Result<ToolOutput>> {
        async move {
            let order = Order {
                id: ExecutionId::generate(),
                tool: &self.tool,
                call_id: None,
                run_id: Some(context.run),
                arguments: &arguments,
                trigger: Trigger::Automation,
                queued_at: None,
            };
            let finished = self.executor.run(&order, &Conversation::default(), None, context.deadline).await;
            if let Some(outage) = finished.outage {
                return Err(outage);
            }
            self.executor.record(&[finished.execution]).await;
            Ok(output(finished.answer))
        }
        .boxed()
    }
}

/// What the model is told of an answer `{"success", "result"?, "error"?, …}`.
fn output(mut answer: Map<String, Value>) -> ToolOutput {
    let failed = answer.remove("success") != Some(Value::Bool(true));
    match (failed, answer.len(), answer.remove("result")) {
        (false, 1, Some(result)) => ToolOutput::of(result),
        (_, _, result) => {
            answer.extend(result.map(|result| ("result".to_owned(), result)));
            match (answer.len(), answer.get("error").and_then(Value::as_str)) {
                (1, Some(error)) => ToolOutput::failed(error),
                _ => ToolOutput { value: Value::Object(answer), failed },
            }
        }
    }
}

/// The tool under a name that can stand in a call.
///
/// # Errors
/// When its configuration cannot be read.
pub fn organization_tool(
    tool: &Tool,
    name: String,
    implementation: Arc<dyn ToolImplementation>,
) -> Result<ToolDefinition> {
    let config = ToolConfig::stored(tool)?;
    let schema = tool.function_schema.get("parameters").unwrap_or(&Value::Null);
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|names| names.iter().any(|other| other == name))
    };
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut parameters: Vec<ToolParameter> = properties
        .into_iter()
        .filter(|(name, _)| name != NO_ARGUMENTS)
        .map(|(name, schema)| ToolParameter { required: required(&name), name, schema })
        .collect();
    parameters.sort_by_key(|parameter| !parameter.required);
    let described = tool.description.as_deref().map(str::trim).filter(|description| !description.is_empty());
    let mut definition = ToolDefinition {
        name,
        description: described.unwrap_or(&tool.label).to_owned(),
        parameters,
        returns: "any",
        examples: Vec::new(),
        read_only: !config.action.has_effect(),
        implementation,
    };
    definition.examples = examples(&definition);
    Ok(definition)
}

/// A name of a tool as it can be called: `send-sms` becomes `send_sms`, and `2nd` and `return` get a `_` in front.
pub fn callable_name(tool: &Tool) -> String {
    let name = tool.name.as_str().replace('-', "_");
    if can_be_called(&name) { name } else { format!("_{name}") }
}

/// Whether the parser reads a call of it; some words of JavaScript begin something else.
fn can_be_called(name: &str) -> bool {
    let parsed = parser::parse(&format!("```tool\n{name}()\n```"));
    matches!(&parsed.entries[..], [Entry::Call(call)] if call.name == name)
}

/// A call with everything, and one with what is required, as far as values can be made up that fit.
fn examples(definition: &ToolDefinition) -> Vec<String> {
    let example = |all: bool| {
        let wanted = definition.parameters.iter().filter(|parameter| all || parameter.required);
        let given: Option<Map<String, Value>> =
            wanted.map(|parameter| Some((parameter.name.clone(), sample(&parameter.schema)?))).collect();
        let given = given.filter(|given| arguments::check(&definition.schema(), given).is_ok())?;
        let arguments = if given.is_empty() { String::new() } else { literal(&Value::Object(given)) };
        Some(format!("return {}({arguments});", definition.name))
    };
    let mut examples: Vec<String> = [true, false].into_iter().filter_map(example).collect();
    examples.dedup();
    examples
}

fn sample(schema: &Value) -> Option<Value> {
    if let Some(first) = schema.pointer("/enum/0") {
        return Some(first.clone());
    }
    Some(match schema.get("type").and_then(Value::as_str)? {
        "string" => match schema.get("format").and_then(Value::as_str) {
            Some("date-time") => "2026-03-01T15:00:00Z".into(),
            Some("date") => "2026-03-01".into(),
            Some("time") => "15:00:00".into(),
            Some("duration") => "PT30M".into(),
            Some("email") => "ana@example.com".into(),
            Some(_) => return None,
            None => "…".into(),
        },
        "integer" | "number" => 1.into(),
        "boolean" => true.into(),
        "array" => Value::Array(schema.get("items").and_then(sample).into_iter().collect()),
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object)?;
            let members: Option<Map<String, Value>> =
                properties.iter().map(|(name, schema)| Some((name.clone(), sample(schema)?))).collect();
            Value::Object(members?)
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_can_be_called_whatever_its_organization_named_it() {
        let id = "01930f5e-6a1b-7c2d-8e3f-4a5b6c7d8e9f";
        for (name, callable) in [
            ("send-sms", "send_sms"),
            ("2nd-try", "_2nd_try"),
            ("return", "_return"),
            ("await", "_await"),
            ("Switch", "Switch"),
            ("switch", "_switch"),
            ("-", "_"),
        ] {
            let tool: Tool = serde_json::from_value(json!({
                "id": id, "name": name, "label": name, "organization_id": id, "type": "query", "function_schema": {},
                "created_at": "2026-11-20T16:20:52.123Z", "updated_at": "2026-11-20T16:20:52.123Z",
            }))
            .unwrap();
            assert_eq!(callable_name(&tool), callable);
            let calls = parser::parse(&format!("```tool\nreturn {callable}({{a: 1}});\n```")).entries;
            assert!(matches!(&calls[..], [Entry::Call(call)] if call.name == callable), "{calls:?}");
        }
    }

    #[test]
    fn an_answer_is_told_without_its_envelope() {
        let told = |answer: Value| output(answer.as_object().unwrap().clone());
        assert_eq!(told(json!({"success": true, "result": {"a": 1}})), ToolOutput::of(json!({"a": 1})));
        assert_eq!(told(json!({"success": false, "error": "No."})), ToolOutput::failed("No."));
        let both = told(json!({"success": false, "error": "Half.", "result": [1]}));
        assert_eq!(both, ToolOutput { value: json!({"error": "Half.", "result": [1]}), failed: true });
        let logged = told(json!({"success": true, "result": 1, "logs": ["x"]}));
        assert_eq!(logged, ToolOutput::of(json!({"result": 1, "logs": ["x"]})));
    }
}
