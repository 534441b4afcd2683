//! On a schedule, every five minutes, by its queue when a change was given up for lack of time, and by hand: finishes or
//! undoes what is open between VAPI, Secrets Manager or `EventBridge` Scheduler and the tables. Gives `{"settled": [...],
//! "left": [...]}`, each `{intent, change, outcome}`. Puts occurrences of automations' schedules on their queue that should have
//! come by now, and tells runs whose approvals are over. Then goes on with giving VAPI's tools a new token and address, if the
//! key or the address has changed.

use std::time::Duration;

use shared::{
    Deadline, Platform, Result,
    automation::{RunQueue, Triggers},
    error,
    lifecycle::{Lifecycle, Report, Settling},
    platform,
    store::Approvals,
    telemetry,
};

pub struct Deps {
    pub lifecycle: Lifecycle,
    pub settling: Settling,
    pub triggers: Triggers,
    pub approvals: Approvals,
    pub runs: RunQueue,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            lifecycle: platform.lifecycle()?,
            settling: platform.settling()?,
            triggers: platform.triggers()?,
            approvals: Approvals::new(platform.database()?),
            runs: platform.run_queue()?,
        })
    }
}

/// Kept back for tools that need a new token, however many changes are open.
const REISSUE: Duration = Duration::from_secs(45);

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    let mut failures = 0;
    // Both are short, and automations wait for them.
    if let Err(error) = Box::pin(deps.triggers.sweep()).await {
        failures += 1;
        tracing::error!("occurrences that are late could not be put on the queue: {}", error::chain(&error));
    }
    if let Err(error) = wake_waiting_runs(deps).await {
        failures += 1;
        tracing::error!("runs whose approvals are over could not all be told: {}", error::chain(&error));
    }
    let report = Box::pin(deps.lifecycle.settle(&deps.triggers, deadline.reserving(REISSUE))).await;
    if let Err(error) = Box::pin(deps.lifecycle.reissue(deadline)).await {
        failures += 1;
        tracing::error!("tools at VAPI could not be given their present token and address: {}", error::chain(&error));
    }
    let report = report?;
    failures += report.failures;
    let open_for_long = deps.lifecycle.open_for_long().await.inspect_err(|error| {
        failures += 1;
        tracing::error!("how many changes are open is not known: {}", error::chain(error));
    });
    telemetry::settled(open_for_long.ok(), failures);
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}

/// Tells the runs whose approvals have expired, or were decided a while ago without their taking it up. Each is told before that is
/// noted, so that none is forgotten; being told twice does no harm.
async fn wake_waiting_runs(deps: &Deps) -> Result<()> {
    for approval in deps.approvals.to_wake().await? {
        deps.runs.wake(approval.organization_id, approval.run_id).await?;
        deps.approvals.woken(&approval).await?;
    }
    Ok(())
}
