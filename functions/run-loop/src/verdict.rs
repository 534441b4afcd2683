//! Decides what happens to a run after an invocation's steps, without effects.

use std::time::Duration;

use shared::{
    Error,
    clients::UpstreamService,
    injection::{Ended, Ending},
    models::{ActionResult, ActionStatus, AutomationRun, CallOutcome, RunCall, RunStatus, Timestamp, WholeRun},
    store::Waits,
};

use crate::journal::{Stop, UnsavedSteps};

/// Attempts without a single step.
pub(crate) const MOST_ATTEMPTS: u32 = 5;

/// Seconds before the next attempt; they double each time.
const PAUSE: u64 = 5;
/// A queue delays a message by 15 minutes at most.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(900);

#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is over. Steps that are not stored yet are written with the end.
    End(Ending, Option<UnsavedSteps>),
    /// It is over, and counts as failed against its automation whatever its status: a `catch` that tells of each failure must
    /// not keep the automation from being paused.
    EndFailed(Ending),
    /// It is over because of an outage, ours or a vendor's, which does not count against its automation.
    GiveUp {
        ending: Ending,
        /// Repeated attempts have not helped, and the outage is no affair of the organization's.
        tells_operator: bool,
    },
    /// It continues in another invocation, at once.
    GoOn,
    /// It continues after a pause, because of an outage.
    PutOff(Duration, Error),
    /// It waits for an approval or for another run.
    Wait(Waits),
    /// Another invocation continues it.
    Abandon,
}

/// The verdict on a run that must not take a step.
pub(crate) fn before_steps(run: &AutomationRun) -> Option<Verdict> {
    run.cancel_requested_at.map(|_| Verdict::End(cancelled(), None))
}

/// Whether a run is given up after too many attempts without a step.
pub(crate) fn exceeds_attempts(run: &AutomationRun) -> bool {
    run.attempts > MOST_ATTEMPTS
}

/// Ends a run that makes no progress. The sentence says that recorded steps happened and that begun ones may have, because a
/// new run would repeat them. `None`: the record could not be read.
pub(crate) fn given_up(record: Option<&WholeRun>) -> Verdict {
    let told = format!("The run was taken up {MOST_ATTEMPTS} times in a row without getting on");
    let look = "look at its steps before you start it again, because a new run does everything again";
    let sentence = match record.map(|record| (done(record), may_have_begun(record))) {
        Some((0, false)) => format!("{told}, and has done nothing; start it again."),
        Some((0, true)) => format!("{told}. Steps of it may have happened; {look}."),
        Some((done, begun)) => {
            let steps = if done == 1 { "One of its steps is done" } else { "Some of its steps are done" };
            let also = if begun { ", and further ones may have happened" } else { "" };
            format!("{told}. {steps}{also}; {look}.")
        }
        None => format!("{told}. Something of it may have happened; {look}."),
    };
    Verdict::GiveUp { ending: Ending::failed(sentence), tells_operator: true }
}

/// Recorded steps that may have had an effect.
fn done(record: &WholeRun) -> usize {
    let acted = |action: &&ActionResult| matches!(action.status, ActionStatus::Succeeded | ActionStatus::Unknown);
    let called = |call: &&RunCall| matches!(call.outcome, CallOutcome::Succeeded | CallOutcome::Failed);
    let calls = record.replies.iter().flat_map(|reply| &reply.calls).filter(called).count();
    record.actions.iter().filter(acted).count() + calls
}

/// Whether an unrecorded step may have begun: calls in an answer without a reply, or the next action.
fn may_have_begun(record: &WholeRun) -> bool {
    record.answers.len() > record.replies.len() || (record.prompt.is_none() && record.plan.is_some())
}

