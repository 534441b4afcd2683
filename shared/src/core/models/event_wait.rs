//! Pauses of runs, and their waits for events.

use serde::{Deserialize, Serialize};

use super::{AutomationId, EventId, OrganizationId, RunId, Timestamp};

/// A pause of a run, by the place of its step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPause {
    pub place: String,
    pub since: Timestamp,
    pub until: Timestamp,
    /// Of the event that ends it, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_key: Option<String>,
}

/// A row of `event_waits`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventWait {
    /// Of the awaited event, as [`super::Automation::trigger_key_of`] makes it.
    pub trigger_key: String,
    /// `<run>#<digest of the step's place>`
    pub place: String,
    pub organization_id: OrganizationId,
    pub run_id: RunId,
    pub automation_id: AutomationId,
    /// A condition as JSON text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The values that the filter names `{{filled[0]}}`, `{{filled[1]}}`, …: a list as JSON text.
    pub filled: String,
    pub until: Timestamp,
    /// The event that ended the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_by: Option<EventId>,
    pub created_at: Timestamp,
    /// Seconds since 1970.
    pub expires_at: i64,
}

/// The event that a run waited for: a part of the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CameEvent {
    pub event_id: EventId,
    /// JSON text.
    pub data: String,
}
