//! A run of an automation: its version is read, its tools are held against what it was activated with, and its actions or its
//! prompt are gone on with.

use serde_json::Map;
use shared::{
    Deadline, Error, Result,
    automation::{
        Action, ActionRun, Body, Definition, Outputs, PinnedTool, RunData, RunRequest, RunTools, drift, offer,
        pinned_tools,
    },
    catalogue::Resolved,
    error::Problems,
    injection::{Ended, Ending},
    models::{AutomationRun, RunPlan, RunPrompt, Spent, ToolRef, WholeRun},
    store::{Lease, Saved, Step},
};

use crate::{Deps, actions::Actions, ended_by, journal::Stop, prompt};

/// What a run carries out, as it was when its version was saved.
struct Planned {
    definition: Definition,
    data: RunData,
    tools: Vec<PinnedTool>,
}

/// What a run is to do, if it may do it.
enum Ready<T> {
    Yes(T),
    /// It is over, or is not ours any more.
    No(Ended<Stop>),
}

/// How the steps ended, and what the run has used by then.
pub(crate) async fn take_steps(
    deps: &Deps,
    run: &AutomationRun,
    whole: WholeRun,
    lease: &Lease,
    deadline: Deadline,
) -> (Ended<Stop>, Spent) {
    let mut spent = run.spent;
    let planned = match planned(deps, run, whole.plan.as_ref()).await {
        Ok(planned) => planned,
        Err(error) => return (ended_by(run, error), spent),
    };
    match &planned.definition.body {
        Body::Actions(actions) => {
            let ended = Box::pin(carry_out(deps, run, &planned, actions, &whole, &mut spent, (lease, deadline))).await;
            (ended.unwrap_or_else(|error| ended_by(run, error)), spent)
        }
        Body::Prompt(asked) => match Box::pin(begin_prompt(deps, run, &planned, asked, lease, deadline)).await {
            Ok(Ready::Yes((run, prompt))) => {
                let whole = WholeRun { run: run.clone(), prompt: Some(prompt), ..whole };
                Box::pin(prompt::take_steps(deps, &run, whole, lease, deadline)).await
            }
            Ok(Ready::No(ended)) => (ended, spent),
            Err(error) => (ended_by(run, error), spent),
        },
    }
}

async fn planned(deps: &Deps, run: &AutomationRun, plan: Option<&RunPlan>) -> Result<Planned> {
    let (Some(automation), Some(number), Some(plan)) = (run.automation_id, run.automation_version, plan) else {
        return Err(Error::internal("a run with a plan names no version of an automation"));
    };
    let version = match deps.automations.version(run.organization_id, automation, number).await {
        Err(Error::NotFound(_)) => {
            return Err(Error::Conflict(format!(
                "The run was not carried out: version {number} of its automation was deleted."
            )));
        }
        version => version?,
    };
    let definition = Definition::stored(&version)?;
    let tools = Box::pin(pinned_tools(&deps.catalogue, run.organization_id, &version, &definition)).await?;
    Ok(Planned { data: RunData::of(run, plan, &version)?, definition, tools })
}

/// Carries out the actions that are left.
async fn carry_out(
    deps: &Deps,
    run: &AutomationRun,
    Planned { definition, data, tools }: &Planned,
    actions: &[Action],
    whole: &WholeRun,
    spent: &mut Spent,
    (lease, deadline): (&Lease, Deadline),
) -> Result<Ended<Stop>> {
    let left = ActionRun::resume(actions, &definition.variables, data, &whole.actions)?;
    let used = |tool: &&PinnedTool| left.left().iter().any(|action| action.tool.as_ref() == Some(&tool.name));
    let used: Vec<PinnedTool> = tools.iter().filter(used).cloned().collect();
    let (organization, pinned) = (run.organization_id, tools);
    let tools = RunTools::of(&deps.catalogue, &deps.executor, organization, &used, run.dry_run, deadline);
    let tools = Box::pin(tools).await?;
    if let Some(reason) = tools.drift() {
        return drifted(deps, run, reason).await;
    }
    let actions = Actions { deps, run, lease, deadline, definition, pinned, tools: &tools };
    Box::pin(actions.carry_out(left, spent)).await
}

/// Makes of an automation's prompt what its model is told from now on, and writes it down; gives the run with its limits.
async fn begin_prompt(
    deps: &Deps,
    run: &AutomationRun,
    Planned { definition, data, tools }: &Planned,
    asked: &Map<String, serde_json::Value>,
    lease: &Lease,
    deadline: Deadline,
) -> Result<Ready<(AutomationRun, RunPrompt)>> {
    let built_in = &deps.catalogue.built_in;
    let pinned = |name: &str| {
        let pinned = tools.iter().find(|tool| tool.name == name).map(|tool| tool.reference.clone());
        pinned.ok_or_else(|| built_in.unknown())
    };
    let outputs = Outputs::default();
    let data = data.with(&definition.variables, &outputs);
    let (named, request) = RunRequest::of_automation(asked, &data, built_in, &pinned)?;
    let references: Vec<ToolRef> = named.iter().map(|named| named.tool.clone()).collect();
    let resolved = Box::pin(deps.catalogue.resolve(run.organization_id, &references, deadline)).await?;
    let gone = references.iter().zip(&resolved).find_map(|(reference, resolved)| match resolved {
        Resolved::Gone(gone) => drift(&reference.to_string(), gone),
        Resolved::Here(_) => None,
    });
    if let Some(reason) = gone {
        return Ok(Ready::No(drifted(deps, run, reason).await?));
    }
    let mut problems = Problems::default();
    let found = offer(built_in, &named, resolved, &mut problems)?;
    let prompt = request.prompt_with(&found, &mut problems);
    let prompt = problems.into_result(Some(prompt))?;
    let run = AutomationRun { model: request.model, limits: request.limits, ..run.clone() };
    Ok(match deps.runs.save(&run, lease, Step::Prompt(&prompt), &run.spent).await? {
        Saved::Yes => Ready::Yes((run, prompt)),
        Saved::CancelRequested => Ready::No(Ended::Over(crate::verdict::cancelled())),
        Saved::Lost => Ready::No(Ended::Stopped(Stop::LeaseLost)),
    })
}

/// Ends a run whose automation has a tool that is not what it was activated with: something else is never called in its place.
pub(crate) async fn drifted(deps: &Deps, run: &AutomationRun, reason: String) -> Result<Ended<Stop>> {
    pause_automation(deps, run, &reason).await?;
    Ok(Ended::Over(Ending::failed(reason)))
}

/// Pauses the automation of a run, if the version that ran is the one that is active, and tells its owners. A dry run changes
/// nothing.
async fn pause_automation(deps: &Deps, run: &AutomationRun, reason: &str) -> Result<()> {
    let Some(id) = run.automation_id.filter(|_| !run.dry_run) else { return Ok(()) };
    deps.watch.pause_for(run.organization_id, (id, run.automation_version), reason, run.id).await
}
