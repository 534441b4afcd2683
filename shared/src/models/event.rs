//! Something that happened at a service, as it was received.

use serde::{Deserialize, Serialize};

use super::{AutomationId, EventId, HookId, OrganizationId, Owned, RunId, Timestamp};

/// A row of `events`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub organization_id: OrganizationId,
    pub hook_id: HookId,
    /// As services are compared: `google_calendar`.
    pub service: String,
    /// The most precise name that it has: `issues.opened`.
    pub event_type: String,
    /// What automations' paths lead into, as JSON text; what was too long is cut, with a marker.
    #[serde(default)]
    pub data: String,
    pub status: EventStatus,
    #[serde(default)]
    pub matched: Vec<MatchedRun>,
    /// Automations that listen to it and did not run.
    #[serde(default)]
    pub unmatched: Vec<Unmatched>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop it; seconds since 1970. No service sends an event again for so long.
    pub expires_at: i64,
}

impl Owned for Event {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    /// Not every automation that listens to it has been looked at; the service sends it again.
    Received,
    /// Every run that it causes is begun.
    Dispatched,
}

/// A run that an event began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MatchedRun {
    pub automation_id: AutomationId,
    pub run_id: RunId,
}

/// An automation that an event did not start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmatched {
    pub automation_id: AutomationId,
    /// A sentence.
    pub why: String,
}
