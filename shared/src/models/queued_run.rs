//! A tool run that waits on a queue.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallId, E164, ExecutionId, OrganizationId, Timestamp, ToolId, Trigger};

/// A message to `run-tool`. Whose call it is was settled before it was written.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuedRun {
    /// The run's place in the history.
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
    pub queued_at: Timestamp,
}
