//! A call as its organization sees it; unknown fields are null.
//!
//! The control URL and the results of the call's tools stay in the row.

use serde::Serialize;
use shared::{
    described::Described,
    models::{AgentId, Call, CallDirection, CallId, CallStatus, ClaimCheck, E164, PhoneNumberId, Timestamp},
};

use crate::{events::LONGEST_REASON, timeline::TimelineEntry};

/// A call. Unknown fields are null.
#[derive(Debug, Serialize, Described)]
pub(crate) struct CallView {
    /// VAPI's id of the call.
    id: CallId,
    /// Twilio's id of it.
    call_sid: Option<String>,
    /// `outbound`: a tool placed the call.
    direction: Option<CallDirection>,
    agent_id: Option<AgentId>,
    phone_number_id: Option<PhoneNumberId>,
    /// As Twilio gave it, in full; no number where the caller has none or withholds it (`anonymous`, `sip:…`).
    caller_phone_number: Option<String>,
    /// In E.164 form.
    called_phone_number: Option<E164>,
    /// How far it is, in VAPI's words; `other` is a word that is not among these.
    status: Option<CallStatus>,
    /// When it came in, or was placed.
    created_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    /// In VAPI's words.
    #[schema(maxLength = LONGEST_REASON)]
    ended_reason: Option<String>,
    #[schema(minimum = 0)]
    duration_seconds: Option<f64>,
    /// VAPI's charge in US dollars.
    #[schema(minimum = 0)]
    cost: Option<f64>,
    /// Executions in the call that did not succeed: failed, partial, limited, or with an unknown outcome.
    failed_tools: Option<usize>,
    /// The call before this one: it was transferred, nobody answered, and the caller returned to the agent.
    returned_from: Option<CallId>,
    /// The call in which the caller is back with the agent.
    returned_as: Option<CallId>,
    /// The agent's words compared with the effects of its tools; null without `verify_claims` of the organization's LLM account.
    claim_check: Option<ClaimCheck>,
}

#[derive(Debug, Serialize, Described)]
pub(crate) struct CallWithTimeline {
    #[serde(flatten)]
    pub(crate) call: CallView,
    pub(crate) timeline: Vec<TimelineEntry>,
    /// False if runs are left out: the older ones of more than a thousand, or unreadable ones of a newer version.
    pub(crate) timeline_complete: bool,
}

impl CallView {
    /// A call that came in at VAPI and not through us.
    pub(crate) fn from_executions(id: CallId) -> Self {
        Self {
            id,
            call_sid: None,
            direction: None,
            agent_id: None,
            phone_number_id: None,
            caller_phone_number: None,
            called_phone_number: None,
            status: None,
            created_at: None,
            ended_at: None,
            ended_reason: None,
            duration_seconds: None,
            cost: None,
            failed_tools: None,
            returned_from: None,
            returned_as: None,
            claim_check: None,
        }
    }
}

impl From<Call> for CallView {
    fn from(row: Call) -> Self {
        let (caller, called) = (row.from_number().to_owned(), row.to_number().parse().ok());
        Self {
            id: row.id,
            call_sid: row.call_sid,
            direction: Some(row.direction),
            agent_id: row.agent_id,
            phone_number_id: row.phone_number_id,
            caller_phone_number: Some(caller),
            called_phone_number: called,
            status: row.status,
            created_at: Some(row.created_at),
            ended_at: row.ended_at,
            ended_reason: row.ended_reason,
            duration_seconds: row.duration_seconds,
            cost: row.cost,
            failed_tools: Some(row.failed_executions.len()),
            returned_from: row.returned_from,
            returned_as: row.transfer.and_then(|transfer| transfer.returned_as),
            claim_check: row.claim_check,
        }
    }
}
