//! Executing a tool: its effect once, within its limits, the outcome on record.
//!
//! The one way from an action and arguments to an outcome, whoever asks: VAPI in the middle of a conversation, the start of
//! a call, a queue, a run of an automation, or a person who tries the tool out.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::{
    Deadline, Error, Result,
    actions::{self, ActionTool, Services},
    error,
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::{Execution, ExecutionId, ExecutionStatus, Limit, Timestamp, ToolId, Trigger},
    redaction::Unredacted,
    store::{Executions, Quotas, Room, Taken},
    telemetry,
    tool::{CallContext, Effect, Subject, ToolOutcome, arguments},
};

/// A claim must outlast the function that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);

/// Executes actions.
#[derive(Clone)]
pub struct Executor {
    pub executions: Executions,
    pub idempotency: Idempotency,
    pub quotas: Quotas,
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

/// A claim that was made before it was known whether one is needed.
pub type ClaimedAhead = Option<Result<Claim>>;

impl Executor {
    /// Claims the effect of a tool with these arguments. While a twin runs, its result is awaited.
    pub async fn claim(
        &self,
        tool: ToolId,
        subject: Subject<'_>,
        arguments: &Map<String, Value>,
        deadline: Deadline,
    ) -> Result<Claim> {
        let (kind, whose) = subject.parts();
        // VAPI's ids of tool calls change when a model repeats itself, so they are no part of the key.
        let key = Key::new(&["tool", &tool.to_string(), kind, &whose], &arguments::significant(arguments));
        let lease = deadline.remaining() + LEASE_RESERVE;
        self.idempotency.claim(&key, lease, deadline.reserving(Duration::from_secs(1))).await
    }

    /// Releases claims of effects that will not be caused after all.
    pub async fn release(&self, claims: impl IntoIterator<Item = ClaimedAhead>) {
        for claim in claims.into_iter().flatten() {
            if let Ok(Claim::Mine(ticket)) = claim {
                self.settle(ticket, Outcome::Released).await;
            }
        }
    }

    /// Executes the tool unless its effect has happened already. `claim` may have been made ahead for the same subject.
    pub async fn execute(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: ClaimedAhead,
    ) -> Executed {
        let started = Started::now();
        let whole;
        let tool = match &tool.values_secret {
            None => tool,
            // Once a process, and again every five minutes.
            Some(secret) => match self.services.secrets.get(secret).await {
                Ok(values) => {
                    whole = tool.with_secrets(&values);
                    &whole
                }
                Err(error) => {
                    self.release([claim]).await;
                    let outage = error.into();
                    report(&outage, tool.id);
                    let told = self.finish(tool, request, context, started, unavailable(), Vec::new());
                    return Executed { outage: Some(outage), ..told };
                }
            },
        };
        match self.once(tool, request, context, claim).await {
            Ok((outcome, ignored)) => self.finish(tool, request, context, started, outcome, ignored),
            Err(outage) => {
                report(&outage, tool.id);
                let told = self.finish(tool, request, context, started, unavailable(), Vec::new());
                Executed { outage: Some(outage), ..told }
            }
        }
    }

    /// An execution that does not take place here: what the asker is told instead.
    pub async fn skip(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: ClaimedAhead,
        told: ToolOutcome,
    ) -> Executed {
        let started = Started::now();
        self.release([claim]).await;
        self.finish(tool, request, context, started, told, Vec::new())
    }

    /// Writes the history, redacted. What cannot be written is reported, and withholds nothing.
    pub async fn record(&self, history: &[Unredacted]) {
        let put = async |execution: &Unredacted| self.executions.put(&execution.redacted()).await;
        let written = join_all(history.iter().map(put)).await;
        for error in written.into_iter().filter_map(Result::err) {
            tracing::error!("an execution could not be written to the history: {}", error::chain(&error));
        }
    }

