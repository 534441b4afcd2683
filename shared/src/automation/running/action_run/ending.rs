//! The end of a run of actions: its status, and its failures in a summary.

use serde_json::Value;

use super::{ActionRun, LONGEST_ERROR};
use crate::{
    cut::cut,
    injection::Ending,
    models::{ActionResult, RunStatus, StepKind},
    redaction::{MarkedCall, Transcript},
};

/// Bytes, per action in the run's summary.
const LONGEST_REASON: usize = 200;
/// Failed actions named in the summary.
const MOST_NAMED: usize = 5;
/// Calls remembered for the redaction of the summary, beside those with marks and failures.
const MOST_CALLS: usize = 200;

/// The outcomes so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// Results of tools.
    acted: usize,
    /// Succeeded actions, in a dry run also unsent ones.
    done: usize,
    /// Of those, actions of a `catch`.
    done_in_catch: usize,
    failures: usize,
    own_failures: usize,
    /// Place and reason of the first failures.
    named: Vec<(String, String)>,
    /// Marks, arguments and result of calls, for redaction.
    calls: Vec<(Vec<String>, Option<Value>, Value)>,
}

impl Tally {
    pub(super) fn saw(&mut self, result: &ActionResult, output: Option<&Value>) {
        self.acted += 1;
        let may_be_named = result.error.is_some() && self.named.len() < MOST_NAMED;
        if self.calls.len() < MOST_CALLS || !result.redact.is_empty() || may_be_named {
            let arguments = result.arguments.as_deref().and_then(|text| serde_json::from_str(text).ok());
            self.calls.push((result.redact.clone(), arguments, output.cloned().unwrap_or_default()));
        }
    }

    pub(super) fn succeeded(&mut self, in_catch: bool) {
        self.done += 1;
        self.done_in_catch += usize::from(in_catch);
    }

    /// Counts a failed step; returns the reason.
    pub(super) fn failed(&mut self, result: &ActionResult) -> String {
        let why = result.error.clone().unwrap_or_else(|| "it failed".to_owned());
        self.own_failures += usize::from(!result.outage);
        self.acted += usize::from(result.kind != StepKind::Action);
        self.name(result.place(), &why);
        why
    }

    pub(super) fn first_failure(&self) -> Option<String> {
        self.named.first().map(|(_, why)| why.clone())
    }

    /// Adds the outcomes of an item that ran beside others.
    pub(super) fn absorb(&mut self, item: &Self, in_catch: bool) {
        self.acted += item.acted;
        self.done += item.done;
        self.done_in_catch += if in_catch { item.done } else { item.done_in_catch };
        self.own_failures += item.own_failures;
        let may_be_named = item.failures > 0 && self.named.len() < MOST_NAMED;
        for call in &item.calls {
            if self.calls.len() < MOST_CALLS || !call.0.is_empty() || may_be_named {
                self.calls.push(call.clone());
            }
        }
        self.failures += item.failures;
        self.named.extend(item.named.iter().take(MOST_NAMED - self.named.len()).cloned());
    }

    /// The places of the first failures.
    pub(super) fn places(&self) -> Vec<&str> {
        self.named.iter().map(|(place, _)| place.as_str()).collect()
    }

    /// Counts the step that a limit of the run stops.
    pub(super) fn refuse(&mut self, why: &str) {
        self.own_failures += 1;
        self.acted += 1;
        self.name("the next one", why);
    }

    fn name(&mut self, place: &str, why: &str) {
        self.failures += 1;
        if self.named.len() < MOST_NAMED {
            self.named.push((place.to_owned(), why.to_owned()));
        }
    }
}

impl ActionRun<'_> {
    /// Whether something failed, and no action succeeded but those of a `catch`.
    pub const fn failed_but_for_catches(&self) -> bool {
        self.tally.failures > 0 && self.tally.done == self.tally.done_in_catch
    }

    pub const fn failed_by_outages(&self) -> bool {
        self.failed_but_for_catches() && self.tally.own_failures == 0
    }

    pub(super) fn ending(&self) -> Ending {
        let status = match (self.tally.failures, self.tally.done) {
            (0, _) => RunStatus::Completed,
            (_, 0) => RunStatus::Failed,
            _ => RunStatus::PartialFailure,
        };
        Ending { status, result: None, error: self.summary() }
    }

    /// Hides the secrets and marked fields of the results so far.
    pub(in crate::automation::running) fn transcript(&self) -> Transcript {
        Transcript::of(self.tally.calls.iter().map(|(marks, arguments, result)| MarkedCall {
            marks,
            arguments: arguments.as_ref(),
            result,
        }))
    }

    pub(super) fn summary(&self) -> Option<String> {
        let Tally { acted, failures, named, .. } = &self.tally;
        if *failures == 0 {
            return None;
        }
        // The summary is shown where the tools' marks are unknown, so it is redacted here.
        let transcript = self.transcript();
        let shown = |why: &str| cut(transcript.text(why, LONGEST_ERROR), LONGEST_REASON);
        let named: Vec<String> = named.iter().map(|(id, why)| format!("{id} ({})", shown(why))).collect();
        let more = failures.saturating_sub(named.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        // In a loop or a branch the number of actions is known only as far as the run came.
        let is_flat = self.catching.is_none() && !self.steps.iter().any(super::Step::is_nested);
        let all = if is_flat { self.steps.len() } else { *acted };
        let left = self.catching.unwrap_or_else(|| self.left());
        let stopped = match &self.stopped {
            Some(why) if left > 0 => format!(" The last {left} were not started: {why}."),
            _ => String::new(),
        };
        Some(format!("{failures} of {all} actions failed: {}{more}.{stopped}", named.join(", ")))
    }
}
