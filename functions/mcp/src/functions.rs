//! The tools as definitions of functions, and calls of them.

use std::str::FromStr;

use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    authoring_tools::{AgentToolAnswer, Format, InWhoseName},
    described::{Described, Json, Schemas, json},
    fields::kind,
    http::{Asked, Asks, Found, Operation, Part, Repeated, Sent, Shown, Wanted, operation},
    tool::NotBound,
};

use crate::Deps;

/// The maker of a model whose `tools` the definitions are for.
pub(crate) struct Wish(Format);

shared::described!(Wish => {"enum": ["openai", "anthropic", "json-schema"], "default": "json-schema"});

impl FromStr for Wish {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Format::parse(name).map(Self)
    }
}

impl Asks for Wish {
    const NAME: &'static str = "format";
    const DOC: &'static str = "The form of the definitions.";
}

/// The tools, each as [`Format`] has it.
#[derive(Serialize)]
pub(crate) struct Definitions {
    tools: Vec<Value>,
}

impl Described for Definitions {
    fn schema(schemas: &mut Schemas) -> Json {
        let object = |members: &[(&str, Json)]| {
            let required: Vec<&str> = members.iter().map(|member| member.0).collect();
            let properties: serde_json::Map<String, Json> =
                members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
            json!({"type": "object", "additionalProperties": false, "required": required, "properties": properties})
        };
        let (text, any) = (String::schema(schemas), json!({"type": "object"}));
        let function = object(&[
            ("name", text.clone()),
            ("description", text.clone()),
            ("strict", bool::schema(schemas)),
            ("parameters", any.clone()),
        ]);
        let openai = object(&[("type", json!({"const": "function"})), ("function", function)]);
        let anthropic = object(&[("name", text.clone()), ("description", text.clone()), ("input_schema", any.clone())]);
        let plain = object(&[
            ("name", text.clone()),
            ("title", text.clone()),
            ("description", text),
            ("parameters", any.clone()),
            ("annotations", any),
        ]);
        object(&[("tools", json!({"type": "array", "items": {"oneOf": [openai, anthropic, plain]}}))])
    }
}

/// A tool's name, percent-encoded.
pub(crate) struct ToolName(String);

impl Part for ToolName {
    fn of(found: &Found<'_>) -> Result<Self> {
        Ok(Self(percent_decode_str(found.variable(0)).decode_utf8_lossy().into_owned()))
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("A tool's name.", json!({"type": "string"}));
    }
}

/// The arguments of a call.
pub(crate) struct Arguments;

shared::described!(Arguments => {"type": "object", "description": "The arguments."});

/// The result of a call.
#[derive(Serialize, Described)]
pub(crate) struct CalledView {
    success: bool,
    /// The text for the model.
    text: String,
    /// The same as data; null where there is none.
    data: Value,
}

/// The tools for agents, as definitions of functions
///
/// The MCP server's tools, as the maker of a model wants them in its `tools`. In `openai` the schemas are strict where
/// possible.
///
/// - 200: The definitions.
#[operation(GET "/api/{slug}/agent-tools", Viewer, resource(AgentTools), throttle(Open))]
#[expect(clippy::unused_async, reason = "handlers have one form, and this one waits for nothing")]
pub(crate) async fn list_tools_for_agents(
    deps: &Deps,
    _asked: &Asked<'_>,
    wish: Wanted<Wish>,
) -> Result<Shown<Definitions>> {
    let format = wish.0.map_or(Format::JsonSchema, |wish| wish.0);
    Ok(Shown(Definitions { tools: deps.tools.list().map(|tool| tool.in_format(format)).collect() }))
}

/// Carry out a model's call of such a function
///
/// The body is the call's arguments. A failure of the tool is a 200 with `success: false`, so that the model sees it.
/// With an `Idempotency-Key` the same call happens once.
///
/// - 200: The tool's outcome.
///
/// ```json,search
/// {"q": "post a message"}
/// ```
#[operation(POST "/api/{slug}/agent-tools/{name}", Member, resource(CallAgentTool), throttle(Agents))]
pub(crate) async fn call_tool_for_agents(
    deps: &Deps,
    asked: &Asked<'_>,
    key: Repeated,
    name: ToolName,
    body: Sent<Arguments>,
) -> Result<Shown<CalledView>> {
    if deps.tools.named(&name.0).is_none() {
        return Err(Error::NotFound("tool"));
    }
    let arguments = match body.json()? {
        Value::Object(arguments) => arguments,
        other => return Err(Error::invalid("body", format!("must be an object, not {}", kind(&other)))),
    };
    let whose = InWhoseName::of(asked.member.clone(), key.0.as_deref(), &arguments);
    let toolbox = deps.tools.toolbox();
    let answer = match toolbox.check(&name.0, &arguments) {
        Ok(bound) => AgentToolAnswer::of(bound.call(&whose.context(asked.deadline)).await?),
        Err(NotBound::Unknown(_)) => return Err(Error::NotFound("tool")),
        Err(NotBound::Invalid(sentence)) => AgentToolAnswer { failed: true, text: sentence, data: Value::Null },
    };
    Ok(Shown(CalledView { success: !answer.failed, text: answer.text, data: answer.data }))
}
