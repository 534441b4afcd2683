//! Stores each step of a run, and reports why the run must stop.

use std::{
    ops::ControlFlow,
    sync::{Arc, OnceLock},
};

use futures_util::{FutureExt, join};
use serde_json::{Map, Value};
use shared::{
    Result,
    error::{self, OverBudget, found},
    injection::{Dialogue, Ended, Ending, Journal},
    models::{
        ActionResult, AutomationRun, AutomationStatus, BudgetUse, OrganizationId, RunAnswer, RunReply, RunTrigger,
        Timestamp,
    },
    store::{AutomationRuns, Automations, Budgets, Lease, Saved, SavedStep, Waits, over},
    tool::{CallContext, CallableTool, ToolFuture, ToolOutcome, ToolSpec, Toolbox},
};

/// The run's items in the table, written under its lease.
pub(crate) struct RunJournal<'a> {
    pub(crate) runs: &'a AutomationRuns,
    pub(crate) withdrawal: &'a Withdrawal,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
    pub(crate) meter: CostMeter<'a>,
}

/// The organization's cost of this month, as far as this run knows: read at its start, and returned by each addition.
pub(crate) struct CostMeter<'a> {
    pub(crate) budgets: &'a Budgets,
    pub(crate) organization: OrganizationId,
    pub(crate) on_own_key: bool,
    pub(crate) usage: Option<BudgetUse>,
    /// Cost that could not be added yet.
    pub(crate) uncounted: f64,
}

impl CostMeter<'_> {
    async fn add(&mut self, cost: f64) {
        self.uncounted += cost;
        if self.uncounted <= 0.0 {
            return;
        }
        match self.budgets.spend(self.organization, self.on_own_key, self.uncounted).await {
            Ok(usage) => (self.usage, self.uncounted) = (Some(usage), 0.0),
            Err(error) => tracing::error!("the cost of a run was not counted: {}", error::chain(&error)),
        }
    }

    fn over(&self) -> Option<OverBudget> {
        self.usage.as_ref().filter(|usage| usage.is_used_up(Timestamp::now())).map(over)
    }
}

/// The reason why a run stops here.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The run was cancelled; these steps are not stored yet.
    CancelRequested(UnsavedSteps),
    /// Another invocation continues it.
    LeaseLost,
    /// The organization's budget is used up.
    OverBudget(OverBudget),
    /// It waits for an approval or for another run.
    Waits(Waits),
    /// Its automation is gone or was paused meanwhile; the sentence for people.
    Withdrawn(String),
    /// A tool changed since the activation; the sentence for people. No other tool is called in its place.
    Drifted(String),
    /// It is over, and outages alone made it fail. `by_platform`: an action was given up here because of an outage of ours or of
    /// Pipedream's, not of the service that it called.
    GivenUp { ending: Ending, by_platform: bool },
    /// It is over, and no action succeeded but those of a `catch`.
    FailedButForCatches(Ending),
}

/// An action's result, or the end of the run's steps before it.
pub(crate) type Came = ControlFlow<Ended<Stop>, Box<ActionResult>>;

#[derive(Debug)]
pub(crate) enum UnsavedSteps {
    Answer(RunAnswer),
    Reply(RunReply),
    /// Several, if items of a loop ran at the same time.
    Actions(Vec<ActionResult>),
}

impl UnsavedSteps {
    pub(crate) fn steps(&self) -> Vec<SavedStep<'_>> {
        match self {
            Self::Answer(answer) => vec![SavedStep::Answer(answer)],
            Self::Reply(reply) => vec![SavedStep::Reply(reply)],
            Self::Actions(results) => results.iter().map(SavedStep::Action).collect(),
        }
    }
}

