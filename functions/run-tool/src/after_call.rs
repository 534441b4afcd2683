//! Sends the result of a background tool by another tool, because the call is over.
//!
//! The other tool is queued under an id that is derived from the execution with the result, so repeated messages send it once.
//! Its own result is told to nobody.

use serde_json::{Map, Value};
use shared::{
    Deadline, Result,
    actions::{ActionTool, ToolConfig},
    error::{self, found},
    execution::ExecutionRequest,
    models::{
        BackgroundResult, Call, ExecutionId, ExecutionOrigin, ExecutionStatus, IfCallOver, Queued, QueuedExecution,
        ResultToTell, Timestamp, Tool,
    },
    tool::{CallContext, Conversation, Subject, ToolOutcome},
};

use crate::Deps;

pub(crate) enum AfterCall {
    /// The tool wishes nothing, or failed.
    Nothing,
    Queued(ExecutionId),
    /// The reason, to follow the reason why the call was not told.
    Not(String),
}

/// The tool's wish for its result. A failure is not sent.
pub(crate) fn of_result(tool: &Tool, answer: &Map<String, Value>) -> Option<IfCallOver> {
    let wish = tool.if_call_over()?;
    let result = answer.get("result").filter(|_| answer.get("success") == Some(&Value::Bool(true)))?;
    match wish.filled(&tool.label, result) {
        Ok(filled) => Some(filled),
        Err(lacks) => {
            tracing::warn!(tool.id = %tool.id, "a result cannot be sent after the call: {lacks}");
            None
        }
    }
}

/// Queues the tool that sends the result.
///
/// # Errors
/// An outage of ours; whether it was queued may be unknown, and doing it again is harmless.
pub(crate) async fn send(deps: &Deps, call: &Call, result: &ResultToTell, deadline: Deadline) -> Result<AfterCall> {
    let Some(IfCallOver { tool: id, arguments }) = &result.if_call_over else { return Ok(AfterCall::Nothing) };
    let organization = call.organization_id;
    let Some(row) = found(deps.tools.get(organization, *id).await)? else {
        return Ok(AfterCall::Not("the tool that should send it was deleted".to_owned()));
    };
    if let Some(why) = ToolConfig::stored(&row)?.unfit_after_call() {
        return Ok(AfterCall::Not(format!("the tool {} cannot send it: it {why}", row.name)));
    }
    let tool = ActionTool::of_row(&row)?;
    let checked = match tool.check(arguments) {
        Ok(checked) => checked,
        Err(sentence) => {
            return Ok(AfterCall::Not(format!("the tool {} cannot send it: {sentence}", row.name)));
        }
    };
    let conversation = Conversation {
        caller: Some(call.caller_phone_number.clone()),
        called: Some(call.called_phone_number.clone()),
        line: None,
        call: Some(call.clone()),
    };
    let (execution_id, queued_at) = (result.execution_id.of_sending(), Timestamp::now());
    let queued = QueuedExecution {
        execution_id,
        organization_id: organization,
        tool_id: row.id,
        call_id: Some(call.id.clone()),
        caller: conversation.caller.clone(),
        called: conversation.called.clone(),
        arguments: arguments.clone(),
        trigger: ExecutionOrigin::Conversation,
        before_call: false,
        significant: Some(tool.significant(&checked.arguments, &conversation)),
        tool_call_id: None,
        sends_result_of: Some(result.execution_id),
        confirmed_after: None,
        queued_at,
    };
    deps.executions.send(&Queued::Execution(Box::new(queued))).await?;
    let context = CallContext {
        organization,
        user: None,
        automation: None,
        subject: Subject::Call(&call.id),
        delivery: None,
        conversation: &conversation,
        trigger: ExecutionOrigin::Conversation,
        refused: None,
        deadline,
    };
    let request = ExecutionRequest { queued_at: Some(queued_at), ..ExecutionRequest::new(execution_id, arguments) };
    let told = ToolOutcome::succeeded("").status(ExecutionStatus::Queued);
    let waits = deps.executor.skip(&tool, request, &context, None, told).await;
    deps.executor.record(&[waits.execution]).await;
    Ok(AfterCall::Queued(execution_id))
}

/// Has a result sent after its call, if its tool wishes that.
pub(crate) async fn send_after(
    deps: &Deps,
    call: &Call,
    result: &ResultToTell,
    why: &str,
    deadline: Deadline,
) -> BackgroundResult {
    let sent = send(deps, call, result, deadline).await.unwrap_or_else(|error| {
        tracing::error!(call.id = %call.id, "a result could not be sent after its call: {}", error::chain(&error));
        AfterCall::Not("it could not be sent after the call either".to_owned())
    });
    missed(sent, result, why)
}

pub(crate) fn missed(sent: AfterCall, result: &ResultToTell, why: &str) -> BackgroundResult {
    let (sent_by, error) = match sent {
        AfterCall::Nothing => (None, why.to_owned()),
        AfterCall::Queued(id) => (Some(id), why.to_owned()),
        AfterCall::Not(reason) => (None, format!("{why}; {reason}")),
    };
    BackgroundResult { execution_id: result.execution_id, at: Timestamp::now(), error: Some(error), sent_by }
}
