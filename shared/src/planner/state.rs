//! What a turn knows, and where it is.

use serde::Serialize;

use super::Widget;
use crate::models::{ChatRole, OfferedTool, PendingCall, Role, Spent, Timestamp, ToolResult, UserId, WaitsFor};

/// Who asks: of the verified token and the membership that it leads to, and of nothing that a request says.
#[derive(Debug, Clone, Serialize)]
pub struct UserContext {
    pub user_id: UserId,
    /// Absent where the token names none, or says that it is not verified.
    pub user_email: Option<String>,
    #[serde(serialize_with = "as_text")]
    pub user_role: Role,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn as_text<S: serde::Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.as_str())
}

/// A message as a model is told it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    pub role: ChatRole,
    pub content: String,
}

impl ChatMessage {
    pub fn user(content: impl Into<String>) -> Self {
        Self { role: ChatRole::User, content: content.into() }
    }

    pub fn assistant(content: impl Into<String>) -> Self {
        Self { role: ChatRole::Assistant, content: content.into() }
    }
}

/// Where a turn is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    #[default]
    Plan,
    Execute,
    Answer,
    /// The answer is there; a turn that is over is here.
    Validate,
    /// An effect waits for the person's consent.
    Consent,
}

impl Step {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Execute => "execute",
            Self::Answer => "answer",
            Self::Validate => "validate",
            Self::Consent => "consent",
        }
    }

    /// The node of the graph that it belongs to.
    pub const fn node(self) -> &'static str {
        match self {
            Self::Plan | Self::Execute | Self::Answer | Self::Consent => "query_execution",
            Self::Validate => "validate",
        }
    }
}

/// What a turn knows. It begins with the conversation up to the person's message and ends with the answer.
#[derive(Debug, Clone)]
pub struct AgentState {
    /// Oldest first; those that `summary` stands for are not among them.
    pub messages: Vec<ChatMessage>,
    /// Of the messages before.
    pub summary: Option<String>,
    /// What tools gave in earlier turns, as far as the model is still told.
    pub earlier_results: Vec<ToolResult>,
    /// What tools gave in this turn.
    pub tool_results: Vec<ToolResult>,
    pub current_step: Step,
    /// How often tools were chosen in this turn.
    pub iteration: u32,
    pub user_context: UserContext,
    pub spent: Spent,
    /// What the last tool that gave one wants drawn.
    pub widget: Option<Widget>,
    /// The call that waits for the person's consent, or for the front end.
    pub pending: Option<PendingCall>,
    /// Why the answer had to do without a tool, or without the model.
    pub problems: Vec<String>,
    /// Actions that the answer claimed and that did not happen, in the words of the answer.
    pub claims: Vec<String>,
}

impl AgentState {
    pub fn new(messages: Vec<ChatMessage>, user_context: UserContext) -> Self {
        Self {
            messages,
            summary: None,
            earlier_results: Vec::new(),
            tool_results: Vec::new(),
            current_step: Step::default(),
            iteration: 0,
            user_context,
            spent: Spent::default(),
            widget: None,
            pending: None,
            problems: Vec::new(),
            claims: Vec::new(),
        }
    }

    /// Goes on where a call waited that the person has now decided about.
    #[must_use]
    pub fn resumed(mut self, pending: &PendingCall) -> Self {
        self.tool_results.clone_from(&pending.tool_results);
        self.iteration = pending.iteration;
        self
    }
}

/// A call that is to wait, before it has a name and a time.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) waits_for: WaitsFor,
    pub(super) tool: OfferedTool,
    pub(super) arguments: serde_json::Map<String, serde_json::Value>,
    pub(super) reason: String,
}

impl Question {
    pub(super) fn pending(self, state: &AgentState, turn: u32, expires_at: Timestamp) -> PendingCall {
        PendingCall {
            id: uuid::Uuid::now_v7().to_string(),
            waits_for: self.waits_for,
            tool: self.tool,
            arguments: self.arguments,
            reason: self.reason,
            turn,
            tool_results: state.tool_results.clone(),
            iteration: state.iteration,
            expires_at,
        }
    }
}
