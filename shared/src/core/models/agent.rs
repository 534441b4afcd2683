//! A voice agent: an assistant of VAPI's that belongs to an organization.

use serde::{Deserialize, Serialize};

use super::{AgentId, OrganizationId, Timestamp};
use crate::described::Described;

/// A row of `agents`.
#[derive(Debug, Clone, Serialize, Deserialize, Described)]
pub struct Agent {
    pub id: AgentId,
    pub organization_id: OrganizationId,
    pub name: String,
    /// VAPI's id of the assistant.
    pub external_assistant_id: String,
    /// When the agent's voice token was issued; null without one.
    pub voice_token_at: Option<Timestamp>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}
