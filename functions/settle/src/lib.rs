//! Settles open changes: every five minutes, when woken by its queue, and by hand.
//!
//! It finishes or undoes open changes between VAPI, Secrets Manager or `EventBridge` Scheduler and the tables. Gives
//! `{"settled": [...], "left": [...]}`, each `{intent, change, outcome}`. It also queues late occurrences of schedules, wakes
//! runs whose approvals are over, and continues to give VAPI's tools a new token and address, and Pipedream's triggers a new
//! address, after a change of either.

use std::time::Duration;

use shared::{
    Deadline, Result,
    automation::{FailurePause, RunQueue, SettledTriggers, Triggers},
    error::{self, found},
    lifecycle::{Lifecycle, Report, SettleWaker},
    platform::Parts,
    store::Approvals,
    telemetry,
};

#[derive(Parts)]
pub struct Deps {
    pub lifecycle: Lifecycle,
    pub settling: SettleWaker,
    pub triggers: Triggers,
    /// Pauses automations whose triggers are refused.
    pub watch: FailurePause,
    pub approvals: Approvals,
    pub runs: RunQueue,
}

/// Kept back for tools and triggers that need a new token or address, even if many changes are open.
const REISSUE: Duration = Duration::from_secs(45);

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    let mut failures = 0;
    // Both are short, and automations wait for them.
    if let Err(error) = Box::pin(deps.triggers.sweep()).await {
        failures += 1;
        tracing::error!("late occurrences could not be queued: {}", error::chain(&error));
    }
    if let Err(error) = wake_waiting_runs(deps).await {
        failures += 1;
        tracing::error!("some runs with expired approvals could not be woken: {}", error::chain(&error));
    }
    let triggers = SettledTriggers { triggers: &deps.triggers, watch: &deps.watch };
    let report = Box::pin(deps.lifecycle.settle(&triggers, deadline.reserving(REISSUE))).await;
    if let Err(error) = Box::pin(deps.lifecycle.reissue(&triggers, deadline)).await {
        failures += 1;
        tracing::error!("tools or triggers could not be given their new token and address: {}", error::chain(&error));
    }
    let report = report?;
    failures += report.failures;
    let open_for_long = deps.lifecycle.open_for_long().await.inspect_err(|error| {
        failures += 1;
        tracing::error!("the open changes could not be counted: {}", error::chain(error));
    });
    telemetry::settled(open_for_long.ok(), failures);
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}

/// Wakes the runs whose approvals have expired, or were decided a while ago without effect on the run. The message goes out
/// before the note, so that none is lost; a duplicate is harmless. An approval of a run that ended without it is closed.
async fn wake_waiting_runs(deps: &Deps) -> Result<()> {
    for approval in deps.approvals.due_to_wake().await? {
        let run = found(deps.runs.runs.get(approval.organization_id, approval.run_id).await);
        if run.is_ok_and(|run| run.is_none_or(|run| run.status.is_over())) {
            deps.approvals.close(&approval).await?;
        } else {
            deps.runs.wake(approval.organization_id, approval.run_id).await?;
            deps.approvals.woken(&approval).await?;
        }
    }
    Ok(())
}
