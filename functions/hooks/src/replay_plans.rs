//! Replays of many events: a plan, which is started, watched and cancelled.

use serde::Serialize;
use serde_json::Value;
use shared::{
    Result,
    automation::MOST_REPLAYED,
    declared::{self, Body, Text},
    described::Described,
    http::{Accepted, Asked, Created, Id, MaySend, Paged, Shown, operation},
    models::{
        AutomationId, OrganizationId, Replay, ReplayFailure, ReplayFilter, ReplayId, ReplayProgress, ReplayStatus,
        ReplayWait, ReplayedAutomation, SkipReason, Timestamp, UserId, folded_name,
    },
    store::Page,
};

use crate::Deps;

/// Characters of a service's name.
const LONGEST_SERVICE: usize = 100;

#[derive(Serialize, Described)]
pub(crate) struct EventReplayView {
    id: ReplayId,
    organization_id: OrganizationId,
    status: ReplayStatus,
    filter: ReplayFilter,
    /// The covered events, as they were found by the plan.
    events: u32,
    /// The runs that they would start.
    runs: u32,
    /// At most 100, those with the most events first.
    #[schema(maxItems = 100)]
    automations: Vec<ReplayedAutomation>,
    /// The limit that the plan has met.
    bound: Option<ReplayBoundView>,
    progress: ReplayProgress,
    /// The skipped runs by reason.
    skipped: Vec<SkippedView>,
    /// The first 20.
    #[schema(maxItems = 20)]
    failures: Vec<ReplayFailure>,
    /// Until when it makes a pause, and why.
    waits: Option<ReplayWait>,
    created_by: UserId,
    created_at: Timestamp,
    /// A plan that is not started by then expires.
    start_before: Timestamp,
    started_by: Option<UserId>,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    cancelled_by: Option<UserId>,
    cancelled_at: Option<Timestamp>,
}

#[derive(Serialize, Described)]
struct SkippedView {
    reason: SkipReason,
    why: &'static str,
    count: u32,
}

#[derive(Serialize, Described)]
struct ReplayBoundView {
    /// The most events of a plan.
    events: u32,
    /// The plan covers the events before this time.
    until: Timestamp,
    /// A sentence with the next step.
    why: String,
}

impl From<Replay> for EventReplayView {
    fn from(replay: Replay) -> Self {
        let status = replay.status(Timestamp::now());
        let until = replay.filter.until;
        let bound = || {
            let why = format!(
                "A plan covers at most {MOST_REPLAYED} events, and those it can count before its answer; this one covers the events before {until}. Plan another one with since = {until}."
            );
            ReplayBoundView { events: MOST_REPLAYED, until, why }
        };
        let skipped = |(word, count): (String, u32)| {
            let reason = SkipReason::of(&word);
            SkippedView { reason, why: reason.sentence(), count }
        };
        Self {
            bound: replay.bounded.then(bound),
            id: replay.id,
            organization_id: replay.organization_id,
            filter: replay.filter,
            events: replay.events,
            runs: replay.runs,
            automations: replay.automations,
            progress: replay.progress,
            skipped: replay.skipped.into_iter().map(skipped).collect(),
            failures: replay.failures,
            waits: replay.waits.filter(|_| status == ReplayStatus::Running),
            status,
            created_by: replay.created_by,
            created_at: replay.created_at,
            start_before: replay.start_before,
            started_by: replay.started_by,
            started_at: replay.started_at,
            finished_at: replay.finished_at,
            cancelled_by: replay.cancelled_by,
            cancelled_at: replay.cancelled_at,
        }
    }
}

/// Which events, and for which automation.
#[derive(Body)]
pub(crate) struct NewEventReplay {
    /// Its name in any spelling.
    service: Option<Text<LONGEST_SERVICE>>,
    /// Inclusive.
    since: Option<Timestamp>,
    /// Exclusive; now, if it is left out or later.
    until: Option<Timestamp>,
    automation_id: Option<AutomationId>,
    #[schema(default = false)]
    unmatched: Option<bool>,
    #[schema(default = false)]
    only_failed: Option<bool>,
}

/// Plan a replay of many events
///
/// Counts the stored events of the filter and the runs that they would start, by automation. Nothing starts before the
/// plan is started, within an hour. Without `automation_id` an event goes to the automations that it started. With it,
/// to this automation only: an event that did not start it, but has the name that it listens to, starts it if its filter
/// matches now. `unmatched`: only events that started nothing; requires `automation_id`. `only_failed`: only automations
/// whose run of the event failed or ended at a limit. Events whose automations have yet to be evaluated are not covered.
///
/// A plan covers the oldest 10,000 events; `bound` says where it ends. Each plan is a cause of its own: a second one
/// starts the same events again.
///
/// - 201: The plan.
///
/// ```json,failed: Runs that failed in an outage
/// {"service": "slack", "since": "2026-11-20T09:00:00Z", "until": "2026-11-20T12:00:00Z", "only_failed": true}
/// ```
/// ```json,everything
/// {}
/// ```
#[operation(POST "/api/{slug}/events/replays", Member)]
pub(crate) async fn plan_event_replay(
    deps: &Deps,
    asked: &Asked<'_>,
    body: MaySend<NewEventReplay>,
) -> Result<Created<EventReplayView>> {
    let filter = read(&body.json()?)?;
    let replay = deps.event_replays.plan(&asked.member, filter, asked.deadline).await?;
    Ok(Created(replay.into()))
}

