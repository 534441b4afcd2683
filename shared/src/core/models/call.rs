//! A phone call.

use std::{collections::BTreeMap, fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{
    AgentId, ClaimCheck, ControlUrl, E164, ExecutionId, IfCallOver, OrganizationId, PhoneNumberId, ReadBack,
    ReturningTransfer, Timestamp, ToolId,
};
use crate::{described::Described, names::Names};

/// VAPI's id of a call. Today a UUID of version 7 or 4; any valid key is accepted.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CallId(String);

shows_text!(CallId);

crate::described!(CallId => {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,100}$"});

const STARTING: &str = "starting-";
const PLACING: &str = "placing-";

#[derive(Debug, thiserror::Error)]
#[error("must be 1 to 100 letters, digits, _ and -")]
pub struct NotACallId;

impl CallId {
    /// For a call that VAPI has not created yet.
    pub fn provisional() -> Self {
        Self(format!("{STARTING}{}", ExecutionId::generate()))
    }

    /// For a call that a tool places. `name`: of the call at VAPI.
    pub fn placing(name: &str) -> Result<Self, NotACallId> {
        format!("{PLACING}{name}").parse()
    }

    /// Whether it is ours and not VAPI's.
    pub fn is_provisional(&self) -> bool {
        self.0.starts_with(STARTING) || self.0.starts_with(PLACING)
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "kebab-case")]
pub enum CallStatus {
    Scheduled,
    Queued,
    Ringing,
    InProgress,
    Forwarding,
    Ended,
    NotFound,
    DeletionFailed,
    /// Also an unknown word of VAPI's.
    #[serde(other)]
    Other,
}

impl CallStatus {
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::NotFound | Self::DeletionFailed)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum CallDirection {
    #[default]
    Inbound,
    /// A tool placed it.
    Outbound,
}

/// A row of `calls`: an incoming call with the numbers that Twilio signed, or a call that a tool placed.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Call {
    pub id: CallId,
    pub organization_id: OrganizationId,
    pub agent_id: Option<AgentId>,
    #[serde(default)]
    pub direction: CallDirection,
    /// The person on the line, also in an outbound call. May be withheld or no number (`client:…`, `sip:…`), so it is text.
    pub caller_phone_number: String,
    /// The organization's number.
    pub called_phone_number: E164,
    /// A secret: stored in the row until the end of the call, and never shown.
    pub control_url: Option<ControlUrl>,
    pub status: Option<CallStatus>,
    pub call_sid: Option<String>,
    pub phone_number_id: Option<PhoneNumberId>,
    /// VAPI has the media only, and cannot transfer the call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub bypasses_provider: bool,
    pub twiml_at: Option<Timestamp>,
    /// The tools started with the call, in the order of their results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_call_start: Vec<StartedTool>,
    /// By execution id: the line for the model; null if none is needed, or already sent.
    #[serde(default)]
    pub results: BTreeMap<String, Option<String>>,
    /// The results that were variables of the call when it was created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<CallVariable>,
    /// When the results were taken for the model, once. Later results are sent one by one.
    pub context_taken_at: Option<Timestamp>,
    /// When the call accepted them.
    pub context_injected_at: Option<Timestamp>,
    /// Results that were sent later, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told_later: Vec<ToldLater>,
    /// Results of background tools that wait to be told, in the order of their arrival.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub to_tell: Vec<ResultToTell>,
    /// Those that a worker has taken, until their outcome is recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub telling: Vec<ResultToTell>,
    /// The executions of background tools whose results came, by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub background_told: Vec<BackgroundResult>,
    pub read_back: Option<ReadBack>,
    pub context_error: Option<String>,
    pub context_failed_at: Option<Timestamp>,
    /// The ids of executions that did not succeed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed_executions: Vec<String>,
    pub ended_at: Option<Timestamp>,
    /// In VAPI's words, such as `customer-ended-call`.
    pub ended_reason: Option<String>,
    pub duration_seconds: Option<f64>,
    /// In US dollars.
    pub cost: Option<f64>,
    /// Parts of the cost: `transport`, `stt`, `llm`, `tts`, `vapi`, …
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cost_parts: BTreeMap<String, f64>,
    /// When VAPI sent its report, also one without a cost.
    pub cost_at: Option<Timestamp>,
    pub connected_at: Option<Timestamp>,
    /// First utterances. Words are not stored.
    pub agent_spoke_at: Option<Timestamp>,
    pub caller_spoke_at: Option<Timestamp>,
    /// When the agent first fell silent (VAPI's `hang`).
    pub agent_hung_at: Option<Timestamp>,
    /// The first transfers, in the order of their reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfers: Vec<Transfer>,
    /// The transfer of the caller's line that returns if nobody answers.
    pub transfer: Option<ReturningTransfer>,
    /// The agent that took the call over from `agent_id`.
    pub handed_to: Option<AgentId>,
    /// The call that was transferred before the caller returned to the agent.
    pub returned_from: Option<CallId>,
    /// The calls of the same phone call before this one, the first one first. Absent in rows of an older version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub former_calls: Vec<CallId>,
    /// The first line of the context for the model; dropped at the end of the call.
    pub preface: Option<String>,
    /// Only with `verify_claims`.
    pub claim_check: Option<ClaimCheck>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// When DynamoDB may drop the row; seconds since 1970. Absent in rows of an older version.
    pub expires_at: Option<i64>,
}

/// A queue message: a call is over, and automations may listen to that.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedCall {
    pub organization_id: OrganizationId,
    pub call_id: CallId,
    /// How often the message waited.
    #[serde(default)]
    pub waits: u32,
    /// When the call ended, Twilio had made no request about its transfer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unrequested_transfer: bool,
}

