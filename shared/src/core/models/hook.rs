//! Hooks: the addresses to which services send an organization's events.

use serde::{Deserialize, Serialize};

use super::{AutomationId, HookId, OrganizationId, Owned, SecretId, Timestamp, named};
use crate::described::Described;

/// The id is part of the address and cannot be guessed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hook {
    pub id: HookId,
    pub organization_id: OrganizationId,
    /// As in the address ([`super::folded_name`]).
    pub service: String,
    /// See [`crate::webhooks`]; absent in rows of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
    #[serde(default)]
    pub label: String,
    pub status: HookStatus,
    /// At a service with one address for all organizations: `slack#A0MDYCDME#T061EG9R6`. Other tenants' events are ignored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant_key: Option<String>,
    /// Each proves a request; newest last. Values are in Secrets Manager.
    #[serde(default)]
    pub secrets: Vec<HookSecretRef>,
    /// The service sent it; no person has seen it yet.
    #[serde(default)]
    pub unseen_secret: bool,
    /// The only receiver of its events; otherwise all listening automations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub automation_id: Option<AutomationId>,
    /// A change of an older revision is a conflict.
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

/// A hook's secret: the last part of its name in Secrets Manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct HookSecretRef {
    pub id: SecretId,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum HookStatus {
    /// Without a secret: only a handshake that brings one is accepted.
    Pending,
    Active,
    /// The service reported that the organization revoked its access.
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
