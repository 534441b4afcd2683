//! The feedback loop: the model answers, its calls are run, it is told what came of them, and so on until its final response.
//!
//! ```text
//!  Tools ──► calls, or what was wrong with them ──► Tools
//!    │ ──► no call at all: one reminder ──────────► Tools (reminded) ──► no call again ──► Final
//!    │ ──► finalResponse: the other calls first ──► Final
//!    └───► a limit is reached ────────────────────► Final, the last request there is
//!
//!  Final ──► fits the format ──► over             else up to two repairs ──► failed
//! ```
//!
//! The messages only grow, and the system prompt never changes: what a provider has cached stays good. Every answer and every
//! reply is given to a [`Journal`] before the next step begins.

use std::{
    fmt::Write as _,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    Dialogue, FINAL_RESPONSE, FinalFormat,
    calls::{Room, make_calls},
    final_response,
    parser::{self, Entry},
    reply::{CallResult, Reply},
    signature,
};
use crate::{
    Deadline, Error, Result,
    clients::{
        self, Failure,
        llm::{Completion, Finish, Message},
    },
    models::{CallOutcome, Phase, RunAnswer, RunLimit, RunLimits, RunReply, RunStatus, Timestamp},
    tool::{CallContext, ToolSpec, Toolbox, arguments},
};

/// How freely the model writes while it works, and when it gives its final answer.
const TEMPERATURE: f64 = 0.7;
const FINAL_TEMPERATURE: f64 = 0.3;

/// How often a final answer may be corrected.
const REPAIRS: u32 = 2;

/// Kept back from the time for a step to write it down.
pub(super) const SAVE_RESERVE: Duration = Duration::from_secs(8);

/// What the model has for its last answer, though the run's time is over.
const LAST_ANSWER: Duration = Duration::from_secs(60);

/// Bytes of an answer that are read: twice what its most tokens make in most languages. It must stand in one item.
const LONGEST_ANSWER: usize = 100 * 1024;

/// Calls of an answer that are looked at; a model that repeats itself writes thousands.
const MOST_CALLS: usize = 100;

/// Bytes of a conversation that results may bring it to: some 100,000 tokens, which most models take. After that each answer
/// gets little more, and is told what was cut.
const LONGEST_CONVERSATION: usize = 384 * 1024;
const FEWEST_RESULTS: usize = 8 * 1024;

/// From how few messages or calls left on the model is told.
const TOLD_FROM: u32 = 3;

/// What answers.
pub trait Model: Sync {
    /// The next message of a conversation.
    fn answer(
        &self,
        messages: &[Message],
        temperature: f64,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Completion, clients::Error>> + Send;
}

/// Where a run is written down.
pub trait Journal: Send {
    /// Why the run does not go on here.
    type Stop: Send;

    /// Writes an answer down. `Break`: the run is to stop.
    fn answered(
        &mut self,
        answer: &RunAnswer,
        dialogue: &Dialogue,
    ) -> impl Future<Output = Result<ControlFlow<Self::Stop>>> + Send;

    /// Writes down what is said to it. `Break`: the run is to stop.
    fn replied(
        &mut self,
        reply: &RunReply,
        dialogue: &Dialogue,
    ) -> impl Future<Output = Result<ControlFlow<Self::Stop>>> + Send;
}

/// Everything a run needs beside what has been said.
pub struct FeedbackLoop<'a, M> {
    pub model: &'a M,
    pub toolbox: &'a Toolbox,
    pub format: &'a FinalFormat,
    pub limits: RunLimits,
    /// When its time is over, limits or not.
    pub ends_at: Timestamp,
    /// Its deadline is when the run must be let go of, to be carried on later.
    pub context: CallContext<'a>,
    /// What must be left before the deadline for a step to begin.
    pub step_needs: Duration,
}

/// How the loop ended.
#[derive(Debug)]
pub enum Ended<Stop> {
    Over(Ending),
    /// There is too little time left for the next step.
    OutOfTime,
    /// Something failed that may work later: the model, or something of ours.
    Outage(Error),
    /// The journal said so.
    Stopped(Stop),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub status: RunStatus,
    pub result: Option<Value>,
    /// One sentence, where there is no result that fits.
    pub error: Option<String>,
}

