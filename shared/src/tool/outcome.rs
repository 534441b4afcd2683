//! What came of a tool.

use serde_json::{Map, Value};

use super::RecipientOutcome;
use crate::{
    clients,
    cut::fit,
    models::{ExecutionId, ExecutionStatus, Spent},
    redaction::HiddenTexts,
};

/// What a call of a tool left behind outside.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Nothing: it only read, or certainly did not act.
    None,
    /// It acted, or was refused for good after it began.
    Done,
    /// These parts are done or may be, with their outcomes; the others certainly are not. `unknown`: it is not known of all
    /// of these whether they are done.
    Partial { done: Map<String, Value>, unknown: bool },
    /// It may have acted; `done` says what is known of each part, where there are several.
    Unknown { done: Map<String, Value> },
}

/// What came of one call of a tool.
#[derive(Debug)]
pub struct ToolOutcome {
    /// What the caller is told: `{"success": true, "result", "exports"?, "logs"?}` or
    /// `{"success": false, "error": "one sentence", "result"?, "logs"?}`.
    pub answer: Map<String, Value>,
    pub status: ExecutionStatus,
    pub effect: Effect,
    /// What became of a message for each recipient; empty for a tool that has none.
    pub recipients: Vec<RecipientOutcome>,
    /// It was told before, by another execution of the same effect; the history says so.
    pub repeats: bool,
    /// Why it failed, for the log.
    pub cause: Option<clients::Error>,
    /// Its place in the history, if it has one.
    pub execution: Option<ExecutionId>,
    /// What a model that it asked has cost.
    pub spent: Spent,
}

impl ToolOutcome {
    pub fn succeeded(result: impl Into<Value>) -> Self {
        Self::new(true, "result", result.into(), ExecutionStatus::Succeeded)
    }

    /// A failure the model can speak about: one sentence.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Self::new(false, "error", sentence.into().into(), ExecutionStatus::Failed)
    }

    /// An effect that may have happened, said so.
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

    /// The same, recorded as this execution.
    #[must_use]
    pub fn recorded(mut self, execution: ExecutionId) -> Self {
        self.execution = Some(execution);
        self
    }

    /// The same, told without these texts.
    #[must_use]
    pub fn hiding(mut self, hidden: &HiddenTexts) -> Self {
        self.answer.values_mut().for_each(|value| *value = hidden.replaced_in(value.take()));
        self
    }

    /// The same with result and exports cut to so many bytes each.
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

    /// What a model is told where nothing else marks success and failure: the result or the error alone, or everything but
    /// `success` where there is more.
    pub fn into_told(self) -> Value {
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
            assert_eq!(outcome.into_told(), told);
        }
    }
}
