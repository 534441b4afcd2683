//! The request for a prompt run, also used by automations with a prompt.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use crate::{
    automation::expressions::{
        data::Data,
        templates::{Unfilled, filled_in_within},
    },
    catalogue::BuiltInTools,
    error::Problems,
    fields::{Fields, kind},
    json_schema::JsonSchema,
    models::{AllowedHosts, RunCeilings, RunLimits, ToolRef},
};

/// In bytes. All three share one item, and DynamoDB allows 400 KB.
const LONGEST_PROMPT: usize = 100_000;
const LONGEST_SYSTEM_PROMPT: usize = 50_000;
const LONGEST_SCHEMA: usize = 50_000;
/// In characters.
const LONGEST_MODEL: usize = 200;
const MOST_TOOLS: usize = 50;

#[derive(Debug, PartialEq)]
pub struct RunRequest {
    pub prompt: String,
    pub system_prompt: String,
    pub schema: Option<String>,
    pub model: Option<String>,
    pub limits: RunLimits,
}

/// A requested tool, with its place in the body.
#[derive(Debug, PartialEq)]
pub struct NamedTool {
    pub place: String,
    pub tool: ToolRef,
    /// Hosts that the tool may call, if restricted.
    pub allowed_hosts: AllowedHosts,
}

impl RunRequest {
    /// Parses the body, and reports all mistakes. Tools are returned even if the rest is invalid, so that their mistakes are
    /// reported together. `ceilings`: limits of the platform's key, if the run uses it.
    pub fn read(
        body: &Value,
        built_in: &BuiltInTools,
        ceilings: Option<RunCeilings>,
        problems: &mut Problems,
    ) -> (Vec<NamedTool>, Option<Self>) {
        Self::read_named(body, built_in, &|name| built_in.reference(name), ceilings, problems)
    }

    /// The prompt of an automation with templates filled in, and its tools; `naming` resolves tool names.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the filled-in prompt is invalid.
    pub fn of_automation(
        prompt: &Map<String, Value>,
        data: &Data<'_>,
        built_in: &BuiltInTools,
        naming: &dyn Fn(&str) -> Result<ToolRef, String>,
    ) -> crate::Result<(Vec<NamedTool>, Self)> {
        let mut body = prompt.clone();
        let mut problems = Problems::default();
        for (name, longest) in [("prompt", LONGEST_PROMPT), ("system_prompt", LONGEST_SYSTEM_PROMPT)] {
            let Some(text) = body.get_mut(name) else { continue };
            match filled_in_within(text, data, longest) {
                // A template alone may resolve to a value of any type.
                Ok(value @ (Value::String(_) | Value::Null)) => *text = value,
                Ok(value) => *text = value.to_string().into(),
                Err(Unfilled::TooLarge) => {
                    problems.add(name, format!("must have at most {longest} bytes with its templates filled in"));
                }
                Err(Unfilled::Expression(why)) => problems.add(name, why),
            }
        }
        let (named, request) = Self::read_named(&Value::Object(body), built_in, naming, None, &mut problems);
        Ok((named, problems.into_result(request)?))
    }

    /// The request of an `llm_agent` action: `{"prompt", "system_prompt"?, "tools"?, "schema"?, "model"?, "limits"?}`, and its
    /// tools; `naming` resolves tool names.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the request is invalid.
    pub fn of_action(
        arguments: &Map<String, Value>,
        built_in: &BuiltInTools,
        naming: &dyn Fn(&str) -> Result<ToolRef, String>,
    ) -> crate::Result<(Vec<NamedTool>, Self)> {
        let mut problems = Problems::default();
        let (named, request) =
            Self::read_named(&Value::Object(arguments.clone()), built_in, naming, None, &mut problems);
        Ok((named, problems.into_result(request)?))
    }

    /// As [`RunRequest::read`], with `naming` to resolve tool names.
    pub(in crate::automation) fn read_named(
        body: &Value,
        built_in: &BuiltInTools,
        naming: &dyn Fn(&str) -> Result<ToolRef, String>,
        ceilings: Option<RunCeilings>,
        problems: &mut Problems,
    ) -> (Vec<NamedTool>, Option<Self>) {
        let Some(mut fields) = Fields::of(body, "", problems) else { return (Vec::new(), None) };
        let prompt = text(&mut fields, "prompt", LONGEST_PROMPT);
        if prompt.is_none() && fields.get("prompt").is_none_or(|value| value.is_string() && is_blank(value)) {
            fields.problem("prompt", "is required");
        }
        let system_prompt = text(&mut fields, "system_prompt", LONGEST_SYSTEM_PROMPT).unwrap_or_default();
        let tools = tools(&mut fields, built_in, naming);
        let schema = schema(&mut fields);
        let model = fields.text("model", LONGEST_MODEL);
        let limits = limits(&mut fields, ceilings);
        fields.finish();
        let request = prompt.map(|prompt| Self { prompt, system_prompt, schema, model, limits });
        (tools, request)
    }
}

