//! A turn: the thread is held, the planner answers, and message and answer are written down together.
//!
//! The turn's number is the thread's count of turns and one. A turn that died was not counted, so whoever sends the message again
//! takes the same turn, and its effects, which are claimed for thread, turn and arguments, do not happen a second time.

use std::{ops::ControlFlow, time::Duration};

use futures_util::try_join;
use serde_json::{Value, json};

use super::{
    Asked,
    request::{awaited, decided, earlier, tell_again},
};
use crate::{
    Deadline, Error, Result,
    accounts::{Accounts, LlmInUse},
    catalogue::Catalogue,
    clients::{Llm, llm::Account},
    cut::fit,
    discovery::Discovery,
    error,
    execution::Executor,
    fields::is_unseen,
    idempotency::Key,
    models::{
        Budget, ChatRole, Member, PendingCall, Spent, Thread, ThreadId, ThreadMessage, ThreadSummary, Timestamp,
        Trigger, WaitsFor,
    },
    planner::{
        AgentState, ChatMessage, Ended, Event, LlmModel, Observer, Offer, OfferedTools, Planner, Stop, StopSignal,
        TurnLimits, UserContext, is_long, summarize,
    },
    store::{Budgets, Lease, SavedTurn, StopRequest, Threads, over},
    tool::{CallContext, Conversation, Subject},
};

/// Kept back from the time for which another turn of the same thread is waited for.
const TURN_NEEDS: Duration = Duration::from_secs(8);
/// For so long another turn of the same thread is waited for at most.
const WAITS_FOR_ANOTHER: Duration = Duration::from_secs(10);
/// A lease outlasts the invocation that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);
/// Within which a person must have consented, or a front end have brought a result.
const WAIT_WITHIN: Duration = Duration::from_secs(60 * 60);
/// Between two looks at whether the turn is asked to end.
const LOOKS_FOR_STOP: Duration = Duration::from_millis(400);
/// Answers before this one whose tool results the model is still told.
const ANSWERS_WITH_RESULTS: usize = 3;
/// What is kept of a turn's tool results, in bytes.
const LARGEST_RESULTS: usize = 96 * 1024;
/// Of a thread's first message, what names the thread, in characters.
const LONGEST_TITLE: usize = 80;

/// Takes turns: everything that one needs.
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

/// What may differ between planners.
#[derive(Debug, Clone, Copy)]
pub struct TurnSettings {
    /// Whether the model calls functions by itself, in place of writing a plan.
    pub function_calling: bool,
    pub limits: TurnLimits,
    /// The longest time of a turn.
    pub turn_within: Duration,
    pub threads_kept: Duration,
}

/// What a door answers.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As its user's clients call it.
    pub thread: String,
    /// Empty where a tool of the front end is waited for.
    pub content: String,
    pub timestamp: Timestamp,
    /// A [`crate::planner::Widget`] as JSON.
    pub widget: Option<Value>,
    /// `{"conversation_id", "iteration_count", "current_step", "tools": [{"tool", "outcome"}], "summarized", "corrected", "incomplete",
    /// "pending_action"?}`
    pub metadata: Value,
    /// The call that waits.
    pub waits: Option<PendingCall>,
}

/// A turn that nothing stands against any more. Its thread is held until it is answered, or its time is over.
pub struct OpenTurn {
    asked: Asked,
    deadline: Deadline,
    begun: Begun,
}

enum Begun {
    /// The same request came before.
    Earlier(Box<Answer>),
    New(Box<NewTurn>),
}

struct NewTurn {
    member: Member,
    email: Option<String>,
    account: Account,
    held: Held,
    /// The name of the request, as it stands in the thread.
    name: Option<String>,
    pending: Option<PendingCall>,
    offered: OfferedTools,
}

/// How a request begins.
enum Beginning {
    Earlier(Answer),
    New { name: Option<String>, pending: Option<PendingCall>, offered: OfferedTools },
}

