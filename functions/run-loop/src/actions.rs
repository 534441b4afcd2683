//! Runs actions in order, and those of a loop's items at the same time if the loop says so.
//!
//! Each result is stored before the next action begins, so a crash repeats nothing.

use std::{
    collections::VecDeque,
    pin::pin,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use shared::{
    Error, Result,
    automation::{ActionRun, Definition, EffectQuota, Next, PlannedAction},
    backoff::Backoff,
    error,
    injection::{Ended, Ending, LLM_AGENT},
    models::{ActionResult, ExecutionOrigin, ExecutionStatus, OfferedTool, RunId, RunStatus, Spent, Timestamp},
    store::{Saved, SavedStep, Waits},
    tool::{CallContext, Conversation, NotBound, Offered, RECORDING, Subject, ToolOutcome, Toolbox, Unavailable},
};

use crate::{
    agent::Agents,
    approval::{Asking, with_asking},
    called_automation::CalledAutomations,
    child_run::{Started, is_child_run, is_over},
    deps::Held,
    journal::{Came, Stop, UnsavedSteps, withdrawn},
    verdict::{MOST_ATTEMPTS, ends_at},
    waiting,
};

/// Kept back from an action's time to store its result.
const SAVE_RESERVE: Duration = Duration::from_secs(8);
/// The least time for a call of a tool, beside the reserve.
const LEAST: Duration = Duration::from_secs(2);
/// A service that asks for a longer pause is not retried.
const LONGEST_RETRY_PAUSE: Duration = Duration::from_secs(20);

/// The next step.
enum Begun<'d> {
    Call(Box<PlannedAction<'d>>),
    /// It calls no tool.
    Result(Box<ActionResult>),
    /// Steps that are being taken must end first.
    Nothing,
    End(Ended<Stop>),
}

/// An action that was carried out.
struct Worked {
    place: String,
    came: Result<Came>,
    used: Spent,
}

/// Awaits `work` while the calls that are under way go on: an answer must not wait past its time-out for the writes of other
/// results.
async fn beside<F: Future>(
    working: &mut FuturesUnordered<impl Future<Output = Worked>>,
    worked: &mut VecDeque<Worked>,
    work: F,
) -> F::Output {
    let mut work = pin!(work);
    loop {
        tokio::select! {
            output = &mut work => return output,
            Some(ended) = working.next() => worked.push_back(ended),
        }
    }
}

pub(crate) struct Actions<'a> {
    pub(crate) held: Held<'a>,
    pub(crate) definition: &'a Definition,
    /// Actions that a person lets act again, although they may have acted in the run before.
    pub(crate) confirmed: &'a [String],
    /// Actions of a `catch` act again in a retry.
    pub(crate) catch_anew: bool,
    /// All tools of the automation, including those of its agents.
    pub(crate) pinned: &'a [OfferedTool],
    /// The tools of the remaining actions.
    pub(crate) toolbox: &'a Toolbox,
    /// See [`Stop::GivenUp`].
    pub(crate) given_up_by_platform: AtomicBool,
}

