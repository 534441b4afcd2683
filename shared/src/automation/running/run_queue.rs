//! The queue of runs.

use std::time::Duration;

use super::run_end::report_end;
use crate::{
    Error, Result,
    clients::Queue,
    error,
    models::{AutomationRun, OrganizationId, QueuedRun, RunId, RunStatus},
    store::AutomationRuns,
};

/// By then, a run's message was sent or its process is dead.
const LOST_AFTER: Duration = Duration::from_secs(60);
const NOT_QUEUED: &str = "The run could not be put on the queue; start it again.";

/// Queues runs for `run-loop`, which drops the message of a run without a row.
#[derive(Clone)]
pub struct RunQueue {
    pub runs: AutomationRuns,
    pub queue: Queue<QueuedRun>,
}

impl RunQueue {
    /// Queues a waiting run, and returns its current row. Queueing twice is harmless.
    ///
    /// # Errors
    /// If the queue refuses the message. The run has then failed, because no other process would execute it.
    pub async fn put(&self, run: AutomationRun) -> Result<AutomationRun> {
        let (organization_id, run_id) = (run.organization_id, run.id);
        let Err(refused) = self.queue.send(&QueuedRun::new(organization_id, run_id)).await else { return Ok(run) };
        let run = self.runs.fail_waiting(organization_id, run_id, NOT_QUEUED).await.inspect_err(|error| {
            tracing::error!(run.id = %run_id, "a run is queued, but its message was not sent: {}", error::chain(error));
        });
        match run {
            // The queue accepted the message; only its answer was lost.
            Ok(run) if run.status != RunStatus::Failed => Ok(run),
            run => {
                if let Ok(run) = &run {
                    report_end(run, run.status);
                }
                Err(Error::Unavailable("the queue of runs", Box::new(refused)))
            }
        }
    }

    /// As [`RunQueue::put`], on a repeated request: restarts a run whose message was lost, and leaves running or finished ones
    /// alone.
    pub async fn put_again(&self, run: AutomationRun) -> Result<AutomationRun> {
        let never_begun = run.status == RunStatus::Failed && run.started_at.is_none();
        let run = if never_begun { self.runs.wait_again(run.organization_id, run.id).await? } else { run };
        if run.status == RunStatus::Queued { self.put(run).await } else { Ok(run) }
    }

    pub async fn wake(&self, organization_id: OrganizationId, run_id: RunId) -> Result<()> {
        self.queue.send(&QueuedRun::new(organization_id, run_id)).await.map_err(Error::from)
    }

    /// Before the row of a run that nobody starts again: a message in case this process dies between the row and
    /// [`RunQueue::put`].
    ///
    /// # Errors
    /// If the queue refuses the message; the row must not be written.
    pub async fn put_if_lost(&self, organization_id: OrganizationId, run_id: RunId) -> Result<()> {
        let sent = self.queue.send_later(&QueuedRun::new(organization_id, run_id), LOST_AFTER).await;
        sent.map_err(|refused| Error::Unavailable("the queue of runs", Box::new(refused)))
    }
}
