//! The context of a tool call: its organization, subject, conversation and deadline.

use crate::{
    Deadline,
    models::{AutomationId, Call, CallId, E164, ExecutionOrigin, OrganizationId, PhoneNumber, RunId, ThreadId, UserId},
};

#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    pub organization: OrganizationId,
    /// Who asked; none for a call or a schedule.
    pub user: Option<&'a UserId>,
    pub subject: Subject<'a>,
    /// The automation whose run calls; none elsewhere.
    pub automation: Option<AutomationId>,
    /// The request's name, stable across redeliveries: VAPI's id of the tool call, the id of a queued execution, a call's
    /// position in a run. The same name is the same execution.
    pub delivery: Option<&'a str>,
    pub conversation: &'a Conversation,
    pub trigger: ExecutionOrigin,
    pub deadline: Deadline,
}

/// The scope in which the same arguments are the same effect; the caller when the call is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Call(&'a CallId),
    Caller(&'a str),
    Run(RunId),
    /// By its id. Another action with the same arguments acts again.
    Action {
        run: RunId,
        /// The first of a chain of retries.
        claimed_by: RunId,
        action: &'a str,
    },
    /// A person's message and its processing.
    Turn {
        thread: ThreadId,
        turn: u32,
    },
    /// Outside of any call, or of an unknown one.
    Request(&'a str),
}

/// Verified; empty outside of a call.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// As the network gave it, maybe no number (`anonymous`, `client:…`).
    pub caller: Option<String>,
    pub called: Option<E164>,
    /// If it is the organization's.
    pub line: Option<PhoneNumber>,
    /// If the call came in through us.
    pub call: Option<Call>,
}

impl Conversation {
    /// `None` for `anonymous`, a client's address and the placeholder of a withheld number.
    pub fn caller_number(&self) -> Option<E164> {
        number_of(self.caller.as_deref()?)
    }
}

fn number_of(caller: &str) -> Option<E164> {
    caller.parse().ok().filter(|number: &E164| !number.is_withheld())
}

impl<'a> CallContext<'a> {
    #[must_use]
    pub fn until(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }

    #[must_use]
    pub fn delivered(self, delivery: &'a str) -> Self {
        Self { delivery: Some(delivery), ..self }
    }

    pub fn call_id(&self) -> Option<&'a CallId> {
        match self.subject {
            Subject::Call(id) => Some(id),
            _ => None,
        }
    }

    pub fn run_id(&self) -> Option<RunId> {
        match self.subject {
            Subject::Run(run) | Subject::Action { run, .. } => Some(run),
            _ => None,
        }
    }
}

impl<'a> Subject<'a> {
    /// The call, else the caller unless withheld, else the request.
    pub fn of(call: Option<&'a CallId>, caller: Option<&'a str>, request: &'a str) -> Self {
        match (call, caller.filter(|caller| number_of(caller).is_some())) {
            (Some(call), _) => Self::Call(call),
            (None, Some(caller)) => Self::Caller(caller),
            (None, None) => Self::Request(request),
        }
    }

    /// Unique together within an organization.
    pub fn parts(self) -> (&'static str, String) {
        match self {
            Self::Call(call) => ("call", call.to_string()),
            Self::Caller(caller) => ("caller", caller.to_owned()),
            Self::Run(run) => ("run", run.to_string()),
            Self::Action { claimed_by, action, .. } => ("action", format!("{claimed_by} {action}")),
            Self::Turn { thread, turn } => ("turn", format!("{thread}#{turn}")),
            Self::Request(request) => ("request", request.to_owned()),
        }
    }
}
