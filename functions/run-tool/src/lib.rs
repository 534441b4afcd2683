//! SQS: executes one tool that was put on the queue, because it is asynchronous or because a call came in; in a call that came in,
//! tells the model what its tools found out (`context.rs`).
//!
//! However often the message comes, the effect happens once: it is claimed for the call as any other. An execution that could not
//! begin for a fault of ours is delivered again; everything else is an outcome, and stands in the history under the id that
//! the message names.

mod context;

use std::time::Duration;

use futures_util::join;
use shared::{
    Deadline, Error, Platform, Result,
    actions::ActionTool,
    execution::{ExecutionRequest, Executor},
    models::{Call, PhoneNumber, Queued, QueuedExecution, Timestamp, Trigger, Unowned},
    platform,
    store::{Calls, Tools},
    tool::{CallContext, Conversation, Subject, ToolOutcome},
};

/// What one tool gets at most; the function's time limit must be longer.
const RUN_WITHIN: Duration = Duration::from_secs(45);

/// What the start of a call sets off is for its start, what a model asks for is for its call: a message that an outage held up
/// longer comes too late.
const OF_USE_TO_A_START: Duration = Duration::from_secs(2 * 60);
const OF_USE_TO_A_CALL: Duration = Duration::from_secs(10 * 60);

pub struct Deps {
    pub tools: Tools,
    pub calls: Calls,
    pub executor: Executor,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            tools: Tools::new(database),
            calls: Calls::new(database),
            executor: platform.executor(platform.idempotency()?)?,
        })
    }
}

pub async fn handle(deps: &Deps, queued: Queued, deadline: Deadline) -> Result<()> {
    match queued {
        Queued::Run(run) => Box::pin(carry_out(deps, &run, deadline)).await,
        Queued::ContextDue { organization_id, call_id } => {
            context::send_results(deps, organization_id, &call_id, deadline).await
        }
    }
}

async fn carry_out(deps: &Deps, queued: &QueuedExecution, deadline: Deadline) -> Result<()> {
    let organization = queued.organization_id;
    let (row, line, call) =
        join!(deps.tools.get(organization, queued.tool_id), find_line(deps, queued), find_call(deps, queued));
    let row = match row {
        Ok(row) => row,
        Err(Error::NotFound(_)) => {
            tracing::warn!(tool.id = %queued.tool_id, "a queued execution is dropped: its tool was deleted");
            let deleted = "The tool was deleted before it could be executed; nothing was done.";
            return deps.executor.executions.end_queued(organization, queued.execution_id, deleted).await;
        }
        Err(error) => return Err(error),
    };
    let conversation =
        Conversation { caller: queued.caller.clone(), called: queued.called.clone(), line: line?, call: call? };
    let name = queued.tool_call_id.clone().unwrap_or_else(|| queued.execution_id.to_string());
    let context = CallContext {
        organization,
        user: None,
        subject: Subject::of(queued.call_id.as_ref(), queued.caller.as_deref(), &name),
        delivery: Some(&name),
        conversation: &conversation,
        trigger: queued.trigger,
        deadline: deadline.at_most(RUN_WITHIN),
    };
    let tool = ActionTool::of_row(&row)?;
    let request =
        ExecutionRequest { id: queued.execution_id, arguments: &queued.arguments, queued_at: Some(queued.queued_at) };
    let (of_use, asked) = match queued.trigger {
        Trigger::CallStart => (OF_USE_TO_A_START, "The call began"),
        _ => (OF_USE_TO_A_CALL, "It was asked for"),
    };
    let executed = if queued.queued_at.plus(of_use) < Timestamp::now() {
        let told = ToolOutcome::failed(format!("{asked} too long ago for this to be of use; nothing was done."));
        deps.executor.skip(&tool, request, &context, None, told).await
    } else {
        deps.executor.execute(&tool, request, &context, None).await
    };
    if let Some(outage) = executed.outage {
        return Err(outage);
    }
    let told = match &queued.call_id {
        Some(call) if queued.trigger == Trigger::CallStart => {
            context::add(deps, &row, call, queued.execution_id, &executed.outcome.answer, deadline).await
        }
        _ => Ok(()),
    };
    deps.executor.record(&[executed.execution]).await;
    told
}

async fn find_call(deps: &Deps, queued: &QueuedExecution) -> Result<Option<Call>> {
    let Some(id) = &queued.call_id else { return Ok(None) };
    let call: Option<Unowned<Call>> = deps.calls.find(id).await?;
    Ok(call.and_then(|call| call.for_owner(queued.organization_id)))
}

async fn find_line(deps: &Deps, queued: &QueuedExecution) -> Result<Option<PhoneNumber>> {
    let Some(called) = &queued.called else { return Ok(None) };
    let line: Option<Unowned<PhoneNumber>> = deps.executor.services.phone_numbers.by_number(called).await?;
    Ok(line.and_then(|line| line.for_owner(queued.organization_id)))
}
