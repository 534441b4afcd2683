//! The row of a run as its organization is shown it: every field is there, null where nothing is known.
//!
//! Who carries it on, and what it takes to repeat a request, stand in the row and not here.

use serde::Serialize;

use crate::{
    models::{AutomationId, AutomationRun, EventId, RunId, RunLimits, RunStatus, RunTrigger, Spent, Timestamp, UserId},
    redaction::Transcript,
};

/// Of why there is no result, in bytes.
pub const ERROR_BUDGET: usize = 1_000;

/// A run without its steps.
#[derive(Debug, Serialize)]
pub struct RunView {
    id: RunId,
    status: RunStatus,
    trigger_type: RunTrigger,
    /// Of what it is a run; null for a prompt that was run by itself.
    automation_id: Option<AutomationId>,
    automation_version: Option<u64>,
    event_id: Option<EventId>,
    scheduled_for: Option<Timestamp>,
    dry_run: bool,
    parent_run_id: Option<RunId>,
    actions_executed: u32,
    actions_failed: u32,
    user_id: Option<UserId>,
    model: Option<String>,
    limits: RunLimits,
    spent: UsageView,
    error: Option<String>,
    cancel_requested_at: Option<Timestamp>,
    created_at: Timestamp,
    started_at: Option<Timestamp>,
    finished_at: Option<Timestamp>,
    updated_at: Timestamp,
    /// From when it was first taken up to its end.
    duration_ms: Option<i64>,
}

#[derive(Debug, Serialize)]
struct UsageView {
    #[serde(flatten)]
    spent: Spent,
    tokens: u64,
}

impl From<AutomationRun> for RunView {
    fn from(run: AutomationRun) -> Self {
        let length = |(from, to): (Timestamp, Timestamp)| (to.as_millis() - from.as_millis()).max(0);
        Self {
            id: run.id,
            status: run.status,
            trigger_type: run.trigger_type,
            automation_id: run.automation_id,
            automation_version: run.automation_version,
            event_id: run.event_id,
            scheduled_for: run.scheduled_for,
            dry_run: run.dry_run,
            parent_run_id: run.parent_run_id,
            actions_executed: run.actions_executed,
            actions_failed: run.actions_failed,
            user_id: run.user_id,
            model: run.model,
            limits: run.limits,
            spent: UsageView { tokens: run.spent.tokens(), spent: run.spent },
            // It may quote the model.
            error: run.error.map(|error| Transcript::default().text(&error, ERROR_BUDGET)),
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
    /// The same, where more is known of what must be hidden.
    #[must_use]
    pub fn with_error(self, error: Option<String>) -> Self {
        Self { error, ..self }
    }
}