/// A queue message: a call that a tool placed was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnsweredCall {
    pub organization_id: OrganizationId,
    pub answered_call_id: CallId,
}

/// The number is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    pub at: Timestamp,
    /// `number`, `sip`, `assistant`, …; null if VAPI did not say.
    pub to: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FirstTime {
    AgentSpoke,
    CallerSpoke,
    AgentHung,
}

impl FirstTime {
    pub const fn column(self) -> &'static str {
        match self {
            Self::AgentSpoke => "agent_spoke_at",
            Self::CallerSpoke => "caller_spoke_at",
            Self::AgentHung => "agent_hung_at",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldLater {
    pub execution_id: ExecutionId,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StartedTool {
    pub execution_id: ExecutionId,
    pub tool_id: ToolId,
    pub label: String,
}

/// The value is not stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallVariable {
    pub execution_id: ExecutionId,
    pub name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultToTell {
    pub execution_id: ExecutionId,
    /// The line for the model.
    pub text: String,
    /// The model answers at once.
    #[serde(default)]
    pub speaks: bool,
    /// The tool that sends the result if the call is over, with its arguments filled in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub if_call_over: Option<IfCallOver>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackgroundResult {
    pub execution_id: ExecutionId,
    pub at: Timestamp,
    /// Why the call was not told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The execution that sends it instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_by: Option<ExecutionId>,
}

/// A call that VAPI has not created yet, under a provisional id. Its results wait for the call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct StartingCall {
    pub id: CallId,
    pub organization_id: OrganizationId,
    /// For the erasure of a number; removed with the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller_phone_number: Option<String>,
    /// By execution id: the result's JSON; null without one.
    #[serde(default)]
    pub results: BTreeMap<String, Option<String>>,
    /// VAPI's id, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<CallId>,
    pub expires_at: i64,
}

/// A call that a tool places, under its name at VAPI. From it the call's row can be written if VAPI's answer is lost.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct PlacingCall {
    pub id: CallId,
    pub organization_id: OrganizationId,
    pub agent_id: AgentId,
    /// The person, under this name for the erasure of a number.
    pub caller_phone_number: E164,
    /// The organization's number.
    pub called_phone_number: E164,
    pub phone_number_id: PhoneNumberId,
    /// Of the call's row.
    pub call_expires_at: i64,
    pub expires_at: i64,
}

impl PlacingCall {
    /// The call's row. `id`: VAPI's.
    pub fn placed(self, id: CallId) -> Call {
        let (person, number) = (self.caller_phone_number.to_string(), self.called_phone_number);
        Call {
            agent_id: Some(self.agent_id),
            direction: CallDirection::Outbound,
            status: Some(CallStatus::Queued),
            phone_number_id: Some(self.phone_number_id),
            ..Call::new(id, self.organization_id, person, number, self.call_expires_at)
        }
    }
}

impl StartedTool {
    /// The line for the model.
    pub fn line(label: &str, json: impl fmt::Display) -> String {
        format!("{}: {json}", label.replace(['\r', '\n'], " "))
    }
}

impl Call {
    pub fn new(id: CallId, organization_id: OrganizationId, caller: String, called: E164, expires_at: i64) -> Self {
        let now = Timestamp::now();
        Self {
            id,
            organization_id,
            agent_id: None,
            direction: CallDirection::Inbound,
            caller_phone_number: caller,
            called_phone_number: called,
            control_url: None,
            status: None,
            call_sid: None,
            phone_number_id: None,
            bypasses_provider: false,
            twiml_at: None,
            on_call_start: Vec::new(),
            results: BTreeMap::new(),
            variables: Vec::new(),
            context_taken_at: None,
            context_injected_at: None,
            told_later: Vec::new(),
            to_tell: Vec::new(),
            telling: Vec::new(),
            background: Vec::new(),
            background_told: Vec::new(),
            read_back: None,
            context_error: None,
            context_failed_at: None,
            failed_executions: Vec::new(),
            ended_at: None,
            ended_reason: None,
            duration_seconds: None,
            cost: None,
            cost_parts: BTreeMap::new(),
            cost_at: None,
            connected_at: None,
            agent_spoke_at: None,
            caller_spoke_at: None,
            agent_hung_at: None,
            transfers: Vec::new(),
            transfer: None,
            handed_to: None,
            returned_from: None,
            former_calls: Vec::new(),
            preface: None,
            claim_check: None,
            created_at: now,
            updated_at: now,
            expires_at: Some(expires_at),
        }
    }

