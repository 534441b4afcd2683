//! CopilotKit's requests below its `runtimeUrl`. There is one agent, `default`; its threads are those of the user.

use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    described::{Described, Schemas, json, reference},
    http::{Found, Operation, Part, Person, Reply, Sent, operation},
};

use crate::{Deps, RunAgentInput, authentication, describe_events, history, run};

const AGENT: &str = "default";

/// The available agents.
pub(crate) fn info() -> Result<Reply> {
    Reply::ok(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "agents": {
            AGENT: {"name": AGENT, "description": "Answers with the organization's tools, and acts with them."},
        },
        "mode": "sse",
        "audioFileTranscriptionEnabled": false,
        "telemetryDisabled": true,
    }))
}

/// The agent's name in the path.
pub(crate) struct AgentName(String);

impl Part for AgentName {
    fn of(found: &Found<'_>) -> Result<Self> {
        decoded(found.variable(0)).map(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("There is one, `default`.", json!({"type": "string"}));
    }
}

/// The thread's name in the path.
pub(crate) struct ThreadName(String);

impl Part for ThreadName {
    fn of(found: &Found<'_>) -> Result<Self> {
        decoded(found.variable(1)).map(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.names("As the front end calls it.", json!({"type": "string"}));
    }
}

/// A thread to show, with the run's id.
pub(crate) struct Connected;

/// A call of a route below `/copilotkit/agent`.
pub(crate) struct CopilotKitCall;

shared::described! {
    Connected => {"type": "object", "required": ["threadId"],
        "properties": {"threadId": {"type": "string"}, "runId": {"type": "string"}}},
    CopilotKitCall => {"$ref": "#/components/schemas/CopilotKitCall"},
}

/// A body that the handler does not read.
pub(crate) struct Ignored;

impl Part for Ignored {
    fn of(_: &Found<'_>) -> Result<Self> {
        Ok(Self)
    }

