//! SQS: carries a run of an automation on, until it is over or the time of this invocation is.
//!
//! Whoever takes a run up holds a lease on its row, writes every step down under it before the next begins, and has put a
//! message on the queue first that wakes a successor in case of its own death. So it does not matter how often a message
//! comes, and whether its receiver lives: a run that somebody else has, or that is over, is left alone; any other is taken up
//! where its last step left it. The effects of its tools are claimed for the run, and happen once.

mod journal;
mod tools;

use std::time::Duration;

use shared::{
    Deadline, Error, Result,
    accounts::Accounts,
    clients::{Llm, Queue},
    error,
    execution::Executor,
    injection::{CallContext, Dialogue, Ended, Ending, FeedbackLoop, FinalFormat, LlmModel, ToolRegistry},
    models::{AutomationRun, QueuedAutomationRun, RunStatus, Spent, Timestamp, WholeRun},
    store::{AutomationRuns, Lease, RunEnd, TakenUp, Tools},
    telemetry,
};

use crate::journal::{Stopped, Written};

/// What must be left of the invocation for a step to begin: what most answers of a model take. One that takes longer is asked
/// for again, with the whole time of an invocation.
const STEP_NEEDS: Duration = Duration::from_secs(130);

/// A lease outlasts the invocation that holds it, and the message that wakes a successor comes after that.
const LEASE_RESERVE: Duration = Duration::from_secs(10);
const WAKE_RESERVE: Duration = Duration::from_secs(5);

/// How often a run is taken up without a single step.
const MOST_ATTEMPTS: u32 = 5;

/// The pause before it is, in seconds; it doubles with each. A queue holds a message back for 15 minutes at most.
const PAUSE: u64 = 5;
const LONGEST_PAUSE: Duration = Duration::from_secs(900);

pub struct Deps {
    pub runs: AutomationRuns,
    pub queue: Queue<QueuedAutomationRun>,
    /// The organizations' tools.
    pub tools: Tools,
    /// Runs them.
    pub executor: Executor,
    /// The built-in tools.
    pub registry: ToolRegistry,
    pub accounts: Accounts,
    pub llm: Llm,
    /// What must be left for a step to begin; [`step_needs`] but for tests.
    pub step_needs: Duration,
}

pub const fn step_needs() -> Duration {
    STEP_NEEDS
}

pub async fn handle(deps: &Deps, message: QueuedAutomationRun, deadline: Deadline) -> Result<()> {
    let QueuedAutomationRun { organization_id: organization, run_id } = message;
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
    let length = deadline.remaining() + LEASE_RESERVE;
    deps.queue.send_later(&message, (length + WAKE_RESERVE).min(LONGEST_PAUSE)).await?;
    match deps.runs.take(organization, run_id, length).await? {
        TakenUp::Ours(run, lease) => Box::pin(carry_on(deps, *run, lease, message, deadline)).await,
        TakenUp::Busy | TakenUp::Over => Ok(()),
    }
}

async fn carry_on(
    deps: &Deps,
    run: AutomationRun,
    lease: Lease,
    message: QueuedAutomationRun,
    deadline: Deadline,
) -> Result<()> {
    if run.cancel_requested_at.is_some() {
        return end(deps, &run, lease, &run.spent, cancelled()).await;
    }
    if run.attempts > MOST_ATTEMPTS {
        let sentence =
            format!("The run was taken up {MOST_ATTEMPTS} times in a row without getting on; start it again.");
        return end(deps, &run, lease, &run.spent, Ending::failed(sentence)).await;
    }
    let whole = deps.runs.whole(run.organization_id, run.id).await?;
    let mut journal = Written { runs: &deps.runs, run: &run, lease: &lease, stopped: None };
    let (ended, spent) = go(deps, &run, whole, &mut journal, deadline).await;
    let stopped = journal.stopped;
    match ended {
        Ended::Over(ending) => end(deps, &run, lease, &spent, ending).await,
        Ended::OutOfTime => {
            deps.runs.let_go(lease, None).await?;
            Ok(deps.queue.send(&message).await?)
        }
        Ended::Stopped => match stopped {
            Some(Stopped::Cancelled(last)) => {
                let told = deps.runs.end(&run, lease, Some(last.step()), &spent, run_end(&cancelled())).await?;
                report(&run, RunStatus::Cancelled, told);
                Ok(())
            }
            Some(Stopped::Lost) | None => {
                tracing::warn!(run.id = %run.id, "a run was taken over by somebody else");
                Ok(())
            }
        },
        Ended::Outage(outage) if run.attempts >= MOST_ATTEMPTS => {
            tracing::error!(run.id = %run.id, "a run is given up: {}", error::chain(&outage));
            end(deps, &run, lease, &spent, Ending::failed(outage.to_string())).await
        }
        Ended::Outage(outage) if Timestamp::now().plus(pause(&outage, run.attempts)) >= ends_at(&run) => {
            tracing::warn!(run.id = %run.id, "a run's time is over before it can go on: {}", error::chain(&outage));
            let error = Some(format!("The run's time was over before it could go on: {outage}"));
            end(deps, &run, lease, &spent, Ending { status: RunStatus::TimeLimit, result: None, error }).await
        }
        Ended::Outage(outage) => {
            let pause = pause(&outage, run.attempts);
            let seconds = pause.as_secs();
            tracing::warn!(run.id = %run.id, "a run is put off for {seconds} s: {}", error::chain(&outage));
            // A second early: clocks differ, and the message must not come too soon.
            let resume_at = Timestamp::now().plus(pause.saturating_sub(Duration::from_secs(1)));
            deps.runs.let_go(lease, Some(resume_at)).await?;
            Ok(deps.queue.send_later(&message, pause).await?)
        }
    }
}

