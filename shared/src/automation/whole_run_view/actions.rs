//! The actions of a run as they are shown: redacted, and cut so that all of them can be.

use crate::{
    models::{ActionResult, ActionStatus, ExecutionId, Timestamp},
    redaction::{MarkedCall, Transcript},
};
use serde::Serialize;
use serde_json::Value;

use super::steps::json_or_text;

/// What became of an action, and why.
#[derive(Debug, Serialize)]
pub(super) struct ActionView {
    action_id: String,
    tool: String,
    status: ActionStatus,
    success: bool,
    skipped: bool,
    /// What its tool was given, or would have been.
    arguments: Option<Value>,
    /// What its tool gave back; in a dry run what it would have sent.
    output: Option<Value>,
    error: Option<String>,
    /// Its condition, clause by clause, with the values that were found.
    condition_result: Option<Value>,
    /// Its place in the history.
    execution_id: Option<ExecutionId>,
    /// How often its tool was called.
    attempts: u32,
    started_at: Timestamp,
    duration_ms: u64,
}

/// The actions of a run, and how its texts are shown.
pub(super) struct Actions<'a> {
    actions: Vec<Action<'a>>,
    pub(super) transcript: Transcript,
}

/// An action whose texts were read.
struct Action<'a> {
    result: &'a ActionResult,
    arguments: Option<Value>,
    output: Option<Value>,
    condition: Option<Value>,
}

impl<'a> Actions<'a> {
    pub(super) fn of(results: &'a [ActionResult]) -> Self {
        let read = |text: &Option<String>| text.as_deref().map(json_or_text);
        let actions: Vec<Action<'a>> = results
            .iter()
            .map(|result| Action {
                result,
                arguments: read(&result.arguments),
                output: result.output.as_deref().map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into())),
                condition: read(&result.condition_result),
            })
            .collect();
        let calls = actions.iter().map(|action| MarkedCall {
            marks: &action.result.redact,
            arguments: action.arguments.as_ref(),
            result: action.output.as_ref().unwrap_or(&Value::Null),
        });
        let transcript = Transcript::of(calls);
        Self { actions, transcript }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Bytes of all texts, each cut to the budget, as long as nothing is hidden.
    pub(super) fn size(&self, budget: usize) -> usize {
        let texts = self.actions.iter().flat_map(|Action { result, .. }| {
            [&result.arguments, &result.output, &result.condition_result, &result.error]
        });
        texts.flatten().map(|text| text.len().min(budget)).sum()
    }

    /// Each text with at most `budget` bytes, the marker apart.
    pub(super) fn shown(&self, budget: usize) -> Vec<ActionView> {
        self.actions.iter().map(|action| self.action(action, budget)).collect()
    }

    fn action(&self, Action { result, arguments, output, condition }: &Action<'_>, budget: usize) -> ActionView {
        let (marks, transcript) = (&result.redact, &self.transcript);
        ActionView {
            action_id: result.action_id.clone(),
            tool: result.tool.clone(),
            status: result.status,
            success: result.status == ActionStatus::Succeeded,
            skipped: result.status == ActionStatus::Skipped,
            arguments: arguments.as_ref().map(|arguments| transcript.arguments(marks, arguments, budget)),
            output: output.as_ref().map(|output| transcript.result(marks, output, budget)),
            error: result.error.as_ref().map(|error| transcript.text(error, budget)),
            condition_result: condition.as_ref().map(|condition| transcript.result(&[], condition, budget)),
            execution_id: result.execution_id,
            attempts: result.attempts,
            started_at: result.started_at,
            duration_ms: result.duration_ms,
        }
    }
}
