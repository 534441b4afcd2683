//! Writes each step of a run down, and says why the run is to stop.

use std::ops::ControlFlow;

use futures_util::join;
use shared::{
    Error, Result,
    error::{self, OverBudget},
    injection::{Dialogue, Ended, Ending, Journal},
    models::{
        ActionResult, AutomationRun, AutomationStatus, BudgetUse, OrganizationId, RunAnswer, RunReply, Timestamp,
    },
    store::{AutomationRuns, Automations, Budgets, Lease, Saved, Step, Waits, over},
};

/// The run's items in the table, written under its lease.
pub(crate) struct RunJournal<'a> {
    pub(crate) runs: &'a AutomationRuns,
    pub(crate) automations: &'a Automations,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
    pub(crate) meter: CostMeter<'a>,
}

/// What the organization's runs cost this month, as far as this run knows: read when it was taken up, and told with each cost
/// that it adds.
pub(crate) struct CostMeter<'a> {
    pub(crate) budgets: &'a Budgets,
    pub(crate) organization: OrganizationId,
    pub(crate) on_own_key: bool,
    pub(crate) usage: Option<BudgetUse>,
    /// What could not be added yet.
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

/// Why a run does not go on here.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Somebody wants it to end; this step was taken and is not written down yet.
    CancelRequested(UnsavedStep),
    /// Somebody else carries it on.
    LeaseLost,
    /// The organization has no money left for it.
    OverBudget(OverBudget),
    /// It goes on when something else has happened.
    Waits(Waits),
    /// Its automation is gone or was paused meanwhile: a sentence.
    Withdrawn(String),
    /// A tool is not what its automation was activated with: a sentence. Something else is never called in its place.
    Drifted(String),
    /// It is over, and nothing but outages made it fail.
    GivenUp(Ending),
}

/// What came of an action, or how the run's steps end before it.
pub(crate) type Came = ControlFlow<Ended<Stop>, Box<ActionResult>>;

#[derive(Debug)]
pub(crate) enum UnsavedStep {
    Answer(RunAnswer),
    Reply(RunReply),
    Action(Box<ActionResult>),
}

impl UnsavedStep {
    pub(crate) const fn step(&self) -> Step<'_> {
        match self {
            Self::Answer(answer) => Step::Answer(answer),
            Self::Reply(reply) => Step::Reply(reply),
            Self::Action(action) => Step::Action(action),
        }
    }
}

impl Journal for RunJournal<'_> {
    type Stop = Stop;

    fn may_ask(&self) -> ControlFlow<Stop> {
        self.meter.over().map_or(ControlFlow::Continue(()), |over| ControlFlow::Break(Stop::OverBudget(over)))
    }

    async fn answered(&mut self, answer: &RunAnswer, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, Step::Answer(answer), dialogue.spent());
        // It was spent, whether the answer can be saved or not.
        let (saved, ()) = join!(saved, self.meter.add(answer.cost));
        Ok(match stop(saved?, || UnsavedStep::Answer(answer.clone())) {
            // Its calls come next.
            ControlFlow::Continue(()) => withdrawn(self.automations, self.run)
                .await?
                .map_or(ControlFlow::Continue(()), |why| ControlFlow::Break(Stop::Withdrawn(why))),
            stopped @ ControlFlow::Break(_) => stopped,
        })
    }

    async fn replied(&mut self, reply: &RunReply, dialogue: &Dialogue) -> Result<ControlFlow<Stop>> {
        let saved = self.runs.save(self.run, self.lease, Step::Reply(reply), dialogue.spent()).await?;
        Ok(stop(saved, || UnsavedStep::Reply(reply.clone())))
    }
}

/// Why a run ends before its next effect, if its automation was deleted or paused since the run began.
pub(crate) async fn withdrawn(automations: &Automations, run: &AutomationRun) -> Result<Option<String>> {
    let Some(id) = run.automation_id.filter(|_| !run.dry_run) else { return Ok(None) };
    Ok(match automations.get(run.organization_id, id).await {
        Ok(automation) => (automation.status == AutomationStatus::Paused
            && automation.paused_at.is_some_and(|at| at > run.created_at))
        .then(|| "Its automation was paused, so the run ended before its next step.".to_owned()),
        Err(Error::NotFound(_)) => {
            Some("Its automation was deleted, so the run ended before its next step.".to_owned())
        }
        Err(error) => return Err(error),
    })
}

fn stop(saved: Saved, unsaved: impl FnOnce() -> UnsavedStep) -> ControlFlow<Stop> {
    match saved {
        Saved::Yes => ControlFlow::Continue(()),
        Saved::CancelRequested => ControlFlow::Break(Stop::CancelRequested(unsaved())),
        Saved::Lost => ControlFlow::Break(Stop::LeaseLost),
    }
}
