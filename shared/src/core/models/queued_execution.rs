//! Messages to `run-tool`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallId, E164, ExecutionId, ExecutionOrigin, OrganizationId, Timestamp, ToolId};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queued {
    #[serde(rename = "run")]
    Execution(Box<QueuedExecution>),
    /// The start of a call has waited long enough for its tools: send the results that exist.
    ContextDue { organization_id: OrganizationId, call_id: CallId },
    /// A worker's turn to tell a call its results of background tools is over: tell the results left.
    ResultsDue { organization_id: OrganizationId, call_id: CallId },
}

/// An execution to carry out. Its caller was verified before it was queued.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct QueuedExecution {
    pub execution_id: ExecutionId,
    pub organization_id: OrganizationId,
    pub tool_id: ToolId,
    pub call_id: Option<CallId>,
    pub caller: Option<String>,
    pub called: Option<E164>,
    pub arguments: Map<String, Value>,
    pub trigger: ExecutionOrigin,
    /// VAPI has not created the call yet; `call_id` is its provisional id.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub before_call: bool,
    /// The arguments that identify its effect; absent without any.
    pub significant: Option<Map<String, Value>>,
    /// VAPI's id of the tool call, stable across redeliveries.
    pub tool_call_id: Option<String>,
    /// The execution whose result it sends, because the call is over.
    pub sends_result_of: Option<ExecutionId>,
    /// When the caller confirmed another effect before confirming this one.
    pub confirmed_after: Option<Timestamp>,
    pub queued_at: Timestamp,
}
