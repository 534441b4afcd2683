//! What became of one run of a tool.

use serde::{Deserialize, Serialize};

use super::{CallId, ExecutionId, OrganizationId, Timestamp, ToolId};

/// A row of `executions`: the history of a tool. It holds no argument values and no results, only what became of them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Execution {
    pub id: ExecutionId,
    pub organization_id: OrganizationId,
    pub tool_id: ToolId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    #[serde(default)]
    pub trigger: Trigger,
    pub status: ExecutionStatus,
    /// Why it did not succeed, in the sentence the model was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Names of the arguments the model gave.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Names of arguments the tool does not have; they were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_arguments: Vec<String>,
    /// When it was put on the queue; absent for a run that was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_at: Option<Timestamp>,
    pub started_at: Timestamp,
    /// Milliseconds.
    pub duration_ms: u64,
    /// When DynamoDB may drop the row; seconds since 1970.
    pub expires_at: i64,
}

/// What made a tool run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// The model called it.
    #[default]
    Conversation,
    /// A call came in.
    CallStart,
    /// A person tried it out.
    Test,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// It waits for `run-tool`.
    Queued,
    Succeeded,
    /// Some recipients got it, others did not.
    Partial,
    /// It did not happen.
    Failed,
    /// It may or may not have happened; it is not repeated.
    Unknown,
    /// Answered from the record of the same effect; nothing happened again.
    Replayed,
    /// One of the tool's limits was reached, so it did not happen.
    Limited,
}

impl ExecutionStatus {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Succeeded => "succeeded",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Unknown => "unknown",
            Self::Replayed => "replayed",
            Self::Limited => "limited",
        }
    }
}
