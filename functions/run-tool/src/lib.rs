//! SQS: runs one queued tool: an `async` tool, or a tool of a call's start. Each kind has a queue of its own, and both queues may
//! have messages of every kind: an older version put all on one.
//!
//! Results of start tools go to the model (`context.rs`). The effect is claimed like any other, so redeliveries are harmless.
//! A message that an outage of ours interrupts is tried again at once, and then redelivered; everything else is an
//! outcome, and the history has it under the message's execution id.

mod after_call;
mod background;
mod context;
mod earlier_calls;
mod returned;

use std::{pin::pin, time::Duration};

use futures_util::{FutureExt, join};
use serde_json::Map;
use shared::{
    Deadline, Result,
    actions::ActionTool,
    backoff::Backoff,
    clients::Queue,
    error::{self, found},
    execution::{self, Executed, ExecutionRequest, Executor},
    models::{
        AsyncResult, Call, CallerHash, Execution, ExecutionOrigin, ExecutionStatus, FailedTool, Fault, OrganizationId,
        PhoneNumber, Queued, QueuedExecution, Timestamp, Tool, Unowned,
    },
    platform::Parts,
    receipts::Receipts,
    store::{Calls, Tools},
    tool::{CallContext, Conversation, Subject, arguments},
};

/// The time limit of one tool; the function's must be longer.
const RUN_WITHIN: Duration = Duration::from_secs(45);

/// Results are useful only at the start of a call, or within the call: a message delayed longer by an outage is dropped.
const OF_USE_TO_A_START: Duration = Duration::from_secs(2 * 60);
const OF_USE_TO_A_CALL: Duration = Duration::from_secs(10 * 60);

/// The time for the usage of the organization's budgets, after the reads beside it.
const USAGE_WITHIN: Duration = Duration::from_millis(300);

/// Between tries during an outage of ours. A redelivery comes minutes later: too late for the start of a call, and
/// perhaps for the call.
const PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(10);

#[derive(Parts)]
pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    #[part(platform.executor_in_calls()?)]
    pub executor: Executor,
    /// Of the calls from which a caller returned.
    pub receipts: Receipts,
    /// Where tools wait that send results after a call, and results wait for their worker.
    #[part(platform.executions_queue()?)]
    pub executions: Queue<Queued>,
}

pub async fn handle(deps: &Deps, queued: Queued, deadline: Deadline) -> Result<()> {
    let mut outage = through_outage(deadline);
    match &queued {
        Queued::Execution(execution) => carry_out(deps, execution, deadline).await,
        Queued::ContextDue { organization_id, call_id } => {
            let send = || Box::pin(context::send_results(deps, *organization_id, call_id, deadline));
            outage.through_outages("the results of a call's start", send).await.inspect_err(context::count_untold)
        }
        Queued::ResultsDue { organization_id, call_id } => {
            let tell = || Box::pin(background::tell_waiting(deps, *organization_id, call_id, deadline));
            outage.through_outages("the results that wait for a call", tell).await
        }
    }
}

fn through_outage(deadline: Deadline) -> Backoff {
    Backoff::at_most(3, PAUSE, LONGEST_PAUSE, deadline.at_most(TRIED_AGAIN_WITHIN))
}

/// A tool that ran, or answered from the record.
struct Ran {
    tool: Tool,
    call: Option<Call>,
    executed: Executed,
}

/// A tool that only reads would read again, so the telling is repeated by itself.
async fn carry_out(deps: &Deps, queued: &QueuedExecution, deadline: Deadline) -> Result<()> {
    let run = || Box::pin(run(deps, queued, deadline));
    let ran = through_outage(deadline).through_outages("a queued tool", run).await;
    let ran = ran.inspect_err(|outage| {
        let (organization, subject) = (Some(queued.organization_id), Subject::of(queued.call_id.as_ref(), None, ""));
        execution::report(outage, queued.tool_id, organization, subject, queued.trigger);
    });
    let Some(Ran { tool, call, executed }) = ran? else { return Ok(()) };
    let mut outage = through_outage(deadline);
    let (id, answer) = (queued.execution_id, &executed.outcome.answer);
    let what = "the result of a queued tool";
    if let Some(starting) = queued.call_id.as_ref().filter(|_| queued.before_call) {
        let add = || Box::pin(context::add_early(deps, &tool, starting, id, answer, deadline));
        let call = outage.through_outages(what, add).await.inspect_err(context::count_untold)?;
        deps.executor.record_queued(&executed.execution.with_call(call), deadline).await;
        return Ok(());
    }
    let told = match (&queued.call_id, &call) {
        (Some(call), _) if queued.trigger == ExecutionOrigin::CallStart => {
            let add = || Box::pin(context::add(deps, &tool, call, id, answer, deadline));
            outage.through_outages(what, add).await.inspect_err(context::count_untold)
        }
        (_, Some(call)) if tool.async_result() != AsyncResult::None && queued.sends_result_of.is_none() => {
            let tell = || Box::pin(background::tell(deps, &tool, call, id, answer, deadline));
            outage.through_outages(what, tell).await
        }
        _ => Ok(()),
    };
    deps.executor.record_queued(&executed.execution, deadline).await;
    told
}

