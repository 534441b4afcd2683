//! Saved automations and their versions.

use std::collections::BTreeMap;

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AutomationId, AutomationQuotas, OrganizationId, RunId, Timestamp, ToolId, UserId, folded_name};
use crate::{described::Described, names::Names};

/// An automation. Name, description and trigger are those of its newest version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct Automation {
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    pub name: String,
    #[serde(default)]
    pub description: String,
    #[schema(r#enum = ["webhook", "polling", "schedule_once", "schedule_recurring", "manual"])]
    pub trigger_type: String,
    pub status: AutomationStatus,
    /// The newest version.
    #[schema(minimum = 1)]
    pub version: u64,
    /// The version that runs; null until one was activated.
    #[schema(minimum = 1)]
    pub active_version: Option<u64>,
    pub activated_by: Option<UserId>,
    pub activated_at: Option<Timestamp>,
    /// Why it was paused, if nobody did it by hand.
    pub pause_reason: Option<String>,
    /// [`Automation::trigger_key_of`] the active version's trigger, also while paused.
    #[serde(default, skip_serializing)]
    pub trigger_key: Option<String>,
    /// The event filter of the active version: a condition, as JSON text.
    #[serde(default, skip_serializing)]
    pub trigger_filter: Option<String>,
    /// Runs that failed one after the other; with the fifth it is paused.
    #[serde(default)]
    pub failures_in_a_row: u32,
    /// The last pause; runs that began before it end.
    #[serde(default, skip_serializing)]
    pub paused_at: Option<Timestamp>,
    /// The run whose end paused it, if one did.
    pub paused_by_run: Option<RunId>,
    #[serde(default)]
    pub quotas: AutomationQuotas,
    pub created_by: UserId,
    /// Counts the changes; it is the `ETag`.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub revision: u64,
    #[serde(default, skip_serializing)]
    pub deleting: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Automation {
    /// The key by which an event finds its automations: `<organization>#slack#message`.
    pub fn trigger_key_of(organization: OrganizationId, service: &str, event_type: &str) -> String {
        format!("{organization}#{}#{}", folded_name(service), event_type.trim().to_lowercase())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
#[schema(name = "AutomationStatus")]
pub enum AutomationStatus {
    PendingReview,
    Active,
    Paused,
}

/// A row of `automation_versions`. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AutomationVersion {
    pub automation_id: AutomationId,
    pub version: u64,
    pub organization_id: OrganizationId,
    pub content_hash: String,
    /// The definition as JSON text, because DynamoDB's nesting limit is lower than JSON's.
    pub definition: String,
    #[serde(default)]
    pub checked: BTreeMap<String, CheckedTool>,
    pub created_by: UserId,
    pub created_at: Timestamp,
}

/// A tool at the time of a version's check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct CheckedTool {
    pub fingerprint: String,
    /// The id of an organization's tool, which may be renamed later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<ToolId>,
    /// Each parameter in a few words: `string, required`.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
}

impl AutomationVersion {
    /// SHA-256 of the definition with sorted members and without blanks, in hexadecimal.
    pub fn hash_of(definition: &Value) -> String {
        // serde_json sorts the members of objects.
        let hash = digest(&SHA256, definition.to_string().as_bytes());
        hash.as_ref().iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
    }
}