impl Actions<'_> {
    /// Runs the remaining actions, as far as the time allows. Those of a loop's items may run at the same time; once something
    /// ends the steps, no further one begins, and those that are being taken are stored.
    ///
    /// # Errors
    /// An outage of ours before the next action had any effect.
    pub(crate) async fn carry_out(&self, mut actions: ActionRun<'_>, spent: &mut Spent) -> Result<Ended<Stop>> {
        let Held { deps, run, lease, .. } = self.held;
        // No step was taken here yet, so no other invocation will have more time for it.
        let mut first = true;
        let mut storing = true;
        let mut end = None;
        let mut taken: Vec<String> = Vec::new();
        let mut working = FuturesUnordered::new();
        let mut worked = VecDeque::new();
        loop {
            let may_begin = end.is_none() && worked.is_empty();
            let begun = if may_begin { self.begin(&actions, &taken, first).await } else { Ok(Begun::Nothing) };
            let came = match begun {
                Ok(Begun::Call(planned)) => {
                    taken.push(planned.id.clone());
                    working.push(self.work(planned, first, *spent));
                    continue;
                }
                Ok(Begun::Result(result)) => Ok(Came::Continue(result)),
                Ok(Begun::Nothing) => {
                    let next = match worked.pop_front() {
                        None => working.next().await,
                        worked => worked,
                    };
                    let Some(Worked { place, came, used }) = next else {
                        return end.unwrap_or_else(|| Err(Error::internal("a run has no next step")));
                    };
                    taken.retain(|taken| *taken != place);
                    *spent += used;
                    came
                }
                Ok(Begun::End(ended)) => Ok(Came::Break(ended)),
                Err(error) => Err(error),
            };
            let result = match came {
                Ok(Came::Continue(result)) => actions.numbered(*result),
                Ok(Came::Break(ended)) => {
                    end.get_or_insert(Ok(ended));
                    continue;
                }
                Err(outage) if first => {
                    end.get_or_insert(Err(outage));
                    continue;
                }
                Err(outage) => {
                    tracing::warn!(run.id = %run.id, "an action is postponed: {}", error::chain(&outage));
                    end.get_or_insert(Ok(Ended::OutOfTime));
                    continue;
                }
            };
            // After a failed write it is not known which results are stored; a repeated call gets its stored answer.
            if !storing {
                continue;
            }
            if let Some(Ok(Ended::Stopped(Stop::CancelRequested(UnsavedSteps::Actions(unsaved))))) = &mut end {
                actions.record(&result)?;
                unsaved.push(result);
                continue;
            }
            let save = deps.runs.save(run, lease, SavedStep::Action(&result), spent);
            match beside(&mut working, &mut worked, save).await {
                Ok(Saved::Yes) => {
                    actions.record(&result)?;
                    first = false;
                }
                Ok(Saved::CancelRequested) => {
                    actions.record(&result)?;
                    end = Some(Ok(Ended::Stopped(Stop::CancelRequested(UnsavedSteps::Actions(vec![result])))));
                }
                Ok(Saved::Lost) => (storing, end) = (false, Some(Ok(Ended::Stopped(Stop::LeaseLost)))),
                Err(error) => (storing, end) = (false, Some(Err(error))),
            }
        }
    }

    /// The next step that can be taken beside those at the `taken` places.
    async fn begin<'d>(&self, actions: &ActionRun<'d>, taken: &[String], first: bool) -> Result<Begun<'d>> {
        let Held { deps, run, deadline, .. } = self.held;
        if !first && deadline.remaining() < SAVE_RESERVE {
            return Ok(Begun::End(Ended::OutOfTime));
        }
        Ok(match actions.next_beside(taken, Timestamp::now()) {
            Next::Over(ending) if actions.failed_by_outages() => {
                let by_platform = self.given_up_by_platform.load(Relaxed);
                Begun::End(Ended::Stopped(Stop::GivenUp { ending, by_platform }))
            }
            Next::Over(ending) if actions.failed_but_for_catches() => {
                Begun::End(Ended::Stopped(Stop::FailedButForCatches(ending)))
            }
            Next::Over(ending) => Begun::End(Ended::Over(ending)),
            Next::Settled(result) => Begun::Result(result),
            Next::Call(planned) => Begun::Call(planned),
            Next::Busy => Begun::Nothing,
            Next::Pause(pause, awaited) => {
                let pause = match awaited {
                    Some(awaited) => waiting::begin_to_await(deps, run, pause, *awaited).await?,
                    None => pause,
                };
                Begun::End(Ended::Stopped(Stop::Waits(Waits::ForTime(pause))))
            }
        })
    }

    async fn work(&self, planned: Box<PlannedAction<'_>>, first: bool, spent: Spent) -> Worked {
        let mut after = spent;
        let came = Box::pin(self.act(&planned, first, &mut after)).await;
        Worked { place: planned.id, came, used: after - spent }
    }

    /// Runs an action, unless a person must approve it first.
    async fn act(&self, planned: &PlannedAction<'_>, first: bool, spent: &mut Spent) -> Result<Came> {
        let Held { deps, run, deadline, .. } = self.held;
        let asking = Asking { approvals: &deps.approvals, run, rules: &self.definition.approvals };
        let started = if is_child_run(planned.tool) {
            Started::by(self.held, planned, self.claimed_by(planned)).await?
        } else {
            None
        };
        // The result of a finished child is taken even after the end of this run's time.
        if Timestamp::now() >= ends_at(run) {
            let has_result = match started {
                Some(started) => is_over(self.held, started.child).await?,
                None => false,
            };
            if !has_result {
                return Ok(Came::Break(Ended::Over(out_of_time())));
            }
        }
        let effect = self.toolbox.get(planned.tool).and_then(Offered::effect);
        let acts = is_child_run(planned.tool) || effect.is_some();
        if let Some(why) = if acts { withdrawn(&deps.automations, run).await? } else { None } {
            return Ok(Came::Break(Ended::Stopped(Stop::Withdrawn(why))));
        }
        if let Some(started) = started {
            let held = self.held;
            return if planned.tool == LLM_AGENT {
                Box::pin(Agents { held, asking, child: started.child, pinned: self.pinned }.work(planned, spent)).await
            } else {
                Box::pin(CalledAutomations { held, asking, started }.work(planned, spent)).await
            };
        }
        if is_child_run(planned.tool) {
            let why = "automation_id is not the id of an automation.";
            return Ok(Came::Continue(Box::new(planned.failed(why, Timestamp::now()))));
        }
        // An invalid call fails without asking a person.
        let callable = self.toolbox.check(planned.tool, &planned.arguments).is_ok();
        let asked = asking.asks(planned, effect, &planned.arguments).filter(|_| callable);
        let redact = self.redact(planned);
        if let Some(instead) = asking.stops(planned, asked.as_ref(), &redact).await? {
            return Ok(instead);
        }
        let quota = EffectQuota::of_run(&deps.executor.quotas, run, self.definition.quotas);
        if let (Some(effect), Some(quota)) = (effect.filter(|_| callable && !run.dry_run), quota) {
            let name = format!("{} {}", run.id, planned.id);
            if let Some(why) = quota.take(effect, Some(&name), deadline).await? {
                let (started_at, before) = (Timestamp::now(), self.outcome_before(planned, &why).await?);
                let result = match before {
                    Some(outcome) => planned.finished(&outcome, false, started_at),
                    None => planned.failed(why, started_at),
                };
                return Ok(Came::Continue(Box::new(ActionResult { redact, ..result })));
            }
        }
        let result = Box::pin(self.call(planned, first, spent)).await?;
        let with_asking = |result| Came::Continue(Box::new(with_asking(result, asked.as_ref())));
        Ok(result.map_or(Came::Break(Ended::OutOfTime), with_asking))
    }

    /// The outcome of an earlier attempt at an action that must not begin any more: its process died before it was stored.
    async fn outcome_before(&self, planned: &PlannedAction<'_>, refused: &str) -> Result<Option<ToolOutcome>> {
        let limit = Duration::from_secs(planned.action.timeout_seconds);
        let Ok(bound) = self.toolbox.check(planned.tool, &planned.arguments) else { return Ok(None) };
        if !bound.knows_deliveries() {
            return Ok(None);
        }
        let context = CallContext { refused: Some(refused), ..self.context(planned) };
        let outcome = bound.call_within(limit, &context).await?;
        Ok((outcome.status != ExecutionStatus::Limited).then_some(outcome))
    }

    /// As [`Self::outcome_before`], for a tool whose account is gone since.
    async fn outcome_with_former_account(
        &self,
        planned: &PlannedAction<'_>,
        why: &Unavailable,
    ) -> Result<Option<ToolOutcome>> {
        let Held { deps, run, deadline, .. } = self.held;
        let of_account = matches!(why, Unavailable::NotConnected { .. } | Unavailable::Unreachable { .. });
        let pinned = self.pinned.iter().find(|pinned| pinned.name == planned.tool);
        let Some(pinned) = pinned.filter(|_| of_account && !run.dry_run) else { return Ok(None) };
        let tool = deps.catalogue.without_account(run.organization_id, &pinned.tool, deadline).await?;
        let Some(tool) = tool else { return Ok(None) };
        let context = self.context(planned);
        let limit = Duration::from_secs(planned.action.timeout_seconds);
        let context = context.until(context.deadline.at_most(limit));
        deps.executor.outcome_before(&tool, &planned.arguments, &context).await
    }

    /// Calls the tool of an action, and retries where that is wanted and harmless. `None` if there is no time for it.
    async fn call(&self, planned: &PlannedAction<'_>, first: bool, spent: &mut Spent) -> Result<Option<ActionResult>> {
        let Held { deps, run, deadline, .. } = self.held;
        let (started_at, started) = (Timestamp::now(), Instant::now());
        let given_up = first && run.attempts >= MOST_ATTEMPTS;
        match self.toolbox.unavailability(planned.tool) {
            Some(why @ Unavailable::Unreachable { .. }) if !given_up => {
                return Err(Error::Unavailable("an account of a service", why.for_author().into()));
            }
            Some(Unavailable::Unreadable) => {
                return Err(Error::Unreadable { row: "tool", key: planned.tool.to_owned() });
            }
            Some(why) => {
                if let Some(outcome) = Box::pin(self.outcome_with_former_account(planned, why)).await? {
                    return Ok(Some(planned.finished(&outcome, false, started_at)));
                }
                let failed = planned.failed(format!("The tool {} {}.", planned.tool, why.for_author()), started_at);
                let outage = matches!(why, Unavailable::Unreachable { .. });
                self.given_up_by_platform.fetch_or(outage, Relaxed);
                return Ok(Some(ActionResult { outage, ..failed }));
            }
            None => {}
        }
        let limit = Duration::from_secs(planned.action.timeout_seconds);
        let needs = limit + RECORDING + SAVE_RESERVE;
        let least = if first { LEAST + RECORDING + SAVE_RESERVE } else { needs };
        if deadline.remaining() < least {
            return Ok(None);
        }
        let acts = self.toolbox.get(planned.tool).is_some_and(|offered| offered.spec().acts());
        let (mut attempts, mut given_up_on) = (0, false);
        let mut backoff = Backoff::new(deps.retry_pause, LONGEST_RETRY_PAUSE, deadline.reserving(needs));
        let outcome = loop {
            let bound = match self.toolbox.check(planned.tool, &planned.arguments) {
                Ok(bound) => bound,
                Err(NotBound::Unknown(why) | NotBound::Invalid(why)) => {
                    let failed = ActionResult { redact: self.redact(planned), ..planned.misfit(why, started_at) };
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
            *spent += outcome.spent;
            let asked = outcome.cause.as_ref().and_then(shared::clients::Error::retry_after);
            if !planned.may_be_repeated(&outcome, acts, attempts)
                || asked.is_some_and(|asked| asked > LONGEST_RETRY_PAUSE)
                || !backoff.pause_at_least(asked).await
                || acts && withdrawn(&deps.automations, run).await?.is_some()
            {
                break outcome;
            }
        };
        let duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let result = planned.finished(&outcome, run.dry_run && acts, started_at);
        self.given_up_by_platform.fetch_or(given_up_on, Relaxed);
        let (redact, outage) = (self.redact(planned), result.outage || given_up_on);
        Ok(Some(ActionResult { attempts, duration_ms, redact, outage, ..result }))
    }

    /// The fields of the result that the tool's author marked as hidden.
    fn redact(&self, planned: &PlannedAction<'_>) -> Vec<String> {
        self.toolbox.get(planned.tool).map(|offered| offered.redact().to_vec()).unwrap_or_default()
    }

    /// A retry meets the claims of the first run, so what that one did is not done again unasked. A `catch` belongs to one
    /// failure, so its actions do act again after another.
    fn claimed_by(&self, planned: &PlannedAction<'_>) -> RunId {
        let run = self.held.run;
        let in_catch = || {
            self.catch_anew && planned.action.id.as_deref().is_some_and(|id| self.definition.caught_ids().contains(id))
        };
        let first = run.first_run.filter(|_| !self.confirmed.contains(&planned.id) && !in_catch());
        first.unwrap_or(run.id)
    }

    fn context<'c>(&'c self, planned: &'c PlannedAction<'_>) -> CallContext<'c> {
        let Held { run, deadline, .. } = self.held;
        CallContext {
            organization: run.organization_id,
            user: run.user_id.as_ref(),
            subject: Subject::Action { run: run.id, claimed_by: self.claimed_by(planned), action: &planned.id },
            automation: run.automation_id,
            delivery: Some(&planned.id),
            conversation: &NOBODY,
            trigger: ExecutionOrigin::Automation,
            refused: None,
            deadline: deadline.reserving(SAVE_RESERVE + RECORDING),
        }
    }
}

/// There is no phone call.
static NOBODY: Conversation = Conversation { caller: None, called: None, line: None, call: None };

fn out_of_time() -> Ending {
    let error = "The run's time was over before all actions were carried out.".to_owned();
    Ending { status: RunStatus::TimeLimit, result: None, error: Some(error) }
}
