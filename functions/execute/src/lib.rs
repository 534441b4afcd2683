//! POST /api/tools/{id}/execute: VAPI calls a tool in the middle of a conversation.
//!
//! Let in by the tool's own token (`metadata.token`) or the bearer of VAPI's credential. The answer is HTTP 200 whatever
//! becomes of the tool, because VAPI shows the model nothing else: `{"success": true, "result", "exports"?, "logs"?}` or
//! `{"success": false, "error": "one sentence"}`; for VAPI's `tool-calls` message `{"results": [...]}`. Only a caller who
//! has no business here gets 400, 401 or 404. An `async` tool is put on the queue of `run-tool`, and the model told so.

mod bearer;
mod invocation;
mod numbers;

use futures_util::{future::join_all, join};
use shared::{
    Deadline, Error, Platform, Result,
    accounts::Accounts,
    actions::{ANSWER_WITHIN, ActionTool, ToolTokens},
    clients::Queue,
    execution::{self, ClaimedAhead, Executed, ExecutionRequest, Executor},
    http::{self, Reply, Request},
    models::{
        Call, ExecutionStatus, PhoneNumber, Queued, QueuedExecution, Timestamp, ToolId, Trigger, Unowned, VerifiedTool,
    },
    platform,
    store::{Calls, Tools},
    telemetry,
    tool::{CallContext, Conversation, ToolOutcome},
};

use crate::invocation::{Invocation, Metadata, Requested};

pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    pub tokens: ToolTokens,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
    pub executor: Executor,
    /// Where asynchronous executions wait for `run-tool`.
    pub executions: Queue<Queued>,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            tools: Tools::new(database),
            calls: Calls::new(database),
            tokens: platform.tokens()?,
            accounts: platform.accounts()?,
            executor: platform.executor(platform.idempotency()?)?,
            executions: platform.executions_queue()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let deadline = http::deadline(&request).at_most(ANSWER_WITHIN);
    let ["POST", "api", "tools", id, "execute"] = http::route(&request)[..] else {
        return Err(Error::NotFound("route"));
    };
    let id: ToolId = http::id(id, "tool")?;
    let invocation = Invocation::read(http::json_body(&request)?)?;
    let verified = verify(deps, id, &request, &invocation).await?;

    // One round trip: the tool, the call, the number, and the claim on the effect, beside each other.
    let (tool, call, line, claims) = join!(
        deps.tools.of_token(verified),
        find_call(deps, &invocation.metadata),
        find_line(deps, &invocation.metadata),
        join_all((0..invocation.requested.len()).map(|index| claim_ahead(deps, id, &invocation, index, deadline))),
    );
    let (row, tool) = match tool.and_then(|row| Ok((ActionTool::of_row(&row)?, row))) {
        Ok((tool, row)) => (row, tool),
        Err(error) => {
            deps.executor.release(claims.into_iter().flatten()).await;
            if matches!(error, Error::NotFound(_)) {
                return Err(error);
            }
            execution::report(&error, id, Trigger::Conversation);
            return invocation.answer(vec![execution::unavailable().answer; invocation.requested.len()]);
        }
    };
    let organization = row.organization_id;
    let numbers =
        numbers::verify(&deps.executor.services.phone_numbers, organization, &invocation.metadata, call, line).await;
    if let Err(refused) = &numbers {
        execution::report(refused, id, Trigger::Conversation);
    }
    let nothing_known = Conversation::default();
    let conversation = numbers.as_ref().unwrap_or(&nothing_known);
    let executions = invocation.requested.iter().zip(claims).map(|(requested, claim)| {
        let request = ExecutionRequest::new(requested.id, &requested.arguments);
        let refused = refused(&tool, &invocation, requested, numbers.as_ref().err());
        let context = CallContext {
            organization,
            user: None,
            subject: invocation.subject(requested),
            delivery: requested.tool_call_id(),
            conversation,
            trigger: Trigger::Conversation,
            deadline,
        };
        let tool = &tool;
        async move {
            match refused {
                Some(told) => deps.executor.skip(tool, request, &context, claim, told).await,
                None if row.is_async => enqueue(deps, tool, request, &context, claim).await,
                None => deps.executor.execute(tool, request, &context, claim).await,
            }
        }
    });
    let (answers, history): (Vec<_>, Vec<_>) =
        join_all(executions).await.into_iter().map(|executed| (executed.outcome.answer, executed.execution)).unzip();
    let executor = deps.executor.clone();
    Ok(invocation.answer(answers)?.afterwards(async move { executor.record(&history).await }))
}

