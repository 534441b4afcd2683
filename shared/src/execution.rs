//! Executing a tool: its effect once, within its limits, the outcome on record.
//!
//! The one way from an action and arguments to an outcome, whoever asks: VAPI in the middle of a conversation, the start of
//! a call, a queue, a run of an automation, or a person who tries the tool out.

mod parts;

use std::{
    borrow::Cow,
    time::{Duration, Instant},
};

use futures_util::{future::join_all, join};
use serde_json::{Map, Value, json};

use self::parts::{ClaimedParts, Parts};
use crate::{
    Deadline, Error, Result,
    actions::{self, ActionTool, Attempt, Services},
    error,
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::{
        Budget, CallerHash, Execution, ExecutionId, ExecutionStatus, Limit, OrganizationId, Timestamp, ToolId, Trigger,
    },
    redaction::Unredacted,
    store::{Budgets, Executions, Quotas, Room, Taken},
    telemetry,
    tool::{CallContext, Effect, RecipientOutcome, Subject, ToolOutcome, arguments::Checked},
};

const LEASE_RESERVE: Duration = Duration::from_secs(5);
/// What is left to answer in when a twin has been awaited.
const TWIN_RESERVE: Duration = Duration::from_secs(1);

/// Of an execution, that it can be found by.
const MOST_RECIPIENTS: usize = 40;

/// Executes actions.
#[derive(Clone)]
pub struct Executor {
    pub executions: Executions,
    pub idempotency: Idempotency,
    pub quotas: Quotas,
    /// The organizations'.
    pub budgets: Budgets,
    pub services: Services,
    /// How long an execution is kept in the history.
    pub history: Duration,
}

/// One execution that is asked for.
#[derive(Debug, Clone, Copy)]
pub struct ExecutionRequest<'a> {
    /// Its id in the history.
    pub id: ExecutionId,
    pub arguments: &'a Map<String, Value>,
    /// When it was put on a queue, if it was.
    pub queued_at: Option<Timestamp>,
    /// Its [significant arguments](ActionTool::significant) when it was put on the queue: the tool may have been edited since.
    pub significant: Option<&'a Map<String, Value>>,
    /// Why it is not begun any more, as a sentence; what an earlier delivery did is still told.
    pub too_late: Option<&'a str>,
}

impl<'a> ExecutionRequest<'a> {
    /// One to be carried out now.
    pub fn new(id: ExecutionId, arguments: &'a Map<String, Value>) -> Self {
        Self { id, arguments, queued_at: None, significant: None, too_late: None }
    }
}

/// An execution that is over: what the asker is told, and its place in the history.
#[derive(Debug)]
pub struct Executed {
    pub outcome: ToolOutcome,
    /// Names of arguments that the tool does not have; they were left out.
    pub ignored_arguments: Vec<String>,
    /// Milliseconds.
    pub duration_ms: u64,
    pub execution: Unredacted,
    /// It did not happen for a fault of ours that may pass: whoever can ask again later should.
    pub outage: Option<Error>,
}

/// A claim that was made before the tool was known: whether one is needed, and which arguments count.
#[derive(Debug)]
pub struct ClaimedAhead {
    key: Key,
    claim: Result<Claim>,
}

impl ClaimedAhead {
    /// # Errors
    /// An outage of ours: whether it happened is not known here, and may be known later.
    pub fn made(self) -> Result<Self> {
        let claim = Ok(self.claim?);
        Ok(Self { claim, ..self })
    }

    /// Whether nothing has happened yet, and nobody is at it.
    pub fn is_mine(&self) -> bool {
        matches!(self.claim, Ok(Claim::Mine(_)))
    }
}