/// A thread that is held while its turn is taken.
struct Held {
    thread: Thread,
    lease: Lease,
    /// Those that no summary stands for.
    messages: Vec<ThreadMessage>,
    /// Its older messages have just been summarized.
    summarized: bool,
}

/// What the door's observer is told of a turn, with what the model's answers cost: they are counted, and a turn ends when the
/// organization's money is gone.
struct Metered<'a, O> {
    turns: &'a Turns,
    member: &'a Member,
    on_own_key: bool,
    observer: &'a mut O,
}

impl<O: Observer> Observer for Metered<'_, O> {
    fn wants_tokens(&self) -> bool {
        self.observer.wants_tokens()
    }

    fn event(&mut self, event: Event<'_>) {
        self.observer.event(event);
    }

    async fn spent(&mut self, cost: f64) -> ControlFlow<Stop> {
        if cost <= 0.0 {
            return ControlFlow::Continue(());
        }
        match self.turns.budgets.spend(self.member.organization_id, self.on_own_key, cost).await {
            Ok(usage) if usage.is_used_up(Timestamp::now()) => ControlFlow::Break(Stop::OverBudget(over(&usage))),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                tracing::error!("what a turn has cost was not counted: {}", error::chain(&error));
                ControlFlow::Continue(())
            }
        }
    }
}

impl Turns {
    /// Opens a turn of a member's thread, which is made if it is not there. Everything that can be refused is refused here.
    ///
    /// # Errors
    /// [`Error::OverBudget`]; [`Error::NotFound`] for a name that is somebody else's thread; [`Error::Conflict`] if another turn of it is
    /// not over in time, if nothing waits for what this request brings, or if its name came with another message.
    pub async fn open(
        &self,
        member: &Member,
        email: Option<String>,
        asked: Asked,
        deadline: Deadline,
    ) -> Result<OpenTurn> {
        let organization = member.organization_id;
        let deadline = deadline.at_most(self.settings.turn_within);
        let (account, usage) = try_join!(self.accounts.llm(organization), self.budgets.usage(organization, deadline))?;
        let cost = Budget::of_cost(account.is_own());
        if let Some(used_up) = usage.iter().find(|usage| usage.budget == cost && usage.is_used_up(Timestamp::now())) {
            return Err(over(used_up).into());
        }
        let new = self.new_thread(member, &asked);
        let wait = deadline.reserving(TURN_NEEDS).at_most(WAITS_FOR_ANOTHER);
        let (thread, lease) = self.threads.open(&new, deadline.remaining() + LEASE_RESERVE, wait).await?;
        let mut held = Held { thread, lease, messages: Vec::new(), summarized: false };
        match Box::pin(self.begin(member, &mut held, &asked, deadline)).await {
            Ok(Beginning::New { name, pending, offered }) => {
                let new = NewTurn { member: member.clone(), email, account, held, name, pending, offered };
                Ok(OpenTurn { asked, deadline, begun: Begun::New(Box::new(new)) })
            }
            Ok(Beginning::Earlier(answer)) => {
                self.release(held.lease).await;
                Ok(OpenTurn { asked, deadline, begun: Begun::Earlier(Box::new(answer)) })
            }
            Err(error) => {
                self.release(held.lease).await;
                Err(error)
            }
        }
    }

    async fn begin(&self, member: &Member, held: &mut Held, asked: &Asked, deadline: Deadline) -> Result<Beginning> {
        held.messages = self.threads.told(&held.thread).await?;
        let name = asked.name.as_deref().map(|name| Key::new(&["chat", name], &Value::Null).as_str().to_owned());
        if let Some(earlier) = earlier(&held.thread, &held.messages, name.as_deref(), asked)? {
            return Ok(Beginning::Earlier(earlier));
        }
        let pending = awaited(&held.thread, asked)?;
        let offered = self.offered(member, held, asked, pending.as_ref(), deadline).await?;
        Ok(Beginning::New { name, pending, offered })
    }