/// The verdict after a run's loop.
pub(crate) fn decide(ended: Ended<Stop>, run: &AutomationRun, now: Timestamp) -> Verdict {
    match ended {
        Ended::Over(ending) => Verdict::End(ending, None),
        Ended::OutOfTime => Verdict::GoOn,
        Ended::Stopped(Stop::CancelRequested(step)) => Verdict::End(cancelled(), Some(step)),
        Ended::Stopped(Stop::LeaseLost) => Verdict::Abandon,
        Ended::Stopped(Stop::Waits(waits)) => Verdict::Wait(waits),
        Ended::Stopped(Stop::GivenUp { ending, by_platform }) => {
            Verdict::GiveUp { ending, tells_operator: by_platform }
        }
        Ended::Stopped(Stop::FailedButForCatches(ending)) => Verdict::EndFailed(ending),
        Ended::Stopped(Stop::Withdrawn(why)) => Verdict::End(Ending { error: Some(why), ..cancelled() }, None),
        Ended::Stopped(Stop::Drifted(reason)) => Verdict::End(Ending::failed(reason), None),
        Ended::Stopped(Stop::OverBudget(over)) => {
            let error = Some(format!("The run stopped: {over}."));
            Verdict::End(Ending { status: RunStatus::CostLimit, result: None, error }, None)
        }
        Ended::Outage(outage) => {
            let tells_operator = run.attempts > 1 && !is_of_own_llm(&outage);
            if run.attempts >= MOST_ATTEMPTS && !is_unreadable(&outage) {
                return Verdict::GiveUp { ending: Ending::failed(outage.to_string()), tells_operator };
            }
            let pause = if is_unreadable(&outage) { until_readable(run, now) } else { pause(&outage, run.attempts) };
            if now.plus(pause) < ends_at(run) {
                return Verdict::PutOff(pause, outage);
            }
            let error = Some(format!("The run's time was over before it could go on: {outage}"));
            Verdict::GiveUp { ending: Ending { status: RunStatus::TimeLimit, result: None, error }, tells_operator }
        }
    }
}

pub(crate) fn ends_at(run: &AutomationRun) -> Timestamp {
    run.time_from.or(run.started_at).unwrap_or(run.created_at).plus(Duration::from_secs(run.limits.seconds))
}

pub(crate) const fn cancelled() -> Ending {
    Ending { status: RunStatus::Cancelled, result: None, error: None }
}

/// Whether only another version of the program can continue the run. Such an attempt does not count.
pub(crate) const fn is_unreadable(outage: &Error) -> bool {
    matches!(outage, Error::Unreadable { .. })
}

/// An organization's own gateway is its own affair.
fn is_of_own_llm(outage: &Error) -> bool {
    matches!(outage, Error::Upstream(failed) if failed.service == UpstreamService::Llm && !failed.of_platform)
}

/// The pause before another version may be here: a part of the time that is left.
fn until_readable(run: &AutomationRun, now: Timestamp) -> Duration {
    let left = u64::try_from(ends_at(run).as_millis() - now.as_millis()).unwrap_or_default();
    Duration::from_millis(left / 4).clamp(Duration::from_secs(2 * PAUSE), LONGEST_PAUSE)
}

