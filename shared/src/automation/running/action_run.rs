//! Plans a run of actions step by step; `run-loop` performs each step.
//!
//! Actions run in order. A failed action does not end the run unless it has `"on_error": "stop"`; a tool that returns `{"error":
//! "USAGE_LIMIT_EXCEEDED"}` ends it at once. The plan depends only on the definition, the trigger and the saved results, so an
//! interrupted run resumes where it stopped.
//!
//! Loops and branches are steps with results of their own: that of a loop holds its list, so the list stays the same whatever its
//! actions change; that of a choice names the branch. The run keeps a stack of open lists of steps ([`Frame`]), and each result
//! moves it on, at a cost that does not grow with the results before.

mod choices;
mod ending;
mod lanes;
mod loops;
mod pauses;
mod planned;
mod recording;
#[cfg(test)]
mod tests;

use std::{collections::HashMap, sync::Arc};

use serde_json::{Map, Value, json};

use self::{choices::OpenChoice, ending::Tally, loops::OpenLoop};
use crate::{
    Error, Result,
    automation::{
        RunData,
        definition::{
            Action,
            steps::{Choose, Step, all_actions, outputs_of},
        },
        expressions::{
            conditions::{Condition, Explanation},
            data::{Data, Outputs, SKIPPED},
            templates::filled_in_noting,
            work::{MOST_COMPARED, MOST_FILLED_IN, Work},
        },
    },
    cut::cut,
    injection::Ending,
    models::{ActionResult, ActionStatus, RunPause, StepKind, Timestamp},
};

pub use self::{pauses::EventToAwait, planned::PlannedAction};

/// Bytes of JSON. Arguments, output and explanation share one item, and DynamoDB allows 400 KB.
pub const LARGEST_ARGUMENTS: usize = 200_000;
/// Bytes of JSON. A longer output is cut, also for the actions after it.
pub const LARGEST_OUTPUT: usize = 64 * 1024;
/// Results of one run, and bytes of all of them: a run that resumes reads them all.
pub const MOST_RESULTS: usize = 5_000;
const MOST_BYTES: usize = 16 * 1024 * 1024;
/// Results beyond the limit for the automation's `catch`.
const ROOM_TO_CATCH: usize = 50;
/// Bytes, per action.
const LONGEST_ERROR: usize = 2_000;

type Kept = Arc<HashMap<(String, StepKind), ActionResult>>;

#[derive(Debug, Clone)]
pub struct ActionRun<'a> {
    steps: &'a [Step],
    /// Run after the others if one failed.
    catch: &'a [Step],
    variables: &'a Map<String, Value>,
    data: &'a RunData,
    outputs: Outputs,
    /// The open lists of steps; the innermost is the last.
    frames: Vec<Frame<'a>>,
    /// Results of an earlier run that this one keeps, by place.
    kept: Kept,
    /// The beginning of all places, if these are the steps of one item of a loop.
    item: Option<String>,
    /// Results so far, and their bytes.
    results: usize,
    bytes: usize,
    tally: Tally,
    stopped: Option<String>,
    /// Steps at the end that were not started, once the automation's `catch` has begun.
    catching: Option<usize>,
    /// No result was recorded since the run was resumed, so calls of a dead process may be under way.
    resumed: bool,
}

/// A list of steps, and the next one in it.
#[derive(Debug, Clone)]
struct Frame<'a> {
    steps: &'a [Step],
    next: usize,
    /// If the list is that of a loop's item.
    item_of: Option<Box<OpenLoop<'a>>>,
    /// If the list is a branch of a choice with a `catch`.
    branch_of: Option<Box<OpenChoice<'a>>>,
    /// If the list is the `catch` of a step.
    caught: Option<Caught>,
    /// Restored after a loop or a `catch`: later steps may use the same names.
    outputs_before: Option<Outputs>,
}

#[derive(Debug, Clone)]
struct Caught {
    /// Why the run or the item is to stop at its end.
    stops: Option<String>,
}

impl<'a> Frame<'a> {
    const fn of(steps: &'a [Step]) -> Self {
        Self { steps, next: 0, item_of: None, branch_of: None, caught: None, outputs_before: None }
    }
}

