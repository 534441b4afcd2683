//! The steps of a run as shown: redacted, and cut to a budget.

use crate::{
    described::Described,
    models::{CallOutcome, OfferedTool, Phase, RunAnswer, RunCall, RunReply, Timestamp},
    redaction::{HIDDEN, MarkedCall, Transcript},
};
use serde::Serialize;
use serde_json::Value;

/// Calls per step; a model may write thousands.
const MOST_CALLS: usize = 40;
const NAME_BUDGET: usize = 100;

/// Replaces the result of a call in the reply; the call shows it.
const ELSEWHERE: &str = "…";

/// An answer of the model, the results of its calls, and the reply to the model.
#[derive(Debug, Serialize, Described)]
#[schema(name = "RunStep")]
pub(super) struct StepView {
    #[schema(minimum = 1)]
    step: u32,
    /// Whether it could call tools or had to give the final answer.
    #[schema(r#enum = ["tools", "final"])]
    phase: &'static str,
    answer: String,
    /// Which answered.
    model: String,
    /// It ended because there was no room for more.
    cut: bool,
    prompt_tokens: u64,
    completion_tokens: u64,
    cached_tokens: u64,
    cost: f64,
    started_at: Timestamp,
    duration_ms: u64,
    #[schema(maxItems = MOST_CALLS)]
    calls: Vec<CallView>,
    /// Number of calls not shown.
    calls_left_out: usize,
    /// The reply to the model, with `…` in place of the results of `calls`.
    reply: Option<String>,
}

#[derive(Debug, Serialize, Described)]
#[schema(name = "RunCall")]
pub(super) struct CallView {
    /// Empty if the call could not be read.
    name: String,
    /// By parameter, or as they were given if they fit none; null if they could not be read.
    arguments: Option<Value>,
    /// `failed`: the tool ran and says why it did not work. `repeated`: the same call was made before, and its result given again.
    /// `invalid`: it could not be read, or does not fit the signature. `unknown`: there is no such tool in this run. `not_run`: it
    /// was over a limit.
    outcome: CallOutcome,
    /// The result that the model received.
    result: Value,
    duration_ms: u64,
}

pub(super) struct Steps<'a> {
    steps: Vec<Step<'a>>,
    pub(super) transcript: Transcript,
    /// A tool of this run has marked fields. Marked values can be spelled in many ways (`'O\'Brien'`, `10_000`), and a call that
    /// was not executed has no parsed fields, so its text and its reply are hidden entirely.
    marked: bool,
}

struct Step<'a> {
    answer: &'a RunAnswer,
    reply: Option<&'a RunReply>,
    calls: Vec<ToolCallView<'a>>,
    is_final: bool,
}

struct ToolCallView<'a> {
    call: &'a RunCall,
    marks: &'a [String],
    arguments: Option<Value>,
    result: Value,
}

impl<'a> Steps<'a> {
    pub(super) fn of(answers: &'a [RunAnswer], replies: &'a [RunReply], offered: &'a [OfferedTool]) -> Self {
        let mut is_final = false;
        let steps = answers.iter().map(|answer| {
            let reply = replies.iter().find(|reply| reply.step == answer.step);
            let calls = reply.map(|reply| reply.calls.iter().map(|call| called(call, reply, offered)).collect());
            let step = Step { answer, reply, calls: calls.unwrap_or_default(), is_final };
            is_final = reply.is_some_and(|reply| matches!(reply.phase, Phase::Final { .. }));
            step
        });
        let steps: Vec<Step<'_>> = steps.collect();
        let calls = steps.iter().flat_map(|step| &step.calls).map(|called| MarkedCall {
            marks: called.marks,
            arguments: called.arguments.as_ref(),
            result: &called.result,
        });
        let transcript = Transcript::of(calls);
        Self { steps, transcript, marked: offered.iter().any(|tool| !tool.redact.is_empty()) }
    }

