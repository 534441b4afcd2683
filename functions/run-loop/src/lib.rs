//! SQS: carries a run of an automation on, until it is over or the time of this invocation is.
//!
//! A run works on a prompt with tools (`prompt.rs`), or carries out actions (`automation.rs`, `actions.rs`).
//!
//! Whoever takes a run up first puts a message on the queue that wakes a successor in case of its own death. Then it holds a
//! lease on the run's row, and writes every step down under it before the next begins. So it does not matter how often a message
//! comes, and whether its receiver lives: a run that somebody else has, or that is over, is left alone; any other is taken up
//! where its last step left it. The effects of its tools are claimed for the run, and happen once.

mod actions;
mod agent;
mod approval;
mod automation;
mod journal;
mod prompt;
mod verdict;
mod waiting;

use std::time::Duration;

use shared::{
    Deadline, Error, Platform, Result,
    accounts::Accounts,
    automation::Watch,
    catalogue::Catalogue,
    clients::{Llm, Queue, Service},
    error,
    execution::Executor,
    idempotency::Idempotency,
    injection::{Ended, Ending},
    models::{AutomationRun, QueuedRun, RunCeilings, RunStatus, Spent, Timestamp, WholeRun},
    platform,
    store::{AcquiredRun, Approvals, AutomationRuns, Automations, Budgets, Lease, RunEnd},
    telemetry,
};

use crate::{
    journal::{Stop, UnsavedStep},
    verdict::{LONGEST_PAUSE, Verdict, before_steps, decide, gets_nowhere, given_up},
};

/// What must be left of the invocation for a step to begin: what most answers of a model take. One that takes longer is asked
/// for again, with the whole time of an invocation.
const STEP_NEEDS: Duration = Duration::from_secs(130);

/// Before an action's tool is called again for the first time.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// A run may be carried on by somebody else long after an effect, and must still find it: longer than any run may take.
const EFFECTS_COUNT_FOR: Duration = Duration::from_secs(24 * 60 * 60);

/// A lease outlasts the invocation that holds it, and the message that wakes a successor comes after that.
const LEASE_RESERVE: Duration = Duration::from_secs(10);
const WAKE_RESERVE: Duration = Duration::from_secs(5);

pub struct Deps {
    pub runs: AutomationRuns,
    pub queue: Queue<QueuedRun>,
    pub catalogue: Catalogue,
    pub executor: Executor,
    pub accounts: Accounts,
    pub llm: Llm,
    pub budgets: Budgets,
    /// What a run may use of the platform's key.
    pub ceilings: RunCeilings,
    /// How runs end, for their automations.
    pub watch: Watch,
    pub approvals: Approvals,
    pub automations: Automations,
    /// What must be left for a step to begin; tests need less.
    pub step_needs: Duration,
    /// Before an action's tool is called again; it doubles each time. Tests need none.
    pub retry_pause: Duration,
}

impl Deps {
    pub fn new(platform: &Platform) -> platform::Result<Self> {
        let database = platform.database()?;
        Ok(Self {
            runs: AutomationRuns::new(database),
            queue: platform.runs_queue()?,
            catalogue: platform.catalogue_for_runs()?,
            executor: platform.executor(Idempotency::new(database, EFFECTS_COUNT_FOR))?,
            accounts: platform.accounts_with_llm()?,
            llm: platform.llm()?,
            budgets: platform.budgets()?.clone(),
            ceilings: platform.run_ceilings()?,
            watch: platform.watch()?,
            approvals: Approvals::new(database),
            automations: Automations::new(database),
            step_needs: STEP_NEEDS,
            retry_pause: RETRY_PAUSE,
        })
    }
}

pub async fn handle(deps: &Deps, message: QueuedRun, deadline: Deadline) -> Result<()> {
    let QueuedRun { organization_id: organization, run_id } = message;
    let run = match deps.runs.get(organization, run_id).await {
        Ok(run) => run,
        Err(Error::NotFound(_)) => {
            tracing::warn!(run.id = %run_id, "a message is dropped: its run is not there");
            return Ok(());
        }
        Err(error) => return Err(error),
    };
    let now = Timestamp::now().as_millis();
    // A message of its own will come when the time it was put off for is over.
    if run.status.is_over() || run.lease_until.max(run.resume_at).is_some_and(|until| until >= now) {
        return Ok(());
    }
    if !waiting::is_over(deps, &run, &message).await? {
        return Ok(());
    }
    let length = deadline.remaining() + LEASE_RESERVE;
    deps.queue.send_later(&message, (length + WAKE_RESERVE).min(LONGEST_PAUSE)).await?;
    match deps.runs.acquire(organization, run_id, length).await? {
        AcquiredRun::Ours(run, lease) => Box::pin(carry_on(deps, *run, lease, message, deadline)).await,
        AcquiredRun::Busy | AcquiredRun::Over => Ok(()),
    }
}

