//! Each saved result moves the run on to its next step.

use serde_json::{Value, json};

use super::{
    ActionRun, Caught, Frame, LARGEST_OUTPUT, MOST_BYTES, MOST_RESULTS, Position, ROOM_TO_CATCH, failure, id_of,
    kind_of, misplaced, planned, without_output,
};
use crate::{
    Error, Result,
    automation::definition::{
        Action, OnError,
        steps::{ERROR, Step, outputs_of},
    },
    models::{ActionResult, ActionStatus, StepKind},
};

impl<'a> ActionRun<'a> {
    /// Records a saved result.
    ///
    /// # Errors
    /// If its output is not JSON, or it belongs to another step.
    pub fn record(&mut self, result: &ActionResult) -> Result<()> {
        self.resumed = false;
        self.results += 1;
        let texts = [&result.arguments, &result.output, &result.error, &result.condition_result];
        self.bytes += texts.into_iter().flatten().map(String::len).sum::<usize>();
        let output =
            result.output.as_deref().map(serde_json::from_str::<Value>).transpose().map_err(Error::internal)?;
        let (step, id) = match self.position() {
            Position::Over => return Ok(()),
            Position::LoopEnd(going) if result.kind == StepKind::ForEachEnd && result.action_id == going.each.id => {
                self.leave_loop(result, output);
                self.go_on();
                return Ok(());
            }
            Position::LoopEnd(going) => return Err(misplaced(result, &going.each.id)),
            Position::Lanes(going) => {
                if result.kind == StepKind::ForEachEnd && result.place() == going.place {
                    self.end_lanes();
                    self.leave_loop(result, output);
                } else {
                    self.record_in_lane(result)?;
                }
                self.go_on();
                return Ok(());
            }
            Position::Step(step, at) => (step, id_of(step, at)),
        };
        if result.action_id != id || result.kind != kind_of(step) {
            return Err(misplaced(result, &id));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.next += 1;
        }
        match step {
            Step::Action(action) => self.record_action(action, result, output),
            Step::ForEach(each) => self.enter_loop(each, result, output),
            Step::Choose(choose) => self.enter_branch(choose, result, output.as_ref()),
            Step::Wait(wait) => {
                self.give(wait.output_as.as_deref(), result, output);
                if result.status == ActionStatus::Failed {
                    self.failed(result);
                }
            }
        }
        self.go_on();
        Ok(())
    }

    fn record_action(&mut self, action: &'a Action, result: &ActionResult, output: Option<Value>) {
        self.tally.saw(result, output.as_ref());
        let is_limit = output.as_ref().is_some_and(planned::is_usage_limit);
        self.give(action.output_as.as_deref(), result, output);
        match result.status {
            ActionStatus::Succeeded | ActionStatus::NotSent => self.tally.succeeded(self.is_in_catch()),
            ActionStatus::Skipped => {}
            ActionStatus::Failed | ActionStatus::Unknown | ActionStatus::Refused => {
                self.failed(result);
                let stops = (action.on_error == OnError::Stop)
                    .then(|| format!("the run was to stop if {} fails", result.place()));
                if is_limit {
                    self.stop_run(format!("the usage limit of {} is exceeded", result.tool));
                } else {
                    self.catch_or_stop(&action.catch, failure(result, result.error.clone()), stops);
                }
            }
        }
    }

    /// Gives or withholds the output of a step, by its outcome.
    pub(super) fn give(&mut self, name: Option<&str>, result: &ActionResult, output: Option<Value>) {
        let Some(name) = name else { return };
        match without_output(result.status) {
            Some(became) => self.outputs.lack(name, &result.action_id, became),
            None => self.outputs.give(name, output.unwrap_or_default()),
        }
    }

    /// Counts a failure, also for the items of the loops around it.
    pub(super) fn failed(&mut self, result: &ActionResult) {
        let why = self.tally.failed(result);
        self.failed_within(&why);
    }

    pub(super) fn failed_within(&mut self, why: &str) {
        for going in self.frames.iter_mut().filter_map(|frame| frame.item_of.as_mut()) {
            going.item_failed.get_or_insert_with(|| why.to_owned());
        }
        for going in self.frames.iter_mut().filter_map(|frame| frame.branch_of.as_mut()) {
            going.failed.get_or_insert_with(|| why.to_owned());
        }
    }

    /// Begins the `catch` of a failed step, or stops the run or item if it is to stop and has none.
    pub(super) fn catch_or_stop(&mut self, steps: &'a [Step], error: Value, stops: Option<String>) {
        if !steps.is_empty() {
            self.catch(steps, error, stops);
        } else if let Some(why) = stops {
            self.stop(why);
        }
    }

