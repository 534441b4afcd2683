//! Takes a turn: records the message, runs the planner, records each acting call before and after, and stores the
//! messages.
//!
//! The turn's number is the thread's count of turns plus one. A turn that died was not counted, so the repeated
//! message takes the same turn and continues with its record. Effects are claimed by thread, turn and arguments, so
//! none happens twice.

use std::{ops::ControlFlow, time::Duration};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{
    ChatInput,
    opening::title,
    request::{decided, tell_again},
    running::{Followed, Teller, kept},
};
use crate::{
    Deadline, Result,
    accounts::{Accounts, LlmInUse, LlmModel},
    catalogue::Catalogue,
    clients::{self, Failure, Llm, llm::Account},
    described::Described,
    discovery::Discovery,
    error,
    execution::Executor,
    models::{
        ChatRole, ExecutionOrigin, FailedTurn, Member, PendingCall, RunningTurn, ShownValue, Spent, Thread, ThreadId,
        ThreadMessage, ThreadSummary, Timestamp, ToolResult, TurnCall, WaitsFor,
    },
    planner::{
        AgentState, ChatMessage, Observer, Planner, Receipt, Stop, StopSignal, TurnEnd, TurnEvent, TurnLimits,
        TurnStep, UserContext, is_long, shown, summarize,
    },
    store::{Budgets, Lease, SavedTurn, StopRequest, Threads, over},
    tool::{CallContext, Conversation, Subject, Toolbox},
};

/// Reserved before the turn for waiting on another turn and for a summary.
pub(super) const TURN_NEEDS: Duration = Duration::from_secs(8);
/// The time limit of a consent, and of a front end's result.
const WAIT_WITHIN: Duration = Duration::from_secs(60 * 60);
const LOOKS_FOR_STOP: Duration = Duration::from_millis(400);
const ANSWERS_WITH_RESULTS: usize = 3;
/// Messages until a model that gave no usable summary, or none in time, is asked, and paid, again.
const SUMMARY_AGAIN_AFTER: u32 = 16;

pub struct Turns {
    pub threads: Threads,
    pub catalogue: Catalogue,
    pub discovery: Discovery,
    pub executor: Executor,
    pub accounts: Accounts,
    pub llm: Llm,
    pub budgets: Budgets,
    pub settings: TurnSettings,
}

#[derive(Debug, Clone, Copy)]
pub struct TurnSettings {
    pub function_calling: bool,
    pub limits: TurnLimits,
    pub turn_within: Duration,
    pub threads_kept: Duration,
}

#[derive(Debug, Clone)]
pub struct TurnAnswer {
    pub thread: String,
    /// Empty while a tool of the front end is pending.
    pub content: String,
    pub timestamp: Timestamp,
    /// A [`crate::planner::Widget`] as JSON.
    pub widget: Option<Value>,
    /// [`TurnMetadata`] as JSON, as it is stored.
    pub metadata: Value,
    pub waits: Option<PendingCall>,
}

#[derive(Debug, Serialize, Described)]
pub struct TurnMetadata {
    /// The thread.
    conversation_id: String,
    /// How often tools were chosen.
    iteration_count: u32,
    /// `validate` for an answer, `consent` where one is waited for.
    current_step: TurnStep,
    /// Results of the calls.
    tools: Vec<CalledTool>,
    receipt: Receipt,
    /// The thread's older messages have just been summarized.
    summarized: bool,
    /// The turn was interrupted after an effect, which the message names; or the model's answer was cut at its longest.
    incomplete: bool,
    /// The same text came a moment ago, and this is its answer. Nothing was done again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(r#const = true)]
    repeated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pending_action: Option<PendingAction>,
}

/// What became of a call.
#[derive(Debug, Serialize, Described)]
#[schema(name = "ToolOutcome")]
pub struct CalledTool {
    tool: String,
    #[schema(r#enum = ["succeeded", "failed", "unconfirmed", "not_called", "refused", "unknown"])]
    outcome: TurnCall,
}

impl From<&ToolResult> for CalledTool {
    fn from(result: &ToolResult) -> Self {
        Self { tool: result.tool.clone(), outcome: result.outcome }
    }
}

