//! Retries: a failed run goes on in a new one, which keeps the results of the actions that succeeded.
//!
//! Claims alone do not protect a retry: a completed one is free again after its window. So an action acts again only if its
//! result says that certainly nothing happened, or if a person says so.

mod nested;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;

use super::{
    action_run::{ActionRun, Next, id_of},
    manual_run::version_to_run,
    run_data::RunData,
    run_starter::RunStarter,
};
use crate::{
    Error, Result,
    automation::{AutomationBody, Definition, Step as DefinedStep},
    described::Described,
    error::{Problems, found},
    injection::LLM_AGENT,
    models::{
        ActionResult, ActionStatus, AutomationRun, AutomationVersion, KeptAction, Member, RunId, RunPlan, RunStatus,
        Timestamp, WholeRun,
    },
    store::{AutomationRuns, Automations},
};

/// After the run's end. Longer ago, claims of its last effects are dropped (`idempotency::RETENTION`).
const LATEST: Duration = Duration::from_secs(4 * 24 * 60 * 60);
/// Retries in a chain.
const MOST_RETRIES: usize = 10;
/// Starts of a retry that never began, because of a limit or an outage.
const MOST_STARTS: u32 = 20;
/// Bytes of displayed arguments.
const SHOWN: usize = 16 * 1024;

#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// The active version in place of the run's.
    pub active: bool,
    pub dry_run: bool,
    /// Ids of actions that may act again.
    pub confirmed: Vec<String>,
}

/// A retry's treatment of an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum RetryStep {
    /// Its earlier result is taken, and no tool is called.
    Kept,
    Runs,
    /// It may have acted before, so it needs a confirmation.
    Unknown,
}

#[derive(Debug, Serialize, Described)]
pub struct RetryAction {
    pub action_id: String,
    pub tool: Option<String>,
    /// `kept`: its result is taken, and no tool is called. `unknown`: it may have acted, and needs a confirmation.
    pub step: RetryStep,
    /// A sentence.
    pub reason: String,
    /// Redacted, of the first action that runs, if it ran before; those of later actions depend on its output.
    #[schema(of = "Option<serde_json::Map<String, Value>>")]
    pub arguments: Option<Value>,
}

#[derive(Debug)]
pub struct Retry {
    pub version: u64,
    pub actions: Vec<RetryAction>,
    /// The new run, and whether it began with this request.
    pub run: Option<(AutomationRun, bool)>,
}

