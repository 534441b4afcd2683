//! Executes a tool: effect once, within limits, with a history entry.
//!
//! All callers use it: VAPI during a conversation or at the start of a call, queues, runs of automations, and people who try a
//! tool.

mod background;
mod claimant;
mod earlier;
mod late_outcomes;
mod parts;

use std::{
    borrow::Cow,
    slice,
    time::{Duration, Instant},
};

use futures_util::{future::join_all, join};
use serde_json::{Map, Value, json};

use self::{
    claimant::{claimant, counted_for, effect_key},
    earlier::beside_earlier,
    late_outcomes::LateOutcomes,
    parts::{ClaimedParts, Parts},
};
use crate::{
    Deadline, Error, Result,
    actions::{self, ActionCall, ActionClients, ActionTool, Attempt},
    backoff::Backoff,
    clients::Queue,
    error,
    idempotency::{Claim, ClaimRequest, Idempotency, Key, Outcome, Ticket},
    models::{
        Budget, CallerHash, Execution, ExecutionId, ExecutionOrigin, ExecutionStatus, FailedTool, Fault, Limit,
        OrganizationId, Timestamp, ToolId,
    },
    redaction::Unredacted,
    store::{Budgets, Executions, Quotas, Room, Taken, Window},
    telemetry,
    tool::{CALL_NEEDS, CallContext, Effect, RecipientOutcome, Subject, ToolOutcome, arguments::Checked},
};

const LEASE_RESERVE: Duration = Duration::from_secs(5);
/// Time reserved for the answer after waiting for a duplicate request.
const TWIN_RESERVE: Duration = Duration::from_secs(1);

/// First pause before a write to the history is repeated.
const HISTORY_PAUSE: Duration = Duration::from_millis(500);
const MOST_RECIPIENTS: usize = 40;

#[derive(Clone)]
pub struct Executor {
    pub executions: Executions,
    pub idempotency: Idempotency,
    pub quotas: Quotas,
    pub budgets: Budgets,
    pub services: ActionClients,
    pub history: Duration,
    /// Told of the tools that fail in calls.
    pub failed_tools: Option<Queue<FailedTool>>,
    pub(crate) late: Option<LateOutcomes>,
}

#[derive(Debug, Clone, Copy)]
pub struct ExecutionRequest<'a> {
    pub id: ExecutionId,
    pub arguments: &'a Map<String, Value>,
    /// Set if it came through a queue, whose function reports an outage after its last attempt.
    pub queued_at: Option<Timestamp>,
    /// Its [significant arguments](ActionTool::significant) when it was queued, because the tool may have been edited since.
    pub significant: Option<&'a Map<String, Value>>,
    /// The reason why it must not start any more, a sentence; an earlier delivery's outcome is still returned.
    pub too_late: Option<&'a str>,
    /// The remaining time that an effect needs to begin.
    pub needs: Duration,
    /// See [`ClaimRequest::confirmed_after`].
    pub confirmed_after: Option<Timestamp>,
}

impl<'a> ExecutionRequest<'a> {
    pub fn new(id: ExecutionId, arguments: &'a Map<String, Value>) -> Self {
        Self {
            id,
            arguments,
            queued_at: None,
            significant: None,
            too_late: None,
            needs: CALL_NEEDS,
            confirmed_after: None,
        }
    }
}

#[derive(Debug)]
pub struct Executed {
    pub outcome: ToolOutcome,
    /// Dropped arguments that the tool lacks.
    pub ignored_arguments: Vec<String>,
    /// Milliseconds.
    pub duration_ms: u64,
    pub execution: Unredacted,
    /// A transient fault of ours prevented it; callers that can repeat should do so.
    pub outage: Option<Error>,
}

#[derive(Clone, Copy)]
struct CheckedRequest<'a> {
    tool: &'a ActionTool,
    /// Its arguments are unchecked.
    request: ExecutionRequest<'a>,
    context: &'a CallContext<'a>,
    arguments: &'a Map<String, Value>,
}

/// A claim made before the tool was read, so that its need and its key were unknown.
#[derive(Debug)]
pub struct ClaimedAhead {
    key: Key,
    claim: Result<Claim>,
}

impl ClaimedAhead {
    /// # Errors
    /// An outage of ours; whether the effect happened is unknown for now.
    pub fn made(self) -> Result<Self> {
        let claim = Ok(self.claim?);
        Ok(Self { claim, ..self })
    }

    pub fn is_mine(&self) -> bool {
        matches!(self.claim, Ok(Claim::Mine(_)))
    }

