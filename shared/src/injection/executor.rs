//! Carries out the calls of one answer.

use std::{
    collections::{BTreeMap, HashMap},
    panic::AssertUnwindSafe,
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::BoxFuture,
    stream::{self, StreamExt},
};
use serde_json::{Map, Value};

use super::{
    CallContext, FINAL_RESPONSE, ToolDefinition, ToolOutput,
    parser::{Entry, ToolCall},
    reply::CallResult,
};
use crate::{
    Deadline, Result,
    cut::{self, cut, fit},
    models::CallOutcome,
};

/// Calls that run at the same time.
const AT_ONCE: usize = 5;

/// What one call gets, wget's longest time-out and a little more; with less than the least, none is begun.
pub const CALL_WITHIN: Duration = Duration::from_secs(62);
const CALL_NEEDS: Duration = Duration::from_secs(1);
/// Beyond it, for a tool to write down what became of its effect before it is broken off.
pub(super) const RECORDING: Duration = Duration::from_secs(3);

/// What a model is given back of one call at most, and of all calls of an answer together, in bytes.
const LONGEST_RESULT: usize = 64 * 1024;
pub(super) const LONGEST_RESULTS: usize = 256 * 1024;

/// Runs what a run was offered, and nothing else.
#[derive(Debug, Clone, Default)]
pub struct ToolExecutor {
    offered: BTreeMap<String, Offered>,
}

#[derive(Debug, Clone)]
enum Offered {
    Here(ToolDefinition),
    /// It was there when the run began; the sentence says what became of it.
    Gone(String),
}

/// Successful calls of tools that only read, and where their results stand: the message, the first byte, the number of bytes.
pub(super) type Record = HashMap<(String, String), (usize, usize, usize)>;

/// The calls that the answer may still make.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub per_answer: usize,
    pub in_all: usize,
    /// For the results of all of them, at most [`LONGEST_RESULTS`].
    pub bytes: usize,
}

/// What came of the calls of one answer.
#[derive(Debug)]
pub(super) struct Executed {
    pub results: Vec<CallResult>,
    /// Calls that count: those that there was room for.
    pub counted: u32,
    /// Whether a call was not run because the run has had all its calls.
    pub out_of_calls: bool,
}

/// A call on its way to its result.
enum Step<'a> {
    /// There is nothing to run.
    Told(CallResult),
    Run(&'a ToolDefinition, Map<String, Value>, String),
    /// As the step of this number.
    Same(usize, String, String),
}

/// A step that has been taken.
enum Done {
    Result(CallResult),
    Same(usize, String, String),
}

impl ToolExecutor {
    /// Offers a tool. `finalResponse` is always there, and offering it changes nothing.
    pub fn offer(&mut self, definition: ToolDefinition) {
        if definition.name != FINAL_RESPONSE {
            self.offered.insert(definition.name.clone(), Offered::Here(definition));
        }
    }

    /// A tool that was offered, and cannot be called any more.
    pub fn gone(&mut self, name: impl Into<String>, sentence: impl Into<String>) {
        self.offered.insert(name.into(), Offered::Gone(sentence.into()));
    }

    /// What can be called, by name.
    pub fn offered(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.offered.values().filter_map(|offered| match offered {
            Offered::Here(definition) => Some(definition),
            Offered::Gone(_) => None,
        })
    }

    /// Whether the results of a tool may be given again.
    pub fn is_read_only(&self, name: &str) -> bool {
        matches!(self.offered.get(name), Some(Offered::Here(definition)) if definition.read_only)
    }

