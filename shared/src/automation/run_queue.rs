//! The queue of runs: a run that waits has a message there, or it ends.

use super::run_end::report_end;
use crate::{
    Error, Result,
    clients::Queue,
    error,
    models::{AutomationRun, OrganizationId, QueuedRun, RunId, RunStatus},
    store::AutomationRuns,
};

const NOT_QUEUED: &str = "The run could not be put on the queue; start it again.";

/// Asks `run-loop` to carry runs out. The row is written first, so that a message never names a run that is not there.
#[derive(Clone)]
pub struct RunQueue {
    pub runs: AutomationRuns,
    pub queue: Queue<QueuedRun>,
}

impl RunQueue {
    /// Asks for a run that waits to be carried out; gives it as it then is. That it is asked for twice does no harm.
    ///
    /// # Errors
    /// If the queue did not take it: then the run has ended as failed, for nobody would ever carry it out.
    pub async fn put(&self, run: AutomationRun) -> Result<AutomationRun> {
        let (organization_id, run_id) = (run.organization_id, run.id);
        let Err(refused) = self.queue.send(&QueuedRun { organization_id, run_id }).await else { return Ok(run) };
        let run = self.runs.fail_waiting(organization_id, run_id, NOT_QUEUED).await.inspect_err(|error| {
            tracing::error!(run.id = %run_id, "a run waits that nobody knows of: {}", error::chain(error));
        });
        match run {
            // The message was taken, and only the answer lost.
            Ok(run) if run.status != RunStatus::Failed => Ok(run),
            run => {
                if let Ok(run) = &run {
                    report_end(run, run.status);
                }
                Err(Error::Unavailable("the queue of runs", Box::new(refused)))
            }
        }
    }

    /// As [`RunQueue::put`] for a run that was asked for before: one whose message was lost begins now, one that is over or
    /// under way stays as it is.
    pub async fn put_again(&self, run: AutomationRun) -> Result<AutomationRun> {
        let never_begun = run.status == RunStatus::Failed && run.started_at.is_none();
        let run = if never_begun { self.runs.wait_again(run.organization_id, run.id).await? } else { run };
        if run.status == RunStatus::Queued { self.put(run).await } else { Ok(run) }
    }
}

impl RunQueue {
    /// Has a run go on that waits for something.
    pub async fn wake(&self, organization_id: OrganizationId, run_id: RunId) -> Result<()> {
        self.queue.send(&QueuedRun { organization_id, run_id }).await.map_err(Error::from)
    }
}