/// What the model is told of a call that is not carried out at all.
fn refused(
    tool: &ActionTool,
    invocation: &Invocation,
    requested: &Requested,
    not_verified: Option<&Error>,
) -> Option<ToolOutcome> {
    let name = &tool.spec.name;
    if invocation.means_another(requested, name) {
        return Some(ToolOutcome::failed(format!("Only the tool {name} can be called here.")));
    }
    not_verified.map(numbers::sentence).or_else(|| requested.unreadable.as_deref().map(ToolOutcome::failed))
}

/// Puts an execution on the queue. Its effect is claimed where it is caused, so what was claimed ahead is released beside that.
async fn enqueue(
    deps: &Deps,
    tool: &ActionTool,
    request: ExecutionRequest<'_>,
    context: &CallContext<'_>,
    claim: Option<ClaimedAhead>,
) -> Executed {
    let checked = match tool.check(request.arguments) {
        Ok(checked) => checked,
        Err(sentence) => {
            return deps.executor.skip(tool, request, context, claim, ToolOutcome::failed(sentence)).await;
        }
    };
    let queued_at = Timestamp::now();
    let queued = Queued::Execution(QueuedExecution {
        execution_id: request.id,
        organization_id: context.organization,
        tool_id: tool.id,
        call_id: context.call_id().cloned(),
        caller: context.conversation.caller.clone(),
        called: context.conversation.called.clone(),
        arguments: request.arguments.clone(),
        trigger: context.trigger,
        significant: Some(tool.significant(&checked.arguments, context.conversation)),
        tool_call_id: context.delivery.map(str::to_owned),
        queued_at,
    });
    let (sent, ()) = join!(deps.executions.send(&queued), deps.executor.release(claim));
    let told = match sent {
        Ok(()) => {
            let told =
                "It is being done in the background; its result will not be shown. Do not call it again for the same.";
            ToolOutcome::succeeded(told).status(ExecutionStatus::Queued)
        }
        // If it is on the queue, its outcome takes the place of this in the history.
        Err(error) if error.effect_possible() => {
            let told = "It is not known whether it will be done; do not call it again for the same.";
            ToolOutcome::unknown(told).because(error)
        }
        Err(error) => {
            telemetry::tool_fault(context.trigger.as_str());
            execution::unavailable().because(error)
        }
    };
    let request = ExecutionRequest { queued_at: Some(queued_at), ..request };
    deps.executor.skip(tool, request, context, None, told).await
}

/// The tool's own token, for which nothing is read, or the bearer of VAPI's credential.
async fn verify(deps: &Deps, id: ToolId, request: &Request, invocation: &Invocation) -> Result<VerifiedTool> {
    if let Some(token) = &invocation.metadata.token {
        return deps.tokens.verify(id, token).await;
    }
    bearer::verify(deps, id, http::bearer(request).ok_or(Error::Unauthenticated)?).await
}

async fn find_call(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<Call>>> {
    match &metadata.call_id {
        Some(id) => deps.calls.find(id).await,
        None => Ok(None),
    }
}

async fn find_line(deps: &Deps, metadata: &Metadata) -> Result<Option<Unowned<PhoneNumber>>> {
    match &metadata.called {
        Some(number) => deps.executor.services.phone_numbers.by_number(number).await,
        None => Ok(None),
    }
}

/// Claims the effect of an execution before the tool is known, where that can be done.
async fn claim_ahead(
    deps: &Deps,
    id: ToolId,
    invocation: &Invocation,
    index: usize,
    deadline: Deadline,
) -> Option<ClaimedAhead> {
    let arguments = invocation.claimable(index)?;
    let requested = invocation.requested.get(index)?;
    let (subject, delivery) = (invocation.subject(requested), requested.tool_call_id());
    Some(deps.executor.claim_ahead(id, subject, delivery, arguments, deadline).await)
}
