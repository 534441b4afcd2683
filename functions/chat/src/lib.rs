//! Conversations of people with the planner, answered whole.
//!
//! - POST /agent/chat `{"message", "thread_id"?, "metadata"?}`: takes a turn of a thread, the user's own `default` unless another is
//!   named. Answers `{"thread_id", "message", "role", "timestamp", "widget"?, "metadata"}` (`turn.rs`). Where an effect waits for
//!   consent, `metadata.pending_action` names it; the next message with `metadata.consent` `{"id", "approved"}` decides.
//!   With an `Idempotency-Key` the same request again gets the same answer, and nothing happens twice.
//! - POST /copilotkit/action `{"action": "chat", …}`: the same for CopilotKit's remote actions, as
//!   `{"result": {"type": "response", "content", "role", "widget"?, "metadata"}, "widget"}`. Another action is a 400.
//! - GET /agent/threads?limit=&cursor=: the user's threads, newest first (`threads.rs`).
//! - GET /agent/threads/{id}?limit=&cursor=: a thread with its messages, newest first.
//! - DELETE /agent/threads/{id}: deletes a thread and everything in it.
//!
//! None of these paths names an organization: it is the one whose slug is in the header `X-Organization`, or the user's only one.

mod body;
mod threads;
mod turn;

use serde_json::{Value, json};
use shared::{
    Error, Platform, Result,
    accounts::Accounts,
    catalogue::Catalogue,
    clients::Llm,
    discovery::Discovery,
    execution::Executor,
    http::{self, Access, Person, Reply, Request},
    idempotency::Idempotency,
    platform::{self, PlannerSettings},
    store::{Budgets, Threads},
};

use crate::{body::ChatRequest, turn::Answer};

/// A turn may be tried again long after an effect, and must still find it.
const EFFECTS_COUNT_FOR: std::time::Duration = std::time::Duration::from_secs(24 * 60 * 60);

pub struct Deps {
    pub access: Access,
    pub threads: Threads,
    pub catalogue: Catalogue,
    pub discovery: Discovery,
    pub executor: Executor,
    pub accounts: Accounts,
    pub llm: Llm,
    pub budgets: Budgets,
    pub planner: PlannerSettings,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            access: platform.access()?,
            threads: Threads::new(database),
            catalogue: platform.catalogue()?,
            discovery: platform.discovery()?.clone(),
            executor: platform.executor(Idempotency::new(database, EFFECTS_COUNT_FOR))?,
            accounts: platform.accounts_with_llm()?,
            llm: platform.llm()?,
            budgets: platform.budgets()?.clone(),
            planner: platform.planner_settings()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let person = deps.access.person(&request).await?;
    match http::route(&request)[..] {
        ["POST", "agent", "chat"] => chat(deps, &request, &person).await,
        ["POST", "copilotkit", "action"] => action(deps, &request, &person).await,
        ["GET", "agent", "threads"] => threads::list(deps, &request, &person.member).await,
        ["GET", "agent", "threads", name] => threads::show(deps, &request, &person.member, name).await,
        ["DELETE", "agent", "threads", name] => threads::delete(deps, &request, &person.member, name).await,
        _ => Err(Error::NotFound("route")),
    }
}

async fn chat(deps: &Deps, request: &Request, person: &Person) -> Result<Reply> {
    let asked = ChatRequest::of_chat(&http::json_body(request)?, http::idempotency_key(request)?)?;
    let Answer { thread, content, timestamp, widget, metadata } = take(deps, request, person, asked).await?;
    let mut body = json!({
        "thread_id": thread, "message": content, "role": "assistant", "timestamp": timestamp, "metadata": metadata,
    });
    if let (Value::Object(body), Some(widget)) = (&mut body, widget) {
        body.insert("widget".into(), widget);
    }
    Reply::ok(&body)
}

async fn action(deps: &Deps, request: &Request, person: &Person) -> Result<Reply> {
    let asked = ChatRequest::of_action(&http::json_body(request)?, http::idempotency_key(request)?)?;
    let Answer { content, widget, metadata, .. } = take(deps, request, person, asked).await?;
    let mut result = json!({"type": "response", "content": content, "role": "assistant", "metadata": metadata});
    if let (Value::Object(result), Some(widget)) = (&mut result, &widget) {
        result.insert("widget".into(), widget.clone());
    }
    Reply::ok(&json!({"result": result, "widget": widget}))
}

/// On the heap: a turn is everything that a run is.
async fn take(deps: &Deps, request: &Request, person: &Person, asked: ChatRequest) -> Result<Answer> {
    Box::pin(turn::take(deps, person, asked, http::deadline(request))).await
}
