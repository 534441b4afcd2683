//! Pauses: the run lets go until a time.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ActionRun, Next, with_error};
use crate::{
    automation::{
        definition::steps::{LONGEST_WAIT, Wait, WaitUntil, moment},
        expressions::templates::{Template, Unfilled, filled_in_within},
    },
    models::{ActionResult, ActionStatus, RunPause, StepKind, Timestamp},
};

/// Bytes of a moment in a template.
const LONGEST_MOMENT: usize = 1_000;

impl<'a> ActionRun<'a> {
    pub(super) fn pause(&self, wait: &Wait, place: String, now: Timestamp) -> Next<'a> {
        let result = self.settled((StepKind::Wait, "wait"), &wait.id, place.clone(), now);
        if let Some(RunPause { since, until, .. }) = self.data.pause_at(&place).cloned() {
            if until > now {
                return Next::Pause(RunPause { place, since, until });
            }
            let took = u64::try_from(now.as_millis() - since.as_millis()).unwrap_or_default();
            return settled(ActionResult { started_at: since, duration_ms: took, ..waited(until, result) });
        }
        let result = match self.unless_held(wait.condition.as_ref(), result) {
            Ok(result) => result,
            Err(skipped) => return Next::Settled(skipped),
        };
        let until = match self.until(wait, now) {
            Ok(until) => until,
            Err(why) => return settled(with_error(ActionStatus::Failed, why, result)),
        };
        if until <= now {
            let note = Some(format!("It did not wait: {until} was over."));
            return settled(ActionResult { note, ..waited(until, result) });
        }
        if until > now.plus(Duration::from_secs(LONGEST_WAIT * 60)) {
            let why = format!(
                "{until} is more than 30 days away, the longest pause; let a schedule start an automation then."
            );
            return settled(with_error(ActionStatus::Failed, why, result));
        }
        if self.data.is_dry_run() {
            let note = Some(format!("A dry run does not wait; a run would go on at {until}."));
            return settled(ActionResult { note, ..waited(until, result) });
        }
        Next::Pause(RunPause { place, since: now, until })
    }

    fn until(&self, wait: &Wait, now: Timestamp) -> Result<Timestamp, String> {
        let text = match &wait.until {
            WaitUntil::Minutes(minutes) => return Ok(now.plus(Duration::from_secs(minutes * 60))),
            WaitUntil::Moment(text) => text,
        };
        let data = self.data();
        if let Some(lacking) = Template::parse(text).0.lone().and_then(|path| data.lacking(path)) {
            return Err(format!("There is no moment to wait for: {}.", lacking.in_words()));
        }
        match filled_in_within(&Value::from(text.as_str()), &data, LONGEST_MOMENT) {
            Ok(Value::String(written)) => moment(&written, self.data.zone())
                .ok_or_else(|| format!("{written} is no moment; write a day or moment of ISO 8601, 2027-01-31T09:00.")),
            Ok(other) => Err(format!("{other} is no moment; write a day or moment of ISO 8601, 2027-01-31T09:00.")),
            Err(Unfilled::Expression(why)) => Err(why),
            Err(Unfilled::TooLarge) => Err(format!("{text} is no moment: it is too long.")),
        }
    }
}

fn settled<'a>(result: ActionResult) -> Next<'a> {
    Next::Settled(Box::new(result))
}

fn waited(until: Timestamp, result: ActionResult) -> ActionResult {
    ActionResult { output: Some(json!({"until": until}).to_string()), ..result }
}
