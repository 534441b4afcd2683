//! The feedback loop: model answers and tool results alternate until the final response.
//!
//! ```text
//!  Tools ──► calls, or what was wrong with them ──► Tools
//!    │ ──► no call at all: one reminder ──────────► Tools (reminded) ──► no call again ──► Final
//!    │ ──► finalResponse: the other calls first ──► Final, once they succeeded or it is asked for again
//!    │ ──► an answer that fits, in finalResponse or proven by the schema ──► over
//!    └───► a limit is reached ────────────────────► Final, the last request there is
//!
//!  Final ──► fits the format ──► over             else up to two repairs ──► failed
//! ```
//!
//! Messages are only appended and the system prompt never changes, so the provider's cache stays valid. Every answer and reply
//! goes to a [`Journal`] before the next step.

use std::{
    fmt::Write as _,
    future::ready,
    ops::ControlFlow,
    time::{Duration, Instant},
};

use serde::de::IgnoredAny;
use serde_json::Value;

use super::{
    Dialogue, FINAL_RESPONSE, FinalFormat,
    calls::{Room, make_calls},
    final_response::Said,
    parser::{self, Block, Entry, Malformed, Parsed},
    reply::Reply,
};
use crate::{
    Deadline, Error, Result,
    clients::{
        self, Failure,
        llm::{Completion, Finish, Message},
    },
    models::{CallOutcome, Phase, RunAnswer, RunLimit, RunLimits, RunReply, RunStatus, Spent, Timestamp},
    tool::{CallContext, Toolbox},
};

/// For the work with tools, and for the final answer.
const TEMPERATURE: f64 = 0.7;
const FINAL_TEMPERATURE: f64 = 0.3;

/// Corrections of a final answer.
const REPAIRS: u32 = 2;

/// Time reserved to save a step.
pub(super) const SAVE_RESERVE: Duration = Duration::from_secs(8);

/// Time for the last answer after the run's time is over.
const LAST_ANSWER: Duration = Duration::from_secs(60);

/// Bytes read of an answer: twice its token limit in most languages. An answer must fit into one item.
const LONGEST_ANSWER: usize = 100 * 1024;

/// Calls processed per answer; a model in a repetition writes thousands.
const MOST_CALLS: usize = 100;

/// Bytes of a conversation up to which results are added in full: about 100,000 tokens, within the context of most models.
/// Further answers get short results, with a note about the cut.
const LONGEST_CONVERSATION: usize = 384 * 1024;
const FEWEST_RESULTS: usize = 8 * 1024;

/// Remaining messages or calls from which the model is warned.
const TOLD_FROM: u32 = 3;

pub trait Model: Sync {
    fn answer(
        &self,
        messages: &[Message],
        temperature: f64,
        deadline: Deadline,
    ) -> impl Future<Output = Result<Completion, clients::Error>> + Send;
}

pub trait Journal: Send {
    type Stop: Send;

    /// Whether another request is allowed. `Break` stops the run.
    fn may_ask(&self) -> ControlFlow<Self::Stop> {
        ControlFlow::Continue(())
    }

    /// Whether the calls of a stored answer may be made. `Break` stops the run.
    fn may_call(&self) -> impl Future<Output = Result<ControlFlow<Self::Stop>>> + Send {
        ready(Ok(ControlFlow::Continue(())))
    }

    /// Saves an answer, whose calls come next. `Break` stops the run.
    fn answered(
        &mut self,
        answer: &RunAnswer,
        dialogue: &Dialogue,
    ) -> impl Future<Output = Result<ControlFlow<Self::Stop>>> + Send;

    /// Saves a reply. `Break` stops the run.
    fn replied(
        &mut self,
        reply: &RunReply,
        dialogue: &Dialogue,
    ) -> impl Future<Output = Result<ControlFlow<Self::Stop>>> + Send;
}

pub struct FeedbackLoop<'a, M> {
    pub model: &'a M,
    pub toolbox: &'a Toolbox,
    pub format: &'a FinalFormat,
    pub limits: RunLimits,
    /// The end of the run's time, independent of its limits.
    pub ends_at: Timestamp,
    /// At its deadline the invocation must release the run; another one resumes it.
    pub context: CallContext<'a>,
    /// Minimal time before the deadline to start a step.
    pub step_needs: Duration,
}

