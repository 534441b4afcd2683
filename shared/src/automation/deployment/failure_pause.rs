//! Pauses an automation after five failed runs in a row, and alerts its owners.
//!
//! Pausing also removes external triggers: the change is recorded as an intent, and `settle` is woken. Each run counts once,
//! so the end of a run may be reported again after a crash. A completed or partially failed run resets the count, unless only
//! actions of a `catch` succeeded: that is a failure here. Runs that were cancelled, hit a limit or failed through an outage do
//! not count at all; neither do dry runs, replays, runs of actions, and runs of inactive versions.

use std::time::Duration;

use crate::{
    Error, Result,
    automation::Alerts,
    error::{self, found},
    lifecycle::{SettleWaker, open},
    models::{
        Automation, AutomationId, AutomationRun, AutomationStatus, Change, Intent, OrganizationId, RunId, RunStatus,
        RunTrigger,
    },
    store::{Automations, Intents},
    telemetry,
};

/// Failures in a row before the automation is paused.
pub const MOST_FAILURES: u32 = 5;
/// Time for pausing, before `settle` takes over.
const PAUSED_WITHIN: Duration = Duration::from_secs(60);
/// Attempts against concurrent changes of the automation.
const TRIES: usize = 5;

/// The cause of a pause, of which the alert's id derives.
#[derive(Debug, Clone, Copy)]
pub enum PauseCause {
    Run(RunId),
    /// A refused trigger or a source that is gone. The id is of no run, and the same if the pause is tried again.
    NoRun(RunId),
}

impl PauseCause {
    const fn id(self) -> RunId {
        let (Self::Run(id) | Self::NoRun(id)) = self;
        id
    }

    const fn run(self) -> Option<RunId> {
        match self {
            Self::Run(run) => Some(run),
            Self::NoRun(_) => None,
        }
    }
}

#[derive(Clone)]
pub struct FailurePause {
    pub automations: Automations,
    pub alerts: Alerts,
    pub intents: Intents,
    pub settling: SettleWaker,
}

impl FailurePause {
    /// Counts the outcome of a run. Must be called before the end is saved, so that no outcome is lost. Errors are only logged:
    /// they must not keep a run from ending.
    pub async fn run_ends(&self, run: &AutomationRun, status: RunStatus) {
        if let Err(error) = self.note(run, status).await {
            tracing::error!(run.id = %run.id, "the end of a run was not recorded for its automation: {}", error::chain(&error));
        }
    }

    async fn note(&self, run: &AutomationRun, status: RunStatus) -> Result<()> {
        let counts = !run.dry_run && run.parent_run_id.is_none() && run.trigger_type != RunTrigger::Replay;
        let Some(of) = run.automation_id.zip(run.automation_version).filter(|_| counts) else { return Ok(()) };
        match status {
            RunStatus::Completed | RunStatus::PartialFailure => {
                self.automations.forget_failures(run.organization_id, of).await
            }
            RunStatus::Failed => {
                let automation = self.automations.count_failure(run.organization_id, of, run.id).await?;
                match automation.filter(|automation| automation.failures_in_a_row >= MOST_FAILURES) {
                    Some(automation) => {
                        let reason = format!(
                            "{MOST_FAILURES} runs failed one after the other, the last one {}; look at them, and activate the automation again.",
                            run.id
                        );
                        self.pause(automation, &reason, PauseCause::Run(run.id)).await
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Pauses an automation, and alerts its owners once per cause. An automation that is inactive, or has another
    /// active version, stays as it is.
    pub async fn pause_for(
        &self,
        organization: OrganizationId,
        (automation, version): (AutomationId, Option<u64>),
        reason: &str,
        cause: PauseCause,
    ) -> Result<()> {
        match found(self.automations.get(organization, automation).await)? {
            Some(automation) if automation.active_version == version => self.pause(automation, reason, cause).await,
            _ => Ok(()),
        }
    }

    /// Pauses an active automation at the revision that was read, and alerts its owners; false if the row has changed.
    pub async fn pause_at(&self, automation: &Automation, reason: &str, cause: PauseCause) -> Result<bool> {
        let change = Change::AutomationTrigger { automation_id: automation.id };
        let intent = Intent::new(automation.organization_id, change, PAUSED_WITHIN);
        open(&self.intents, &intent).await?;
        let paused = self.automations.pause_after(automation, Some(reason), cause.run()).await;
        // `settle` compares the row in either case.
        if let Err(error) = self.intents.leave(intent.id).await {
            let chain = error::chain(&error);
            tracing::error!(automation.id = %automation.id, "the pause of an automation is settled late: {chain}");
        }
        let Some(paused) = paused? else { return Ok(false) };
        self.settling.wake("automation_trigger").await;
        tracing::warn!(automation.id = %paused.id, run.id = cause.run().map(display), "an automation was paused");
        telemetry::automation_paused();
        self.tell(&paused, reason, cause.id()).await;
        Ok(true)
    }

    async fn pause(&self, mut automation: Automation, reason: &str, cause: PauseCause) -> Result<()> {
        let version = automation.active_version;
        for _ in 0..TRIES {
            match automation.status {
                AutomationStatus::Active => {
                    if self.pause_at(&automation, reason, cause).await? {
                        return Ok(());
                    }
                }
                // An earlier attempt may have crashed between pause and alert.
                AutomationStatus::Paused if automation.paused_by_run == Some(cause.id()) => {
                    let reason = automation.pause_reason.clone().unwrap_or_else(|| reason.to_owned());
                    self.tell(&automation, &reason, cause.id()).await;
                    return Ok(());
                }
                AutomationStatus::Paused | AutomationStatus::PendingReview => return Ok(()),
            }
            // A concurrent change.
            automation = self.automations.get(automation.organization_id, automation.id).await?;
            if automation.active_version != version {
                return Ok(());
            }
        }
        Err(Error::Conflict("the automation was changed again and again, and could not be paused".into()))
    }

    /// Sends the alert. The pause stands even if the alert fails.
    async fn tell(&self, automation: &Automation, reason: &str, cause: RunId) {
        if let Err(error) = self.alerts.paused(automation, reason, cause).await {
            let chain = error::chain(&error);
            tracing::error!(automation.id = %automation.id, "the alert of a paused automation could not be sent: {chain}");
            telemetry::alert_not_sent();
        }
    }
}
