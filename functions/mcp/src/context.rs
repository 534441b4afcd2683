//! The results of an agent's call-start tools, for a platform that asks before the call.
//!
//! Only tools that change nothing run: there may never be a call. They run beside each other, and a tool that does not finish by
//! the deadline is missing in the answer.

use std::time::Duration;

use futures_util::future::join_all;
use secrecy::ExposeSecret;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    actions::ActionTool,
    cut::fit,
    described::{Described, Json, Schemas},
    error::Problems,
    execution::{Executed, ExecutionRequest},
    fields::Fields,
    http::{Answers, Found, Id, Operation, Reply, Sent, operation},
    models::{AgentId, CallId, E164, ExecutionId, ExecutionOrigin, Slug, Tool, ToolName},
    result_variables,
    tool::{CallContext, Conversation, Subject},
    voice_tokens::{CallFacts, VoiceToken},
};

use crate::{
    Deps,
    voice::{VoiceDeps, bearer},
};

/// Milliseconds.
const USUAL_WAIT: u32 = 2_000;
const LONGEST_WAIT: u32 = 4_000;
/// Kept back from the wait, for the answer.
const RESERVE: Duration = Duration::from_millis(50);
/// Characters.
const LONGEST_CALLER: usize = 200;
/// Bytes of one result.
const LONGEST_RESULT: usize = 2 * 1024;

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

#[derive(Serialize, Described)]
struct CallStartContext {
    /// By tool: its result.
    variables: Map<String, Value>,
    /// Tools that failed or did not finish in time.
    missing: Vec<ToolName>,
    /// The bearer of `/api/{slug}/voice/mcp` for this call, for six hours; null without a `call_id`.
    token: Option<String>,
}

/// The answer in the form of the request.
pub(crate) struct Told(Reply);

impl Answers for Told {
    fn reply(self) -> Result<Reply> {
        Ok(self.0)
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let own = CallStartContext::schema(schemas);
        let elevenlabs: Json = json!({
            "type": "object", "additionalProperties": false, "required": ["type", "dynamic_variables"],
            "properties": {
                "type": {"const": "conversation_initiation_client_data"}, "dynamic_variables": {"type": "object"},
            },
        });
        operation.answers(200, "", json!({"oneOf": [own, elevenlabs]}));
    }
}

/// Answer the call-start tools of an agent
///
/// For voice platforms that ask before the call. The agent's tools with `execute_on_call_start` that only read are run, and
/// their results by the deadline are variables under the names of the tools. The bearer is the agent's voice token. In the form
/// of ElevenLabs a variable is a text, a number or a boolean: the members of a result are variables of their own
/// (`look_up_customer_name`), and other results are JSON.
///
/// - 200: The results, in the form of the request.
///
/// ```json,call
/// {"call_id": "SCL_abc123", "caller_phone_number": "+14155550101", "called_phone_number": "+15005550006", "wait_ms": 1500}
/// ```
/// ```json,elevenlabs
/// {"caller_id": "+14155550101", "agent_id": "J3Pbu5gP6NNKBscdCdwB", "called_number": "+15005550006", "call_sid": "CA00000000000000000000000000000001"}
/// ```
#[operation(POST "/api/{slug}/agents/{id}/context", by(voiceToken), also(400, 401, 404, 422, 429, 500, 503), resource(AgentContext), tag("agents"), throttle(Vapi))]
pub(crate) async fn agent_context(
    deps: &Deps,
    found: &Found<'_>,
    slug: Slug,
    agent: Id<AgentId>,
    body: Sent<CallDescription>,
) -> Result<Told> {
    let voice = &deps.voice;
    let token = bearer(voice, found, &slug).await?;
    if token.agent_id != agent.0 || token.call.is_some() {
        return Err(Error::Unauthenticated);
    }
    let call = NewCall::read(&body.json()?)?;
    let until = found.deadline.at_most(call.wait);
    let (_, tools) = voice.agent(&token, found.deadline).await?;
    let line = match &call.facts.called {
        Some(number) => {
            voice.phone_numbers.by_number(number).await?.and_then(|line| line.for_owner(token.organization_id))
        }
        None => None,
    };
    let conversation =
        Conversation { caller: call.facts.caller.clone(), called: call.facts.called.clone(), line, call: None };
    let tools: Vec<ActionTool> = tools.iter().filter_map(reads_at_start).collect();
    let results = join_all(tools.iter().map(|tool| run(voice, &token, &call, tool, &conversation, until))).await;
    let executor = voice.executor.clone();
    let (mut variables, mut missing) = (Map::new(), Vec::new());
    for (tool, executed) in tools.iter().zip(&results) {
        let Ok(name) = tool.spec.name.parse::<ToolName>() else { continue };
        let answer = executed.as_ref().map(|executed| &executed.outcome.answer);
        let result = answer.filter(|answer| answer.get("success") == Some(&Value::Bool(true)));
        match result.and_then(|answer| answer.get("result")) {
            Some(result) => {
                let variable = result_variables::name(&name, &variables);
                variables.insert(variable, result_variables::plain(fit(result.clone(), LONGEST_RESULT)));
            }
            None => missing.push(name),
        }
    }
    let reply = match call.form {
        Form::Own => {
            let token = match &call.facts.id {
                Some(_) => Some(token.for_call(call.facts.clone()).signed(&voice.tokens).await?),
                None => None,
            };
            let token = token.map(|token| token.expose_secret().to_owned());
            Reply::ok(&CallStartContext { variables, missing, token })?
        }
        Form::ElevenLabs => Reply::ok(&json!({
            "type": "conversation_initiation_client_data", "dynamic_variables": flat(variables),
        }))?,
    };
    let history: Vec<_> = results.into_iter().flatten().map(|executed| executed.execution).collect();
    Ok(Told(reply.afterwards(async move { executor.record(&history).await })))
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
        let call = if from_elevenlabs { Self::of_elevenlabs(body) } else { Self::of_ours(body, &mut problems) };
        problems.into_result(call)
    }

    /// ElevenLabs may add fields, so the others are skipped.
    fn of_elevenlabs(body: &Value) -> Option<Self> {
        let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::trim).filter(|text| !text.is_empty());
        let facts = CallFacts {
            id: text("call_sid").and_then(|id| id.parse().ok()),
            caller: text("caller_id").filter(|caller| caller.len() <= LONGEST_CALLER).map(str::to_owned),
            called: text("called_number").and_then(|called| called.parse().ok()),
        };
        Some(Self { facts, wait: Duration::from_millis(USUAL_WAIT.into()), form: Form::ElevenLabs })
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

/// Texts, numbers and booleans alone, as ElevenLabs takes them.
fn flat(variables: Map<String, Value>) -> Map<String, Value> {
    let is_plain = |value: &Value| matches!(value, Value::String(_) | Value::Number(_) | Value::Bool(_));
    let mut flat = Map::new();
    for (name, value) in variables {
        if let Value::Object(members) = &value {
            let plain = members.iter().filter(|(_, member)| is_plain(member));
            flat.extend(plain.map(|(member, value)| (format!("{name}_{member}"), value.clone())));
        }
        let whole = if is_plain(&value) { value } else { Value::String(value.to_string()) };
        flat.insert(name, whole);
    }
    flat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_a_result_is_a_variable_of_its_own() {
        let variables = json!({"crm": {"name": "Ana", "tags": ["a"], "vip": true}, "hours": "9 to 5", "list": [1]});
        let expected = json!({
            "crm": "{\"name\":\"Ana\",\"tags\":[\"a\"],\"vip\":true}", "crm_name": "Ana", "crm_vip": true,
            "hours": "9 to 5", "list": "[1]",
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
