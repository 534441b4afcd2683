//! The results of an agent's call-start tools, for a platform that asks before the call.
//!
//! Only tools that change nothing run: there may never be a call. They run beside each other, and the answer does not wait for a
//! tool beyond the deadline.

use std::{str::FromStr, time::Duration};

use futures_util::{future::join_all, join};
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    actions::{
        ActionTool,
        voice_tokens::{CallFacts, VoiceToken},
    },
    clients::vapi::variables::plain,
    cut::fit,
    described::{Described, Json, Schemas},
    error::Problems,
    execution::{Executed, ExecutionRequest},
    fields::Fields,
    http::{Asks, Found, Id, Operation, Reply, Sent, Wanted, operation},
    models::{AgentId, CallId, E164, ExecutionId, ExecutionOrigin, Slug, Tool, ToolName},
    tool::{CallContext, Conversation, Subject, result_variables},
};

use crate::{
    Deps,
    voice::{LONGEST_CALLER, VoiceDeps, bearer},
};

/// Milliseconds.
const USUAL_WAIT: u32 = 2_000;
const LONGEST_WAIT: u32 = 4_000;
/// Kept back from the wait, for the answer.
const RESERVE: Duration = Duration::from_millis(50);
/// Bytes of one result.
const LONGEST_RESULT: usize = 2 * 1024;
const MOST_VARIABLES: usize = 50;
/// ElevenLabs uses a variable with this prefix in headers only, and only as a whole value; no model reads it.
const AUTHORIZATION: &str = "secret__switchboard_authorization";

/// A call that is about to begin.
struct NewCall {
    facts: CallFacts,
    wait: Duration,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Own,
    /// The body of ElevenLabs' webhook for conversation initiation data.
    ElevenLabs,
}

/// The body of either form.
pub(crate) struct CallDescription;

shared::described!(CallDescription => {"anyOf": [
    {
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "call_id": {
                "type": ["string", "null"], "pattern": "^[A-Za-z0-9_-]{1,100}$",
                "description": "The platform's id of the call. With it the answer has a `token` for the call's tools."
            },
            "caller_phone_number": {"type": ["string", "null"], "maxLength": LONGEST_CALLER},
            "called_phone_number": {"type": ["string", "null"], "description": "In E.164 form."},
            "wait_ms": {
                "type": ["integer", "null"], "minimum": 0, "maximum": LONGEST_WAIT, "default": USUAL_WAIT,
                "description": "How long the tools are waited for."
            }
        }
    },
    {
        "type": "object",
        "required": ["caller_id", "called_number"],
        "description": "The body that ElevenLabs sends for conversation initiation data.",
        "properties": {
            "caller_id": {"type": "string"}, "called_number": {"type": "string"}, "call_sid": {"type": "string"}
        }
    }
]});

/// Variables that ElevenLabs must get, because its agent names them.
pub(crate) struct NamedVariables(Vec<String>);

shared::described!(NamedVariables => {"type": "string", "examples": ["look_up_customer_name,look_up_customer_vip"]});

impl FromStr for NamedVariables {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names: Vec<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
        let is_name = |name: &String| {
            (1..=100).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        };
        if names.len() > MOST_VARIABLES || !names.iter().all(is_name) {
            return Err(format!(
                "must be at most {MOST_VARIABLES} names of letters, digits and _, with commas between"
            ));
        }
        Ok(Self(names))
    }
}

impl Asks for NamedVariables {
    const NAME: &'static str = "variables";
    const DOC: &'static str = "In the form of ElevenLabs: names with commas between. A name that no result has is an empty text in the answer.";
}

#[derive(Serialize, Described)]
struct CallStartContext {
    /// By tool: its result; null where it is missing.
    variables: Map<String, Value>,
    /// Tools that failed or did not finish in time.
    missing: Vec<ToolName>,
    /// The bearer of `/api/{slug}/voice/mcp` for this call, for six hours; null without a `call_id`.
    token: Option<String>,
}

