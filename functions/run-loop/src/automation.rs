//! Runs of automations: checks the version's tools, then continues its actions or its prompt.

use std::{ops::ControlFlow, sync::atomic::AtomicBool};

use serde_json::{Map, Value};
use shared::{
    Error, Result,
    automation::{
        ActionRun, AutomationBody, Definition, Outputs, PauseCause, RunData, RunRequest, Step as DefinedStep, drifted,
        kept_results, pinned_tools,
    },
    error::found,
    injection::Ended,
    models::{AutomationRun, OfferedTool, RunPlan, RunPrompt, Spent, WholeRun},
    store::{Saved, SavedStep},
};

use crate::{
    actions::Actions,
    briefing::{Briefing, brief, pinned},
    deps::{Deps, Held},
    ending::ended_by,
    journal::Stop,
    prompt,
    verdict::cancelled,
    waiting,
};

/// The run's version, as it was saved.
struct Planned {
    definition: Definition,
    data: RunData,
    tools: Vec<OfferedTool>,
}

/// Returns the end of the steps, and the usage so far.
pub(crate) async fn take_steps(held: Held<'_>, whole: WholeRun) -> (Ended<Stop>, Spent) {
    let mut spent = held.run.spent;
    let ended = async {
        let ended = go_on(held, whole, &mut spent).await?;
        if let Ended::Stopped(Stop::Drifted(reason)) = &ended {
            pause_automation(held, reason).await?;
        }
        Ok(ended)
    };
    let ended = ended.await.unwrap_or_else(|error| ended_by(held.run, error));
    (ended, spent)
}

async fn go_on(held: Held<'_>, whole: WholeRun, spent: &mut Spent) -> Result<Ended<Stop>> {
    let planned = planned(held.deps, held.run, whole.plan.as_ref()).await?;
    match &planned.definition.body {
        AutomationBody::Actions(actions) => Box::pin(carry_out(held, &planned, actions, &whole, spent)).await,
        AutomationBody::Prompt(asked) => match Box::pin(begin_prompt(held, &planned, asked)).await? {
            ControlFlow::Continue((run, prompt)) => {
                let whole = WholeRun { run: run.clone(), prompt: Some(prompt), ..whole };
                let (ended, used) = Box::pin(prompt::take_steps(Held { run: &run, ..held }, whole)).await;
                *spent = used;
                Ok(ended)
            }
            ControlFlow::Break(ended) => Ok(ended),
        },
    }
}

async fn planned(deps: &Deps, run: &AutomationRun, plan: Option<&RunPlan>) -> Result<Planned> {
    let (Some(automation), Some(number), Some(plan)) = (run.automation_id, run.automation_version, plan) else {
        return Err(Error::internal("a run with a plan names no version of an automation"));
    };
    let Some(version) = found(deps.automations.version(run.organization_id, automation, number).await)? else {
        return Err(Error::Conflict(format!(
            "The run was not carried out: version {number} of its automation was deleted."
        )));
    };
    let definition = Definition::stored(&version)?;
    let tools = Box::pin(pinned_tools(&deps.catalogue, run.organization_id, &version, &definition)).await?;
    let came = waiting::event_of_pause(deps, run).await?;
    let data = RunData::of(run, plan, &version)?.with_event(came.as_ref().map(|came| came.data.as_str()))?;
    Ok(Planned { definition, data, tools })
}

/// Runs the remaining actions.
async fn carry_out(
    held: Held<'_>,
    Planned { definition, data, tools: pinned }: &Planned,
    actions: &[DefinedStep],
    whole: &WholeRun,
    spent: &mut Spent,
) -> Result<Ended<Stop>> {
    let Held { deps, run, deadline, .. } = held;
    let plan = whole.plan.as_ref();
    let kept = match plan.filter(|plan| !plan.kept.is_empty()) {
        Some(plan) => kept_results(&deps.runs, run, plan).await?,
        None => Vec::new(),
    };
    let left =
        ActionRun::resume((actions, &definition.catch), &definition.variables, data, &whole.actions)?.keeping(kept);
    let used = |tool: &&OfferedTool| left.left_to_call().any(|action| action.tool.as_ref() == Some(&tool.name));
    let used: Vec<OfferedTool> = pinned.iter().filter(used).cloned().collect();
    let toolbox = deps.catalogue.toolbox(run.organization_id, &used, &deps.executor, run.dry_run, deadline);
    let toolbox = Box::pin(toolbox).await?;
    if let Some(reason) = drifted(&toolbox) {
        return Ok(Ended::Stopped(Stop::Drifted(reason)));
    }
    let confirmed = plan.map(|plan| plan.confirmed.as_slice()).unwrap_or_default();
    let catch_anew = plan.is_some_and(|plan| plan.catch_anew);
    let given_up_by_platform = AtomicBool::new(false);
    let actions = Actions { held, definition, confirmed, catch_anew, pinned, toolbox: &toolbox, given_up_by_platform };
    Box::pin(actions.carry_out(left, spent)).await
}

/// Builds the model's prompt from the automation's, and stores it; returns the run with its limits.
async fn begin_prompt(
    held: Held<'_>,
    Planned { definition, data, tools }: &Planned,
    asked: &Map<String, Value>,
) -> Result<ControlFlow<Ended<Stop>, (AutomationRun, RunPrompt)>> {
    let built_in = &held.deps.catalogue.built_in;
    let naming = |name: &str| pinned(tools, name).ok_or_else(|| built_in.unknown());
    let outputs = Outputs::default();
    let data = data.with(&definition.variables, &outputs);
    let (named, request) = RunRequest::of_automation(asked, &data, built_in, &naming)?;
    let prompt = match brief(held, &named, &request).await? {
        Briefing::Told(prompt, _) => prompt,
        Briefing::Drifted(reason) => return Ok(ControlFlow::Break(Ended::Stopped(Stop::Drifted(reason)))),
    };
    let run = AutomationRun { model: request.model, limits: request.limits, ..held.run.clone() };
    Ok(match held.deps.runs.save(&run, held.lease, SavedStep::Prompt(&prompt), &run.spent).await? {
        Saved::Yes => ControlFlow::Continue((run, prompt)),
        Saved::CancelRequested => ControlFlow::Break(Ended::Over(cancelled())),
        Saved::Lost => ControlFlow::Break(Ended::Stopped(Stop::LeaseLost)),
    })
}

/// Pauses the run's automation if the run's version is the active one, and informs the owners. Dry runs pause nothing.
async fn pause_automation(Held { deps, run, .. }: Held<'_>, reason: &str) -> Result<()> {
    let Some(id) = run.automation_id.filter(|_| !run.dry_run) else { return Ok(()) };
    deps.watch.pause_for(run.organization_id, (id, run.automation_version), reason, PauseCause::Run(run.id)).await
}
