//! Runs of automations: a prompt with tools, carried out by `run-loop`.
//!
//! - POST /api/{slug}/runs `{"prompt", "system_prompt"?, "tools"?, "schema"?, "model"?, "limits"?}` (`shared::automation::RunRequest`): starts a
//!   run; 202 with the row. What the model is told of its tools is made here, once, with the tools at their present versions.
//!   With an `Idempotency-Key` the run's id is made of it: the same key and body again answer that run with 200, and start
//!   nothing unless the first try did not get so far; with another body they are a 409 (`start.rs`).
//! - GET /api/{slug}/runs?limit=&cursor=: newest first, as `{items, next_cursor}`, without steps.
//! - GET /api/{slug}/runs/{id}: a run with what it was asked, each of its steps and actions, redacted, and its result.
//! - POST /api/{slug}/runs/{id}/cancel: a run that nobody is at ends now, another one at its next step; answers the row. One
//!   that is over is a 409.
//! - DELETE /api/{slug}/runs/{id}: deletes a run that is over, its steps and the executions in it; for owners and admins.

mod start;

use std::time::Duration;

use shared::{
    Error, Platform, Result,
    automation::{LARGEST_RUN_VIEW, RunQueue, RunView, end_what_it_waits_for, report_end, whole_run_view},
    catalogue::Catalogue,
    http::{self, Access, Reply, Request},
    models::{Member, OrganizationId, RunCeilings, RunId},
    platform,
    store::{Approvals, AutomationRuns, Budgets, Erasure, Organizations},
};

pub struct Deps {
    pub access: Access,
    pub runs: AutomationRuns,
    pub catalogue: Catalogue,
    pub queue: RunQueue,
    pub organizations: Organizations,
    pub budgets: Budgets,
    pub erasure: Erasure,
    pub approvals: Approvals,
    /// What a run may use of the platform's key.
    pub ceilings: RunCeilings,
    /// How long a run is kept.
    pub history: Duration,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        Ok(Self {
            access: platform.access()?,
            runs: AutomationRuns::new(platform.database()?),
            catalogue: platform.catalogue_to_offer()?,
            queue: platform.run_queue()?,
            organizations: platform.organizations()?.clone(),
            budgets: platform.budgets()?.clone(),
            erasure: platform.erasure()?,
            approvals: Approvals::new(platform.database()?),
            ceilings: platform.run_ceilings()?,
            history: platform.history()?,
        })
    }
}

pub async fn handle(deps: &Deps, request: Request) -> Result<Reply> {
    let member = deps.access.member(&request).await?;
    let organization = member.organization_id;
    match http::route(&request)[..] {
        ["POST", "api", _, "runs"] => start::start(deps, &request, member).await,
        ["GET", "api", _, "runs"] => list(deps, &request, organization).await,
        ["GET", "api", _, "runs", id] => show(deps, organization, http::id(id, "run")?).await,
        ["DELETE", "api", _, "runs", id] => {
            let id = http::id(id, "run")?;
            deps.erasure.run(organization, id, http::deadline(&request)).await?;
            tracing::info!(run.id = %id, "a run was deleted");
            Ok(Reply::no_content())
        }
        ["POST", "api", _, "runs", id, "cancel"] => cancel(deps, &member, http::id(id, "run")?).await,
        _ => Err(Error::NotFound("route")),
    }
}

async fn list(deps: &Deps, request: &Request, organization: OrganizationId) -> Result<Reply> {
    let (limit, after) = http::page(request)?;
    let page = deps.runs.page(organization, after.as_ref(), limit).await?;
    Reply::ok(&page.map(RunView::from))
}

async fn show(deps: &Deps, organization: OrganizationId, id: RunId) -> Result<Reply> {
    let whole = deps.runs.whole(organization, id).await?;
    Reply::ok(&whole_run_view(whole, LARGEST_RUN_VIEW)?)
}

async fn cancel(deps: &Deps, member: &Member, id: RunId) -> Result<Reply> {
    let (organization, by) = (member.organization_id, Some(&member.user_id));
    let run = deps.runs.cancel(organization, id, by).await?;
    end_what_it_waits_for(&deps.runs, &deps.approvals, &run, by).await?;
    if run.status.is_over() {
        report_end(&run, run.status);
        if let Some(parent) = run.parent_run_id {
            deps.queue.wake(organization, parent).await?;
        }
    }
    Reply::ok(&RunView::from(run))
}