impl Executor {
    /// Claims the effect of a tool, for arguments that are guessed to be the [significant](crate::tool::arguments::significant) ones. If
    /// they are not, the claim is released when the tool is known, and the right one made. Nobody is waited for here: whoever
    /// claims several effects would wait for one while holding another.
    pub async fn claim_ahead(
        &self,
        tool: ToolId,
        subject: Subject<'_>,
        delivery: Option<&str>,
        significant: Map<String, Value>,
        deadline: Deadline,
    ) -> ClaimedAhead {
        let key = effect_key(tool, subject, significant);
        let claim = self.idempotency.claim(&key, delivery, lease(deadline), Deadline::after(Duration::ZERO)).await;
        ClaimedAhead { key, claim }
    }

    /// While a twin runs, its result is awaited.
    async fn claim(&self, key: &Key, context: &CallContext<'_>) -> Result<Claim> {
        let deadline = context.deadline;
        let until = deadline.reserving(TWIN_RESERVE);
        self.idempotency.claim(key, context.delivery, lease(deadline), until).await
    }

    /// Releases claims of effects that will not be caused after all.
    pub async fn release(&self, claims: impl IntoIterator<Item = ClaimedAhead>) {
        self.release_tickets(claims.into_iter().filter_map(|ahead| ahead.claim.ok()?.mine())).await;
    }

    /// Executes the tool unless its effect has happened already. `claim` may have been made ahead for the same subject.
    pub async fn execute(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: Option<ClaimedAhead>,
    ) -> Executed {
        let started = Started::now();
        let (tool, done) = match self.with_secrets(tool).await {
            Ok(tool) => {
                let done = self.once(&tool, request, context, claim).await;
                (tool, done)
            }
            Err(outage) => {
                self.release(claim).await;
                (Cow::Borrowed(tool), Err(outage))
            }
        };
        match done {
            Ok((outcome, ignored)) => self.finish(&tool, request, context, started, outcome, ignored),
            Err(outage) => {
                report(&outage, tool.id, context.trigger);
                let told = self.finish(&tool, request, context, started, unavailable(), Vec::new());
                Executed { outage: Some(outage), ..told }
            }
        }
    }

