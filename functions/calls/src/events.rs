//! POST /api/vapi/events: VAPI's messages about a call.
//!
//! The call's row takes status, control URL, end and cost from `status-update` and `end-of-call-report`; the first words of
//! agent and caller and the agent's first silence from `speech-update` and `hang`; who speaks while a request is read back; time and kind of place from
//! `transfer-update`. A person who says in the report that they want no more calls goes on the do-not-call list. The rest,
//! above all the transcript, is neither stored nor logged; a model of the
//! organization's own may read it in memory. A `speech-update` comes with every
//! sentence, so known facts are not written again. Messages may come twice and in any order.
//! VAPI repeats a message that was answered with an error only if the server has a `backoffPlan`, as in
//! docs/getting-started.md; so an outage at an answer or an end is waited out here first. Unusable messages are
//! answered 200.
//!
//! The sender shows the bearer of the VAPI credential at the call's organization, or the platform's for an unknown call. A placed
//! call whose row is missing, because VAPI's answer was lost, is known by its name: an unknown outbound call with a name costs one or
//! two consistent reads more.

use std::{collections::BTreeMap, time::Duration};

use futures_util::join;
use serde::Serialize;
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    actions::token,
    backoff::Backoff,
    clients::vapi::Account,
    cut::cut,
    described::Described,
    error,
    http::{self, Found, Sent, Shown, operation},
    models::{
        Call, CallDirection, CallId, CallStatus, ControlUrl, DoNotCall, DoNotCallSource, E164, FirstTime,
        OrganizationId, SpeechTurn, Timestamp, Transfer, Unowned,
    },
    opt_out,
    store::End,
};

use crate::Deps;

/// Bytes of VAPI's reason.
pub(crate) const LONGEST_REASON: usize = 200;

const MOST_TRANSFERS: usize = 10;
/// Milliseconds. VAPI reports a transfer twice, as an update and as a status.
const SAME_TRANSFER: i64 = 10_000;
/// During an outage of ours. VAPI waits for twenty seconds.
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(12);
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Attempts to add a transfer while other messages write the row.
const TRIES: usize = 3;
pub(crate) const PLACES: [&str; 4] = ["assistant", "number", "sip", "step"];
/// The parts of VAPI's cost: names in a list of costs, and in a breakdown.
const COST_PARTS: [(&str, &str); 10] = [
    ("transport", "transport"),
    ("transcriber", "stt"),
    ("model", "llm"),
    ("voice", "tts"),
    ("vapi", "vapi"),
    ("chat", "chat"),
    ("analysis", "analysis"),
    ("knowledge-base", "knowledge_base"),
    ("voicemail-detection", "voicemail_detection"),
    ("hosting", "hosting"),
];

/// The data that the call's row takes from a message.
pub(crate) enum CallUpdate {
    Status(CallStatus, Option<ControlUrl>),
    First(FirstTime),
    Speech {
        agent: bool,
        started: bool,
    },
    /// The kind of place, if the message has it.
    Transfer(Option<String>),
    End(End),
}

/// A message as VAPI documents it.
pub(crate) struct VapiEvent;

shared::described!(VapiEvent => {
    "type": "object",
    "required": ["message"],
    "properties": {"message": {
        "type": "object",
        "description": "As VAPI documents it; these are the fields that are read.",
        "properties": {
            "type": {"type": "string"},
            "status": {"type": "string", "description": "Of a `status-update` or a `speech-update`."},
            "role": {"type": "string", "description": "Who speaks: `assistant` or `user`."},
            "timestamp": {"type": "number", "description": "Milliseconds since 1970."},
            "destination": {"type": "object", "properties": {"type": {"type": "string"}}},
            "costs": {
                "type": "array",
                "items": {"type": "object", "properties": {"type": {"type": "string"}, "cost": {"type": "number"}}}
            },
            "artifact": {"type": "object", "properties": {"messages": {
                "type": "array",
                "description": "Searched for a request for no more calls; not kept.",
                "items": {"type": "object", "properties": {"role": {"type": "string"}, "message": {"type": "string"}}}
            }}},
            "endedReason": {"type": "string"},
            "startedAt": {"type": "string", "format": "date-time"},
            "endedAt": {"type": "string", "format": "date-time"},
            "cost": {"type": "number", "description": "In US dollars."},
            "call": {"type": "object", "properties": {
                "id": {"type": "string"},
                "type": {"type": "string"},
                "name": {"type": "string", "description": "The name that a tool gave to the call that it placed."},
                "monitor": {"type": "object", "properties": {"controlUrl": {"type": "string"}}}
            }}
        }
    }}
});

