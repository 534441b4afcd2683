//! Running a tool for somebody: its effect once, the outcome on record.
//!
//! The one way from a request to an answer, whoever asks: VAPI in the middle of a conversation, the start of a call, a queue,
//! or a person who tries the tool out.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Map, Value};

use crate::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{CallControl, Outbound, Pipedream, Secrets, Twilio, Vapi},
    config, error,
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::{CallId, Execution, ExecutionId, ExecutionStatus, Limit, RunId, Timestamp, Tool, ToolId, Trigger},
    redaction::Unredacted,
    store::{Agents, Database, Executions, KnowledgeBases, KnowledgeEntries, PhoneNumbers, Quotas, Room, Taken},
    telemetry,
    tools::{self, Conversation, Effect, Ran, Services, ToolConfig, arguments, query::Knowledge},
};

/// A claim must outlast the function that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);

/// Runs tools.
#[derive(Clone)]
pub struct Executor {
    pub executions: Executions,
    pub idempotency: Idempotency,
    pub quotas: Quotas,
    pub services: Services,
    /// How long the history of a run is kept.
    pub history: Duration,
}

/// One run of a tool that is asked for.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    pub id: ExecutionId,
    pub tool: &'a Tool,
    pub call_id: Option<&'a CallId>,
    /// The automation's run that it is part of.
    pub run_id: Option<RunId>,
    pub arguments: &'a Map<String, Value>,
    pub trigger: Trigger,
    /// When it was put on a queue, if it was.
    pub queued_at: Option<Timestamp>,
}