    /// Runs the calls beside each other, up to five at once, and gives their results in the order of the calls.
    ///
    /// `earlier` says what a call was told that has been made before.
    ///
    /// # Errors
    /// An outage of our own: the calls may be made again.
    pub(super) async fn execute_all(
        &self,
        entries: Vec<Entry>,
        room: Room,
        earlier: impl Fn(&str, &str) -> Option<String>,
        context: &CallContext<'_>,
    ) -> Result<Executed> {
        let mut steps: Vec<Step<'_>> = Vec::with_capacity(entries.len());
        let (mut counted, mut out_of_calls) = (0, false);
        let mut seen: HashMap<(String, String), usize> = HashMap::new();
        for entry in entries {
            let step = match self.prepare(entry) {
                Err(told) => Step::Told(told),
                Ok((definition, arguments)) => {
                    let written = Value::Object(arguments.clone()).to_string();
                    let key = (definition.name.clone(), written.clone());
                    let again = definition.read_only.then(|| seen.get(&key).copied()).flatten();
                    if let Some(first) = again {
                        Step::Same(first, definition.name.clone(), written)
                    } else if let Some(text) =
                        definition.read_only.then(|| earlier(&definition.name, &written)).flatten()
                    {
                        Step::Told(result(&definition.name, Some(written), CallOutcome::Repeated, text))
                    } else if counted >= room.per_answer {
                        let told = format!(
                            "Not run: one message may hold {} calls. Make this call in your next message.",
                            room.per_answer
                        );
                        Step::Told(result(&definition.name, Some(written), CallOutcome::NotRun, told))
                    } else if counted >= room.in_all {
                        out_of_calls = true;
                        let told = "Not run: the calls of this run are used up.";
                        Step::Told(result(&definition.name, Some(written), CallOutcome::NotRun, told))
                    } else {
                        counted += 1;
                        seen.insert(key, steps.len());
                        Step::Run(definition, arguments, written)
                    }
                }
            };
            steps.push(step);
        }
        let budget = LONGEST_RESULT.min(room.bytes.min(LONGEST_RESULTS) / steps.len().max(1));
        let mut runs: Vec<BoxFuture<'_, Result<Done>>> = Vec::with_capacity(steps.len());
        for step in steps {
            runs.push(carry_out(step, budget, context).boxed());
        }
        // All of them, an outage or not: of a call that is broken off while it acts nobody would know the outcome.
        let done: Vec<Result<Done>> = stream::iter(runs).buffered(AT_ONCE).collect().await;
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

    /// The tool that is meant, and its arguments.
    fn prepare(&self, entry: Entry) -> Result<(&ToolDefinition, Map<String, Value>), CallResult> {
        let call = match entry {
            Entry::Call(call) => call,
            Entry::Malformed(malformed) => {
                let text = format!("Not run: {malformed}");
                return Err(result(malformed.name.as_deref().unwrap_or_default(), None, CallOutcome::Invalid, text));
            }
        };
        let ToolCall { name, arguments, .. } = call;
        match self.offered.get(&name) {
            Some(Offered::Here(definition)) => {
                let written = Value::Array(arguments.clone()).to_string();
                let bound = definition.bind(arguments);
                bound
                    .map(|bound| (definition, bound))
                    .map_err(|wrong| result(&name, Some(written), CallOutcome::Invalid, format!("Not run: {wrong}")))
            }
            Some(Offered::Gone(sentence)) => {
                Err(result(&name, None, CallOutcome::Unknown, format!("Not run: {sentence}")))
            }
            None => {
                let names: Vec<&str> = self.offered().map(|tool| tool.name.as_str()).chain([FINAL_RESPONSE]).collect();
                let text = format!("Not run: there is no tool of this name. The tools are {}.", names.join(", "));
                Err(result(&name, None, CallOutcome::Unknown, text))
            }
        }
    }
}

async fn carry_out(step: Step<'_>, budget: usize, context: &CallContext<'_>) -> Result<Done> {
    Ok(match step {
        Step::Told(told) => Done::Result(CallResult { text: cut(told.text, budget), ..told }),
        Step::Run(definition, arguments, written) => {
            Done::Result(run(definition, arguments, written, budget, context).await?)
        }
        Step::Same(first, name, written) => Done::Same(first, name, written),
    })
}

async fn run(
    definition: &ToolDefinition,
    arguments: Map<String, Value>,
    written: String,
    budget: usize,
    context: &CallContext<'_>,
) -> Result<CallResult> {
    let started = Instant::now();
    let deadline = context.deadline.at_most(CALL_WITHIN);
    if deadline.remaining() < CALL_NEEDS {
        // Those before it took all the time. To begin and be broken off at once would leave its effect unknown.
        let told = "Not run: the calls before it took too long. Make this call again in your next message.";
        return Ok(result(&definition.name, Some(written), CallOutcome::NotRun, told));
    }
    let context = CallContext { deadline, ..*context };
    // Within the future, for a tool may also panic before it gives one.
    let call = AssertUnwindSafe(async { definition.implementation.call(arguments, &context).await }).catch_unwind();
    let output = match tokio::time::timeout(deadline.remaining() + RECORDING, call).await {
        Ok(Ok(output)) => output?,
        Ok(Err(_panic)) => {
            tracing::error!(tool.name = definition.name, run.id = %context.run, "a tool panicked");
            ToolOutput::failed("The tool failed for a fault of its own; do not call it again.")
        }
        Err(_elapsed) => ToolOutput::failed(late(definition, started.elapsed())),
    };
    let outcome = if output.failed { CallOutcome::Failed } else { CallOutcome::Succeeded };
    let text = match output.value {
        Value::String(text) => cut(text, budget),
        other => fit(other, budget).to_string(),
    };
    let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(CallResult { duration_ms, ..result(&definition.name, Some(written), outcome, text) })
}

fn late(definition: &ToolDefinition, after: Duration) -> String {
    let seconds = after.as_secs();
    if definition.read_only {
        format!("The tool did not answer within {seconds} s; try again, or do without it.")
    } else {
        format!("The tool did not answer within {seconds} s. It may have acted all the same; do not repeat the call.")
    }
}

fn result(name: &str, arguments: Option<String>, outcome: CallOutcome, text: impl Into<String>) -> CallResult {
    CallResult { name: name.to_owned(), arguments, outcome, text: text.into(), duration_ms: 0 }
}

/// Whether a result is shorter than one can be, because it had to share the room of its message: alone, more would be given.
pub(super) fn is_cut(result: &str) -> bool {
    result.len() < LONGEST_RESULT - cut::SLACK && cut::is_cut(result)
}

impl CallContext<'_> {
    /// The same, until an earlier moment.
    #[must_use]
    pub fn until(self, deadline: Deadline) -> Self {
        Self { deadline, ..self }
    }
}

#[cfg(test)]
mod tests;