    /// The tool with its secrets in place, if it has any: they are read once a process, and again after five minutes.
    async fn with_secrets<'a>(&self, tool: &'a ActionTool) -> Result<Cow<'a, ActionTool>> {
        let Some(secret) = &tool.values_secret else { return Ok(Cow::Borrowed(tool)) };
        let values = self.services.secrets.get(secret).await?;
        Ok(Cow::Owned(tool.with_secrets(&values)))
    }

    /// An execution that does not take place here: what the asker is told instead.
    pub async fn skip(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: Option<ClaimedAhead>,
        told: ToolOutcome,
    ) -> Executed {
        let started = Started::now();
        self.release(claim).await;
        self.finish(tool, request, context, started, told, Vec::new())
    }

    /// Writes the history, redacted, and counts what has begun against the organization's budget. What cannot be written is
    /// reported, and withholds nothing.
    pub async fn record(&self, history: &[Unredacted]) {
        let put = async |execution: &Unredacted| self.executions.put(&execution.redacted()).await;
        let (written, ()) = join!(join_all(history.iter().map(put)), self.count(history));
        for error in written.into_iter().filter_map(Result::err) {
            tracing::error!("an execution could not be written to the history: {}", error::chain(&error));
        }
    }

    /// All of it is one organization's.
    async fn count(&self, history: &[Unredacted]) {
        let begun: Vec<_> = history.iter().filter_map(Unredacted::counts_for).collect();
        if let Some(organization) = begun.first()
            && let Err(error) = self.budgets.count_executions(*organization, begun.len()).await
        {
            tracing::error!("executions were not counted: {}", error::chain(&error));
        }
    }

    /// Gives the names of arguments that were left out, too.
    ///
    /// # Errors
    /// An outage of our own, before anything was done.
    async fn once(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        ahead: Option<ClaimedAhead>,
    ) -> Result<(ToolOutcome, Vec<String>)> {
        let Checked { arguments, ignored } = match tool.check(request.arguments) {
            Ok(checked) => checked,
            Err(sentence) => {
                self.release(ahead).await;
                return Ok((ToolOutcome::failed(sentence), Vec::new()));
            }
        };
        if !tool.spec.acts() {
            // Reading twice does no harm; a claim was made only because nobody could know yet.
            self.release(ahead).await;
            return Ok((self.act(tool, request, context, &arguments, &Map::new()).await?, ignored));
        }
        let significant = request.significant.cloned();
        let significant = significant.unwrap_or_else(|| tool.significant(&arguments, context.conversation));
        let key = effect_key(tool.id, context.subject, significant);
        let parts = Parts::of(tool, &arguments, context, &key);
        let (claim, held) = match ahead {
            Some(ClaimedAhead { key: expected, claim }) if expected == key && !matches!(claim, Ok(Claim::Running)) => {
                (claim?, None)
            }
            other => {
                let (claimed, ()) = join!(self.claim_with_parts(&key, &parts, context), self.release(other));
                claimed?
            }
        };
        let told = match claim {
            Claim::Mine(ticket) if parts.is_empty() => {
                self.act_claimed(tool, request, context, &arguments, ticket).await?
            }
            Claim::Mine(ticket) => {
                let claimed = ClaimedParts { whole: ticket, parts, held };
                self.act_in_parts(tool, request, context, &arguments, claimed).await?
            }
            other => {
                self.release_tickets(held.into_iter().flatten().filter_map(Claim::mine)).await;
                match other {
                    Claim::Completed(answer) => replay(answer, ExecutionStatus::Replayed),
                    Claim::Unknown { answer, .. } => replay(answer, ExecutionStatus::Unknown),
                    Claim::Mine(_) | Claim::Running => under_way(),
                }
            }
        };
        Ok((told, ignored))
    }

    async fn act_claimed(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        arguments: &Map<String, Value>,
        ticket: Ticket,
    ) -> Result<ToolOutcome> {
        let acted = self.act(tool, request, context, arguments, &ticket.done).await;
        self.settle(ticket, acted.as_ref().map_or(Outcome::Released, recorded)).await;
        acted
    }

    async fn act(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        arguments: &Map<String, Value>,
        done: &Map<String, Value>,
    ) -> Result<ToolOutcome> {
        if let Some(sentence) = request.too_late {
            return Ok(ToolOutcome::failed(sentence));
        }
        if self.budgets.has_executions(context.organization).is_err() {
            return Ok(over_budget(tool));
        }
        let taken = match self.take_room(tool, context).await? {
            Room::Taken(taken) => taken,
            Room::None(limit) => return Ok(limited(tool, limit)),
        };
        let acted = self.run(tool, request, context, arguments, done).await;
        if acted.is_err() {
            // It will be asked for again; that it did not begin must not count.
            self.give_room_back(taken).await;
        }
        acted
    }

    async fn run(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        arguments: &Map<String, Value>,
        done: &Map<String, Value>,
    ) -> Result<ToolOutcome> {
        let attempt = Attempt { id: request.id, done };
        actions::run(&tool.action, &self.services, context, arguments, attempt).await
    }

    /// Counts the execution under the tool's limits: each that begins, whatever becomes of it. Without a limit nothing is
    /// asked.
    ///
    /// # Errors
    /// When it cannot be known whether an effect would still be within its limits: then it does not happen.
    async fn take_room(&self, tool: &ActionTool, context: &CallContext<'_>) -> Result<Room> {
        if tool.limits.none() {
            return Ok(Room::free());
        }
        let whose = counted_for(context);
        let room =
            self.quotas.take(context.organization, tool.id, whose.as_deref(), tool.limits, context.deadline).await;
        match room {
            // Looking something up once too often does less harm than not knowing it in the middle of a call.
            Err(error) if !tool.spec.acts() => {
                report(&error, tool.id, context.trigger);
                Ok(Room::free())
            }
            room => room,
        }
    }

    async fn give_room_back(&self, taken: Taken) {
        if let Err(error) = self.quotas.release(taken).await {
            tracing::error!("an execution that did not begin stays counted: {}", error::chain(&error));
        }
    }

    /// An outcome that cannot be recorded is no reason to withhold the answer: the claim runs out into "unknown" by itself.
    async fn settle(&self, ticket: Ticket, outcome: Outcome) {
        if let Err(error) = self.idempotency.record(ticket, outcome).await {
            tracing::error!("the outcome of an execution could not be recorded: {}", error::chain(&error));
        }
    }

    /// The answer, and the execution's place in the history.
    fn finish(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        started: Started,
        mut outcome: ToolOutcome,
        ignored: Vec<String>,
    ) -> Executed {
        let (kind, status, duration) = (tool.action.kind().as_str(), outcome.status, started.instant.elapsed());
        if let Some(cause) = &outcome.cause {
            let (service, chain) = (cause.service.to_string(), error::chain(cause));
            tracing::warn!(tool.id = %tool.id, tool.kind = kind, upstream.service = service, "an execution did not succeed: {chain}");
        }
        if !ignored.is_empty() {
            tracing::info!(tool.id = %tool.id, "the model gave {} arguments that the tool does not have", ignored.len());
            let logs = ignored.iter().map(|name| format!("The argument \"{name}\" is unknown and was ignored.").into());
            outcome.answer.insert("logs".into(), logs.collect::<Vec<Value>>().into());
        }
        // Nothing happened again, whatever is known of the first time.
        let status = if outcome.repeats { ExecutionStatus::Replayed } else { status };
        telemetry::execution(kind, status.as_str(), duration);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let answer = &outcome.answer;
        let caller = context.conversation.caller.as_ref();
        let caller = caller.map(|caller| CallerHash::of(context.organization, caller));
        let execution = Execution {
            id: request.id,
            organization_id: context.organization,
            tool_id: tool.id,
            call_id: context.call_id().cloned(),
            run_id: context.run_id(),
            recipients: recipients(context.organization, request.arguments, &outcome, caller.as_ref()),
            caller,
            trigger: context.trigger,
            status,
            error: answer.get("error").and_then(Value::as_str).map(str::to_owned),
            arguments: request.arguments.clone(),
            // What is told of an execution that waits is no result.
            result: answer
                .get("result")
                .filter(|result| !result.is_null() && status != ExecutionStatus::Queued)
                .cloned(),
            ignored_arguments: ignored.clone(),
            queued_at: request.queued_at,
            started_at: started.at,
            duration_ms,
            expires_at: started.at.plus(self.history).as_seconds(),
        };
        let parameters = tool.spec.parameters.schema();
        let execution = Unredacted::new(execution, tool.redact.clone(), tool.hidden_texts(), parameters);
        Executed { outcome, ignored_arguments: ignored, duration_ms, execution, outage: None }
    }
}

