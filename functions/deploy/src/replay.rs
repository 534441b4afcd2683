//! A stored event, given to automations once more.
//!
//! `POST /api/{slug}/events/{id}/replay` `{"automation_id"?, "dry_run"?}`. Each request is a cause of its own: a replay that is no dry
//! run acts again, whatever the event has caused before. Filters are not asked, so that an automation can be tried with what it
//! passed over.

use serde::Serialize;
use serde_json::{Map, Value};
use shared::{
    Error, Result,
    automation::{Requested, RunCause, RunStarter, RunView},
    error::Problems,
    fields::Fields,
    http::{self, Reply, Request},
    idempotency::Key,
    models::{AutomationId, AutomationStatus, EventId, Member, RunId, RunTrigger},
    store::{Automations, Events},
};

/// What a replay has begun.
#[derive(Debug, Serialize)]
struct ReplayView {
    event_id: EventId,
    dry_run: bool,
    /// What the runs do outside.
    note: &'static str,
    runs: Vec<RunView>,
}

/// Starts a run of the automation that is named, or of each that the event has started before.
pub(crate) async fn replay(
    (events, automations, starter): (&Events, &Automations, &RunStarter),
    request: &Request,
    member: &Member,
    id: EventId,
) -> Result<Reply> {
    let organization = member.organization_id;
    let event = events.get(organization, id).await?;
    let key = http::idempotency_key(request)?;
    let empty = http::body(request).iter().all(u8::is_ascii_whitespace);
    let body = if empty { Value::Object(Map::new()) } else { http::json_body(request)? };
    let (chosen, dry_run) = read(&body)?;
    let wanted: Vec<AutomationId> = match chosen {
        Some(chosen) => vec![chosen],
        None => event.matched.iter().map(|matched| matched.automation_id).collect(),
    };
    if wanted.is_empty() {
        return Err(Error::invalid("automation_id", "is required, because the event started no automation"));
    }
    let data: Value = serde_json::from_str(&event.data).map_err(Error::internal)?;
    let request_key = key.clone().unwrap_or_else(|| RunId::generate().to_string());
    let cause_key = format!("replay:{id}:{request_key}");
    let requested = Requested { hash: key.map(|_| Key::new(&["replay"], &body).as_str().to_owned()) };
    // All of them are looked at before the first one acts.
    let mut to_start = Vec::new();
    for wanted in wanted {
        let automation = match automations.get(organization, wanted).await {
            // One that was deleted since is passed over, unless it was asked for.
            Err(Error::NotFound(_)) if chosen.is_none() => continue,
            automation => automation?,
        };
        if automation.status != AutomationStatus::Active && !dry_run {
            let (id, status) = (automation.id, automation.status.as_str());
            let problem = format!("the automation {id} is {status}; activate a version, or replay in a dry run");
            return Err(Error::Conflict(problem));
        }
        to_start.push(automation);
    }
    let mut runs = Vec::new();
    for automation in to_start {
        let cause = RunCause {
            trigger: RunTrigger::Replay,
            key: &cause_key,
            trigger_data: &data,
            event: Some(id),
            scheduled_for: None,
            user: Some(&member.user_id),
            version: Some(automation.active_version.unwrap_or(automation.version)),
            dry_run,
        };
        let (run, _) = starter.start_requested(&automation, &cause, &requested).await?;
        tracing::info!(run.id = %run.id, event.id = %id, dry_run, "an event was replayed");
        runs.push(RunView::from(run));
    }
    let note = if dry_run {
        "Nothing is changed outside: each action says what it would do."
    } else {
        "These runs act again, whatever the event has caused before."
    };
    Reply::accepted(&ReplayView { event_id: id, dry_run, note, runs })
}

/// Which automation, if one is named, and whether nothing is to happen, which is usual.
fn read(body: &Value) -> Result<(Option<AutomationId>, bool)> {
    let mut problems = Problems::default();
    let read = Fields::of(body, "", &mut problems).map(|mut fields| {
        let automation = fields.parse("automation_id");
        let dry_run = fields.boolean("dry_run", true);
        fields.finish();
        (automation, dry_run)
    });
    problems.into_result(read)
}
