//! On a schedule, every five minutes, by its queue when a change was given up for lack of time, and by hand: finishes or
//! undoes what is open between VAPI and the tables. Gives `{"settled": [...], "left": [...]}`, each `{intent, change,
//! outcome}`. Then goes on with giving VAPI's tools a new token and address, if the key or the address has changed.

use std::time::Duration;

use shared::{
    Deadline, Platform, Result, error,
    lifecycle::{Lifecycle, Report, Settling},
    platform,
};

pub struct Deps {
    pub lifecycle: Lifecycle,
    pub settling: Settling,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self { lifecycle: platform.lifecycle()?, settling: platform.settling()? })
    }
}

/// Kept back for tools that need a new token, however many changes are open.
const REISSUE: Duration = Duration::from_secs(45);

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    let report = Box::pin(deps.lifecycle.settle(deadline.reserving(REISSUE))).await;
    if let Err(error) = Box::pin(deps.lifecycle.reissue(deadline)).await {
        tracing::error!("tools at VAPI could not be given their present token and address: {}", error::chain(&error));
    }
    let report = report?;
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}
