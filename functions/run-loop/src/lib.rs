//! SQS: carries a run of an automation on, until it is over or the time of this invocation is.
//!
//! A run works on a prompt with tools (`prompt.rs`), or carries out actions (`automation.rs`, `actions.rs`).
//!
//! Whoever takes a run up first puts a message on the queue that wakes a successor in case of its own death. Then it holds a
//! lease on the run's row, and writes every step down under it before the next begins. So it does not matter how often a message
//! comes, and whether its receiver lives: a run that somebody else has, or that is over, is left alone; any other is taken up
//! where its last step left it. The effects of its tools are claimed for the run, and happen once.
//!
//! Each module uses those below it and none above:
//!
//! ```text
//! lib                        one message, from the queue to what becomes of its run
//! automation                 the version of an automation, and its actions or its prompt
//! actions      prompt        actions in their order; a prompt with tools
//! agent                      an action that lets a model work
//! approval     briefing      asking a person; what a model is told
//! waiting                    whether what a run waits for has happened
//! ending       verdict       the end of a run; what is to become of one
//! journal      deps          steps written down; the parts
//! ```

mod actions;
mod agent;
mod approval;
mod automation;
mod briefing;
mod deps;
mod ending;
mod journal;
mod prompt;
mod verdict;
mod waiting;

use std::time::Duration;

use shared::{
    Deadline, Error, Result,
    clients::Service,
    error,
    injection::Ended,
    models::{AutomationRun, QueuedRun, Spent, Timestamp, WholeRun},
    store::{AcquiredRun, Lease},
};

pub use crate::deps::Deps;
use crate::{
    deps::Held,
    ending::{end, report_lost},
    journal::Stop,
    verdict::{LONGEST_PAUSE, Verdict, before_steps, decide, gets_nowhere, given_up},
};

/// A lease outlasts the invocation that holds it, and the message that wakes a successor comes after that.
const LEASE_RESERVE: Duration = Duration::from_secs(10);
const WAKE_RESERVE: Duration = Duration::from_secs(5);

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
        let (ended, spent) = take_steps(Held { deps, run: &run, lease: &lease, deadline }, whole).await;
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

/// How the steps ended, and what the run has used by then.
async fn take_steps(held: Held<'_>, whole: WholeRun) -> (Ended<Stop>, Spent) {
    match (&whole.plan, &whole.prompt) {
        (Some(_), None) => Box::pin(automation::take_steps(held, whole)).await,
        _ => Box::pin(prompt::take_steps(held, whole)).await,
    }
}