/// The pause before the next attempt: longer each time, and at least as long as the vendor asks for.
fn pause(outage: &Error, attempts: u32) -> Duration {
    let asked = match outage {
        Error::Upstream(upstream) => upstream.retry_after(),
        _ => None,
    };
    let own = Duration::from_secs(PAUSE << attempts.min(MOST_ATTEMPTS));
    asked.map_or(own, |asked| asked.max(own)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use shared::{
        clients::{self, Failure},
        error::OverBudget,
        models::{OrganizationId, RunAnswer, RunId, RunLimits},
    };

    use super::*;

    const NOW: &str = "2026-11-20T16:20:52.123Z";

    fn run(changes: &Value) -> AutomationRun {
        let mut row = json!({
            "id": RunId::generate(), "organization_id": OrganizationId::generate(), "trigger_type": "manual",
            "status": "running", "limits": RunLimits { seconds: 60, ..RunLimits::default() }, "attempts": 1,
            "created_at": NOW, "started_at": NOW, "updated_at": NOW, "expires_at": 0,
        });
        row.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        serde_json::from_value(row).unwrap()
    }

    fn outage() -> Ended<Stop> {
        Ended::Outage(Error::Unavailable("the database", "throttled".into()))
    }

    fn decided(ended: Ended<Stop>, run: &AutomationRun, seconds: u64) -> Verdict {
        decide(ended, run, NOW.parse::<Timestamp>().unwrap().plus(Duration::from_secs(seconds)))
    }

    #[test]
    fn a_run_that_is_cancelled_or_gets_nowhere_takes_no_step() {
        let attempted = |attempts: u32| run(&json!({"attempts": attempts}));
        assert!(before_steps(&attempted(MOST_ATTEMPTS)).is_none() && !exceeds_attempts(&attempted(MOST_ATTEMPTS)));
        assert!(exceeds_attempts(&attempted(MOST_ATTEMPTS + 1)));
        let stuck = given_up(None);
        let Verdict::GiveUp { ending, tells_operator: true } = stuck else { panic!("{stuck:?}") };
        assert_eq!(ending.status, RunStatus::Failed);
        assert!(ending.error.is_some_and(|error| error.contains("may have happened")));
        let cancelled = before_steps(&run(&json!({"cancel_requested_at": NOW, "attempts": 9})));
        let Some(Verdict::End(ending, None)) = cancelled else { panic!("{cancelled:?}") };
        assert_eq!((ending.status, ending.error), (RunStatus::Cancelled, None));
    }

    #[test]
    fn an_outage_puts_a_run_off_for_longer_each_time_until_it_is_given_up() {
        for (attempts, seconds) in [(1, 10), (2, 20), (3, 40)] {
            let verdict = decided(outage(), &run(&json!({"attempts": attempts})), 0);
            assert!(
                matches!(verdict, Verdict::PutOff(pause, _) if pause == Duration::from_secs(seconds)),
                "{verdict:?}"
            );
        }
        let last = run(&json!({"attempts": MOST_ATTEMPTS}));
        let Verdict::GiveUp { ending, tells_operator: true } = decided(outage(), &last, 0) else {
            panic!("it is given up")
        };
        let said = ending.error.as_deref();
        assert_eq!((ending.status, said), (RunStatus::Failed, Some("the database is unavailable, try again")));
    }

    #[test]
    fn an_unreadable_row_puts_a_run_off_until_its_time_is_over_and_counts_against_nobody() {
        let unreadable = || Ended::Outage(Error::Unreadable { row: "tool", key: "tell".to_owned() });
        let limits = RunLimits { seconds: 21_600, ..RunLimits::default() };
        let run = run(&json!({"attempts": MOST_ATTEMPTS, "limits": limits}));
        for (passed, pause) in [(0, 900), (20_000, 400), (21_580, 10)] {
            let verdict = decided(unreadable(), &run, passed);
            assert!(matches!(verdict, Verdict::PutOff(after, _) if after == Duration::from_secs(pause)), "{verdict:?}");
        }
        let verdict = decided(unreadable(), &run, 21_590);
        let Verdict::GiveUp { ending, .. } = verdict else { panic!("its time is over: {verdict:?}") };
        assert_eq!(ending.status, RunStatus::TimeLimit);
    }

    #[test]
    fn a_run_whose_time_would_be_over_after_the_pause_ends_now() {
        let run = run(&json!({}));
        assert!(matches!(decided(outage(), &run, 49), Verdict::PutOff(..)));
        let verdict = decided(outage(), &run, 50);
        let Verdict::GiveUp { ending, tells_operator: false } = verdict else { panic!("{verdict:?}") };
        assert_eq!(ending.status, RunStatus::TimeLimit);
        assert!(ending.error.unwrap().starts_with("The run's time was over before it could go on: the database"));
    }

    #[test]
    fn the_operator_hears_of_the_platforms_llm_after_a_second_attempt_and_of_no_organizations_own() {
        for (of_platform, attempts, tells) in [(true, 1, false), (true, 2, true), (true, 5, true), (false, 5, false)] {
            let mut failed = clients::Error::new(UpstreamService::Llm, Failure::NoAnswer);
            failed.of_platform = of_platform;
            let verdict = decided(Ended::Outage(failed.into()), &run(&json!({"attempts": attempts})), 59);
            let Verdict::GiveUp { tells_operator, .. } = verdict else { panic!("{verdict:?}") };
            assert_eq!(tells_operator, tells, "{of_platform} {attempts}");
        }
    }

    #[test]
    fn the_journal_decides_the_verdict() {
        let run = run(&json!({}));
        assert!(matches!(decided(Ended::Stopped(Stop::LeaseLost), &run, 0), Verdict::Abandon));
        assert!(matches!(decided(Ended::OutOfTime, &run, 0), Verdict::GoOn));
        let over = OverBudget {
            budget: "own_cost_per_month",
            limit: 5.into(),
            until: NOW.to_owned(),
            retry_after: 1,
            next_step: "wait until then",
        };
        let Verdict::End(ending, None) = decided(Ended::Stopped(Stop::OverBudget(over)), &run, 0) else {
            panic!("there is no money for it")
        };
        assert_eq!((ending.status, ending.result), (RunStatus::CostLimit, None));
        assert!(ending.error.unwrap().contains("own_cost_per_month of 5 is used up until 2026-11-20"));
        let answer: RunAnswer =
            serde_json::from_value(json!({"step": 1, "text": "", "started_at": NOW, "duration_ms": 1})).unwrap();
        let stop = Stop::CancelRequested(UnsavedSteps::Answer(answer));
        let Verdict::End(ending, Some(UnsavedSteps::Answer(answer))) = decided(Ended::Stopped(stop), &run, 0) else {
            panic!("the step is written with the end")
        };
        assert_eq!((ending.status, answer.step), (RunStatus::Cancelled, 1));
    }
}