/// Takes as many steps as the time allows; gives what the run has used by then.
async fn go(
    deps: &Deps,
    run: &AutomationRun,
    whole: WholeRun,
    journal: &mut Written<'_>,
    deadline: Deadline,
) -> (Ended, Spent) {
    let ready = async {
        let schema = whole.prompt.schema.as_deref().map(serde_json::from_str).transpose().map_err(Error::internal)?;
        let format = FinalFormat::new(schema.as_ref())?;
        let executor = tools::offered(deps, run.organization_id, &whole.prompt.tools).await?;
        let account = deps.accounts.llm(run.organization_id).await?;
        Ok((format, executor, account))
    };
    let (format, executor, account) = match ready.await {
        Ok(ready) => ready,
        Err(error @ (Error::Unavailable(..) | Error::Unreadable { .. } | Error::Upstream(_))) => {
            return (Ended::Outage(error), run.spent);
        }
        Err(error) => {
            tracing::error!(run.id = %run.id, "a run cannot go on: {}", error::chain(&error));
            return (Ended::Over(Ending::failed(error.to_string())), run.spent);
        }
    };
    let mut dialogue = Dialogue::resume(whole, |name| executor.is_read_only(name));
    let feedback = FeedbackLoop {
        model: &LlmModel { llm: &deps.llm, account: &account, model: run.model.as_deref() },
        executor: &executor,
        format: &format,
        limits: run.limits,
        ends_at: ends_at(run),
        context: CallContext { organization: run.organization_id, user: run.user_id.as_ref(), run: run.id, deadline },
        step_needs: deps.step_needs,
    };
    let ended = feedback.run(&mut dialogue, journal).await;
    (ended, *dialogue.spent())
}

/// When its time is over.
fn ends_at(run: &AutomationRun) -> Timestamp {
    run.started_at.unwrap_or(run.created_at).plus(Duration::from_secs(run.limits.seconds))
}

async fn end(deps: &Deps, run: &AutomationRun, lease: Lease, spent: &Spent, ending: Ending) -> Result<()> {
    let told = deps.runs.end(run, lease, None, spent, run_end(&ending)).await?;
    report(run, ending.status, told);
    Ok(())
}

fn run_end(ending: &Ending) -> RunEnd<'_> {
    RunEnd { status: ending.status, result: ending.result.as_ref(), error: ending.error.as_deref() }
}

fn cancelled() -> Ending {
    Ending { status: RunStatus::Cancelled, result: None, error: None }
}

fn report(run: &AutomationRun, status: RunStatus, told: bool) {
    if told {
        let took = Timestamp::now().as_millis() - run.created_at.as_millis();
        telemetry::automation_run(status.as_str(), Duration::from_millis(u64::try_from(took).unwrap_or_default()));
        tracing::info!(run.id = %run.id, run.status = status.as_str(), "a run is over");
    } else {
        tracing::warn!(run.id = %run.id, "a run was taken over by somebody else");
    }
}

/// How long to wait before a run is taken up again: longer each time, and as long as was asked for at least.
fn pause(outage: &Error, attempts: u32) -> Duration {
    let asked = match outage {
        Error::Upstream(upstream) => upstream.retry_after(),
        _ => None,
    };
    let own = Duration::from_secs(PAUSE << attempts.min(MOST_ATTEMPTS));
    asked.map_or(own, |asked| asked.max(own)).min(LONGEST_PAUSE)
}
