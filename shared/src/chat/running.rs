//! Turns without an answer: their identity, their view, and following them to their end.

use std::{collections::HashSet, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ChatInput, TurnAnswer, Turns,
    request::{another_message, answer_of},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    cut::fit,
    described::Described,
    models::{
        ChatRole, OrganizationId, PendingCall, RunningTurn, Thread, ThreadId, ThreadMessage, Timestamp, ToolResult,
        TurnCall,
    },
    planner::{AgentState, Observer, Receipt, TurnEvent},
};

const LOOKS: Duration = Duration::from_millis(250);
/// How long the same text is the same message after a broken or unconfirmed answer.
pub(super) const SAME_WITHIN: Duration = Duration::from_secs(60);
const LARGEST_RESULTS: usize = 64 * 1024;
const LARGEST_RESULTS_OF_ANSWER: usize = 96 * 1024;

#[derive(Debug)]
pub enum Followed {
    Answered(Box<Thread>, Box<TurnAnswer>),
    /// The turn failed, or its invocation died; with a sentence.
    Failed(String),
}

impl RunningTurn {
    pub(super) fn with(&self, state: &AgentState) -> Self {
        Self {
            calls: ToolResult::within(&state.tool_results, LARGEST_RESULTS),
            rest: state.rest.clone(),
            iteration: state.iteration,
            at: Timestamp::now(),
            ..self.clone()
        }
    }

    /// Whether a request is the one that this turn answers: by its name, or without one by its text. `turn_within` is
    /// the longest time of a turn; `held` says that an invocation is answering.
    ///
    /// # Errors
    /// If the request name was used for another message.
    pub(super) fn is_of(
        &self,
        asked: &ChatInput,
        name: Option<&str>,
        held: bool,
        turn_within: Duration,
    ) -> Result<bool> {
        if let Some(name) = name {
            let same = self.request.as_deref() == Some(name);
            return if same && self.message != asked.message {
                Err(another_message(&self.message, asked))
            } else {
                Ok(same)
            };
        }
        let cut = if self.failed.is_some() { self.at } else { self.at.plus(turn_within) };
        let recent = held || cut.plus(SAME_WITHIN) > Timestamp::now();
        Ok(recent && !asked.message.is_empty() && self.message == asked.message)
    }

    /// Whether calls were made since the message, or since the decision about a waiting call.
    pub(super) fn went_on(&self, pending: Option<&PendingCall>) -> bool {
        let before = pending.map_or(0, |pending| pending.tool_results.len());
        self.calls.iter().skip(before).any(|call| call.outcome != TurnCall::NotCalled)
    }

    fn why(&self) -> &str {
        self.failed.as_ref().map_or("the program that answered it has ended", |failed| &failed.why)
    }
}

/// The messages of a turn that are not in the thread yet, oldest first: the person's, and a note if nobody answers any
/// more, or if the turn acted and then left a call to the page.
pub fn unanswered(thread: &Thread) -> Vec<ThreadMessage> {
    let Some(running) = thread.running_turn() else { return left_to_page(thread).into_iter().collect() };
    let number = thread.messages + 1;
    let mut messages = Vec::with_capacity(2);
    let is_said = !running.message.is_empty();
    if is_said {
        let said = running.message.clone();
        let message = ThreadMessage::new(number, running.turn, ChatRole::User, said, running.since);
        messages.push(ThreadMessage { request: running.request.clone(), ..message });
    }
    if thread.is_held() && running.failed.is_none() {
        return messages;
    }
    let state = AgentState::calls_of(&running);
    let metadata = json!({
        "conversation_id": thread.name, "message_id": running.message_id, "failed": true, "incomplete": true,
        "receipt": Receipt::of_calls(&state),
    });
    let note = format!("This message was not answered: {}.", running.why().trim_end_matches('.'));
    messages.push(ThreadMessage {
        tool_results: kept(&state),
        metadata: Some(metadata.to_string()),
        ..ThreadMessage::new(number + u32::from(is_said), running.turn, ChatRole::Assistant, note, running.at)
    });
    messages
}

/// A note with the effects of a turn whose last call waits for the page.
fn left_to_page(thread: &Thread) -> Option<ThreadMessage> {
    let pending = thread.pending_call().filter(PendingCall::acted_before_front_end)?;
    let receipt = Receipt::of_calls(&pending.tool_results);
    let metadata = json!({"conversation_id": thread.name, "incomplete": true, "receipt": receipt});
    let note = format!("This message is not answered: the page has not sent the result of \"{}\".", pending.label());
    Some(ThreadMessage {
        tool_results: kept(&pending.tool_results),
        metadata: Some(metadata.to_string()),
        ..ThreadMessage::new(thread.messages + 1, thread.turns, ChatRole::Assistant, note, thread.updated_at)
    })
}