impl Journal for RunJournal<'_> {
    type Stop = Stop;

    fn may_ask(&self) -> ControlFlow<Stop> {
        if let Some(why) = self.withdrawal.why.get() {
            return ControlFlow::Break(Stop::Withdrawn(why.clone()));
        }
        self.meter.over().map_or(ControlFlow::Continue(()), |over| ControlFlow::Break(Stop::OverBudget(over)))
    }

    async fn answered(&mut self, answer: &RunAnswer, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, SavedStep::Answer(answer), dialogue.spent());
        // The cost counts even if the answer cannot be saved.
        let (saved, ()) = join!(saved, self.meter.add(answer.cost));
        Ok(match stop(saved?, || UnsavedSteps::Answer(answer.clone())) {
            ControlFlow::Continue(()) => self.may_call().await?,
            stopped @ ControlFlow::Break(_) => stopped,
        })
    }

    async fn may_call(&self) -> Result<ControlFlow<Stop>> {
        let why = withdrawn(&self.withdrawal.automations, self.run).await?;
        Ok(why.map_or(ControlFlow::Continue(()), |why| ControlFlow::Break(Stop::Withdrawn(why))))
    }

    async fn replied(&mut self, reply: &RunReply, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, SavedStep::Reply(reply), dialogue.spent()).await?;
        Ok(stop(saved, || UnsavedSteps::Reply(reply.clone())))
    }
}

/// The reason why a run ends before its next effect: its automation was deleted or paused since the run began. A person may run
/// a paused automation; an event or a poll that began to be processed before the pause does not.
pub(crate) async fn withdrawn(automations: &Automations, run: &AutomationRun) -> Result<Option<String>> {
    let Some(id) = run.automation_id.filter(|_| !run.dry_run) else { return Ok(None) };
    let by_itself = matches!(run.trigger_type, RunTrigger::Webhook | RunTrigger::Polling) && run.retry_of.is_none();
    let why = match found(automations.get(run.organization_id, id).await)? {
        None => "deleted",
        // The same definition, deployed again after the deletion.
        Some(automation) if automation.created_at > run.created_at => "deleted",
        Some(automation) if automation.status != AutomationStatus::Paused => return Ok(None),
        Some(automation) if by_itself || automation.paused_at.is_some_and(|at| at > run.created_at) => "paused",
        Some(_) => return Ok(None),
    };
    Ok(Some(format!("Its automation was {why}, so the run ended before its next step.")))
}

/// Whether the automation of a prompt's run is withdrawn. Calls of one answer may begin minutes after it, so each call with an
/// effect asks.
pub(crate) struct Withdrawal {
    automations: Automations,
    run: AutomationRun,
    /// The reason for which a call was not made.
    why: OnceLock<String>,
}

impl Withdrawal {
    pub(crate) fn new(automations: &Automations, run: &AutomationRun) -> Arc<Self> {
        Arc::new(Self { automations: automations.clone(), run: run.clone(), why: OnceLock::new() })
    }

    /// Wraps every tool with an effect so that it is not called once the automation is withdrawn.
    pub(crate) fn limit(self: &Arc<Self>, toolbox: &mut Toolbox) {
        toolbox.wrap_each(|tool| {
            if !tool.spec().acts() {
                return tool;
            }
            Arc::new(UntilWithdrawn { tool, withdrawal: Arc::clone(self) })
        });
    }
}

struct UntilWithdrawn {
    tool: Arc<dyn CallableTool>,
    withdrawal: Arc<Withdrawal>,
}

impl CallableTool for UntilWithdrawn {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn inner(&self) -> Option<&dyn CallableTool> {
        Some(&*self.tool)
    }

    fn call<'a>(&'a self, arguments: Map<String, Value>, context: &'a CallContext<'a>) -> ToolFuture<'a> {
        async move {
            let Withdrawal { automations, run, why } = &*self.withdrawal;
            match withdrawn(automations, run).await?.map(|reason| why.get_or_init(|| reason)) {
                Some(why) if self.tool.knows_deliveries() => {
                    self.tool.call(arguments, &CallContext { refused: Some(why), ..*context }).await
                }
                Some(why) => Ok(ToolOutcome::failed(why.as_str())),
                None => self.tool.call(arguments, context).await,
            }
        }
        .boxed()
    }
}

fn stop(saved: Saved, unsaved: impl FnOnce() -> UnsavedSteps) -> ControlFlow<Stop> {
    match saved {
        Saved::Yes => ControlFlow::Continue(()),
        Saved::CancelRequested => ControlFlow::Break(Stop::CancelRequested(unsaved())),
        Saved::Lost => ControlFlow::Break(Stop::LeaseLost),
    }
}
