//! SQS: continues a run, until it is over or the invocation's time is.
//!
//! A run works on a prompt with tools (`prompt.rs`), or executes actions (`automation.rs`, `actions.rs`).
//!
//! An invocation first queues a message that wakes a successor in case it dies. Then it acquires the lease on the run's row,
//! and stores every step before the next begins. So repeated messages and crashes are harmless: a run that is over or leased is
//! left alone; any other run continues after its last step. The effects of its tools are claimed for the run, and happen once.
//!
//! Each module uses only modules below it:
//!
//! ```text
//! lib                        one message, from the queue to the run's verdict
//! automation                 the version of an automation, and its actions or its prompt
//! actions      prompt        actions in their order; a prompt with tools
//! agent        called_automation   actions that are runs of their own
//! approval     briefing      asking a person; the model's prompt
//! child_run                  a run that an action waits for
//! waiting                    whether a run's approval or agent is over
//! ending       verdict       the end of a run; the decision after its steps
//! journal      deps          stored steps; the parts
//! ```

mod actions;
mod agent;
mod approval;
mod automation;
mod briefing;
mod called_automation;
mod child_run;
mod deps;
mod ending;
mod journal;
mod prompt;
mod verdict;
mod waiting;

use std::{ops::ControlFlow, time::Duration};

use shared::{
    Deadline, Error, Result,
    backoff::Backoff,
    clients::UpstreamService,
    error::{self, found},
    injection::Ended,
    models::{AutomationRun, QueuedRun, RunStatus, Spent, Timestamp, WholeRun},
    store::{AcquiredRun, Lease},
    telemetry,
};

pub use crate::deps::Deps;
use crate::{
    deps::Held,
    ending::{end, report_lost},
    journal::Stop,
    verdict::{LONGEST_PAUSE, Verdict, before_steps, decide, exceeds_attempts, given_up, is_unreadable},
};

/// A lease outlasts its invocation, and the message for a successor comes after that.
const LEASE_RESERVE: Duration = Duration::from_secs(10);
const WAKE_RESERVE: Duration = Duration::from_secs(5);

/// During an outage before the steps. SQS would deliver the message again after half an hour.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE_OF_OUTAGE: Duration = Duration::from_secs(5);
const TRIED_AGAIN_WITHIN: Duration = Duration::from_secs(45);
const PUT_OFF_FOR: Duration = Duration::from_secs(30);
/// In half an hour; then SQS brings the message, and at last puts it aside.
const MOST_PUT_OFF: u32 = 20;

pub async fn handle(deps: &Deps, message: QueuedRun, deadline: Deadline) -> Result<()> {
    let QueuedRun { organization_id, run_id, put_off } = message;
    let (message, put_off) = (QueuedRun::new(organization_id, run_id), put_off.unwrap_or_default());
    match acquire(deps, &message, deadline).await {
        Ok(Some((run, lease))) => Box::pin(carry_on(deps, *run, lease, message, deadline)).await,
        Ok(None) => Ok(()),
        Err(outage) if outage.is_outage() && !is_unreadable(&outage) && put_off < MOST_PUT_OFF => {
            tracing::error!(run.id = %run_id, "a run is put off before its steps: {}", error::chain(&outage));
            let later = QueuedRun { put_off: Some(put_off + 1), ..message };
            Ok(deps.queue.send_later(&later, PUT_OFF_FOR).await?)
        }
        Err(error) => Err(error),
    }
}

fn through_outage(deadline: Deadline) -> Backoff {
    Backoff::new(PAUSE, LONGEST_PAUSE_OF_OUTAGE, deadline.at_most(TRIED_AGAIN_WITHIN))
}

/// The run with its lease; `None` if there is nothing to do now. A message for a successor is queued before.
async fn acquire(deps: &Deps, message: &QueuedRun, deadline: Deadline) -> Result<Option<(Box<AutomationRun>, Lease)>> {
    let QueuedRun { organization_id: organization, run_id, .. } = *message;
    let mut outage = through_outage(deadline);
    let read = outage.through_outages("the reading of a run", || deps.runs.get(organization, run_id)).await;
    let Some(run) = found(read)? else {
        tracing::warn!(run.id = %run_id, "a message is dropped: its run does not exist");
        return Ok(None);
    };
    let now = Timestamp::now().as_millis();
    // A delayed run has a message of its own.
    if run.status.is_over() || run.lease_until.max(run.resume_at).is_some_and(|until| until >= now) {
        return Ok(None);
    }
    if !outage.through_outages("the wait of a run", || waiting::is_over(deps, &run, message)).await? {
        return Ok(None);
    }
    // Each try has a successor, which must not begin tries of its own.
    let successor = QueuedRun { put_off: Some(MOST_PUT_OFF), ..*message };
    // However late the lease begins, it ends before the successor comes.
    let length = || deadline.remaining() + LEASE_RESERVE;
    let wakes_after = (length() + WAKE_RESERVE).min(LONGEST_PAUSE);
    let queued = || async { Ok(deps.queue.send_later(&successor, wakes_after).await?) };
    outage.through_outages("the message for a successor", queued).await?;
    let start = || deps.runs.acquire(organization, run_id, length());
    match outage.through_outages("the start of a run", start).await? {
        AcquiredRun::Ours(run, lease) => Ok(Some((run, lease))),
        AcquiredRun::Busy | AcquiredRun::Over => Ok(None),
    }
}

