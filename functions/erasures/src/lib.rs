//! POST /api/{slug}/erasures `{"phone_number", "cursor"?}`: deletes what is kept of one phone number; for owners and admins.
//!
//! - Calls from it and to it, with their executions.
//! - Executions for it in calls that only VAPI knows.
//! - Runs of automations that name it in prompt, steps or result, with their executions.
//! - Conversations with the planner that name it.
//!
//! It is not looked for in what the organization wrote itself (tools, knowledge bases, phone numbers, members), which has routes of
//! its own.
//!
//! Answer: `{"phone_number": "+…01", "deleted": {"calls", "executions", "runs", "threads"}, "runs_under_way": [id], "complete", "next_cursor"}`.
//! It takes the time that there is; until `complete`, the same request with `cursor` goes on where it stopped, and without one it
//! begins again and finds what is left. A run that is not over is not deleted, but named: cancel it, and ask again.

use serde_json::{Value, json};
use shared::{
    Error, Platform, Result,
    error::Problems,
    fields::Fields,
    http::{self, Access, Reply, Request},
    models::E164,
    platform,
    store::{Erasure, ErasureCursor},
};

pub struct Deps {
    pub access: Access,
    pub erasure: Erasure,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { access: platform.access()?, erasure: platform.erasure()? })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let member = deps.access.member(&request).await?;
    let ["POST", "api", _, "erasures"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let (number, from) = read(&http::json_body(&request)?)?;
    let done = deps.erasure.number(member.organization_id, &number, from, http::deadline(&request)).await?;
    let complete = done.next.is_none() && done.runs_under_way.is_empty();
    let erased = done.erased;
    tracing::info!(
        erased.calls = erased.calls,
        erased.executions = erased.executions,
        erased.runs = erased.runs,
        erased.events = erased.events,
        erased.threads = erased.threads,
        complete,
        "what is kept of a phone number was deleted"
    );
    Reply::ok(&json!({
        "phone_number": number.masked(), "deleted": erased, "runs_under_way": done.runs_under_way, "complete": complete,
        "next_cursor": done.next.map(|next| next.to_string()),
    }))
}

fn read(body: &Value) -> Result<(E164, Option<ErasureCursor>)> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).and_then(|mut fields| {
        let number = fields.required_parse("phone_number");
        let cursor = fields.parse("cursor");
        fields.finish();
        number.map(|number| (number, cursor))
    });
    problems.into_result(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_names_a_number_and_where_to_go_on() {
        assert!(read(&json!({"phone_number": "+1 415 555 0101"})).is_ok_and(|(_, from)| from.is_none()));
        let from = read(&json!({"phone_number": "+14155550101", "cursor": "runs"})).unwrap().1;
        assert_eq!(from, Some(ErasureCursor::Runs(None)));
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
