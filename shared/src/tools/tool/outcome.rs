//! The outcome of a tool call.

use serde_json::{Map, Value};

use super::RecipientOutcome;
use crate::{
    clients::{self, Failure, UpstreamService, twilio},
    cut::fit,
    models::{ExecutionId, ExecutionStatus, Fault, Spent},
    redaction::HiddenTexts,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The call only read, or certainly did not act.
    None,
    /// The call acted, or was refused for good after it began.
    Done,
    /// The listed parts are done or may be, with their outcomes; the others certainly are not. `unknown`: some listed
    /// part is uncertain.
    Partial { done: Map<String, Value>, unknown: bool },
    /// The call may have acted; `done` lists the known parts.
    Unknown { done: Map<String, Value> },
}

#[derive(Debug)]
pub struct ToolOutcome {
    /// The answer to the caller: `{"success": true, "result", "exports"?, "logs"?}` or `{"success": false, "error":
    /// "one sentence", "result"?, "logs"?}`.
    pub answer: Map<String, Value>,
    pub status: ExecutionStatus,
    pub effect: Effect,
    pub recipients: Vec<RecipientOutcome>,
    /// The answer of an earlier execution of the same effect; the history says so.
    pub repeats: bool,
    /// Whose fault a failure is, where the cause does not tell.
    pub fault: Option<Fault>,
    /// The cause of a failure, for the log.
    pub cause: Option<clients::Error>,
    pub execution: Option<ExecutionId>,
    /// The cost of the tool's own model requests.
    pub spent: Spent,
}

impl ToolOutcome {
    pub fn succeeded(result: impl Into<Value>) -> Self {
        Self::new(true, "result", result.into(), ExecutionStatus::Succeeded)
    }

    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::new(false, "error", sentence.into().into(), ExecutionStatus::Failed)
    }

    pub fn of(result: Result<impl Into<Value>, String>) -> Self {
        match result {
            Ok(result) => Self::succeeded(result),
            Err(sentence) => Self::failed(sentence),
        }
    }

    pub fn unknown(sentence: impl Into<String>) -> Self {
        Self::failed(sentence).status(ExecutionStatus::Unknown).with(Effect::Unknown { done: Map::new() })
    }

    fn new(success: bool, name: &str, value: Value, status: ExecutionStatus) -> Self {
        let answer = Map::from_iter([("success".to_owned(), success.into()), (name.to_owned(), value)]);
        Self {
            answer,
            status,
            effect: Effect::None,
            recipients: Vec::new(),
            repeats: false,
            fault: None,
            cause: None,
            execution: None,
            spent: Spent::default(),
        }
    }

    #[must_use]
    pub fn and_result(mut self, result: Value) -> Self {
        self.answer.insert("result".into(), result);
        self
    }

    #[must_use]
    pub fn and_exports(mut self, exports: Value) -> Self {
        if exports.as_object().is_some_and(|exports| !exports.is_empty()) {
            self.answer.insert("exports".into(), exports);
        }
        self
    }

    #[must_use]
    pub fn with(mut self, effect: Effect) -> Self {
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

    #[must_use]
    pub fn at_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Whose fault it is that the call did not succeed; `None` of a call that succeeded or waits.
    pub fn fault(&self) -> Option<Fault> {
        if !ExecutionStatus::NOT_SUCCEEDED.contains(&self.status) {
            return None;
        }
        let by_cause = || self.cause.as_ref().map(fault_of);
        let by_status = || match self.status {
            ExecutionStatus::Limited => Fault::Configuration,
            _ => Fault::Service,
        };
        Some(self.fault.or_else(by_cause).unwrap_or_else(by_status))
    }

    #[must_use]
    pub fn recorded(mut self, execution: ExecutionId) -> Self {
        self.execution = Some(execution);
        self
    }

    #[must_use]
    pub fn hiding(mut self, hidden: &HiddenTexts) -> Self {
        self.answer.values_mut().for_each(|value| *value = hidden.replaced_in(value.take()));
        self
    }

    /// The same outcome with result and exports cut to this many bytes each.
    #[must_use]
    pub fn cut_to(mut self, budget: usize) -> Self {
        for name in ["result", "exports"] {
            if let Some(value) = self.answer.get_mut(name) {
                *value = fit(value.take(), budget);
            }
        }
        self
    }

    pub fn is_failed(&self) -> bool {
        self.answer.get("success") != Some(&Value::Bool(true))
    }

    /// For a model that sees success elsewhere: the result or the error alone, or everything but `success` if there is more.
    pub fn into_model_value(self) -> Value {
        let mut answer = self.answer;
        let failed = answer.remove("success") != Some(Value::Bool(true));
        let only = if failed { "error" } else { "result" };
        match answer.remove(only) {
            Some(value) if answer.is_empty() => value,
            value => {
                answer.extend(value.map(|value| (only.to_owned(), value)));
                Value::Object(answer)
            }
        }
    }
}

fn fault_of(cause: &clients::Error) -> Fault {
    use UpstreamService::{CallControl, Scheduler, SecretsManager, Sqs, Twilio, Vapi};
    match (cause.service, &cause.failure) {
        _ if cause.refuses_platform() => Fault::Ours,
        (SecretsManager | Sqs | Scheduler, _) => Fault::Ours,
        (_, Failure::Refused(_)) => Fault::Configuration,
        (Twilio, Failure::Rejected { status, excerpt }) => twilio::fault(*status, excerpt),
        // Their requests hold ids of the set-up; the arguments were checked before.
        (Vapi | CallControl, Failure::Rejected { status, .. }) => Fault::of_set_up(*status),
        (_, Failure::Rejected { status, .. }) => Fault::of_status(*status),
        _ => Fault::Service,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_model_is_told_the_result_or_the_error_and_everything_where_there_is_more() {
        let logged = |mut outcome: ToolOutcome| {
            outcome.answer.insert("logs".into(), json!(["x"]));
            outcome
        };
        for (outcome, failed, told) in [
            (ToolOutcome::succeeded(json!({"a": 1})), false, json!({"a": 1})),
            (ToolOutcome::failed("No."), true, json!("No.")),
            (ToolOutcome::failed("Half.").and_result(json!([1])), true, json!({"error": "Half.", "result": [1]})),
            (logged(ToolOutcome::succeeded(1)), false, json!({"result": 1, "logs": ["x"]})),
        ] {
            assert_eq!(outcome.is_failed(), failed);
            assert_eq!(outcome.into_model_value(), told);
        }
    }
}
