//! Schedules of automations.

use serde::{Deserialize, Serialize};

use super::{
    AnsweredCall, AutomationId, EndedCall, FailedTool, OrganizationId, QueuedReplay, QueuedRun, Timestamp, WaitingEvent,
};

/// A row of `schedules`: an automation's next occurrence, and the last state of its polled source.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    pub automation_version: u64,
    /// Hash of the trigger's type and configuration, which determine the occurrences.
    pub rule: String,
    /// Or the running one; absent after the last. A paused automation keeps it.
    pub next_run_at: Option<Timestamp>,
    /// Name of the one-time schedule at `EventBridge` Scheduler; absent if the occurrence was queued.
    pub schedule_name: Option<String>,
    /// Partition of the index of due rows. Only active automations with a next occurrence have it.
    pub due: Option<String>,
    pub last_run_at: Option<Timestamp>,
    pub last_poll: Option<Timestamp>,
    /// Failures since its last answer.
    #[serde(default)]
    pub failures: u32,
    /// The last failure: a sentence, redacted.
    pub last_error: Option<String>,
    pub cursor: Option<PollCursor>,
    /// Counts changes of the row; 0 before it is written.
    #[serde(default)]
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PollCursor {
    /// Hash of service, tool, parameters and item id. The state is valid for this source only.
    pub source: String,
    /// Hash of the acting account's name, or of its id if it has none. Absent in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Whether another account acted before this one, which may have items with the same ids.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub follows_another: bool,
    /// Hashes of known items' ids, the last seen first.
    #[serde(default)]
    pub seen: Vec<String>,
    /// The items of a run that is being started for several of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Of the last answer, if all its items were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validators: Option<Validators>,
}

/// With which a later request asks whether a source's answer has changed (RFC 9110, section 13).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// Hash of the tool's fingerprint and arguments: another request has other answers.
    pub of: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_modified: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum Scheduled {
    Occurrence(Occurrence),
    Event(WaitingEvent),
    Replay(QueuedReplay),
    EndedCall(EndedCall),
    AnsweredCall(AnsweredCall),
    FailedTool(FailedTool),
    /// The pause of a run is over.
    Run(QueuedRun),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Occurrence {
    pub organization_id: OrganizationId,
    pub automation_id: AutomationId,
    pub scheduled_for: Timestamp,
}
