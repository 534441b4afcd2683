//! The actions of a run as shown: redacted, and cut to a budget.

use super::steps::json_or_text;
use crate::{
    automation::expressions::conditions::Explanation,
    described::Described,
    models::{ActionResult, ActionStatus, ExecutionId, RunId, StepKind, Timestamp},
    redaction::{MarkedCall, Transcript},
};
use serde::Serialize;
use serde_json::Value;

/// The result of an action.
#[derive(Debug, Serialize, Described)]
#[schema(name = "RunAction")]
pub(super) struct ActionView {
    action_id: String,
    /// `action` calls a tool. `for_each` begins a loop, with the list that it goes through, and `for_each_end` ends it, with what its
    /// items gave. `choose` decides for a branch. `wait` has waited.
    kind: StepKind,
    /// Its place: `each[42].notify` in a loop, else its id.
    place: String,
    /// As the automation names it; `for_each`, `choose` or `wait` for other steps.
    tool: String,
    /// `unknown`: it may have acted, and is not done again. `skipped`: its condition did not hold. `not_sent`: in a dry run.
    /// `refused`: somebody refused it, or nobody approved it in time.
    status: ActionStatus,
    success: bool,
    skipped: bool,
    /// The tool's arguments, templates filled in; null without arguments.
    arguments: Option<Value>,
    /// The tool's result; in a dry run `{"dry_run", "would_send"}` if the tool has an effect.
    output: Option<Value>,
    /// Why it failed, was skipped or not done.
    error: Option<String>,
    /// A remark, such as how many items of a loop were done.
    note: Option<String>,
    #[schema(of = "Option<Explanation>")]
    condition_result: Option<Value>,
    /// Its place in the history, if its tool has one.
    execution_id: Option<ExecutionId>,
    /// The run whose result this is, if it was kept.
    kept_from: Option<RunId>,
    /// How often its tool was called.
    attempts: u32,
    started_at: Timestamp,
    duration_ms: u64,
}

pub(super) struct Actions<'a> {
    actions: Vec<ParsedResult<'a>>,
    pub(super) transcript: Transcript,
}

struct ParsedResult<'a> {
    result: &'a ActionResult,
    arguments: Option<Value>,
    output: Option<Value>,
    condition: Option<Value>,
}

impl<'a> Actions<'a> {
    pub(super) fn of(results: &'a [ActionResult]) -> Self {
        let read = |text: &Option<String>| text.as_deref().map(json_or_text);
        let actions: Vec<ParsedResult<'a>> = results
            .iter()
            .map(|result| ParsedResult {
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

    /// Upper bound of the text bytes under this budget, before redaction.
    pub(super) fn size(&self, budget: usize) -> usize {
        let texts = self.actions.iter().flat_map(|ParsedResult { result, .. }| {
            [&result.arguments, &result.output, &result.condition_result, &result.error, &result.note]
        });
        texts.flatten().map(|text| text.len().min(budget)).sum()
    }

    /// With at most `budget` bytes per text, not counting the cut marker.
    pub(super) fn shown(&self, budget: usize) -> Vec<ActionView> {
        self.actions.iter().map(|action| self.action(action, budget)).collect()
    }

    fn action(
        &self,
        ParsedResult { result, arguments, output, condition }: &ParsedResult<'_>,
        budget: usize,
    ) -> ActionView {
        let (marks, transcript) = (&result.redact, &self.transcript);
        ActionView {
            action_id: result.action_id.clone(),
            kind: result.kind,
            place: result.place().to_owned(),
            tool: result.tool.clone(),
            status: result.status,
            success: result.status == ActionStatus::Succeeded,
            skipped: result.status == ActionStatus::Skipped,
            arguments: arguments.as_ref().map(|arguments| transcript.arguments(marks, arguments, budget)),
            output: output.as_ref().map(|output| transcript.result(marks, output, budget)),
            error: result.error.as_ref().map(|error| transcript.text(error, budget)),
            note: result.note.as_ref().map(|note| transcript.text(note, budget)),
            condition_result: condition.as_ref().map(|condition| transcript.result(&[], condition, budget)),
            execution_id: result.execution_id,
            kept_from: result.kept_from,
            attempts: result.attempts,
            started_at: result.started_at,
            duration_ms: result.duration_ms,
        }
    }
}
