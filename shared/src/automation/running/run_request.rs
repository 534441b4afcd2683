//! The request for a prompt run, also used by automations with a prompt.

use serde_json::{Map, Value};

use crate::{
    automation::expressions::{
        data::Data,
        templates::{Filled, filled_in_within},
        work::{MOST_FILLED_IN, Work},
    },
    catalogue::BuiltInTools,
    declared::{Body, Given, Text, Whole},
    described::{Described, Json, Schemas},
    error::Problems,
    fields::{Fields, kind},
    json_schema::JsonSchema,
    models::{AllowedHosts, RunCeilings, RunLimits, ToolRef},
    tool::arguments::is_absent,
};

/// In bytes. All three share one item, and DynamoDB allows 400 KB.
const LONGEST_PROMPT: usize = 100_000;
const LONGEST_SYSTEM_PROMPT: usize = 50_000;
const LONGEST_SCHEMA: usize = 50_000;
/// In characters.
const LONGEST_MODEL: usize = 200;
const MOST_TOOLS: usize = 50;

/// A run of an automation. Fields that are not listed are refused. Besides the limits of each field, all of it together with
/// the tools' descriptions for the model must have at most 300,000 bytes.
#[derive(Debug, Body)]
pub struct NewRun {
    /// The task, at most 100,000 bytes.
    #[schema(pattern = r"\S")]
    prompt: LongText<LONGEST_PROMPT>,
    /// The model's role and way of working, at most 50,000 bytes. Instructions for its tools are added.
    system_prompt: Option<LongText<LONGEST_SYSTEM_PROMPT>>,
    /// Names of built-in tools (`wget`) and ids of the organization's; all built-in tools if it is left out. An object
    /// names a built-in tool and the hosts it is held to. A `transfer_call` cannot be offered, because a run is no call.
    #[expect(dead_code, reason = "the tools are resolved even if the rest is invalid")]
    tools: Option<ToolList>,
    /// A JSON schema that the result must fit, at most 50,000 bytes; any JSON value will do if it is left out.
    schema: Option<ResultSchema>,
    /// The model that is asked; the one of the organization's account, or the platform's, if it is left out. On the platform's
    /// key only the deployment's models are accepted.
    model: Option<Text<LONGEST_MODEL>>,
    limits: Option<NewRunLimits>,
}

/// Limits of the run; absent limits have their defaults.
#[derive(Debug, Body)]
pub struct NewRunLimits {
    /// Answers that may call tools.
    #[schema(default = RunLimits::default().iterations)]
    iterations: Option<Whole<1, { RunLimits::HIGHEST.iterations }>>,
    #[schema(default = RunLimits::default().calls_per_iteration)]
    calls_per_iteration: Option<Whole<1, { RunLimits::HIGHEST.calls_per_iteration }>>,
    #[schema(default = RunLimits::default().calls)]
    calls: Option<Whole<1, { RunLimits::HIGHEST.calls }>>,
    /// Of prompts and answers together.
    #[schema(default = RunLimits::default().tokens)]
    tokens: Option<Whole<1, { RunLimits::MOST_TOKENS }>>,
    /// In the credits of the LLM's gateway, US dollars at `OpenRouter`. On the platform's key the deployment has a ceiling, 5
    /// unless it says otherwise.
    #[schema(default = RunLimits::default().cost)]
    cost: Option<Cost>,
    /// Since it was first taken up. On the platform's key the deployment has a ceiling, 3600 unless it says otherwise.
    #[schema(default = RunLimits::default().seconds)]
    seconds: Option<Whole<1, { RunLimits::MOST_SECONDS }>>,
}

/// Text of at most this many bytes, unchanged; blank text is absent.
#[derive(Debug)]
pub struct LongText<const LONGEST: usize>(String);

/// Names that are yet to be resolved.
#[derive(Debug)]
pub struct ToolList(Vec<Value>);

/// JSON text.
#[derive(Debug)]
pub struct ResultSchema(String);

#[derive(Debug, Clone, Copy)]
pub struct Cost(f64);

impl<const LONGEST: usize> Described for LongText<LONGEST> {
    fn schema(schemas: &mut Schemas) -> Json {
        String::schema(schemas)
    }
}

