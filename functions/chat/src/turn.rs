//! A turn: the thread is held, the planner answers, and message and answer are written down together.
//!
//! The turn's number is the thread's count of turns and one. A turn that died was not counted, so whoever sends the message again
//! takes the same turn, and its effects, which are claimed for thread, turn and arguments, do not happen a second time.

use std::{ops::ControlFlow, time::Duration};

use futures_util::try_join;
use serde_json::{Value, json};
use shared::{
    Deadline, Error, Result,
    clients::llm::Account,
    cut::fit,
    error,
    http::Person,
    idempotency::Key,
    models::{
        Budget, ChatRole, Member, PendingCall, Thread, ThreadId, ThreadMessage, ThreadSummary, Timestamp, Trigger,
    },
    planner::{
        AgentState, ChatMessage, Ended, Event, LlmModel, Observer, Offer, OfferedTools, Planner, Stop, UserContext,
        is_long, summarize,
    },
    store::{Lease, SavedTurn, over},
    tool::{CallContext, Conversation, Subject},
};

use crate::{Deps, body::ChatRequest};

/// Kept back from the time for which another turn of the same thread is waited for.
const TURN_NEEDS: Duration = Duration::from_secs(8);
/// A lease outlasts the invocation that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);
/// Within which a person must have consented.
const CONSENT_WITHIN: Duration = Duration::from_secs(60 * 60);
/// Answers before this one whose tool results the model is still told.
const ANSWERS_WITH_RESULTS: usize = 3;
/// What is kept of a turn's tool results, in bytes.
const LARGEST_RESULTS: usize = 96 * 1024;
/// Of a thread's first message, what names the thread, in characters.
const LONGEST_TITLE: usize = 80;

/// What a door answers.
pub(crate) struct Answer {
    pub(crate) thread: String,
    pub(crate) content: String,
    pub(crate) timestamp: Timestamp,
    pub(crate) widget: Option<Value>,
    pub(crate) metadata: Value,
}

/// Counts what the model's answers cost, and ends a turn when the organization's money is gone.
struct Meter<'a> {
    deps: &'a Deps,
    member: &'a Member,
    on_own_key: bool,
}

impl Observer for Meter<'_> {
    fn event(&mut self, _event: Event<'_>) {}

    async fn spent(&mut self, cost: f64) -> ControlFlow<Stop> {
        if cost <= 0.0 {
            return ControlFlow::Continue(());
        }
        match self.deps.budgets.spend(self.member.organization_id, self.on_own_key, cost).await {
            Ok(usage) if usage.is_used_up(Timestamp::now()) => ControlFlow::Break(Stop::OverBudget(over(&usage))),
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                tracing::error!("what a turn has cost was not counted: {}", error::chain(&error));
                ControlFlow::Continue(())
            }
        }
    }
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

pub(crate) async fn take(deps: &Deps, person: &Person, asked: ChatRequest, deadline: Deadline) -> Result<Answer> {
    let member = &person.member;
    let organization = member.organization_id;
    let (account, usage) = try_join!(deps.accounts.llm(organization), deps.budgets.usage(organization, deadline))?;
    let cost = Budget::of_cost(account.is_own());
    if let Some(used_up) = usage.iter().find(|usage| usage.budget == cost && usage.is_used_up(Timestamp::now())) {
        return Err(over(used_up).into());
    }
    let length = deadline.remaining() + LEASE_RESERVE;
    let new = new_thread(deps, member, &asked.thread);
    let (thread, lease) = deps.threads.open(&new, length, deadline.reserving(TURN_NEEDS)).await?;
    let mut held = Held { thread, lease, messages: Vec::new(), summarized: false };
    let taken = Box::pin(held_turn(deps, person, &asked, &account, &mut held, deadline)).await;
    if !matches!(taken, Ok((_, Saved::Yes)))
        && let Err(error) = deps.threads.release(held.lease).await
    {
        tracing::warn!("a thread is held until its lease runs out: {}", error::chain(&error));
    }
    taken.map(|(answer, _)| answer)
}

/// Whether the turn was written down, and the lease released with it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Saved {
    Yes,
    No,
}

