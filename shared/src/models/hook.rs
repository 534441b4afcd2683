//! Where a service sends an organization's events.

use serde::{Deserialize, Serialize};

use super::{AutomationId, HookId, OrganizationId, Owned, SecretId, Timestamp, named};

/// A row of `hooks`: what was agreed with a service so that its events come here. Its id is part of the address and cannot be
/// guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub id: HookId,
    pub organization_id: OrganizationId,
    /// As services are compared ([`super::folded_name`]), and as it stands in the address.
    pub service: String,
    /// How its requests are proven, by the name of a scheme of [`crate::webhooks`]; rows of older versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(default)]
    pub label: String,
    pub status: HookStatus,
    /// Whose events these are at a service that sends all organizations' to one address: `slack#A0MDYCDME#T061EG9R6`. Events of
    /// others are not the hook's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_key: Option<String>,
    /// Either of them proves a request; the newest last. Each is at Secrets Manager.
    #[serde(default)]
    pub secrets: Vec<HookSecretRef>,
    /// The service gave the secret itself, and nobody has seen it yet.
    #[serde(default)]
    pub unseen_secret: bool,
    /// The one automation that its events are for; those that listen to them otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_id: Option<AutomationId>,
    /// Counts the changes of the row; a change of an older revision is a conflict.
    #[serde(default)]
    pub revision: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Owned for Hook {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}

/// One of a hook's secrets: the last part of its name at Secrets Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSecretRef {
    pub id: SecretId,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookStatus {
    /// It has no secret yet: nothing is taken but what makes one known.
    Pending,
    Active,
    /// The service said that the organization took its access back.
    Ended,
}

#[derive(Debug, thiserror::Error)]
#[error("must be one of pending, active, ended")]
pub struct NotAHookStatus;

impl std::str::FromStr for HookStatus {
    type Err = NotAHookStatus;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text).ok_or(NotAHookStatus)
    }
}
