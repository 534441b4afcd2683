//! The action `call_automation`: a run of another automation, whose outputs become the action's.

use serde_json::{Map, Value};
use shared::{
    Result,
    automation::{DEEPEST_CALLS, PlannedAction, RunCause, ancestors, outputs_of_run},
    error::found,
    fields::kind,
    models::{
        ActionResult, Automation, AutomationStatus, RunStatus, RunTrigger, Spent, Timestamp, ToolEffect, WholeRun,
    },
    tool::arguments::is_absent,
};

use crate::{
    approval::Asking,
    child_run::{self, Child, Started},
    deps::Held,
    journal::Came,
};

/// Automations that a run starts.
pub(crate) struct CalledAutomations<'a> {
    pub(crate) held: Held<'a>,
    pub(crate) asking: Asking<'a>,
    pub(crate) started: Started,
}

/// What the other automation sees as `trigger_data`.
fn data<'p>(planned: &'p PlannedAction<'_>) -> Option<&'p Value> {
    planned.arguments.get("data").filter(|data| !is_absent(data))
}

impl CalledAutomations<'_> {
    /// Starts the run of the other automation, once, and takes its outputs when it is over.
    pub(crate) async fn work(&self, planned: &PlannedAction<'_>, spent: &mut Spent) -> Result<Came> {
        let failed = |why: String| Ok(Came::Continue(Box::new(planned.failed(why, Timestamp::now()))));
        match child_run::look_for(self.held, planned, self.started.child, spent).await? {
            // It could not be queued or counted, so it is started again.
            Child::Over(whole) if whole.run.status == RunStatus::Failed && whole.run.started_at.is_none() => {}
            Child::Over(whole) => return Ok(Came::Continue(Box::new(self.result(planned, &whole).await?))),
            Child::Instead(instead) => return Ok(instead),
            Child::NotStarted => {}
        }
        if let Some(data) = data(planned).filter(|data| !data.is_object()) {
            return failed(format!("data must be an object, not {}.", kind(data)));
        }
        let automation = match self.startable().await? {
            Ok(automation) => automation,
            Err(why) => return failed(why),
        };
        // Its effects and recipients are unknown in advance, so every rule applies.
        let asks = self.asking.asks(planned, Some(ToolEffect::Undeclared), &Map::new());
        if let Some(instead) = self.asking.stops(planned, asks.as_ref(), &[]).await? {
            return Ok(instead);
        }
        self.start(planned, &automation).await
    }

    /// The automation, or why it cannot run now. Definitions may have changed since they were checked.
    async fn startable(&self) -> Result<Result<Automation, String>> {
        let (Held { deps, run, .. }, other) = (self.held, self.started.automation);
        let Some(automation) = found(deps.automations.get(run.organization_id, other).await)? else {
            return Ok(Err(format!("The organization has no automation {other}.")));
        };
        if automation.status != AutomationStatus::Active || automation.active_version.is_none() {
            return Ok(Err(format!("The automation \"{}\" is not active; activate it.", automation.name)));
        }
        let before = ancestors(&deps.runs, run).await?;
        if before.iter().chain([run]).any(|run| run.automation_id == Some(other)) {
            return Ok(Err(format!("The automation \"{}\" led to this run, so it is not run again.", automation.name)));
        }
        if before.len() >= DEEPEST_CALLS {
            return Ok(Err(format!("At most {DEEPEST_CALLS} automations may run each other.")));
        }
        Ok(Ok(automation))
    }

    /// An existing run means that another invocation started it.
    async fn start(&self, planned: &PlannedAction<'_>, automation: &Automation) -> Result<Came> {
        let Held { deps, run, .. } = self.held;
        let data = data(planned).cloned().unwrap_or_else(|| Value::Object(Map::new()));
        let key = child_run::cause(planned, self.started.claimed_by);
        let cause = RunCause::new(RunTrigger::Action, &key, &data);
        let cause = RunCause { user: run.user_id.as_ref(), dry_run: run.dry_run, parent: Some(run.id), ..cause };
        let (child, _) = deps.starter.start(automation, &cause).await?;
        tracing::info!(run.id = %run.id, run.child = %child.id, "an action started a run of another automation");
        child_run::wait_for(self.held, &child).await
    }

    async fn result(&self, planned: &PlannedAction<'_>, whole: &WholeRun) -> Result<ActionResult> {
        let run = &whole.run;
        if run.status != RunStatus::Completed {
            let why = run.why().unwrap_or_else(|| format!("it ended as {}", run.status.as_str()));
            return Ok(child_run::result(planned, run, Err(format!("The run {} did not complete: {why}", run.id))));
        }
        let number = run.automation_version.unwrap_or_default();
        let automations = &self.held.deps.automations;
        let Some(version) = found(automations.version(run.organization_id, self.started.automation, number).await)?
        else {
            let why = format!("The run {} completed, but its version was deleted, and its outputs with it.", run.id);
            return Ok(child_run::result(planned, run, Err(why)));
        };
        let outputs = outputs_of_run(whole, &version)?;
        // Where an inner tool's author hides a field, the outputs are hidden as a whole.
        let redact = if outputs.hides { vec!["result".to_owned()] } else { Vec::new() };
        Ok(ActionResult { redact, ..child_run::result(planned, run, Ok(outputs.outputs)) })
    }
}
