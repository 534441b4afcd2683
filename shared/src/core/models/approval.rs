//! Approvals: a person's decision before an action of a run.

use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{ApprovalId, AutomationId, OrganizationId, RunId, Timestamp, ToolEffect, UserId};
use crate::{described::Described, names::Names};

/// A row of `approvals`: one action of a run with exactly these arguments.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    pub id: ApprovalId,
    pub organization_id: OrganizationId,
    pub automation_id: Option<AutomationId>,
    pub run_id: RunId,
    pub action_id: String,
    pub tool: String,
    /// The arguments as JSON text for the person who decides, without secrets and the author's marked fields. Other readers see
    /// neither numbers nor addresses.
    pub arguments: String,
    /// The recipients, as far as the arguments name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipients: Vec<String>,
    /// [`arguments_hash`] of the real arguments.
    pub arguments_hash: String,
    /// A sentence.
    pub reason: Option<String>,
    pub status: ApprovalStatus,
    pub valid_until: Timestamp,
    pub decided_by: Option<UserId>,
    pub decided_at: Option<Timestamp>,
    pub decision_reason: Option<String>,
    pub used_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop the row; seconds since 1970.
    pub expires_at: i64,
}

impl Approval {
    /// The current status: expiry is not written to the row.
    pub fn status_at(&self, now: Timestamp) -> ApprovalStatus {
        match self.status {
            ApprovalStatus::Pending if self.valid_until <= now => ApprovalStatus::Expired,
            status => status,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
#[schema(name = "ApprovalStatus")]
pub enum ApprovalStatus {
    Pending,
    Approved,
    Refused,
    Expired,
    Cancelled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRequest {
    pub expires_in_minutes: u32,
    /// Shown to the person who decides.
    pub reason: Option<String>,
}

impl ApprovalRequest {
    pub const USUAL_MINUTES: u32 = 24 * 60;
    pub const MOST_MINUTES: u32 = 7 * 24 * 60;
}

impl Default for ApprovalRequest {
    fn default() -> Self {
        Self { expires_in_minutes: Self::USUAL_MINUTES, reason: None }
    }
}

/// A rule: every action with this effect asks first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovalRule {
    pub effect: ApprovalEffect,
    /// Domains of e-mail addresses that need no approval. Empty: every address needs it.
    pub outside: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[serde(rename_all = "snake_case")]
pub enum ApprovalEffect {
    Email,
    Sms,
    Message,
    Call,
    Payment,
    Any,
}

impl ApprovalEffect {
    pub const fn holds(self, effect: ToolEffect) -> bool {
        match (self, effect) {
            (_, ToolEffect::None) => false,
            (Self::Any, _)
            | (_, ToolEffect::Undeclared)
            | (Self::Email, ToolEffect::Email)
            | (Self::Sms, ToolEffect::Sms)
            | (Self::Message, ToolEffect::Message)
            | (Self::Call, ToolEffect::Call)
            | (Self::Payment, ToolEffect::Payment) => true,
            _ => false,
        }
    }
}

/// SHA-256 of the arguments as JSON with sorted members and without blanks, in hexadecimal.
pub fn arguments_hash(arguments: &Map<String, Value>) -> String {
    // serde_json sorts the members of objects.
    let text = serde_json::to_string(arguments).unwrap_or_default();
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().iter().fold(String::new(), |hash, byte| hash + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_status_is_read_back() {
        for status in ["pending", "approved", "refused", "expired", "cancelled"] {
            assert_eq!(status.parse::<ApprovalStatus>().unwrap().as_str(), status);
        }
        assert!("done".parse::<ApprovalStatus>().is_err());
        for name in ApprovalEffect::NAMES {
            assert_eq!(ApprovalEffect::named(name).unwrap().as_str(), name);
        }
    }
}
