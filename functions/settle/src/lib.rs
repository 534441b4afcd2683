//! On a schedule, every five minutes, by its queue when a change was given up for lack of time, and by hand: finishes or
//! undoes what is open between VAPI and the tables. Gives `{"settled": [...], "left": [...]}`, each `{intent, change,
//! outcome}`.

use shared::{
    Deadline, Result,
    lifecycle::{Lifecycle, Report, Settling},
};

pub struct Deps {
    pub lifecycle: Lifecycle,
    pub settling: Settling,
}

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    let report = deps.lifecycle.settle(deadline).await?;
    if report.unfinished {
        deps.settling.wake("settle").await;
    }
    Ok(report)
}
