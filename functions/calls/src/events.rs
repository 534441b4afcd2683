//! POST /api/vapi/events: what VAPI tells of a call, message by message.
//!
//! Of `status-update` and `end-of-call-report` the call's row takes how far the call is, where it is controlled and how it
//! ended; nothing else of a message is kept or logged, least of all the transcript. Messages may come twice and in any order.
//! What we cannot use is answered 200 all the same, because VAPI sends anything else again.
//!
//! Let in by the bearer of VAPI's credential at the account of the call's organization, or at the platform's for a call we do
//! not know; the same is read for both before anything is known of the sender.

use serde_json::{Value, json};
use shared::{
    Error, Result,
    actions::token,
    cut::cut,
    http::{self, Reply, Request},
    models::{Call, CallId, CallStatus, ControlUrl, OrganizationId, Timestamp, Unowned},
    store::End,
};

use crate::Deps;

/// Of VAPI's reason, in bytes.
const LONGEST_REASON: usize = 200;

/// What of a message the call's row takes.
enum CallUpdate {
    Status(CallStatus, Option<ControlUrl>),
    End(End),
}

pub(crate) async fn take(deps: &Deps, request: &Request) -> Result<Reply> {
    let bearer = http::bearer(request).ok_or(Error::Unauthenticated)?;
    let body = http::json_body(request)?;
    let message = body.get("message").filter(|message| message.is_object());
    let message = message.ok_or_else(|| Error::Malformed("the body has no object \"message\"".into()))?;

    let call = find(deps, message).await?;
    // Nobody's call: the platform's bearer may tell of it, and nothing comes of it.
    let owner = call.as_ref().map_or_else(OrganizationId::generate, |call| call.organization_id);
    let account = deps.accounts.vapi_uncached(owner).await?;
    token::check_bearer(account.webhook_bearer.as_ref(), bearer)?;

    if let Some(call) = call {
        match news(message) {
            Some(CallUpdate::Status(status, url)) => {
                deps.calls.note_status(owner, &call.id, status, url.as_ref()).await?;
            }
            Some(CallUpdate::End(end)) => deps.calls.close(owner, &call.id, &end).await?,
            None => {}
        }
    }
    Reply::ok(&json!({}))
}

/// The call that a message is about, if it came in through us.
async fn find(deps: &Deps, message: &Value) -> Result<Option<Call>> {
    let id = message.pointer("/call/id").and_then(Value::as_str).and_then(|id| id.parse::<CallId>().ok());
    let Some(id) = id else { return Ok(None) };
    Ok(deps.calls.find(&id).await?.map(Unowned::for_its_owner))
}

fn news(message: &Value) -> Option<CallUpdate> {
    match message.get("type")?.as_str()? {
        "status-update" => match status(message)? {
            // A word that VAPI did not have when this was written says nothing we know.
            CallStatus::Other => None,
            CallStatus::Ended => Some(CallUpdate::End(End { reason: reason(message), ..End::default() })),
            status => {
                let url = message.pointer("/call/monitor/controlUrl").and_then(Value::as_str);
                Some(CallUpdate::Status(status, url.and_then(|url| url.parse().ok())))
            }
        },
        "end-of-call-report" => {
            let (from, to) = (moment(message, "startedAt"), moment(message, "endedAt"));
            Some(CallUpdate::End(End {
                at: to,
                reason: reason(message),
                duration_seconds: from.zip(to).and_then(|(from, to)| seconds(from, to)),
                cost: message.get("cost").and_then(Value::as_f64).filter(|cost| *cost >= 0.0),
            }))
        }
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

/// From one moment to a later one.
fn seconds(from: Timestamp, to: Timestamp) -> Option<f64> {
    let milliseconds = u32::try_from(to.as_millis().checked_sub(from.as_millis())?).ok()?;
    Some(f64::from(milliseconds) / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(message: &Value) -> End {
        match news(message) {
            Some(CallUpdate::End(end)) => end,
            _ => panic!("{message} tells of no end"),
        }
    }

    #[test]
    fn a_report_gives_what_can_be_read_of_it() {
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
    fn what_says_nothing_we_know_changes_nothing() {
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
