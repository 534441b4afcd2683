//! Pauses: the run lets go until a time.

use std::time::Duration;

use serde_json::{Value, json};

use super::{ActionRun, LONGEST_ERROR, Next, with_error};
use crate::{
    automation::{
        definition::steps::{AwaitedEvent, FILLED, LONGEST_WAIT, Wait, WaitUntil, moment},
        expressions::{
            data::Data,
            templates::{Filled, Template, filled_in_within},
            work::{MOST_FILLED_IN, Work},
        },
    },
    cut::cut,
    models::{ActionResult, ActionStatus, RunPause, StepKind, Timestamp},
};

/// Bytes of a moment in a template.
const LONGEST_MOMENT: usize = 1_000;
/// Bytes of the values in the filter of an awaited event.
const LARGEST_FILLED: usize = 20_000;

/// The event that a run begins to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventToAwait {
    pub service: String,
    pub event_type: String,
    /// A condition as JSON text, in which `{{filled[0]}}` is the first of `filled`.
    pub filter: Option<String>,
    /// A list as JSON text.
    pub filled: String,
}

impl<'a> ActionRun<'a> {
    pub(super) fn pause(&self, wait: &Wait, place: String, now: Timestamp) -> Next<'a> {
        let result = self.settled((StepKind::Wait, "wait"), &wait.id, place.clone(), now);
        if let Some(pause) = self.data.pause_at(&place) {
            let event = wait.awaited().and(self.data.event());
            if event.is_none() && pause.until > now {
                return Next::Pause(pause.clone(), None);
            }
            let took = u64::try_from(now.as_millis() - pause.since.as_millis()).unwrap_or_default();
            let result = ActionResult { started_at: pause.since, duration_ms: took, ..result };
            return settled(match (wait.awaited(), event) {
                (None, _) => waited(pause.until, result),
                (Some(_), Some(event)) => ActionResult { output: Some(event.to_string()), ..result },
                (Some(awaited), None) => {
                    let note = Some(format!("No such event came until {}: {}.", pause.until, awaited.in_words()));
                    ActionResult { output: Some(Value::Null.to_string()), note, ..result }
                }
            });
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
        let awaited = match wait.awaited().map(|awaited| self.to_await(awaited)).transpose() {
            Ok(awaited) => awaited.map(Box::new),
            Err(why) => return settled(with_error(ActionStatus::Failed, why, result)),
        };
        if let (true, Some(written)) = (self.data.is_dry_run(), wait.awaited()) {
            let filter = awaited.as_ref().and_then(|awaited| awaited.in_words());
            let filter = filter.map(|filter| format!(" that holds {filter}")).unwrap_or_default();
            let written = written.in_words();
            let note = format!("A dry run does not wait; a run would wait for {written}{filter} until {until}.");
            let note = Some(cut(note, LONGEST_ERROR));
            return settled(ActionResult { note, output: Some(Value::Null.to_string()), ..result });
        }
        if self.data.is_dry_run() {
            let note = Some(format!("A dry run does not wait; a run would go on at {until}."));
            return settled(ActionResult { note, ..waited(until, result) });
        }
        Next::Pause(RunPause { place, since: now, until, trigger_key: None }, awaited)
    }

    fn until(&self, wait: &Wait, now: Timestamp) -> Result<Timestamp, String> {
        let text = match &wait.until {
            WaitUntil::Minutes(minutes) => return Ok(now.plus(Duration::from_secs(minutes * 60))),
            WaitUntil::Event(awaited) => return Ok(now.plus(Duration::from_secs(awaited.timeout * 60))),
            WaitUntil::Moment(text) => text,
        };
        let data = self.data();
        if let Some(lacking) = Template::parse(text).0.lone().and_then(|path| data.lacking(path)) {
            return Err(format!("There is no moment to wait for: {}.", lacking.in_words()));
        }
        let work = Work::of(MOST_FILLED_IN);
        let filled = filled_in_within(&Value::from(text.as_str()), &data, LONGEST_MOMENT, &work)
            .map_err(|unfilled| unfilled.in_words(|| format!("{text} is no moment: it is too long.")))?;
        match filled.value {
            Value::String(written) => moment(&written, self.data.zone())
                .ok_or_else(|| format!("{written} is no moment; write a day or moment of ISO 8601, 2027-01-31T09:00.")),
            other => Err(format!("{other} is no moment; write a day or moment of ISO 8601, 2027-01-31T09:00.")),
        }
    }
}

impl ActionRun<'_> {
    /// With the templates of the filter filled in. Each filled value stands apart from the filter, so it is never read as a
    /// template itself.
    fn to_await(&self, awaited: &AwaitedEvent) -> Result<EventToAwait, String> {
        let data = self.data();
        let mut apart = Apart { filled: Vec::new(), left: LARGEST_FILLED, work: Work::of(MOST_FILLED_IN) };
        let filter = match &awaited.written_filters {
            Some(written) => Some(apart.set(written, &data)?.to_string()),
            None => None,
        };
        let AwaitedEvent { service, event_type, .. } = awaited;
        let filled = Value::Array(apart.filled).to_string();
        Ok(EventToAwait { service: service.clone(), event_type: event_type.clone(), filter, filled })
    }
}

impl EventToAwait {
    /// The filter with its values.
    fn in_words(&self) -> Option<String> {
        let values: Vec<Value> = serde_json::from_str(&self.filled).unwrap_or_default();
        let put_in = |text: String, (place, value): (usize, &Value)| text.replace(&quoted(place), &value.to_string());
        self.filter.clone().map(|filter| values.iter().enumerate().fold(filter, put_in))
    }
}

impl AwaitedEvent {
    fn in_words(&self) -> String {
        format!("{} of {}", self.event_type, self.service)
    }
}

/// The place of a filled value in a filter, as JSON text.
fn quoted(place: usize) -> String {
    format!("\"{}\"", template_of(place))
}

fn template_of(place: usize) -> String {
    format!("{{{{{FILLED}[{place}]}}}}")
}

struct Apart {
    filled: Vec<Value>,
    /// Bytes left for the values.
    left: usize,
    work: Work,
}

impl Apart {
    /// The filter, in which each text with templates became the place of its value.
    fn set(&mut self, value: &Value, data: &Data<'_>) -> Result<Value, String> {
        Ok(match value {
            Value::String(text) if text.contains("{{") => {
                let filled = filled_in_within(value, data, self.left, &self.work).map_err(|unfilled| {
                    unfilled.in_words(|| {
                        format!("It did not wait: the values of its filter have more than {LARGEST_FILLED} bytes.")
                    })
                })?;
                let Filled { value: became, empty } = filled;
                if let Some(empty) = empty.first() {
                    return Err(format!("It did not wait: its filter needs {empty}, and there is no such value."));
                }
                self.left = self.left.saturating_sub(became.to_string().len());
                self.filled.push(became);
                Value::String(template_of(self.filled.len() - 1))
            }
            Value::Array(items) => {
                Value::Array(items.iter().map(|item| self.set(item, data)).collect::<Result<_, _>>()?)
            }
            Value::Object(members) => {
                let set = |(name, value): (&String, &Value)| Ok((name.clone(), self.set(value, data)?));
                Value::Object(members.iter().map(set).collect::<Result<_, String>>()?)
            }
            other => other.clone(),
        })
    }
}

fn settled<'a>(result: ActionResult) -> Next<'a> {
    Next::Settled(Box::new(result))
}

fn waited(until: Timestamp, result: ActionResult) -> ActionResult {
    ActionResult { output: Some(json!({"until": until}).to_string()), ..result }
}
