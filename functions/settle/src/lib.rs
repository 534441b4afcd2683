//! On a schedule, every five minutes, by its queue when a change was given up for lack of time, and by hand: finishes or
//! undoes what is open between VAPI and the tables. Gives `{"settled": [...], "left": [...]}`, each `{intent, change,
//! outcome}`.

use shared::{
    Deadline, Platform, Result,
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

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    let report = deps.lifecycle.settle(deadline).await?;
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}