/// `None` if its tool was deleted.
async fn run(deps: &Deps, queued: &QueuedExecution, deadline: Deadline) -> Result<Option<Ran>> {
    let organization = queued.organization_id;
    let name = queued.tool_call_id.clone().unwrap_or_else(|| queued.execution_id.to_string());
    let subject = Subject::of(queued.call_id.as_ref(), queued.caller.as_deref(), &name);
    let reads =
        async { join!(deps.tools.get(organization, queued.tool_id), find_line(deps, queued), find_call(deps, queued)) };
    let (row, line, call) = beside_usage(deps, organization, deadline, reads).await;
    let Some(row) = found(row)? else {
        let call = call?;
        let subject = call.as_ref().map_or(subject, |call| Subject::Call(call.first_call()));
        return drop_deleted(deps, queued, subject, &name, deadline).await.map(|()| None);
    };
    let conversation =
        Conversation { caller: queued.caller.clone(), called: queued.called.clone(), line: line?, call: call? };
    let context = CallContext {
        organization,
        user: None,
        subject,
        automation: None,
        delivery: Some(&name),
        conversation: &conversation,
        trigger: queued.trigger,
        refused: None,
        deadline: deadline.at_most(RUN_WITHIN),
    };
    let tool = ActionTool::of_row(&row)?;
    let request = ExecutionRequest {
        queued_at: Some(queued.queued_at),
        significant: queued.significant.as_ref(),
        too_late: too_late(queued),
        confirmed_after: queued.confirmed_after,
        ..ExecutionRequest::new(queued.execution_id, &queued.arguments)
    };
    let executed = deps.executor.execute(&tool, request, &context, None).await;
    if let Some(outage) = executed.outage {
        return Err(outage);
    }
    Ok(Some(Ran { tool: row, call: conversation.call, executed }))
}

/// Awaits `reads`, and beside them reads the organization's usage, because the process may not know it. The tool does not wait for
/// a slow one: the budget then lets it through.
async fn beside_usage<T>(
    deps: &Deps,
    organization: OrganizationId,
    deadline: Deadline,
    reads: impl Future<Output = T>,
) -> T {
    let usage = deps.executor.budgets.usage(organization, deadline).map(|learned| {
        if let Err(error) = learned {
            tracing::warn!("the usage of a budget could not be read: {}", error::chain(&error));
        }
    });
    let (mut reads, mut usage) = (pin!(reads), pin!(usage));
    tokio::select! {
        () = &mut usage => reads.await,
        read = &mut reads => {
            if tokio::time::timeout(USAGE_WITHIN, usage).await.is_err() {
                tracing::warn!("the usage of a budget could not be read in time");
            }
            read
        }
    }
}

/// The reason why a waiting execution is dropped.
fn too_late(queued: &QueuedExecution) -> Option<&'static str> {
    let (of_use, told) = match queued.trigger {
        ExecutionOrigin::CallStart => {
            (OF_USE_TO_A_START, "The call began too long ago for this to be of use; nothing was done.")
        }
        _ => (OF_USE_TO_A_CALL, "It was asked for too long ago to be of use; nothing was done."),
    };
    (queued.queued_at.plus(of_use) < Timestamp::now()).then_some(told)
}

/// Records that an execution was dropped because its tool is gone, unless an earlier delivery may have run it.
async fn drop_deleted(
    deps: &Deps,
    queued: &QueuedExecution,
    subject: Subject<'_>,
    name: &str,
    deadline: Deadline,
) -> Result<()> {
    tracing::warn!(tool.id = %queued.tool_id, "a queued execution is dropped: its tool was deleted");
    let significant = queued.significant.clone().unwrap_or_else(|| arguments::significant(&queued.arguments));
    let claim = deps.executor.claim_ahead(queued.tool_id, subject, Some(name), significant, deadline).await.made()?;
    let (status, why) = if claim.is_mine() {
        (ExecutionStatus::Failed, "The tool was deleted before it could be executed; nothing was done.")
    } else {
        (ExecutionStatus::Unknown, "The tool was deleted; it is not known whether this was done before.")
    };
    deps.executor.release([claim]).await;
    let now = Timestamp::now();
    let ended = Execution {
        id: queued.execution_id,
        organization_id: queued.organization_id,
        tool_id: queued.tool_id,
        call_id: queued.call_id.clone().filter(|_| !queued.before_call),
        run_id: None,
        caller: queued.caller.as_ref().map(|caller| CallerHash::of(queued.organization_id, caller)),
        recipients: Vec::new(),
        trigger: queued.trigger,
        status,
        error: Some(why.to_owned()),
        fault: Some(Fault::Configuration),
        // Without the tool its marks are unknown, so nothing is shown.
        arguments: Map::new(),
        result: None,
        ignored_arguments: Vec::new(),
        queued_at: Some(queued.queued_at),
        started_at: now,
        duration_ms: 0,
        expires_at: now.plus(deps.executor.history).as_seconds(),
    };
    deps.executor.executions.end_queued(&ended).await?;
    deps.executor.announce(FailedTool::of(&ended)).await;
    Ok(())
}

async fn find_call(deps: &Deps, queued: &QueuedExecution) -> Result<Option<Call>> {
    let Some(id) = queued.call_id.as_ref().filter(|_| !queued.before_call) else { return Ok(None) };
    let call: Option<Unowned<Call>> = deps.calls.find(id).await?;
    Ok(call.and_then(|call| call.for_owner(queued.organization_id)))
}

async fn find_line(deps: &Deps, queued: &QueuedExecution) -> Result<Option<PhoneNumber>> {
    let Some(called) = &queued.called else { return Ok(None) };
    let line: Option<Unowned<PhoneNumber>> = deps.executor.services.phone_numbers.by_number(called).await?;
    Ok(line.and_then(|line| line.for_owner(queued.organization_id)))
}
