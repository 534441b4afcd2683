//! Plans a run of actions step by step; `run-loop` performs each step.
//!
//! Actions run in order. A failed action does not end the run unless it has `"on_error": "stop"`; a tool that returns `{"error":
//! "USAGE_LIMIT_EXCEEDED"}` ends it at once. The plan depends only on the definition, the trigger and the saved results, so an
//! interrupted run resumes where it stopped.

use serde_json::{Map, Value};

use crate::{
    Error, Result,
    automation::{
        RunData,
        definition::{Action, OnError},
        expressions::{
            conditions::{Explanation, MOST_COMPARED},
            data::Outputs,
            templates::{Unfilled, empty_templates, filled_in_within},
        },
    },
    clients,
    cut::{cut, fit},
    injection::Ending,
    models::{ActionResult, ActionStatus, ExecutionStatus, RunStatus, Timestamp},
    redaction::{MarkedCall, Transcript},
    tool::{Effect, ToolOutcome},
};

/// Bytes of JSON. Arguments, output and explanation share one item, and DynamoDB allows 400 KB.
pub const LARGEST_ARGUMENTS: usize = 200_000;
/// Bytes of JSON. A longer output is cut, also for the actions after it.
pub const LARGEST_OUTPUT: usize = 64 * 1024;
/// Bytes, per action.
const LONGEST_ERROR: usize = 2_000;
/// Bytes, per action in the run's summary.
const LONGEST_REASON: usize = 200;
/// Failed actions named in the summary.
const MOST_NAMED: usize = 5;

/// The error of a tool whose service has reached its usage limit.
const USAGE_LIMIT: &str = "USAGE_LIMIT_EXCEEDED";

#[derive(Debug, Clone)]
pub struct ActionRun<'a> {
    actions: &'a [Action],
    variables: &'a Map<String, Value>,
    data: &'a RunData,
    outputs: Outputs,
    next: usize,
    /// Results of an earlier run that this one keeps, by index.
    kept: Vec<ActionResult>,
    /// Succeeded actions, in a dry run also unsent ones.
    done: usize,
    /// Action id and reason.
    failed: Vec<(String, String)>,
    own_failures: usize,
    /// Marks, arguments and result of each call, for redaction.
    calls: Vec<(Vec<String>, Option<Value>, Value)>,
    stopped: Option<String>,
}

#[derive(Debug)]
pub enum Next<'a> {
    Call(Box<PlannedAction<'a>>),
    /// No tool is called: the condition is false, or the action cannot run. The result is to be saved.
    Settled(Box<ActionResult>),
    Over(Ending),
}

#[derive(Debug)]
pub struct PlannedAction<'a> {
    pub action: &'a Action,
    /// Index in the list of actions, from 0.
    pub index: u32,
    pub id: String,
    pub tool: &'a str,
    pub arguments: Map<String, Value>,
    /// JSON text of the [`Explanation`].
    pub condition_result: Option<String>,
    /// Templates in the parameters that resolve to nothing.
    empty: Vec<String>,
}

impl<'a> ActionRun<'a> {
    /// Continues from `results`, in the order of the actions.
    ///
    /// # Errors
    /// If a saved output is not JSON.
    pub fn resume(
        actions: &'a [Action],
        variables: &'a Map<String, Value>,
        data: &'a RunData,
        results: &[ActionResult],
    ) -> Result<Self> {
        let mut outputs = Outputs::default();
        for (index, action) in actions.iter().enumerate() {
            if let Some(name) = &action.output_as {
                outputs.lack(name, &id_of(action, index), "was not reached");
            }
        }
        let (failed, own_failures, calls, stopped) = (Vec::new(), 0, Vec::new(), None);
        let mut run = Self {
            actions,
            variables,
            data,
            outputs,
            next: 0,
            kept: Vec::new(),
            done: 0,
            failed,
            own_failures,
            calls,
            stopped,
        };
        results.iter().try_for_each(|result| run.record(result))?;
        Ok(run)
    }

    /// The results that the run keeps from an earlier one, in place of calls.
    #[must_use]
    pub fn keeping(self, kept: Vec<ActionResult>) -> Self {
        Self { kept, ..self }
    }

    fn kept(&self, index: usize) -> Option<&ActionResult> {
        self.kept.iter().find(|result| usize::try_from(result.index) == Ok(index))
    }