/// The next thing to do.
enum Position<'r, 'a> {
    /// A step, with its index in its list.
    Step(&'a Step, usize),
    /// Items of a loop that run at the same time.
    Lanes(&'r OpenLoop<'a>),
    /// All items of a loop are done.
    LoopEnd(&'r OpenLoop<'a>),
    Over,
}

#[derive(Debug)]
pub enum Next<'a> {
    Call(Box<PlannedAction<'a>>),
    /// No tool is called: the condition is false, the action cannot run, or the step is no call of a tool. The result is to be
    /// saved.
    Settled(Box<ActionResult>),
    /// The run goes on at a later time, or when the event comes; the event is absent if the pause has begun.
    Pause(RunPause, Option<Box<EventToAwait>>),
    /// Nothing can begin before a step ends that is being taken.
    Busy,
    Over(Ending),
}

fn too_much_compared() -> String {
    let most = MOST_COMPARED / 1_000_000;
    format!(
        "Its condition was not evaluated: with the data of this run it compares more than {most} MB. Use fewer clauses or values."
    )
}

impl<'a> ActionRun<'a> {
    /// Continues from `results`, in the order of the steps.
    ///
    /// # Errors
    /// If a saved output is not JSON.
    pub fn resume(
        (steps, catch): (&'a [Step], &'a [Step]),
        variables: &'a Map<String, Value>,
        data: &'a RunData,
        results: &[ActionResult],
    ) -> Result<Self> {
        let mut run = Self::of(steps, (variables, data, Outputs::default()));
        run.catch = catch;
        results.iter().try_for_each(|result| run.record(result))?;
        run.resumed = true;
        Ok(run)
    }

    fn of(steps: &'a [Step], (variables, data, outputs): (&'a Map<String, Value>, &'a RunData, Outputs)) -> Self {
        let mut run = Self {
            steps,
            catch: &[],
            variables,
            data,
            outputs,
            frames: vec![Frame::of(steps)],
            kept: Kept::default(),
            item: None,
            results: 0,
            bytes: 0,
            tally: Tally::default(),
            stopped: None,
            catching: None,
            resumed: false,
        };
        run.outputs.await_those_of(steps);
        run
    }

    /// The results that the run keeps from an earlier one, in place of calls.
    #[must_use]
    pub fn keeping(mut self, kept: Vec<ActionResult>) -> Self {
        let kept = kept.into_iter().map(|result| ((result.place().to_owned(), result.kind), result)).collect();
        self.keep(&Arc::new(kept));
        self
    }

    fn keep(&mut self, kept: &Kept) {
        self.kept = Arc::clone(kept);
        for going in self.frames.iter_mut().filter_map(|frame| frame.item_of.as_mut()) {
            going.lanes.iter_mut().for_each(|lane| lane.run.keep(kept));
        }
    }

    /// The outputs of the results so far, by `output_as`.
    pub(super) fn given_outputs(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.outputs.all_given()
    }

    /// The remaining actions whose tools may be called.
    pub fn left_to_call(&self) -> impl Iterator<Item = &'a Action> {
        let mut left: Vec<&'a Action> = Vec::new();
        for (depth, frame) in self.frames.iter().enumerate() {
            // Other items of a loop may follow.
            let from = if frame.item_of.as_ref().is_some_and(|going| !going.is_over) { 0 } else { frame.next };
            for (index, step) in frame.steps.iter().enumerate().skip(from) {
                let kept = || self.kept.contains_key(&(id_of(step, index), StepKind::Action));
                if depth > 0 || step.is_nested() || !kept() {
                    left.extend(all_actions(std::slice::from_ref(step)));
                }
            }
            // The step around this list is behind, but not its catch.
            let caught_by = frame.item_of.as_ref().map(|going| &going.each.catch);
            let caught_by = caught_by.or_else(|| frame.branch_of.as_ref().map(|going| &going.choose.catch));
            left.extend(caught_by.into_iter().flat_map(|steps| all_actions(steps)));
        }
        if self.catching.is_none() {
            left.extend(all_actions(self.catch));
        }
        left.into_iter()
    }