    fn describe(operation: &mut Operation, _: &mut Schemas) {
        operation.takes(json!({"type": "object", "description": "Not read."}), false);
    }
}

fn describe_info(operation: &mut Operation, _: &mut Schemas) {
    operation.answers(200, "", reference("CopilotKitInfo"));
}

/// Whether a turn was being answered.
#[derive(Serialize, Described)]
struct StoppedView {
    stopped: bool,
}

fn describe_stopped(operation: &mut Operation, schemas: &mut Schemas) {
    operation.answers(200, "", StoppedView::schema(schemas));
}

/// The answer of the method's own route.
fn describe_called(operation: &mut Operation, schemas: &mut Schemas) {
    describe_events(operation, schemas);
    operation.answers(200, "", json!({"anyOf": [reference("CopilotKitInfo"), (StoppedView::schema(schemas))]}));
}

/// The agents, for a front end of `CopilotKit`
///
/// - 200: There is one, `default`.
#[operation(GET "/copilotkit/info", verified(Member), throttle(StreamShort), answers(describe_info))]
pub(crate) async fn copilot_kit_info(deps: &'static Deps, found: &Found<'_>) -> Result<Reply> {
    authentication::person(deps, found).await?;
    info()
}

/// The same below `CopilotKit`'s runtimeUrl
///
/// - 200: The run.
///
/// ```json,run
/// {"threadId": "5f0c1a7e-8f5c-4c0e-9f0e-000000000001", "runId": "1485e617-89c3-4dbf-a52e-03533394e4b9",
///  "messages": [{"id": "u1", "role": "user", "content": "Hello"}], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
/// ```
#[operation(POST "/copilotkit/agent/{id}/run", verified(Member), also(404 = NoSuchAgent, 409 = ChatConflict, 429 = OverBudget), throttle(StreamTurn), answers(describe_events))]
pub(crate) async fn copilot_kit_run(
    deps: &'static Deps,
    found: &Found<'_>,
    agent: Result<AgentName>,
    body: Sent<RunAgentInput>,
) -> Result<Reply> {
    let person = authentication::person(deps, found).await?;
    if let Some(refused) = refused(&agent?.0)? {
        return Ok(refused);
    }
    run(deps, &person, &body.json()?, "", found.deadline).await
}

/// The thread so far
///
/// A run with the newest 200 messages as `MESSAGES_SNAPSHOT`, whose ids stay the same, and the interrupt that is open. A turn
/// that is being answered follows: a `CUSTOM` event `running`, its calls as they are made, and its answer. Of a thread that
/// nobody has begun there is no snapshot.
///
/// - 200: The thread.
///
/// ```json,connect
/// {"threadId": "main", "runId": "r1", "messages": []}
/// ```
#[operation(POST "/copilotkit/agent/{id}/connect", verified(Member), also(404 = NoSuchAgent), throttle(StreamShort), answers(describe_events))]
pub(crate) async fn copilot_kit_connect(
    deps: &'static Deps,
    found: &Found<'_>,
    agent: Result<AgentName>,
    body: Sent<Connected>,
) -> Result<Reply> {
    let person = authentication::person(deps, found).await?;
    if let Some(refused) = refused(&agent?.0)? {
        return Ok(refused);
    }
    history::connect(deps, &person.member, &body.json()?, "", found.deadline).await
}

/// End the turn that is just being answered
///
/// The messages so far stay. The stream of the run ends by itself, a moment later.
///
/// - 200: Whether a turn was being answered.
///
/// ```json,stop
/// {"runId": "r1"}
/// ```
#[operation(POST "/copilotkit/agent/{id}/stop/{thread}", verified(Member), also(404 = NoSuchAgent), throttle(StreamShort), answers(describe_stopped))]
pub(crate) async fn copilot_kit_stop(
    deps: &'static Deps,
    found: &Found<'_>,
    agent: Result<AgentName>,
    thread: Result<ThreadName>,
    _body: Ignored,
) -> Result<Reply> {
    let person = authentication::person(deps, found).await?;
    if let Some(refused) = refused(&agent?.0)? {
        return Ok(refused);
    }
    stop(deps, &person, &thread?.0).await
}

/// The same as calls of one endpoint
///
/// - 200: As the method's own route.
///
/// ```json,info
/// {"method": "info"}
/// ```
/// ```json,run
/// {"method": "agent/run", "params": {"agentId": "default"},
///  "body": {"threadId": "main", "runId": "r2", "messages": [{"id": "u2", "role": "user", "content": "Hello"}]}}
/// ```
/// ```json,connect
/// {"method": "agent/connect", "params": {"agentId": "default"}, "body": {"threadId": "main", "runId": "r3"}}
/// ```
/// ```json,stop
/// {"method": "agent/stop", "params": {"agentId": "default", "threadId": "main"}}
/// ```
#[operation(POST "/copilotkit", verified(Member), also(400 = NoSuchMethod, 404 = NoSuchAgent, 409 = ChatConflict, 429 = OverBudget), throttle(StreamTurn), answers(describe_called))]
pub(crate) async fn copilot_kit_call(
    deps: &'static Deps,
    found: &Found<'_>,
    body: Sent<CopilotKitCall>,
) -> Result<Reply> {
    let person = authentication::person(deps, found).await?;
    call(deps, &person, &body.json()?, found.deadline).await
}

/// `{"method", "params": {"agentId", "threadId"?}, "body"}`
async fn call(deps: &'static Deps, person: &Person, call: &Value, deadline: Deadline) -> Result<Reply> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let method = text(call.get("method")).unwrap_or_default();
    if method == "info" {
        return info();
    }
    let params = call.get("params").unwrap_or(&Value::Null);
    let agent = text(params.get("agentId")).unwrap_or_else(|| AGENT.to_owned());
    let body = call.get("body").unwrap_or(&Value::Null);
    match method.as_str() {
        "agent/run" | "agent/connect" | "agent/stop" if agent != AGENT => unknown(&agent),
        "agent/run" => run(deps, person, body, "body", deadline).await,
        "agent/connect" => history::connect(deps, &person.member, body, "body", deadline).await,
        "agent/stop" => match text(params.get("threadId")) {
            Some(thread) => stop(deps, person, &thread).await,
            None => invalid("\"params.threadId\" must name the thread"),
        },
        _ => invalid("\"method\" must be info, agent/run, agent/connect or agent/stop"),
    }
}

/// Asks the turn that is just being answered to end; whose run it is tells the thread.
async fn stop(deps: &Deps, person: &Person, thread: &str) -> Result<Reply> {
    let stopped = match deps.turns.stop(&person.member, thread).await {
        // Nothing runs in a thread that there is not.
        Err(Error::NotFound("thread")) => false,
        stopped => stopped?,
    };
    Reply::ok(&json!({"stopped": stopped}))
}

/// The refusal of an unknown agent.
fn refused(agent: &str) -> Result<Option<Reply>> {
    if agent == AGENT { Ok(None) } else { unknown(agent).map(Some) }
}

/// As CopilotKit's own runtime says it.
fn unknown(agent: &str) -> Result<Reply> {
    protocol_error(404, "Agent not found", &format!("there is no agent {agent:?}; the only one is \"{AGENT}\""))
}

fn invalid(message: &str) -> Result<Reply> {
    protocol_error(400, "invalid_request", message)
}

fn protocol_error(status: u16, error: &str, message: &str) -> Result<Reply> {
    Reply::json(status, &json!({"error": error, "message": message}))
}

fn decoded(segment: &str) -> Result<String> {
    let text = percent_decode_str(segment).decode_utf8().map_err(|_no_text| Error::NotFound("route"))?;
    Ok(text.into_owned())
}
