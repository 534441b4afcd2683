//! Actions in their order: each is written down before the next begins, so that nothing is done twice whatever dies when.

use std::time::{Duration, Instant};

use shared::{
    Deadline, Error, Result,
    automation::{ActionRun, Definition, EffectQuota, Next, PinnedTool, PlannedAction, RunTools},
    catalogue::Gone,
    error,
    injection::{Ended, Ending, LLM_AGENT},
    models::{ActionResult, AutomationRun, RunStatus, Spent, Timestamp, Trigger},
    store::{Lease, Saved, Step, Waits},
    tool::{CallContext, Conversation, NotBound, RECORDING, Subject, ToolOutcome},
};

use crate::{
    Deps,
    approval::{Approved, with_asking},
    automation::drifted,
    journal::{Stop, UnsavedStep, withdrawn},
    verdict::{MOST_ATTEMPTS, ends_at},
};

/// Kept back from the time for an action to write it down.
const SAVE_RESERVE: Duration = Duration::from_secs(8);
/// With less than this beside what is kept back, no tool is called.
const LEAST: Duration = Duration::from_secs(2);
/// A service that asks for a longer pause is not waited for.
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(20);

/// What carries the actions of a run out.
pub(crate) struct Actions<'a> {
    pub(crate) deps: &'a Deps,
    pub(crate) run: &'a AutomationRun,
    pub(crate) lease: &'a Lease,
    /// When the run must be let go of, to be carried on later.
    pub(crate) deadline: Deadline,
    pub(crate) definition: &'a Definition,
    /// All tools of the automation, those that agents are given, too.
    pub(crate) pinned: &'a [PinnedTool],
    /// Those of the actions that are left.
    pub(crate) tools: &'a RunTools,
}

/// What came of an action.
pub(crate) enum Called {
    Result(Box<ActionResult>),
    /// There is not time enough for it here.
    NoTime,
    /// There is none left for the run.
    RunsTimeIsOver,
    /// The run goes on when something else has happened.
    Waits(Waits),
    /// A tool is not what the automation was activated with.
    Drifted(String),
    /// The automation is gone or was paused meanwhile.
    Withdrawn(String),
}

