//! Replays of many events: the plan, and its progress.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AutomationId, EventId, OrganizationId, ReplayId, RunId, Timestamp, UserId};
use crate::{described::Described, names::Names};

/// A row of `replays`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Replay {
    pub id: ReplayId,
    pub organization_id: OrganizationId,
    pub filter: ReplayFilter,
    /// The event that the filter's automation listened to when it was planned.
    pub trigger_key: Option<String>,
    /// As planned, like `runs`.
    pub events: u32,
    pub runs: u32,
    #[serde(default)]
    pub automations: Vec<ReplayedAutomation>,
    /// `filter.until` was moved: there were too many events.
    #[serde(default)]
    pub bounded: bool,
    #[serde(default)]
    pub progress: ReplayProgress,
    #[serde(default)]
    pub skipped: SkippedRuns,
    #[serde(default)]
    pub failures: Vec<ReplayFailure>,
    pub waits: Option<ReplayWait>,
    /// The last finished event.
    pub after: Option<ReplayPosition>,
    /// Counts batches; a message of an earlier one is stale.
    #[serde(default)]
    pub batch: u64,
    pub next_at: Option<Timestamp>,
    /// Of the last batch.
    #[serde(default)]
    pub last_runs: Vec<RunId>,
    pub created_by: UserId,
    pub created_at: Timestamp,
    pub start_before: Timestamp,
    pub started_by: Option<UserId>,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub cancelled_by: Option<UserId>,
    pub cancelled_at: Option<Timestamp>,
    /// When DynamoDB may drop it; seconds since 1970.
    pub expires_at: i64,
}

impl Replay {
    pub fn status(&self, now: Timestamp) -> ReplayStatus {
        match (self.cancelled_at, self.finished_at, self.started_at) {
            (Some(_), ..) => ReplayStatus::Cancelled,
            (_, Some(_), _) => ReplayStatus::Completed,
            (.., Some(_)) => ReplayStatus::Running,
            _ if self.start_before <= now => ReplayStatus::Expired,
            _ => ReplayStatus::Planned,
        }
    }
}

/// Skipped runs by [`SkipReason`]; reasons of a newer version are kept.
pub type SkippedRuns = BTreeMap<String, u32>;

/// The events that a replay covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ReplayFilter {
    /// The folded name: `google_calendar`.
    pub service: Option<String>,
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Timestamp,
    /// The one automation that gets the events; otherwise each that an event started.
    pub automation_id: Option<AutomationId>,
    /// Only events that started nothing.
    #[serde(default)]
    pub unmatched: bool,
    /// Only automations whose run of the event failed, or ended at a limit.
    #[serde(default)]
    pub only_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ReplayStatus {
    Planned,
    Running,
    Completed,
    Cancelled,
    /// It was not started in time.
    Expired,
}

/// The planned share of an automation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ReplayedAutomation {
    pub automation_id: AutomationId,
    /// Null if it was deleted.
    pub name: Option<String>,
    pub runs: u32,
    pub skipped: u32,
    /// Why events are skipped: a sentence.
    pub why: Option<String>,
}

impl ReplayedAutomation {
    pub const fn none(automation_id: AutomationId) -> Self {
        Self { automation_id, name: None, runs: 0, skipped: 0, why: None }
    }
}

/// `events`: finished ones. The others count runs: one for each event and automation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ReplayProgress {
    pub events: u32,
    pub started: u32,
    pub skipped: u32,
    pub failed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    AutomationDeleted,
    AutomationInactive,
    Filter,
    FilterTooLarge,
    StoredInPart,
    EventGone,
    /// Of a newer version.
    #[serde(other)]
    Other,
}

impl SkipReason {
    pub fn of(word: &str) -> Self {
        Self::named(word).unwrap_or(Self::Other)
    }

    pub const fn sentence(self) -> &'static str {
        match self {
            Self::AutomationDeleted => "The automation was deleted.",
            Self::AutomationInactive => "The automation is not active; activate it to have it run.",
            Self::Filter => "The automation's filter did not match.",
            Self::FilterTooLarge => "The automation's filter compares too much with the event.",
            Self::StoredInPart => "The event has more than 200 KB, and only a part of it is stored.",
            Self::EventGone => "The event was deleted, or is not kept any more.",
            Self::Other => "The reason is known to a newer version only.",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ReplayFailure {
    pub event_id: EventId,
    pub automation_id: AutomationId,
    /// A sentence.
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct ReplayWait {
    pub until: Timestamp,
    /// The automation at its limit; null while earlier runs of the replay have yet to begin.
    pub automation_id: Option<AutomationId>,
    /// A sentence.
    pub why: String,
}

/// The place of an event in the order of arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplayPosition {
    pub created_at: Timestamp,
    pub id: EventId,
}

/// A queue message: the next batch of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedReplay {
    pub organization_id: OrganizationId,
    pub replay_id: ReplayId,
    pub batch: u64,
}