async fn held_turn(
    deps: &Deps,
    person: &Person,
    asked: &ChatRequest,
    account: &Account,
    held: &mut Held,
    deadline: Deadline,
) -> Result<(Answer, Saved)> {
    held.messages = deps.threads.told(&held.thread).await?;
    let name = asked.name.as_deref().map(|name| Key::new(&["chat", name], &Value::Null).as_str().to_owned());
    if let Some(earlier) = earlier(held, name.as_deref(), asked)? {
        return Ok((earlier, Saved::No));
    }
    let pending = decided(held, asked)?;
    let model = LlmModel { llm: &deps.llm, account, model: None };
    let mut meter = Meter { deps, member: &person.member, on_own_key: account.is_own() };
    shorten(deps, held, &model, &mut meter, deadline).await;
    let offered = offered(deps, &person.member, held, asked, pending.as_ref(), deadline).await?;

    let turn = pending.as_ref().map_or(held.thread.turns + 1, |pending| pending.turn);
    let no_call = Conversation::default();
    let planner = Planner {
        model: &model,
        function_calling: deps.planner.function_calling,
        offered: &offered,
        limits: deps.planner.limits,
        context: CallContext {
            organization: person.member.organization_id,
            user: Some(&person.member.user_id),
            subject: Subject::Turn { thread: held.thread.id, turn },
            delivery: None,
            conversation: &no_call,
            trigger: Trigger::Conversation,
            deadline,
        },
        turn,
        consent_within: CONSENT_WITHIN,
    };
    let mut state = state(person, held, asked);
    let ended = match (&pending, &asked.consent) {
        (Some(pending), Some(consent)) => {
            state = state.resumed(pending);
            planner.resume(pending, consent.approved, &mut state, &mut meter).await?
        }
        _ => planner.run(&mut state, &mut meter).await?,
    };
    let answer = answer(held, asked, &state, &ended);
    save(deps, held, asked, name, &state, &answer).await?;
    Ok((answer, Saved::Yes))
}

/// The thread that is made if there is none of this name.
fn new_thread(deps: &Deps, member: &Member, name: &str) -> Thread {
    let now = Timestamp::now();
    Thread {
        id: ThreadId::of_name(member.organization_id, &member.user_id, name),
        organization_id: member.organization_id,
        user_id: member.user_id.clone(),
        name: name.to_owned(),
        title: String::new(),
        turns: 0,
        messages: 0,
        summary: None,
        pending: None,
        spent: shared::models::Spent::default(),
        created_at: now,
        updated_at: now,
        expires_at: now.plus(deps.planner.threads_kept).as_seconds(),
    }
}

/// The answer to the same request, if it came before.
///
/// # Errors
/// [`Error::Conflict`] if it said something else then.
fn earlier(held: &Held, name: Option<&str>, asked: &ChatRequest) -> Result<Option<Answer>> {
    let Some(name) = name else { return Ok(None) };
    let mut messages = held.messages.iter();
    let Some(said) = messages.find(|message| message.request.as_deref() == Some(name)) else { return Ok(None) };
    if said.content != asked.message {
        let sentence = "this Idempotency-Key, or consent, came with another message before; use another one";
        return Err(Error::Conflict(sentence.into()));
    }
    let parsed = |text: &Option<String>| text.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Ok(messages.next().map(|answer| Answer {
        thread: held.thread.name.clone(),
        content: answer.content.clone(),
        timestamp: answer.created_at,
        widget: parsed(&answer.widget),
        metadata: parsed(&answer.metadata).unwrap_or_else(|| json!({})),
    }))
}

/// The call that the person has decided about.
///
/// # Errors
/// [`Error::Conflict`] if it does not wait any more.
fn decided(held: &Held, asked: &ChatRequest) -> Result<Option<PendingCall>> {
    let Some(consent) = &asked.consent else { return Ok(None) };
    let waits = held.thread.pending_call();
    let waits = waits.filter(|pending| pending.id == consent.id && pending.expires_at > Timestamp::now());
    waits.map(Some).ok_or_else(|| {
        Error::Conflict(
            "nothing waits for this consent: it was decided or ran out, or another message came in between; ask for it again"
                .into(),
        )
    })
}

