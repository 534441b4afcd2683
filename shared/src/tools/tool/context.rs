//! The context of a tool call: its organization, subject, conversation and deadline.

use std::time::Duration;

use super::SourcePoll;
use crate::{
    Deadline, Error, Result,
    models::{
        AutomationId, Call, CallId, E164, ExecutionOrigin, OrganizationId, PhoneNumber, RunId, ThreadId, Unowned,
        UserId,
    },
    store::PhoneNumbers,
    telemetry,
};

/// Minimal remaining time to start a call. An effect that begins later and is broken off would end unknown.
pub const CALL_NEEDS: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy)]
pub struct CallContext<'a> {
    pub organization: OrganizationId,
    /// The person who asked; none for a call or a schedule.
    pub user: Option<&'a UserId>,
    pub subject: Subject<'a>,
    /// The automation whose run calls; none elsewhere.
    pub automation: Option<AutomationId>,
    /// The request's name, stable across redeliveries: VAPI's id of the tool call, the id of a queued execution, a call's
    /// position in a run. The same name is the same execution.
    pub delivery: Option<&'a str>,
    pub conversation: &'a Conversation,
    pub trigger: ExecutionOrigin,
    /// The reason why an effect must not begin any more, a sentence. The outcome of an earlier delivery is still returned.
    pub refused: Option<&'a str>,
    pub deadline: Deadline,
}

/// The scope in which the same arguments are the same effect: a call, run, action or request, or a caller when the call is
/// unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject<'a> {
    Call(&'a CallId),
    Caller(&'a str),
    Run(RunId),
    /// An action of a run, by its id. Another action with the same arguments acts again.
    Action {
        run: RunId,
        /// The run that claims its effect: the first one of a chain of retries.
        claimed_by: RunId,
        action: &'a str,
    },
    /// A turn of a conversation: a person's message and its processing.
    Turn {
        thread: ThreadId,
        turn: u32,
    },
    /// A request outside of any call, or of an unknown one, by its name.
    Request(&'a str),
    /// A poll of an automation's source.
    Poll(&'a SourcePoll),
}

/// The verified facts about the phone call. Empty outside of a call.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The caller as the network gave it; not always a number (`anonymous`, `client:…`).
    pub caller: Option<String>,
    pub called: Option<E164>,
    /// The called number's row, if it is the organization's.
    pub line: Option<PhoneNumber>,
    /// The call's row, if the call came in through us to the organization.
    pub call: Option<Call>,
}

impl Conversation {
    /// `caller` and `called` are the voice platform's word, and `line` is the row of `called`. A call that came in through us has
    /// the numbers that Twilio signed.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for another organization's call.
    pub async fn verified(
        phone_numbers: &PhoneNumbers,
        organization: OrganizationId,
        caller: Option<String>,
        called: Option<E164>,
        call: Option<Unowned<Call>>,
        line: Option<Unowned<PhoneNumber>>,
    ) -> Result<Self> {
        let line = line.and_then(|line| line.for_owner(organization));
        let Some(call) = call else { return Ok(Self { caller, called, line, call: None }) };
        let call = call
            .for_owner(organization)
            .ok_or(Error::Forbidden("the call does not belong to the tool's organization"))?;
        let called = &call.called_phone_number;
        let line = match line.filter(|line| line.number == *called) {
            Some(line) => Some(line),
            // The platform named another number than Twilio did, or none.
            None => phone_numbers.by_number(called).await?.and_then(|line| line.for_owner(organization)),
        };
        let (caller, called) = (Some(call.caller_phone_number.clone()), Some(called.clone()));
        Ok(Self { caller, called, line, call: Some(call) })
    }

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

    pub const fn call_id(&self) -> Option<&'a CallId> {
        self.subject.call_id()
    }

    pub fn source_poll(&self) -> Option<&'a SourcePoll> {
        match self.subject {
            Subject::Poll(poll) => Some(poll),
            _ => None,
        }
    }

    pub const fn run_id(&self) -> Option<RunId> {
        self.subject.run_id()
    }
}

impl<'a> Subject<'a> {
    /// The call, else the caller, else the request. A withheld number identifies nobody.
    pub fn of(call: Option<&'a CallId>, caller: Option<&'a str>, request: &'a str) -> Self {
        match (call, caller.filter(|caller| number_of(caller).is_some())) {
            (Some(call), _) => Self::Call(call),
            (None, Some(caller)) => Self::Caller(caller),
            (None, None) => Self::Request(request),
        }
    }

    pub const fn call_id(self) -> Option<&'a CallId> {
        match self {
            Self::Call(id) => Some(id),
            _ => None,
        }
    }

    pub const fn run_id(self) -> Option<RunId> {
        match self {
            Self::Run(run) | Self::Action { run, .. } => Some(run),
            _ => None,
        }
    }

    /// Counts a tool that a fault of ours stopped. An alarm watches `conversation`: phone calls, with the tools of their starts,
    /// and without chats.
    pub fn count_fault(self, trigger: ExecutionOrigin) {
        telemetry::tool_fault(match (trigger, self) {
            (ExecutionOrigin::Conversation, Self::Turn { .. }) => "chat",
            (ExecutionOrigin::CallStart, _) => ExecutionOrigin::Conversation.as_str(),
            (other, _) => other.as_str(),
        });
    }

    /// Kind and name, unique together within an organization; where a service's tool is called, over all organizations, because its
    /// id is the same in each.
    pub fn parts(self) -> (&'static str, String) {
        match self {
            Self::Call(call) => ("call", call.to_string()),
            Self::Caller(caller) => ("caller", caller.to_owned()),
            Self::Run(run) => ("run", run.to_string()),
            Self::Action { claimed_by, action, .. } => ("action", format!("{claimed_by} {action}")),
            Self::Turn { thread, turn } => ("turn", format!("{thread}#{turn}")),
            Self::Request(request) => ("request", request.to_owned()),
            Self::Poll(poll) => ("request", poll.name().to_owned()),
        }
    }
}
