//! The state of a turn.

use serde::Serialize;

use super::Widget;
use crate::{
    described::Described,
    models::{
        ChatRole, OfferedTool, PendingCall, PlannedCall, Role, RunningTurn, ShownValue, Spent, Timestamp, ToolResult,
        TurnCall, UserId, WaitsFor,
    },
    names::Names,
};

/// The stored results of a waiting turn, in bytes.
const LARGEST_RESULTS: usize = 64 * 1024;

/// The person who asks: read from the verified token and the membership, never from the request.
#[derive(Debug, Clone, Serialize)]
pub struct UserContext {
    pub user_id: UserId,
    /// Absent when the token has no e-mail address, or an unverified one.
    pub user_email: Option<String>,
    #[serde(serialize_with = "as_text")]
    pub user_role: Role,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
fn as_text<S: serde::Serializer>(role: &Role, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(role.as_str())
}

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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum TurnStep {
    #[default]
    Plan,
    Execute,
    Answer,
    /// The answer is complete; also the step of a finished turn.
    Validate,
    Consent,
}

impl TurnStep {
    pub const fn node(self) -> &'static str {
        match self {
            Self::Plan | Self::Execute | Self::Answer | Self::Consent => "query_execution",
            Self::Validate => "validate",
        }
    }
}

/// The state of a turn. It starts with the conversation up to the person's message and ends with the answer.
#[derive(Debug, Clone)]
pub struct AgentState {
    pub messages: Vec<ChatMessage>,
    pub summary: Option<String>,
    pub earlier_results: Vec<ToolResult>,
    pub tool_results: Vec<ToolResult>,
    /// Calls of the current plan that are not made yet.
    pub rest: Vec<PlannedCall>,
    pub current_step: TurnStep,
    pub iteration: u32,
    pub user_context: UserContext,
    pub spent: Spent,
    pub widget: Option<Widget>,
    pub pending: Option<PendingCall>,
    /// Why the answer is without a tool, or without the model.
    pub problems: Vec<String>,
    pub cut: bool,
}

impl AgentState {
    pub fn new(messages: Vec<ChatMessage>, user_context: UserContext) -> Self {
        Self {
            messages,
            summary: None,
            earlier_results: Vec::new(),
            tool_results: Vec::new(),
            rest: Vec::new(),
            current_step: TurnStep::default(),
            iteration: 0,
            user_context,
            spent: Spent::default(),
            widget: None,
            pending: None,
            problems: Vec::new(),
            cut: false,
        }
    }

    pub fn resume(&mut self, pending: &PendingCall) {
        self.tool_results.clone_from(&pending.tool_results);
        self.iteration = pending.iteration;
    }

    pub fn calls_of(running: &RunningTurn) -> Vec<ToolResult> {
        let mut calls = running.calls.clone();
        for call in calls.iter_mut().filter(|call| call.outcome == TurnCall::Running) {
            call.outcome = TurnCall::Unconfirmed;
            call.result =
                "The program ended before the outcome was known. It may have been done; do not repeat it.".into();
        }
        calls
    }

    /// Continues a turn that broke off. A call that had begun has an unknown effect.
    pub fn go_on(&mut self, running: &RunningTurn) {
        self.tool_results = Self::calls_of(running);
        self.rest.clone_from(&running.rest);
        self.iteration = running.iteration;
    }
}

/// A call that must wait, before it has an id and an expiry.
#[derive(Debug, Clone)]
pub(super) struct Question {
    pub(super) waits_for: WaitsFor,
    pub(super) tool: OfferedTool,
    pub(super) label: String,
    pub(super) effect: bool,
    pub(super) arguments: serde_json::Map<String, serde_json::Value>,
    pub(super) shows: Vec<ShownValue>,
    pub(super) reason: String,
}

impl Question {
    pub(super) fn pending(self, state: &AgentState, turn: u32, expires_at: Timestamp) -> PendingCall {
        PendingCall {
            id: uuid::Uuid::now_v7().to_string(),
            request: None,
            waits_for: self.waits_for,
            tool: self.tool,
            label: self.label,
            effect: self.effect,
            arguments: self.arguments,
            shows: self.shows,
            rest: state.rest.clone(),
            reason: self.reason,
            turn,
            tool_results: ToolResult::within(&state.tool_results, LARGEST_RESULTS),
            iteration: state.iteration,
            expires_at,
        }
    }
}
