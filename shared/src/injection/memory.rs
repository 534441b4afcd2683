//! `remember` and `recall`: values that an automation keeps between its runs.

use std::{sync::Arc, time::Duration};

use futures_util::future::FutureExt;
use serde_json::{Map, Value, json};

use crate::{
    Error, Result,
    models::{RememberedValue, ToolEffect},
    store::{AutomationMemory, MOST_KEYS, NewValue, Remembering},
    tool::{CallContext, CallableTool, Parameters, ToolFuture, ToolOutcome, ToolSpec},
};

/// Bytes.
const LONGEST_KEY: usize = 200;
/// Bytes of JSON text.
const LARGEST_VALUE: usize = 4_096;
const USUAL_DAYS: u64 = 90;
const MOST_DAYS: u64 = 400;
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Executable tools; without `memory`, descriptions only.
pub(super) fn memory_tools(memory: Option<&AutomationMemory>) -> Vec<Arc<dyn CallableTool>> {
    let tool =
        |kind: Kind| Arc::new(MemoryTool { kind, spec: kind.spec(), memory: memory.cloned() }) as Arc<dyn CallableTool>;
    vec![tool(Kind::Remember), tool(Kind::Recall)]
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Remember,
    Recall,
}

struct MemoryTool {
    kind: Kind,
    spec: ToolSpec,
    memory: Option<AutomationMemory>,
}

impl CallableTool for MemoryTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let (Some(memory), Some(automation)) = (&self.memory, context.automation) else {
                return Ok(ToolOutcome::failed(format!("{} works in runs of automations only.", self.spec.name)));
            };
            let key = arguments.get("key").and_then(Value::as_str).unwrap_or_default().trim();
            if key.is_empty() || key.len() > LONGEST_KEY {
                let sentence = format!("The key must have 1 to {LONGEST_KEY} bytes; it has {}.", key.len());
                return Ok(ToolOutcome::failed(sentence));
            }
            match self.kind {
                Kind::Recall => {
                    let found = memory.recall(context.organization, automation, key).await?;
                    Ok(ToolOutcome::succeeded(recalled(found.as_ref())))
                }
                Kind::Remember => {
                    let (value, at_version, kept) = match asked(&arguments) {
                        Ok(asked) => asked,
                        Err(sentence) => return Ok(ToolOutcome::failed(sentence)),
                    };
                    let writer = writer(context, &arguments);
                    let new = NewValue { key, value: &value, at_version, kept, writer: &writer };
                    let remembering = memory.remember(context.organization, automation, &new, context.deadline);
                    Ok(match Box::pin(remembering).await {
                        Ok(remembering) => remembered(remembering),
                        Err(Error::Conflict(why)) => {
                            ToolOutcome::failed(format!("Nothing was stored: {why}. Try again later."))
                        }
                        Err(outage) => return Err(outage),
                    })
                }
            }
        }
        .boxed()
    }
}

/// The value as JSON text, the version at which it is written, and how long it is kept.
fn asked(arguments: &Map<String, Value>) -> Result<(String, Option<u64>, Duration), String> {
    let value = arguments.get("value").unwrap_or(&Value::Bool(true)).to_string();
    if value.len() > LARGEST_VALUE {
        return Err(format!("The value has {} bytes as JSON; the limit is {LARGEST_VALUE}.", value.len()));
    }
    let number = |name: &str| arguments.get(name).and_then(Value::as_u64);
    let if_absent = arguments.get("if_absent").and_then(Value::as_bool).unwrap_or_default();
    let at_version = match arguments.get("if_version") {
        Some(_) if if_absent => return Err("Give if_absent or if_version, not both.".to_owned()),
        Some(_) => Some(number("if_version").ok_or("if_version is a version that recall gave, or 0.")?),
        None => if_absent.then_some(0),
    };
    let days = arguments.get("expires_in_days").map_or(Some(USUAL_DAYS), |_| number("expires_in_days"));
    let days = days.filter(|days| (1..=MOST_DAYS).contains(days));
    let days = days.ok_or(format!("expires_in_days must be from 1 to {MOST_DAYS}."))?;
    Ok((value, at_version, DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))))
}

/// The action, or the call of a prompt: its repetition is the same writer.
fn writer(context: &CallContext<'_>, arguments: &Map<String, Value>) -> String {
    let (kind, subject) = context.subject.parts();
    let delivery = context.delivery.map_or_else(|| Value::Object(arguments.clone()).to_string(), str::to_owned);
    json!([kind, subject, delivery]).to_string()
}

fn remembered(remembering: Remembering) -> ToolOutcome {
    match remembering {
        Remembering::Stored { version } => ToolOutcome::succeeded(json!({"stored": true, "version": version})),
        Remembering::Other(present) => {
            let mut told = recalled(present.as_ref());
            if let Some(told) = told.as_object_mut() {
                told.remove("found");
                told.insert("stored".into(), false.into());
            }
            ToolOutcome::succeeded(told)
        }
        Remembering::Full => ToolOutcome::failed(format!(
            "Nothing was stored: this automation remembers {MOST_KEYS} keys, the most that it can. Use fewer keys, or a shorter \
             expires_in_days."
        )),
    }
}

fn recalled(found: Option<&RememberedValue>) -> Value {
    match found {
        None => json!({"found": false, "value": null, "version": 0}),
        Some(found) => json!({
            "found": true, "value": serde_json::from_str::<Value>(&found.value).unwrap_or_default(), "version": found.version,
            "updated_at": found.updated_at,
        }),
    }
}

