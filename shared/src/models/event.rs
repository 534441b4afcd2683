//! Something that happened at a service, as it was received.

use serde::{Deserialize, Serialize};

use super::{Automation, AutomationId, EventId, HookId, OrganizationId, Owned, RunId, Timestamp};

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
    /// All its names; none in rows of an older version.
    #[serde(default)]
    pub event_types: Vec<String>,
    /// What automations' paths lead into, as JSON text; what was too long is cut, with a marker.
    #[serde(default)]
    pub data: String,
    pub status: EventStatus,
    #[serde(default)]
    pub matched: Vec<MatchedRun>,
    /// Automations that listen to it and did not run.
    #[serde(default)]
    pub unmatched: Vec<Unmatched>,
    /// Automations that listen to it and are looked at later, for that takes long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<AutomationId>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop it; seconds since 1970. No service sends an event again for so long.
    pub expires_at: i64,
}

impl Event {
    /// What automations that listen to it have as their `trigger_key`.
    pub fn trigger_keys(&self) -> Vec<String> {
        let names =
            if self.event_types.is_empty() { std::slice::from_ref(&self.event_type) } else { &self.event_types };
        names.iter().map(|name| Automation::trigger_key_of(self.organization_id, &self.service, name)).collect()
    }
}

/// A message on the queue of occurrences: automations wait to be held against this event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingEvent {
    pub organization_id: OrganizationId,
    pub event_id: EventId,
}

impl WaitingEvent {
    pub const fn of(event: &Event) -> Self {
        Self { organization_id: event.organization_id, event_id: event.id }
    }
}

impl Owned for Event {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    /// Not every automation that listens to it has been looked at: they wait for it, or the service sends it again.
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