/// A call that waits for the person's consent.
#[derive(Debug, Serialize, Described)]
pub struct PendingAction {
    id: String,
    tool: String,
    /// The name for people.
    label: String,
    arguments: Map<String, Value>,
    /// The complete content that will be sent, as text.
    shows: Vec<ShownValue>,
    reason: String,
    expires_at: Timestamp,
}

impl From<&PendingCall> for PendingAction {
    fn from(pending: &PendingCall) -> Self {
        Self {
            id: pending.id.clone(),
            tool: pending.tool.name.clone(),
            label: pending.label().to_owned(),
            arguments: pending.arguments.clone(),
            shows: shown(pending),
            reason: pending.reason.clone(),
            expires_at: pending.expires_at,
        }
    }
}

/// An accepted turn. Its thread is held until the answer, or until the lease ends.
pub struct OpenTurn {
    pub(super) asked: ChatInput,
    pub(super) deadline: Deadline,
    pub(super) begun: Begun,
}

pub(super) enum Begun {
    Earlier(Box<TurnAnswer>),
    Running(Box<Following>),
    New(Box<NewTurn>),
}

pub(super) struct Following {
    pub(super) member: Member,
    pub(super) email: Option<String>,
    pub(super) thread: ThreadId,
    pub(super) running: RunningTurn,
    pub(super) pending: Option<PendingCall>,
}

pub(super) struct NewTurn {
    pub(super) member: Member,
    pub(super) email: Option<String>,
    pub(super) account: Account,
    pub(super) held: Held,
    pub(super) running: RunningTurn,
    pub(super) pending: Option<PendingCall>,
    pub(super) toolbox: Toolbox,
}

pub(super) struct Held {
    pub(super) thread: Thread,
    pub(super) lease: Lease,
    pub(super) messages: Vec<ThreadMessage>,
    pub(super) summarized: bool,
}

/// Forwards a turn's events to an observer, counts the costs, and ends the turn when the organization's budget is used
/// up.
struct Metered<'a, O> {
    turns: &'a Turns,
    member: &'a Member,
    on_own_key: bool,
    lease: &'a Lease,
    running: &'a RunningTurn,
    observer: &'a mut O,
}

impl<O: Observer> Observer for Metered<'_, O> {
    fn wants_tokens(&self) -> bool {
        self.observer.wants_tokens()
    }

    fn event(&mut self, event: TurnEvent<'_>) {
        self.observer.event(event);
    }

    async fn record(&mut self, state: &AgentState) -> Result<()> {
        self.turns.threads.record(self.lease, &self.running.with(state)).await
    }

    async fn spent(&mut self, cost: f64) -> ControlFlow<Stop> {
        self.turns.spend(self.member, self.on_own_key, cost).await
    }
}