    /// The calls from which the caller returned, the first one first.
    pub fn earlier_calls(&self) -> &[CallId] {
        if self.former_calls.is_empty() { self.returned_from.as_slice() } else { &self.former_calls }
    }

    /// The call under which effects are claimed: the first one; this one in a row of an older version.
    pub fn first_call(&self) -> &CallId {
        self.former_calls.first().unwrap_or(&self.id)
    }

    pub fn waits_for_answer(&self) -> bool {
        self.direction == CallDirection::Outbound && self.connected_at.is_none() && !self.is_over()
    }

    /// Who called: the person, or in an outbound call the organization.
    pub fn from_number(&self) -> &str {
        match self.direction {
            CallDirection::Inbound => &self.caller_phone_number,
            CallDirection::Outbound => self.called_phone_number.as_str(),
        }
    }

    pub fn to_number(&self) -> &str {
        match self.direction {
            CallDirection::Inbound => self.called_phone_number.as_str(),
            CallDirection::Outbound => &self.caller_phone_number,
        }
    }

    pub fn has_all_results(&self) -> bool {
        self.on_call_start.iter().all(|tool| self.results.contains_key(&tool.execution_id.to_string()))
    }

    /// False after expiry: DynamoDB drops rows up to two days late.
    pub fn is_kept(&self) -> bool {
        self.expires_at.is_none_or(|at| at > Timestamp::now().as_seconds())
    }

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
