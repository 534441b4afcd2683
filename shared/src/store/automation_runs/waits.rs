//! Runs that wait: for a decision, another run, or a time.

use std::time::Duration;

use super::{AutomationRuns, RUN, Saved, Waits};
use crate::{
    Result,
    models::{AutomationRun, RunId, RunStatus, Timestamp},
    store::{
        Lease,
        database::{number, text, to_attribute},
    },
};

/// Beyond the end of a wait.
const KEPT_BEYOND: Duration = Duration::from_secs(24 * 60 * 60);

impl Waits {
    fn is_of(&self, run: &AutomationRun) -> bool {
        match self {
            Self::ForApproval(approval, _) => run.waits_for_approval == Some(*approval),
            Self::ForRun(child, _) => run.waits_for_run == Some(*child),
            Self::ForTime(pause) => run.pause.as_ref() == Some(pause),
        }
    }
}

impl AutomationRuns {
    /// Releases a run until the approval or child run completes, or until a time. A waiting run costs nothing.
    pub async fn wait(&self, run: &AutomationRun, lease: &Lease, wait: &Waits) -> Result<Saved> {
        let (of_approval, of_run) = ("#waits_for_approval", "#waits_for_run");
        let (status, what, until) = match wait {
            Waits::ForApproval(approval, until) => (RunStatus::WaitingForApproval, text(approval), *until),
            Waits::ForRun(child, until) => (RunStatus::Running, text(child), *until),
            Waits::ForTime(pause) => (RunStatus::Running, to_attribute(pause)?, pause.until),
        };
        let (name, others) = match wait {
            Waits::ForApproval(..) => (of_approval, of_run.to_owned()),
            Waits::ForRun(..) => (of_run, of_approval.to_owned()),
            Waits::ForTime(_) => ("#pause", format!("{of_approval}, {of_run}")),
        };
        let kept = self.keep_beyond(run, until).await?;
        let waiting = lease
            .update_in_transaction(format!(
                "SET #status = :status, {name} = :what, #time_from = :until, #attempts = :none, #updated_at = :now, \
                 #expires_at = :kept REMOVE #lease_token, #lease_until, {others}"
            ))
            .with([(":until", text(until)), (":kept", number(kept))]);
        let waiting = waiting.when("#lease_token = :token AND attribute_not_exists(#cancel_requested_at)").with([
            (":status", text(status.as_str())),
            (":what", what),
            (":none", number(0)),
            (":now", text(Timestamp::now())),
        ]);
        if waiting.unless_refused().await? {
            return Ok(Saved::Yes);
        }
        let now = self.get(run.organization_id, run.id).await?;
        // A repetition after a lost answer is refused, because the update released the lease.
        if now.lease_until.is_none() && wait.is_of(&now) {
            return Ok(Saved::Yes);
        }
        Ok(if now.cancel_requested_at.is_some() { Saved::CancelRequested } else { Saved::Lost })
    }

    /// Moves the end of the wait for a run that is not over. A run that has gone on is left alone.
    pub async fn extend_wait(&self, run: &AutomationRun, child: RunId, until: Timestamp) -> Result<()> {
        let kept = self.keep_beyond(run, until).await?;
        let extended = self
            .update(run.organization_id, run.id, "SET #time_from = :until, #expires_at = :kept, #updated_at = :now")
            .when("#waits_for_run = :child AND attribute_not_exists(#lease_until)")
            .with([(":child", text(child)), (":until", text(until)), (":kept", number(kept))]);
        extended.unless_refused().await.map(drop)
    }

    /// Keeps a run's parts beyond the end of a wait. Returns the time for the row, in seconds since 1970. Half of the reserve is
    /// slack, so that one wait after another does not write the parts each time.
    async fn keep_beyond(&self, run: &AutomationRun, until: Timestamp) -> Result<i64> {
        if until.plus(KEPT_BEYOND / 2).as_seconds() <= run.expires_at {
            return Ok(run.expires_at);
        }
        let kept = until.plus(KEPT_BEYOND).as_seconds();
        self.keep_parts(run.id, kept).await?;
        Ok(kept)
    }

    /// All but the row. `until`: seconds since 1970.
    async fn keep_parts(&self, id: RunId, until: i64) -> Result<()> {
        let parts = self.parts(id).await?;
        for key in parts.into_iter().filter(|key| key.get("part") != Some(&text(RUN))) {
            let kept = self.table.update(key, "SET #expires_at = :until").when("attribute_exists(#id)");
            kept.with([(":until", number(until))]).unless_refused().await?;
        }
        Ok(())
    }
}
