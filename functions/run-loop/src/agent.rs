//! The action `llm_agent`: a run of its own, which this run waits for without cost.

use serde_json::Map;
use shared::{
    Error, Result,
    automation::{PlannedAction, RunRequest, asking_rule},
    injection::{Ended, LLM_AGENT},
    models::{
        ActionResult, AutomationRun, OfferedTool, RunId, RunLimits, RunPrompt, RunStatus, RunTrigger, Spent, Timestamp,
        ToolEffect, ToolRef, WholeRun,
    },
};

use crate::{
    approval::Asking,
    briefing::{Briefing, brief, pinned},
    child_run::{self, Child},
    deps::Held,
    journal::{Came, Stop},
};

/// The request of an agent.
struct Asked {
    prompt: RunPrompt,
    model: Option<String>,
    limits: RunLimits,
    /// The effects of its tools, without tools that only read.
    effects: Vec<ToolEffect>,
}

/// Agents of a run.
pub(crate) struct Agents<'a> {
    pub(crate) held: Held<'a>,
    pub(crate) asking: Asking<'a>,
    /// The agent's run.
    pub(crate) child: RunId,
    /// The tools that agents can get.
    pub(crate) pinned: &'a [OfferedTool],
}

impl Agents<'_> {
    /// Starts the agent's run, once, and takes its result when it is over.
    pub(crate) async fn work(&self, planned: &PlannedAction<'_>, spent: &mut Spent) -> Result<Came> {
        let Held { deps, run, .. } = self.held;
        let child = self.child;
        let failed = |why: String| Ok(Came::Continue(Box::new(planned.failed(why, Timestamp::now()))));
        match child_run::look_for(self.held, planned, child, spent).await? {
            Child::Over(whole) => return Ok(Came::Continue(Box::new(result(planned, *whole)))),
            Child::Instead(instead) => return Ok(instead),
            Child::NotStarted => {}
        }
        let asked = match self.asked(planned, spent).await? {
            Ok(asked) => asked,
            Err(Refusal::Drifted(reason)) => return Ok(Came::Break(Ended::Stopped(Stop::Drifted(reason)))),
            Err(Refusal::Wrong(why)) => return failed(why),
        };
        // The agent's effects and recipients are unknown in advance, so it asks if a rule may apply to one of its tools.
        // Addresses in its prompt are no recipients.
        let unknown = Map::new();
        let grave = asked.effects.iter().find(|effect| asking_rule(self.asking.rules, **effect, &unknown).is_some());
        let asks = self.asking.asks(planned, grave.copied(), &unknown);
        if let Some(instead) = self.asking.stops(planned, asks.as_ref(), &[]).await? {
            return Ok(instead);
        }
        let begun = self.row(&asked);
        // An existing row means that another invocation started it.
        deps.runs.create_prompted(&begun, &asked.prompt).await?;
        tracing::info!(run.id = %run.id, run.child = %child, "an action started a model run");
        child_run::wait_for(self.held, &begun).await
    }

    /// The agent's request, with the tools of the activated version.
    async fn asked(&self, planned: &PlannedAction<'_>, spent: &Spent) -> Result<Result<Asked, Refusal>> {
        let built_in = &self.held.deps.catalogue.built_in;
        let naming = |name: &str| -> Result<ToolRef, String> {
            if name == LLM_AGENT {
                return Err("an agent cannot start another agent; leave it out".to_owned());
            }
            let tool = pinned(self.pinned, name);
            tool.ok_or_else(|| "is not one of the tools that the automation was checked with".to_owned())
        };
        let wrong = |error| match error {
            Error::Invalid(problems) => Ok(Err(Refusal::Wrong(problems.to_string()))),
            error => Err(error),
        };
        let (named, request) = match RunRequest::of_action(&planned.arguments, built_in, &naming) {
            Ok(read) => read,
            Err(error) => return wrong(error),
        };
        let (prompt, found) = match brief(self.held, &named, &request).await {
            Ok(Briefing::Told(prompt, found)) => (prompt, found),
            Ok(Briefing::Drifted(reason)) => return Ok(Err(Refusal::Drifted(reason))),
            Err(error) => return wrong(error),
        };
        let effects = found.iter().map(|found| found.spec().effect).filter(|effect| effect.acts()).collect();
        let limits = within(request.limits, &self.held.run.limits, spent);
        Ok(Ok(Asked { prompt, model: request.model, limits, effects }))
    }

    /// The row of the agent's run: for the same person, a dry run if the parent is one.
    fn row(&self, asked: &Asked) -> AutomationRun {
        let parent = self.held.run;
        AutomationRun {
            user_id: parent.user_id.clone(),
            automation_id: parent.automation_id,
            automation_version: parent.automation_version,
            event_id: parent.event_id,
            scheduled_for: parent.scheduled_for,
            dry_run: parent.dry_run,
            parent_run_id: Some(parent.id),
            model: asked.model.clone(),
            ..AutomationRun::queued(
                self.child,
                parent.organization_id,
                RunTrigger::Action,
                asked.limits,
                parent.expires_at,
            )
        }
    }
}

/// The reason why an agent is not started.
enum Refusal {
    Drifted(String),
    Wrong(String),
}

/// The requested limits, with at most the parent's remaining cost.
fn within(asked: RunLimits, parent: &RunLimits, spent: &Spent) -> RunLimits {
    RunLimits {
        cost: asked.cost.min((parent.cost - spent.cost).max(0.0)),
        tokens: asked.tokens.min(parent.tokens.saturating_sub(spent.tokens())),
        ..asked
    }
}

/// The action's result: the agent's result is its output.
fn result(planned: &PlannedAction<'_>, whole: WholeRun) -> ActionResult {
    let WholeRun { run, result, .. } = whole;
    let outcome = result.filter(|_| !matches!(run.status, RunStatus::Cancelled | RunStatus::Failed));
    let outcome = outcome.ok_or_else(|| {
        let why = run.why().unwrap_or_else(|| format!("it ended as {}", run.status.as_str()));
        format!("The agent's run {} gave no result: {why}", run.id)
    });
    child_run::result(planned, &run, outcome)
}
