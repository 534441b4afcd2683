//! Finds a request's earlier answer, or the waiting call that it is for.

use serde_json::{Value, json};

use super::{Awaited, ChatInput, Consent, FrontEndResult, TurnAnswer, running::SAME_WITHIN};
use crate::{
    Error, Result,
    idempotency::Key,
    models::{ChatRole, PendingCall, RunningTurn, Thread, ThreadMessage, Timestamp, ToolResult, WaitsFor},
    planner::{Observer, PendingResolution, Receipt, TurnEvent, Widget},
};

pub(super) fn stored_name(name: &str) -> String {
    Key::new(&["chat", name], &Value::Null).as_str().to_owned()
}

/// The earlier answer to the same request.
///
/// # Errors
/// [`Error::Conflict`] if the earlier request had another message.
pub(super) fn earlier(
    thread: &Thread,
    messages: &[ThreadMessage],
    name: Option<&str>,
    asked: &ChatInput,
) -> Result<Option<TurnAnswer>> {
    let Some(name) = name else { return Ok(just_answered(thread, messages, asked)) };
    let Some(at) = messages.iter().position(|message| message.request.as_deref() == Some(name)) else {
        // A request without words whose turn waits for the page again has no message.
        let waits = thread.pending_call().filter(|pending| pending.request.as_deref() == Some(name));
        return Ok(waits.map(|_| answer_of(thread, &[])));
    };
    let told = messages.get(at..).unwrap_or_default();
    if let Some(said) = told.first()
        && said.role == ChatRole::User
        && said.content != asked.message
    {
        return Err(another_message(&said.content, asked));
    }
    Ok(Some(answer_of(thread, told)))
}

/// The recent answer to the same text without a name, if its turn acted: whether it arrived is unknown, and its effects
/// must not happen twice.
fn just_answered(thread: &Thread, messages: &[ThreadMessage], asked: &ChatInput) -> Option<TurnAnswer> {
    let at = messages.iter().rposition(|message| message.role == ChatRole::User)?;
    let told = messages.get(at..)?;
    let (acted, answered_at) = match told.iter().find(|message| message.role == ChatRole::Assistant) {
        Some(answer) => (answer.results().iter().any(ToolResult::acted), answer.created_at),
        None => (thread.pending_call()?.acted_before_front_end(), thread.updated_at),
    };
    let recent = answered_at.plus(SAME_WITHIN) > Timestamp::now();
    if asked.awaited.is_some() || told.first()?.content != asked.message || !acted || !recent {
        return None;
    }
    let mut answer = answer_of(thread, told);
    if let Value::Object(metadata) = &mut answer.metadata {
        metadata.insert("repeated".into(), true.into());
    }
    Some(answer)
}

pub(super) fn another_message(before: &str, asked: &ChatInput) -> Error {
    if let Some(Awaited::Consent(_)) = &asked.awaited {
        return decided_before(Consent::is_approval(before));
    }
    Error::Conflict("this Idempotency-Key or message id came with another message before; use another one".into())
}

fn decided_before(approved: bool) -> Error {
    let (decided, sentence) = if approved {
        ("approved", "you have allowed this already, in another window or client")
    } else {
        ("refused", "you have refused this already, in another window or client")
    };
    Error::ConsentDecided { decided, sentence }
}

/// The answer to a request. `told` are its messages and later ones, oldest first.
pub(super) fn answer_of(thread: &Thread, told: &[ThreadMessage]) -> TurnAnswer {
    // Only the newest request's answer may show the waiting call.
    let is_newest = told.last().is_none_or(|last| last.number >= thread.messages)
        && told.iter().skip(1).all(|message| message.role != ChatRole::User)
        && thread.running_turn().is_none();
    let pending = thread.pending_call().filter(|_| is_newest);
    let answered = told.iter().take(2).find(|message| message.role == ChatRole::Assistant);
    let parsed = |text: Option<&str>| text.and_then(|text| serde_json::from_str(text).ok());
    let so_far = |waits| json!({"conversation_id": thread.name, "receipt": Receipt::of_pending(waits)});
    let metadata = match answered {
        Some(answer) => parsed(answer.metadata.as_deref()),
        // The answer follows the page's result.
        None => pending.as_ref().map(so_far),
    };
    TurnAnswer {
        thread: thread.name.clone(),
        content: answered.map(|answer| answer.content.clone()).unwrap_or_default(),
        timestamp: answered.map_or(thread.updated_at, |answer| answer.created_at),
        widget: answered.and_then(|answer| parsed(answer.widget.as_deref())),
        metadata: metadata.unwrap_or_else(|| json!({})),
        waits: pending.filter(|pending| pending.expires_at > Timestamp::now()),
    }
}

