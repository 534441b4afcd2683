//! POST /api/tools/{id}/execute: VAPI calls a tool in the middle of a conversation.
//!
//! Let in by the tool's own token (`metadata.token`) or the bearer of VAPI's credential. The answer is HTTP 200 whatever
//! becomes of the tool, because VAPI shows the model nothing else: `{"success": true, "result", "exports"?, "logs"?}` or
//! `{"success": false, "error": "one sentence"}`; for VAPI's `tool-calls` message `{"results": [...]}`. Only a caller who
//! has no business here gets 400, 401 or 404.

mod bearer;
mod invocation;
mod numbers;

use std::time::{Duration, Instant};

use futures_util::{future::join_all, join};
use serde_json::Value;
use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    error,
    http::{self, Reply, Request},
    idempotency::{Claim, Idempotency, Key, Outcome, Ticket},
    models::{
        Call, Execution, ExecutionId, ExecutionStatus, PhoneNumber, Timestamp, Tool, ToolId, Unowned, VerifiedTool,
    },
    store::{Calls, Executions, Tools},
    telemetry,
    tools::{self, ANSWER_WITHIN, Conversation, Effect, Ran, Services, ToolConfig, ToolTokens, arguments},
};

use crate::invocation::{Invocation, Metadata, Requested};

/// A claim must outlast the function that holds it.
const LEASE_RESERVE: Duration = Duration::from_secs(5);

pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    pub executions: Executions,
    pub idempotency: Idempotency,
    pub tokens: ToolTokens,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
    pub services: Services,
    /// How long the history of a run is kept.
    pub history: Duration,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request).at_most(ANSWER_WITHIN);
    let id = tool_id(&request)?;
    let invocation = Invocation::read(http::json_body(&request)?)?;
    let verified = verify(deps, id, &request, &invocation).await?;

    // One round trip: the tool, the call, the number, and the claim on the effect, beside each other.
    let (tool, call, line, claims) = join!(
        deps.tools.of_token(verified),
        find_call(deps, &invocation.metadata),
        find_line(deps, &invocation.metadata),
        join_all(invocation.requested.iter().enumerate().map(|(index, requested)| {
            let invocation = &invocation;
            async move {
                if invocation.claims_ahead(index) {
                    Some(claim(deps, id, invocation, requested, deadline).await)
                } else {
                    None
                }
            }
        })),
    );
    let tool = match tool {
        Ok(tool) => tool,
        Err(error @ Error::NotFound(_)) => {
            give_back(deps, claims).await;
            return Err(error);
        }
        Err(error) => {
            give_back(deps, claims).await;
            report(&error, id);
            return invocation.answer(vec![unavailable().answer; invocation.requested.len()]);
        }
    };
    let conversation = numbers::verify(&deps.services.phone_numbers, &tool, &invocation.metadata, call, line).await;
    let (tool, conversation, asked) = (&tool, conversation.as_ref(), &invocation);
    let runs = invocation.requested.iter().zip(claims).map(|(requested, claim)| async move {
        let started = Started::now();
        let run = Run { deps, tool, invocation: asked, requested, deadline };
        let (ran, ignored) = match conversation {
            _ if asked.mixes_tools() && !requested.names(tool.name.as_str()) => {
                give_back(deps, vec![claim]).await;
                (Ran::failed(format!("Only the tool {} can be called here.", tool.name)), Vec::new())
            }
            Ok(conversation) => match &requested.unreadable {
                None => run.once(conversation, claim).await,
                Some(sentence) => (Ran::failed(sentence), Vec::new()),
            },
            Err(refused) => {
                give_back(deps, vec![claim]).await;
                report(refused, id);
                (numbers::sentence(refused), Vec::new())
            }
        };
        run.finish(started, ran, ignored)
    });
    let (answers, history): (Vec<_>, Vec<_>) = join_all(runs).await.into_iter().unzip();
    let executions = deps.executions.clone();
    Ok(invocation.answer(answers)?.afterwards(async move {
        let written = join_all(history.iter().map(|execution| executions.put(execution))).await;
        for error in written.into_iter().filter_map(Result::err) {
            tracing::error!("the history of a tool run could not be written: {}", error::chain(&error));
        }
    }))
}

fn tool_id(request: &Request) -> Result<ToolId> {
    let path = http::path(request);
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["api", "tools", id, "execute"] => id.parse().map_err(|_not_an_id| Error::NotFound("tool")),
        _ => Err(Error::NotFound("route")),
    }
}

/// The tool's own token, for which nothing is read, or the bearer of VAPI's credential.
async fn verify(deps: &Deps, id: ToolId, request: &Request, invocation: &Invocation) -> Result<VerifiedTool> {
    if let Some(token) = &invocation.metadata.token {
        return deps.tokens.verify(id, token).await;
    }
    bearer::verify(deps, id, bearer::presented(request).ok_or(Error::Unauthenticated)?).await
}