impl RunStarter {
    /// Plans a retry of a run and, unless it is a dry run, begins it. A repeated request gives the run that it began.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the run cannot be retried; [`Error::Invalid`] for `confirm_unknown` if an action that may have
    /// acted is not confirmed.
    pub async fn retry(
        &self,
        automations: &Automations,
        member: &Member,
        id: RunId,
        request: &RetryRequest,
    ) -> Result<Retry> {
        let (organization, runs) = (member.organization_id, &self.queue.runs);
        let whole = runs.whole(organization, id).await?;
        let (run, plan) = retryable(&whole)?;
        let automation = match run.automation_id {
            Some(automation) => automations.get(organization, automation).await?,
            None => return Err(no_actions(run)),
        };
        let named = run.automation_version.filter(|_| !request.active);
        let number = version_to_run(automations, member, &automation, named, request.dry_run).await?;
        let version = Version::of(run, plan, &automations.version(organization, automation.id, number).await?)?;
        let earlier = match run.automation_version.filter(|earlier| *earlier != number) {
            Some(earlier) => {
                let earlier = automations.version(organization, automation.id, earlier).await?;
                Some(Version::of(run, plan, &earlier)?)
            }
            None => None,
        };
        let earlier = earlier.as_ref().unwrap_or(&version);
        let results = all_results(runs, &whole, plan).await?;
        let (planned, kept) = if version.is_nested() || earlier.is_nested() {
            let stopped_at = nested::stopped_at(earlier, &whole.actions)?;
            nested::plan(&version.definition, &earlier.definition, &results, &stopped_at)
        } else {
            let steps = steps(version.steps(), earlier.steps(), &results, unrecorded(earlier, &results)?);
            let kept = steps.iter().filter_map(|step| step.kept).collect();
            (planned(&version, &steps, &results)?, kept)
        };
        if request.dry_run {
            return Ok(Retry { version: number, actions: planned, run: None });
        }
        unconfirmed(&planned, &request.confirmed)?;
        // A confirmation holds in later retries, where the action runs because it failed without an effect.
        let confirmed: BTreeSet<String> = plan.confirmed.iter().chain(&request.confirmed).cloned().collect();
        let next = RunPlan { kept, confirmed: confirmed.into_iter().collect(), catch_anew: true, ..plan.clone() };
        let first = run.first_run.unwrap_or(run.id);
        for start in 0..MOST_STARTS {
            let id = RunId::of_cause(organization, automation.id, &format!("retry:{}:{start}", run.id));
            let kept_until = Timestamp::now().plus(self.history).as_seconds();
            let new = AutomationRun {
                user_id: run.user_id.clone(),
                automation_id: Some(automation.id),
                automation_version: Some(number),
                event_id: run.event_id,
                scheduled_for: run.scheduled_for,
                retry_of: Some(run.id),
                first_run: Some(first),
                ..AutomationRun::queued(id, organization, run.trigger_type, run.limits, kept_until)
            };
            // If this process dies after the next write, the run begins all the same.
            self.queue.put_if_lost(organization, id).await?;
            if runs.create_retry(&new, &next, run.id).await? {
                let begun = self.count_and_put(&automation, new).await?;
                return Ok(Retry { version: number, actions: planned, run: Some((begun, true)) });
            }
            let before = runs.get(organization, id).await?;
            if !before.status.is_over() || before.started_at.is_some() {
                if let Some(other) = before.automation_version.filter(|other| *other != number) {
                    let problem = format!("the run was retried with version {other}, as the run {id}; retry that run");
                    return Err(Error::Conflict(problem));
                }
                let again = self.queue.put_again(before).await?;
                return Ok(Retry { version: number, actions: planned, run: Some((again, false)) });
            }
        }
        Err(Error::Conflict(
            "the run was retried too often without a start; wait, then run its automation by hand".into(),
        ))
    }
}

/// The results that a retry keeps, at their places in it.
///
/// # Errors
/// [`Error::Conflict`] if the run that has them was deleted.
pub async fn kept_results(runs: &AutomationRuns, run: &AutomationRun, plan: &RunPlan) -> Result<Vec<ActionResult>> {
    let mut wanted = plan.kept.clone();
    let (mut kept_results, mut source) = (Vec::new(), run.retry_of);
    for _ in 0..MOST_RETRIES {
        let Some(of) = source.filter(|_| !wanted.is_empty()) else { break };
        let Some(whole) = found(runs.whole(run.organization_id, of).await)? else {
            break;
        };
        let mut left = Vec::new();
        for KeptAction { index, from } in wanted {
            if let Some(result) = whole.actions.iter().find(|result| result.index == from) {
                let kept_from = Some(result.kept_from.unwrap_or(of));
                kept_results.push(ActionResult { index, kept_from, ..result.clone() });
            } else {
                // That run was to keep it, and did not come so far.
                let kept = whole.plan.iter().flat_map(|plan| &plan.kept).find(|kept| kept.index == from);
                left.push(KeptAction { index, from: kept.map_or(from, |kept| kept.from) });
            }
        }
        (wanted, source) = (left, whole.run.retry_of);
    }
    if wanted.is_empty() {
        return Ok(kept_results);
    }
    Err(Error::Conflict("The run was not carried out: the run before it, whose results it keeps, was deleted.".into()))
}

/// The run's own results, and those that it was to keep.
async fn all_results(runs: &AutomationRuns, whole: &WholeRun, plan: &RunPlan) -> Result<BTreeMap<u32, ActionResult>> {
    let mut results: BTreeMap<u32, ActionResult> =
        whole.actions.iter().map(|result| (result.index, result.clone())).collect();
    if plan.kept.iter().any(|kept| !results.contains_key(&kept.index)) {
        for result in kept_results(runs, &whole.run, plan).await? {
            results.entry(result.index).or_insert(result);
        }
    }
    Ok(results)
}

