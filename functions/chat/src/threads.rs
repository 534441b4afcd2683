//! A user's threads: listed, shown, deleted. Nobody sees another user's.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use shared::{
    Error, Result,
    chat::{LONGEST_THREAD, running_view, unanswered, waiting_view},
    http::{self, Person, Reply, Request},
    models::{ChatRole, Member, Thread, ThreadId, ThreadMessage},
    store::{Cursor, Page},
};

use crate::Deps;

pub(crate) async fn list(deps: &Deps, request: &Request, person: &Person) -> Result<Reply> {
    let Person { member, slug, .. } = person;
    let (limit, after) = http::page(request)?;
    let page = deps.turns.threads.page(member.organization_id, &member.user_id, after.as_ref(), limit).await?;
    let who = [("x-organization", slug.to_string()), ("x-role", member.role.as_str().to_owned())];
    Ok(Reply::ok(&page.map(|thread| view(&thread)))?.with_headers(who))
}

pub(crate) async fn show(deps: &Deps, request: &Request, member: &Member, name: &str) -> Result<Reply> {
    let (limit, before) = http::page(request)?;
    let before = before.map(|Cursor(number)| number);
    let thread = deps.turns.threads.get(member.organization_id, id(member, name)?).await?;
    // What stands in the row until it is answered is newer than all that is written down.
    let newest = if before.is_none() { unanswered(&thread) } else { Vec::new() };
    let room = limit.saturating_sub(i32::try_from(newest.len()).unwrap_or_default()).max(1);
    let (messages, next) = deps.turns.threads.messages(&thread, before, room).await?;
    let mut body = view(&thread);
    if let Value::Object(body) = &mut body {
        let summary = thread.summary.as_ref();
        body.insert(
            "summary".into(),
            summary
                .map_or(Value::Null, |summary| json!({"text": summary.text, "until": summary.until, "at": summary.at})),
        );
        let items = newest.iter().rev().chain(&messages).map(message).collect();
        let page: Page<Value> = Page { items, next_cursor: next.map(|number| Cursor(number).to_string()) };
        body.insert("running".into(), running_view(&thread));
        body.insert("items".into(), json!(page.items));
        body.insert("next_cursor".into(), json!(page.next_cursor));
    }
    Reply::ok(&body)
}

pub(crate) async fn delete(deps: &Deps, request: &Request, member: &Member, name: &str) -> Result<Reply> {
    deps.turns.threads.delete(member.organization_id, id(member, name)?, http::deadline(request)).await?;
    tracing::info!("a thread was deleted");
    Ok(Reply::no_content())
}

/// The id of the thread that the user calls so: somebody else's name leads to another id.
fn id(member: &Member, name: &str) -> Result<ThreadId> {
    let name = percent_decode_str(name).decode_utf8().map_err(|_no_text| Error::NotFound("thread"))?;
    if name.chars().count() > LONGEST_THREAD {
        return Err(Error::NotFound("thread"));
    }
    Ok(ThreadId::of_name(member.organization_id, &member.user_id, &name))
}

fn view(thread: &Thread) -> Value {
    let pending = thread.pending_call().filter(|pending| pending.expires_at > shared::models::Timestamp::now());
    json!({
        "thread_id": thread.name, "title": thread.title, "turns": thread.turns, "messages": thread.messages,
        "pending_action": pending.as_ref().map(waiting_view), "created_at": thread.created_at,
        "updated_at": thread.updated_at,
    })
}

fn message(message: &ThreadMessage) -> Value {
    let role = match message.role {
        ChatRole::User => "user",
        ChatRole::Assistant => "assistant",
        ChatRole::Unknown => "unknown",
    };
    let tools: Vec<Value> = message
        .results()
        .iter()
        .map(|result| json!({"tool": result.tool, "outcome": result.outcome.as_str()}))
        .collect();
    let parsed = |text: Option<&str>| -> Option<Value> { text.and_then(|text| serde_json::from_str(text).ok()) };
    json!({
        "number": message.number, "role": role, "content": message.content, "tools": tools,
        "widget": parsed(message.widget.as_deref()), "metadata": parsed(message.metadata.as_deref()),
        "created_at": message.created_at,
    })
}