/// List replays of many events
///
/// Newest first.
///
/// - 200: A page of replays.
#[operation(GET "/api/{slug}/events/replays", Viewer)]
pub(crate) async fn list_event_replays(deps: &Deps, asked: &Asked<'_>, page: Paged) -> Result<Page<EventReplayView>> {
    let replays = &deps.event_replays.replays;
    let page = replays.page(asked.organization(), page.cursor.as_ref(), page.limit).await?;
    Ok(page.map(EventReplayView::from))
}

/// Show a replay of many events
///
/// - 200: The plan and its progress.
#[operation(GET "/api/{slug}/events/replays/{id}", Viewer)]
pub(crate) async fn get_event_replay(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ReplayId>,
) -> Result<Shown<EventReplayView>> {
    let replay = deps.event_replays.replays.get(asked.organization(), id.0).await?;
    Ok(Shown(replay.into()))
}

/// Start a planned replay
///
/// It is carried out in the background, 20 events at a time, in the order of arrival; one replay of an organization at a
/// time. Its runs act, for the user who starts it. Each event starts at most one run of an automation. Before an
/// automation has started three quarters of its `runs_per_hour`, the replay waits for the next hour (`waits`): new events
/// have the rest, and none is lost. Deleted and inactive automations are skipped. Repeating the request changes nothing.
///
/// - 202: It runs.
#[operation(POST "/api/{slug}/events/replays/{id}/start", Member, also(409))]
pub(crate) async fn start_event_replay(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ReplayId>,
) -> Result<Accepted<EventReplayView>> {
    Ok(Accepted(deps.event_replays.start(&asked.member, id.0).await?.into()))
}

/// Cancel a replay
///
/// No further batch begins. Started runs go on.
///
/// - 200: It is cancelled, now or before.
#[operation(POST "/api/{slug}/events/replays/{id}/cancel", Member, also(409))]
pub(crate) async fn cancel_event_replay(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<ReplayId>,
) -> Result<Shown<EventReplayView>> {
    Ok(Shown(deps.event_replays.cancel(&asked.member, id.0).await?.into()))
}

fn read(body: &Value) -> Result<ReplayFilter> {
    let now = Timestamp::now();
    let before_now = |until: Option<Timestamp>| until.map_or(now, |until| until.min(now));
    let new: NewEventReplay = declared::read(body, |new: &mut NewEventReplayDraft, fields| {
        let unmatched = new.unmatched.unwrap_or_default();
        if new.since.is_some_and(|since| since >= before_now(new.until)) {
            fields.problem("since", "must be before until, and before now");
        }
        if unmatched && fields.get("automation_id").is_none() {
            fields.problem("automation_id", "is required with unmatched: these events started no automation");
        }
        if unmatched && new.only_failed.unwrap_or_default() {
            fields.problem("only_failed", "cannot be combined with unmatched: these events started no run");
        }
    })?;
    Ok(ReplayFilter {
        service: new.service.map(|name| folded_name(&name)),
        since: new.since,
        until: before_now(new.until),
        automation_id: new.automation_id,
        unmatched: new.unmatched.unwrap_or_default(),
        only_failed: new.only_failed.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::Error;

    use super::*;

    #[test]
    fn a_filter_that_cannot_match_is_refused_by_field() {
        let automation = "0192f0c1-0000-7000-8000-000000000031";
        let filter = read(&json!({"service": "Google Calendar", "automation_id": automation, "unmatched": true}));
        assert_eq!(filter.unwrap().service.as_deref(), Some("google_calendar"));
        assert!(read(&json!({})).is_ok_and(|filter| filter.until <= Timestamp::now()));
        for (body, wrong) in [
            (json!({"unmatched": true}), vec!["automation_id"]),
            (json!({"unmatched": true, "only_failed": true, "automation_id": automation}), vec!["only_failed"]),
            (json!({"since": "2026-01-02T00:00:00Z", "until": "2026-01-01T00:00:00Z"}), vec!["since"]),
            (json!({"since": "yesterday", "until": 7, "extra": 1}), vec!["since", "until", "extra"]),
            (json!({"since": "2996-01-01T00:00:00Z"}), vec!["since"]),
        ] {
            let Err(Error::Invalid(problems)) = read(&body) else { panic!("{body} was read") };
            assert_eq!(problems.iter().map(|problem| problem.field.as_str()).collect::<Vec<_>>(), wrong, "{body}");
        }
    }
}