    /// Upper bound of the text bytes under this budget, before redaction.
    pub(super) fn size(&self, budget: usize) -> usize {
        let of_call = |called: &ToolCallView<'_>| {
            called.call.arguments.as_ref().map_or(0, String::len).min(budget) + called.call.result_at.1.min(budget)
        };
        let of_step = |step: &Step<'_>| {
            let calls = step.calls.iter().take(MOST_CALLS).map(of_call).sum::<usize>();
            step.answer.text.len().min(budget) + calls
        };
        self.steps.iter().map(of_step).sum()
    }

    /// With at most `budget` bytes per text, not counting the cut marker.
    pub(super) fn shown(&self, budget: usize) -> Vec<StepView> {
        self.steps.iter().map(|step| self.step(step, budget)).collect()
    }

    fn step(&self, step: &Step<'_>, budget: usize) -> StepView {
        let Step { answer, reply, calls, is_final } = step;
        StepView {
            step: answer.step,
            phase: if *is_final { "final" } else { "tools" },
            answer: if self.marked && !calls.is_empty() {
                HIDDEN.to_owned()
            } else {
                self.transcript.text(&answer.text, budget)
            },
            model: answer.model.clone(),
            cut: answer.cut,
            prompt_tokens: answer.prompt_tokens,
            completion_tokens: answer.completion_tokens,
            cached_tokens: answer.cached_tokens,
            cost: answer.cost,
            started_at: answer.started_at,
            duration_ms: answer.duration_ms,
            calls: calls.iter().take(MOST_CALLS).map(|called| self.call(called, budget)).collect(),
            calls_left_out: calls.len().saturating_sub(MOST_CALLS),
            reply: reply.map(|reply| self.transcript.text(&without_results(reply), budget)),
        }
    }

    fn call(&self, called: &ToolCallView<'_>, budget: usize) -> CallView {
        let ToolCallView { call, marks, arguments, result } = called;
        CallView {
            name: self.transcript.text(&call.name, NAME_BUDGET),
            arguments: arguments.as_ref().map(|arguments| self.transcript.arguments(marks, arguments, budget)),
            outcome: call.outcome,
            result: if self.marked && arguments.is_none() {
                HIDDEN.into()
            } else {
                self.transcript.result(marks, result, budget)
            },
            duration_ms: call.duration_ms,
        }
    }
}

fn called<'a>(call: &'a RunCall, reply: &RunReply, offered: &'a [OfferedTool]) -> ToolCallView<'a> {
    let tool = offered.iter().find(|tool| tool.name == call.name);
    let (at, length) = call.result_at;
    let result = at.checked_add(length).and_then(|end| reply.text.get(at..end)).unwrap_or_default();
    ToolCallView {
        call,
        marks: tool.map(|tool| tool.redact.as_slice()).unwrap_or_default(),
        arguments: call.arguments.as_deref().map(json_or_text),
        result: json_or_text(result),
    }
}

/// Parses lists and objects, so that their fields can be redacted separately.
pub(super) fn json_or_text(text: &str) -> Value {
    let structured = text.trim_start().starts_with(['{', '[']);
    let read = if structured { serde_json::from_str(text).ok() } else { None };
    read.unwrap_or_else(|| text.into())
}

fn without_results(reply: &RunReply) -> String {
    let mut text = String::new();
    let mut from = 0;
    for (at, length) in reply.calls.iter().map(|call| call.result_at) {
        if let Some(before) = reply.text.get(from..at) {
            text.push_str(before);
            text.push_str(ELSEWHERE);
            from = at.saturating_add(length);
        }
    }
    text.push_str(reply.text.get(from..).unwrap_or_default());
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn answer(step: u32, text: &str) -> RunAnswer {
        serde_json::from_value(json!({
            "step": step, "text": text, "started_at": "2026-11-20T16:20:52.123Z", "duration_ms": 7,
        }))
        .unwrap()
    }

    #[test]
    fn results_stand_with_their_calls() {
        let text = "<result call=\"1\" tool=\"a\">\n{\"x\":1}\n</result>\n<error call=\"2\" tool=\"b\">\nno\n</error>\n\nMore.";
        let call = |name: &str, at: usize, length: usize| json!({"name": name, "arguments": "{}", "outcome": "succeeded", "result_at": [at, length]});
        let reply: RunReply = serde_json::from_value(json!({
            "step": 1, "text": text, "phase": {"phase": "final", "repairs": 0, "limit": null},
            "calls": [call("a", text.find("{\"x").unwrap(), 7), call("b", text.find("no").unwrap(), 2)],
        }))
        .unwrap();
        let (answers, replies) = ([answer(1, "…"), answer(2, "{}")], [reply]);
        let shown = json!(Steps::of(&answers, &replies, &[]).shown(500));
        assert_eq!((&shown[0]["phase"], &shown[1]["phase"]), (&json!("tools"), &json!("final")));
        assert_eq!(
            (&shown[0]["calls"][0]["result"], &shown[0]["calls"][1]["result"]),
            (&json!({"x": 1}), &json!("no"))
        );
        assert_eq!(
            shown[0]["reply"],
            "<result call=\"1\" tool=\"a\">\n…\n</result>\n<error call=\"2\" tool=\"b\">\n…\n</error>\n\nMore."
        );
        assert_eq!(shown[1]["reply"], Value::Null);
    }

    #[test]
    fn invalid_pointers_do_not_panic() {
        let call = json!({"name": "a", "outcome": "failed", "result_at": [usize::MAX, usize::MAX]});
        let reply = json!({"step": 1, "text": "ä", "phase": {"phase": "tools", "reminded": false}, "calls": [call]});
        let (answers, replies) = ([answer(1, "…")], [serde_json::from_value(reply).unwrap()]);
        let shown = json!(Steps::of(&answers, &replies, &[]).shown(500));
        assert_eq!((&shown[0]["calls"][0]["result"], &shown[0]["reply"]), (&json!(""), &json!("ä")));
    }
}
