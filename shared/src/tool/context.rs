//! For whom a tool is called.

use crate::{
    Deadline,
    models::{Call, CallId, E164, OrganizationId, PhoneNumber, RunId, ThreadId, Trigger, UserId},
};

/// For whom a tool is called, why, and until when.
#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    pub organization: OrganizationId,
    /// The person who asked; none for a call or a schedule.
    pub user: Option<&'a UserId>,
    pub subject: Subject<'a>,
    /// The name of this request, where it has one that its redelivery keeps: VAPI's id of the tool call, the id of a queued
    /// execution, the place of a call in a run. The same name is the same execution, however late it comes again.
    pub delivery: Option<&'a str>,
    pub conversation: &'a Conversation,
    pub trigger: Trigger,
    pub deadline: Deadline,
}

/// Whose effect it is: the same arguments count as the same effect within one call, run, action or request, or for one caller
/// when the call is not known. A request of which neither is known is a subject of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Call(&'a CallId),
    Caller(&'a str),
    /// A run of an automation.
    Run(RunId),
    /// An action of a run, by its id: another action that does the same does it again.
    Action {
        run: RunId,
        action: &'a str,
    },
    /// A turn of a conversation with a person: their message, and what is done until it is answered.
    Turn {
        thread: ThreadId,
        turn: u32,
    },
    /// A request outside of any call, or of an unknown one, by its name.
    Request(&'a str),
}

/// The phone call a tool runs in, as far as it has been verified. Empty where there is none.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// As the network gave it; may be no number at all (`anonymous`, `client:…`).
    pub caller: Option<String>,
    pub called: Option<E164>,
    /// The called number's row, when it is one of the organization's.
    pub line: Option<PhoneNumber>,
    /// The call's row, when it came in through us to the organization.
    pub call: Option<Call>,
}

impl Conversation {
    /// The caller's number, if the network gave one: neither `anonymous` nor the address of a client is a number, and what stands
    /// for a withheld number belongs to nobody.
    pub fn caller_number(&self) -> Option<E164> {
        number_of(self.caller.as_deref()?)
    }
}

fn number_of(caller: &str) -> Option<E164> {
    caller.parse().ok().filter(|number: &E164| !number.is_withheld())
}

impl<'a> CallContext<'a> {
    /// The same, until an earlier moment.
    #[must_use]
    pub fn until(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }

    /// The same, for the request of this name.
    #[must_use]
    pub fn delivered(self, delivery: &'a str) -> Self {
        Self { delivery: Some(delivery), ..self }
    }

    /// VAPI's id of the call.
    pub fn call_id(&self) -> Option<&'a CallId> {
        match self.subject {
            Subject::Call(id) => Some(id),
            _ => None,
        }
    }

    /// The run of an automation.
    pub fn run_id(&self) -> Option<RunId> {
        match self.subject {
            Subject::Run(run) | Subject::Action { run, .. } => Some(run),
            _ => None,
        }
    }
}

impl<'a> Subject<'a> {
    /// The call, else the caller, else the request. Who withholds the number is nobody in particular.
    pub fn of(call: Option<&'a CallId>, caller: Option<&'a str>, request: &'a str) -> Self {
        match (call, caller.filter(|caller| number_of(caller).is_some())) {
            (Some(call), _) => Self::Call(call),
            (None, Some(caller)) => Self::Caller(caller),
            (None, None) => Self::Request(request),
        }
    }

    /// Its kind and its name, which together are unique within an organization.
    pub fn parts(self) -> (&'static str, String) {
        match self {
            Self::Call(call) => ("call", call.to_string()),
            Self::Caller(caller) => ("caller", caller.to_owned()),
            Self::Run(run) => ("run", run.to_string()),
            Self::Action { run, action } => ("action", format!("{run} {action}")),
            Self::Turn { thread, turn } => ("turn", format!("{thread}#{turn}")),
            Self::Request(request) => ("request", request.to_owned()),
        }
    }
}
