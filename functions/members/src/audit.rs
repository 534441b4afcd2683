//! The audit log: who changed what.

use serde_json::json;
use shared::{
    Result,
    described::{Described, Schemas},
    error::Problems,
    http::{Asked, Found, Operation, Paged, Part, operation, query},
    models::{AuditEntry, Noun, Timestamp, UserId},
    store::{AuditFilter, Page},
};

use crate::Deps;

/// List who changed what
///
/// Every change of a member's, newest first: tools, agents, phone numbers, knowledge bases, automations, approvals, replayed
/// events, runs that were started or cancelled by hand, deleted calls and runs, erasures, members, keys, hooks and services. An
/// entry has ids and names, never values, secrets or callers' data, and is kept for a year. `via` is `agent` if a model acted
/// with the member's rights: over MCP, by the agent tools, in a chat or a run. A page may be short, or empty, and go on all the
/// same. `docs/data.md` says which entries follow their change instead of being written with it.
///
/// - 200: A page of entries.
///
/// ```json,200
/// {"items": [{"entry_id": "0192f0c1-2222-7000-8000-000000000001", "at": "2026-02-27T10:11:12.131Z",
///  "actor": "auth0|5f7c8ec7c33c6c004bbafe82", "via": null, "role": "admin", "action": "activated", "noun": "automation",
///  "id": "0192f0c1-0000-7000-8000-000000000031", "name": "Remind of appointments", "details": {"version": 3}}],
///  "next_cursor": null}
/// ```
#[operation(GET "/api/{slug}/audit", Admin, resource(Audit))]
pub(crate) async fn list_audit_entries(
    deps: &Deps,
    asked: &Asked<'_>,
    page: Paged<String>,
    wanted: Wanted,
) -> Result<Page<AuditEntry>> {
    deps.audit.page(asked.organization(), &wanted.0, page.cursor.as_ref(), page.limit).await
}

/// `?since=&until=&actor=&noun=&id=`
pub(crate) struct Wanted(AuditFilter);

impl Part for Wanted {
    const QUERY: &'static [&'static str] = &["since", "until", "actor", "noun", "id"];

    fn of(found: &Found<'_>) -> Result<Self> {
        let (mut problems, mut filter) = (Problems::default(), AuditFilter::default());
        for (name, value) in query(found.request).into_iter().filter(|(_, value)| !value.is_empty()) {
            match name.as_str() {
                "since" => filter.since = time("since", &value, &mut problems),
                "until" => filter.until = time("until", &value, &mut problems),
                "actor" => filter.actor = Some(UserId::new(value)),
                "noun" => match value.parse::<Noun>() {
                    Ok(noun) => filter.noun = Some(noun),
                    Err(wrong) => problems.add("noun", wrong.to_string()),
                },
                "id" => filter.id = Some(value),
                _ => {}
            }
        }
        if let (Some(since), Some(until)) = (filter.since, filter.until)
            && since >= until
        {
            problems.add("until", "must be later than since");
        }
        problems.into_result(Some(Self(filter)))
    }

    fn describe(operation: &mut Operation, schemas: &mut Schemas) {
        let time = json!({"type": "string", "format": "date-time"});
        operation.may_ask("since", "Only entries from this time on.", time.clone());
        operation.may_ask("until", "Only entries before this time.", time);
        operation.may_ask("actor", "Only what this user did: the `sub` of their tokens.", json!({"type": "string"}));
        operation.may_ask("noun", "Only changes of this kind of thing.", Noun::schema(schemas));
        operation.may_ask("id", "Only changes of the thing with this id.", json!({"type": "string"}));
    }
}

fn time(name: &str, value: &str, problems: &mut Problems) -> Option<Timestamp> {
    if let Ok(time) = value.parse::<Timestamp>() {
        Some(time.max(Timestamp::FIRST))
    } else {
        problems.add(name, "must be a time in ISO 8601, such as 2026-11-20T16:20:52.123Z");
        None
    }
}
