//! What waits on the queue of executions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallId, E164, ExecutionId, OrganizationId, Timestamp, ToolId, Trigger};

/// A message to `run-tool`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queued {
    Run(QueuedExecution),
    /// The start of a call has waited long enough for its tools: what there is, is told.
    ContextDue {
        organization_id: OrganizationId,
        call_id: CallId,
    },
}

/// An execution to be carried out. Whose call it is was settled before it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuedExecution {
    /// Its place in the history.
    pub execution_id: ExecutionId,
    pub organization_id: OrganizationId,
    pub tool_id: ToolId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub called: Option<E164>,
    pub arguments: Map<String, Value>,
    pub trigger: Trigger,
    /// VAPI's id of the tool call that asked for it, which its redelivery keeps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    pub queued_at: Timestamp,
}