#[derive(Debug)]
pub enum Ended<Stop> {
    Over(Ending),
    /// The deadline is too near for the next step.
    OutOfTime,
    /// A transient failure of the model or of our own services.
    Outage(Error),
    Stopped(Stop),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    pub status: RunStatus,
    pub result: Option<Value>,
    /// One sentence, if there is no valid result.
    pub error: Option<String>,
}

/// Appended to an answer cut off inside a block. It cannot follow a call, so it makes an unfinished last statement malformed
/// instead of letting an incomplete call run.
const CUT_OFF: &str = "...";

/// Turns the content of another block into a tool block; has more marks than any real fence.
const READ_AS: &str = "~~~~~~~~~~~~tool\n";

const TOO_EARLY: &str = "The answer in finalResponse was written before the results of the calls beside it.";

enum NextStep {
    /// With the call in which the answer was cut off.
    Calls(Parsed, Option<Malformed>),
    Say(String, Phase),
    Over(Ending),
}

impl<M: Model> FeedbackLoop<'_, M> {
    /// Continues a conversation until it ends or must be interrupted.
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
                if let ControlFlow::Break(stop) = journal.may_call().await? {
                    return Ok(Ended::Stopped(stop));
                }
                answer
            } else {
                if let ControlFlow::Break(stop) = journal.may_ask() {
                    return Ok(Ended::Stopped(stop));
                }
                let answer = match self.ask(dialogue).await {
                    Ok(answer) => answer,
                    // Unreadable answers are usually transient.
                    Err(failed)
                        if failed.is_outage()
                            || matches!(failed.failure, Failure::Undecodable(_) | Failure::TooLarge(_)) =>
                    {
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
                NextStep::Calls(..) if Timestamp::now() >= self.ends_at => {
                    let (text, phase) = self.last_request(String::new(), RunLimit::Time);
                    RunReply { step: answer.step, text, calls: Vec::new(), phase }
                }
                NextStep::Calls(..) if self.context.deadline.remaining() < self.step_needs => {
                    dialogue.pending = Some(answer);
                    return Ok(Ended::OutOfTime);
                }
                NextStep::Calls(parsed, cut) => match self.call(parsed, cut.as_ref(), &answer, dialogue).await {
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
        let spent = Spent::from(completion.usage);
        dialogue.steps += 1;
        let answer = RunAnswer {
            step: dialogue.steps,
            cut: too_long || completion.finish == Finish::Length,
            prompt_tokens: spent.prompt_tokens,
            completion_tokens: spent.completion_tokens,
            cached_tokens: spent.cached_tokens,
            cost: spent.cost,
            model: completion.model,
            text: completion.text,
            started_at,
            duration_ms: milliseconds(started.elapsed()),
        };
        dialogue.spent += Spent { iterations: u32::from(matches!(dialogue.phase, Phase::Tools { .. })), ..spent };
        Ok(answer)
    }

    fn read(&self, answer: &RunAnswer, phase: Phase) -> NextStep {
        match phase {
            Phase::Tools { reminded, .. } => {
                let (parsed, cut) = parsed(answer);
                let (missed, text) = (self.missed(answer, parsed.quoted), answer.text.as_str());
                let given = match &parsed.entries[..] {
                    [] if missed.is_none() && !answer.cut => self.format.proven(text),
                    entries => self.given(entries),
                };
                if let Some(result) = given {
                    return NextStep::Over(Ending { status: RunStatus::Completed, result: Some(result), error: None });
                }
                if !parsed.entries.is_empty() {
                    return NextStep::Calls(parsed, cut);
                }
                if reminded {
                    return NextStep::Say(self.format.request(None), Phase::Final { repairs: 0, limit: None });
                }
                let cut = answer.cut.then(|| was_cut_off(0, cut.as_ref()));
                let wrong = [Some("There is no tool call in your message.".to_owned()), missed, cut];
                let wrong = wrong.into_iter().flatten().collect::<Vec<_>>().join(" ");
                let text = format!(
                    "{wrong} Write calls like this:\n\n````tool\nreturn functionName(arguments);\n````\n\nIf you have what you need: return {FINAL_RESPONSE}();"
                );
                NextStep::Say(text, Phase::Tools { reminded: true, final_asked: false })
            }
            Phase::Final { repairs, limit } => match (self.final_answer(&answer.text, repairs > 0), limit) {
                (Ok(result), limit) => {
                    let status = limit.map_or(RunStatus::Completed, RunLimit::status);
                    NextStep::Over(Ending { status, result: Some(result), error: None })
                }
                (Err(wrong), Some(limit)) => {
                    let error = Some(format!("The run reached a limit, and its last answer cannot be used. {wrong}"));
                    NextStep::Over(Ending { status: limit.status(), result: None, error })
                }
                (Err(wrong), None) if repairs < REPAIRS => {
                    let cut =
                        if answer.cut { " Your message was cut off because it was too long; be brief." } else { "" };
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
    /// The mistake. An answer that still calls tools is rejected, even if a call contains a value. A description of the answer is
    /// accepted only after a correction (`corrected`), and not inside a call.
    fn final_answer(&self, text: &str, corrected: bool) -> Result<Value, String> {
        let mut insists = corrected;
        if serde_json::from_str::<IgnoredAny>(text).is_err() {
            let entries = parser::parse(text).entries;
            if entries.iter().any(|entry| !is_final(entry)) {
                return Err("No tools can be called any more.".to_owned());
            }
            if let Some(given) = self.given(&entries) {
                return Ok(given);
            }
            insists &= entries.is_empty();
        }
        self.format.read(text, insists)
    }

    /// The answer given to `finalResponse`, if there are no other calls.
    fn given(&self, entries: &[Entry]) -> Option<Value> {
        let said = entries.iter().map(|entry| match entry {
            Entry::Call(call) if is_final(entry) => Some(self.format.said(&call.arguments)),
            _ => None,
        });
        match said.collect::<Option<Vec<_>>>()?.pop()? {
            Said::Answer(answer) => Some(answer),
            Said::Format { .. } => None,
        }
    }

    /// The reason why a block that seems to contain calls was not run.
    fn missed(&self, answer: &RunAnswer, quoted: Option<usize>) -> Option<String> {
        let is_known = |name: &str| name == FINAL_RESPONSE || self.toolbox.get(name).is_some();
        let calls = |inside: &str| {
            parser::parse(&format!("{READ_AS}{inside}")).entries.iter().any(|entry| match entry {
                Entry::Call(call) => is_known(&call.name),
                Entry::Malformed(malformed) => malformed.name.as_deref().is_some_and(is_known),
            })
        };
        let is_missed = |block: &&Block<'_>| {
            let Block { word, inside, .. } = block;
            !word.eq_ignore_ascii_case("tool")
                && (word.starts_with("tool") && !inside.trim().is_empty() || calls(inside))
        };
        let missed = |Block { word, line, .. }: &Block<'_>| {
            let why = if word.is_empty() { "no word stands".to_owned() } else { format!("the word `{word}` stands") };
            format!(
                "The block in line {line} was not run, because {why} behind its back-ticks: write the word `tool` there."
            )
        };
        quoted.map(is_quoted).or_else(|| parser::blocks(&answer.text).iter().find(is_missed).map(missed))
    }

    async fn call(
        &self,
        parsed: Parsed,
        cut: Option<&Malformed>,
        answer: &RunAnswer,
        dialogue: &mut Dialogue,
    ) -> Result<RunReply> {
        let Parsed { mut entries, quoted, .. } = parsed;
        let unread = entries.len().saturating_sub(MOST_CALLS);
        entries.truncate(MOST_CALLS);
        let (finals, entries): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(is_final);
        let said = finals.first().and_then(|entry| match entry {
            Entry::Call(call) => Some(self.format.said(&call.arguments)),
            Entry::Malformed(_) => None,
        });
        let left = self.limits.calls.saturating_sub(dialogue.spent.calls);
        let length: usize = dialogue.messages.iter().map(|message| message.content.len()).sum();
        let bytes = LONGEST_CONVERSATION.saturating_sub(length + answer.text.len()).max(FEWEST_RESULTS);
        let room = Room { per_answer: size(self.limits.calls_per_iteration), in_all: size(left), bytes };
        let step = answer.step.to_string();
        let context = self.context.until(self.context.deadline.reserving(SAVE_RESERVE)).delivered(&step);
        let earlier = |name: &str, arguments: &str| dialogue.earlier(name, arguments);
        let executed = make_calls(self.toolbox, entries, room, earlier, &context).await?;
        dialogue.spent.calls += executed.counted;

        let has = |outcomes: &[CallOutcome]| executed.results.iter().any(|result| outcomes.contains(&result.outcome));
        let all_run = unread == 0 && !has(&[CallOutcome::Invalid, CallOutcome::Unknown, CallOutcome::NotRun]);
        let is_asked_again = matches!(dialogue.phase, Phase::Tools { final_asked: true, .. });
        let begins = all_run && (is_asked_again || !has(&[CallOutcome::Failed]));
        let ran = executed.results.iter().filter(|result| result.was_called()).count();
        let mut reply = Reply::results(executed.results);
        if unread > 0 {
            reply.say(&format!("{unread} calls more were not read: one message is read up to its call {MOST_CALLS}."));
        }
        if let Some(line) = quoted {
            reply.say(&is_quoted(line));
        }
        if answer.cut {
            reply.say(&was_cut_off(ran, cut));
        }
        let phase = match said {
            Some(said) if begins => {
                let (wished, wrong) = match said {
                    Said::Format { wished, wrong } => (wished, wrong),
                    Said::Answer(_) => (None, Some(TOO_EARLY.to_owned())),
                };
                if let Some(wrong) = wrong {
                    reply.say(&wrong);
                }
                reply.call_finally(&self.format.request(wished.as_deref()), wished);
                Phase::Final { repairs: 0, limit: None }
            }
            Some(_) => {
                let why = if all_run {
                    format!(
                        "a call beside it failed: make that call again, or call {FINAL_RESPONSE}() again to end without it."
                    )
                } else {
                    format!("other calls were not: correct them, or call {FINAL_RESPONSE}() alone.")
                };
                reply.say(&format!("{FINAL_RESPONSE} was not carried out, because {why}"));
                Phase::Tools { reminded: false, final_asked: true }
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

    /// Turns the reply into the last request if a limit prevents further calls.
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
            let s = |number: u32| if number == 1 { "" } else { "s" };
            let _ = write!(text, "\n\nLeft: {messages} message{} with calls, {calls} call{}.", s(messages), s(calls));
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
            "{paragraph}No more tools can be called: the run has used up its {what}. Use the results that you have. {request}"
        );
        (text, Phase::Final { repairs: 0, limit: Some(limit) })
    }
}

impl Ending {
    pub fn failed(error: impl Into<String>) -> Self {
        Self { status: RunStatus::Failed, result: None, error: Some(error.into()) }
    }
}

/// The calls of an answer, and the incomplete call of a truncated one.
fn parsed(answer: &RunAnswer) -> (Parsed, Option<Malformed>) {
    let mut parsed = parser::parse(&answer.text);
    if answer.cut && parsed.unclosed.is_some() {
        parsed = parser::parse(&format!("{}{CUT_OFF}", answer.text));
    }
    match parsed.entries.pop() {
        Some(Entry::Malformed(last)) if answer.cut && (last.is_cut || last.text.ends_with("..")) => {
            (parsed, Some(last))
        }
        last => {
            parsed.entries.extend(last);
            (parsed, None)
        }
    }
}

fn was_cut_off(ran: usize, cut: Option<&Malformed>) -> String {
    let place = cut.map_or_else(String::new, |Malformed { line, name, .. }| {
        let of = name.as_ref().map(|name| format!(" in the call of {name}")).unwrap_or_default();
        format!(", in line {line}{of}")
    });
    let ran = if ran == 0 {
        "nothing of it was run"
    } else {
        "the calls that were run stand above, and nothing after them was run"
    };
    format!("Your message was cut off because it was too long{place}: {ran}. Be brief.")
}

fn is_final(entry: &Entry) -> bool {
    matches!(entry, Entry::Call(call) if call.name == FINAL_RESPONSE)
}

fn is_quoted(line: usize) -> String {
    format!(
        "The tool block in line {line} was not run, because it is quoted: it is indented like code, or stands behind `>`, in another block, in your thoughts, in an element such as <result> or <details>, in a comment, in quotation marks or between ~~. A block that is to run begins at the beginning of a line, outside of these."
    )
}

/// Whether an equal call may reuse an earlier result.
pub fn is_repeatable(toolbox: &Toolbox, name: &str) -> bool {
    toolbox.get(name).is_some_and(|offered| offered.spec().is_repeatable())
}

fn size(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