/// Whose effect it is: the same arguments count as the same effect within one call, or for one caller when the call is
/// not known.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'a> {
    Call(&'a CallId),
    Caller(&'a str),
    /// A run of an automation.
    Run(RunId),
    /// Somebody's request outside of any call, by its name.
    Request(&'a str),
    Nobody,
}

impl Executor {
    /// For a process with this configuration; an effect is answered from the record for `effects_count_for`.
    ///
    /// # Errors
    /// When a variable of the environment is missing or cannot be used.
    pub fn from_env(
        database: &Database,
        http_client: reqwest::Client,
        secrets: Secrets,
        accounts: Accounts,
        outbound: Outbound,
        effects_count_for: Duration,
    ) -> Result<Self, config::Error> {
        Ok(Self {
            executions: Executions::new(database),
            idempotency: Idempotency::new(database, effects_count_for),
            quotas: Quotas::new(database),
            services: Services {
                agents: Agents::new(database),
                phone_numbers: PhoneNumbers::new(database),
                secrets,
                twilio: Twilio::new(http_client.clone(), config::twilio_url()),
                pipedream: Pipedream::new(http_client.clone(), config::pipedream_url()),
                pipedream_secret: config::pipedream_secret()?,
                vapi: Vapi::new(http_client.clone(), config::vapi_url()),
                accounts,
                call_control: CallControl::new(http_client, config::control_hosts()),
                outbound,
                knowledge: Knowledge::new(KnowledgeBases::new(database), KnowledgeEntries::new(database)),
            },
            history: config::history()?,
        })
    }
}

impl<'a> Subject<'a> {
    pub fn of(call: Option<&'a CallId>, caller: Option<&'a str>) -> Self {
        match (call, caller) {
            (Some(call), _) => Self::Call(call),
            (None, Some(caller)) => Self::Caller(caller),
            (None, None) => Self::Nobody,
        }
    }

    fn key(self, tool: ToolId, arguments: &Map<String, Value>) -> Key {
        let (kind, whose) = match self {
            Self::Call(call) => ("call", call.to_string()),
            Self::Caller(caller) => ("caller", caller.to_owned()),
            Self::Run(run) => ("run", run.to_string()),
            Self::Request(request) => ("request", request.to_owned()),
            Self::Nobody => ("nobody", String::new()),
        };
        // VAPI's ids of tool calls change when a model repeats itself, so they are no part of the key.
        Key::new(&["tool", &tool.to_string(), kind, &whose], &arguments::significant(arguments))
    }
}

/// A finished run: what the asker is told, and its place in the history.
#[derive(Debug)]
pub struct Finished {
    pub answer: Map<String, Value>,
    pub status: ExecutionStatus,
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
        let lease = deadline.remaining() + LEASE_RESERVE;
        let awaiting = deadline.reserving(Duration::from_secs(1));
        self.idempotency.claim(&subject.key(tool, arguments), lease, awaiting).await
    }

    /// Claims of effects that will not be caused after all.
    pub async fn give_back(&self, claims: impl IntoIterator<Item = ClaimedAhead>) {
        for claim in claims.into_iter().flatten() {
            if let Ok(Claim::Mine(ticket)) = claim {
                self.settle(ticket, Outcome::Nothing).await;
            }
        }
    }

    /// Runs the tool unless its effect has happened already. `claim` may have been made ahead for the same subject.
    pub async fn run(
        &self,
        order: &Order<'_>,
        conversation: &Conversation,
        claim: ClaimedAhead,
        deadline: Deadline,
    ) -> Finished {
        let started = Started::now();
        match self.once(order, conversation, claim, deadline).await {
            Ok((ran, ignored)) => self.finish(order, started, ran, ignored),
            Err(error) => {
                report(&error, order.tool.id);
                Finished { outage: Some(error), ..self.finish(order, started, unavailable(), Vec::new()) }
            }
        }
    }

    /// A run that is not carried out here: what the asker is told instead.
    pub async fn instead(&self, order: &Order<'_>, claim: ClaimedAhead, told: Ran) -> Finished {
        let started = Started::now();
        self.give_back([claim]).await;
        self.finish(order, started, told, Vec::new())
    }

    /// Writes the history, redacted. What cannot be written is reported, and withholds nothing.
    pub async fn record(&self, history: &[Unredacted]) {
        let put = async |run: &Unredacted| self.executions.put(&run.redacted()).await;
        let written = join_all(history.iter().map(put)).await;
        for error in written.into_iter().filter_map(Result::err) {
            tracing::error!("the history of a tool run could not be written: {}", error::chain(&error));
        }
    }

    /// Gives the names of arguments that were left out, too.
    async fn once(
        &self,
        order: &Order<'_>,
        conversation: &Conversation,
        claim: ClaimedAhead,
        deadline: Deadline,
    ) -> Result<(Ran, Vec<String>)> {
        let tool = order.tool;
        let config = match ToolConfig::stored(tool) {
            Ok(config) => config,
            Err(error) => {
                self.give_back([claim]).await;
                return Err(error);
            }
        };
        if !config.action.has_effect() {
            // Reading twice does no harm; a claim was made only because nobody could know yet.
            self.give_back([claim]).await;
            return self.act(&config, order, conversation, &Map::new(), deadline).await;
        }
        let claim = if let Some(claim) = claim {
            claim?
        } else {
            let subject = match order.run_id {
                Some(run) => Subject::Run(run),
                None => Subject::of(order.call_id, conversation.caller.as_deref()),
            };
            self.claim(tool.id, subject, order.arguments, deadline).await?
        };
        let told = |ran| Ok((ran, Vec::new()));
        let ticket = match claim {
            Claim::Mine(ticket) => ticket,
            Claim::Completed(answer) => return told(replay(answer, ExecutionStatus::Replayed)),
            Claim::Unknown(answer) => return told(replay(answer, ExecutionStatus::Unknown)),
            Claim::Running => {
                let sentence = "The same request is still being carried out; wait a moment and do not repeat it.";
                return told(Ran::unknown(sentence));
            }
        };
        let acted = self.act(&config, order, conversation, &ticket.done, deadline).await;
        let outcome = match &acted {
            Err(_) => Outcome::Nothing,
            Ok((ran, _)) => match &ran.effect {
                Effect::None => Outcome::Nothing,
                Effect::Done => Outcome::Completed(Value::Object(ran.answer.clone())),
                Effect::Partial(done) => Outcome::Partial { done: done.clone() },
                Effect::Unknown => Outcome::Unknown(Value::Object(ran.answer.clone())),
            },
        };
        self.settle(ticket, outcome).await;
        acted
    }

    /// # Errors
    /// An outage of our own, before anything was done.
    async fn act(
        &self,
        config: &ToolConfig,
        order: &Order<'_>,
        conversation: &Conversation,
        done: &Map<String, Value>,
        deadline: Deadline,
    ) -> Result<(Ran, Vec<String>)> {
        let checked = match check(order.tool, order.arguments) {
            Ok(checked) => checked,
            Err(sentence) => return Ok((Ran::failed(sentence), Vec::new())),
        };
        let organization = order.tool.organization_id;
        let taken = match self.take_room(config, order, conversation, deadline).await? {
            Room::Taken(taken) => taken,
            Room::None(limit) => return Ok((limited(order.tool, limit), checked.ignored)),
        };
        let ran =
            tools::run(config, &self.services, organization, conversation, &checked.arguments, done, deadline).await;
        if ran.is_err() {
            // It will be asked for again; that it did not begin must not count.
            self.give_room_back(taken).await;
        }
        Ok((ran?, checked.ignored))
    }

    /// Counts the run under the tool's limits: each run that begins, whatever becomes of it. Without a limit nothing is asked.
    ///
    /// # Errors
    /// When it cannot be known whether an effect would still be within its limits: then it does not happen.
    async fn take_room(
        &self,
        config: &ToolConfig,
        order: &Order<'_>,
        conversation: &Conversation,
        deadline: Deadline,
    ) -> Result<Room> {
        if config.limits.none() {
            return Ok(Room::free());
        }
        let tool = order.tool;
        let whose = whose_conversation(order, conversation);
        let room = self.quotas.take(tool.organization_id, tool.id, whose.as_deref(), config.limits, deadline).await;
        match room {
            // Looking something up once too often does less harm than not knowing it in the middle of a call.
            Err(error) if !config.action.has_effect() => {
                report(&error, tool.id);
                Ok(Room::free())
            }
            room => room,
        }
    }

    async fn give_room_back(&self, taken: Taken) {
        if let Err(error) = self.quotas.give_back(taken).await {
            tracing::error!("a tool run that did not begin stays counted: {}", error::chain(&error));
        }
    }

    /// An outcome that cannot be recorded is no reason to withhold the answer: the claim runs out into "unknown" by itself.
    async fn settle(&self, ticket: Ticket, outcome: Outcome) {
        if let Err(error) = self.idempotency.settle(ticket, outcome).await {
            tracing::error!("the outcome of a tool run could not be recorded: {}", error::chain(&error));
        }
    }

    /// The answer, and the run's place in the history.
    fn finish(&self, order: &Order<'_>, started: Started, ran: Ran, ignored: Vec<String>) -> Finished {
        let tool = order.tool;
        let Ran { mut answer, status, cause, .. } = ran;
        let duration = started.instant.elapsed();
        if let Some(cause) = cause {
            let (service, chain) = (cause.service.to_string(), error::chain(&cause));
            tracing::warn!(tool.id = %tool.id, tool.kind = tool.kind.as_str(), upstream.service = service, "tool run did not succeed: {chain}");
        }
        if !ignored.is_empty() {
            tracing::info!(tool.id = %tool.id, "the model gave {} arguments that the tool does not have", ignored.len());
            let logs = ignored.iter().map(|name| format!("The argument \"{name}\" is unknown and was ignored.").into());
            answer.insert("logs".into(), logs.collect::<Vec<Value>>().into());
        }
        telemetry::tool_run(tool.kind.as_str(), status.as_str(), duration);
        let duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        let execution = Execution {
            id: order.id,
            organization_id: tool.organization_id,
            tool_id: tool.id,
            call_id: order.call_id.cloned(),
            trigger: order.trigger,
            status,
            error: answer.get("error").and_then(Value::as_str).map(str::to_owned),
            arguments: order.arguments.clone(),
            // What is told of a run that waits is no result.
            result: answer
                .get("result")
                .filter(|result| !result.is_null() && status != ExecutionStatus::Queued)
                .cloned(),
            ignored_arguments: ignored.clone(),
            queued_at: order.queued_at,
            started_at: started.at,
            duration_ms,
            expires_at: started.at.plus(self.history).as_seconds(),
        };
        Finished {
            answer,
            status,
            ignored_arguments: ignored,
            duration_ms,
            execution: Unredacted::new(execution, tool),
            outage: None,
        }
    }
}

/// The arguments that may go on to the tool.
///
/// # Errors
/// One sentence that names the argument.
pub fn check(tool: &Tool, arguments: &Map<String, Value>) -> Result<arguments::Checked, String> {
    arguments::check(tool.function_schema.get("parameters").unwrap_or(&Value::Null), arguments)
}

/// The conversation whose runs count together: the call, or the automation's run. Where no call is known it is the caller's runs in this hour, so that
/// nobody gets round a limit by not naming the call. Each try of a person's is one of its own.
fn whose_conversation(order: &Order<'_>, conversation: &Conversation) -> Option<String> {
    match (order.call_id, order.run_id) {
        _ if order.trigger == Trigger::Test => None,
        (Some(call), _) => Some(call.to_string()),
        (None, Some(run)) => Some(format!("run:{run}")),
        (None, None) => {
            let caller = conversation.caller.as_deref().unwrap_or_default();
            // Hashed: the number is nobody's business where only a count is kept. No call's id has a colon in it.
            let key = Key::new(&["caller", caller, &Timestamp::now().hour()], &Value::Null);
            Some(format!("caller:{}", key.as_str()))
        }
    }
}

/// What a model hears of a limit.
fn limited(tool: &Tool, limit: Limit) -> Ran {
    telemetry::tool_limited(tool.kind.as_str(), limit.as_str());
    let sentence = match limit {
        Limit::PerCall => {
            "This tool has been used as often as is allowed in this call; do not call it again, and offer something else."
        }
        Limit::PerHour => {
            "This tool has been used as often as is allowed within one hour; do not call it again in this call, and offer something else."
        }
    };
    Ran::failed(sentence).status(ExecutionStatus::Limited)
}

/// What is said when the fault is ours.
pub fn unavailable() -> Ran {
    Ran::failed("This tool is not available just now; try again in a moment.")
}

/// A log line about a run that failed for a reason of ours.
pub fn report(error: &Error, tool: ToolId) {
    tracing::error!(tool.id = %tool, code = error.code(), "tool run failed: {}", error::chain(error));
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

/// The answer of the same effect's first run; one whose owner died has none.
fn replay(answer: Value, status: ExecutionStatus) -> Ran {
    match answer {
        Value::Object(answer) => Ran { answer, status, effect: Effect::Done, cause: None },
        _ => {
            Ran::unknown("It is not known whether this was done; do not repeat it. Say that it may have gone through.")
        }
    }
}