    fn position(&self) -> Position<'_, 'a> {
        let Some(frame) = self.frames.last() else { return Position::Over };
        match (&frame.item_of, frame.steps.get(frame.next)) {
            (Some(going), _) if going.is_over => Position::LoopEnd(going),
            (Some(going), _) if !going.lanes.is_empty() => Position::Lanes(going),
            (_, Some(step)) => Position::Step(step, frame.next),
            _ => Position::Over,
        }
    }

    /// The beginning of the places of the next steps: `each[42].`.
    fn prefix(&self) -> &str {
        let innermost = self.frames.iter().rev().find_map(|frame| frame.item_of.as_ref());
        innermost.map_or(self.item.as_deref().unwrap_or_default(), |going| &going.prefix)
    }

    /// `now` becomes the start time of the step.
    pub fn next(&self, now: Timestamp) -> Next<'a> {
        self.next_beside(&[], now)
    }

    /// As [`Self::next`], while the steps at these places are being taken.
    pub fn next_beside(&self, taken: &[String], now: Timestamp) -> Next<'a> {
        let position = self.position();
        if !taken.is_empty() && !matches!(position, Position::Lanes(_)) {
            return Next::Busy;
        }
        if self.stopped.is_some() && self.catching.is_none() {
            return Next::Over(self.ending());
        }
        let (step, at) = match position {
            Position::Over => return Next::Over(self.ending()),
            Position::LoopEnd(going) => return Next::Settled(Box::new(self.end_of_loop(going, now))),
            Position::Lanes(going) => return self.next_of_lanes(going, taken, now),
            Position::Step(step, at) => (step, at),
        };
        let id = id_of(step, at);
        let place = format!("{}{id}", self.prefix());
        let kind = kind_of(step);
        // Most runs keep nothing.
        if !self.kept.is_empty()
            && let Some(kept) = self.kept.get(&(place.clone(), kind))
        {
            return Next::Settled(Box::new(ActionResult { index: self.index(), ..kept.clone() }));
        }
        match step {
            Step::Action(action) => self.plan(action, id, place, now),
            Step::ForEach(each) => Next::Settled(Box::new(self.begin_loop(each, place, now))),
            Step::Choose(choose) => Next::Settled(Box::new(self.choose(choose, place, now))),
            Step::Wait(wait) => self.pause(wait, place, now),
        }
    }

    fn plan(&self, action: &'a Action, action_id: String, place: String, now: Timestamp) -> Next<'a> {
        let data = self.data();
        let explained = action.condition.as_ref().map(|condition| data.explain(condition)).transpose();
        let mut planned = PlannedAction {
            action,
            index: self.index(),
            action_id,
            id: place,
            tool: action.tool.as_deref().unwrap_or_default(),
            arguments: Map::new(),
            condition_result: explained.as_ref().ok().and_then(Option::as_ref).map(in_json),
            empty: Vec::new(),
        };
        let Ok(explained) = explained else {
            return Next::Settled(Box::new(planned.failed(too_much_compared(), now)));
        };
        if let Some(explained) = explained.filter(|explained| !explained.holds) {
            return Next::Settled(Box::new(planned.skipped(does_not_hold(&explained), now)));
        }
        let parameters = Value::Object(action.parameters.clone());
        let too_large = || {
            format!(
                "With its templates filled in, its parameters have more than {LARGEST_ARGUMENTS} bytes; give the tool less."
            )
        };
        let work = Work::of(MOST_FILLED_IN);
        let why = match filled_in_noting(&parameters, &data, LARGEST_ARGUMENTS, &work, &mut planned.empty) {
            Ok(Value::Object(arguments)) if length(&arguments) <= LARGEST_ARGUMENTS => {
                planned.arguments = arguments;
                return Next::Call(Box::new(planned));
            }
            Ok(_) => too_large(),
            Err(unfilled) => unfilled.in_words(too_large),
        };
        Next::Settled(Box::new(planned.misfit(why, now)))
    }

    fn data(&self) -> Data<'_> {
        self.data.with(self.variables, &self.outputs)
    }

    /// The result with its number in the run: results of items that run at the same time come in any order.
    #[must_use]
    pub fn numbered(&self, result: ActionResult) -> ActionResult {
        ActionResult { index: self.index(), ..result }
    }

    fn index(&self) -> u32 {
        u32::try_from(self.results).unwrap_or(u32::MAX)
    }

    /// A result of a step that calls no tool.
    fn settled(&self, of: (StepKind, &str), id: &str, place: String, now: Timestamp) -> ActionResult {
        new_result(self.index(), of, id, place, now)
    }

    /// The result with the explanation of a step's condition, if the condition does not hold.
    fn unless_held(
        &self,
        condition: Option<&Condition>,
        result: ActionResult,
    ) -> Result<ActionResult, Box<ActionResult>> {
        let Some(explained) = condition.map(|condition| self.data().explain(condition)) else { return Ok(result) };
        let Ok(explained) = explained else {
            return Err(Box::new(with_error(ActionStatus::Failed, too_much_compared(), result)));
        };
        let result = ActionResult { condition_result: Some(in_json(&explained)), ..result };
        if explained.holds {
            Ok(result)
        } else {
            Err(Box::new(with_error(ActionStatus::Skipped, does_not_hold(&explained), result)))
        }
    }
}

