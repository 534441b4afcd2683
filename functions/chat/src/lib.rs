//! Conversations of people with the planner, answered whole.
//!
//! - POST /agent/chat `{"message", "thread_id"?, "metadata"?}`: takes a turn of a thread, the user's own `default` unless another is
//!   named. Answers `{"thread_id", "message", "role", "timestamp", "widget"?, "metadata"}` ([`shared::chat`]). Where an effect waits for
//!   consent, `metadata.pending_action` names it; the next message with `metadata.consent` `{"id", "approved"}` decides.
//!   `metadata.receipt` says what was done. With an `Idempotency-Key` the same request again gets the same answer, also while it
//!   is being answered, and nothing happens twice.
//! - POST /copilotkit/action `{"action": "chat", …}`: the same for CopilotKit's remote actions, as
//!   `{"result": {"type": "response", "content", "role", "widget"?, "metadata"}, "widget"}`; the receipt stands below the
//!   content, in one line an entry. Another action is a 400.
//! - GET /agent/threads?limit=&cursor=: the user's threads, newest first (`threads.rs`); its headers name the organization and the user's role.
//! - GET /agent/threads/{id}?limit=&cursor=: a thread with its messages, newest first, and the turn that is being answered.
//! - DELETE /agent/threads/{id}: deletes a thread and everything in it.
//!
//! None of these paths names an organization: it is the one whose slug is in the header `X-Organization`, or the user's only one.

mod threads;

use serde::Deserialize;
use serde_json::{Value, json};
use shared::{
    Error, Platform, Result,
    chat::{Answer, Asked, Turns},
    http::{self, Access, Person, Reply, Request},
    planner::{Event, Observer, Receipt},
    platform,
};

pub struct Deps {
    pub access: Access,
    pub turns: Turns,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, turns: platform.turns()? })
    }
}

/// An answer that comes whole needs to hear of nothing before.
struct Nobody;

impl Observer for Nobody {
    fn event(&mut self, _event: Event<'_>) {}
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let person = deps.access.person(&request).await?;
    match http::route(&request)[..] {
        ["POST", "agent", "chat"] => chat(deps, &request, person).await,
        ["POST", "copilotkit", "action"] => action(deps, &request, person).await,
        ["GET", "agent", "threads"] => threads::list(deps, &request, &person).await,
        ["GET", "agent", "threads", name] => threads::show(deps, &request, &person.member, name).await,
        ["DELETE", "agent", "threads", name] => threads::delete(deps, &request, &person.member, name).await,
        _ => Err(Error::NotFound("route")),
    }
}

async fn chat(deps: &Deps, request: &Request, person: Person) -> Result<Reply> {
    let asked = Asked::of_chat(&http::json_body(request)?, http::idempotency_key(request)?)?;
    let Answer { thread, content, timestamp, widget, metadata, .. } = take(deps, request, person, asked).await?;
    let mut body = json!({
        "thread_id": thread, "message": content, "role": "assistant", "timestamp": timestamp, "metadata": metadata,
    });
    if let (Value::Object(body), Some(widget)) = (&mut body, widget) {
        body.insert("widget".into(), widget);
    }
    Reply::ok(&body)
}

async fn action(deps: &Deps, request: &Request, person: Person) -> Result<Reply> {
    let asked = Asked::of_action(&http::json_body(request)?, http::idempotency_key(request)?)?;
    let Answer { content, widget, metadata, .. } = take(deps, request, person, asked).await?;
    // Pages show the text, and nothing else.
    let receipt: Option<Receipt> = metadata.get("receipt").and_then(|receipt| Receipt::deserialize(receipt).ok());
    let content = receipt.map_or_else(|| content.clone(), |receipt| receipt.below(&content));
    let mut result = json!({"type": "response", "content": content, "role": "assistant", "metadata": metadata});
    if let (Value::Object(result), Some(widget)) = (&mut result, &widget) {
        result.insert("widget".into(), widget.clone());
    }
    Reply::ok(&json!({"result": result, "widget": widget}))
}

/// On the heap: a turn is everything that a run is.
async fn take(deps: &Deps, request: &Request, person: Person, asked: Asked) -> Result<Answer> {
    let Person { member, email, .. } = person;
    let open = Box::pin(deps.turns.open(&member, email, asked, http::deadline(request))).await?;
    Box::pin(deps.turns.answer(open, &mut Nobody)).await
}
