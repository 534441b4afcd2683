//! A run's row as API clients see it; unknown fields are null.
//!
//! Leases and idempotency data stay internal.

use serde::Serialize;

use crate::{
    described::Described,
    models::{AutomationId, AutomationRun, EventId, RunId, RunLimits, RunStatus, RunTrigger, Spent, Timestamp, UserId},
    redaction::redacted,
};

/// Bytes of a run's error.
pub const ERROR_BUDGET: usize = 1_000;

/// A run of an automation. Unknown fields are null.
#[derive(Debug, Serialize, Described)]
pub struct RunView {
    id: RunId,
    status: RunStatus,
    /// The cause of the run: a person or a program, an event, a schedule, an event that was replayed, an action of another run.
    trigger_type: RunTrigger,
    /// The automation of the run; null for a prompt without an automation.
    automation_id: Option<AutomationId>,
    #[schema(minimum = 1)]
    automation_version: Option<u64>,
    /// The event that started it, or that was replayed.
    event_id: Option<EventId>,
    /// When it was due by the schedule.
    scheduled_for: Option<Timestamp>,
    /// Nothing is changed outside.
    dry_run: bool,
    /// The run that waits for this one's result.
    parent_run_id: Option<RunId>,
    /// The run that this one goes on from.
    retry_of: Option<RunId>,
    /// The run that goes on from this one.
    retried_by: Option<RunId>,
    /// Actions that succeeded.
    actions_executed: u32,
    actions_failed: u32,
    /// The `sub` of who began it.
    user_id: Option<UserId>,
    /// The model that was asked for.
    model: Option<String>,
    limits: RunLimits,
    spent: UsageView,
    /// Why the result is missing or could not be checked.
    error: Option<String>,
    waits_for: Option<WaitsView>,
    cancel_requested_at: Option<Timestamp>,
    created_at: Timestamp,
    /// When it was first taken up.
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    updated_at: Timestamp,
    /// From when it was first taken up to its end.
    #[schema(minimum = 0)]
    duration_ms: Option<i64>,
}

/// The condition for the run to continue; null if the run is at work, is queued, or is over.
#[derive(Debug, Serialize, Described)]
#[schema(name = "RunWaits")]
struct WaitsView {
    /// A decision, another run, a time, an event, the model (it is down, or busy), or something else that is down.
    #[schema(r#enum = ["approval", "run", "time", "event", "model", "service"])]
    what: &'static str,
    /// Of the approval or the run; of a time or an event the place of the pause.
    id: Option<String>,
    /// Of an event: `stripe invoice.paid`, `own.acme order.paid`.
    event: Option<String>,
    /// When it goes on all the same.
    until: Option<Timestamp>,
    /// The last error.
    error: Option<String>,
}

impl WaitsView {
    fn of(run: &AutomationRun) -> Option<Self> {
        let now = Timestamp::now();
        let until = run.time_from.filter(|until| *until > now);
        if run.status.is_over() || run.lease_until.is_some_and(|until| until >= now.as_millis()) {
            return None;
        }
        if let Some(approval) = run.waits_for_approval.filter(|_| run.status == RunStatus::WaitingForApproval) {
            return Some(Self { what: "approval", id: Some(approval.to_string()), event: None, until, error: None });
        }
        if let Some(child) = run.waits_for_run {
            return Some(Self { what: "run", id: Some(child.to_string()), event: None, until, error: None });
        }
        if let Some(pause) = run.pause.as_ref().filter(|pause| pause.until > now) {
            // `<organization>#stripe#invoice.paid`
            let event = pause.trigger_key.as_ref().and_then(|key| Some(key.split_once('#')?.1.replacen('#', " ", 1)));
            let what = if event.is_some() { "event" } else { "time" };
            return Some(Self { what, id: Some(pause.place.clone()), event, until: Some(pause.until), error: None });
        }
        let until = Some(Timestamp::from_millis(run.resume_at?)).filter(|until| *until > now)?;
        let what = if run.waits_for_model { "model" } else { "service" };
        let error = run.last_error.as_ref().map(|error| redacted(error, ERROR_BUDGET));
        Some(Self { what, id: None, event: None, until: Some(until), error })
    }
}

#[derive(Debug, Serialize, Described)]
#[schema(name = "RunSpent")]
struct UsageView {
    #[serde(flatten)]
    spent: Spent,
    /// Of prompts and answers together.
    tokens: u64,
}

impl From<AutomationRun> for RunView {
    fn from(run: AutomationRun) -> Self {
        let length = |(from, to): (Timestamp, Timestamp)| (to.as_millis() - from.as_millis()).max(0);
        Self {
            waits_for: WaitsView::of(&run),
            // The error may quote the model, so it is redacted.
            error: run.why().map(|error| redacted(&error, ERROR_BUDGET)),
            id: run.id,
            status: run.status,
            trigger_type: run.trigger_type,
            automation_id: run.automation_id,
            automation_version: run.automation_version,
            event_id: run.event_id,
            scheduled_for: run.scheduled_for,
            dry_run: run.dry_run,
            parent_run_id: run.parent_run_id,
            retry_of: run.retry_of,
            retried_by: run.retried_by,
            actions_executed: run.actions_executed,
            actions_failed: run.actions_failed,
            user_id: run.user_id,
            model: run.model,
            limits: run.limits,
            spent: UsageView { tokens: run.spent.tokens(), spent: run.spent },
            cancel_requested_at: run.cancel_requested_at,
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            updated_at: run.updated_at,
            duration_ms: run.started_at.zip(run.finished_at).map(length),
        }
    }
}

impl RunView {
    /// Replaces the error by one redacted with more knowledge.
    #[must_use]
    pub fn with_error(self, error: Option<String>) -> Self {
        Self { error, ..self }
    }
}
