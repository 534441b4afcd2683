//! Deletes all data about one phone number; for owners and admins.
//!
//! - Calls from it and to it, with their executions.
//! - Executions for it in calls that only VAPI knows.
//! - Runs of automations that name it in prompt, steps or result, with their executions.
//! - Conversations with the planner that name it.
//!
//! The organization's own texts (tools, knowledge bases, phone numbers, members) are not searched; they have routes of their
//! own.

use serde::Serialize;
use shared::{
    Result,
    declared::Body,
    described::Described,
    http::{Access, Asked, Sent, Shown, operation},
    models::{CallId, E164, RunId},
    platform::Parts,
    store::{Erased, Erasure, ErasureCursor},
};

shared::routes!(Deps, "privacy": erase_number);

#[derive(Parts)]
pub struct Deps {
    pub access: Access,
    pub erasure: Erasure,
}

#[derive(Body)]
struct ErasureOfNumber {
    /// In E.164 form.
    phone_number: E164,
    /// The `next_cursor` of the answer before.
    cursor: Option<ErasureCursor>,
}

#[derive(Serialize, Described)]
struct NumberErasedView {
    /// Its last two digits.
    phone_number: String,
    /// Rows per table; a run with all its steps counts as one, and so does a conversation.
    deleted: Erased,
    /// Calls from or to the number that are not over.
    calls_under_way: Vec<CallId>,
    /// Runs that name the number and are not over.
    runs_under_way: Vec<RunId>,
    /// Whether everything found was deleted, since the first request without a cursor.
    complete: bool,
    /// Where the next request goes on; null when everything was looked at.
    next_cursor: Option<String>,
}

/// Delete the data of a phone number
///
/// Deletes calls from and to the number with their executions; executions for it in calls that only VAPI knows;
/// executions with it as a recipient or an argument; and events, runs of automations and conversations that contain
/// it: with its country code, or without it if nine digits remain. Entries of the audit log stay, without the name or id
/// that contains it. The organization's own content (tools, knowledge bases, its own phone numbers) has routes of its
/// own. Answers that a repeated request would get are kept for as long as their effect must not happen again, and cannot
/// be found by a number.
///
/// It takes the time that there is. Until `complete`, send the request again, with `next_cursor` as `cursor` if there is
/// one: it goes on where it stopped. A run that names the number and is not over is not deleted, nor is the record of a call
/// that is not over, and the answers after it are not `complete`: cancel those in `runs_under_way`, wait for the end of those
/// in `calls_under_way`, and then send the request once more, without a cursor. A call is over once its report has come, at
/// most three minutes after its end and twelve hours after its beginning. Repeating it does no harm.
///
/// - 200: The numbers of deleted records.
///
/// ```json,number
/// {"phone_number": "+14155550101"}
/// ```
/// ```json,going_on: Where the time was up
/// {"phone_number": "+14155550101", "cursor": "runs"}
/// ```
/// ```json,200
/// {"phone_number": "+…01", "deleted": {"calls": 3, "executions": 7, "runs": 1, "events": 2, "threads": 1, "remembered": 0},
///  "calls_under_way": [], "runs_under_way": [], "complete": true, "next_cursor": null}
/// ```
#[operation(POST "/api/{slug}/erasures", Admin, resource(Erasures))]
async fn erase_number(deps: &Deps, asked: &Asked<'_>, body: Sent<ErasureOfNumber>) -> Result<Shown<NumberErasedView>> {
    let ErasureOfNumber { phone_number, cursor } = body.read()?;
    let done = deps.erasure.number(asked.organization(), &phone_number, cursor, asked.deadline).await?;
    let (complete, erased) = (done.complete, done.erased);
    tracing::info!(
        erased.calls = erased.calls,
        erased.executions = erased.executions,
        erased.runs = erased.runs,
        erased.events = erased.events,
        erased.threads = erased.threads,
        erased.remembered = erased.remembered,
        complete,
        "the data about a phone number was deleted"
    );
    Ok(Shown(NumberErasedView {
        phone_number: phone_number.masked(),
        deleted: erased,
        calls_under_way: done.calls_under_way,
        runs_under_way: done.runs_under_way,
        complete,
        next_cursor: done.next.map(|next| next.to_string()),
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared::{Error, declared};

    use super::*;

    fn read(body: &Value) -> Result<(E164, Option<ErasureCursor>)> {
        let ErasureOfNumber { phone_number, cursor } = declared::read(body, |_, _| ())?;
        Ok((phone_number, cursor))
    }

    #[test]
    fn a_body_names_a_number_and_where_to_go_on() {
        assert!(read(&json!({"phone_number": "+1 415 555 0101"})).is_ok_and(|(_, from)| from.is_none()));
        let from = read(&json!({"phone_number": "+14155550101", "cursor": "kept.runs"})).unwrap().1;
        assert_eq!(from.map(|from| from.to_string()).as_deref(), Some("kept.runs"));
        for (body, wrong) in [
            (json!({}), vec!["phone_number"]),
            (json!([]), vec!["body"]),
            (
                json!({"phone_number": "415 555 0101", "cursor": "x", "all": true}),
                vec!["phone_number", "cursor", "all"],
            ),
        ] {
            let Err(Error::Invalid(problems)) = read(&body) else { panic!("{body} was read") };
            assert_eq!(problems.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), wrong, "{body}");
        }
    }
}
