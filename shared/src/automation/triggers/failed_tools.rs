//! The event `tool.failed` of the service `Calls`: a tool failed in a call, or its outcome is unknown.
//!
//! The event's id is derived from the execution's, so a repeated message starts nothing twice. Tools of runs have no such event, so an
//! automation that fails does not start itself. Without an automation that listens, nothing is recorded.

use serde_json::{Value, json};

use super::{dispatch::Dispatch, ended_calls::CALLS};
use crate::{
    Deadline, Result,
    error::found,
    models::{Event, EventId, Execution, FailedTool, Fault, Tool},
    store::{Counted, Executions, Quotas, Room, Tools, Window},
};

const EVENT_TYPE: &str = "tool.failed";
/// Events about one tool in an hour: a tool that fails in every call needs no run for each.
const MOST_AN_HOUR: u32 = 20;

#[derive(Clone)]
pub struct FailedTools {
    pub(crate) executions: Executions,
    pub(crate) tools: Tools,
    pub(crate) quotas: Quotas,
    pub(crate) kept: std::time::Duration,
}

impl FailedTools {
    /// # Errors
    /// If a look-up or a start failed; the message must be delivered again.
    pub async fn announce(&self, message: &FailedTool, dispatch: &Dispatch, deadline: Deadline) -> Result<()> {
        let FailedTool { organization_id, failed_execution_id } = *message;
        let id = EventId::of_failed_tool(organization_id, failed_execution_id);
        let mut event = Event::of_ours(id, organization_id, CALLS, EVENT_TYPE, self.kept);
        if !dispatch.has_listeners(&event).await? {
            return Ok(());
        }
        // It may have been deleted, or have succeeded after all.
        let execution = found(self.executions.get(organization_id, failed_execution_id).await)?;
        let Some(execution) = execution.filter(Execution::failed_in_call) else { return Ok(()) };
        let wanted = [(Counted::FailuresOf(execution.tool_id), Window::Hour, MOST_AN_HOUR)];
        let name = failed_execution_id.to_string();
        if let Room::None(_) = self.quotas.take_each(organization_id, &wanted, Some(&name), deadline).await? {
            tracing::info!(tool.id = %execution.tool_id, "a tool fails often; a failure is no event");
            return Ok(());
        }
        let tool = found(self.tools.get(organization_id, execution.tool_id).await)?;
        let data = content(&execution, tool.as_ref());
        event.data = data.to_string();
        Box::pin(dispatch.begin(&event, &data, None, &Dispatch::work())).await
    }
}

/// As `infra/catalogue/calls.json` describes it. Without arguments and result.
fn content(execution: &Execution, tool: Option<&Tool>) -> Value {
    json!({
        "tool": {
            "id": execution.tool_id,
            "name": tool.map(|tool| &tool.name),
            "label": tool.map(|tool| &tool.label),
        },
        "execution": {
            "id": execution.id,
            "call_id": execution.call_id,
            "trigger": execution.trigger,
            "status": execution.status,
            "fault": execution.fault,
            "error": execution.error,
            "next_step": execution.fault.map(Fault::next_step),
            "started_at": execution.started_at,
            "duration_ms": execution.duration_ms,
        },
    })
}