    /// The remaining actions whose tools may be called.
    pub fn left_to_call(&self) -> impl Iterator<Item = &'a Action> {
        let left = self.left().iter().enumerate().map(|(at, action)| (self.next + at, action));
        left.filter(|(index, _)| self.kept(*index).is_none()).map(|(_, action)| action)
    }

    pub fn left(&self) -> &'a [Action] {
        self.actions.get(self.next..).unwrap_or_default()
    }

    /// `now` becomes the start time of the action.
    pub fn next(&self, now: Timestamp) -> Next<'a> {
        let Some(action) = self.left().first().filter(|_| self.stopped.is_none()) else {
            return Next::Over(self.ending());
        };
        if let Some(kept) = self.kept(self.next) {
            return Next::Settled(Box::new(kept.clone()));
        }
        let data = self.data.with(self.variables, &self.outputs);
        let explained = action.condition.as_ref().map(|condition| data.explain(condition)).transpose();
        let mut planned = PlannedAction {
            action,
            index: u32::try_from(self.next).unwrap_or(u32::MAX),
            id: id_of(action, self.next),
            tool: action.tool.as_deref().unwrap_or_default(),
            arguments: Map::new(),
            condition_result: explained.as_ref().ok().and_then(Option::as_ref).map(in_json),
            empty: Vec::new(),
        };
        let Ok(explained) = explained else {
            let most = MOST_COMPARED / 1_000_000;
            let why = format!(
                "Its condition was not evaluated: with the data of this run it compares more than {most} MB. Use fewer clauses or values."
            );
            return Next::Settled(Box::new(planned.failed(why, now)));
        };
        if let Some(explained) = explained.filter(|explained| !explained.holds) {
            let why = format!("Its condition does not hold: {}.", explained.reason());
            let skipped = planned.result(ActionStatus::Skipped, now);
            return Next::Settled(Box::new(ActionResult { error: Some(cut(why, LONGEST_ERROR)), ..skipped }));
        }
        let parameters = Value::Object(action.parameters.clone());
        planned.empty = empty_templates(&parameters, &data);
        match filled_in_within(&parameters, &data, LARGEST_ARGUMENTS) {
            Ok(Value::Object(arguments)) if length(&arguments) <= LARGEST_ARGUMENTS => {
                planned.arguments = arguments;
                Next::Call(Box::new(planned))
            }
            Err(Unfilled::Expression(why)) => Next::Settled(Box::new(planned.failed(why, now))),
            _ => {
                let why = format!(
                    "With its templates filled in, its parameters have more than {LARGEST_ARGUMENTS} bytes; give the tool less."
                );
                Next::Settled(Box::new(planned.failed(why, now)))
            }
        }
    }

    /// Records a saved result.
    ///
    /// # Errors
    /// If its output is not JSON.
    pub fn record(&mut self, result: &ActionResult) -> Result<()> {
        let index = usize::try_from(result.index).unwrap_or(usize::MAX);
        self.next = index.saturating_add(1);
        let Some(action) = self.actions.get(index) else { return Ok(()) };
        let output =
            result.output.as_deref().map(serde_json::from_str::<Value>).transpose().map_err(Error::internal)?;
        let arguments = result.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
        self.calls.push((result.redact.clone(), arguments, output.clone().unwrap_or_default()));
        if let Some(name) = &action.output_as {
            match without_output(result.status) {
                Some(became) => self.outputs.lack(name, &result.action_id, became),
                None => self.outputs.give(name, output.clone().unwrap_or_default()),
            }
        }
        match result.status {
            ActionStatus::Succeeded | ActionStatus::NotSent => self.done += 1,
            ActionStatus::Skipped => {}
            ActionStatus::Failed | ActionStatus::Unknown | ActionStatus::Refused => {
                let why = result.error.clone().unwrap_or_else(|| "it failed".to_owned());
                self.stopped = stop_reason(action, result, output.as_ref());
                self.own_failures += usize::from(!result.outage);
                self.failed.push((result.action_id.clone(), why));
            }
        }
        Ok(())
    }

    /// Whether no action succeeded and every failure was an outage, of ours or of a vendor.
    pub fn failed_by_outages(&self) -> bool {
        self.done == 0 && self.own_failures == 0 && !self.failed.is_empty()
    }

    fn ending(&self) -> Ending {
        let status = match (self.failed.len(), self.done) {
            (0, _) => RunStatus::Completed,
            (_, 0) => RunStatus::Failed,
            _ => RunStatus::PartialFailure,
        };
        Ending { status, result: None, error: self.summary() }
    }

    /// Hides the secrets and marked fields of the results so far.
    pub(super) fn transcript(&self) -> Transcript {
        Transcript::of(self.calls.iter().map(|(marks, arguments, result)| MarkedCall {
            marks,
            arguments: arguments.as_ref(),
            result,
        }))
    }

    fn summary(&self) -> Option<String> {
        if self.failed.is_empty() {
            return None;
        }
        let named = self.failed.iter().take(MOST_NAMED);
        // The summary is shown where the tools' marks are unknown, so it is redacted here.
        let transcript = self.transcript();
        let shown = |why: &str| cut(transcript.text(why, LONGEST_ERROR), LONGEST_REASON);
        let named: Vec<String> = named.map(|(id, why)| format!("{id} ({})", shown(why))).collect();
        let more = self.failed.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let (failed, all) = (self.failed.len(), self.actions.len());
        let left = self.left().len();
        let stopped = match &self.stopped {
            Some(why) if left > 0 => format!(" The last {left} were not started: {why}."),
            _ => String::new(),
        };
        Some(format!("{failed} of {all} actions failed: {}{more}.{stopped}", named.join(", ")))
    }
}

