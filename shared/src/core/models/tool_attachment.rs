//! Attachments of tools to agents.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{AgentId, OrganizationId, Timestamp, ToolId};
use crate::described::Described;

/// A row of `agent_tools`, the single source of truth of attachments.
#[derive(Debug, Clone, Serialize, Deserialize, Described)]
pub struct ToolAttachment {
    pub id: Uuid,
    pub organization_id: OrganizationId,
    pub agent_id: AgentId,
    pub tool_id: ToolId,
    /// True: in the assistant's `toolIds`, the model can call it. False: runs on call start only.
    pub is_vapi_attached: bool,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ToolAttachment {
    pub fn new(organization_id: OrganizationId, agent_id: AgentId, tool_id: ToolId, is_vapi_attached: bool) -> Self {
        let now = Timestamp::now();
        Self {
            id: Uuid::now_v7(),
            organization_id,
            agent_id,
            tool_id,
            is_vapi_attached,
            created_at: now,
            updated_at: now,
        }
    }
}
