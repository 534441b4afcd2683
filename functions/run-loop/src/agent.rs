//! The action `llm_agent`: a run of its own, which this run waits for without cost.

use std::time::Duration;

use serde_json::Map;
use shared::{
    Error, Result,
    automation::{PlannedAction, RunRequest, asking_rule},
    injection::{Ended, LLM_AGENT},
    models::{
        ActionResult, AutomationRun, OfferedTool, QueuedRun, RunId, RunLimits, RunPrompt, RunStatus, RunTrigger, Spent,
        Timestamp, ToolEffect, ToolRef, WholeRun,
    },
    store::Waits,
    tool::ToolOutcome,
};

use crate::{
    approval::Asking,
    briefing::{Briefing, brief, pinned},
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
    /// The tools that agents can get.
    pub(crate) pinned: &'a [OfferedTool],
}

impl Agents<'_> {
    /// Starts the agent's run, once, and takes its result when it is over.
    pub(crate) async fn work(&self, planned: &PlannedAction<'_>, spent: &mut Spent) -> Result<Came> {
        let Held { deps, run, .. } = self.held;
        let organization = run.organization_id;
        let child = self.agent_of(planned)?;
        let failed = |why: String| Ok(Came::Continue(Box::new(planned.failed(why, Timestamp::now()))));
        match deps.runs.get(organization, child).await {
            Ok(run) if run.status.is_over() => {
                let whole = deps.runs.whole(organization, child).await?;
                *spent += whole.run.spent;
                return Ok(Came::Continue(Box::new(result(planned, whole))));
            }
            Ok(run) => return self.wait_for(&run).await,
            // The agent's run had begun and may have had effects, so it is not started again.
            Err(Error::NotFound(_)) if run.waits_for_run == Some(child) => {
                return failed(format!("The agent's run {child} was deleted before its result was taken."));
            }
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
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
        let begun = self.child(child, &asked);
        // An existing row means that another invocation started it.
        deps.runs.create_prompted(&begun, &asked.prompt).await?;
        tracing::info!(run.id = %run.id, run.child = %child, "an action started a model run");
        self.wait_for(&begun).await
    }

    /// The id of the agent's run, the same at every visit of the action.
    fn agent_of(&self, planned: &PlannedAction<'_>) -> Result<RunId> {
        let run = self.held.run;
        let Some(automation) = run.automation_id else {
            return Err(Error::internal("a run of actions names no automation"));
        };
        let cause = format!("agent:{}:{}", run.id, planned.id);
        Ok(RunId::of_cause(run.organization_id, automation, &cause))
    }

    /// Whether the action's agent is over: its result is taken even after the end of the run's time.
    pub(crate) async fn has_result(&self, planned: &PlannedAction<'_>) -> Result<bool> {
        if planned.tool != LLM_AGENT {
            return Ok(false);
        }
        let Held { deps, run, .. } = self.held;
        match deps.runs.get(run.organization_id, self.agent_of(planned)?).await {
            Ok(run) => Ok(run.status.is_over()),
            Err(Error::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Sends the agent's message again, in case it was lost; a duplicate is harmless.
    async fn wait_for(&self, child: &AutomationRun) -> Result<Came> {
        if child.status == RunStatus::Queued {
            let message = QueuedRun { organization_id: child.organization_id, run_id: child.id };
            self.held.deps.queue.send(&message).await?;
        }
        // Waiting takes no time from later actions.
        let until = Timestamp::now().plus(Duration::from_secs(child.limits.seconds));
        Ok(Came::Break(Ended::Stopped(Stop::Waits(Waits::ForRun(child.id, until)))))
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
    fn child(&self, id: RunId, asked: &Asked) -> AutomationRun {
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
            ..AutomationRun::queued(id, parent.organization_id, RunTrigger::Action, asked.limits, parent.expires_at)
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
    let started_at = run.started_at.unwrap_or(run.created_at);
    let took = run.finished_at.unwrap_or(run.updated_at).as_millis() - started_at.as_millis();
    let outcome = result.filter(|_| !matches!(run.status, RunStatus::Cancelled | RunStatus::Failed));
    let outage = run.outage;
    let became = if let Some(result) = outcome {
        planned.finished(&ToolOutcome::succeeded(result), false, started_at)
    } else {
        let why = run.why().unwrap_or_else(|| format!("it ended as {}", run.status.as_str()));
        planned.failed(format!("The agent's run {} gave no result: {why}", run.id), started_at)
    };
    let duration_ms = u64::try_from(took).unwrap_or_default();
    // Its tools may have acted.
    ActionResult { attempts: 1, duration_ms, outage, had_no_effect: false, ..became }
}
