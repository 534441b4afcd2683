//! What a request means for a thread: an answer that it has had before, or what the thread waits for.

use serde_json::json;

use super::{Answer, Asked, Awaited, FrontEndResult};
use crate::{
    Error, Result,
    models::{ChatRole, PendingCall, Thread, ThreadMessage, Timestamp, WaitsFor},
    planner::{Decided, Event, Observer, Widget},
};

/// The answer to the same request, if it came before.
///
/// # Errors
/// [`Error::Conflict`] if it said something else then.
pub(super) fn earlier(
    thread: &Thread,
    messages: &[ThreadMessage],
    name: Option<&str>,
    asked: &Asked,
) -> Result<Option<Answer>> {
    let Some(name) = name else { return Ok(None) };
    let Some(at) = messages.iter().position(|message| message.request.as_deref() == Some(name)) else {
        return Ok(None);
    };
    let told = messages.get(at..).unwrap_or_default();
    if told.first().is_some_and(|said| said.role == ChatRole::User && said.content != asked.message) {
        let sentence = "this Idempotency-Key, message id or consent came with another message before; use another one";
        return Err(Error::Conflict(sentence.into()));
    }
    // What waits is what the newest request led to: one before it must not be told as if it had.
    let is_newest = told.iter().skip(1).all(|message| message.role != ChatRole::User);
    let is_open = |pending: &PendingCall| is_newest && pending.expires_at > Timestamp::now();
    let waits = thread.pending_call().filter(is_open);
    let answered = told.iter().take(2).find(|message| message.role == ChatRole::Assistant);
    let parsed = |text: Option<&str>| text.and_then(|text| serde_json::from_str(text).ok());
    Ok(Some(Answer {
        thread: thread.name.clone(),
        content: answered.map(|answer| answer.content.clone()).unwrap_or_default(),
        timestamp: answered.map_or(thread.updated_at, |answer| answer.created_at),
        widget: answered.and_then(|answer| parsed(answer.widget.as_deref())),
        metadata: answered.and_then(|answer| parsed(answer.metadata.as_deref())).unwrap_or_else(|| json!({})),
        waits,
    }))
}

/// The call that waited for what this request brings.
///
/// # Errors
/// [`Error::Conflict`] if it does not wait any more.
pub(super) fn awaited(thread: &Thread, asked: &Asked) -> Result<Option<PendingCall>> {
    let Some(awaited) = &asked.awaited else { return Ok(None) };
    let is_meant = |pending: &PendingCall| match awaited {
        Awaited::Consent(consent) => pending.waits_for == WaitsFor::Consent && pending.id == consent.id,
        Awaited::Results(results) => {
            pending.waits_for == WaitsFor::FrontEnd && results.iter().any(|result| result.id == pending.id)
        }
    };
    let waits = thread.pending_call().filter(is_meant).filter(|pending| pending.expires_at > Timestamp::now());
    waits.map(Some).ok_or_else(|| {
        let what = match awaited {
            Awaited::Consent(_) => "this consent",
            Awaited::Results(_) => "the result of this tool call",
        };
        Error::Conflict(format!(
            "nothing waits for {what}: it was decided or ran out, or another message came in between; ask for it again"
        ))
    })
}

pub(super) fn decided<'a>(pending: &PendingCall, awaited: &'a Awaited) -> Decided<'a> {
    match awaited {
        Awaited::Consent(consent) if consent.approved => Decided::Approved,
        Awaited::Consent(_) => Decided::Refused,
        Awaited::Results(results) => {
            let given = results.iter().find(|result| result.id == pending.id);
            given.map_or(Decided::Refused, |FrontEndResult { content, failed, .. }| Decided::Gave {
                content,
                failed: *failed,
            })
        }
    }
}

/// Tells an observer what it would have been told when the request came first.
pub(super) fn tell_again(answer: &Answer, observer: &mut impl Observer) {
    let widget: Option<Widget> = answer.widget.clone().and_then(|widget| serde_json::from_value(widget).ok());
    if let Some(widget) = &widget {
        observer.event(Event::Widget(widget));
    }
    match &answer.waits {
        Some(pending) if pending.waits_for == WaitsFor::FrontEnd => {
            let PendingCall { id, tool, arguments, .. } = pending;
            observer.event(Event::FrontEndCall { id, tool: &tool.name, arguments });
        }
        Some(pending) => observer.event(Event::Consent(pending)),
        None => {}
    }
    if !answer.content.is_empty() {
        observer.event(Event::Message(&answer.content));
    }
}
