//! Reissuing: gives the tools at VAPI the current token and address, and the triggers at Pipedream the address.

use serde::{Deserialize, Serialize};

use super::{OrganizationId, Timestamp, Tool, ToolId};

/// Its progress. The table has one such row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reissue {
    /// Of the token-signing key and our public address. A change requires reissuing the tools and triggers.
    pub fingerprint: String,
    pub seen_at: Timestamp,
    /// The table of tools was read up to this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    #[serde(default)]
    pub complete: bool,
    /// Tools that failed and are retried.
    #[serde(default)]
    pub left: Vec<ToolToReissue>,
    /// The table of deployed triggers was read up to this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triggers_after: Option<String>,
    #[serde(default)]
    pub triggers_complete: bool,
    /// Counts writes, so that of two concurrent workers one stops.
    #[serde(default)]
    pub version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolToReissue {
    pub organization_id: OrganizationId,
    pub tool_id: ToolId,
}

impl From<&Tool> for ToolToReissue {
    fn from(tool: &Tool) -> Self {
        Self { organization_id: tool.organization_id, tool_id: tool.id }
    }
}

impl Reissue {
    pub fn new(fingerprint: String, version: u64) -> Self {
        Self {
            fingerprint,
            seen_at: Timestamp::now(),
            after: None,
            complete: false,
            left: Vec::new(),
            triggers_after: None,
            triggers_complete: false,
            version,
        }
    }
}
