//! An automation that was saved, and its versions.

use std::{collections::BTreeMap, str::FromStr};

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    AutomationId, AutomationQuotas, OrganizationId, Owned, RunId, Timestamp, ToolId, UserId, folded_name, named,
};

/// A row of `automations`: what is true of all its versions, and which one runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Automation {
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    /// Name, description and trigger of the newest version.
    pub name: String,
    #[serde(default)]
    pub description: String,
    pub trigger_type: String,
    pub status: AutomationStatus,
    /// The newest version; the first is 1.
    pub version: u64,
    /// The version that runs, or would if the automation were not paused; null until one was activated.
    #[serde(default)]
    pub active_version: Option<u64>,
    #[serde(default)]
    pub activated_by: Option<UserId>,
    #[serde(default)]
    pub activated_at: Option<Timestamp>,
    /// Why it was paused, if nobody did it by hand: a sentence.
    #[serde(default)]
    pub pause_reason: Option<String>,
    /// [`Automation::trigger_key_of`] what the version that runs listens to, or would if the automation were not paused.
    #[serde(default, skip_serializing)]
    pub trigger_key: Option<String>,
    /// What an event must fulfil, of the version that runs: a condition, as JSON text.
    #[serde(default, skip_serializing)]
    pub trigger_filter: Option<String>,
    /// Runs that failed one after the other.
    #[serde(default)]
    pub failures_in_a_row: u32,
    /// When it was paused last; its runs that began before end.
    #[serde(default, skip_serializing)]
    pub paused_at: Option<Timestamp>,
    /// The run whose end paused it, if one did.
    #[serde(default)]
    pub paused_by_run: Option<RunId>,
    /// Of the version that runs.
    #[serde(default)]
    pub quotas: AutomationQuotas,
    pub created_by: UserId,
    /// Counts the changes of the row; a change of an older revision is a conflict.
    #[serde(default)]
    pub revision: u64,
    /// Its deletion has begun.
    #[serde(default, skip_serializing)]
    pub deleting: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Owned for Automation {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}

impl Automation {
    /// What an event of a service is found by: `<organization>#slack#message`.
    pub fn trigger_key_of(organization: OrganizationId, service: &str, event_type: &str) -> String {
        format!("{organization}#{}#{}", folded_name(service), event_type.trim().to_lowercase())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutomationStatus {
    /// Nobody has activated a version yet.
    PendingReview,
    Active,
    Paused,
}

#[derive(Debug, thiserror::Error)]
#[error("must be one of pending_review, active, paused")]
pub struct NotAnAutomationStatus;

crate::described! {
    Automation => {"$ref": "#/components/schemas/Automation"},
    AutomationStatus => {"type": "string", "enum": ["pending_review", "active", "paused"]},
}

impl AutomationStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PendingReview => "pending_review",
            Self::Active => "active",
            Self::Paused => "paused",
        }
    }
}

impl FromStr for AutomationStatus {
    type Err = NotAnAutomationStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text).ok_or(NotAnAutomationStatus)
    }
}

/// A row of `automation_versions`. It is never changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationVersion {
    pub automation_id: AutomationId,
    pub version: u64,
    pub organization_id: OrganizationId,
    /// Of the definition in canonical form.
    pub content_hash: String,
    /// The definition as JSON text: an item's own lists and maps are nested less deeply than JSON may be.
    pub definition: String,
    /// What it was checked against, by the name of the tool.
    #[serde(default)]
    pub checked: BTreeMap<String, CheckedTool>,
    pub created_by: UserId,
    pub created_at: Timestamp,
}

/// A tool as it was when a version was checked against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedTool {
    pub fingerprint: String,
    /// Of one of the organization's: it may be called otherwise by the time it is used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// Each parameter in a few words: `string, required`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

impl AutomationVersion {
    /// SHA-256 of the definition with the members of its objects sorted and no blanks, in hexadecimal.
    pub fn hash_of(definition: &Value) -> String {
        // serde_json sorts the members of objects.
        let hash = digest(&SHA256, definition.to_string().as_bytes());
        hash.as_ref().iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
    }
}