/// What an answer means.
enum NextStep {
    Calls(Vec<Entry>),
    Say(String, Phase),
    Over(Ending),
}

impl<M: Model> FeedbackLoop<'_, M> {
    /// Carries a conversation on until it ends or must be broken off.
    pub async fn run<J: Journal>(&self, dialogue: &mut Dialogue, journal: &mut J) -> Ended<J::Stop> {
        match self.steps(dialogue, journal).await {
            Ok(ended) => ended,
            Err(error) => Ended::Outage(error),
        }
    }

    async fn steps<J: Journal>(&self, dialogue: &mut Dialogue, journal: &mut J) -> Result<Ended<J::Stop>> {
        loop {
            if self.context.deadline.remaining() < self.step_needs {
                return Ok(Ended::OutOfTime);
            }
            let answer = if let Some(answer) = dialogue.pending.take() {
                answer
            } else {
                let answer = match self.ask(dialogue).await {
                    Ok(answer) => answer,
                    // What cannot be read is seldom all that a service says.
                    Err(failed) if failed.transient() || matches!(failed.failure, Failure::Undecodable(_)) => {
                        return Err(failed.into());
                    }
                    Err(failed) => return Ok(Ended::Over(Ending::failed(failed.public()))),
                };
                if let ControlFlow::Break(stop) = journal.answered(&answer, dialogue).await? {
                    return Ok(Ended::Stopped(stop));
                }
                answer
            };
            let reply = match self.read(&answer, dialogue.phase) {
                NextStep::Over(ending) => return Ok(Ended::Over(ending)),
                NextStep::Say(text, phase) => {
                    let (text, phase) = self.at_limit(dialogue, text, phase);
                    RunReply { step: answer.step, text, calls: Vec::new(), phase }
                }
                NextStep::Calls(_) if Timestamp::now() >= self.ends_at => {
                    let (text, phase) = self.last_request(String::new(), RunLimit::Time);
                    RunReply { step: answer.step, text, calls: Vec::new(), phase }
                }
                NextStep::Calls(_) if self.context.deadline.remaining() < self.step_needs => {
                    dialogue.pending = Some(answer);
                    return Ok(Ended::OutOfTime);
                }
                NextStep::Calls(entries) => match self.call(entries, &answer, dialogue).await {
                    Ok(reply) => reply,
                    Err(outage) => {
                        dialogue.pending = Some(answer);
                        return Err(outage);
                    }
                },
            };
            let flow = journal.replied(&reply, dialogue).await?;
            dialogue.say(answer.text);
            dialogue.reply(reply, |name| is_repeatable(self.toolbox, name));
            if let ControlFlow::Break(stop) = flow {
                return Ok(Ended::Stopped(stop));
            }
        }
    }

    async fn ask(&self, dialogue: &mut Dialogue) -> Result<RunAnswer, clients::Error> {
        let temperature = if matches!(dialogue.phase, Phase::Tools { .. }) { TEMPERATURE } else { FINAL_TEMPERATURE };
        let (started_at, started) = (Timestamp::now(), Instant::now());
        let left = self.ends_at.as_millis().saturating_sub(started_at.as_millis());
        let left = Duration::from_millis(u64::try_from(left).unwrap_or_default()).max(LAST_ANSWER);
        let deadline = self.context.deadline.reserving(SAVE_RESERVE).at_most(left);
        let mut completion = self.model.answer(&dialogue.messages, temperature, deadline).await?;
        let too_long = completion.text.len() > LONGEST_ANSWER;
        completion.text.truncate(completion.text.floor_char_boundary(LONGEST_ANSWER));
        let usage = &completion.usage;
        dialogue.steps += 1;
        let answer = RunAnswer {
            step: dialogue.steps,
            cut: too_long || completion.finish == Finish::Length,
            prompt_tokens: usage.prompt_tokens,
            completion_tokens: usage.completion_tokens,
            cached_tokens: usage.cached_tokens,
            cost: usage.cost.unwrap_or_default(),
            model: completion.model,
            text: completion.text,
            started_at,
            duration_ms: milliseconds(started.elapsed()),
        };
        let spent = &mut dialogue.spent;
        spent.iterations += u32::from(matches!(dialogue.phase, Phase::Tools { .. }));
        spent.prompt_tokens += answer.prompt_tokens;
        spent.completion_tokens += answer.completion_tokens;
        spent.cached_tokens += answer.cached_tokens;
        spent.cost += answer.cost;
        Ok(answer)
    }

    fn read(&self, answer: &RunAnswer, phase: Phase) -> NextStep {
        let cut = if answer.cut { " Your message was cut off because it was too long; be brief." } else { "" };
        match phase {
            Phase::Tools { reminded } => {
                let parsed = parser::parse(&answer.text);
                if !parsed.entries.is_empty() {
                    return NextStep::Calls(parsed.entries);
                }
                if reminded {
                    return NextStep::Say(self.format.request(None), Phase::Final { repairs: 0, limit: None });
                }
                let text = format!(
                    "There is no tool call in your message.{cut} Write calls like this:\n\n````tool\nreturn functionName(arguments);\n````\n\nIf you have what you need: return {FINAL_RESPONSE}();"
                );
                NextStep::Say(text, Phase::Tools { reminded: true })
            }
            Phase::Final { repairs, limit } => match (self.final_answer(&answer.text), limit) {
                (Ok(result), limit) => {
                    let status = limit.map_or(RunStatus::Completed, RunLimit::status);
                    NextStep::Over(Ending { status, result: Some(result), error: None })
                }
                (Err(wrong), Some(limit)) => {
                    let error = Some(format!("The run reached a limit, and its last answer cannot be used. {wrong}"));
                    NextStep::Over(Ending { status: limit.status(), result: None, error })
                }
                (Err(wrong), None) if repairs < REPAIRS => {
                    let text = format!("This is not the final answer.{cut} {wrong}\n\n{}", self.format.request(None));
                    NextStep::Say(text, Phase::Final { repairs: repairs + 1, limit: None })
                }
                (Err(wrong), None) => NextStep::Over(Ending::failed(format!(
                    "The final answer cannot be used, also after {REPAIRS} corrections. {wrong}"
                ))),
            },
        }
    }

    /// # Errors
    /// What is wrong with it. Whoever still calls tools has no answer yet, whatever stands in the calls.
    fn final_answer(&self, text: &str) -> Result<Value, String> {
        let calls = || {
            let entries = parser::parse(text).entries;
            entries.iter().any(|entry| !matches!(entry, Entry::Call(call) if call.name == FINAL_RESPONSE))
        };
        if serde_json::from_str::<IgnoredAny>(text).is_err() && calls() {
            return Err("No tools can be called any more.".to_owned());
        }
        self.format.read(text)
    }

    /// Runs the calls of an answer, and says what came of them.
    async fn call(&self, mut entries: Vec<Entry>, answer: &RunAnswer, dialogue: &mut Dialogue) -> Result<RunReply> {
        let unread = entries.len().saturating_sub(MOST_CALLS);
        entries.truncate(MOST_CALLS);
        let (finals, entries): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| matches!(entry, Entry::Call(call) if call.name == FINAL_RESPONSE));
        let wished = finals.into_iter().next().map(wished_format);
        let left = self.limits.calls.saturating_sub(dialogue.spent.calls);
        let said: usize = dialogue.messages.iter().map(|message| message.content.len()).sum();
        let bytes = LONGEST_CONVERSATION.saturating_sub(said + answer.text.len()).max(FEWEST_RESULTS);
        let room = Room { per_answer: size(self.limits.calls_per_iteration), in_all: size(left), bytes };
        let step = answer.step.to_string();
        let context = self.context.until(self.context.deadline.reserving(SAVE_RESERVE)).delivered(&step);
        let earlier = |name: &str, arguments: &str| dialogue.earlier(name, arguments);
        let executed = make_calls(self.toolbox, entries, room, earlier, &context).await?;
        dialogue.spent.calls += executed.counted;

        let all_run = executed
            .results
            .iter()
            .all(|result| !matches!(result.outcome, CallOutcome::Invalid | CallOutcome::Unknown | CallOutcome::NotRun));
        let mut reply = Reply::results(executed.results);
        if unread > 0 {
            reply.say(&format!("{unread} calls more were not read: one message is read up to its call {MOST_CALLS}."));
        }
        let phase = match wished {
            Some(Ok(wished)) if all_run && unread == 0 => {
                reply.call_finally(&self.format.request(wished.as_deref()), wished);
                Phase::Final { repairs: 0, limit: None }
            }
            Some(Ok(_)) => {
                reply.say(&format!(
                    "{FINAL_RESPONSE} was not carried out, because other calls were not: correct them, or call {FINAL_RESPONSE}() alone."
                ));
                Phase::default()
            }
            Some(Err(wrong)) => {
                reply.add_last(wrong);
                Phase::default()
            }
            None => Phase::default(),
        };
        let (text, calls) = reply.into_parts();
        let (text, phase) = if executed.out_of_calls {
            self.last_request(text, RunLimit::Calls)
        } else {
            self.at_limit(dialogue, text, phase)
        };
        Ok(RunReply { step: answer.step, text, calls, phase })
    }

    /// The same, or the last request if the model would go on and may not.
    fn at_limit(&self, dialogue: &Dialogue, mut text: String, phase: Phase) -> (String, Phase) {
        if !matches!(phase, Phase::Tools { .. }) {
            return (text, phase);
        }
        let (limits, spent) = (&self.limits, &dialogue.spent);
        let reached = if spent.iterations >= limits.iterations {
            Some(RunLimit::Iterations)
        } else if spent.tokens() >= limits.tokens {
            Some(RunLimit::Tokens)
        } else if spent.cost >= limits.cost {
            Some(RunLimit::Cost)
        } else if Timestamp::now() >= self.ends_at {
            Some(RunLimit::Time)
        } else {
            None
        };
        if let Some(limit) = reached {
            return self.last_request(text, limit);
        }
        let (messages, calls) = (limits.iterations - spent.iterations, limits.calls.saturating_sub(spent.calls));
        if messages <= TOLD_FROM || calls <= TOLD_FROM {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n\nLeft: {messages} messages with calls, {calls} calls.");
        }
        (text, phase)
    }

    fn last_request(&self, mut text: String, limit: RunLimit) -> (String, Phase) {
        let what = match limit {
            RunLimit::Iterations => "messages with calls",
            RunLimit::Calls => "calls",
            RunLimit::Tokens => "tokens",
            RunLimit::Cost => "money",
            RunLimit::Time => "time",
        };
        let request = self.format.request(None);
        let paragraph = if text.is_empty() { "" } else { "\n\n" };
        let _ = write!(
            text,
            "{paragraph}No more tools can be called: the run has used up its {what}. Make the best of what is known. {request}"
        );
        (text, Phase::Final { repairs: 0, limit: Some(limit) })
    }
}

