//! Redacts executions for the history.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::{HIDDEN, HiddenTexts, MarkedCall, Marks, Transcript, marks::Paths};
use crate::models::{CallId, Execution, ExecutionId, ExecutionStatus, FailedTool, NO_ARGUMENTS, OrganizationId};

/// Replaces an argument that the tool lacks.
const IGNORED: &str = "[ignored]";
/// Bytes kept of the arguments, of the result, and of the error, not counting markers.
const BUDGET: usize = 2_048;
const ERROR_BUDGET: usize = 1_000;

/// An execution before redaction. It exposes only its id and the redacted form.
pub struct Unredacted {
    execution: Execution,
    marks: Marks,
    /// Of the tool's configuration.
    secrets: HiddenTexts,
    /// The tool's arguments; `None` allows any name.
    declared: Option<BTreeSet<String>>,
}

impl fmt::Debug for Unredacted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unredacted").field(&self.execution.id).finish()
    }
}

impl Unredacted {
    /// `hidden`: hidden texts of the tool's configuration; `parameters`: its JSON schema.
    pub fn new(mut execution: Execution, marks: Marks, hidden: HiddenTexts, parameters: &Value) -> Self {
        execution.arguments.remove(NO_ARGUMENTS);
        let properties = parameters.get("properties").and_then(Value::as_object);
        let declared = properties.map(|properties| properties.keys().cloned().collect());
        Self { execution, marks, secrets: hidden, declared }
    }

    #[must_use]
    pub fn with_call(mut self, call: Option<CallId>) -> Self {
        self.execution.call_id = call;
        self
    }

    pub fn id(&self) -> ExecutionId {
        self.execution.id
    }

    /// The organization whose budget it counts against. Waiting, replayed, limited and unconfirmed executions do not count.
    pub fn counts_for(&self) -> Option<OrganizationId> {
        let begun = !matches!(
            self.execution.status,
            ExecutionStatus::Queued | ExecutionStatus::Replayed | ExecutionStatus::Limited | ExecutionStatus::ReadBack
        );
        begun.then_some(self.execution.organization_id)
    }

    /// The message about it, if a tool failed in a call.
    pub fn failed_tool(&self) -> Option<FailedTool> {
        FailedTool::of(&self.execution)
    }

    /// The form to store, show and log. Values of undeclared arguments are dropped, because no author could mark them.
    pub fn redacted(&self) -> Execution {
        let Execution { arguments, result, error, ignored_arguments, .. } = &self.execution;
        let marks = self.marks.paths();
        let paths = Paths::of(marks);
        let given = Value::Object(arguments.clone());
        let call = MarkedCall { marks, arguments: Some(&given), result: result.as_ref().unwrap_or(&Value::Null) };
        let transcript = Transcript::beside(self.secrets.clone(), [call]);
        let has = |name: &str| self.declared.as_ref().is_none_or(|declared| declared.contains(name));
        // The error may quote the result.
        let hide_error = paths.of_result(&Value::Null).marked();
        let shown = |error: &String| if hide_error { HIDDEN.into() } else { transcript.text(error, ERROR_BUDGET) };
        Execution {
            id: self.execution.id,
            organization_id: self.execution.organization_id,
            tool_id: self.execution.tool_id,
            call_id: self.execution.call_id.clone(),
            run_id: self.execution.run_id,
            caller: self.execution.caller.clone(),
            recipients: self.execution.recipients.clone(),
            trigger: self.execution.trigger,
            status: self.execution.status,
            error: error.as_ref().map(shown),
            fault: self.execution.fault,
            arguments: transcript
                .redactor(BUDGET)
                .members(arguments, &paths, 0, |name| (!has(name)).then_some(IGNORED)),
            result: result.as_ref().map(|result| transcript.result(marks, result, BUDGET)),
            ignored_arguments: transcript.redactor(BUDGET).names(ignored_arguments),
            queued_at: self.execution.queued_at,
            started_at: self.execution.started_at,
            duration_ms: self.execution.duration_ms,
            expires_at: self.execution.expires_at,
        }
    }
}

#[cfg(test)]
mod tests;
