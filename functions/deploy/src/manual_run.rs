//! Manual runs of automations, and the list of runs.

use shared::{
    Result,
    automation::{ManualRun, RunView},
    http::{Asked, Begun, Id, MaySend, Newest, Repeated, operation},
    models::AutomationId,
    store::{Page, RunFilter},
};

use crate::Deps;

/// Run an automation by hand
///
/// Starts a run with the given `trigger_data`, for any trigger type. The version that runs is the active one; another
/// one can be named for a dry run, or by an administrator, also of an automation that is not active. Otherwise such an
/// automation has only dry runs, which change nothing outside and show their requests. An automation that has begun as
/// many runs within the hour as it may begins none: then the run is over at once, with the status `run_limit`. So is a dry
/// run after as many of the organization.
///
/// With an `Idempotency-Key` the same key and body answer the same run and start nothing; after a 503 they try again.
///
/// - 202: The run waits to be taken up, or has no room.
/// - 200: The run that the same request began before, as it is now.
///
/// ```json,nothing: As a schedule would
/// {}
/// ```
/// ```json,dry: What an event would lead to
/// {"dry_run": true, "trigger_data": {"event": {"text": "urgent: the server is down", "user": "U1", "channel": "C1"}}}
/// ```
#[operation(POST "/api/{slug}/automations/{id}/run", Member, also(409))]
pub(crate) async fn run_automation(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    key: Repeated,
    body: MaySend<ManualRun>,
) -> Result<Begun<RunView>> {
    let (automations, key) = (&deps.deployment.automations, key.0.as_deref());
    let (run, begun) = deps.starter.start_by_hand(automations, &asked.member, id.0, body.json(), key).await?;
    let view = RunView::from(run);
    Ok(if begun { Begun::Now(view) } else { Begun::Before(view) })
}

/// List the runs of an automation
///
/// Newest first, without their steps.
///
/// - 200: A page of runs.
#[operation(GET "/api/{slug}/automations/{id}/runs", Viewer)]
pub(crate) async fn list_automation_runs(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<AutomationId>,
    created: Result<Newest>,
) -> Result<Page<RunView>> {
    let organization = asked.organization();
    deps.deployment.automations.get(organization, id.0).await?;
    let wanted = RunFilter { automation: Some(id.0), ..RunFilter::default() };
    let page = deps.starter.queue.runs.page(organization, &created?.0, &wanted).await?;
    Ok(page.map(RunView::from))
}