/// Takes the steps that the time allows, and does with the run what follows from how they ended.
async fn carry_on(deps: &Deps, run: AutomationRun, lease: Lease, message: QueuedRun, deadline: Deadline) -> Result<()> {
    let at_once = match before_steps(&run) {
        Some(verdict) => Some(verdict),
        None if gets_nowhere(&run) => {
            let record = deps.runs.whole(run.organization_id, run.id).await;
            Some(given_up(
                record.inspect_err(|error| tracing::error!(run.id = %run.id, "{}", error::chain(error))).ok().as_ref(),
            ))
        }
        None => waiting::nobody_waits_for_it(deps, &run).await?,
    };
    let (verdict, spent) = if let Some(verdict) = at_once {
        (verdict, run.spent)
    } else {
        let whole = deps.runs.whole(run.organization_id, run.id).await?;
        let (ended, spent) = take_steps(deps, &run, whole, &lease, deadline).await;
        if let Ended::Outage(outage) = &ended {
            tracing::warn!(run.id = %run.id, run.attempts = run.attempts, "a run cannot go on now: {}", error::chain(outage));
        }
        (decide(ended, &run, Timestamp::now()), spent)
    };
    match verdict {
        Verdict::End(ending, unsaved) => {
            deps.watch.run_ends(&run, ending.status).await;
            end(deps, &run, lease, &ending, unsaved.as_ref(), &spent, false).await?;
        }
        Verdict::GiveUp(ending) => end(deps, &run, lease, &ending, None, &spent, true).await?,
        Verdict::Wait(what) => waiting::wait(deps, &run, lease, what, &message, &spent).await?,
        Verdict::GoOn => {
            lease.release().await?;
            deps.queue.send(&message).await?;
        }
        Verdict::PutOff(pause, outage) => {
            // A second early: clocks differ, and the message must not come too soon.
            let resume_at = Timestamp::now().plus(pause.saturating_sub(Duration::from_secs(1)));
            let is_model = matches!(&outage, Error::Upstream(failed) if failed.service == Service::Llm);
            deps.runs.put_off(lease, resume_at, &outage.to_string(), is_model).await?;
            deps.queue.send_later(&message, pause).await?;
        }
        Verdict::Abandon => report_lost(&run),
    }
    Ok(())
}

/// Writes the end of a run down. What a cancelled one has begun ends first, so that it does also after a crash.
async fn end(
    deps: &Deps,
    run: &AutomationRun,
    lease: Lease,
    ending: &Ending,
    unsaved: Option<&UnsavedStep>,
    spent: &Spent,
    outage: bool,
) -> Result<()> {
    if ending.status == RunStatus::Cancelled {
        waiting::end_what_it_began(deps, run).await?;
    }
    let (status, result, error) = (ending.status, ending.result.as_ref(), ending.error.as_deref());
    let end = RunEnd { status, result, error, outage };
    if deps.runs.end(run, lease, unsaved.map(UnsavedStep::step), spent, end).await? {
        report_end(run, ending.status);
        waiting::wake_parent(deps, run).await;
    } else {
        report_lost(run);
    }
    Ok(())
}

/// How the steps ended, and what the run has used by then.
async fn take_steps(
    deps: &Deps,
    run: &AutomationRun,
    whole: WholeRun,
    lease: &Lease,
    deadline: Deadline,
) -> (Ended<Stop>, Spent) {
    match (&whole.plan, &whole.prompt) {
        (Some(_), None) => Box::pin(automation::take_steps(deps, run, whole, lease, deadline)).await,
        _ => Box::pin(prompt::take_steps(deps, run, whole, lease, deadline)).await,
    }
}

/// How a run ends, or is put off, for an error before its first step.
fn ended_by(run: &AutomationRun, error: Error) -> Ended<Stop> {
    if error.is_outage() {
        return Ended::Outage(error);
    }
    tracing::error!(run.id = %run.id, "a run cannot go on: {}", error::chain(&error));
    Ended::Over(Ending::failed(error.to_string()))
}

fn report_end(run: &AutomationRun, status: RunStatus) {
    let took = Timestamp::now().as_millis() - run.created_at.as_millis();
    telemetry::automation_run(status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
    tracing::info!(run.id = %run.id, run.status = status.as_str(), "a run is over");
}

fn report_lost(run: &AutomationRun) {
    tracing::warn!(run.id = %run.id, "a run was taken over by somebody else");
}
