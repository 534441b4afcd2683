//! Events received from services.

use serde::{Deserialize, Serialize};

use super::{Automation, AutomationId, EventId, HookId, OrganizationId, RunId, Timestamp};
use crate::described::Described;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub id: EventId,
    pub organization_id: OrganizationId,
    /// Absent in events of our own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_id: Option<HookId>,
    /// The folded service name: `google_calendar`.
    pub service: String,
    /// Its most precise name: `issues.opened`.
    pub event_type: String,
    /// All its names; empty in rows of an older version.
    #[serde(default)]
    pub event_types: Vec<String>,
    /// As JSON text; long values are cut, with a marker.
    #[serde(default)]
    pub data: String,
    /// `data` is a part of the service's event; false in rows of an older version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_part: bool,
    pub status: EventStatus,
    #[serde(default)]
    pub matched: Vec<MatchedRun>,
    /// Listening automations that did not run.
    #[serde(default)]
    pub unmatched: Vec<Unmatched>,
    /// Listening automations that are tried later: there are many, or their filters are slow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<AutomationId>,
    /// Runs that waited for it and go on; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub woke: Vec<MatchedRun>,
    /// The filters of waiting runs are evaluated later.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_waits: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop it; seconds since 1970. Services redeliver for a shorter time.
    pub expires_at: i64,
}

impl Event {
    /// An event that no service sends.
    pub fn of_ours(
        id: EventId,
        organization_id: OrganizationId,
        service: &str,
        event_type: &str,
        kept: std::time::Duration,
    ) -> Self {
        let now = Timestamp::now();
        Self {
            id,
            organization_id,
            hook_id: None,
            service: service.to_owned(),
            event_type: event_type.to_owned(),
            event_types: vec![event_type.to_owned()],
            data: String::new(),
            in_part: false,
            status: EventStatus::Received,
            matched: Vec::new(),
            unmatched: Vec::new(),
            waiting: Vec::new(),
            woke: Vec::new(),
            has_waits: false,
            created_at: now,
            updated_at: now,
            expires_at: now.plus(kept).as_seconds(),
        }
    }

    pub fn trigger_keys(&self) -> Vec<String> {
        let names =
            if self.event_types.is_empty() { std::slice::from_ref(&self.event_type) } else { &self.event_types };
        names.iter().map(|name| Automation::trigger_key_of(self.organization_id, &self.service, name)).collect()
    }
}

/// A queue message: automations wait for the evaluation of this event.
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum EventStatus {
    /// Some automations are not evaluated yet, but queued or left to a redelivery.
    Received,
    /// All its runs are started.
    Dispatched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct MatchedRun {
    pub automation_id: AutomationId,
    pub run_id: RunId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct Unmatched {
    pub automation_id: AutomationId,
    /// A sentence.
    pub why: String,
}
