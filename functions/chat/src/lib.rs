//! Conversations of people with the planner, answered whole.

mod threads;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    Result,
    chat::{ChatInput, TurnAnswer, TurnMetadata, Turns},
    described::{Described, Json, Schemas, json},
    http::{Access, Asked, Repeated, Sent, Shown, operation},
    models::Timestamp,
    planner::{Observer, Receipt, TurnEvent, Widget},
    platform::Parts,
};

shared::routes!(
    Deps,
    "chat": chat,
    copilot_kit_action,
    threads::list_threads,
    threads::get_thread,
    threads::delete_thread,
);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub turns: Turns,
}

/// An answer that comes whole needs to hear of nothing before.
struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _event: TurnEvent<'_>) {}
}

/// A message to the planner.
struct ChatRequest;

/// A message to the planner in `CopilotKit`'s form.
struct CopilotKitAction;

shared::described!(ChatRequest => {"$ref": "#/components/schemas/ChatRequest"});

impl Described for CopilotKitAction {
    fn schema(_: &mut Schemas) -> Json {
        let action = json!({"const": "chat", "description": "Another one is malformed."});
        json!({"type": "object", "required": ["action"], "properties": {"action": action}})
    }
}

/// The planner's answer.
#[derive(Serialize, Described)]
struct ChatAnswer {
    thread_id: String,
    message: String,
    #[schema(r#enum = ["assistant"])]
    role: &'static str,
    timestamp: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(of = "Option<Widget>")]
    widget: Option<Value>,
    #[schema(of = "TurnMetadata")]
    metadata: Value,
}

/// The planner's answer in `CopilotKit`'s form.
#[derive(Serialize, Described)]
struct ActionAnswer {
    result: ActionResult,
    #[schema(of = "Option<Widget>")]
    widget: Option<Value>,
}

#[derive(Serialize, Described)]
struct ActionResult {
    #[schema(r#enum = ["response"])]
    r#type: &'static str,
    content: String,
    #[schema(r#enum = ["assistant"])]
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(of = "Option<Widget>")]
    widget: Option<Value>,
    #[schema(of = "TurnMetadata")]
    metadata: Value,
}

/// Say something to the planner
///
/// A model chooses a tool if necessary, the tool runs, and the answer uses its result. The tools are the built-in
/// ones, the organization's and those of connected services, as far as the person's role does. An effect happens once
/// in a turn, however often its call is made, also if the request is sent again after an error. `metadata.receipt`
/// lists the effects; it is made from the record, never from the model's words.
///
/// If a tool's `chat` requires consent, it is not called yet, and `metadata.pending_action` shows its whole request.
/// The next message with `metadata.consent` carries exactly that out, once, or not; any other message withdraws it,
/// and so does an hour. The model's later calls follow then. A consent that was decided already is a 409
/// `consent_decided`.
///
/// Two messages to one thread at the same moment are answered one after the other. With an `Idempotency-Key` a
/// repeated request gets the same answer: it waits for the running one, and continues a broken one. Without a key the
/// same text is the same request during the answer, for a minute after a broken answer, and for a minute after an
/// answer with effects (`metadata.repeated`).
///
/// - 200: The answer.
///
/// ```json,question: In the default thread of the user
/// {"message": "How many text messages did we send to Ada this week?"}
/// ```
/// ```json,follow_up: In a thread of this name
/// {"message": "And last week?", "thread_id": "reports", "metadata": {"page": "/reports"}}
/// ```
#[operation(POST "/agent/chat", Member, also(409 = ChatConflict, 429 = OverBudget, 502, 504), throttle(Chat))]
async fn chat(
    deps: &Deps,
    asked: &Asked<'_>,
    body: Sent<ChatRequest>,
    key: Result<Repeated>,
) -> Result<Shown<ChatAnswer>> {
    let answer = take(deps, asked, ChatInput::of_chat(&body.json()?, key?.0)?).await?;
    Ok(Shown(ChatAnswer {
        thread_id: answer.thread,
        message: answer.content,
        role: "assistant",
        timestamp: answer.timestamp,
        widget: answer.widget,
        metadata: answer.metadata,
    }))
}

/// The same as a remote action of `CopilotKit`'s
///
/// Each field stands beside `action`, or below `parameters` or `arguments`; the thread is called `thread_id`, `conversation_id`
/// or `threadId`, and the message may be the last one of a user in `messages`, unless there is a consent. Two names for the thread
/// must name the same one.
/// Fields that are not known here are the client's. `content` ends in one line for each entry of `metadata.receipt`.
///
/// - 200: The answer.
///
/// ```json,chat
/// {"action": "chat", "parameters": {"message": "Hello", "conversation_id": "reports"}}
/// ```
#[operation(POST "/copilotkit/action", Member, also(409 = ChatConflict, 429 = OverBudget, 502, 504), throttle(Chat))]
async fn copilot_kit_action(
    deps: &Deps,
    asked: &Asked<'_>,
    body: Sent<CopilotKitAction>,
    key: Result<Repeated>,
) -> Result<Shown<ActionAnswer>> {
    let answer = take(deps, asked, ChatInput::of_action(&body.json()?, key?.0)?).await?;
    let TurnAnswer { content, widget, metadata, .. } = answer;
    // Pages show the text, and nothing else.
    let receipt: Option<Receipt> = metadata.get("receipt").and_then(|receipt| Receipt::deserialize(receipt).ok());
    let content = receipt.map_or_else(|| content.clone(), |receipt| receipt.below(&content));
    let result = ActionResult { r#type: "response", content, role: "assistant", widget: widget.clone(), metadata };
    Ok(Shown(ActionAnswer { result, widget }))
}

/// On the heap: a turn is everything that a run is.
async fn take(deps: &Deps, asked: &Asked<'_>, turn: ChatInput) -> Result<TurnAnswer> {
    let open = Box::pin(deps.turns.open(&asked.member, asked.email.clone(), turn, asked.deadline)).await?;
    Box::pin(deps.turns.answer(open, &mut Nobody)).await
}