    /// Whether the request needs no other claim.
    fn settles(&self, key: &Key, request: ExecutionRequest<'_>) -> bool {
        self.key == *key
            && match self.claim {
                Ok(Claim::Running) => false,
                Ok(Claim::Completed(_)) => request.confirmed_after.is_none(),
                _ => true,
            }
    }
}

impl Executor {
    /// Claims an effect with guessed [significant](crate::tool::arguments::significant) arguments. If the guess is wrong, the
    /// claim is released once the tool is known, and the right one is made. Never waits for a duplicate request: a caller with
    /// several claims would wait while holding others.
    pub async fn claim_ahead(
        &self,
        tool: ToolId,
        subject: Subject<'_>,
        delivery: Option<&str>,
        significant: Map<String, Value>,
        deadline: Deadline,
    ) -> ClaimedAhead {
        let key = effect_key(tool, subject, significant);
        let at_once = Deadline::after(Duration::ZERO);
        let claim = self.idempotency.claim(&key, delivery.into(), lease(deadline), at_once).await;
        ClaimedAhead { key, claim }
    }

    /// Waits for the result of a duplicate request in progress.
    async fn claim(&self, key: &Key, request: ClaimRequest<'_>, deadline: Deadline) -> Result<Claim> {
        let until = deadline.reserving(TWIN_RESERVE);
        self.idempotency.claim(key, request, lease(deadline), until).await
    }

    pub async fn release(&self, claims: impl IntoIterator<Item = ClaimedAhead>) {
        self.release_tickets(claims.into_iter().filter_map(|ahead| ahead.claim.ok()?.mine())).await;
    }