    /// Takes the turn, and tells `observer` what happens as it happens. The answer is written down when this returns.
    ///
    /// # Errors
    /// If the model cannot be asked and nothing has been done yet, or if the answer cannot be written down: the same request may come
    /// again.
    pub async fn answer<O: Observer>(&self, open: OpenTurn, observer: &mut O) -> Result<Answer> {
        let OpenTurn { asked, deadline, begun } = open;
        let mut new = match begun {
            Begun::Earlier(answer) => {
                tell_again(&answer, observer);
                return Ok(*answer);
            }
            Begun::New(new) => new,
        };
        let (stop, request) = (StopSignal::default(), self.threads.stop_request(&new.held.lease));
        let taken = tokio::select! {
            taken = Box::pin(self.take(&mut new, &asked, &stop, observer, deadline)) => taken,
            never = pass_on(&request, &stop) => match never {},
        };
        if taken.is_err() {
            self.release(new.held.lease).await;
        }
        taken
    }

    async fn take<O: Observer>(
        &self,
        new: &mut NewTurn,
        asked: &Asked,
        stop: &StopSignal,
        observer: &mut O,
        deadline: Deadline,
    ) -> Result<Answer> {
        let NewTurn { member, email, account, held, name, pending, offered } = new;
        let in_use = LlmInUse { accounts: &self.accounts, organization: member.organization_id, account };
        let model = LlmModel { llm: &self.llm, account: in_use, model: None };
        let mut observer = Metered { turns: self, member, on_own_key: account.is_own(), observer };
        self.shorten(held, &model, &mut observer, deadline).await;

        let turn = pending.as_ref().map_or(held.thread.turns + 1, |pending| pending.turn);
        let no_call = Conversation::default();
        let planner = Planner {
            model: &model,
            function_calling: self.settings.function_calling,
            offered,
            limits: self.settings.limits,
            context: CallContext {
                organization: member.organization_id,
                user: Some(&member.user_id),
                subject: Subject::Turn { thread: held.thread.id, turn },
                delivery: None,
                conversation: &no_call,
                trigger: Trigger::Conversation,
                deadline,
            },
            turn,
            wait_within: WAIT_WITHIN,
            stop: stop.clone(),
        };
        let mut state = state(member, email.take(), held, asked);
        let ended = match (&pending, &asked.awaited) {
            (Some(pending), Some(awaited)) => {
                state = state.resumed(pending);
                planner.resume(pending, decided(pending, awaited), &mut state, &mut observer).await?
            }
            _ => planner.run(&mut state, &mut observer).await?,
        };
        let answer = answer(held, asked, &state, &ended);
        self.save(held, asked, name.take(), &state, &answer).await?;
        Ok(answer)
    }

    /// Asks the turn of a member's thread that is just being answered to end. False if there is none.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the member has no such thread.
    pub async fn stop(&self, member: &Member, thread: &str) -> Result<bool> {
        let id = ThreadId::of_name(member.organization_id, &member.user_id, thread);
        self.threads.ask_to_stop(member.organization_id, id).await
    }

    async fn release(&self, lease: Lease) {
        if let Err(error) = self.threads.release(lease).await {
            tracing::warn!("a thread is held until its lease runs out: {}", error::chain(&error));
        }
    }

    /// The thread that is made if there is none of this name. It has its title at once: its first turn may fail.
    fn new_thread(&self, member: &Member, asked: &Asked) -> Thread {
        let (now, name) = (Timestamp::now(), asked.thread.as_str());
        Thread {
            id: ThreadId::of_name(member.organization_id, &member.user_id, name),
            organization_id: member.organization_id,
            user_id: member.user_id.clone(),
            name: name.to_owned(),
            title: title(&asked.message),
            turns: 0,
            messages: 0,
            summary: None,
            pending: None,
            spent: Spent::default(),
            created_at: now,
            updated_at: now,
            expires_at: now.plus(self.settings.threads_kept).as_seconds(),
        }
    }