fn no_actions(run: &AutomationRun) -> Error {
    let problem = if run.automation_id.is_some() {
        "a run of a prompt has no actions to keep; run it again: POST …/automations/{id}/run"
    } else {
        "a run of a prompt has no actions to keep; start it again with POST /api/{slug}/runs"
    };
    Error::Conflict(problem.into())
}

fn retryable(whole: &WholeRun) -> Result<(&AutomationRun, &RunPlan)> {
    let run = &whole.run;
    let no = |why: &str| Err(Error::Conflict(why.into()));
    match run.status {
        status if !status.is_over() => return no("the run is not over; wait for its end, or cancel it"),
        RunStatus::Completed => return no("the run completed, so there is nothing to retry"),
        _ if run.dry_run => return no("a dry run changed nothing; run it again"),
        _ if run.started_at.is_none() => return no("the run did not start, so there is nothing to keep; run it again"),
        _ => {}
    }
    if Timestamp::now() > run.finished_at.unwrap_or(run.created_at).plus(LATEST) {
        return no(
            "the run ended more than 4 days ago, so a repeated effect would no longer be recognized; run it again, which repeats \
             its effects",
        );
    }
    match &whole.plan {
        Some(plan) if whole.prompt.is_none() => Ok((run, plan)),
        _ => Err(no_actions(run)),
    }
}

/// A version's definition, with the data that its templates have in the run.
struct Version {
    definition: Definition,
    data: RunData,
}

impl Version {
    /// # Errors
    /// [`Error::Conflict`] if the version is a prompt.
    fn of(run: &AutomationRun, plan: &RunPlan, stored: &AutomationVersion) -> Result<Self> {
        let definition = Definition::stored(stored)?;
        if matches!(definition.body, AutomationBody::Prompt(_)) {
            return Err(no_actions(run));
        }
        Ok(Self { definition, data: RunData::of(run, plan, stored)? })
    }

    fn steps(&self) -> &[DefinedStep] {
        self.definition.steps()
    }

    fn is_nested(&self) -> bool {
        !self.definition.catch.is_empty() || self.steps().iter().any(DefinedStep::is_nested)
    }

    fn resumed(&self, results: &[ActionResult]) -> Result<ActionRun<'_>> {
        let Definition { variables, catch, .. } = &self.definition;
        ActionRun::resume((self.steps(), catch), variables, &self.data, results)
    }
}

struct Step {
    kept: Option<KeptAction>,
    /// Hidden fields of its tool, as far as an earlier result tells them.
    marks: Option<Vec<String>>,
    step: RetryStep,
    reason: String,
}

/// The action without a result at which the earlier run ended. It may have ended between an effect and its record.
fn unrecorded(earlier: &Version, results: &BTreeMap<u32, ActionResult>) -> Result<Option<u32>> {
    // Kept results may stand after the action at which the run ended.
    let in_sequence =
        |(place, result): (usize, &ActionResult)| (result.index as usize == place).then(|| result.clone());
    let recorded: Vec<ActionResult> = results.values().enumerate().map_while(in_sequence).collect();
    let is_over = matches!(earlier.resumed(&recorded)?.next(Timestamp::now()), Next::Over(_));
    Ok((!is_over).then(|| u32::try_from(recorded.len()).unwrap_or(u32::MAX)))
}

/// The step of each action in the retry. An earlier result is that of the same action: the same definition under the same id.
fn steps(
    actions: &[DefinedStep],
    earlier: &[DefinedStep],
    results: &BTreeMap<u32, ActionResult>,
    unrecorded: Option<u32>,
) -> Vec<Step> {
    let first_failed = earlier.iter().zip(0_u32..).find_map(|(_, index)| {
        let status = results.get(&index).map(|result| result.status);
        (!matches!(status, Some(ActionStatus::Succeeded | ActionStatus::Skipped))).then_some(index)
    });
    let step_of = |(index, action): (usize, &DefinedStep)| {
        let id = id_of(action, index);
        let before = earlier.iter().enumerate().find(|(at, before)| id_of(before, *at) == id);
        let Some((from, before)) = before else { return runs("It is new in this version.") };
        let from = u32::try_from(from).unwrap_or(u32::MAX);
        let same = nested::is_same(before, action);
        let Some(result) = results.get(&from) else {
            return match unrecorded {
                Some(unrecorded) if unrecorded == from => {
                    unknown("The run ended here without a result; it may have acted.")
                }
                _ => runs("It was not reached."),
            };
        };
        let kept = KeptAction { index: u32::try_from(index).unwrap_or(u32::MAX), from };
        let step = again(result, same, first_failed.is_some_and(|first| from < first), kept);
        let marks = (nested::tool_of(before) == nested::tool_of(action)).then(|| result.redact.clone());
        Step { marks, ..step }
    };
    actions.iter().enumerate().map(step_of).collect()
}

