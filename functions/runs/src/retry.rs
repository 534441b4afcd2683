//! Retries of failed runs.

use serde::Serialize;
use serde_json::Value;
use shared::{
    Result,
    automation::{Retry, RetryAction, RetryRequest, RunView},
    described::Described,
    error::Problems,
    fields::Fields,
    http::{Asked, Begun, Id, MaySend, operation},
    models::RunId,
};

use crate::Deps;

/// Actions that one request may confirm: the items of a loop.
const MOST_CONFIRMED: usize = 1_000;
/// Bytes of their ids, which the run's plan keeps.
const LONGEST_CONFIRMED: usize = 64 * 1024;

/// `{"version"?, "dry_run"?, "confirm_unknown"?}`
pub(crate) struct RunRetry;

/// The plan of a retry, and the run that began.
#[derive(Serialize, Described)]
pub(crate) struct RetryView {
    dry_run: bool,
    /// The version of the automation that the retry runs.
    #[schema(minimum = 1)]
    version: u64,
    actions: Vec<RetryAction>,
    /// Null in a dry run.
    run: Option<RunView>,
}

shared::described!(RunRetry => {"$ref": "#/components/schemas/RunRetry"});

/// Go on where a run failed
///
/// Begins a new run with the trigger data of a run that failed, failed in part, ran out of time or was cancelled. Actions that
/// succeeded keep their results, and no tool is called for them; the others run. Approvals are asked again. Without `"dry_run":
/// false` nothing begins, and the answer is the plan.
///
/// An action is `unknown` if it may have acted in the run before: its outcome is not known, it failed in part, or it is an agent.
/// It acts again only if `confirm_unknown` names it; without that a retry is a 422 that names each. The same request again gives
/// the run that it began.
///
/// - 202: The new run waits to be taken up.
/// - 200: The plan, or the run that began before.
///
/// ```json,plan
/// {}
/// ```
/// ```json,start
/// {"dry_run": false, "version": "active", "confirm_unknown": ["charge"]}
/// ```
#[operation(POST "/api/{slug}/runs/{id}/retry", Member, also(409))]
pub(crate) async fn retry_run(
    deps: &Deps,
    asked: &Asked<'_>,
    id: Id<RunId>,
    body: MaySend<RunRetry>,
) -> Result<Begun<RetryView>> {
    // The owner is checked before the request.
    deps.runs.get(asked.organization(), id.0).await?;
    let request = read(&body.json()?)?;
    let Retry { version, actions, run } = deps.starter.retry(&deps.automations, &asked.member, id.0, &request).await?;
    let (run, begun) = run.map_or((None, false), |(run, begun)| (Some(RunView::from(run)), begun));
    let view = RetryView { dry_run: request.dry_run, version, actions, run };
    Ok(if begun { Begun::Now(view) } else { Begun::Before(view) })
}

fn read(body: &Value) -> Result<RetryRequest> {
    let mut problems = Problems::default();
    let request = Fields::of(body, "", &mut problems).map(|mut fields| {
        let active = match fields.text("version", 10).as_deref() {
            None | Some("same") => false,
            Some("active") => true,
            Some(_) => {
                fields.problem("version", "must be same or active");
                false
            }
        };
        let dry_run = fields.boolean("dry_run", true);
        let confirmed = match fields.get("confirm_unknown") {
            None | Some(Value::Null) => Vec::new(),
            Some(ids) => confirmed(ids).unwrap_or_else(|| {
                let kilobytes = LONGEST_CONFIRMED / 1024;
                let why =
                    format!("must be a list of at most {MOST_CONFIRMED} ids of actions, of {kilobytes} KB together");
                fields.problem("confirm_unknown", why);
                Vec::new()
            }),
        };
        fields.finish();
        RetryRequest { active, dry_run, confirmed }
    });
    problems.into_result(request)
}

fn confirmed(ids: &Value) -> Option<Vec<String>> {
    let ids = ids.as_array().filter(|ids| ids.len() <= MOST_CONFIRMED)?;
    let ids: Vec<String> = ids.iter().map(|id| id.as_str().map(str::to_owned)).collect::<Option<_>>()?;
    (ids.iter().map(String::len).sum::<usize>() <= LONGEST_CONFIRMED).then_some(ids)
}