    /// Summarizes the older messages of a long conversation. If that fails, they are all told.
    async fn shorten<O: Observer>(&self, held: &mut Held, model: &LlmModel<'_>, observer: &mut O, deadline: Deadline) {
        let Some(older) = is_long(&held.messages) else { return };
        let (Some(to_summarize), before) = (held.messages.get(..older), held.thread.summary.as_ref()) else { return };
        let Some(until) = to_summarize.last().map(|message| message.number) else { return };
        let before = before.map(|before| before.text.as_str());
        let completion = match summarize(model, before, to_summarize, deadline.reserving(TURN_NEEDS)).await {
            Ok(completion) => completion,
            Err(error) => {
                tracing::warn!("a long conversation was not summarized: {}", error::chain(&error));
                return;
            }
        };
        let _the_next_request_finds_it = observer.spent(completion.usage.cost.unwrap_or_default()).await;
        let text = completion.text.trim();
        if text.is_empty() {
            return;
        }
        let summary = ThreadSummary { text: text.to_owned(), until, at: Timestamp::now() };
        match self.threads.summarize(&held.lease, &summary).await {
            Ok(_) => {
                held.thread.summary = Some(summary);
                held.messages.drain(..older);
                held.summarized = true;
            }
            Err(error) => tracing::warn!("the summary of a conversation was not saved: {}", error::chain(&error)),
        }
    }

    /// What may be called in the turn.
    async fn offered(
        &self,
        member: &Member,
        held: &Held,
        asked: &Asked,
        pending: Option<&PendingCall>,
        deadline: Deadline,
    ) -> Result<OfferedTools> {
        let offer = Offer { catalogue: &self.catalogue, discovery: &self.discovery, executor: &self.executor };
        let organization = member.organization_id;
        // What is asked now, and what it may refer to.
        let said = held.messages.iter().rev().filter(|message| message.role == ChatRole::User).take(2);
        let words: Vec<&str> =
            std::iter::once(asked.message.as_str()).chain(said.map(|message| message.content.as_str())).collect();
        let mut offered = OfferedTools::default();
        for tool in &asked.tools {
            tool.offer(&mut offered);
        }
        offer.add_tools(organization, member.role, &words.join(" "), &mut offered, deadline).await?;
        if let Some(pending) = pending.filter(|pending| pending.waits_for == WaitsFor::Consent) {
            offer.pinned(organization, member.role, &pending.tool, &mut offered, deadline).await?;
        }
        Ok(offered)
    }

    /// Writes the turn down. One that waits for the front end is not over: its answer is still to come.
    async fn save(
        &self,
        held: &Held,
        asked: &Asked,
        name: Option<String>,
        state: &AgentState,
        answer: &Answer,
    ) -> Result<()> {
        let before = &held.thread;
        let mut spent = before.spent;
        spent.iterations += state.spent.iterations;
        spent.calls += u32::try_from(state.tool_results.len()).unwrap_or(u32::MAX);
        spent.prompt_tokens += state.spent.prompt_tokens;
        spent.completion_tokens += state.spent.completion_tokens;
        spent.cached_tokens += state.spent.cached_tokens;
        spent.cost += state.spent.cost;
        let (is_said, is_answered) = (!asked.message.is_empty(), !answer.content.is_empty());
        let count = u32::from(is_said) + u32::from(is_answered);
        let title = if before.title.is_empty() { title(&asked.message) } else { before.title.clone() };
        let turn = before.turns + 1;
        let thread = Thread {
            title,
            turns: turn,
            messages: before.messages + count,
            pending: state.pending.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?,
            spent,
            updated_at: answer.timestamp,
            expires_at: answer.timestamp.plus(self.settings.threads_kept).as_seconds(),
            ..before.clone()
        };
        let message = |number: u32, role: ChatRole, content: &str| ThreadMessage {
            number,
            turn,
            role,
            content: content.to_owned(),
            request: None,
            tool_results: None,
            widget: None,
            metadata: None,
            created_at: answer.timestamp,
        };
        let mut messages = Vec::with_capacity(2);
        let mut name = name;
        if is_said {
            let question = message(before.messages + 1, ChatRole::User, &asked.message);
            messages.push(ThreadMessage { request: name.take(), ..question });
        }
        if is_answered {
            let some = !state.tool_results.is_empty();
            messages.push(ThreadMessage {
                request: name,
                tool_results: some.then(|| fit(json!(state.tool_results), LARGEST_RESULTS).to_string()),
                widget: answer.widget.as_ref().map(Value::to_string),
                metadata: Some(answer.metadata.to_string()),
                ..message(before.messages + count, ChatRole::Assistant, &answer.content)
            });
        }
        self.threads.save(&held.lease, SavedTurn { thread: &thread, messages: &messages }).await
    }
}

