//! Branches: the first one whose condition holds runs.

use serde_json::{Value, json};

use super::{ActionRun, Choose, Frame, failure, in_json, too_much_compared, with_error};
use crate::{
    automation::{
        definition::steps::{Step, outputs_of},
        expressions::data::NOT_TAKEN,
    },
    models::{ActionResult, ActionStatus, StepKind, Timestamp},
};

/// The name of the last branch in a result.
const OTHERWISE: &str = "otherwise";

/// A choice with a `catch`, whose branch is running.
#[derive(Debug, Clone)]
pub(super) struct OpenChoice<'a> {
    pub(super) choose: &'a Choose,
    chose: ActionResult,
    /// The first failure in the branch.
    pub(super) failed: Option<String>,
    /// Why the run or the item is to stop after the `catch`.
    pub(super) stops: Option<String>,
}

impl<'a> ActionRun<'a> {
    /// Decides for a branch. A condition about an output that failed or was cut proves nothing, so then no branch runs.
    pub(super) fn choose(&self, choose: &Choose, place: String, now: Timestamp) -> ActionResult {
        let mut result = self.settled((StepKind::Choose, "choose"), &choose.id, place, now);
        let data = self.data();
        let mut reasons = Vec::new();
        for (number, branch) in choose.branches.iter().enumerate() {
            let Ok(explained) = data.explain(&branch.when) else {
                return with_error(ActionStatus::Failed, too_much_compared(), result);
            };
            result.condition_result = Some(in_json(&explained));
            if explained.holds {
                return ActionResult { output: Some(json!({"branch": number + 1}).to_string()), ..result };
            }
            let Ok(is_undecided) = branch.when.is_undecided(&data) else {
                return with_error(ActionStatus::Failed, too_much_compared(), result);
            };
            if is_undecided {
                let why = format!("No branch was taken: {}.", explained.reason());
                return with_error(ActionStatus::Skipped, why, result);
            }
            reasons.push(explained.reason());
        }
        if choose.otherwise.is_empty() {
            let why = format!("None of its conditions holds: {}.", reasons.join("; "));
            return with_error(ActionStatus::Skipped, why, result);
        }
        ActionResult { output: Some(json!({"branch": OTHERWISE}).to_string()), ..result }
    }

    pub(super) fn enter_branch(&mut self, choose: &'a Choose, result: &ActionResult, output: Option<&Value>) {
        let branch =
            output.filter(|_| result.status == ActionStatus::Succeeded).and_then(|output| output.get("branch"));
        let number = branch.and_then(Value::as_u64).and_then(|number| usize::try_from(number).ok());
        let taken: &'a [Step] = match (branch, number) {
            (Some(Value::String(name)), _) if name == OTHERWISE => &choose.otherwise,
            (_, Some(number)) => {
                choose.branches.get(number.saturating_sub(1)).map(|branch| branch.steps.as_slice()).unwrap_or_default()
            }
            _ => &[],
        };
        let given = outputs_of(taken);
        let all = choose.branches.iter().map(|branch| branch.steps.as_slice()).chain([choose.otherwise.as_slice()]);
        for (name, id) in all.flat_map(outputs_of) {
            if !given.iter().any(|(given, _)| *given == name) {
                self.outputs.lack(name, id, NOT_TAKEN);
            }
        }
        self.outputs.await_those_of(taken);
        if result.status == ActionStatus::Failed {
            self.failed(result);
            self.catch_or_stop(&choose.catch, failure(result, result.error.clone()), None);
        } else if !taken.is_empty() {
            let going = || Box::new(OpenChoice { choose, chose: result.clone(), failed: None, stops: None });
            let branch_of = (!choose.catch.is_empty()).then(going);
            self.frames.push(Frame { branch_of, ..Frame::of(taken) });
        }
    }

    /// Begins the `catch` of a choice whose branch failed.
    pub(super) fn leave_branch(&mut self, going: OpenChoice<'a>) {
        let OpenChoice { choose, chose, failed, stops } = going;
        if let Some(why) = failed {
            let result = ActionResult { status: ActionStatus::Failed, ..chose };
            self.catch_or_stop(&choose.catch, failure(&result, Some(why)), stops);
        }
    }
}