/// The waiting call that this request is for. `resumed`: the request's turn, if it had begun before. Once that has made calls, the
/// decision does not expire any more.
///
/// # Errors
/// [`Error::Conflict`] or [`Error::ConsentDecided`] if the call does not wait any more.
pub(super) fn awaited(
    thread: &Thread,
    messages: &[ThreadMessage],
    asked: &ChatInput,
    resumed: Option<&RunningTurn>,
) -> Result<Option<PendingCall>> {
    let Some(awaited) = &asked.awaited else { return Ok(None) };
    let is_meant = |pending: &PendingCall| match awaited {
        Awaited::Consent(consent) => pending.waits_for == WaitsFor::Consent && pending.id == consent.id,
        Awaited::Results(results) => {
            pending.waits_for == WaitsFor::FrontEnd && results.iter().any(|result| result.id == pending.id)
        }
    };
    let waits = thread.pending_call().filter(is_meant);
    let expired = waits.as_ref().is_some_and(|pending| {
        pending.expires_at <= Timestamp::now() && !resumed.is_some_and(|turn| turn.went_on(Some(pending)))
    });
    if let Some(waits) = waits.filter(|_| !expired) {
        return Ok(Some(waits));
    }
    match awaited {
        Awaited::Consent(consent) => Err(not_waited_for(consent, messages, expired)),
        Awaited::Results(_) => Err(Error::Conflict(
            "no tool call waits for this result: it expired, or another message came in between; ask for it again"
                .into(),
        )),
    }
}

/// A decided consent does not come here: its name leads to its answer.
fn not_waited_for(consent: &Consent, messages: &[ThreadMessage], expired: bool) -> Error {
    let asked = messages.iter().rev().find_map(|message| {
        let metadata: Value = serde_json::from_str(message.metadata.as_deref()?).ok()?;
        let pending = metadata.get("pending_action")?;
        (pending.get("id")? == consent.id.as_str()).then(|| pending.get("expires_at").cloned().unwrap_or_default())
    });
    let over = asked.as_ref().and_then(|at| serde_json::from_value::<Timestamp>(at.clone()).ok());
    if expired || over.is_some_and(|over| over <= Timestamp::now()) {
        let sentence = "the time to decide is over, and nothing was done; ask for it again";
        return Error::ConsentDecided { decided: "expired", sentence };
    }
    if asked.is_some() {
        let sentence = "another message came in between, so this is not done any more; ask for it again";
        return Error::ConsentDecided { decided: "withdrawn", sentence };
    }
    Error::Conflict("nothing waits for this consent; ask for it again".into())
}

pub(super) fn decided<'a>(pending: &PendingCall, awaited: &'a Awaited) -> PendingResolution<'a> {
    match awaited {
        Awaited::Consent(consent) if consent.approved => PendingResolution::Approved,
        Awaited::Consent(_) => PendingResolution::Refused,
        Awaited::Results(results) => {
            let given = results.iter().find(|result| result.id == pending.id);
            given.map_or(PendingResolution::Refused, |FrontEndResult { content, failed, .. }| PendingResolution::Gave {
                content,
                failed: *failed,
            })
        }
    }
}

pub(super) fn tell_again(answer: &TurnAnswer, observer: &mut impl Observer) {
    let widget: Option<Widget> = answer.widget.clone().and_then(|widget| serde_json::from_value(widget).ok());
    if let Some(widget) = &widget {
        observer.event(TurnEvent::Widget(widget));
    }
    match &answer.waits {
        Some(pending) if pending.waits_for == WaitsFor::FrontEnd => {
            let PendingCall { id, tool, arguments, .. } = pending;
            observer.event(TurnEvent::FrontEndCall { id, tool: &tool.name, arguments });
        }
        Some(pending) => return observer.event(TurnEvent::Consent(pending)),
        None => {}
    }
    if !answer.content.is_empty() {
        observer.event(TurnEvent::Message(&answer.content));
    }
}
