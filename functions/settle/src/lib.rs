//! On a schedule, every five minutes, and by hand: finishes or undoes what a crash or an outage left open between VAPI and the
//! tables. Gives `{"settled": [...], "left": [...]}`, each `{intent, change, outcome}`.

use shared::{
    Deadline, Result,
    lifecycle::{Lifecycle, Report},
};

pub struct Deps {
    pub lifecycle: Lifecycle,
}

pub async fn handle(deps: &Deps, deadline: Deadline) -> Result<Report> {
    deps.lifecycle.settle(deadline).await
}