impl Outputs {
    /// Marks the outputs of these steps as not reached.
    fn await_those_of(&mut self, steps: &[Step]) {
        for (name, id) in outputs_of(steps) {
            self.lack(name, id, "was not reached");
        }
    }
}

/// The step's id, or `action_1`, `action_2`, … by position.
pub(super) fn id_of(step: &Step, index: usize) -> String {
    step.id().map_or_else(|| format!("action_{}", index + 1), str::to_owned)
}

/// The kind of the result that begins a step.
pub(super) const fn kind_of(step: &Step) -> StepKind {
    match step {
        Step::Action(_) => StepKind::Action,
        Step::ForEach(_) => StepKind::ForEach,
        Step::Choose(_) => StepKind::Choose,
        Step::Wait(_) => StepKind::Wait,
    }
}

/// A result of which nothing is known yet; no tool was called.
fn new_result(
    index: u32,
    (kind, tool): (StepKind, &str),
    id: &str,
    place: String,
    started_at: Timestamp,
) -> ActionResult {
    ActionResult {
        index,
        action_id: id.to_owned(),
        tool: tool.to_owned(),
        status: ActionStatus::Succeeded,
        arguments: None,
        output: None,
        error: None,
        condition_result: None,
        execution_id: None,
        attempts: 0,
        redact: Vec::new(),
        outage: false,
        kind,
        path: (place != id).then_some(place),
        keys: Vec::new(),
        under_way: Vec::new(),
        note: None,
        had_no_effect: true,
        kept_from: None,
        started_at,
        duration_ms: 0,
    }
}

fn misplaced(result: &ActionResult, id: &str) -> Error {
    Error::internal(format!("result {} is of {}, but the next step is {id}", result.index, result.action_id))
}

fn with_error(status: ActionStatus, why: String, result: ActionResult) -> ActionResult {
    ActionResult { status, error: Some(cut(why, LONGEST_ERROR)), ..result }
}

fn does_not_hold(explained: &Explanation) -> String {
    format!("Its condition does not hold: {}.", explained.reason())
}

/// `error` in the `catch` of a step.
fn failure(result: &ActionResult, message: Option<String>) -> Value {
    let status = without_output(result.status).unwrap_or("failed");
    let message = message.unwrap_or_else(|| format!("The action {} {status}.", result.action_id));
    json!({
        "message": message, "action": result.action_id, "place": result.place(), "tool": result.tool, "status": result.status,
    })
}

const fn without_output(status: ActionStatus) -> Option<&'static str> {
    match status {
        ActionStatus::Succeeded => None,
        ActionStatus::NotSent => Some("was not sent in this dry run"),
        ActionStatus::Skipped => Some(SKIPPED),
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