/// The reason for which a result of the action ends its run; `None` if the next action follows.
pub(super) fn stop_reason(action: &Action, result: &ActionResult, output: Option<&Value>) -> Option<String> {
    if !matches!(result.status, ActionStatus::Failed | ActionStatus::Unknown | ActionStatus::Refused) {
        return None;
    }
    if output.is_some_and(is_usage_limit) {
        return Some(format!("the usage limit of {} is exceeded", result.tool));
    }
    (action.on_error == OnError::Stop).then(|| format!("the run was to stop if {} fails", result.action_id))
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
            outage: outcome.cause.as_ref().is_some_and(clients::Error::transient),
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
        let error = Some(cut(why.into(), LONGEST_ERROR));
        ActionResult { error, ..self.result(ActionStatus::Failed, started_at) }
    }

    pub fn refused(&self, why: impl Into<String>, started_at: Timestamp) -> ActionResult {
        let error = Some(cut(why.into(), LONGEST_ERROR));
        ActionResult { error, ..self.result(ActionStatus::Refused, started_at) }
    }

    fn result(&self, status: ActionStatus, started_at: Timestamp) -> ActionResult {
        let arguments = (!self.arguments.is_empty()).then(|| Value::Object(self.arguments.clone()).to_string());
        ActionResult {
            index: self.index,
            action_id: self.id.clone(),
            tool: self.tool.to_owned(),
            status,
            arguments,
            output: None,
            error: None,
            condition_result: self.condition_result.clone(),
            execution_id: None,
            attempts: 0,
            redact: Vec::new(),
            outage: false,
            // No tool was called.
            had_no_effect: true,
            kept_from: None,
            started_at,
            duration_ms: 0,
        }
    }

    /// Whether a retry is safe and useful: the effect certainly did not happen, and the cause may be transient.
    pub fn may_be_repeated(&self, outcome: &ToolOutcome, acts: bool, attempts: u32) -> bool {
        let certainly_not_done = outcome.effect == Effect::None && outcome.status == ExecutionStatus::Failed;
        let may_work = outcome.cause.as_ref().map_or(!acts, clients::Error::transient);
        outcome.is_failed() && certainly_not_done && may_work && attempts <= self.action.retries
    }
}

/// The action's id, or `action_1`, `action_2`, … by position.
pub(super) fn id_of(action: &Action, index: usize) -> String {
    action.id.clone().unwrap_or_else(|| format!("action_{}", index + 1))
}

const fn without_output(status: ActionStatus) -> Option<&'static str> {
    match status {
        ActionStatus::Succeeded => None,
        ActionStatus::NotSent => Some("was not sent in this dry run"),
        ActionStatus::Skipped => Some("was skipped"),
        ActionStatus::Failed => Some("failed"),
        ActionStatus::Unknown => Some("ended without a known outcome"),
        ActionStatus::Refused => Some("was refused"),
    }
}

