//! Writes each step of a run down.

use shared::{
    Result,
    injection::{Dialogue, Flow, Journal},
    models::{AutomationRun, RunAnswer, RunReply},
    store::{AutomationRuns, Lease, Saved, Step},
};

pub(crate) struct Written<'a> {
    pub(crate) runs: &'a AutomationRuns,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
    pub(crate) stopped: Option<Stopped>,
}

/// Why the run does not go on here.
pub(crate) enum Stopped {
    /// Somebody wants it to end; this step was taken and is not written down yet.
    Cancelled(Last),
    /// Somebody else has it.
    Lost,
}

pub(crate) enum Last {
    Answer(RunAnswer),
    Reply(RunReply),
}

impl Last {
    pub(crate) const fn step(&self) -> Step<'_> {
        match self {
            Self::Answer(answer) => Step::Answer(answer),
            Self::Reply(reply) => Step::Reply(reply),
        }
    }
}

impl Journal for Written<'_> {
    async fn answered(&mut self, answer: &RunAnswer, dialogue: &Dialogue) -> Result<Flow> {
        let saved = self.runs.save(self.run, self.lease, Step::Answer(answer), dialogue.spent()).await?;
        Ok(self.flow(saved, || Last::Answer(answer.clone())))
    }

    async fn replied(&mut self, reply: &RunReply, dialogue: &Dialogue) -> Result<Flow> {
        let saved = self.runs.save(self.run, self.lease, Step::Reply(reply), dialogue.spent()).await?;
        Ok(self.flow(saved, || Last::Reply(reply.clone())))
    }
}

impl Written<'_> {
    fn flow(&mut self, saved: Saved, last: impl FnOnce() -> Last) -> Flow {
        self.stopped = match saved {
            Saved::Yes => return Flow::GoOn,
            Saved::CancelRequested => Some(Stopped::Cancelled(last())),
            Saved::Lost => Some(Stopped::Lost),
        };
        Flow::Stop
    }
}