/// The text unchanged; `None` if it is blank.
fn text(fields: &mut Fields<'_>, name: &'static str, longest: usize) -> Option<String> {
    let value = fields.get(name)?;
    let Some(text) = value.as_str() else {
        fields.problem(name, format!("must be text, not {}", kind(value)));
        return None;
    };
    if text.len() > longest {
        fields.problem(name, format!("must have at most {longest} bytes, not {}", text.len()));
        return None;
    }
    (!is_blank(value)).then(|| text.to_owned())
}

fn is_blank(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.trim().is_empty())
}

fn tools(
    fields: &mut Fields<'_>,
    built_in: &BuiltInTools,
    naming: &dyn Fn(&str) -> Result<ToolRef, String>,
) -> Vec<NamedTool> {
    let named = match fields.get("tools") {
        None => {
            return built_in
                .names()
                .map(|name| NamedTool {
                    place: "tools".to_owned(),
                    tool: ToolRef::BuiltIn(name.to_owned()),
                    allowed_hosts: AllowedHosts::default(),
                })
                .collect();
        }
        Some(Value::Array(named)) if named.len() <= MOST_TOOLS => named,
        Some(Value::Array(_)) => {
            fields.problem(
                "tools",
                format!("names more than {MOST_TOOLS} tools; name only the tools that the run needs"),
            );
            return Vec::new();
        }
        Some(other) => {
            fields.problem("tools", format!("must be a list of names and ids of tools, not {}", kind(other)));
            return Vec::new();
        }
    };
    let mut tools: Vec<NamedTool> = Vec::new();
    for (index, named) in named.iter().enumerate() {
        let place = format!("tools[{index}]");
        let (name, allowed_hosts) = match named {
            Value::Object(_) => held(named, &place, built_in, fields),
            named => (named.as_str().map(str::to_owned), AllowedHosts::default()),
        };
        match name.map(|name| naming(name.trim())) {
            None if named.is_object() => {}
            None => fields.problem(&place, format!("must be the name or the id of a tool, not {}", kind(named))),
            Some(Err(unknown)) => fields.problem(&place, unknown),
            Some(Ok(tool)) if tools.iter().any(|other| other.tool == tool) => {
                fields.problem(&place, "is named twice; leave it out");
            }
            Some(Ok(tool)) => tools.push(NamedTool { place, tool, allowed_hosts }),
        }
    }
    tools
}

/// `{"built_in", "allowed_hosts"?}`: a tool restricted to hosts.
fn held(
    named: &Value,
    place: &str,
    built_in: &BuiltInTools,
    fields: &mut Fields<'_>,
) -> (Option<String>, AllowedHosts) {
    let Some(mut fields) = Fields::of(named, fields.path(place), fields.problems()) else {
        return (None, AllowedHosts::default());
    };
    let name = fields.get("built_in").and_then(Value::as_str).map(str::to_owned);
    if name.is_none() {
        fields.problem("built_in", "is required, and is the name of a built-in tool");
    }
    let name = name.filter(|name| {
        let is_one = built_in.has(name.trim());
        if !is_one {
            fields.problem("built_in", "is not the name of a built-in tool; name another tool by its name alone");
        }
        is_one
    });
    let allowed_hosts = AllowedHosts::read(&mut fields);
    fields.finish();
    (name, allowed_hosts)
}

fn schema(fields: &mut Fields<'_>) -> Option<String> {
    let schema = fields.get("schema")?;
    let text = schema.to_string();
    if text.len() > LONGEST_SCHEMA {
        fields.problem("schema", format!("must have at most {LONGEST_SCHEMA} bytes, not {}", text.len()));
        return None;
    }
    match JsonSchema::compile(schema) {
        Ok(_) => Some(text),
        Err(problems) => {
            for problem in problems.below("schema").iter() {
                fields.problem(&problem.field, problem.problem.as_str());
            }
            None
        }
    }
}

fn limits(fields: &mut Fields<'_>, ceilings: Option<RunCeilings>) -> RunLimits {
    let usual = RunLimits::default();
    let usual = ceilings.map_or(usual, |ceilings| usual.at_most(ceilings));
    let Some(value) = fields.get("limits") else { return usual };
    let Some(mut fields) = Fields::of(value, "limits", fields.problems()) else { return usual };
    let highest = RunLimits::HIGHEST;
    let limits = RunLimits {
        iterations: fields.whole("iterations", 1..=highest.iterations).unwrap_or(usual.iterations),
        calls_per_iteration: fields
            .whole("calls_per_iteration", 1..=highest.calls_per_iteration)
            .unwrap_or(usual.calls_per_iteration),
        calls: fields.whole("calls", 1..=highest.calls).unwrap_or(usual.calls),
        tokens: large(&mut fields, "tokens", 1..=highest.tokens).unwrap_or(usual.tokens),
        cost: cost(&mut fields, highest.cost).unwrap_or(usual.cost),
        seconds: large(&mut fields, "seconds", 1..=highest.seconds).unwrap_or(usual.seconds),
    };
    if let Some(ceilings) = ceilings {
        stay_below(&mut fields, &limits, ceilings);
    }
    fields.finish();
    limits
}

