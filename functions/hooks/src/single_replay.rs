//! Replays stored events.
//!
//! Each request is a cause of its own: a replay that is no dry run acts again. Filters do not apply, so an automation can be
//! tried with an event that its filter rejected.

use serde::Serialize;
use serde_json::Value;
use shared::{
    Error, Result,
    automation::{ReplayCause, RunView},
    declared::{self, Body},
    described::Described,
    http::{Accepted, Asked, Id, MaySend, Repeated, operation},
    idempotency::Key,
    models::{AutomationId, AutomationStatus, EventId, RunId},
};

use crate::Deps;

/// The started runs.
#[derive(Debug, Serialize, Described)]
pub(crate) struct ReplayView {
    event_id: EventId,
    dry_run: bool,
    /// The effects of the runs.
    note: &'static str,
    runs: Vec<RunView>,
}

/// For which automation, and whether it acts.
#[derive(Body)]
pub(crate) struct NewReplay {
    automation_id: Option<AutomationId>,
    #[schema(default = true)]
    dry_run: Option<bool>,
}

/// Give an event to automations once more
///
/// Goes to the named automation, regardless of its filter, or to each automation that the event started. It is a dry
/// run unless `dry_run` is false: then the runs act again, regardless of earlier runs of the event. Each request is a
/// cause of its own; with an `Idempotency-Key` the same request is the same. An event of more than 200 KB is stored in
/// part, so it can only be tried in a dry run.
///
/// - 202: The runs that wait to be taken up.
///
/// ```json,dry
/// {}
/// ```
#[operation(POST "/api/{slug}/events/{id}/replay", Member, also(409))]
pub(crate) async fn replay_event(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<EventId>,
    key: Result<Repeated>,
    body: MaySend<NewReplay>,
) -> Result<Accepted<ReplayView>> {
    let (organization, id) = (asked.organization(), id.0);
    let (events, automations, starter) =
        (&deps.events, &deps.event_replays.filters.automations, &deps.event_replays.starter);
    let event = events.get(organization, id).await?;
    let (key, body) = (key?.0, body.json()?);
    let NewReplay { automation_id: chosen, dry_run } = declared::read(&body, |_, _| ())?;
    let dry_run = dry_run.unwrap_or(true);
    if event.in_part && !dry_run {
        let why = "the event has more than 200 KB, and only a part of it is stored; replay it in a dry run";
        return Err(Error::Conflict(why.into()));
    }
    let wanted: Vec<AutomationId> = match chosen {
        Some(chosen) => vec![chosen],
        None => event.matched.iter().map(|matched| matched.automation_id).collect(),
    };
    if wanted.is_empty() {
        return Err(Error::invalid("automation_id", "is required, because the event started no automation"));
    }
    let data: Value = serde_json::from_str(&event.data).map_err(Error::internal)?;
    let request_key = key.clone().unwrap_or_else(|| RunId::generate().to_string());
    let cause = ReplayCause::new(&event, &data, &asked.member.user_id, &request_key);
    let hash = key.map(|_| Key::new(&["replay"], &body));
    let hash = hash.as_ref().map(Key::as_str);
    // All automations are checked before the first one acts.
    let mut to_start = Vec::new();
    for wanted in wanted {
        let automation = match automations.get(organization, wanted).await {
            // An automation deleted since is skipped, unless the request names it.
            Err(Error::NotFound(_)) if chosen.is_none() => continue,
            automation => automation?,
        };
        if automation.status != AutomationStatus::Active && !dry_run {
            // It may have been paused since the first request with this key.
            let key = cause.of(&automation, dry_run).key;
            let before = if hash.is_some() { starter.started_before(&automation, key, hash).await? } else { None };
            let Some(before) = before else {
                let (id, status) = (automation.id, automation.status.as_str());
                let problem = format!("the automation {id} is {status}; activate a version, or replay in a dry run");
                return Err(Error::Conflict(problem));
            };
            to_start.push((automation, Some(before)));
            continue;
        }
        to_start.push((automation, None));
    }
    let mut runs = Vec::new();
    for (automation, before) in to_start {
        let run = match before {
            Some(before) => before,
            None => starter.start_requested(&automation, &cause.of(&automation, dry_run), hash).await?.0,
        };
        tracing::info!(run.id = %run.id, event.id = %id, dry_run, "an event was replayed");
        runs.push(RunView::from(run));
    }
    let note = if event.in_part {
        "Nothing is changed outside: each action says what it would do with the stored part of the event."
    } else if dry_run {
        "Nothing is changed outside: each action says what it would do."
    } else {
        "These runs act again, whatever the event has caused before."
    };
    Ok(Accepted(ReplayView { event_id: id, dry_run, note, runs }))
}