impl Turns {
    async fn spend(&self, member: &Member, on_own_key: bool, cost: f64) -> ControlFlow<Stop> {
        if cost <= 0.0 {
            return ControlFlow::Continue(());
        }
        match self.budgets.spend(member.organization_id, on_own_key, cost).await {
            Ok(usage) if usage.is_used_up(Timestamp::now()) => ControlFlow::Break(Stop::OverBudget(over(&usage))),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                tracing::error!("the cost of a turn was not counted: {}", error::chain(&error));
                ControlFlow::Continue(())
            }
        }
    }

    /// Takes the turn and reports its events to `observer`. On return the answer is stored.
    ///
    /// # Errors
    /// If the model cannot be asked and nothing was done, or if the answer cannot be stored: the same request may come
    /// again.
    pub async fn answer<O: Observer>(&self, open: OpenTurn, observer: &mut O) -> Result<TurnAnswer> {
        self.answer_from(Teller::default(), open, observer).await
    }

    async fn answer_from<O: Observer>(
        &self,
        mut teller: Teller,
        open: OpenTurn,
        observer: &mut O,
    ) -> Result<TurnAnswer> {
        let OpenTurn { asked, deadline, begun } = open;
        let mut new = match begun {
            Begun::Earlier(answer) => {
                tell_again(&answer, observer);
                return Ok(*answer);
            }
            Begun::Running(following) => {
                return self.follow_same(teller, *following, asked, observer, deadline).await;
            }
            Begun::New(new) => new,
        };
        let (stop, request) = (StopSignal::default(), self.threads.stop_request(&new.held.lease));
        tokio::select! {
            taken = Box::pin(self.take(&mut teller, &mut new, &asked, &stop, observer, deadline)) => taken,
            never = pass_on(&request, &stop) => match never {},
        }
    }

    /// Follows the same request to its end. If its invocation died, the turn is resumed here.
    async fn follow_same<O: Observer>(
        &self,
        mut teller: Teller,
        following: Following,
        asked: ChatInput,
        observer: &mut O,
        deadline: Deadline,
    ) -> Result<TurnAnswer> {
        let Following { member, email, thread, running, pending } = following;
        if let Some(pending) = &pending {
            teller.skip(&pending.tool_results);
        }
        let organization = member.organization_id;
        let followed = self.follow_from(&mut teller, organization, thread, &running, observer, deadline);
        match Box::pin(followed).await? {
            Followed::Answered(_, answer) => {
                tell_again(&answer, observer);
                Ok(*answer)
            }
            Followed::Failed(_) => {
                let open = Box::pin(self.open(&member, email, asked, deadline)).await?;
                Box::pin(self.answer_from(teller, open, observer)).await
            }
        }
    }

    async fn take<O: Observer>(
        &self,
        teller: &mut Teller,
        new: &mut NewTurn,
        asked: &ChatInput,
        stop: &StopSignal,
        observer: &mut O,
        deadline: Deadline,
    ) -> Result<TurnAnswer> {
        let NewTurn { member, email, account, held, running, pending, toolbox } = new;
        let in_use = LlmInUse { accounts: &self.accounts, organization: member.organization_id, account };
        let model = LlmModel { llm: &self.llm, account: in_use, model: None };
        let on_own_key = account.is_own();
        if let Some(cost) = self.shorten(held, &model, deadline).await {
            let _the_next_request_finds_it = self.spend(member, on_own_key, cost).await;
        }
        if let Some(pending) = &pending {
            teller.skip(&pending.tool_results);
        }
        teller.tell(&AgentState::calls_of(running), observer);
        let (held, running) = (&*held, &*running);
        let mut observer = Metered { turns: self, member, on_own_key, lease: &held.lease, running, observer };

        let turn = pending.as_ref().map_or(held.thread.turns + 1, |pending| pending.turn);
        let no_call = Conversation::default();
        let planner = Planner {
            model: &model,
            function_calling: self.settings.function_calling,
            toolbox,
            limits: self.settings.limits,
            context: CallContext {
                organization: member.organization_id,
                user: Some(&member.user_id),
                subject: Subject::Turn { thread: held.thread.id, turn },
                automation: None,
                delivery: None,
                conversation: &no_call,
                trigger: ExecutionOrigin::Conversation,
                refused: None,
                deadline,
            },
            turn,
            wait_within: WAIT_WITHIN,
            stop: stop.clone(),
        };
        let mut state = state(member, email.take(), held, asked);
        let taken = async {
            let ended = match (&pending, &asked.awaited) {
                _ if running.went_on(pending.as_ref()) => {
                    state.go_on(running);
                    planner.go_on(&mut state, &mut observer).await?
                }
                (Some(pending), Some(awaited)) => {
                    state.resume(pending);
                    planner.resume(pending, decided(pending, awaited), &mut state, &mut observer).await?
                }
                _ => planner.run(&mut state, &mut observer).await?,
            };
            let answer = answer(held, asked, &state, toolbox, &ended);
            self.save(held, asked, running, &state, &answer).await?;
            Ok(answer)
        };
        let taken: Result<TurnAnswer> = Box::pin(taken).await;
        if let Err(error) = &taken {
            let failed = Some(FailedTurn { why: error.to_string() });
            let running = RunningTurn { failed, ..running.with(&state) };
            if let Err(error) = self.threads.fail(&held.lease, &running).await {
                tracing::warn!("the lease of a thread could not be released: {}", error::chain(&error));
            }
        }
        taken
    }

    /// Asks the running turn of a member's thread to end. False without a running turn.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] if the member has no such thread.
    pub async fn stop(&self, member: &Member, thread: &str) -> Result<bool> {
        let id = ThreadId::of_name(member.organization_id, &member.user_id, thread);
        self.threads.ask_to_stop(member.organization_id, id).await
    }

    pub(super) async fn release(&self, lease: Lease) {
        if let Err(error) = self.threads.release(lease).await {
            tracing::warn!("the lease of a thread could not be released: {}", error::chain(&error));
        }
    }

    /// Summarizes the older messages of a long conversation and returns the cost. On failure the model sees all
    /// messages.
    async fn shorten(&self, held: &mut Held, model: &LlmModel<'_>, deadline: Deadline) -> Option<f64> {
        let older = is_long(&held.messages)?;
        let is_put_off = held.thread.unsummarized_at.is_some_and(|at| held.thread.messages < at + SUMMARY_AGAIN_AFTER);
        let within = summary_until(deadline);
        if is_put_off || within.remaining().is_zero() {
            return None;
        }
        let (to_summarize, before) = (held.messages.get(..older)?, held.thread.summary.as_ref());
        let until = to_summarize.last()?.number;
        let before = before.map(|before| before.text.as_str());
        let completion = match summarize(model, before, to_summarize, within).await {
            Ok(completion) => completion,
            Err(error) => {
                tracing::warn!("a long conversation was not summarized: {}", error::chain(&error));
                if !may_pass(&error) {
                    self.put_summary_off(held).await;
                }
                return None;
            }
        };
        let cost = Some(completion.usage.cost.unwrap_or_default());
        let Some(text) = completion.usable_text() else {
            tracing::warn!("a long conversation was not summarized: the model's answer is empty, cut off or a refusal");
            self.put_summary_off(held).await;
            return cost;
        };
        let summary = ThreadSummary { text: text.to_owned(), until, at: Timestamp::now() };
        match self.threads.summarize(&held.lease, &summary).await {
            Ok(_) => {
                held.thread.summary = Some(summary);
                held.messages.drain(..older);
                held.summarized = true;
            }
            Err(error) => tracing::warn!("the summary of a conversation was not saved: {}", error::chain(&error)),
        }
        cost
    }

    async fn put_summary_off(&self, held: &Held) {
        if let Err(error) = self.threads.put_summary_off(&held.lease, held.thread.messages).await {
            tracing::warn!("a failed summary was not recorded: {}", error::chain(&error));
        }
    }

    /// Stores the turn. A turn that waits for the front end is not over: its answer follows.
    async fn save(
        &self,
        held: &Held,
        asked: &ChatInput,
        running: &RunningTurn,
        state: &AgentState,
        answer: &TurnAnswer,
    ) -> Result<()> {
        let before = &held.thread;
        let mut spent = before.spent;
        spent += Spent { calls: u32::try_from(state.tool_results.len()).unwrap_or(u32::MAX), ..state.spent };
        let (is_said, is_answered) = (!asked.message.is_empty(), !answer.content.is_empty());
        let count = u32::from(is_said) + u32::from(is_answered);
        let title = if before.title.is_empty() { title(&asked.message) } else { before.title.clone() };
        let turn = before.turns + 1;
        let named = |pending: &PendingCall| PendingCall { request: running.request.clone(), ..pending.clone() };
        let thread = Thread {
            title,
            turns: turn,
            messages: before.messages + count,
            pending: state.pending.as_ref().map(|pending| Box::new(named(pending))),
            running: None,
            spent,
            updated_at: answer.timestamp,
            expires_at: answer.timestamp.plus(self.settings.threads_kept).as_seconds(),
            ..before.clone()
        };
        let mut messages = Vec::with_capacity(2);
        let mut name = running.request.clone();
        if is_said {
            let (number, said) = (before.messages + 1, asked.message.clone());
            let question = ThreadMessage::new(number, turn, ChatRole::User, said, running.since);
            messages.push(ThreadMessage { request: name.take(), ..question });
        }
        if is_answered {
            let (number, said) = (before.messages + count, answer.content.clone());
            messages.push(ThreadMessage {
                request: name,
                tool_results: kept(&state.tool_results),
                widget: answer.widget.as_ref().map(Value::to_string),
                metadata: Some(answer.metadata.to_string()),
                ..ThreadMessage::new(number, turn, ChatRole::Assistant, said, answer.timestamp)
            });
        }
        self.threads.save(&held.lease, SavedTurn { thread: &thread, messages: &messages }).await
    }
}

