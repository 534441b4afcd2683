//! Conversations with the planner, told while they happen. The function stands behind a REST API, which streams and
//! has no authorizer: it verifies the token and sends the CORS headers itself (`authentication.rs`).
//!
//! Every refusal comes before the first event, with a status; later failures are events. Lambda does not say that a
//! caller has left, so a turn goes on without: `stop` ends it, and its limits do.

pub mod agui;
mod authentication;
mod copilotkit;
#[doc(hidden)]
pub mod fuzzing;
mod history;
mod input;
mod sse;

use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    chat::{ChatInput, Turns},
    described::{Schemas, json},
    http::{Access, Found, Frames, Operation, Person, Repeated, Reply, Request, Sent, TokenVerifier, operation},
    platform::Parts,
};

use crate::{agui::Run, input::RunInput, sse::Stream};

pub use routes::{ROUTES, describe};

mod routes {
    use crate::Deps;

    shared::routes!(
        &'static Deps,
        "chat": crate::chat_stream,
        crate::ag_ui_run,
        crate::copilotkit::copilot_kit_info,
        crate::copilotkit::copilot_kit_run,
        crate::copilotkit::copilot_kit_connect,
        crate::copilotkit::copilot_kit_stop,
        crate::copilotkit::copilot_kit_call,
    );
}

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub tokens: TokenVerifier,
    pub turns: Turns,
    /// Where it is reached, beside the REST API's own endpoint.
    #[part(platform.stream_public_url())]
    pub public_url: Option<String>,
}

/// `deps` outlive the answer, which goes on after this has returned.
pub async fn handle(deps: &'static Deps, request: Request) -> Result<Reply> {
    let shown = authentication::headers(&request);
    // A refusal has the same: a page must be able to read it.
    match Box::pin(routes::handle(deps, request)).await {
        Ok(reply) => Ok(reply.with_headers(shown)),
        Err(error) => Err(error.with_headers(shown)),
    }
}

/// A message to the planner.
struct ChatRequest;

/// The input of a run of AG-UI.
struct RunAgentInput;

shared::described! {
    ChatRequest => {"$ref": "#/components/schemas/ChatRequest"},
    RunAgentInput => {"$ref": "#/components/schemas/RunAgentInput"},
}

fn describe_events(operation: &mut Operation, _: &mut Schemas) {
    let schema = json!({"type": "string", "pattern": "^(data: |:)"});
    operation.answers_with(200, "", "text/event-stream", json!({"schema": schema}));
}

/// Say something to the planner, and see the answer come
///
/// The request of `POST /agent/chat`, answered with server-sent events `data: {"type", …}` as the turn happens:
/// `progress`, `token`, `tool_call`, `tool_result`, `widget`, then `message` with the whole answer, or `consent`, and
/// at the end exactly one `done` or `error`. A comment comes after 15 s of silence. Refusals have a status and come
/// before the first event.
///
/// - 200: The turn.
///
/// ```json,question
/// {"message": "What time is it in Lisbon?", "thread_id": "main"}
/// ```
#[operation(POST "/agent/stream", verified(Member), also(409 = ChatConflict, 429 = OverBudget), throttle(StreamTurn), answers(describe_events))]
async fn chat_stream(
    deps: &'static Deps,
    found: &Found<'_>,
    body: Sent<ChatRequest>,
    key: Result<Repeated>,
) -> Result<Reply> {
    let (person, deadline) = (authentication::person(deps, found).await?, found.deadline);
    let asked = ChatInput::of_chat(&body.json()?, key?.0)?;
    let open = Box::pin(deps.turns.open(&person.member, person.email, asked, deadline)).await?;
    let frames = Frames::default();
    let mut stream = Stream::new(frames.clone());
    let work = async move {
        let answer = deps.turns.answer(open, &mut stream).await?;
        stream.answered(&answer);
        Ok(())
    };
    Ok(Reply::events(frames, within(deadline, work), sse::failed))
}

/// A run of AG-UI
///
/// A `RunAgentInput` of AG-UI, answered with its events. The last message of a user is taken; its id is the request's
/// name, so that the same message again gets the same answer, also while it is being answered. Before the end a
/// `CUSTOM` event `receipt` lists the effects. `resume` decides an interrupt; results of tools in `tools` are `tool`
/// messages. The thread's history is ours: other messages, `state`, `context` and `forwardedProps` are not read.
///
/// - 200: The run.
///
/// ```json,run
/// {"threadId": "5f0c1a7e-8f5c-4c0e-9f0e-000000000001", "runId": "1485e617-89c3-4dbf-a52e-03533394e4b9",
///  "messages": [{"id": "u1", "role": "user", "content": "Hello"}], "tools": [], "context": [], "state": {}, "forwardedProps": {}}
/// ```
#[operation(POST "/copilotkit/stream", verified(Member), also(409 = ChatConflict, 429 = OverBudget), throttle(StreamTurn), answers(describe_events))]
async fn ag_ui_run(deps: &'static Deps, found: &Found<'_>, body: Sent<RunAgentInput>) -> Result<Reply> {
    let person = authentication::person(deps, found).await?;
    run(deps, &person, &body.json()?, "", found.deadline).await
}

/// A turn as events of AG-UI; the input stands at `path` of the request.
async fn run(deps: &'static Deps, person: &Person, body: &Value, path: &str, deadline: Deadline) -> Result<Reply> {
    let RunInput { run, asked } = RunInput::read(body, path)?;
    let thread = asked.thread.clone();
    let open = Box::pin(deps.turns.open(&person.member, person.email.clone(), asked, deadline)).await?;
    let frames = Frames::default();
    let mut run = Run::start(frames.clone(), &thread, &run);
    if let Some(messages) = body.get("messages").and_then(Value::as_array) {
        run.client_has(messages);
    }
    let work = async move {
        let answer = deps.turns.answer(open, &mut run).await?;
        run.answered(&answer.content, answer.widget.as_ref(), &answer.metadata);
        Ok(())
    };
    Ok(Reply::events(frames, within(deadline, work), agui::failed))
}

/// Runs the work until Lambda's deadline; work that exceeds it is abandoned, and the stream says so.
pub(crate) async fn within(deadline: Deadline, work: impl Future<Output = Result<()>>) -> Result<()> {
    let limited = tokio::time::timeout(deadline.remaining(), work).await;
    limited.unwrap_or_else(|late| Err(Error::Unavailable("the answer took too long; it", late.into())))
}