/// Takes the steps that the time allows, then carries out the verdict.
async fn carry_on(
    deps: &Deps,
    mut run: AutomationRun,
    lease: Lease,
    message: QueuedRun,
    deadline: Deadline,
) -> Result<()> {
    let begun = through_outage(deadline).through_outages("the record of a run", || begin(deps, &run)).await;
    let (verdict, spent) = match begun {
        Ok(ControlFlow::Break(verdict)) => (verdict, run.spent),
        Ok(ControlFlow::Continue(whole)) => {
            let (ended, spent) = take_steps(Held { deps, run: &run, lease: &lease, deadline }, *whole).await;
            if matches!(ended, Ended::Outage(_)) {
                // A step that was saved before the outage has set the count to 0.
                run.attempts =
                    deps.runs.get(run.organization_id, run.id).await.map_or(run.attempts, |row| row.attempts);
            }
            (judge(ended, &run), spent)
        }
        Err(unreadable @ Error::Unreadable { .. }) => (judge(Ended::Outage(unreadable), &run), run.spent),
        Err(error) => return Err(error),
    };
    match verdict {
        Verdict::End(ending, unsaved) => {
            deps.watch.run_ends(&run, ending.status).await;
            end(deps, &run, lease, &ending, unsaved.as_ref(), &spent, false).await?;
        }
        Verdict::EndFailed(ending) => {
            deps.watch.run_ends(&run, RunStatus::Failed).await;
            end(deps, &run, lease, &ending, None, &spent, false).await?;
        }
        Verdict::GiveUp { ending, tells_operator } => {
            end(deps, &run, lease, &ending, None, &spent, true).await?;
            if tells_operator {
                tracing::error!(run.id = %run.id, run.attempts = run.attempts, "a run was given up because of an outage");
                telemetry::run_given_up();
            }
        }
        Verdict::Wait(what) => waiting::wait(deps, &run, lease, what, &message, &spent).await?,
        Verdict::GoOn => {
            lease.release().await?;
            deps.queue.send(&message).await?;
        }
        Verdict::PutOff(pause, outage) => {
            // A second early: clocks differ, and the message must not come before this time.
            let resume_at = Timestamp::now().plus(pause.saturating_sub(Duration::from_secs(1)));
            let is_model = matches!(&outage, Error::Upstream(failed) if failed.service == UpstreamService::Llm);
            let attempts = is_unreadable(&outage).then(|| run.attempts.saturating_sub(1));
            deps.runs.release_until(lease, (resume_at, attempts), &outage.to_string(), is_model).await?;
            deps.queue.send_later(&message, pause).await?;
        }
        Verdict::Abandon => report_lost(&run),
    }
    Ok(())
}

/// The run's record, or the verdict on a run that must not take a step.
async fn begin(deps: &Deps, run: &AutomationRun) -> Result<ControlFlow<Verdict, Box<WholeRun>>> {
    if let Some(verdict) = before_steps(run) {
        return Ok(ControlFlow::Break(verdict));
    }
    let record = deps.runs.whole(run.organization_id, run.id);
    if exceeds_attempts(run) {
        let record = record.await.inspect_err(|error| tracing::error!(run.id = %run.id, "{}", error::chain(error)));
        return Ok(ControlFlow::Break(given_up(record.ok().as_ref())));
    }
    match waiting::parent_run_over(deps, run).await? {
        Some(verdict) => Ok(ControlFlow::Break(verdict)),
        None => Ok(ControlFlow::Continue(Box::new(record.await?))),
    }
}

fn judge(ended: Ended<Stop>, run: &AutomationRun) -> Verdict {
    if let Ended::Outage(outage) = &ended {
        let (attempts, service, chain) = (run.attempts, outage.upstream_service(), error::chain(outage));
        tracing::warn!(run.id = %run.id, run.attempts = attempts, upstream.service = service, "a run cannot continue now: {chain}");
    }
    decide(ended, run, Timestamp::now())
}

/// Returns the end of the steps, and the usage so far.
async fn take_steps(held: Held<'_>, whole: WholeRun) -> (Ended<Stop>, Spent) {
    match (&whole.plan, &whole.prompt) {
        (Some(_), None) => Box::pin(automation::take_steps(held, whole)).await,
        _ => Box::pin(prompt::take_steps(held, whole)).await,
    }
}