fn summary_until(deadline: Deadline) -> Deadline {
    deadline.reserving(TURN_NEEDS).at_most(deadline.remaining() / 2)
}

/// Whether to ask in the next turn again. An answer that comes too late is paid.
const fn may_pass(error: &clients::Error) -> bool {
    match error.failure {
        Failure::Unreachable | Failure::RateLimited => true,
        Failure::Broken { status, .. } => !matches!(status, 408 | 504 | 524),
        _ => false,
    }
}

async fn pass_on(request: &StopRequest, stop: &StopSignal) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(LOOKS_FOR_STOP).await;
        match request.is_there().await {
            Ok(true) => stop.give(),
            Ok(false) => {}
            // The turn continues as if no stop was requested.
            Err(error) => tracing::warn!("the stop flag of a turn could not be read: {}", error::chain(&error)),
        }
    }
}

fn state(member: &Member, email: Option<String>, held: &Held, asked: &ChatInput) -> AgentState {
    let told = held.messages.iter().map(|message| ChatMessage { role: message.role, content: message.content.clone() });
    let said = (!asked.message.is_empty()).then(|| ChatMessage::user(&asked.message));
    let messages = told.chain(said).collect();
    let who = UserContext { user_id: member.user_id.clone(), user_email: email, user_role: member.role };
    let answers = held.messages.iter().filter(|message| message.role == ChatRole::Assistant);
    let mut newest: Vec<_> = answers.rev().take(ANSWERS_WITH_RESULTS).collect();
    newest.reverse();
    let mut state = AgentState::new(messages, who);
    if asked.awaited.is_none()
        && let Some(withdrawn) = held.thread.pending_call()
    {
        state.problems.push(came_instead_of(&withdrawn));
    }
    state.summary = held.thread.summary.as_ref().map(|summary| summary.text.clone());
    state.earlier_results = newest.into_iter().flat_map(ThreadMessage::results).collect();
    state
}

