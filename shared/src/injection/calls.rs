//! Executes the tool calls of one answer.

use std::{collections::HashMap, time::Instant};

use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{self, StreamExt},
};
use serde_json::Value;

use super::{
    FINAL_RESPONSE,
    parser::{Entry, ToolCall},
    reply::CallResult,
    signature,
};
use crate::{
    Result,
    cut::{self, cut, fit},
    models::CallOutcome,
    tool::{Bound, CALL_NEEDS, CallContext, Toolbox},
};

const AT_ONCE: usize = 5;

/// Bytes per result, and of all results of an answer together.
const LONGEST_RESULT: usize = 64 * 1024;
pub(super) const LONGEST_RESULTS: usize = 256 * 1024;

/// Successful calls of repeatable tools by name and arguments, with the location of the result: message, first byte, length.
pub(super) type Record = HashMap<(String, String), (usize, usize, usize)>;

#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub per_answer: usize,
    pub in_all: usize,
    /// For all results together, at most [`LONGEST_RESULTS`].
    pub bytes: usize,
}

#[derive(Debug)]
pub(super) struct Executed {
    pub results: Vec<CallResult>,
    pub counted: u32,
    pub out_of_calls: bool,
}

enum Step<'a> {
    /// Its result is known without running it.
    Told(CallResult),
    Run(Bound<'a>, String),
    /// Repeats the call at this index.
    Same(usize, String, String),
}

enum Done {
    Result(CallResult),
    Same(usize, String, String),
}

/// Runs up to five calls in parallel, and returns the results in the order of the calls.
///
/// `earlier` returns the recorded result of a call. `context.delivery` identifies the answer.
///
/// # Errors
/// An outage of our own; the calls may be repeated.
pub(super) async fn make_calls(
    toolbox: &Toolbox,
    entries: Vec<Entry>,
    room: Room,
    earlier: impl Fn(&str, &str) -> Option<String>,
    context: &CallContext<'_>,
) -> Result<Executed> {
    let mut steps: Vec<Step<'_>> = Vec::with_capacity(entries.len());
    let (mut counted, mut out_of_calls) = (0, false);
    let mut seen: HashMap<(String, String), usize> = HashMap::new();
    for entry in entries {
        let step = match prepare(toolbox, entry) {
            Err(told) => Step::Told(told),
            Ok(bound) => {
                let (spec, written) = (bound.spec(), Value::Object(bound.arguments.clone()).to_string());
                let key = (spec.name.clone(), written.clone());
                let not_run = |written, told| Step::Told(result(&spec.name, Some(written), CallOutcome::NotRun, told));
                if let Some(first) = seen.get(&key).copied().filter(|_| spec.is_repeatable()) {
                    Step::Same(first, spec.name.clone(), written)
                } else if let Some(text) = spec.is_repeatable().then(|| earlier(&spec.name, &written)).flatten() {
                    Step::Told(result(&spec.name, Some(written), CallOutcome::Repeated, text))
                } else if counted >= room.per_answer {
                    let most = room.per_answer;
                    let told =
                        format!("Not run: one message may hold {most} calls. Make this call in your next message.");
                    not_run(written, told)
                } else if counted >= room.in_all {
                    out_of_calls = true;
                    not_run(written, "Not run: the calls of this run are used up.".to_owned())
                } else {
                    counted += 1;
                    seen.insert(key, steps.len());
                    Step::Run(bound, written)
                }
            }
        };
        steps.push(step);
    }
    let budget = LONGEST_RESULT.min(room.bytes.min(LONGEST_RESULTS) / steps.len().max(1));
    let mut calls: Vec<BoxFuture<'_, Result<Done>>> = Vec::with_capacity(steps.len());
    for (place, step) in steps.into_iter().enumerate() {
        calls.push(carry_out(step, place, budget, context).boxed());
    }
    // Wait for all, even after an outage: aborting a call during its effect would lose the outcome.
    let done: Vec<Result<Done>> = stream::iter(calls).buffered(AT_ONCE).collect().await;
    let mut results: Vec<CallResult> = Vec::with_capacity(done.len());
    for one in done {
        let one = match one? {
            Done::Result(result) => result,
            Done::Same(first, name, written) => {
                let first = results.get(first);
                let text = first.map(|first| first.text.clone()).unwrap_or_default();
                let outcome = first.map(|first| first.outcome).filter(|outcome| *outcome != CallOutcome::Succeeded);
                result(&name, Some(written), outcome.unwrap_or(CallOutcome::Repeated), text)
            }
        };
        results.push(one);
    }
    Ok(Executed { results, counted: u32::try_from(counted).unwrap_or(u32::MAX), out_of_calls })
}

