//! A phone call.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{AgentId, ControlUrl, E164, ExecutionId, OrganizationId, Owned, PhoneNumberId, Timestamp, ToolId};

/// VAPI's id of a call. It is a UUID today, of version 7 or 4; all we need is that it can be a key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

crate::described!(CallId => {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"});

#[derive(Debug, thiserror::Error)]
#[error("must be 1 to 100 letters, digits, _ and -")]
pub struct NotACallId;

impl CallId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for CallId {
    type Err = NotACallId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if (1..=100).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.to_owned()))
        } else {
            Err(NotACallId)
        }
    }
}

impl fmt::Display for CallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How far a call is, in VAPI's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallStatus {
    Scheduled,
    Queued,
    Ringing,
    InProgress,
    /// Its caller is being connected to somebody else.
    Forwarding,
    Ended,
    NotFound,
    DeletionFailed,
    /// A word VAPI did not have when this was written.
    #[serde(other)]
    Other,
}

impl CallStatus {
    /// Nobody is on the line any more.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::NotFound | Self::DeletionFailed)
    }
}

/// A row of `calls`: a call that came in through us, with the numbers Twilio signed for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    pub id: CallId,
    pub organization_id: OrganizationId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// May be withheld or no number at all (`client:…`, `sip:…`), hence text.
    pub caller_phone_number: String,
    pub called_phone_number: E164,
    /// A secret: it stands in the row, until the call is over, and in no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control_url: Option<ControlUrl>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CallStatus>,
    /// Twilio's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_sid: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phone_number_id: Option<PhoneNumberId>,
    /// When VAPI's TwiML was there to be answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twiml_at: Option<Timestamp>,
    /// The tools that its start set off, in the order in which their results are told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_call_start: Vec<StartedTool>,
    /// What came of them so far, by execution id: the line that the model is told, or null if there is nothing to tell, or
    /// nothing any more.
    #[serde(default)]
    pub results: BTreeMap<String, Option<String>>,
    /// When the results were taken to be told to the model, which happens once; later ones follow on their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_taken_at: Option<Timestamp>,
    /// When the call took them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_injected_at: Option<Timestamp>,
    /// What followed later, each by itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_later: Vec<ToldLater>,
    /// Why the call did not take them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_failed_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    /// In VAPI's words, such as `customer-ended-call`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_seconds: Option<f64>,
    /// In US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Of what the cost is made up, by what was paid for: `transport`, `stt`, `llm`, `tts`, `vapi`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_parts: BTreeMap<String, f64>,
    /// When VAPI told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_at: Option<Timestamp>,
    /// When caller and agent were connected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connected_at: Option<Timestamp>,
    /// When the agent first began to speak, and the caller. What was said is nowhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_spoke_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_spoke_at: Option<Timestamp>,
    /// When the agent first did not answer for a while (VAPI's `hang`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_hung_at: Option<Timestamp>,
    /// The first ones, in the order in which they were told.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop the row; seconds since 1970. Rows of an older version have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
}

/// The call was handed over. To which number is not kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub at: Timestamp,
    /// `number`, `sip`, `assistant`, …; null if VAPI did not say.
    #[serde(default)]
    pub to: Option<String>,
}

/// What happens in a call many times, and of which the first time is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTime {
    AgentSpoke,
    CallerSpoke,
    AgentHung,
}

impl FirstTime {
    /// The column of the row.
    pub const fn column(self) -> &'static str {
        match self {
            Self::AgentSpoke => "agent_spoke_at",
            Self::CallerSpoke => "caller_spoke_at",
            Self::AgentHung => "agent_hung_at",
        }
    }
}

/// A result that came when the others had been told, and the moment when the call took it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldLater {
    pub execution_id: ExecutionId,
    pub at: Timestamp,
}

/// A tool that the start of a call set off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTool {
    pub execution_id: ExecutionId,
    pub tool_id: ToolId,
    pub label: String,
}

impl Call {
    /// Whether every tool that was set off has come to an end.
    pub fn has_all_results(&self) -> bool {
        self.on_call_start.iter().all(|tool| self.results.contains_key(&tool.execution_id.to_string()))
    }

    /// Whether the row is still to be shown: DynamoDB may drop it up to two days late.
    pub fn is_kept(&self) -> bool {
        self.expires_at.is_none_or(|at| at > Timestamp::now().as_seconds())
    }

    /// When this happened first, as far as it is known.
    pub const fn first(&self, what: FirstTime) -> Option<Timestamp> {
        match what {
            FirstTime::AgentSpoke => self.agent_spoke_at,
            FirstTime::CallerSpoke => self.caller_spoke_at,
            FirstTime::AgentHung => self.agent_hung_at,
        }
    }

    pub fn is_over(&self) -> bool {
        self.ended_at.is_some() || self.status.is_some_and(CallStatus::is_over)
    }
}

impl Owned for Call {
    fn owner(&self) -> OrganizationId {
        self.organization_id
    }
}