fn step(step: RetryStep, reason: &str) -> Step {
    Step { kept: None, marks: None, step, reason: reason.to_owned() }
}

/// The step of an action with a result. `before_failures`: no earlier action failed.
fn again(result: &ActionResult, same: bool, before_failures: bool, kept: KeptAction) -> Step {
    match result.status {
        ActionStatus::Succeeded if same => keep(kept, "It succeeded."),
        ActionStatus::Skipped if same && before_failures => keep(kept, "It was skipped."),
        ActionStatus::Succeeded => {
            unknown("It succeeded, and this version defines it differently; it would act again.")
        }
        ActionStatus::Skipped => runs("It was skipped; its condition is checked again."),
        ActionStatus::NotSent => runs("It was not sent."),
        ActionStatus::Refused => runs("It was refused; it asks again."),
        ActionStatus::Failed if result.had_no_effect && result.tool != LLM_AGENT => {
            runs("It failed, and nothing happened.")
        }
        ActionStatus::Failed => unknown("It failed, and may have acted in part."),
        ActionStatus::Unknown => unknown("It may have acted; its outcome is not known."),
    }
}

fn keep(kept: KeptAction, reason: &str) -> Step {
    Step { kept: Some(kept), ..step(RetryStep::Kept, reason) }
}

fn runs(reason: &str) -> Step {
    step(RetryStep::Runs, reason)
}

fn unknown(reason: &str) -> Step {
    step(RetryStep::Unknown, reason)
}

/// The actions as shown. Arguments are known up to the first action that is not kept; later ones depend on its output. They are shown
/// where the hidden fields of their tool are known; the outputs that flow into them are hidden as in the run's transcript.
fn planned(version: &Version, steps: &[Step], results: &BTreeMap<u32, ActionResult>) -> Result<Vec<RetryAction>> {
    let mut run = version.resumed(&[])?;
    let mut is_known = true;
    let mut shown = Vec::new();
    for ((index, action), step) in version.steps().iter().enumerate().zip(steps) {
        let mut arguments = None;
        match step.kept.and_then(|kept| Some((kept, results.get(&kept.from)?))) {
            Some((kept, result)) if is_known => run.record(&ActionResult { index: kept.index, ..result.clone() })?,
            None if is_known => {
                is_known = false;
                if let (Next::Call(next), Some(marks)) = (run.next(Timestamp::now()), &step.marks) {
                    arguments = Some(run.transcript().arguments(marks, &Value::Object(next.arguments), SHOWN));
                }
            }
            _ => {}
        }
        shown.push(RetryAction {
            action_id: id_of(action, index),
            tool: nested::tool_of(action),
            step: step.step,
            reason: step.reason.clone(),
            arguments,
        });
    }
    Ok(shown)
}

fn unconfirmed(actions: &[RetryAction], confirmed: &[String]) -> Result<()> {
    let mut problems = Problems::default();
    let unknown: Vec<&str> =
        actions.iter().filter(|action| action.step == RetryStep::Unknown).map(|action| &*action.action_id).collect();
    let missing: Vec<&str> = unknown.iter().copied().filter(|id| !confirmed.iter().any(|one| one == id)).collect();
    if !missing.is_empty() {
        let named = missing.join(", ");
        problems.add(
            "confirm_unknown",
            format!("must name each action that may have acted before and is to act again: {named}"),
        );
    }
    if let Some(strange) = confirmed.iter().find(|id| !unknown.contains(&&***id)) {
        problems.add("confirm_unknown", format!("{strange:?} is no action of unknown effect in this retry"));
    }
    problems.into_result(Some(()))
}
