//! Running a tool: the one way from arguments to an answer.

use serde_json::{Map, Value};

use super::{Action, Conversation, ToolConfig, query::Knowledge};
use crate::{
    Deadline, Result,
    accounts::Accounts,
    clients::{self, CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    cut::fit,
    models::{ExecutionStatus, OrganizationId},
    store::{Agents, PhoneNumbers},
};

/// What a model is given back at most, in bytes; VAPI warns of larger answers, and a model drowns in them.
const LONGEST_RESULT: usize = 8_000;

/// What tools act through.
#[derive(Clone)]
pub struct Services {
    pub agents: Agents,
    pub phone_numbers: PhoneNumbers,
    pub secrets: Secrets,
    pub twilio: Twilio,
    pub pipedream: Pipedream,
    /// Name or ARN of the Pipedream project's secret.
    pub pipedream_secret: String,
    pub vapi: Vapi,
    pub accounts: Accounts,
    pub call_control: CallControl,
    pub outbound: Outbound,
    pub knowledge: Knowledge,
}

/// What a run left behind outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing: it only read, or certainly did not act.
    None,
    /// It acted, or was refused for good after it began.
    Done,
    /// These parts are done or may be, with their outcomes; the others certainly are not.
    Partial(Map<String, Value>),
    /// It may have acted.
    Unknown,
}

/// A finished run.
#[derive(Debug)]
pub struct Ran {
    /// `{"success": true, "result", "exports"?}` or `{"success": false, "error": "one sentence", "result"?}`.
    pub answer: Map<String, Value>,
    pub status: ExecutionStatus,
    pub effect: Effect,
    /// Why it failed, for the log.
    pub cause: Option<clients::Error>,
}

impl Ran {
    pub fn succeeded(result: impl Into<Value>) -> Self {
        let answer = Map::from_iter([
            ("success".to_owned(), true.into()),
            ("result".to_owned(), fit(result.into(), LONGEST_RESULT)),
        ]);
        Self { answer, status: ExecutionStatus::Succeeded, effect: Effect::None, cause: None }
    }

    /// A failure the model can speak about: one sentence.
    pub fn failed(sentence: impl Into<String>) -> Self {
        let answer =
            Map::from_iter([("success".to_owned(), false.into()), ("error".to_owned(), sentence.into().into())]);
        Self { answer, status: ExecutionStatus::Failed, effect: Effect::None, cause: None }
    }

    /// An effect that may have happened, said so.
    pub fn unknown(sentence: impl Into<String>) -> Self {
        Self::failed(sentence).status(ExecutionStatus::Unknown).with(Effect::Unknown)
    }

    #[must_use]
    pub(super) fn and_result(mut self, result: Value) -> Self {
        self.answer.insert("result".into(), fit(result, LONGEST_RESULT));
        self
    }

    #[must_use]
    pub(super) fn and_exports(mut self, exports: Value) -> Self {
        if exports.as_object().is_some_and(|exports| !exports.is_empty()) {
            self.answer.insert("exports".into(), fit(exports, LONGEST_RESULT));
        }
        self
    }

    #[must_use]
    pub(super) fn with(mut self, effect: Effect) -> Self {
        self.effect = effect;
        self
    }

    #[must_use]
    pub fn status(mut self, status: ExecutionStatus) -> Self {
        self.status = status;
        self
    }

    #[must_use]
    pub fn because(mut self, cause: clients::Error) -> Self {
        self.cause = Some(cause);
        self
    }
}

/// Runs a tool once. The arguments have been checked; `done` names the parts of the effect that an earlier try completed.
///
/// # Errors
/// Only for an outage of our own; what the tool or a vendor makes of it is in [`Ran`].
pub async fn run(
    config: &ToolConfig,
    services: &Services,
    organization: OrganizationId,
    conversation: &Conversation,
    arguments: &Map<String, Value>,
    done: &Map<String, Value>,
    deadline: Deadline,
) -> Result<Ran> {
    match &config.action {
        Action::ApiRequest(action) => Ok(action.run(services, conversation, arguments, deadline).await),
        Action::PipedreamAction(action) => {
            Ok(action.run(services, organization, conversation, arguments, deadline).await)
        }
        Action::Query(action) => action.run(services, organization, conversation, arguments).await,
        Action::Sms(action) => action.run(services, organization, conversation, arguments, done, deadline).await,
        Action::TransferCall(action) => action.run(services, organization, conversation, arguments, deadline).await,
    }
}
