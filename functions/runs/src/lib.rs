//! Runs of automations: a prompt with tools, carried out by `run-loop`.
//!
//! - POST /api/{slug}/runs `{"prompt", "system_prompt"?, "tools"?, "schema"?, "model"?, "limits"?}` (`request.rs`): starts a
//!   run; 202 with the row. What the model is told of its tools is made here, once, with the tools at their present versions.
//!   With an `Idempotency-Key` the run's id is made of it: the same key and body again answer that run with 200, and start
//!   nothing unless the first try did not get so far; with another body they are a 409 (`start.rs`).
//! - GET /api/{slug}/runs?limit=&cursor=: newest first, as `{items, next_cursor}`, without steps.
//! - GET /api/{slug}/runs/{id}: a run with what it was asked, each of its steps, redacted, and its result (`view.rs`).
//! - POST /api/{slug}/runs/{id}/cancel: a run that nobody is at ends now, another one at its next step; answers the row. One
//!   that is over is a 409.

mod request;
mod start;
mod steps;
mod view;

use std::time::Duration;

use shared::{
    Error, Result,
    catalogue::Catalogue,
    clients::Queue,
    http::{self, Access, Reply, Request},
    models::{AutomationRun, QueuedAutomationRun, RunId, Timestamp},
    store::AutomationRuns,
    telemetry,
};

use crate::view::RunView;

pub struct Deps {
    pub access: Access,
    pub runs: AutomationRuns,
    pub catalogue: Catalogue,
    pub queue: Queue<QueuedAutomationRun>,
    /// How long a run is kept.
    pub history: Duration,
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let path = http::path(&request);
    match (request.method().as_str(), &path.iter().map(String::as_str).collect::<Vec<_>>()[..]) {
        ("POST", ["api", slug, "runs"]) => start::start(deps, &request, slug).await,
        ("GET", ["api", slug, "runs"]) => list(deps, &request, slug).await,
        ("GET", ["api", slug, "runs", id]) => show(deps, &request, slug, id).await,
        ("POST", ["api", slug, "runs", id, "cancel"]) => cancel(deps, &request, slug, id).await,
        _ => Err(Error::NotFound("route")),
    }
}

async fn list(deps: &Deps, request: &Request, slug: &str) -> Result<Reply> {
    let organization = deps.access.member(request, slug).await?.organization_id;
    let (limit, after) = http::page(request)?;
    let page = deps.runs.page(organization, after.as_ref(), limit).await?;
    Reply::ok(&page.map(RunView::from))
}

async fn show(deps: &Deps, request: &Request, slug: &str, id: &str) -> Result<Reply> {
    let organization = deps.access.member(request, slug).await?.organization_id;
    let whole = deps.runs.whole(organization, run_id(id)?).await?;
    Reply::ok(&view::whole(whole)?)
}

async fn cancel(deps: &Deps, request: &Request, slug: &str, id: &str) -> Result<Reply> {
    let organization = deps.access.member(request, slug).await?.organization_id;
    let run = deps.runs.cancel(organization, run_id(id)?).await?;
    if run.status.is_over() {
        report_end(&run);
    }
    Reply::ok(&RunView::from(run))
}

fn run_id(text: &str) -> Result<RunId> {
    text.parse().map_err(|_not_an_id| Error::NotFound("run"))
}

/// Counts a run that ends here and not in `run-loop`.
fn report_end(run: &AutomationRun) {
    let took = Timestamp::now().as_millis() - run.created_at.as_millis();
    telemetry::automation_run(run.status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    tracing::info!(run.id = %run.id, run.status = run.status.as_str(), "a run is over");
}