impl Ending {
    pub fn failed(error: impl Into<String>) -> Self {
        Self { status: RunStatus::Failed, result: None, error: Some(error.into()) }
    }
}

/// The format that a call of `finalResponse` names, or what is wrong with the call.
fn wished_format(entry: Entry) -> Result<Option<String>, CallResult> {
    let Entry::Call(call) = entry else { return Ok(None) };
    let written = Value::Array(call.arguments.clone()).to_string();
    let spec = final_response();
    match signature::by_name(&spec, call.arguments).and_then(|arguments| {
        let checked = arguments::check(spec.parameters.schema(), &arguments)?;
        Ok(checked.arguments)
    }) {
        Ok(arguments) => Ok(arguments.get("format").and_then(Value::as_str).map(str::to_owned)),
        Err(wrong) => Err(CallResult {
            name: FINAL_RESPONSE.to_owned(),
            arguments: Some(written),
            outcome: CallOutcome::Invalid,
            text: format!(
                "Not run: {wrong} The signature is {}. The answer itself is asked for afterwards.",
                signature::signature(&spec)
            ),
            duration_ms: 0,
        }),
    }
}

/// Whether the same call of a tool may be answered with the result of an earlier one.
pub fn is_repeatable(toolbox: &Toolbox, name: &str) -> bool {
    toolbox.spec(name).is_ok_and(ToolSpec::is_repeatable)
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
