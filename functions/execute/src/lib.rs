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
    clients::Queue,
    execution::{self, ClaimedAhead, Executor, Finished, Order, Subject},
    http::{self, Reply, Request},
    models::{
        Call, ExecutionId, ExecutionStatus, PhoneNumber, Queued, QueuedRun, Timestamp, Tool, ToolId, Trigger, Unowned,
        VerifiedTool,
    },
    platform,
    store::{Calls, Tools},
    tools::{ANSWER_WITHIN, Conversation, Ran, ToolTokens},
};

use crate::invocation::{Invocation, Metadata, Requested};

pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    pub tokens: ToolTokens,
    /// For the bearer of VAPI's credential.
    pub accounts: Accounts,
    pub executor: Executor,
    /// Where asynchronous runs wait for `run-tool`.
    pub runs: Queue<Queued>,
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
            runs: platform.runs_queue()?,
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
    let tool = match tool {
        Ok(tool) => tool,
        Err(error) => {
            deps.executor.give_back(claims).await;
            if matches!(error, Error::NotFound(_)) {
                return Err(error);
            }
            execution::report(&error, id);
            return invocation.answer(vec![execution::unavailable().answer; invocation.requested.len()]);
        }
    };
    let numbers = numbers::verify(&deps.executor.services.phone_numbers, &tool, &invocation.metadata, call, line).await;
    if let Err(refused) = &numbers {
        execution::report(refused, id);
    }
    let runs = invocation.requested.iter().zip(claims).map(|(requested, claim)| {
        let (tool, numbers, invocation) = (&tool, numbers.as_ref(), &invocation);
        run(deps, tool, invocation, requested, numbers, claim, deadline)
    });
    let (answers, history): (Vec<_>, Vec<_>) =
        join_all(runs).await.into_iter().map(|finished| (finished.answer, finished.execution)).unzip();
    let executor = deps.executor.clone();
    Ok(invocation.answer(answers)?.afterwards(async move { executor.record(&history).await }))
}

/// One of the runs that a request asks for.
async fn run(
    deps: &Deps,
    tool: &Tool,
    invocation: &Invocation,
    requested: &Requested,
    numbers: Result<&Conversation, &Error>,
    claim: ClaimedAhead,
    deadline: Deadline,
) -> Finished {
    let order = Order {
        id: ExecutionId::generate(),
        tool,
        call_id: invocation.metadata.call_id.as_ref(),
        run_id: None,
        arguments: &requested.arguments,
        trigger: Trigger::Conversation,
        queued_at: None,
    };
    if invocation.mixes_tools() && !requested.names(tool.name.as_str()) {
        let told = Ran::failed(format!("Only the tool {} can be called here.", tool.name));
        return deps.executor.instead(&order, claim, told).await;
    }
    match (numbers, &requested.unreadable) {
        (Err(refused), _) => deps.executor.instead(&order, claim, numbers::sentence(refused)).await,
        (Ok(_), Some(sentence)) => deps.executor.instead(&order, claim, Ran::failed(sentence)).await,
        (Ok(conversation), None) if tool.is_async => enqueue(deps, order, conversation, claim).await,
        (Ok(conversation), None) => deps.executor.run(&order, conversation, claim, deadline).await,
    }
}

/// Puts a run on the queue. Its effect is claimed where it is caused, so what was claimed ahead is given back beside that.
async fn enqueue(deps: &Deps, order: Order<'_>, conversation: &Conversation, claim: ClaimedAhead) -> Finished {
    if let Err(sentence) = execution::check(order.tool, order.arguments) {
        return deps.executor.instead(&order, claim, Ran::failed(sentence)).await;
    }
    let queued_at = Timestamp::now();
    let queued = Queued::Run(QueuedRun {
        execution_id: order.id,
        organization_id: order.tool.organization_id,
        tool_id: order.tool.id,
        call_id: order.call_id.cloned(),
        caller: conversation.caller.clone(),
        called: conversation.called.clone(),
        arguments: order.arguments.clone(),
        trigger: order.trigger,
        queued_at,
    });
    let (sent, ()) = join!(deps.runs.send(&queued), deps.executor.give_back([claim]));
    let told = match sent {
        Ok(()) => {
            let told =
                "It is being done in the background; its result will not be shown. Do not call it again for the same.";
            Ran::succeeded(told).status(ExecutionStatus::Queued)
        }
        Err(error) => execution::unavailable().because(error),
    };
    let order = Order { queued_at: Some(queued_at), ..order };
    deps.executor.instead(&order, None, told).await
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

/// Claims the effect of a run before the tool is known, where that can be done.
async fn claim_ahead(
    deps: &Deps,
    id: ToolId,
    invocation: &Invocation,
    index: usize,
    deadline: Deadline,
) -> ClaimedAhead {
    let requested = invocation.requested.get(index).filter(|_| invocation.claims_ahead(index))?;
    let metadata = &invocation.metadata;
    let subject = Subject::of(metadata.call_id.as_ref(), metadata.caller.as_deref());
    Some(deps.executor.claim(id, subject, &requested.arguments, deadline).await)
}
