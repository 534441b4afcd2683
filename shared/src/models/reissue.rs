//! The tools at VAPI being given the token and the address that hold now.

use serde::{Deserialize, Serialize};

use super::{OrganizationId, Timestamp, Tool, ToolId};

/// How far it is. There is one of these, beside the tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reissue {
    /// Of the key that signs tokens and of our public address: another one means that tools have to be given new ones.
    pub fingerprint: String,
    /// When this fingerprint was first seen.
    pub seen_at: Timestamp,
    /// The key up to which the table was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// Every tool has been looked at.
    #[serde(default)]
    pub complete: bool,
    /// Tools that could not be looked at or changed, and are tried again.
    #[serde(default)]
    pub left: Vec<ToolToReissue>,
    /// Counts the writes, so that of two who go on from the same place one stops.
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
    /// One that begins.
    pub fn new(fingerprint: String, version: u64) -> Self {
        let seen_at = Timestamp::now();
        Self { fingerprint, seen_at, after: None, complete: false, left: Vec::new(), version }
    }
}
