//! Writes each step of a run down, and says why the run is to stop.

use std::ops::ControlFlow;

use shared::{
    Result,
    injection::{Dialogue, Journal},
    models::{AutomationRun, RunAnswer, RunReply},
    store::{AutomationRuns, Lease, Saved, Step},
};

/// The run's items in the table, written under its lease.
pub(crate) struct RunJournal<'a> {
    pub(crate) runs: &'a AutomationRuns,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
}

/// Why a run does not go on here.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody wants it to end; this step was taken and is not written down yet.
    CancelRequested(UnsavedStep),
    /// Somebody else carries it on.
    LeaseLost,
}

#[derive(Debug)]
pub(crate) enum UnsavedStep {
    Answer(RunAnswer),
    Reply(RunReply),
}

impl UnsavedStep {
    pub(crate) const fn step(&self) -> Step<'_> {
        match self {
            Self::Answer(answer) => Step::Answer(answer),
            Self::Reply(reply) => Step::Reply(reply),
        }
    }
}

impl Journal for RunJournal<'_> {
    type Stop = Stop;

    async fn answered(&mut self, answer: &RunAnswer, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, Step::Answer(answer), dialogue.spent()).await?;
        Ok(stop(saved, || UnsavedStep::Answer(answer.clone())))
    }

    async fn replied(&mut self, reply: &RunReply, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, Step::Reply(reply), dialogue.spent()).await?;
        Ok(stop(saved, || UnsavedStep::Reply(reply.clone())))
    }
}

fn stop(saved: Saved, unsaved: impl FnOnce() -> UnsavedStep) -> ControlFlow<Stop> {
    match saved {
        Saved::Yes => ControlFlow::Continue(()),
        Saved::CancelRequested => ControlFlow::Break(Stop::CancelRequested(unsaved())),
        Saved::Lost => ControlFlow::Break(Stop::LeaseLost),
    }
}
