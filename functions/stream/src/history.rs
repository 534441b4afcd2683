//! A thread as it is, for a front end that shows it anew, and the turn that is being answered, which it follows to its end.

use std::collections::HashSet;

use serde_json::{Map, Value, json};
use shared::{
    Deadline, Error, Result,
    chat::{Followed, running_view, unanswered},
    cut::fit,
    error::found,
    http::{Frames, Reply},
    models::{ChatRole, Member, PendingCall, Thread, ThreadId, ThreadMessage, ToolResult, TurnCall},
    store::Cursor,
};

use crate::{
    Deps,
    agui::{self, Run},
    input, within,
};

/// The newest of a thread, which are shown.
const MOST_MESSAGES: i32 = 200;

/// The shown part of a tool's result, in bytes.
const LONGEST_RESULT: usize = 8 * 1024;

/// The messages of a thread as one event, and its waiting call. Nothing for a thread that does not exist: a snapshot
/// would clear the front end's state.
pub(crate) async fn connect(
    deps: &'static Deps,
    member: &Member,
    body: &Value,
    path: &str,
    deadline: Deadline,
) -> Result<Reply> {
    let (name, run) = input::thread_and_run(body, path)?;
    let id = ThreadId::of_name(member.organization_id, &member.user_id, &name);
    let threads = &deps.turns.threads;
    let thread = found(threads.get(member.organization_id, id).await)?;
    let frames = Frames::default();
    let mut run = Run::start(frames.clone(), &name, &run);
    if let Some(thread) = thread {
        let (mut newest, before) = threads.messages(&thread, None, MOST_MESSAGES).await?;
        newest.splice(0..0, unanswered(&thread).into_iter().rev());
        run.snapshot(&snapshot(&thread, newest, before.is_some()));
        let running = running_view(&thread);
        if let (Some(turn), Some(running)) = (thread.running_turn(), running) {
            run.custom("running", json!(running));
            let organization = member.organization_id;
            let work = async move {
                match deps.turns.follow(organization, id, &turn, &mut run, deadline).await? {
                    Followed::Answered(thread, answer) => {
                        if let Some(pending) = thread.pending_call().filter(PendingCall::asks_person) {
                            run.waits(&pending);
                        }
                        run.answered(&answer.content, answer.widget.as_ref(), &answer.metadata);
                        Ok(())
                    }
                    Followed::Failed(why) => Err(Error::Conflict(format!("this message was not answered: {why}"))),
                }
            };
            return Ok(Reply::events(frames, within(deadline, work), agui::failed));
        }
        if let Some(pending) = thread.pending_call().filter(PendingCall::asks_person) {
            run.waits(&pending);
        }
    }
    run.finish();
    Ok(Reply::events(frames, async { Ok(()) }, agui::failed))
}

/// The messages, oldest first. Their ids are the same each time.
fn snapshot(thread: &Thread, newest: Vec<ThreadMessage>, has_more: bool) -> Vec<Value> {
    let (mut messages, mut told) = (Vec::new(), HashSet::new());
    let asked = thread.pending_call().filter(PendingCall::asks_person);
    if has_more {
        let id = format!("{}-earlier", thread.id);
        // The cursor of the page of older messages in `GET /agent/threads/{id}`.
        let cursor = newest.last().map(|oldest| Cursor(oldest.number).to_string());
        messages.push(json!({
            "id": id, "role": "system", "content": "Earlier messages of this conversation are not shown.",
            "metadata": {"next_cursor": cursor},
        }));
    }
    for message in newest.into_iter().rev() {
        // An answer after a question repeats the calls before the question.
        let mut results = message.results();
        results.retain(|result| result.id.is_empty() || told.insert(result.id.clone()));
        messages.extend(calls(&format!("{}-{}", thread.id, message.number), results));
        let ThreadMessage { number, role, content, widget, metadata, .. } = message;
        let metadata: Map<String, Value> =
            metadata.and_then(|metadata| serde_json::from_str(&metadata).ok()).unwrap_or_default();
        let id = format!("{}-{number}", thread.id);
        let widget: Option<Value> = widget.and_then(|widget| serde_json::from_str(&widget).ok());
        if let Some(widget) = widget {
            let id = format!("{id}-widget");
            messages.push(json!({"id": id, "role": "activity", "activityType": "widget", "content": widget}));
        }
        let role = match role {
            ChatRole::Unknown => continue,
            known => known.as_str(),
        };
        // The interrupt sends the present question to the person.
        let is_asked = asked.as_ref().is_some_and(|asked| {
            metadata.get("pending_action").and_then(|pending| pending.get("id")) == Some(&json!(asked.id))
        });
        if !content.is_empty() && !is_asked {
            let mut shown = json!({"id": id, "role": role, "content": content});
            let metadata: Map<String, Value> = ["receipt", "message_id", "failed", "incomplete"]
                .iter()
                .filter_map(|name| Some(((*name).to_owned(), metadata.get(*name)?.clone())))
                .collect();
            if let (Value::Object(shown), false) = (&mut shown, metadata.is_empty()) {
                shown.insert("metadata".into(), Value::Object(metadata));
            }
            messages.push(shown);
        }
        if thread.summary.as_ref().is_some_and(|summary| summary.until == number) {
            let content = "What was said before is told to the model as a summary.";
            let id = format!("{}-summary", thread.id);
            messages.push(json!({"id": id, "role": "system", "content": content}));
        }
    }
    messages
}

/// The calls of the answer `answer`, with their results. A call keeps the id of its run; calls of older rows have none.
fn calls(answer: &str, results: Vec<ToolResult>) -> Vec<Value> {
    let was_made =
        |result: &ToolResult| matches!(result.outcome, TurnCall::Succeeded | TurnCall::Failed | TurnCall::Unconfirmed);
    let (mut made, mut told) = (Vec::new(), Vec::new());
    for (number, result) in (1_u32..).zip(results.into_iter().filter(was_made)) {
        let ToolResult { id, tool, arguments, outcome, result, .. } = result;
        let call = if id.is_empty() { format!("{answer}-call-{number}") } else { id };
        let content = fit(result, LONGEST_RESULT).to_string();
        made.push(json!({
            "id": call, "type": "function", "function": {"name": tool, "arguments": json!(arguments).to_string()},
        }));
        let mut message =
            json!({"id": format!("{answer}-result-{number}"), "role": "tool", "toolCallId": call, "content": content});
        if let (Value::Object(message), true) = (&mut message, outcome != TurnCall::Succeeded) {
            message.insert("error".into(), content.into());
        }
        told.push(message);
    }
    let assistant = json!({"id": format!("{answer}-calls"), "role": "assistant", "toolCalls": made});
    if told.is_empty() { told } else { [vec![assistant], told].concat() }
}