/// Summarizes the older messages of a long conversation. If that fails, they are all told.
async fn shorten(deps: &Deps, held: &mut Held, model: &LlmModel<'_>, meter: &mut Meter<'_>, deadline: Deadline) {
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
    let _the_next_request_finds_it = meter.spent(completion.usage.cost.unwrap_or_default()).await;
    let text = completion.text.trim();
    if text.is_empty() {
        return;
    }
    let summary = ThreadSummary { text: text.to_owned(), until, at: Timestamp::now() };
    match deps.threads.summarize(&held.lease, &summary).await {
        Ok(_) => {
            held.thread.summary = Some(summary);
            held.messages.drain(..older);
            held.summarized = true;
        }
        Err(error) => tracing::warn!("the summary of a conversation was not saved: {}", error::chain(&error)),
    }
}

async fn offered(
    deps: &Deps,
    member: &Member,
    held: &Held,
    asked: &ChatRequest,
    pending: Option<&PendingCall>,
    deadline: Deadline,
) -> Result<OfferedTools> {
    let offer = Offer { catalogue: &deps.catalogue, discovery: &deps.discovery, executor: &deps.executor };
    let organization = member.organization_id;
    // What is asked now, and what it may refer to.
    let said = held.messages.iter().rev().filter(|message| message.role == ChatRole::User).take(2);
    let words: Vec<&str> =
        std::iter::once(asked.message.as_str()).chain(said.map(|message| message.content.as_str())).collect();
    let mut offered = offer.tools(organization, member.role, &words.join(" "), deadline).await?;
    if let Some(pending) = pending {
        offer.pinned(organization, member.role, &pending.tool, &mut offered, deadline).await?;
    }
    Ok(offered)
}

fn state(person: &Person, held: &Held, asked: &ChatRequest) -> AgentState {
    let told = held.messages.iter().map(|message| ChatMessage { role: message.role, content: message.content.clone() });
    let messages = told.chain([ChatMessage::user(&asked.message)]).collect();
    let member = &person.member;
    let who = UserContext { user_id: member.user_id.clone(), user_email: person.email.clone(), user_role: member.role };
    let answers = held.messages.iter().filter(|message| message.role == ChatRole::Assistant);
    let mut newest: Vec<_> = answers.rev().take(ANSWERS_WITH_RESULTS).collect();
    newest.reverse();
    let mut state = AgentState::new(messages, who);
    state.summary = held.thread.summary.as_ref().map(|summary| summary.text.clone());
    state.earlier_results = newest.into_iter().flat_map(ThreadMessage::results).collect();
    state
}

fn answer(held: &Held, asked: &ChatRequest, state: &AgentState, ended: &Ended) -> Answer {
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
        metadata.insert("pending_action".into(), shown(pending));
    }
    Answer {
        thread: asked.thread.clone(),
        content: ended.text().to_owned(),
        timestamp: Timestamp::now(),
        widget: state.widget.as_ref().map(|widget| json!(widget)),
        metadata,
    }
}

/// A call that waits, as the person sees it.
pub(crate) fn shown(pending: &PendingCall) -> Value {
    json!({
        "id": pending.id, "tool": pending.tool.name, "arguments": pending.arguments, "reason": pending.reason,
        "expires_at": pending.expires_at,
    })
}

async fn save(
    deps: &Deps,
    held: &Held,
    asked: &ChatRequest,
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
    let title = if before.title.is_empty() {
        asked.message.chars().take(LONGEST_TITLE).collect()
    } else {
        before.title.clone()
    };
    let turn = before.turns + 1;
    let thread = Thread {
        title,
        turns: turn,
        messages: before.messages + 2,
        pending: state.pending.as_ref().map(serde_json::to_string).transpose().map_err(Error::internal)?,
        spent,
        updated_at: answer.timestamp,
        expires_at: answer.timestamp.plus(deps.planner.threads_kept).as_seconds(),
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
    let question = ThreadMessage { request: name, ..message(before.messages + 1, ChatRole::User, &asked.message) };
    let results = (!state.tool_results.is_empty()).then(|| fit(json!(state.tool_results), LARGEST_RESULTS).to_string());
    let reply = ThreadMessage {
        tool_results: results,
        widget: answer.widget.as_ref().map(Value::to_string),
        metadata: Some(answer.metadata.to_string()),
        ..message(before.messages + 2, ChatRole::Assistant, &answer.content)
    };
    deps.threads.save(&held.lease, SavedTurn { thread: &thread, messages: [&question, &reply] }).await
}