crate::described! {
    ToolList => {"type": "array", "maxItems": MOST_TOOLS, "uniqueItems": true, "items": {"oneOf": [{"type": "string"}, {
        "type": "object", "additionalProperties": false, "required": ["built_in"],
        "properties": {
            "built_in": {"type": "string", "description": "The name of a built-in tool."},
            "allowed_hosts": {
                "type": ["array", "null"], "items": {"type": "string"}, "minItems": 1, "maxItems": 50, "description":
                "Where it may go, redirects included: `api.example.com`, `crm.example.com:8443`. For `wget` alone.",
            },
        },
        "example": {"built_in": "wget", "allowed_hosts": ["api.example.com"]},
    }]}},
    ResultSchema => {"type": ["object", "boolean"]},
    Cost => {"type": "number", "exclusiveMinimum": 0, "maximum": (RunLimits::HIGHEST.cost)},
}

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
    /// reported together. `ceilings`: those of the platform's key, if the run uses it.
    pub fn read(
        body: &Value,
        built_in: &BuiltInTools,
        ceilings: Option<&RunCeilings>,
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
        let work = Work::of(MOST_FILLED_IN);
        for (name, longest) in [("prompt", LONGEST_PROMPT), ("system_prompt", LONGEST_SYSTEM_PROMPT)] {
            let Some(text) = body.get_mut(name) else { continue };
            match filled_in_within(text, data, longest, &work) {
                // A template alone may resolve to a value of any type.
                Ok(Filled { value: value @ (Value::String(_) | Value::Null), .. }) => *text = value,
                Ok(Filled { value, .. }) => *text = value.to_string().into(),
                Err(unfilled) => {
                    let too_large = || format!("must have at most {longest} bytes with its templates filled in");
                    problems.add(name, unfilled.in_words(too_large));
                }
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
        let given = arguments.iter().filter(|(_, value)| !is_absent(value));
        let body = given.map(|(name, value)| (name.clone(), value.clone())).collect();
        let (named, request) = Self::read_named(&Value::Object(body), built_in, naming, None, &mut problems);
        Ok((named, problems.into_result(request)?))
    }

    /// As [`RunRequest::read`], with `naming` to resolve tool names.
    pub(in crate::automation) fn read_named(
        body: &Value,
        built_in: &BuiltInTools,
        naming: &dyn Fn(&str) -> Result<ToolRef, String>,
        ceilings: Option<&RunCeilings>,
        problems: &mut Problems,
    ) -> (Vec<NamedTool>, Option<Self>) {
        let Some(mut fields) = Fields::of(body, "", problems) else { return (Vec::new(), None) };
        let new = NewRun::draft(&mut fields);
        let tools = match &new.tools {
            Some(ToolList(named)) => tools(named, &mut fields, built_in, naming),
            None if fields.get("tools").is_none() => all_built_in(built_in),
            None => Vec::new(),
        };
        if let Some(ceilings) = ceilings {
            let model = new.model.as_deref().filter(|model| model.len() <= LONGEST_MODEL);
            if let Some(problem) = model.and_then(|model| ceilings.refused_model(model)) {
                fields.problem("model", problem);
            }
            if let Some(limits) = &new.limits {
                stay_below(&mut fields, limits, ceilings);
            }
        }
        fields.finish();
        let request = NewRun::whole(new).map(|new| Self {
            prompt: new.prompt.0,
            system_prompt: new.system_prompt.map(|text| text.0).unwrap_or_default(),
            schema: new.schema.map(|schema| schema.0),
            model: new.model.map(String::from),
            limits: limits(new.limits, ceilings),
        });
        (tools, request)
    }
}

impl<const LONGEST: usize> Given for LongText<LONGEST> {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let value = fields.get(name)?;
        let Some(text) = value.as_str() else {
            fields.problem(name, format!("must be text, not {}", kind(value)));
            return None;
        };
        if text.len() > LONGEST {
            fields.problem(name, format!("must have at most {LONGEST} bytes, not {}", text.len()));
            return None;
        }
        (!text.trim().is_empty()).then(|| Self(text.to_owned()))
    }
}

impl Given for ToolList {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let named = fields.list(name, "names and ids of tools")?;
        if named.len() > MOST_TOOLS {
            fields.problem(name, format!("names more than {MOST_TOOLS} tools; name only the tools that the run needs"));
            return None;
        }
        Some(Self(named.to_vec()))
    }
}

fn all_built_in(built_in: &BuiltInTools) -> Vec<NamedTool> {
    let named = |name: &str| NamedTool {
        place: "tools".to_owned(),
        tool: ToolRef::BuiltIn(name.to_owned()),
        allowed_hosts: AllowedHosts::default(),
    };
    built_in.names().map(named).collect()
}

