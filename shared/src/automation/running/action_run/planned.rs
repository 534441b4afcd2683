//! A planned call of a tool, and the results that it may have.

use serde_json::{Map, Value};

use super::{LARGEST_OUTPUT, LONGEST_ERROR, new_result, with_error};
use crate::{
    automation::definition::Action,
    clients,
    cut::{cut, fit},
    models::{ActionResult, ActionStatus, ExecutionStatus, StepKind, Timestamp},
    tool::{Effect, ToolOutcome},
};

/// Empty templates named in an error.
const MOST_NAMED: usize = 5;

/// The error of a tool whose service has reached its usage limit.
const USAGE_LIMIT: &str = "USAGE_LIMIT_EXCEEDED";

#[derive(Debug)]
pub struct PlannedAction<'a> {
    pub action: &'a Action,
    /// The number of its result, from 0.
    pub index: u32,
    pub(super) action_id: String,
    /// Its place in the run, the subject of its effects: its id, in a loop `each[42].notify`.
    pub id: String,
    pub tool: &'a str,
    pub arguments: Map<String, Value>,
    /// JSON text of the [`crate::automation::Explanation`].
    pub condition_result: Option<String>,
    /// Templates in the parameters that resolve to nothing.
    pub(super) empty: Vec<String>,
}

impl PlannedAction<'_> {
    pub fn finished(&self, outcome: &ToolOutcome, dry: bool, started_at: Timestamp) -> ActionResult {
        let given_back = outcome.answer.get("result").filter(|result| !outcome.is_failed() || !result.is_null());
        let error = outcome.answer.get("error").map(|error| match error {
            Value::String(error) => error.clone(),
            other => other.to_string(),
        });
        let output = given_back.map(|output| fit(output.clone(), LARGEST_OUTPUT));
        let limited = output.as_ref().is_some_and(is_usage_limit) || error.as_deref() == Some(USAGE_LIMIT);
        let status = match outcome.status {
            _ if limited => ActionStatus::Failed,
            ExecutionStatus::Unknown => ActionStatus::Unknown,
            _ if outcome.is_failed() => ActionStatus::Failed,
            _ if dry => ActionStatus::NotSent,
            _ => ActionStatus::Succeeded,
        };
        // The saved output must show the usage limit, however the tool reported it.
        let (output, error) = if limited {
            let error = "The tool's usage limit is exceeded (USAGE_LIMIT_EXCEEDED).".to_owned();
            (Some(serde_json::json!({"error": USAGE_LIMIT})), Some(error))
        } else {
            (output, error.filter(|_| outcome.is_failed()))
        };
        ActionResult {
            output: output.map(|output| output.to_string()),
            error: error.map(|error| cut(self.with_empty(error), LONGEST_ERROR)),
            execution_id: outcome.execution,
            outage: outcome.cause.as_ref().is_some_and(clients::Error::is_outage),
            had_no_effect: outcome.effect == Effect::None && outcome.status != ExecutionStatus::Unknown,
            ..self.result(status, started_at)
        }
    }

    pub fn misfit(&self, why: String, started_at: Timestamp) -> ActionResult {
        self.failed(self.with_empty(why), started_at)
    }

    /// Adds the empty templates, a likely cause.
    fn with_empty(&self, error: String) -> String {
        if self.empty.is_empty() {
            return error;
        }
        let named = self.empty.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
        format!("{error} Nothing was there for {named}.")
    }

    pub fn failed(&self, why: impl Into<String>, started_at: Timestamp) -> ActionResult {
        with_error(ActionStatus::Failed, why.into(), self.result(ActionStatus::Failed, started_at))
    }

    pub fn refused(&self, why: impl Into<String>, started_at: Timestamp) -> ActionResult {
        with_error(ActionStatus::Refused, why.into(), self.result(ActionStatus::Refused, started_at))
    }

    pub(super) fn skipped(&self, why: String, started_at: Timestamp) -> ActionResult {
        with_error(ActionStatus::Skipped, why, self.result(ActionStatus::Skipped, started_at))
    }

    fn result(&self, status: ActionStatus, started_at: Timestamp) -> ActionResult {
        let arguments = (!self.arguments.is_empty()).then(|| Value::Object(self.arguments.clone()).to_string());
        let of = (StepKind::Action, self.tool);
        ActionResult {
            status,
            arguments,
            condition_result: self.condition_result.clone(),
            ..new_result(self.index, of, &self.action_id, self.id.clone(), started_at)
        }
    }

    /// Whether a retry is safe and useful: the effect certainly did not happen, and the cause may be transient.
    pub fn may_be_repeated(&self, outcome: &ToolOutcome, acts: bool, attempts: u32) -> bool {
        let certainly_not_done = outcome.effect == Effect::None && outcome.status == ExecutionStatus::Failed;
        let may_work = outcome.cause.as_ref().map_or(!acts, clients::Error::transient);
        outcome.is_failed() && certainly_not_done && may_work && attempts <= self.action.retries
    }
}

pub(super) fn is_usage_limit(output: &Value) -> bool {
    output.get("error").is_some_and(|error| *error == USAGE_LIMIT)
}
