//! The comparison of an agent's words with the receipt of its call.

use serde::{Deserialize, Serialize};

use super::{Timestamp, ToolName};
use crate::described::Described;

/// Stored in the row of the call, without a word of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Described)]
pub struct ClaimCheck {
    pub status: ClaimCheckStatus,
    pub at: Timestamp,
    /// How many effects the agent claimed.
    #[serde(default)]
    pub claims: usize,
    /// The claims that no line of the receipt proves.
    #[serde(default)]
    pub unproven: Vec<UnprovenClaim>,
    /// Of the organization's own LLM account, in US dollars; null if its gateway reports none.
    #[schema(minimum = 0)]
    pub cost: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum ClaimCheckStatus {
    /// Also of a check that was interrupted, which is not repeated.
    Checking,
    Checked,
    /// The model gave no usable answer.
    Failed,
    /// The budget of the own LLM account is used up.
    OverBudget,
    /// Too many calls of the organization were checked at that moment.
    Busy,
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Described)]
pub struct UnprovenClaim {
    /// The tool that would have done it; null if the agent has none for it.
    pub tool: Option<ToolName>,
}

impl ClaimCheck {
    pub fn begun() -> Self {
        Self { status: ClaimCheckStatus::Checking, at: Timestamp::now(), claims: 0, unproven: Vec::new(), cost: None }
    }
}
