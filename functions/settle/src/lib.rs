//! On a schedule, every five minutes, by its queue when a change was given up for lack of time, and by hand: finishes or
//! undoes what is open between VAPI, Secrets Manager or EventBridge Scheduler and the tables. Gives `{"settled": [...], "left": [...]}`, each `{intent, change,
//! outcome}`. Then goes on with giving VAPI's tools a new token and address, if the key or the address has changed,
//! and puts occurrences of automations' schedules on their queue that should have come by now.

use std::time::Duration;

use shared::{
    Deadline, Platform, Result,
    automation::Triggers,
    error,
    lifecycle::{Lifecycle, Report, Settling},
    platform,
};

pub struct Deps {
    pub lifecycle: Lifecycle,
    pub settling: Settling,
    pub triggers: Triggers,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { lifecycle: platform.lifecycle()?, settling: platform.settling()?, triggers: platform.triggers()? })
    }
}

/// Kept back for tools that need a new token, however many changes are open.
const REISSUE: Duration = Duration::from_secs(45);

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    // The sweep is short, and automations wait for it.
    if let Err(error) = Box::pin(deps.triggers.sweep()).await {
        tracing::error!("occurrences that are late could not be put on the queue: {}", error::chain(&error));
    }
    let report = Box::pin(deps.lifecycle.settle(&deps.triggers, deadline.reserving(REISSUE))).await;
    if let Err(error) = Box::pin(deps.lifecycle.reissue(deadline)).await {
        tracing::error!("tools at VAPI could not be given their present token and address: {}", error::chain(&error));
    }
    let report = report?;
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}