/// `{}`, whether or not anything came of it.
#[derive(Serialize, Described)]
pub(crate) struct Taken {}

/// Be told how a call goes on
///
/// VAPI's server messages. Of `status-update` and `end-of-call-report` the call takes how far it is and how it ended:
/// reason, duration, cost. Its timeline also says when agent and caller first spoke (`speech-update`), when the agent
/// first fell silent (`hang`), and the kind of destination of a transfer (`transfer-update`). A person who says that they want
/// no more calls goes on the do-not-call list. Nothing else of a message is kept, and no transcript. Messages may come twice and in any order; of other types, and of calls that
/// neither came in through us nor were placed by our tools, nothing comes.
///
/// It is let in by the bearer of the credential at the VAPI account of the call's organization; for a call that is not known,
/// by that of the platform's.
///
/// - 200: Taken, whether or not anything came of it.
///
/// ```json,status: The call is under way
/// {"message": {"type": "status-update", "status": "in-progress",
///  "call": {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1b"}}}
/// ```
/// ```json,report: The call is over
/// {"message": {"type": "end-of-call-report", "endedReason": "customer-ended-call",
///  "startedAt": "2026-02-27T10:10:59.500Z", "endedAt": "2026-02-27T10:13:20.000Z", "cost": 0.12,
///  "call": {"id": "0193aa11-2b3c-7d4e-8f50-617283940a1b"}}}
/// ```
#[operation(POST "/api/vapi/events", by(vapiBearer), also(401, 429, 500, 502, 503, 504), resource(VapiEvents), tag("calls"), throttle(Vapi))]
pub(crate) async fn take_vapi_event(deps: &Deps, found: &Found<'_>, body: Sent<VapiEvent>) -> Result<Shown<Taken>> {
    let bearer = http::bearer(found.request).ok_or(Error::Unauthenticated)?;
    let message = body.json().and_then(|mut body| match body.get_mut("message").map(Value::take) {
        Some(message) if message.is_object() => Ok(message),
        _ => Err(Error::Malformed("the body has no object \"message\"".into())),
    });
    let is_awaited = |message| matches!(news(message), Some(CallUpdate::Status(..) | CallUpdate::End(_)));
    let pauses = if message.as_ref().is_ok_and(is_awaited) { usize::MAX } else { 0 };
    let until = found.deadline.at_most(TRIED_AGAIN_WITHIN);
    let mut backoff = Backoff::at_most(pauses, PAUSE, LONGEST_PAUSE, until);
    let note = || Box::pin(note(deps, bearer, message.as_ref().ok(), found.deadline));
    backoff.through_outages("a message of VAPI's", note).await?;
    message.map(|_noted| Shown(Taken {}))
}