/// Gives the signal when the turn is asked to end.
async fn pass_on(request: &StopRequest, stop: &StopSignal) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(LOOKS_FOR_STOP).await;
        match request.is_there().await {
            Ok(true) => stop.give(),
            Ok(false) => {}
            // The turn goes on to its end, as if nobody had asked.
            Err(error) => tracing::warn!("whether a turn is to end is not known: {}", error::chain(&error)),
        }
    }
}

/// What a conversation that begins with this is called.
fn title(message: &str) -> String {
    message.chars().map(|letter| if is_unseen(letter) { ' ' } else { letter }).take(LONGEST_TITLE).collect()
}

fn state(member: &Member, email: Option<String>, held: &Held, asked: &Asked) -> AgentState {
    let told = held.messages.iter().map(|message| ChatMessage { role: message.role, content: message.content.clone() });
    let said = (!asked.message.is_empty()).then(|| ChatMessage::user(&asked.message));
    let messages = told.chain(said).collect();
    let who = UserContext { user_id: member.user_id.clone(), user_email: email, user_role: member.role };
    let answers = held.messages.iter().filter(|message| message.role == ChatRole::Assistant);
    let mut newest: Vec<_> = answers.rev().take(ANSWERS_WITH_RESULTS).collect();
    newest.reverse();
    let mut state = AgentState::new(messages, who);
    state.summary = held.thread.summary.as_ref().map(|summary| summary.text.clone());
    state.earlier_results = newest.into_iter().flat_map(ThreadMessage::results).collect();
    state
}

fn answer(held: &Held, asked: &Asked, state: &AgentState, ended: &Ended) -> Answer {
    let tools: Vec<Value> = state
        .tool_results
        .iter()
        .map(|result| json!({"tool": result.tool, "outcome": result.outcome.as_str()}))
        .collect();
    let mut metadata = json!({
        "conversation_id": asked.thread,
        "iteration_count": state.iteration,
        "current_step": state.current_step.as_str(),
        "tools": tools,
        "summarized": held.summarized,
        "corrected": !state.claims.is_empty(),
        "incomplete": matches!(ended, Ended::BrokenOff(_)),
    });
    if let (Value::Object(metadata), Some(pending)) = (&mut metadata, &state.pending) {
        metadata.insert("pending_action".into(), waiting_view(pending));
    }
    Answer {
        thread: asked.thread.clone(),
        content: ended.text().to_owned(),
        timestamp: Timestamp::now(),
        widget: state.widget.as_ref().map(|widget| json!(widget)),
        metadata,
        waits: state.pending.clone(),
    }
}

/// A call that waits, as its person sees it: `{"id", "tool", "arguments", "reason", "expires_at"}`.
pub fn waiting_view(pending: &PendingCall) -> Value {
    json!({
        "id": pending.id, "tool": pending.tool.name, "arguments": pending.arguments, "reason": pending.reason,
        "expires_at": pending.expires_at,
    })
}