impl Kind {
    fn spec(self) -> ToolSpec {
        let key =
            json!({"type": "string", "description": format!("The name of the value, at most {LONGEST_KEY} bytes")});
        let any = json!(["string", "number", "boolean", "object", "array", "null"]);
        match self {
            Self::Remember => {
                let value = json!({
                    "type": any, "description": format!("The value, at most {LARGEST_VALUE} bytes as JSON; true unless given"),
                });
                let if_absent = json!({
                    "type": "boolean", "description": "Store it only if the key has no value: stored tells whether this run is the first",
                });
                let if_version = json!({
                    "type": "integer", "description": "Store it only if the key is at this version, as recall gave it; 0: has no value",
                });
                let days = json!({
                    "type": "integer", "description": format!("Days until it is forgotten, 1 to {MOST_DAYS}; {USUAL_DAYS} unless given"),
                });
                ToolSpec {
                    name: "remember".to_owned(),
                    description: format!(
                        "Stores a value for later runs of the same automation, under a key. With if_absent it answers stored: true to \
                         the first run only, so a condition on it makes a later action happen once: \
                         {{\"key\": \"offer {{{{customer.id}}}} {{{{today | date('%Y-%m')}}}}\", \"if_absent\": true}}. At most {MOST_KEYS} \
                         keys. Works in automations only."
                    ),
                    parameters: Parameters::new([
                        ("key", key, true),
                        ("value", value, false),
                        ("if_absent", if_absent, false),
                        ("if_version", if_version, false),
                        ("expires_in_days", days, false),
                    ]),
                    returns: json!({
                        "type": "object",
                        "properties": {"stored": {"type": "boolean"}, "version": {"type": "integer"}, "value": {}, "updated_at": {"type": "string"}},
                        "required": ["stored", "version"],
                    }),
                    own_examples: vec![
                        r#"remember("last order", {"id": 7, "total": 12.5})"#.to_owned(),
                        r#"remember({key: "welcomed 4711", if_absent: true, expires_in_days: 40})"#.to_owned(),
                        r#"remember({key: "count", value: 8, if_version: 7})"#.to_owned(),
                    ],
                    effect: ToolEffect::Record,
                    repeatable: false,
                }
            }
            Self::Recall => ToolSpec {
                name: "recall".to_owned(),
                description:
                    "Gives the value that an earlier run of the same automation stored with remember, and its version. \
                              Without one, found is false and version 0. Works in automations only."
                        .to_owned(),
                parameters: Parameters::new([("key", key, true)]),
                returns: json!({
                    "type": "object",
                    "properties": {
                        "found": {"type": "boolean"}, "value": {}, "version": {"type": "integer"}, "updated_at": {"type": "string"},
                    },
                    "required": ["found", "value", "version"],
                }),
                own_examples: vec![
                    r#"recall("last order")"#.to_owned(),
                    r#"recall({key: "count"})"#.to_owned(),
                    r#"return recall("welcomed 4711");"#.to_owned(),
                ],
                effect: ToolEffect::None,
                repeatable: false,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::injection::{testing::context, well_described};

    #[test]
    fn the_tools_are_described_well_enough() {
        let tools = well_described(memory_tools(None)).unwrap();
        assert_eq!(tools.names().collect::<Vec<_>>(), ["recall", "remember"]);
    }

    #[test]
    fn null_and_empty_text_are_values() {
        let tool = MemoryTool { kind: Kind::Remember, spec: Kind::Remember.spec(), memory: None };
        let stored =
            |arguments: Value| asked(&tool.check(arguments.as_object().unwrap()).unwrap().arguments).unwrap().0;
        assert_eq!(stored(json!({"key": "k", "value": null})), "null");
        assert_eq!(stored(json!({"key": "k", "value": "", "if_version": null})), "\"\"");
        assert_eq!(stored(json!({"key": "k"})), "true");
    }

    #[test]
    fn a_condition_and_a_time_are_read_strictly() {
        let asked = |arguments: Value| asked(arguments.as_object().unwrap());
        assert_eq!(asked(json!({})), Ok(("true".into(), None, DAY * 90)));
        let first = asked(json!({"value": {"a": 1}, "if_absent": true, "expires_in_days": 400}));
        assert_eq!(first, Ok((r#"{"a":1}"#.into(), Some(0), DAY * 400)));
        assert_eq!(asked(json!({"if_version": 7})).unwrap().1, Some(7));
        for (arguments, told) in [
            (json!({"value": "x".repeat(4_095)}), "The value has 4097 bytes as JSON; the limit is 4096."),
            (json!({"if_absent": true, "if_version": 1}), "Give if_absent or if_version, not both."),
            (json!({"if_version": -1}), "if_version is a version that recall gave, or 0."),
            (json!({"expires_in_days": 0}), "expires_in_days must be from 1 to 400."),
            (json!({"expires_in_days": 401}), "expires_in_days must be from 1 to 400."),
        ] {
            assert_eq!(asked(arguments).unwrap_err(), told);
        }
    }

    #[test]
    fn each_call_is_a_writer_of_its_own() {
        let named = |delivery: Option<&'static str>, value: Value| {
            let context = CallContext { delivery, subject: crate::tool::Subject::Request("r"), ..context() };
            writer(&context, value.as_object().unwrap())
        };
        assert_eq!(named(Some("1"), json!({"a": 1})), named(Some("1"), json!({"a": 2})));
        assert_ne!(named(Some("1"), json!({})), named(Some("2"), json!({})));
        assert_ne!(named(None, json!({"a": 1})), named(None, json!({"a": 2})));
    }

    #[tokio::test]
    async fn there_is_no_memory_outside_of_automations() {
        for tool in memory_tools(None) {
            let outcome = tool.call(json!({"key": "k"}).as_object().unwrap().clone(), &context()).await.unwrap();
            let told = format!("{} works in runs of automations only.", tool.spec().name);
            assert!(outcome.is_failed() && outcome.into_model_value().as_str() == Some(&told));
        }
    }
}