fn came_instead_of(pending: &PendingCall) -> String {
    let (tool, more) = (&pending.tool.name, pending.rest.len());
    match pending.waits_for {
        WaitsFor::Consent => format!(
            "A call of {tool} waited for the person, followed by {more} more. This message came instead, so none of them was made."
        ),
        WaitsFor::FrontEnd => format!(
            "A call of {tool} was given to the person's page, followed by {more} more. This message came instead of its result: it may \
             have been carried out, and the calls after it were not made."
        ),
    }
}

fn answer(held: &Held, asked: &ChatInput, state: &AgentState, toolbox: &Toolbox, ended: &TurnEnd) -> TurnAnswer {
    let metadata = TurnMetadata {
        conversation_id: asked.thread.clone(),
        iteration_count: state.iteration,
        current_step: state.current_step,
        tools: state.tool_results.iter().map(CalledTool::from).collect(),
        receipt: Receipt::of(state, toolbox),
        summarized: held.summarized,
        incomplete: state.cut || matches!(ended, TurnEnd::BrokenOff(_)),
        // Said of the stored answer, when the same text comes again.
        repeated: false,
        pending_action: state.pending.as_ref().filter(|pending| pending.asks_person()).map(PendingAction::from),
    };
    TurnAnswer {
        thread: asked.thread.clone(),
        content: ended.text().to_owned(),
        timestamp: Timestamp::now(),
        widget: state.widget.as_ref().map(|widget| json!(widget)),
        metadata: json!(metadata),
        waits: state.pending.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_leaves_its_turn_half_of_the_time() {
        for (turn, summary) in [(120, 60), (20, 10), (10, 2), (5, 0)] {
            let within = summary_until(Deadline::after(Duration::from_secs(turn))).remaining();
            let summary = Duration::from_secs(summary);
            assert!(within <= summary && within + Duration::from_secs(1) >= summary, "{turn} s: {within:?}");
        }
    }
}