    fn catch(&mut self, steps: &'a [Step], error: Value, stops: Option<String>) {
        let outputs_before = Some(self.outputs.clone());
        self.outputs.give(ERROR, error);
        for (name, _) in outputs_of(steps) {
            self.outputs.forget(name);
        }
        self.outputs.await_those_of(steps);
        self.frames.push(Frame { caught: Some(Caught { stops }), outputs_before, ..Frame::of(steps) });
    }

    /// Begins the automation's `catch`, if something failed and the actions are over.
    fn catch_all(&mut self) {
        let is_over = self.stopped.is_some() || matches!(self.position(), Position::Over);
        if self.catch.is_empty() || self.catching.is_some() || !is_over {
            return;
        }
        let Some(message) = self.summary() else { return };
        self.catching = Some(self.left());
        self.leave_lists(0);
        self.outputs.give(ERROR, json!({"message": message, "places": self.tally.places()}));
        self.outputs.await_those_of(self.catch);
        self.frames = vec![Frame::of(self.catch)];
    }

    pub(super) fn is_in_catch(&self) -> bool {
        self.catching.is_some() || self.frames.iter().any(|frame| frame.caught.is_some())
    }

    /// Top-level steps that were not started.
    pub(super) fn left(&self) -> usize {
        self.frames.first().map_or(0, |frame| frame.steps.len().saturating_sub(frame.next))
    }

    pub(super) fn stop_run(&mut self, why: String) {
        if self.catching.is_some() || self.item.is_some() {
            self.leave_lists(0);
        }
        if self.catching.is_none() {
            self.stopped = Some(why);
        }
    }

    /// Leaves all but the first `kept` open lists.
    fn leave_lists(&mut self, kept: usize) {
        let outputs_before = self.frames.drain(kept..).find_map(|frame| frame.outputs_before);
        self.outputs = outputs_before.unwrap_or_else(|| std::mem::take(&mut self.outputs));
    }

    /// Ends the item around a failed step, or else the run. A choice with a `catch` in between catches first.
    fn stop(&mut self, why: String) {
        match self.frames.iter().rposition(|frame| frame.item_of.is_some() || frame.branch_of.is_some()) {
            Some(place) => {
                self.leave_lists(place + 1);
                if let Some(frame) = self.frames.last_mut() {
                    frame.next = frame.steps.len();
                    if let Some(going) = &mut frame.branch_of {
                        going.stops = Some(why);
                    }
                }
            }
            None if self.item.is_some() => self.leave_lists(0),
            None => self.stop_run(why),
        }
    }

    /// Leaves the lists that are done, begins the next item of a loop, and stops a run that has become too large.
    fn go_on(&mut self) {
        loop {
            let is_outermost = self.frames.len() <= 1;
            let Some(frame) = self.frames.last_mut().filter(|frame| frame.next >= frame.steps.len()) else { break };
            match &mut frame.item_of {
                Some(going) if going.is_over => break,
                Some(going) => {
                    going.finish_item(&mut self.outputs);
                    if going.is_over {
                        break;
                    }
                    frame.next = 0;
                }
                None if is_outermost => break,
                None => {
                    let Some(Frame { caught, branch_of, outputs_before, .. }) = self.frames.pop() else { break };
                    if let Some(outputs_before) = outputs_before {
                        self.outputs = outputs_before;
                    }
                    if let Some(going) = branch_of {
                        self.leave_branch(*going);
                    }
                    if let Some(why) = caught.and_then(|caught| caught.stops) {
                        self.stop(why);
                    }
                }
            }
        }
        // A loop ends first, after the steps of its items that are being taken.
        let may_stop = (self.stopped.is_none() || self.catching.is_some())
            && !matches!(self.position(), Position::Over | Position::Lanes(_));
        if may_stop && self.is_full() {
            self.refuse_more();
        }
        self.catch_all();
    }

    /// Stops a run that has become too large.
    pub(super) fn refuse_more(&mut self) {
        let most = if self.results >= MOST_RESULTS {
            format!("{MOST_RESULTS} steps")
        } else {
            format!("{} MB of results", MOST_BYTES / (1024 * 1024))
        };
        self.tally.refuse(&format!("a run has at most {most}; split the automation"));
        self.stop_run(format!("a run has at most {most}"));
    }

    pub(super) fn is_full(&self) -> bool {
        // The automation's catch still tells of the limit.
        let extra = if self.catching.is_some() { ROOM_TO_CATCH } else { 0 };
        self.results >= MOST_RESULTS + extra || self.bytes >= MOST_BYTES + extra * LARGEST_OUTPUT
    }
}
