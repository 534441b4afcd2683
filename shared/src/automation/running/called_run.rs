//! Runs of automations that an action of another automation starts.

use serde_json::{Map, Value};

use super::run_data::RunData;
use crate::{
    Result,
    automation::{ActionRun, AutomationBody, Definition},
    error::found,
    models::{AutomationRun, AutomationVersion, RunId, WholeRun},
    store::AutomationRuns,
};

/// How many automations may run each other below the first.
pub const DEEPEST_CALLS: usize = 3;

/// The outputs of a finished run for the action that started it.
#[derive(Debug)]
pub struct CalledOutputs {
    /// The result of a prompt, or `{output_as: output}` of the actions.
    pub outputs: Value,
    /// Whether a tool's author marked fields in them as hidden.
    pub hides: bool,
}

/// The outputs of the finished run `whole` of `version`.
///
/// # Errors
/// If a stored text is not JSON, or of a newer program.
pub fn outputs_of_run(whole: &WholeRun, version: &AutomationVersion) -> Result<CalledOutputs> {
    let definition = Definition::stored(version)?;
    let (AutomationBody::Actions(steps), Some(plan)) = (&definition.body, &whole.plan) else {
        return Ok(CalledOutputs { outputs: whole.result.clone().unwrap_or_default(), hides: false });
    };
    let data = RunData::of(&whole.run, plan, version)?;
    let over = ActionRun::resume((steps, &definition.catch), &definition.variables, &data, &whole.actions)?;
    let outputs: Map<String, Value> =
        over.given_outputs().map(|(name, output)| (name.to_owned(), output.clone())).collect();
    let hides = whole.actions.iter().any(|result| !result.redact.is_empty());
    Ok(CalledOutputs { outputs: outputs.into(), hides })
}

/// The runs that led to `run`, the nearest first: its parent, the parent's parent. A deleted run ends the list.
///
/// # Errors
/// If a row cannot be read.
pub async fn ancestors(runs: &AutomationRuns, run: &AutomationRun) -> Result<Vec<AutomationRun>> {
    let mut ancestors: Vec<AutomationRun> = Vec::new();
    let mut next: Option<RunId> = run.parent_run_id;
    while let Some(id) = next.filter(|_| ancestors.len() < DEEPEST_CALLS) {
        let Some(ancestor) = found(runs.get(run.organization_id, id).await)? else {
            break;
        };
        next = ancestor.parent_run_id;
        ancestors.push(ancestor);
    }
    Ok(ancestors)
}