    /// Executes the tool unless its effect happened before. `claim`: made ahead for the same subject.
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
                // A queued one is tried again.
                if request.queued_at.is_none() {
                    report(&outage, tool.id, Some(context.organization), context.subject, context.trigger);
                }
                let told = self.finish(&tool, request, context, started, unavailable(), Vec::new());
                Executed { outage: Some(outage), ..told }
            }
        }
    }

    /// Fills in the tool's secrets, cached per process for five minutes.
    async fn with_secrets<'a>(&self, tool: &'a ActionTool) -> Result<Cow<'a, ActionTool>> {
        let Some(secret) = &tool.values_secret else { return Ok(Cow::Borrowed(tool)) };
        let values = self.services.secrets.get(secret).await?;
        Ok(Cow::Owned(tool.with_secrets(&values)))
    }

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

    /// Writes the redacted history, and counts started executions against the organization's budget. Failures are only logged.
    pub async fn record(&self, history: &[Unredacted]) {
        let put = async |execution: &Unredacted| self.executions.put(&execution.redacted()).await;
        let (written, (), ()) = join!(join_all(history.iter().map(put)), self.count(history), self.finish_outcomes());
        written.into_iter().filter_map(Result::err).for_each(|error| unwritten(&error));
        self.announce(history.iter().filter_map(Unredacted::failed_tool)).await;
    }

    /// As [`Executor::record`], where nobody waits for it: a failed write is repeated a few times within the deadline. Otherwise the
    /// row of a queued execution would stay `queued` for good.
    pub async fn record_queued(&self, execution: &Unredacted, deadline: Deadline) {
        let row = execution.redacted();
        let mut backoff = Backoff::at_most(3, HISTORY_PAUSE, HISTORY_PAUSE * 8, deadline);
        let write = async {
            while let Err(error) = self.executions.put(&row).await {
                if !backoff.pause().await {
                    return unwritten(&error);
                }
            }
        };
        join!(write, self.count(slice::from_ref(execution)));
        self.announce(execution.failed_tool()).await;
    }

    pub async fn announce(&self, failed: impl IntoIterator<Item = FailedTool>) {
        let messages: Vec<_> = failed.into_iter().map(|failed| (failed, Duration::ZERO)).collect();
        if let Some(queue) = self.failed_tools.as_ref().filter(|_| !messages.is_empty())
            && let Err(unsent) = queue.send_all(&messages).await
        {
            tracing::error!("failed tools could not be announced: {}", error::chain(&unsent.error));
        }
    }

    /// All entries must belong to one organization.
    async fn count(&self, history: &[Unredacted]) {
        let begun: Vec<_> = history.iter().filter_map(Unredacted::counts_for).collect();
        if let Some(organization) = begun.first()
            && let Err(error) = self.budgets.count_executions(*organization, begun.len()).await
        {
            tracing::error!("executions were not counted: {}", error::chain(&error));
        }
    }

    /// Also returns the dropped arguments.
    ///
    /// # Errors
    /// An outage of our own before any effect.
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
                return Ok((ToolOutcome::failed(sentence).at_fault(Fault::Model), Vec::new()));
            }
        };
        let checked = CheckedRequest { tool, request, context, arguments: &arguments };
        if !tool.spec.acts() {
            // Repeated reads are harmless; the claim was made because the tool was unknown.
            self.release(ahead).await;
            let attempt = Attempt { id: request.id, claim: "", done: &Map::new() };
            return Ok((self.act(checked, attempt).await?, ignored));
        }
        let significant = request.significant.cloned();
        let significant = significant.unwrap_or_else(|| tool.significant(&arguments, context.conversation));
        let key = effect_key(tool.id, claimant(tool, context), significant);
        let parts = Parts::of(checked, &key);
        let (claim, held) = match ahead {
            Some(ahead) if ahead.settles(&key, request) => (ahead.claim?.confirmed(request.confirmed_after), None),
            other => {
                let (claimed, ()) = join!(self.claim_with_parts(&key, &parts, checked), self.release(other));
                claimed?
            }
        };
        let told = match claim {
            Claim::Mine(ticket) if parts.is_empty() => self.act_claimed(checked, ticket).await?,
            Claim::Mine(ticket) => self.act_in_parts(checked, ClaimedParts { whole: ticket, parts, held }).await?,
            other => {
                self.release_tickets(held.into_iter().flatten().filter_map(Claim::mine)).await;
                match other {
                    Claim::Completed(answer) => replay(answer, ExecutionStatus::Replayed),
                    Claim::Unknown { answer, earlier, .. } => {
                        let found = self.find_again(checked, earlier).await;
                        found.unwrap_or_else(|| replay(answer, ExecutionStatus::Unknown))
                    }
                    Claim::Mine(_) | Claim::Running => under_way(),
                }
            }
        };
        Ok((told, ignored))
    }

    async fn act_claimed(&self, checked: CheckedRequest<'_>, ticket: Ticket) -> Result<ToolOutcome> {
        let attempt = Attempt { id: checked.request.id, claim: ticket.name(), done: &ticket.done };
        let acted = self.act(checked, attempt).await;
        let acted = acted.map(|outcome| beside_earlier(checked, &ticket.done, outcome));
        self.settle(ticket, acted.as_ref().map_or(Outcome::Released, recorded)).await;
        acted
    }

    async fn act(&self, checked: CheckedRequest<'_>, attempt: Attempt<'_>) -> Result<ToolOutcome> {
        let CheckedRequest { tool, request, context, .. } = checked;
        if let Some(sentence) = context.refused {
            return Ok(ToolOutcome::failed(sentence).status(ExecutionStatus::Limited));
        }
        if let Some(sentence) = request.too_late {
            context.subject.count_fault(context.trigger);
            return Ok(ToolOutcome::failed(sentence).at_fault(Fault::Ours));
        }
        if self.budgets.check_execution_budget(context.organization).is_err() {
            return Ok(over_budget(tool.action.kind().as_str()));
        }
        let taken = match self.take_room(tool, context).await? {
            Room::Taken(taken) => taken,
            Room::None(limit) => return Ok(limited(tool, limit)),
        };
        // The claim or the limits may have used up the time.
        if tool.spec.acts() && context.deadline.remaining() < request.needs {
            self.give_room_back(taken).await;
            return Err(Error::Unavailable("the database", "it left no time for the effect".into()));
        }
        let acted = actions::run(&tool.action, self.call_of(checked), attempt).await;
        if acted.is_err() {
            // The caller will retry, so an execution that did not start must not count.
            self.give_room_back(taken).await;
        }
        acted
    }

    const fn call_of<'a>(&'a self, checked: CheckedRequest<'a>) -> ActionCall<'a> {
        ActionCall { services: &self.services, context: checked.context, arguments: checked.arguments }
    }

    /// Counts the execution under the tool's limits, independent of its outcome. Without limits there is no request.
    ///
    /// # Errors
    /// If the limits of an effect cannot be checked; the effect must not happen.
    async fn take_room(&self, tool: &ActionTool, context: &CallContext<'_>) -> Result<Room> {
        if tool.limits.none() {
            return Ok(Room::free());
        }
        let whose = counted_for(tool, context);
        let conversation = whose.as_deref().map(|whose| match context.subject {
            Subject::Run(_) | Subject::Action { .. } | Subject::Turn { .. } => Window::Run(whose),
            Subject::Call(_) | Subject::Caller(_) | Subject::Request(_) | Subject::Poll(_) => Window::Call(whose),
        });
        let room = self.quotas.take(context.organization, tool.id, conversation, tool.limits, context.deadline).await;
        match room {
            // One read too many does less harm than a missing answer in a call.
            Err(error) if !tool.spec.acts() => {
                let chain = error::chain(&error);
                tracing::error!(tool.id = %tool.id, "a tool that reads was not counted under its limits: {chain}");
                Ok(Room::free())
            }
            room => room,
        }
    }

    async fn give_room_back(&self, taken: Taken) {
        if let Err(error) = self.quotas.release(taken).await {
            tracing::error!("an execution that did not start could not be uncounted: {}", error::chain(&error));
        }
    }

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
            tracing::warn!(
                tool.id = %tool.id,
                tool.kind = kind,
                call.id = context.call_id().map(display),
                run.id = context.run_id().map(display),
                organization.id = %context.organization,
                upstream.service = cause.service.as_str(),
                "an execution did not succeed: {}",
                error::chain(cause)
            );
        }
        if !ignored.is_empty() {
            tracing::info!(tool.id = %tool.id, "the model gave {} arguments that the tool does not have", ignored.len());
            let logs = ignored.iter().map(|name| format!("The argument \"{name}\" is unknown and was ignored.").into());
            outcome.answer.insert("logs".into(), logs.collect::<Vec<Value>>().into());
        }
        // Nothing happened this time, even if the first outcome is unknown.
        let status = if outcome.repeats { ExecutionStatus::Replayed } else { status };
        let fault = outcome.fault().filter(|_| status != ExecutionStatus::Replayed);
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
            fault,
            arguments: request.arguments.clone(),
            // The message about a queued execution is no result.
            result: answer
                .get("result")
                .filter(|result| {
                    !result.is_null() && !matches!(status, ExecutionStatus::Queued | ExecutionStatus::ReadBack)
                })
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