/// The answer has the form of the request.
fn describe_context(operation: &mut Operation, schemas: &mut Schemas) {
    let own = CallStartContext::schema(schemas);
    let elevenlabs: Json = json!({
        "type": "object", "additionalProperties": false, "required": ["type", "dynamic_variables"],
        "properties": {
            "type": {"const": "conversation_initiation_client_data"}, "dynamic_variables": {"type": "object"},
        },
    });
    operation.answers(200, "", json!({"oneOf": [own, elevenlabs]}));
}

/// Answer the call-start tools of an agent
///
/// For voice platforms that ask before the call. The agent's tools with `execute_on_call_start` that only read are run, and
/// their results by the deadline are variables under the names of the tools. The bearer is the agent's voice token.
///
/// In the form of ElevenLabs a variable is a text, a number or a boolean: the members of a result are variables of their own
/// (`look_up_customer_name`), other results are JSON, and a missing one is an empty text. `secret__switchboard_authorization` is
/// the call's `Authorization` of `/api/{slug}/voice/mcp`, if there is a `call_sid`.
///
/// - 200: The results, in the form of the request.
///
/// ```json,call
/// {"call_id": "SCL_abc123", "caller_phone_number": "+14155550101", "called_phone_number": "+15005550006", "wait_ms": 1500}
/// ```
/// ```json,elevenlabs
/// {"caller_id": "+14155550101", "agent_id": "J3Pbu5gP6NNKBscdCdwB", "called_number": "+15005550006", "call_sid": "CA00000000000000000000000000000001"}
/// ```
#[operation(POST "/api/{slug}/agents/{id}/context", by(voiceToken), also(400, 401, 403, 404, 422, 429, 500, 503), resource(AgentContext), tag("agents"), throttle(Voice), answers(describe_context))]
pub(crate) async fn agent_context(
    deps: &Deps,
    found: &Found<'_>,
    slug: Slug,
    agent: Id<AgentId>,
    wanted: Wanted<NamedVariables>,
    body: Sent<CallDescription>,
) -> Result<Reply> {
    let voice = &deps.voice;
    let token = bearer(voice, found, &slug).await?;
    if token.agent_id != agent.0 || token.call.is_some() {
        return Err(Error::Unauthenticated);
    }
    let call = NewCall::read(&body.json()?)?;
    let until = found.deadline.at_most(call.wait);
    let (tools, conversation) =
        join!(voice.agents_tools(&token, found.deadline), voice.conversation(&token, &call.facts));
    let (tools, conversation) = (tools?, conversation?);
    let tools: Vec<ActionTool> = tools.iter().filter_map(reads_at_start).collect();
    let results = join_all(tools.iter().map(|tool| run(voice, &token, &call, tool, &conversation, until))).await;
    let (mut variables, mut missing) = (Map::new(), Vec::new());
    for (tool, executed) in tools.iter().zip(&results) {
        let Ok(name) = tool.spec.name.parse::<ToolName>() else { continue };
        let outcome = executed.as_ref().map(|executed| &executed.outcome);
        let result = outcome.filter(|outcome| !outcome.is_failed()).and_then(|outcome| outcome.answer.get("result"));
        let value = result.map_or(Value::Null, |result| plain(fit(result.clone(), LONGEST_RESULT)));
        variables.insert(result_variables::name(&name, &variables), value);
        if result.is_none() {
            missing.push(name);
        }
    }
    let token = match &call.facts.id {
        Some(_) => {
            let token = token.for_call(call.facts.clone()).signed(&voice.tokens).await?;
            Some(token.expose_secret().to_owned())
        }
        None => None,
    };
    let reply = match call.form {
        Form::Own => Reply::ok(&CallStartContext { variables, missing, token })?,
        Form::ElevenLabs => {
            let mut variables = flat(variables);
            for name in wanted.0.map(|named| named.0).unwrap_or_default() {
                variables.entry(name).or_insert_with(|| "".into());
            }
            variables.extend(token.map(|token| (AUTHORIZATION.to_owned(), Value::from(format!("Bearer {token}")))));
            Reply::ok(&json!({"type": "conversation_initiation_client_data", "dynamic_variables": variables}))?
        }
    };
    let executor = voice.executor.clone();
    let history: Vec<_> = results.into_iter().flatten().map(|executed| executed.execution).collect();
    Ok(reply.afterwards(async move { executor.record(&history).await }))
}