/// Whom an execution was to reach: who is told of in its outcome, and the numbers among its arguments. Not the caller, whom it
/// is found by anyhow.
fn recipients(
    organization: OrganizationId,
    arguments: &Map<String, Value>,
    outcome: &ToolOutcome,
    caller: Option<&CallerHash>,
) -> Vec<CallerHash> {
    let told: Vec<&str> = outcome.recipients.iter().map(|one| one.to.as_str()).collect();
    let mut found = CallerHash::all_in(organization, &json!([told, arguments]));
    found.retain(|hash| Some(hash) != caller);
    found.truncate(MOST_RECIPIENTS);
    found
}

/// What is recorded of an outcome.
fn recorded(outcome: &ToolOutcome) -> Outcome {
    let answer = || Value::Object(outcome.answer.clone());
    match &outcome.effect {
        Effect::None => Outcome::Released,
        Effect::Done => Outcome::Completed(answer()),
        Effect::Partial { done, unknown } => {
            Outcome::Partial { answer: answer(), done: done.clone(), unknown: *unknown }
        }
        Effect::Unknown { done } => Outcome::Unknown { answer: answer(), done: done.clone() },
    }
}

/// A twin is at it.
fn under_way() -> ToolOutcome {
    ToolOutcome::unknown("The same request is still being carried out; wait a moment and do not repeat it.")
}