async fn find_call(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<Call>>> {
    match &metadata.call_id {
        Some(id) => deps.calls.find(id).await,
        None => Ok(None),
    }
}

async fn find_line(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<PhoneNumber>>> {
    match &metadata.called {
        Some(number) => deps.services.phone_numbers.by_number(number).await,
        None => Ok(None),
    }
}

/// Claims the effect for this call, this tool and these arguments.
async fn claim(
    deps: &Deps,
    id: ToolId,
    invocation: &Invocation,
    requested: &Requested,
    deadline: Deadline,
) -> Result<Claim> {
    let metadata = &invocation.metadata;
    // VAPI's ids of tool calls change when a model repeats itself, so they are no part of the key.
    let (kind, call) = match (&metadata.call_id, &metadata.caller) {
        (Some(call), _) => ("call", call.as_str()),
        (None, Some(caller)) => ("caller", caller.as_str()),
        (None, None) => ("nobody", ""),
    };
    let id = id.to_string();
    let key = Key::new(&["tool", &id, kind, call], &arguments::significant(&requested.arguments));
    deps.idempotency.claim(&key, deadline.remaining() + LEASE_RESERVE, deadline.reserving(Duration::from_secs(1))).await
}

/// Claims of effects that will not be caused after all.
async fn give_back(deps: &Deps, claims: Vec<Option<Result<Claim>>>) {
    for claim in claims.into_iter().flatten() {
        if let Ok(Claim::Mine(ticket)) = claim {
            settle(deps, ticket, Outcome::Nothing).await;
        }
    }
}

/// An outcome that cannot be recorded is no reason to withhold the answer: the claim runs out into "unknown" by itself.
async fn settle(deps: &Deps, ticket: Ticket, outcome: Outcome) {
    if let Err(error) = deps.idempotency.settle(ticket, outcome).await {
        tracing::error!("the outcome of a tool run could not be recorded: {}", error::chain(&error));
    }
}

fn report(error: &Error, tool: ToolId) {
    tracing::error!(tool.id = %tool, code = error.code(), "tool run failed: {}", error::chain(error));
}

fn unavailable() -> Ran {
    Ran::failed("This tool is not available just now; try again in a moment.")
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

/// One requested run of the tool.
struct Run<'a> {
    deps: &'a Deps,
    tool: &'a Tool,
    invocation: &'a Invocation,
    requested: &'a Requested,
    deadline: Deadline,
}

impl Run<'_> {
    /// Runs the tool unless its effect has happened already. Gives the names of arguments that were left out, too.
    async fn once(&self, conversation: &Conversation, claim: Option<Result<Claim>>) -> (Ran, Vec<String>) {
        let config = match ToolConfig::stored(self.tool) {
            Ok(config) => config,
            Err(error) => {
                give_back(self.deps, vec![claim]).await;
                report(&error, self.tool.id);
                return (unavailable(), Vec::new());
            }
        };
        if !config.action.has_effect() {
            // Reading twice does no harm; a claim was made only because nobody could know yet.
            give_back(self.deps, vec![claim]).await;
            return self.run(&config, conversation, &serde_json::Map::new()).await;
        }
        let claim = match claim {
            Some(claim) => claim,
            None => self::claim(self.deps, self.tool.id, self.invocation, self.requested, self.deadline).await,
        };
        let ticket = match claim {
            Ok(Claim::Mine(ticket)) => ticket,
            Ok(Claim::Completed(answer)) => return (replay(answer, ExecutionStatus::Replayed), Vec::new()),
            Ok(Claim::Unknown(answer)) => return (replay(answer, ExecutionStatus::Unknown), Vec::new()),
            Ok(Claim::Running) => {
                let sentence = "The same request is still being carried out; wait a moment and do not repeat it.";
                return (Ran::unknown(sentence), Vec::new());
            }
            Err(error) => {
                report(&error, self.tool.id);
                return (unavailable(), Vec::new());
            }
        };
        let (ran, ignored) = self.run(&config, conversation, &ticket.done).await;
        let outcome = match &ran.effect {
            Effect::None => Outcome::Nothing,
            Effect::Done => Outcome::Completed(Value::Object(ran.answer.clone())),
            Effect::Partial(done) => Outcome::Partial { done: done.clone() },
            Effect::Unknown => Outcome::Unknown(Value::Object(ran.answer.clone())),
        };
        settle(self.deps, ticket, outcome).await;
        (ran, ignored)
    }

    async fn run(
        &self,
        config: &ToolConfig,
        conversation: &Conversation,
        done: &serde_json::Map<String, Value>,
    ) -> (Ran, Vec<String>) {
        let parameters = self.tool.function_schema.get("parameters").unwrap_or(&Value::Null);
        let checked = match arguments::check(parameters, &self.requested.arguments) {
            Ok(checked) => checked,
            Err(sentence) => return (Ran::failed(sentence), Vec::new()),
        };
        let organization = self.tool.organization_id;
        let ran = tools::run(
            config,
            &self.deps.services,
            organization,
            conversation,
            &checked.arguments,
            done,
            self.deadline,
        );
        let ran = ran.await.unwrap_or_else(|error| {
            report(&error, self.tool.id);
            unavailable()
        });
        (ran, checked.ignored)
    }

    /// The answer, and the run's place in the history.
    fn finish(&self, started: Started, ran: Ran, ignored: Vec<String>) -> (serde_json::Map<String, Value>, Execution) {
        let Self { deps, tool, invocation, requested, .. } = self;
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
        let execution = Execution {
            id: ExecutionId::generate(),
            organization_id: tool.organization_id,
            tool_id: tool.id,
            call_id: invocation.metadata.call_id.clone(),
            status,
            error: answer.get("error").and_then(Value::as_str).map(redact),
            arguments: requested.arguments.keys().cloned().collect(),
            ignored_arguments: ignored,
            started_at: started.at,
            duration_ms: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
            expires_at: started.at.plus(deps.history).as_seconds(),
        };
        (answer, execution)
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

/// A sentence without phone numbers, for the history.
fn redact(sentence: &str) -> String {
    sentence
        .split(' ')
        .map(|word| {
            let digits = word.chars().filter(char::is_ascii_digit).count();
            if digits >= 7 { "[number]" } else { word }
        })
        .collect::<Vec<_>>()
        .join(" ")
}