/// Admits the sender and notes what the message tells. An unreadable message has no call: only a sender with the
/// platform's bearer learns the problems.
async fn note(deps: &Deps, bearer: &str, message: Option<&Value>, deadline: Deadline) -> Result<()> {
    let call = match message {
        Some(message) => find(deps, message).await?,
        None => None,
    };
    // An unknown call: the platform's bearer is accepted, and nothing is written.
    let owner = call.as_ref().map_or_else(OrganizationId::generate, |known| known.call.organization_id);
    let fits = |account: &Account| token::check_bearer(account.webhook_bearer.as_ref(), bearer).is_ok();
    let account = deps.accounts.vapi_fitting(owner, fits).await?;
    token::check_bearer(account.webhook_bearer.as_ref(), bearer)?;

    if let Some((message, Known { call, named_by })) = message.zip(call) {
        if let Some(placing) = named_by {
            deps.calls.put_placed(&call, &placing).await?;
        }
        match news(message) {
            Some(CallUpdate::Status(status, url)) => {
                let at = told_at(message, &call);
                // Before the status is saved, so that a repetition announces it.
                if status == CallStatus::InProgress && call.waits_for_answer() {
                    deps.answered_calls.announce(&call).await?;
                }
                deps.calls.note_status(owner, &call.id, (status, at), url.as_ref()).await?;
                if status == CallStatus::Forwarding {
                    transferred(deps, call, Transfer { at, to: place(message) }).await?;
                }
            }
            Some(CallUpdate::First(what)) => {
                let at = told_at(message, &call);
                first(deps, &call, what, at).await?;
            }
            Some(CallUpdate::Speech { agent, started }) => {
                let turn = SpeechTurn { agent, started, at: told_at(message, &call) };
                let what = if agent { FirstTime::AgentSpoke } else { FirstTime::CallerSpoke };
                let first = async { if started { first(deps, &call, what, turn.at).await } else { Ok(()) } };
                let (first, heard) = join!(first, heard(deps, &call, turn));
                first.and(heard)?;
            }
            Some(CallUpdate::Transfer(to)) => {
                let at = told_at(message, &call);
                transferred(deps, call, Transfer { at, to }).await?;
            }
            Some(CallUpdate::End(end)) => {
                // Before the end is saved, so that a repetition announces it.
                if call.ended_at.is_none() {
                    deps.ended_calls.announce(&call).await?;
                }
                if let Some(person) = who_wants_no_calls(message, &call) {
                    deps.do_not_call.add(&DoNotCall::new(owner, &person, DoNotCallSource::Call)).await?;
                }
                deps.calls.close(owner, &call.id, &end).await?;
                check_claims(deps, &call, message, deadline).await;
            }
            None => {}
        }
    }
    Ok(())
}

async fn first(deps: &Deps, call: &Call, what: FirstTime, at: Timestamp) -> Result<()> {
    if call.first(what).is_none_or(|known| at < known) {
        deps.calls.note_first(call.organization_id, &call.id, what, at).await?;
    }
    Ok(())
}

/// Records who speaks while a request is read back.
async fn heard(deps: &Deps, call: &Call, turn: SpeechTurn) -> Result<()> {
    match call.read_back.as_ref().filter(|request| request.listens() && !request.heard.contains(&turn)) {
        Some(request) => deps.calls.note_turn(call.organization_id, &call.id, request, turn).await,
        None => Ok(()),
    }
}

/// Compares the agent's words with the receipt, if the organization wants that. The report is taken all the same.
async fn check_claims(deps: &Deps, call: &Call, report: &Value, deadline: Deadline) {
    if let Err(failure) = deps.claims.check(call, agent_said(report), deadline).await {
        tracing::error!(call.id = %call.id, "the claims of a call could not be checked: {}", error::chain(&failure));
    }
}