/// Hashes of the recipients in the outcome and of the numbers in the arguments, without the caller, who is indexed anyway.
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

fn unwritten(error: &Error) {
    tracing::error!("an execution could not be written to the history: {}", error::chain(error));
}

fn under_way() -> ToolOutcome {
    ToolOutcome::unknown("The same request is still being carried out; wait a moment and do not repeat it.")
}

/// A claim must outlast its holder.
fn lease(deadline: Deadline) -> Duration {
    deadline.remaining() + LEASE_RESERVE
}

fn limited(tool: &ActionTool, limit: Limit) -> ToolOutcome {
    telemetry::execution_limited(tool.action.kind().as_str(), limit.as_str());
    let sentence = match limit {
        Limit::PerCall => {
            "This tool has been used as often as is allowed in this call; do not call it again, and offer something else."
        }
        Limit::PerMinute | Limit::PerHour | Limit::PerDay | Limit::PerPersonAndDay => {
            "This tool has been used as often as is allowed within one hour; do not call it again in this call, and offer something else."
        }
    };
    ToolOutcome::failed(sentence).status(ExecutionStatus::Limited)
}

pub(crate) fn over_budget(kind: &str) -> ToolOutcome {
    telemetry::execution_limited(kind, Budget::ExecutionsPerHour.as_str());
    let sentence = "This organization's tools have been used as often as is allowed within one hour; do not call any tool \
                    again in this call, and offer something else.";
    ToolOutcome::failed(sentence).status(ExecutionStatus::Limited)
}

pub fn unavailable() -> ToolOutcome {
    ToolOutcome::failed("This tool is not available just now; try again in a moment.").at_fault(Fault::Ours)
}

/// Logs an execution that failed for a reason of ours; every error with a status of 500 or more counts as a fault.
pub fn report(
    error: &Error,
    tool: ToolId,
    organization: Option<OrganizationId>,
    subject: Subject<'_>,
    trigger: ExecutionOrigin,
) {
    tracing::error!(
        tool.id = %tool,
        call.id = subject.call_id().map(display),
        run.id = subject.run_id().map(display),
        organization.id = organization.map(display),
        code = error.code(),
        upstream.service = error.upstream_service(),
        "an execution failed: {}",
        error::chain(error)
    );
    if error.status() >= 500 {
        subject.count_fault(trigger);
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

/// The recorded answer of the effect's first execution. It is missing if that execution died.
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