/// # Errors
/// The mistake, as the call's result.
fn prepare(toolbox: &Toolbox, entry: Entry) -> Result<Bound<'_>, CallResult> {
    let not_run = |name: &str, written, outcome, why: &str| result(name, written, outcome, format!("Not run: {why}"));
    let ToolCall { name, arguments, .. } = match entry {
        Entry::Call(call) => call,
        Entry::Malformed(malformed) => {
            let name = malformed.name.as_deref().unwrap_or_default();
            let why = format!(
                "{malformed}. Nothing from there on was run, neither the rest of its block nor a block behind it."
            );
            return Err(not_run(name, None, CallOutcome::Invalid, &why));
        }
    };
    match (toolbox.get(&name), toolbox.unavailability(&name)) {
        (Some(offered), _) => {
            let written = Value::Array(arguments.clone()).to_string();
            signature::bind(toolbox, offered.spec(), arguments)
                .map_err(|wrong| not_run(&name, Some(written), CallOutcome::Invalid, &wrong))
        }
        (None, Some(why)) => Err(not_run(&name, None, CallOutcome::Unknown, &why.for_model())),
        (None, None) => {
            let names: Vec<&str> = toolbox.specs().map(|spec| spec.name.as_str()).chain([FINAL_RESPONSE]).collect();
            let why = format!("there is no tool of this name. The tools are {}.", names.join(", "));
            Err(not_run(&name, None, CallOutcome::Unknown, &why))
        }
    }
}

async fn carry_out(step: Step<'_>, place: usize, budget: usize, context: &CallContext<'_>) -> Result<Done> {
    Ok(match step {
        Step::Told(told) => Done::Result(CallResult { text: cut(told.text, budget), ..told }),
        Step::Run(bound, written) => {
            // A resumed run repeats the calls of its last answer under the same delivery names.
            let delivery = format!("{}.{place}", context.delivery.unwrap_or_default());
            Done::Result(call(bound, written, budget, &context.delivered(&delivery)).await?)
        }
        Step::Same(first, name, written) => Done::Same(first, name, written),
    })
}

async fn call(bound: Bound<'_>, written: String, budget: usize, context: &CallContext<'_>) -> Result<CallResult> {
    let (name, started) = (bound.spec().name.as_str(), Instant::now());
    if context.deadline.remaining() < CALL_NEEDS {
        // Earlier calls used up the time. Starting and aborting this one would leave its effect unknown.
        let told = "Not run: the calls before it took too long. Make this call again in your next message.";
        return Ok(result(name, Some(written), CallOutcome::NotRun, told));
    }
    let outcome = bound.call(context).await?;
    let status = if outcome.is_failed() { CallOutcome::Failed } else { CallOutcome::Succeeded };
    let text = match outcome.into_model_value() {
        Value::String(text) => cut(text, budget),
        other => fit(other, budget).to_string(),
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(CallResult { duration_ms, ..result(name, Some(written), status, text) })
}

fn result(name: &str, arguments: Option<String>, outcome: CallOutcome, text: impl Into<String>) -> CallResult {
    CallResult { name: name.to_owned(), arguments, outcome, text: text.into(), duration_ms: 0 }
}

/// Whether the result was shortened only to share the message's space; a separate call would return more.
pub(super) fn is_cut(result: &str) -> bool {
    result.len() < LONGEST_RESULT - cut::SLACK && cut::is_cut(result)
}

#[cfg(test)]
mod tests;