/// Tool results as stored with an answer; `None` without results.
pub(super) fn kept(results: &[ToolResult]) -> Option<String> {
    let some = !results.is_empty();
    some.then(|| {
        fit(json!(ToolResult::within(results, LARGEST_RESULTS_OF_ANSWER)), 2 * LARGEST_RESULTS_OF_ANSWER).to_string()
    })
}

/// The turn that is being answered.
#[derive(Debug, Serialize, Described)]
#[schema(name = "RunningTurn")]
pub struct RunningTurnView {
    /// As the client calls the message.
    message_id: Option<String>,
    message: String,
    since: Timestamp,
    /// The calls recorded so far.
    calls: Vec<RecordedCall>,
}

#[derive(Debug, Serialize, Described)]
struct RecordedCall {
    id: String,
    tool: String,
    label: String,
    arguments: Map<String, Value>,
    state: TurnCall,
}

/// `None` if nobody answers.
pub fn running_view(thread: &Thread) -> Option<RunningTurnView> {
    let running = thread.running_turn().filter(|running| thread.is_held() && running.failed.is_none())?;
    let recorded = |call: ToolResult| RecordedCall {
        label: if call.label.is_empty() { call.tool.clone() } else { call.label },
        id: call.id,
        tool: call.tool,
        arguments: call.arguments,
        state: call.outcome,
    };
    Some(RunningTurnView {
        message_id: running.message_id,
        message: running.message,
        since: running.since,
        calls: running.calls.into_iter().map(recorded).collect(),
    })
}

#[derive(Debug, Default)]
pub(super) struct Teller {
    begun: HashSet<String>,
    ended: HashSet<String>,
}

impl Teller {
    pub(super) fn skip(&mut self, told: &[ToolResult]) {
        for call in told {
            self.begun.insert(call.id.clone());
            self.ended.insert(call.id.clone());
        }
    }

    pub(super) fn tell(&mut self, calls: &[ToolResult], observer: &mut impl Observer) {
        for call in calls.iter().filter(|call| !call.id.is_empty()) {
            if self.begun.insert(call.id.clone()) {
                observer.event(TurnEvent::ToolCall { id: &call.id, tool: &call.tool, arguments: &call.arguments });
            }
            if call.outcome != TurnCall::Running && self.ended.insert(call.id.clone()) {
                observer.event(TurnEvent::ToolResult { id: &call.id, result: call });
            }
        }
    }
}

impl Turns {
    /// Follows a turn that another invocation answers, and reports its recorded calls until it ends.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the thread is deleted meanwhile, [`Error::Conflict`] if the turn has not ended by
    /// `deadline`.
    pub async fn follow<O: Observer>(
        &self,
        organization: OrganizationId,
        thread: ThreadId,
        running: &RunningTurn,
        observer: &mut O,
        deadline: Deadline,
    ) -> Result<Followed> {
        self.follow_from(&mut Teller::default(), organization, thread, running, observer, deadline).await
    }

    pub(super) async fn follow_from<O: Observer>(
        &self,
        teller: &mut Teller,
        organization: OrganizationId,
        thread: ThreadId,
        running: &RunningTurn,
        observer: &mut O,
        deadline: Deadline,
    ) -> Result<Followed> {
        teller.tell(&running.calls, observer);
        let mut backoff = Backoff::new(LOOKS, LOOKS, deadline);
        loop {
            if !backoff.pause().await {
                return Err(Error::Conflict("the answer is still under way; look at the thread in a moment".into()));
            }
            let row = self.threads.get(organization, thread).await?;
            match row.running_turn().filter(|now| now.turn == running.turn) {
                Some(now) if now.failed.is_none() && row.is_held() => teller.tell(&now.calls, observer),
                Some(now) => return Ok(Followed::Failed(now.why().to_owned())),
                None => {
                    let answer = self.answer_to(&row, running).await?;
                    return Ok(Followed::Answered(Box::new(row), Box::new(answer)));
                }
            }
        }
    }

    async fn answer_to(&self, thread: &Thread, running: &RunningTurn) -> Result<TurnAnswer> {
        let (newest, _) = self.threads.messages(thread, None, 20).await?;
        let mut messages: Vec<ThreadMessage> =
            newest.into_iter().filter(|message| message.turn >= running.turn).collect();
        messages.reverse();
        Ok(answer_of(thread, &messages))
    }
}