fn tools(
    named: &[Value],
    fields: &mut Fields<'_>,
    built_in: &BuiltInTools,
    naming: &dyn Fn(&str) -> Result<ToolRef, String>,
) -> Vec<NamedTool> {
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

impl Given for ResultSchema {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let schema = fields.get(name)?;
        let text = schema.to_string();
        if text.len() > LONGEST_SCHEMA {
            fields.problem(name, format!("must have at most {LONGEST_SCHEMA} bytes, not {}", text.len()));
            return None;
        }
        match JsonSchema::compile(schema) {
            Ok(_) => Some(Self(text)),
            Err(problems) => {
                for problem in problems.below(name).iter() {
                    fields.problem(&problem.field, problem.problem.as_str());
                }
                None
            }
        }
    }
}

impl Given for NewRunLimits {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let (value, path) = (fields.get(name)?, fields.path(name));
        let mut fields = Fields::of(value, path, fields.problems())?;
        let draft = <Self as Body>::draft(&mut fields);
        fields.finish();
        <Self as Body>::whole(draft)
    }
}

impl Given for Cost {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let highest = RunLimits::HIGHEST.cost;
        let cost = fields.get(name)?.as_f64().filter(|cost| *cost > 0.0 && *cost <= highest);
        if cost.is_none() {
            fields.problem(name, format!("must be a number above 0, at most {highest}"));
        }
        cost.map(Self)
    }
}

fn limits(given: Option<NewRunLimits>, ceilings: Option<&RunCeilings>) -> RunLimits {
    let usual = RunLimits::default();
    let usual = ceilings.map_or(usual, |ceilings| usual.at_most(ceilings));
    given.map_or(usual, |given| RunLimits {
        iterations: given.iterations.map_or(usual.iterations, |most| most.0),
        calls_per_iteration: given.calls_per_iteration.map_or(usual.calls_per_iteration, |most| most.0),
        calls: given.calls.map_or(usual.calls, |most| most.0),
        tokens: given.tokens.map_or(usual.tokens, |most| most.0.into()),
        cost: given.cost.map_or(usual.cost, |most| most.0),
        seconds: given.seconds.map_or(usual.seconds, |most| most.0.into()),
    })
}

/// Reports limits above the ceilings of the platform's key.
fn stay_below(fields: &mut Fields<'_>, limits: &NewRunLimits, ceilings: &RunCeilings) {
    const OWN: &str = "on the platform's key; ask for less, or store a key of your own (PUT /api/{slug}/keys/llm)";
    let &RunCeilings { cost, seconds, .. } = ceilings;
    if limits.cost.is_some_and(|most| most.0 > cost) {
        fields.problem("limits.cost", format!("must be at most {cost} {OWN}"));
    }
    // Limits above every run's maximum are reported already.
    let most = limits.seconds.map(|most| most.0.into());
    if most.is_some_and(|most| (seconds + 1..=RunLimits::HIGHEST.seconds).contains(&most)) {
        fields.problem("limits.seconds", format!("must be at most {seconds} {OWN}"));
    }
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
            "model",
            "limits.iterations",
            "limits.calls",
            "limits.tokens",
            "limits.cost",
            "limits.seconds",
            "limits.days",
            "tools[0]",
            "tools[1]",
            "tools[2].built_in",
            "tools[2].allowed_hosts[0]",
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
        let ceilings = RunCeilings { cost: 1.5, seconds: 600, models: Vec::new() };
        let read = |limits: Value| {
            let mut problems = Problems::default();
            let body = json!({"prompt": "Hello", "limits": limits});
            let read = RunRequest::read(&body, &BuiltInTools::default(), Some(&ceilings), &mut problems);
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
    fn on_the_platforms_key_only_its_models_are_accepted() {
        let models = vec!["small".to_owned(), "other/model".to_owned()];
        let ceilings = RunCeilings { cost: 1.5, seconds: 600, models };
        let problems = |model: Value, ceilings: Option<&RunCeilings>| {
            let mut problems = Problems::default();
            let body = json!({"prompt": "Hello", "model": model});
            let _ = RunRequest::read(&body, &BuiltInTools::default(), ceilings, &mut problems);
            problems.iter().map(|it| format!("{} {}", it.field, it.problem)).collect::<Vec<_>>()
        };
        for accepted in [json!("small"), json!(" other/model "), Value::Null] {
            assert_eq!(problems(accepted, Some(&ceilings)).len(), 0);
        }
        let refused = problems(json!("other/model:online"), Some(&ceilings));
        let expected = "model must be one of small, other/model on the platform's key";
        assert!(matches!(&refused[..], [problem] if problem.starts_with(expected)), "{refused:?}");
        assert_eq!(problems(json!("any/model"), None).len(), 0);
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
