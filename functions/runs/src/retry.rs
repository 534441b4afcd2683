//! Retries of failed runs.

use serde::Serialize;
use shared::{
    Result,
    automation::{Retry, RetryAction, RetryRequest, RunView},
    declared::{Body, Given},
    described::Described,
    fields::Fields,
    http::{Asked, Begun, Id, MaySend, operation},
    models::RunId,
    names::{Names, UnknownName},
};

use crate::Deps;

/// Actions that one request may confirm: the items of a loop.
const MOST_CONFIRMED: usize = 1_000;
/// Bytes of their ids, which the run's plan keeps.
const LONGEST_CONFIRMED: usize = 64 * 1024;

#[derive(Body)]
pub(crate) struct RunRetry {
    /// The version of the run before, or the active one. Another than the active one needs an administrator.
    #[schema(default = "same")]
    version: Option<RetriedVersion>,
    /// Only the plan; nothing begins.
    #[schema(default = true)]
    dry_run: Option<bool>,
    /// The ids of actions that may have acted before and are to act again.
    confirm_unknown: Option<ActionIds>,
}

#[derive(Clone, Copy, PartialEq, Eq, Described, Names)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RetriedVersion {
    Same,
    Active,
}

pub(crate) struct ActionIds(Vec<String>);

shared::described!(ActionIds => {"type": "array", "maxItems": MOST_CONFIRMED, "items": {"type": "string"}});

impl Given for RetriedVersion {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let version = fields.text(name, 10)?.parse();
        version.map_err(|unknown: UnknownName| fields.problem(name, unknown.to_string())).ok()
    }
}

impl Given for ActionIds {
    fn read(fields: &mut Fields<'_>, name: &'static str) -> Option<Self> {
        let given = fields.get(name)?.as_array().filter(|ids| ids.len() <= MOST_CONFIRMED);
        let ids: Option<Vec<String>> =
            given.and_then(|ids| ids.iter().map(|id| id.as_str().map(str::to_owned)).collect());
        let ids = ids.filter(|ids| ids.iter().map(String::len).sum::<usize>() <= LONGEST_CONFIRMED);
        if ids.is_none() {
            let kilobytes = LONGEST_CONFIRMED / 1024;
            let why = format!("must be a list of at most {MOST_CONFIRMED} ids of actions, of {kilobytes} KB together");
            fields.problem(name, why);
        }
        ids.map(Self)
    }
}

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

/// Go on where a run failed
///
/// Begins a new run with the trigger data of a run that failed, failed in part, ran out of time or was cancelled. Actions that
/// succeeded keep their results, and no tool is called for them; the others run. A `catch` belongs to one failure, so its actions
/// run again after a new one. Approvals are asked again. Without `"dry_run": false` nothing begins, and the answer is the plan.
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
    let RunRetry { version, dry_run, confirm_unknown } = body.read()?;
    let request = RetryRequest {
        active: version == Some(RetriedVersion::Active),
        dry_run: dry_run.unwrap_or(true),
        confirmed: confirm_unknown.map(|ActionIds(ids)| ids).unwrap_or_default(),
    };
    let Retry { version, actions, run } = deps.starter.retry(&deps.automations, &asked.member, id.0, &request).await?;
    let (run, begun) = run.map_or((None, false), |(run, begun)| (Some(RunView::from(run)), begun));
    let view = RetryView { dry_run: request.dry_run, version, actions, run };
    Ok(if begun { Begun::Now(view) } else { Begun::Before(view) })
}