/// Reports limits above the ceilings of the platform's key.
fn stay_below(fields: &mut Fields<'_>, limits: &RunLimits, ceilings: RunCeilings) {
    const OWN: &str = "on the platform's key; ask for less, or store a key of your own (PUT /api/{slug}/keys/llm)";
    let RunCeilings { cost, seconds } = ceilings;
    if limits.cost > cost {
        fields.problem("cost", format!("must be at most {cost} {OWN}"));
    }
    // Limits above every run's maximum are reported already.
    if (seconds + 1..=RunLimits::HIGHEST.seconds).contains(&limits.seconds) {
        fields.problem("seconds", format!("must be at most {seconds} {OWN}"));
    }
}

fn large(fields: &mut Fields<'_>, name: &'static str, bounds: RangeInclusive<u64>) -> Option<u64> {
    let bound = |number: &u64| u32::try_from(*number).unwrap_or(u32::MAX);
    fields.whole(name, bound(bounds.start())..=bound(bounds.end())).map(u64::from)
}

fn cost(fields: &mut Fields<'_>, highest: f64) -> Option<f64> {
    let value = fields.get("cost")?;
    let cost = value.as_f64().filter(|cost| *cost > 0.0 && *cost <= highest);
    if cost.is_none() {
        fields.problem("cost", format!("must be a number above 0, at most {highest}"));
    }
    cost
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: &Value) -> (Vec<NamedTool>, Option<RunRequest>, Vec<String>) {
        let mut problems = Problems::default();
        let (tools, request) = RunRequest::read(body, &BuiltInTools::default(), None, &mut problems);
        (tools, request, problems.iter().map(|problem| problem.field.clone()).collect())
    }

    #[test]
    fn a_prompt_is_enough() {
        let (tools, request, problems) = read(&json!({"prompt": " Hello\n"}));
        let request = request.unwrap();
        assert_eq!((request.prompt.as_str(), request.limits), (" Hello\n", RunLimits::default()));
        assert!(tools.is_empty() && problems.is_empty());
    }

    #[test]
    fn everything_wrong_is_named_at_once() {
        let body = json!({
            "prompt": " ", "system_prompt": 7, "tools": ["No such", 3, {"allowed_hosts": ["*"]}], "model": {}, "extra": 1,
            "limits": {"iterations": 0, "calls": 501, "tokens": "many", "cost": 0, "seconds": 21_601, "days": 1},
        });
        let expected = [
            "prompt",
            "system_prompt",
            "tools[0]",
            "tools[1]",
            "tools[2].built_in",
            "tools[2].allowed_hosts[0]",
            "model",
            "limits.iterations",
            "limits.calls",
            "limits.tokens",
            "limits.cost",
            "limits.seconds",
            "limits.days",
            "extra",
        ];
        assert_eq!(read(&body).2, expected);
        assert_eq!(read(&json!([])).2, ["body"]);
        assert_eq!(read(&json!({"prompt": null, "tools": "wget", "limits": []})).2, ["prompt", "tools", "limits"]);
    }

    #[test]
    fn limits_go_up_to_the_highest() {
        let highest = serde_json::to_value(RunLimits::HIGHEST).unwrap();
        let (_, request, problems) = read(&json!({"prompt": "Hello", "limits": highest}));
        assert_eq!((request.unwrap().limits, problems.len()), (RunLimits::HIGHEST, 0));
    }

    #[test]
    fn on_the_platforms_key_cost_and_time_have_ceilings() {
        let ceilings = RunCeilings { cost: 1.5, seconds: 600 };
        let read = |limits: Value| {
            let mut problems = Problems::default();
            let body = json!({"prompt": "Hello", "limits": limits});
            let read = RunRequest::read(&body, &BuiltInTools::default(), Some(ceilings), &mut problems);
            let problems: Vec<_> = problems.iter().map(|it| format!("{} {}", it.field, it.problem)).collect();
            (read.1.unwrap().limits, problems)
        };
        let (limits, problems) = read(json!({"calls": 3}));
        assert_eq!((limits.cost, limits.seconds, limits.calls, problems.len()), (1.5, 600, 3, 0));
        assert_eq!(read(json!({"cost": 1.5, "seconds": 600})).1.len(), 0);
        let (_, problems) = read(json!({"cost": 1.6, "seconds": 601}));
        assert!(problems[0].starts_with("limits.cost must be at most 1.5 on the platform's key"), "{problems:?}");
        assert!(problems[1].starts_with("limits.seconds must be at most 600 on the platform's key"), "{problems:?}");
        assert_eq!(read(json!({"cost": 101, "seconds": 21_601})).1.len(), 2, "each is named once");
    }

    #[test]
    fn sizes_are_limited_field_by_field() {
        let body = json!({
            "prompt": "ä".repeat(LONGEST_PROMPT / 2 + 1), "system_prompt": "x".repeat(LONGEST_SYSTEM_PROMPT + 1),
            "schema": {"description": "x".repeat(LONGEST_SCHEMA)}, "tools": vec!["x"; MOST_TOOLS + 1],
        });
        assert_eq!(read(&body).2, ["prompt", "system_prompt", "tools", "schema"]);
    }
}
