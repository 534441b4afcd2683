//! The reasons why an action makes no request.

use super::variables::Unknown;
use crate::{
    Error, Result, clients,
    models::{ExecutionStatus, Fault},
    tool::{CallContext, ToolOutcome},
};

/// A sentence for the model, and whose fault it is. A text alone is about the model's arguments.
#[derive(Debug)]
pub(super) struct NoRequest {
    sentence: String,
    fault: Fault,
    status: ExecutionStatus,
}

impl NoRequest {
    pub(super) fn of(fault: Fault, sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), fault, status: ExecutionStatus::Failed }
    }

    pub(super) fn limited(sentence: impl Into<String>) -> Self {
        Self { status: ExecutionStatus::Limited, ..Self::of(Fault::Configuration, sentence) }
    }

    pub(super) fn into_sentence(self) -> String {
        self.sentence
    }

    pub(super) fn into_outcome(self) -> ToolOutcome {
        ToolOutcome::failed(self.sentence).status(self.status).at_fault(self.fault)
    }
}

impl From<String> for NoRequest {
    fn from(sentence: String) -> Self {
        Self::of(Fault::Model, sentence)
    }
}

impl From<&str> for NoRequest {
    fn from(sentence: &str) -> Self {
        Self::of(Fault::Model, sentence)
    }
}

impl From<Unknown> for NoRequest {
    fn from(unknown: Unknown) -> Self {
        Self::of(Fault::Caller, unknown.sentence())
    }
}

/// The reason why an action did not run.
pub(super) enum NotRun {
    NoRequest(NoRequest),
    Outage(Error),
}

impl NotRun {
    pub(super) fn into_outcome(self) -> Result<ToolOutcome> {
        match self {
            Self::NoRequest(none) => Ok(none.into_outcome()),
            Self::Outage(outage) => Err(outage),
        }
    }
}

impl From<NoRequest> for NotRun {
    fn from(none: NoRequest) -> Self {
        Self::NoRequest(none)
    }
}

impl From<Error> for NotRun {
    fn from(outage: Error) -> Self {
        Self::Outage(outage)
    }
}

/// The outcome of an action whose secret cannot be read.
///
/// # Errors
/// The failure, if the secret may be readable in a moment: an outage of our own before any effect.
pub(super) fn without_secret(
    error: clients::Error,
    sentence: impl Into<String>,
    context: &CallContext<'_>,
) -> Result<ToolOutcome> {
    if error.transient() {
        return Err(error.into());
    }
    context.subject.count_fault(context.trigger);
    Ok(ToolOutcome::failed(sentence).because(error))
}