    /// Gives the names of arguments that were left out, too.
    async fn once(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        claim: ClaimedAhead,
    ) -> Result<(ToolOutcome, Vec<String>)> {
        if !tool.spec.effect {
            // Reading twice does no harm; a claim was made only because nobody could know yet.
            self.release([claim]).await;
            return self.act(tool, request, context, &Map::new()).await;
        }
        let claim = match claim {
            Some(claim) => claim?,
            None => self.claim(tool.id, context.subject, request.arguments, context.deadline).await?,
        };
        let told = |outcome| Ok((outcome, Vec::new()));
        let ticket = match claim {
            Claim::Mine(ticket) => ticket,
            Claim::Completed(answer) => return told(replay(answer, ExecutionStatus::Replayed)),
            Claim::Unknown(answer) => return told(replay(answer, ExecutionStatus::Unknown)),
            Claim::Running => {
                let sentence = "The same request is still being carried out; wait a moment and do not repeat it.";
                return told(ToolOutcome::unknown(sentence));
            }
        };
        let acted = self.act(tool, request, context, &ticket.done).await;
        let outcome = match &acted {
            Err(_) => Outcome::Released,
            Ok((outcome, _)) => match &outcome.effect {
                Effect::None => Outcome::Released,
                Effect::Done => Outcome::Completed(Value::Object(outcome.answer.clone())),
                Effect::Partial(done) => Outcome::Partial { done: done.clone() },
                Effect::Unknown => Outcome::Unknown(Value::Object(outcome.answer.clone())),
            },
        };
        self.settle(ticket, outcome).await;
        acted
    }

    /// # Errors
    /// An outage of our own, before anything was done.
    async fn act(
        &self,
        tool: &ActionTool,
        request: ExecutionRequest<'_>,
        context: &CallContext<'_>,
        done: &Map<String, Value>,
    ) -> Result<(ToolOutcome, Vec<String>)> {
        let checked = match tool.check(request.arguments) {
            Ok(checked) => checked,
            Err(sentence) => return Ok((ToolOutcome::failed(sentence), Vec::new())),
        };
        let taken = match self.take_room(tool, context).await? {
            Room::Taken(taken) => taken,
            Room::None(limit) => return Ok((limited(tool, limit), checked.ignored)),
        };
        let acted = actions::run(&tool.action, &self.services, context, &checked.arguments, done).await;
        if acted.is_err() {
            // It will be asked for again; that it did not begin must not count.
            self.give_room_back(taken).await;
        }
        Ok((acted?, checked.ignored))
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
            Err(error) if !tool.spec.effect => {
                report(&error, tool.id);
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
        telemetry::execution(kind, status.as_str(), duration);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let answer = &outcome.answer;
        let execution = Execution {
            id: request.id,
            organization_id: context.organization,
            tool_id: tool.id,
            call_id: context.call_id().cloned(),
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
        let execution = Unredacted::new(execution, tool.redact.clone(), &tool.static_config, parameters);
        Executed { outcome, ignored_arguments: ignored, duration_ms, execution, outage: None }
    }
}

/// Whose executions count together for `per_call`: those of a call or of an automation's run. Where no call is known it is
/// the caller's within this hour, so that nobody gets round a limit by not naming the call. A person's tries count alone.
fn counted_for(context: &CallContext<'_>) -> Option<String> {
    match context.subject {
        _ if context.trigger == Trigger::Test => None,
        Subject::Call(call) => Some(call.to_string()),
        Subject::Run(run) => Some(format!("run:{run}")),
        Subject::Caller(_) | Subject::Request(_) | Subject::Nobody => {
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
        Limit::PerHour => {
            "This tool has been used as often as is allowed within one hour; do not call it again in this call, and offer something else."
        }
    };
    ToolOutcome::failed(sentence).status(ExecutionStatus::Limited)
}

/// What is said when the fault is ours.
pub fn unavailable() -> ToolOutcome {
    ToolOutcome::failed("This tool is not available just now; try again in a moment.")
}

/// A log line about an execution that failed for a reason of ours.
pub fn report(error: &Error, tool: ToolId) {
    tracing::error!(tool.id = %tool, code = error.code(), "an execution failed: {}", error::chain(error));
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
        Value::Object(answer) => ToolOutcome { answer, status, effect: Effect::Done, cause: None },
        _ => ToolOutcome::unknown(
            "It is not known whether this was done; do not repeat it. Say that it may have gone through.",
        ),
    }
}