/// A claim must outlast whoever holds it.
fn lease(deadline: Deadline) -> Duration {
    deadline.remaining() + LEASE_RESERVE
}

/// Names an effect: what the tool does with these arguments, for this subject.
fn effect_key(tool: ToolId, subject: Subject<'_>, significant: Map<String, Value>) -> Key {
    let (kind, whose) = subject.parts();
    // The name of the delivery is no part of it: a model that repeats itself makes a new tool call of the same effect.
    Key::new(&["tool", &tool.to_string(), kind, &whose], &Value::Object(significant))
}

/// Whose executions count together for `per_call`: those of a call or of an automation's run. Where no call is known it is
/// the caller's within this hour, so that nobody gets round a limit by not naming the call. A person's tries count alone.
fn counted_for(context: &CallContext<'_>) -> Option<String> {
    match context.subject {
        _ if context.trigger == Trigger::Test => None,
        Subject::Call(call) => Some(call.to_string()),
        Subject::Run(run) | Subject::Action { run, .. } => Some(format!("run:{run}")),
        Subject::Turn { thread, .. } => Some(format!("thread:{thread}")),
        Subject::Caller(_) | Subject::Request(_) => {
            let caller = context.conversation.caller.as_deref().unwrap_or_default();
            // Hashed: the number is nobody's business where only a count is kept. No call's id has a colon in it.
            let key = Key::new(&["caller", caller, &Timestamp::now().hour()], &Value::Null);
            Some(format!("caller:{}", key.as_str()))
        }
    }
}

/// What a model hears of a limit.
fn limited(tool: &ActionTool, limit: Limit) -> ToolOutcome {
    telemetry::execution_limited(tool.action.kind().as_str(), limit.as_str());
    let sentence = match limit {
        Limit::PerCall => {
            "This tool has been used as often as is allowed in this call; do not call it again, and offer something else."
        }
        Limit::PerHour | Limit::PerDay => {
            "This tool has been used as often as is allowed within one hour; do not call it again in this call, and offer something else."
        }
    };
    ToolOutcome::failed(sentence).status(ExecutionStatus::Limited)
}

/// What a model hears of the organization's budget.
fn over_budget(tool: &ActionTool) -> ToolOutcome {
    telemetry::execution_limited(tool.action.kind().as_str(), Budget::ExecutionsPerHour.as_str());
    let sentence = "This organization's tools have been used as often as is allowed within one hour; do not call any tool \
                    again in this call, and offer something else.";
    ToolOutcome::failed(sentence).status(ExecutionStatus::Limited)
}

/// What is said when the fault is ours.
pub fn unavailable() -> ToolOutcome {
    ToolOutcome::failed("This tool is not available just now; try again in a moment.")
}

/// A log line about an execution that failed for a reason of ours. Whatever is no refusal counts.
pub fn report(error: &Error, tool: ToolId, trigger: Trigger) {
    tracing::error!(tool.id = %tool, code = error.code(), "an execution failed: {}", error::chain(error));
    if error.status() >= 500 {
        telemetry::tool_fault(trigger.as_str());
    }
}

#[derive(Clone, Copy)]
struct Started {
    at: Timestamp,
    instant: Instant,
}

impl Started {
    fn now() -> Self {
        Self { at: Timestamp::now(), instant: Instant::now() }
    }
}

/// The answer of the same effect's first execution; one whose owner died has none.
fn replay(answer: Value, status: ExecutionStatus) -> ToolOutcome {
    match answer {
        Value::Object(answer) => {
            let recipients = RecipientOutcome::of_recorded(&answer);
            ToolOutcome { answer, recipients, repeats: true, ..ToolOutcome::failed("") }
                .status(status)
                .with(Effect::Done)
        }
        _ => ToolOutcome::unknown(
            "It is not known whether this was done; do not repeat it. Say that it may have gone through.",
        ),
    }
}