fn in_json(explained: &Explanation) -> String {
    serde_json::to_string(explained).unwrap_or_default()
}

fn length(arguments: &Map<String, Value>) -> usize {
    Value::Object(arguments.clone()).to_string().len()
}

fn is_usage_limit(output: &Value) -> bool {
    output.get("error").is_some_and(|error| *error == USAGE_LIMIT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        automation::{Diagnostics, definition::AutomationBody, definition::Definition},
        clients::{Failure, UpstreamService},
        models::{AutomationRun, AutomationVersion, RunPlan},
    };

    const NOW: &str = "2026-11-22T23:30:05.000Z";

    fn actions(actions: &Value) -> Vec<Action> {
        let definition = json!({"name": "x", "trigger_type": "manual", "actions": actions});
        let AutomationBody::Actions(actions) = Definition::read(&definition, &mut Diagnostics::default()).unwrap().body
        else {
            panic!("it has actions")
        };
        actions
    }

    fn data(trigger_data: &Value) -> RunData {
        let run: AutomationRun = serde_json::from_value(json!({
            "id": uuid::Uuid::now_v7(), "organization_id": uuid::Uuid::now_v7(), "trigger_type": "manual", "status": "running",
            "limits": {}, "created_at": NOW, "updated_at": NOW, "expires_at": 0,
        }))
        .unwrap();
        let version: AutomationVersion = serde_json::from_value(json!({
            "automation_id": uuid::Uuid::now_v7(), "version": 1, "organization_id": run.organization_id, "content_hash": "",
            "definition": json!({"trigger_config": {"timezone": "Europe/Berlin"}}).to_string(), "created_by": "u", "created_at": NOW,
        }))
        .unwrap();
        let plan = RunPlan {
            trigger_data: trigger_data.to_string(),
            user: json!({"timezone": "Asia/Tokyo"}).to_string(),
            ..RunPlan::default()
        };
        RunData::of(&run, &plan, &version).unwrap()
    }

    fn now() -> Timestamp {
        NOW.parse().unwrap()
    }

    /// Runs the actions, with `tool` answering every call.
    fn carry_out(list: &Value, tool: impl Fn(&str, &Map<String, Value>) -> ToolOutcome) -> (Vec<ActionResult>, Ending) {
        let (actions, variables, data) = (actions(list), Map::new(), data(&json!({"n": 5})));
        let mut results: Vec<ActionResult> = Vec::new();
        loop {
            // Resumes before each step, as a new process would.
            let run = ActionRun::resume(&actions, &variables, &data, &results).unwrap();
            match run.next(now()) {
                Next::Over(ending) => return (results, ending),
                Next::Settled(result) => results.push(*result),
                Next::Call(planned) => {
                    let outcome = tool(&planned.id, &planned.arguments);
                    results.push(planned.finished(&outcome, false, now()));
                }
            }
        }
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better at the call")]
    fn action(id: &str, more: Value) -> Value {
        let mut action = json!({"id": id, "tool": "t", "parameters": {}});
        action.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        action
    }

    #[test]
    fn saved_results_are_enough_to_continue() {
        let list = json!([
            action("a", json!({"output_as": "first"})),
            action("b", json!({"parameters": {"sum": "{{first.n}}", "day": "{{today}}", "n": "{{trigger_data.n}}"}})),
        ]);
        let (results, ending) = carry_out(&list, |id, arguments| match id {
            "a" => ToolOutcome::succeeded(json!({"n": 7})),
            _ => ToolOutcome::succeeded(Value::Object(arguments.clone())),
        });
        // The day in the trigger's time zone.
        let output: Value = serde_json::from_str(results[1].output.as_ref().unwrap()).unwrap();
        assert_eq!(output, json!({"sum": 7, "day": "2026-11-23", "n": 5}));
        assert_eq!(ending, Ending { status: RunStatus::Completed, result: None, error: None });
    }

    #[test]
    fn a_run_ends_as_its_actions_did() {
        let outcome = |id: &str, _: &Map<String, Value>| match id {
            "bad" => ToolOutcome::failed("No."),
            "lost" => ToolOutcome::unknown("Perhaps."),
            "used" => ToolOutcome::succeeded(json!({"error": "USAGE_LIMIT_EXCEEDED"})),
            _ => ToolOutcome::succeeded(1),
        };
        let never = json!({"condition": {"path": "n", "op": "==", "value": 6}});
        let stop = json!({"on_error": "stop"});
        for (list, status, error) in [
            (json!([action("a", json!({})), action("b", never.clone())]), RunStatus::Completed, None),
            (json!([action("b", never.clone())]), RunStatus::Completed, None),
            (
                json!([action("a", json!({})), action("bad", json!({}))]),
                RunStatus::PartialFailure,
                Some("1 of 2 actions failed: bad (No.)."),
            ),
            (
                json!([action("bad", json!({})), action("lost", json!({})), action("b", never)]),
                RunStatus::Failed,
                Some("2 of 3 actions failed: bad (No.), lost (Perhaps.)."),
            ),
            (
                json!([action("lost", stop.clone()), action("a", json!({}))]),
                RunStatus::Failed,
                Some(
                    "1 of 2 actions failed: lost (Perhaps.). The last 1 were not started: the run was to stop if lost fails.",
                ),
            ),
            (
                json!([action("a", json!({})), action("bad", stop)]),
                RunStatus::PartialFailure,
                Some("1 of 2 actions failed: bad (No.)."),
            ),
            (
                json!([action("used", json!({})), action("a", json!({}))]),
                RunStatus::Failed,
                Some(
                    "1 of 2 actions failed: used (The tool's usage limit is exceeded (USAGE_LIMIT_EXCEEDED).). The last 1 were not started: the usage limit of t is exceeded.",
                ),
            ),
        ] {
            let (_, ending) = carry_out(&list, outcome);
            assert_eq!((ending.status, ending.error.as_deref()), (status, error), "{list}");
        }
    }

    #[test]
    fn a_marked_value_is_not_in_the_summary() {
        let list = json!([action("a", json!({"parameters": {"guest": "Ada Lovelace"}}))]);
        let (actions, variables, data) = (actions(&list), Map::new(), data(&json!({})));
        let mut run = ActionRun::resume(&actions, &variables, &data, &[]).unwrap();
        let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
        let failed = planned.failed("There is no room for Ada Lovelace.", now());
        run.record(&ActionResult { redact: vec!["guest".to_owned()], ..failed }).unwrap();
        let said = run.ending().error.unwrap();
        assert_eq!(said, "1 of 1 actions failed: a (There is no room for [redacted].).");
    }

    #[test]
    fn a_run_that_only_outages_stopped_is_told_apart() {
        let list = json!([action("a", json!({})), action("b", json!({}))]);
        let (actions, variables, data) = (actions(&list), Map::new(), data(&json!({})));
        for (outages, expected) in [([true, true], true), ([true, false], false)] {
            let mut run = ActionRun::resume(&actions, &variables, &data, &[]).unwrap();
            for outage in outages {
                let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
                let failed = planned.failed("No.", now());
                run.record(&ActionResult { outage, ..failed }).unwrap();
            }
            assert_eq!(run.failed_by_outages(), expected, "{outages:?}");
        }
    }

    #[test]
    fn only_a_request_without_any_effect_is_repeated() {
        let (actions, variables, data) =
            (actions(&json!([action("a", json!({"retries": 2}))])), Map::new(), data(&json!({})));
        let run = ActionRun::resume(&actions, &variables, &data, &[]).unwrap();
        let Next::Call(planned) = run.next(now()) else { panic!("it is called") };
        let because =
            |failure| ToolOutcome::failed("No.").because(clients::Error::new(UpstreamService::Outbound, failure));
        let busy = || because(Failure::RateLimited);
        for (outcome, acts, attempts, again) in [
            (busy(), true, 1, true),
            (busy(), true, 2, true),
            (busy(), true, 3, false),
            (busy().with(Effect::Unknown { done: Map::new() }), true, 1, false),
            (because(Failure::Refused("no".into())), false, 1, false),
            (ToolOutcome::failed("No."), true, 1, false),
            (ToolOutcome::failed("No."), false, 1, true),
            (ToolOutcome::failed("No.").status(ExecutionStatus::Limited), false, 1, false),
            (ToolOutcome::unknown("Perhaps."), true, 1, false),
            (ToolOutcome::succeeded(1), false, 1, false),
        ] {
            assert_eq!(planned.may_be_repeated(&outcome, acts, attempts), again, "{outcome:?} {acts} {attempts}");
        }
    }
}