/// The agent's sentences in the order of the call.
fn agent_said(report: &Value) -> Vec<String> {
    let messages = report.pointer("/artifact/messages").and_then(Value::as_array).into_iter().flatten();
    let of_agent = messages.filter(|message| {
        message.get("role").and_then(Value::as_str).is_some_and(|role| matches!(role, "bot" | "assistant"))
    });
    let said = of_agent.filter_map(|message| message.get("message").or_else(|| message.get("content"))?.as_str());
    said.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// Adds a transfer, unless it is known or the row is full.
async fn transferred(deps: &Deps, mut call: Call, transfer: Transfer) -> Result<()> {
    for _ in 0..TRIES {
        let same = |known: &Transfer| (known.at.as_millis() - transfer.at.as_millis()).abs() <= SAME_TRANSFER;
        if call.transfers.len() >= MOST_TRANSFERS || call.transfers.iter().any(same) {
            return Ok(());
        }
        if deps.calls.note_transfer(call.organization_id, &call.id, &transfer, call.transfers.len()).await? {
            return Ok(());
        }
        match deps.calls.find(&call.id).await?.map(Unowned::for_its_owner) {
            Some(now) => call = now,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// The person on the line, if a sentence in the report of the call's end asks for no more calls.
fn who_wants_no_calls(message: &Value, call: &Call) -> Option<E164> {
    let person = call.caller_phone_number.parse::<E164>().ok().filter(|person| !person.is_withheld())?;
    let placed = call.direction == CallDirection::Outbound;
    let messages = message.pointer("/artifact/messages").and_then(Value::as_array).into_iter().flatten();
    let mut said = messages
        .filter(|sentence| sentence.get("role").is_some_and(|role| role == "user"))
        .filter_map(|sentence| sentence.get("message")?.as_str());
    said.any(|said| opt_out::in_speech(said, placed)).then_some(person)
}

/// The time of a message, kept within the life of the call, because VAPI's clock may differ.
fn told_at(message: &Value, call: &Call) -> Timestamp {
    let now = Timestamp::now();
    let told = message.get("timestamp").and_then(Value::as_f64).filter(|millis| millis.is_finite());
    #[expect(clippy::cast_possible_truncation, reason = "milliseconds since 1970; what is too large is cut to now")]
    let told = told.map_or(now, |millis| Timestamp::from_millis(millis as i64));
    told.max(call.created_at).min(call.ended_at.map_or(now, |ended| ended.min(now)))
}

/// The kind of place to which the call was transferred.
fn place(message: &Value) -> Option<String> {
    let named = message.pointer("/destination/type").and_then(Value::as_str);
    let named = named.or_else(|| message.get("toAssistant").filter(|to| to.is_object()).map(|_| "assistant"));
    named.filter(|named| PLACES.contains(named)).map(str::to_owned)
}

/// In US dollars.
fn cost_parts(message: &Value) -> BTreeMap<String, f64> {
    let amount = |value: &Value| value.as_f64().filter(|cost| cost.is_finite() && *cost > 0.0);
    let mut parts = BTreeMap::new();
    for (listed, part) in COST_PARTS {
        let costs = message.get("costs").and_then(Value::as_array).into_iter().flatten();
        let costs = costs.filter(|cost| cost.get("type").and_then(Value::as_str) == Some(listed));
        let sum: f64 = costs.filter_map(|cost| amount(cost.get("cost")?)).sum();
        let told = message.get("costBreakdown").and_then(|parts| amount(parts.get(part)?));
        if let Some(cost) = told.or((sum > 0.0).then_some(sum)) {
            parts.insert(part.to_owned(), cost);
        }
    }
    parts
}

/// A message's call.
struct Known {
    call: Call,
    /// The row with the name of a placed call whose own row is missing.
    named_by: Option<CallId>,
}

/// The message's call, if it came in through us or a tool placed it.
async fn find(deps: &Deps, message: &Value) -> Result<Option<Known>> {
    let field = |path: &str| message.pointer(path).and_then(Value::as_str);
    let Some(id) = field("/call/id").and_then(|id| id.parse::<CallId>().ok()) else { return Ok(None) };
    if let Some(call) = deps.calls.find(&id).await? {
        return Ok(Some(Known { call: call.for_its_owner(), named_by: None }));
    }
    let name = field("/call/name").filter(|_| field("/call/type") == Some("outboundPhoneCall"));
    let Some(placing) = name.and_then(|name| CallId::placing(name).ok()) else { return Ok(None) };
    if let Some(named) = deps.calls.placing(&placing).await? {
        return Ok(Some(Known { call: named.for_its_owner().placed(id), named_by: Some(placing) }));
    }
    // The row may have been written a moment ago, which deletes the name.
    let call = deps.calls.find_now(&id).await?;
    Ok(call.map(|call| Known { call: call.for_its_owner(), named_by: None }))
}

pub(crate) fn news(message: &Value) -> Option<CallUpdate> {
    match message.get("type")?.as_str()? {
        "status-update" => match status(message)? {
            // A status that VAPI added later.
            CallStatus::Other => None,
            CallStatus::Ended => Some(CallUpdate::End(End { reason: reason(message), ..End::default() })),
            status => {
                let url = message.pointer("/call/monitor/controlUrl").and_then(Value::as_str);
                Some(CallUpdate::Status(status, url.and_then(|url| url.parse().ok())))
            }
        },
        "end-of-call-report" => {
            let (from, to) = (moment(message, "startedAt"), moment(message, "endedAt"));
            let sent = message.get("timestamp").and_then(Value::as_i64).map(Timestamp::from_millis);
            Some(CallUpdate::End(End {
                at: to,
                reason: reason(message),
                duration_seconds: from.zip(to).and_then(|(from, to)| seconds(from, to)),
                cost: message.get("cost").and_then(Value::as_f64).filter(|cost| *cost >= 0.0),
                cost_parts: cost_parts(message),
                told_at: Some(sent.or(to).unwrap_or_else(Timestamp::now)),
            }))
        }
        "speech-update" => {
            let started = match message.get("status")?.as_str()? {
                "started" => true,
                "stopped" => false,
                _ => return None,
            };
            match message.get("role")?.as_str()? {
                "assistant" => Some(CallUpdate::Speech { agent: true, started }),
                "user" => Some(CallUpdate::Speech { agent: false, started }),
                _ => None,
            }
        }
        "hang" => Some(CallUpdate::First(FirstTime::AgentHung)),
        "transfer-update" => Some(CallUpdate::Transfer(place(message))),
        _ => None,
    }
}

fn status(message: &Value) -> Option<CallStatus> {
    serde_json::from_value(message.get("status")?.clone()).ok()
}

fn reason(message: &Value) -> Option<String> {
    let reason = message.get("endedReason")?.as_str()?.trim();
    (!reason.is_empty()).then(|| cut(reason.to_owned(), LONGEST_REASON))
}

fn moment(message: &Value, field: &str) -> Option<Timestamp> {
    message.get(field)?.as_str()?.parse().ok()
}

fn seconds(from: Timestamp, to: Timestamp) -> Option<f64> {
    let milliseconds = u32::try_from(to.as_millis().checked_sub(from.as_millis())?).ok()?;
    Some(f64::from(milliseconds) / 1000.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn end(message: &Value) -> End {
        match news(message) {
            Some(CallUpdate::End(end)) => end,
            _ => panic!("{message} tells of no end"),
        }
    }

    #[test]
    fn a_report_yields_its_readable_fields() {
        let report = json!({
            "type": "end-of-call-report", "startedAt": "2026-08-20T10:00:00.250Z", "endedAt": "2026-08-20T10:05:00.000Z",
            "cost": 0.12, "endedReason": "customer-ended-call",
        });
        let told = end(&report);
        assert_eq!((told.duration_seconds, told.cost), (Some(299.75), Some(0.12)));
        assert_eq!(told.reason.as_deref(), Some("customer-ended-call"));
        let odd = json!({
            "type": "end-of-call-report", "startedAt": "2026-08-20T10:05:00Z", "endedAt": "2026-08-20T10:00:00Z",
            "cost": -1, "endedReason": " ",
        });
        let told = end(&odd);
        assert_eq!((told.duration_seconds, told.cost, told.reason), (None, None, None));
        assert!(told.at.is_some());
        let told =
            end(&json!({"type": "end-of-call-report", "endedAt": 7, "cost": "much", "endedReason": "x".repeat(9_999)}));
        assert_eq!((told.at, told.duration_seconds, told.cost), (None, None, None));
        let reason = told.reason.unwrap();
        assert!(reason.len() <= LONGEST_REASON && reason.ends_with(" of 9999 bytes)"), "{reason}");
    }

    #[test]
    fn an_unknown_event_changes_nothing() {
        for message in [
            json!({}),
            json!({"type": 7}),
            json!({"type": "speech-update", "status": "in-progress"}),
            json!({"type": "status-update"}),
            json!({"type": "status-update", "status": 7}),
            json!({"type": "status-update", "status": "levitating"}),
        ] {
            assert!(news(&message).is_none(), "{message}");
        }
    }
}
