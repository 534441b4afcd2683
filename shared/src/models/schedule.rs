//! What runs an automation by the clock.

use serde::{Deserialize, Serialize};

use super::{AutomationId, OrganizationId, Timestamp, WaitingEvent};

/// A row of `schedules`: when an automation runs next, and what a source had when it was asked last.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// The automation's.
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    /// The version that it was made for.
    pub automation_version: u64,
    /// Hash of the type and configuration of that version's trigger: while they are the same, so are the occurrences.
    pub rule: String,
    /// The occurrence that is to come, or is under way. Absent when there is none any more. A paused automation keeps the one that
    /// it was paused before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_run_at: Option<Timestamp>,
    /// Name of the one-time schedule at `EventBridge` Scheduler that brings it; absent if it was put on the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    /// Partition of the index of what is due. Only that of an active automation with an occurrence to come has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due: Option<String>,
    /// The last occurrence that was carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<Timestamp>,
    /// When the source was asked last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_poll: Option<Timestamp>,
    /// How often it failed since it last answered.
    #[serde(default)]
    pub failures: u32,
    /// Why, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<PollCursor>,
    /// Counts the changes of the row; 0 before it is written.
    #[serde(default)]
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What is known of a source that is polled.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollCursor {
    /// Hash of service, tool, its parameters and what tells its items apart: of another source nothing is known.
    pub source: String,
    /// Hashes of the ids of items that are not new any more, those that were seen last first.
    #[serde(default)]
    pub seen: Vec<String>,
    /// Of the items that a run for several of them is being started for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
}

/// A message on the queue of occurrences.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Scheduled {
    Occurrence(Occurrence),
    Event(WaitingEvent),
}

/// An automation is to run for this moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    pub organization_id: OrganizationId,
    pub automation_id: AutomationId,
    pub scheduled_for: Timestamp,
}
