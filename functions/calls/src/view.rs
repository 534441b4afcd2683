//! A call as its organization sees it; unknown fields are null.
//!
//! The control URL and the results of the call's tools stay in the row.

use serde::Serialize;
use shared::models::{AgentId, Call, CallId, CallStatus, E164, PhoneNumberId, Timestamp};

use crate::timeline::TimelineEntry;

shared::described! {
    CallView => {"$ref": "#/components/schemas/CallWithoutTimeline"},
    CallWithTimeline => {"$ref": "#/components/schemas/CallWithTimeline"},
}

#[derive(Debug, Serialize)]
pub(crate) struct CallView {
    id: CallId,
    call_sid: Option<String>,
    agent_id: Option<AgentId>,
    phone_number_id: Option<PhoneNumberId>,
    caller_phone_number: Option<String>,
    called_phone_number: Option<E164>,
    status: Option<CallStatus>,
    created_at: Option<Timestamp>,
    ended_at: Option<Timestamp>,
    ended_reason: Option<String>,
    duration_seconds: Option<f64>,
    cost: Option<f64>,
    failed_tools: Option<usize>,
}

#[derive(Debug, Serialize)]
pub(crate) struct CallWithTimeline {
    #[serde(flatten)]
    pub(crate) call: CallView,
    pub(crate) timeline: Vec<TimelineEntry>,
    /// False if older executions are left out.
    pub(crate) timeline_complete: bool,
}

impl CallView {
    /// A call that came in at VAPI and not through us.
    pub(crate) fn from_executions(id: CallId) -> Self {
        Self {
            id,
            call_sid: None,
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
        }
    }
}

impl From<Call> for CallView {
    fn from(row: Call) -> Self {
        Self {
            id: row.id,
            call_sid: row.call_sid,
            agent_id: row.agent_id,
            phone_number_id: row.phone_number_id,
            caller_phone_number: Some(row.caller_phone_number),
            called_phone_number: Some(row.called_phone_number),
            status: row.status,
            created_at: Some(row.created_at),
            ended_at: row.ended_at,
            ended_reason: row.ended_reason,
            duration_seconds: row.duration_seconds,
            cost: row.cost,
            failed_tools: Some(row.failed_executions.len()),
        }
    }
}