/// `None`: it did not finish in time.
async fn run(
    voice: &VoiceDeps,
    token: &VoiceToken,
    call: &NewCall,
    tool: &ActionTool,
    conversation: &Conversation,
    until: Deadline,
) -> Option<Executed> {
    let (id, arguments) = (ExecutionId::generate(), Map::new());
    let name = id.to_string();
    let context = CallContext {
        organization: token.organization_id,
        user: None,
        subject: Subject::of(call.facts.id.as_ref(), call.facts.caller.as_deref(), &name),
        automation: None,
        delivery: None,
        conversation,
        trigger: ExecutionOrigin::CallStart,
        refused: None,
        deadline: until.reserving(RESERVE),
    };
    let executed = voice.executor.execute(tool, ExecutionRequest::new(id, &arguments), &context, None);
    tokio::time::timeout(until.remaining(), executed).await.ok()
}

fn reads_at_start(row: &Tool) -> Option<ActionTool> {
    let tool = ActionTool::of_row(row).ok().filter(|_| row.execute_on_call_start)?;
    (!tool.spec.acts()).then_some(tool)
}

impl NewCall {
    fn read(body: &Value) -> Result<Self> {
        let mut problems = Problems::default();
        let from_elevenlabs = body.get("caller_id").is_some() || body.get("called_number").is_some();
        let call = if from_elevenlabs { Some(Self::of_elevenlabs(body)) } else { Self::of_ours(body, &mut problems) };
        problems.into_result(call)
    }

    /// ElevenLabs may add fields, so the others are skipped.
    fn of_elevenlabs(body: &Value) -> Self {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let facts = CallFacts {
            id: text("call_sid").and_then(|id| id.parse().ok()),
            caller: text("caller_id").filter(|caller| caller.len() <= LONGEST_CALLER).map(str::to_owned),
            called: text("called_number").and_then(|called| called.parse().ok()),
        };
        Self { facts, wait: Duration::from_millis(USUAL_WAIT.into()), form: Form::ElevenLabs }
    }

    fn of_ours(body: &Value, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(body, "", problems)?;
        let id = fields.parse::<CallId>("call_id");
        let caller = fields.text("caller_phone_number", LONGEST_CALLER);
        let called = fields.parse::<E164>("called_phone_number");
        let wait = fields.whole("wait_ms", 0..=LONGEST_WAIT).unwrap_or(USUAL_WAIT);
        fields.finish();
        let facts = CallFacts { id, caller, called };
        Some(Self { facts, wait: Duration::from_millis(wait.into()), form: Form::Own })
    }
}

/// ElevenLabs takes texts, numbers and booleans alone.
fn flat(variables: Map<String, Value>) -> Map<String, Value> {
    let is_plain = |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    let mut flat = Map::new();
    for (name, value) in variables {
        if let Value::Object(members) = &value {
            let plain = members.iter().filter(|(_, member)| is_plain(member));
            flat.extend(plain.map(|(member, value)| (format!("{name}_{member}"), value.clone())));
        }
        let whole = match value {
            Value::Null => "".into(),
            value if is_plain(&value) => value,
            value => Value::String(value.to_string()),
        };
        flat.insert(name, whole);
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_a_result_is_a_variable_of_its_own() {
        let variables =
            json!({"crm": {"name": "Ana", "tags": ["a"], "vip": true}, "hours": "9 to 5", "list": [1], "late": null});
        let expected = json!({
            "crm": "{\"name\":\"Ana\",\"tags\":[\"a\"],\"vip\":true}", "crm_name": "Ana", "crm_vip": true,
            "hours": "9 to 5", "list": "[1]", "late": "",
        });
        assert_eq!(Value::Object(flat(variables.as_object().unwrap().clone())), expected);
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let body = json!({"call_id": "a b", "called_phone_number": "12", "wait_ms": 4_001, "caller": "+1"});
        let Err(Error::Invalid(problems)) = NewCall::read(&body) else { panic!("{body} is accepted") };
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["call_id", "called_phone_number", "wait_ms", "caller"]);
    }
}