impl Actions<'_> {
    /// Carries out what is left, as far as the time allows.
    ///
    /// # Errors
    /// An outage of ours before anything of the next action happened.
    pub(crate) async fn carry_out(&self, mut actions: ActionRun<'_>, spent: &mut Spent) -> Result<Ended<Stop>> {
        // Whether no step was taken here yet: then there will not be more time for it elsewhere.
        let mut first = true;
        loop {
            if !first && self.deadline.remaining() < SAVE_RESERVE {
                return Ok(Ended::OutOfTime);
            }
            let result = match actions.next(Timestamp::now()) {
                Next::Over(ending) if actions.failed_by_outages() => return Ok(Ended::Stopped(Stop::GivenUp(ending))),
                Next::Over(ending) => return Ok(Ended::Over(ending)),
                Next::Settled(result) => *result,
                Next::Call(planned) => match Box::pin(self.act(&planned, first, spent)).await {
                    Ok(Called::Result(result)) => *result,
                    Ok(Called::NoTime) => return Ok(Ended::OutOfTime),
                    Ok(Called::RunsTimeIsOver) => return Ok(Ended::Over(out_of_time())),
                    Ok(Called::Waits(what)) => return Ok(Ended::Stopped(Stop::Waits(what))),
                    Ok(Called::Withdrawn(why)) => return Ok(Ended::Stopped(Stop::Withdrawn(why))),
                    Ok(Called::Drifted(reason)) => return drifted(self.deps, self.run, reason).await,
                    // It counts as an attempt where it is the first that is tried.
                    Err(outage) if !first => {
                        tracing::warn!(run.id = %self.run.id, "an action is put off: {}", error::chain(&outage));
                        return Ok(Ended::OutOfTime);
                    }
                    Err(outage) => return Err(outage),
                },
            };
            match self.deps.runs.save(self.run, self.lease, Step::Action(&result), spent).await? {
                Saved::Yes => {}
                Saved::CancelRequested => {
                    return Ok(Ended::Stopped(Stop::CancelRequested(UnsavedStep::Action(Box::new(result)))));
                }
                Saved::Lost => return Ok(Ended::Stopped(Stop::LeaseLost)),
            }
            actions.took(&result)?;
            first = false;
        }
    }

    /// Carries an action out, if nobody has to be asked first.
    async fn act(&self, planned: &PlannedAction<'_>, first: bool, spent: &mut Spent) -> Result<Called> {
        // What an agent has done by then is taken.
        if Timestamp::now() >= ends_at(self.run) && !self.has_agents_result(planned).await? {
            return Ok(Called::RunsTimeIsOver);
        }
        let acts = planned.tool == LLM_AGENT || self.tools.effect(planned.tool).is_some();
        if let Some(why) = if acts { withdrawn(&self.deps.automations, self.run).await? } else { None } {
            return Ok(Called::Withdrawn(why));
        }
        if planned.tool == LLM_AGENT {
            return Box::pin(self.agent(planned, spent)).await;
        }
        // What cannot be called fails, and asks nobody.
        let callable = self.tools.toolbox.check(planned.tool, &planned.arguments).is_ok();
        let asking = self.asks(planned, self.tools.effect(planned.tool), &planned.arguments).filter(|_| callable);
        if let Some(asking) = asking.as_ref().filter(|_| !self.run.dry_run) {
            match self.approved(planned, asking).await? {
                Approved::Yes => {}
                Approved::NotYet(what) => return Ok(Called::Waits(what)),
                Approved::No(why) => {
                    let redact = self.tools.redact(planned.tool);
                    let refused = planned.refused(why, Timestamp::now());
                    return Ok(Called::Result(Box::new(ActionResult { redact, ..refused })));
                }
            }
        }
        let effect = self.tools.effect(planned.tool).filter(|_| callable && !self.run.dry_run);
        if let (Some(effect), Some(quota)) = (effect, self.quota()) {
            let name = format!("{} {}", self.run.id, planned.id);
            if let Some(why) = quota.take(effect, Some(&name), self.deadline).await? {
                let redact = self.tools.redact(planned.tool);
                let failed = planned.failed(why, Timestamp::now());
                return Ok(Called::Result(Box::new(ActionResult { redact, ..failed })));
            }
        }
        let result = Box::pin(self.call(planned, first, spent)).await?;
        Ok(result.map_or(Called::NoTime, |result| Called::Result(Box::new(with_asking(result, asking.as_ref())))))
    }

    /// The room of this run for what it changes.
    pub(crate) fn quota(&self) -> Option<EffectQuota> {
        Some(EffectQuota {
            quotas: self.deps.executor.quotas.clone(),
            organization: self.run.organization_id,
            automation: self.run.automation_id?,
            run: self.run.parent_run_id.unwrap_or(self.run.id),
            limits: self.definition.quotas,
        })
    }

    /// Calls the tool of an action, and again where that can do no harm and is wanted. None if there is no time for it.
    async fn call(&self, planned: &PlannedAction<'_>, first: bool, spent: &mut Spent) -> Result<Option<ActionResult>> {
        let (started_at, started) = (Timestamp::now(), Instant::now());
        let given_up = first && self.run.attempts >= MOST_ATTEMPTS;
        match self.tools.gone(planned.tool) {
            Some(gone @ Gone::Unreachable { .. }) if !given_up => {
                return Err(Error::Unavailable("an account of a service", gone.for_author().into()));
            }
            Some(gone) => {
                let failed = planned.failed(format!("The tool {} {}.", planned.tool, gone.for_author()), started_at);
                let outage = matches!(gone, Gone::Unreachable { .. });
                return Ok(Some(ActionResult { outage, ..failed }));
            }
            None => {}
        }
        let limit = Duration::from_secs(planned.action.timeout_seconds);
        let needs = limit + RECORDING + SAVE_RESERVE;
        let least = if first { LEAST + RECORDING + SAVE_RESERVE } else { needs };
        if self.deadline.remaining() < least {
            return Ok(None);
        }
        let acts = self.tools.toolbox.spec(planned.tool).is_ok_and(|spec| spec.effect);
        let (mut attempts, mut given_up_on) = (0, false);
        let outcome = loop {
            let bound = match self.tools.toolbox.check(planned.tool, &planned.arguments) {
                Ok(bound) => bound,
                Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                    let failed =
                        ActionResult { redact: self.tools.redact(planned.tool), ..planned.misfit(why, started_at) };
                    return Ok(Some(failed));
                }
            };
            attempts += 1;
            let outcome = match bound.call_within(limit, &self.context(planned)).await {
                Ok(outcome) => outcome,
                Err(outage) if given_up => {
                    given_up_on = true;
                    ToolOutcome::failed(outage.to_string())
                }
                Err(outage) => return Err(outage),
            };
            add(spent, &outcome.spent);
            if !planned.may_be_repeated(&outcome, acts, attempts) {
                break outcome;
            }
            let pause = self.pause(&outcome, attempts);
            if pause > LONGEST_RETRY_PAUSE || self.deadline.remaining() < pause + needs {
                break outcome;
            }
            tokio::time::sleep(pause).await;
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = planned.became(&outcome, self.run.dry_run && acts, started_at);
        let (redact, outage) = (self.tools.redact(planned.tool), result.outage || given_up_on);
        Ok(Some(ActionResult { attempts, duration_ms, redact, outage, ..result }))
    }

    fn context<'c>(&'c self, planned: &'c PlannedAction<'_>) -> CallContext<'c> {
        CallContext {
            organization: self.run.organization_id,
            user: self.run.user_id.as_ref(),
            subject: Subject::Action { run: self.run.id, action: &planned.id },
            delivery: Some(&planned.id),
            conversation: &NOBODY,
            trigger: Trigger::Automation,
            deadline: self.deadline.reserving(SAVE_RESERVE + RECORDING),
        }
    }

    /// Before a tool is called again: longer each time, and as long as its service asks for at least.
    fn pause(&self, outcome: &ToolOutcome, attempts: u32) -> Duration {
        let asked = outcome.cause.as_ref().and_then(shared::clients::Error::retry_after).unwrap_or_default();
        let doubled = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        self.deps.retry_pause.saturating_mul(doubled).max(asked)
    }
}

/// There is no phone call.
static NOBODY: Conversation = Conversation { caller: None, called: None, line: None, call: None };

fn out_of_time() -> Ending {
    let error = "The run's time was over before all actions were carried out.".to_owned();
    Ending { status: RunStatus::TimeLimit, result: None, error: Some(error) }
}

pub(crate) fn add(spent: &mut Spent, more: &Spent) {
    spent.iterations += more.iterations;
    spent.calls += more.calls;
    spent.prompt_tokens += more.prompt_tokens;
    spent.completion_tokens += more.completion_tokens;
    spent.cached_tokens += more.cached_tokens;
    spent.cost += more.cost;
}
