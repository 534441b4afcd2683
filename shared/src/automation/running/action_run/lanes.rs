//! Items of a loop that run at the same time.
//!
//! Each running item is a run of its own steps. Its results name their place, so results of different items may be recorded in any
//! order, and a run that resumes knows how far each item is. An item begins when another is done.

use std::sync::Arc;

use super::{ActionRun, Next, Position, loops::OpenLoop, misplaced};
use crate::{
    Result,
    models::{ActionResult, Timestamp},
};

/// An item that is running beside others.
#[derive(Debug, Clone)]
pub(super) struct Lane<'a> {
    /// Its place in the list, from 0.
    index: usize,
    pub(super) run: ActionRun<'a>,
}

impl Lane<'_> {
    fn has(&self, place: &str) -> bool {
        self.run.item.as_deref().is_some_and(|item| place.starts_with(item))
    }
}

impl<'a> OpenLoop<'a> {
    /// Begins items until `at_once` of them are running.
    pub(super) fn begin_lanes(&mut self, around: &ActionRun<'a>) {
        while self.lanes.len() < self.each.at_once
            && !self.stops
            && let Some((key, item)) = self.items.get(self.begun)
        {
            let mut outputs = around.outputs.clone();
            self.begin_outputs(item.clone(), &mut outputs);
            let mut run = ActionRun::of(&self.each.steps, (around.variables, around.data, outputs));
            run.item = Some(self.prefix_of(key));
            run.kept = Arc::clone(&around.kept);
            self.lanes.push(Lane { index: self.begun, run });
            self.begun += 1;
        }
    }

    /// Places of the calls that come next in the running items.
    fn next_calls(&self, now: Timestamp) -> Vec<String> {
        let place = |lane: &Lane<'_>| match lane.run.next(now) {
            Next::Call(planned) => Some(planned.id),
            _ => None,
        };
        self.lanes.iter().filter_map(place).collect()
    }
}

impl<'a> ActionRun<'a> {
    pub(super) fn next_of_lanes(&self, going: &OpenLoop<'a>, taken: &[String], now: Timestamp) -> Next<'a> {
        if going.stops_run.is_some() || self.is_full() {
            if !taken.is_empty() {
                return Next::Busy;
            }
            let under_way = if self.resumed { going.next_calls(now) } else { Vec::new() };
            return Next::Settled(Box::new(ActionResult { under_way, ..self.end_of_loop(going, now) }));
        }
        let free = going.lanes.iter().filter(|lane| !taken.iter().any(|place| lane.has(place)));
        free.map(|lane| lane.run.next(now)).find(|next| !matches!(next, Next::Over(_))).unwrap_or(Next::Busy)
    }

    /// Records a result of a running item.
    ///
    /// # Errors
    /// As [`Self::record`].
    pub(super) fn record_in_lane(&mut self, result: &ActionResult) -> Result<()> {
        let Some(mut frame) = self.frames.pop() else { return Ok(()) };
        if let Some(going) = &mut frame.item_of {
            let place = result.place();
            let found = going.lanes.iter_mut().enumerate().find(|(_, lane)| lane.has(place));
            let Some((at, lane)) = found else { return Err(misplaced(result, &going.each.id)) };
            lane.run.record(result)?;
            if lane.run.is_done() {
                let lane = going.lanes.remove(at);
                self.finish(going, &lane);
            }
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Ends a loop before its items are done.
    pub(super) fn end_lanes(&mut self) {
        let Some(mut frame) = self.frames.pop() else { return };
        if let Some(going) = &mut frame.item_of {
            going.lanes.drain(..).for_each(|lane| self.take_over(&lane));
            if going.stops_run.is_none() {
                self.refuse_more();
            }
        }
        self.frames.push(frame);
    }

    fn is_done(&self) -> bool {
        self.stopped.is_some() || matches!(self.position(), Position::Over)
    }

    /// Counts an item that is done, and begins the next one.
    fn finish(&mut self, going: &mut OpenLoop<'a>, lane: &Lane<'a>) {
        self.take_over(lane);
        let stops = going.count(lane.index, lane.run.tally.first_failure(), &lane.run.outputs);
        going.stops_run = going.stops_run.take().or_else(|| lane.run.stopped.clone());
        going.stops |= stops || going.stops_run.is_some();
        going.begin_lanes(self);
        going.is_over = going.lanes.is_empty();
    }

    /// Counts the outcomes of an item, also for the items and branches around the loop.
    fn take_over(&mut self, lane: &Lane<'a>) {
        if let Some(why) = lane.run.tally.first_failure() {
            self.failed_within(&why);
        }
        self.tally.absorb(&lane.run.tally, self.is_in_catch());
    }
}
