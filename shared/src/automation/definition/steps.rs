//! The steps of an automation: calls of tools, and the loops and branches around them.
//!
//! A step is known by its field: `for_each` makes a loop, `choose` a branch, anything else is a call of a tool. Ids are unique in
//! the whole definition. Names of outputs are unique where they can be seen: a loop's are its own, and the branches of one choice
//! may share them, because only one of them runs.

mod reader;
mod same_time;

use jiff::tz::TimeZone;
use serde_json::Value;

pub(in crate::automation::definition) use self::{reader::StepReader, same_time::check_same_time};
use super::{Action, OnError};
use crate::{
    automation::expressions::{conditions::Condition, filters::moment_in},
    models::{Timestamp, folded_name},
};

/// How many steps may be around a step.
pub const DEEPEST_STEPS: usize = 4;
pub const MOST_ITEMS: u64 = 1_000;
pub const MOST_AT_ONCE: u64 = 5;
/// In minutes: 30 days.
pub const LONGEST_WAIT: u64 = 30 * 24 * 60;

#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Action(Action),
    ForEach(ForEach),
    Choose(Choose),
    Wait(Wait),
}

/// A loop: its actions run for each item of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ForEach {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub id: String,
    /// A template, or a list of values.
    pub list: Value,
    /// The item's name in the loop's actions.
    pub item: String,
    /// A template that identifies an item; otherwise its content does.
    pub key: Option<String>,
    pub steps: Vec<Step>,
    pub max_items: usize,
    /// Items that run at the same time.
    pub at_once: usize,
    /// After an item that failed.
    pub on_error: OnError,
    pub output_as: Option<String>,
    pub condition: Option<Condition>,
    /// Run if the loop or one of its items failed.
    pub catch: Vec<Step>,
}

/// A choice: the first branch whose condition holds runs, else `otherwise`.
#[derive(Debug, Clone, PartialEq)]
pub struct Choose {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub id: String,
    pub branches: Vec<Branch>,
    pub otherwise: Vec<Step>,
    /// Run if the choice or an action of its branch failed.
    pub catch: Vec<Step>,
}

/// A pause, during which the run costs nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Wait {
    /// JSON pointer into the definition.
    pub pointer: String,
    pub id: String,
    pub until: WaitUntil,
    /// Of an awaited event.
    pub output_as: Option<String>,
    pub condition: Option<Condition>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum WaitUntil {
    Minutes(u64),
    /// A day or moment of ISO 8601, or a template for one.
    Moment(String),
    Event(Box<AwaitedEvent>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct AwaitedEvent {
    pub service: String,
    pub event_type: String,
    pub filters: Option<Condition>,
    pub written_filters: Option<Value>,
    /// Minutes.
    pub timeout: u64,
}

impl AwaitedEvent {
    /// Service and event, spelled as in the key of a trigger.
    pub fn key(&self) -> (String, String) {
        (folded_name(&self.service), self.event_type.trim().to_lowercase())
    }
}

impl Wait {
    pub fn awaited(&self) -> Option<&AwaitedEvent> {
        match &self.until {
            WaitUntil::Event(awaited) => Some(awaited),
            WaitUntil::Minutes(_) | WaitUntil::Moment(_) => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Branch {
    pub when: Condition,
    pub steps: Vec<Step>,
}

impl Step {
    pub fn pointer(&self) -> &str {
        match self {
            Self::Action(action) => &action.pointer,
            Self::ForEach(each) => &each.pointer,
            Self::Choose(choose) => &choose.pointer,
            Self::Wait(wait) => &wait.pointer,
        }
    }

    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Action(action) => action.id.as_deref(),
            Self::ForEach(each) => Some(&each.id),
            Self::Choose(choose) => Some(&choose.id),
            Self::Wait(wait) => Some(&wait.id),
        }
    }

    pub fn output_as(&self) -> Option<&str> {
        match self {
            Self::Action(action) => action.output_as.as_deref(),
            Self::ForEach(each) => each.output_as.as_deref(),
            Self::Wait(wait) => wait.output_as.as_deref(),
            Self::Choose(_) => None,
        }
    }

    /// The lists of steps within this one.
    pub fn inner(&self) -> Vec<&[Self]> {
        match self {
            Self::Action(action) => vec![&action.catch],
            Self::Wait(_) => Vec::new(),
            Self::ForEach(each) => vec![&each.steps, &each.catch],
            Self::Choose(choose) => {
                let branches = choose.branches.iter().map(|branch| branch.steps.as_slice());
                branches.chain([choose.otherwise.as_slice(), &choose.catch]).collect()
            }
        }
    }

    /// Run if it failed.
    pub fn catch(&self) -> &[Self] {
        match self {
            Self::Action(action) => &action.catch,
            Self::ForEach(each) => &each.catch,
            Self::Choose(choose) => &choose.catch,
            Self::Wait(_) => &[],
        }
    }

    /// Whether it has other results than that of one call of a tool.
    pub const fn is_nested(&self) -> bool {
        match self {
            Self::Action(action) => !action.catch.is_empty(),
            _ => true,
        }
    }
}

/// All steps at any depth, each before the steps within it.
pub(in crate::automation) fn all_steps(steps: &[Step]) -> Vec<&Step> {
    let mut found = Vec::new();
    for step in steps {
        found.push(step);
        for inner in step.inner() {
            found.extend(all_steps(inner));
        }
    }
    found
}

/// All calls of tools, at any depth.
pub fn all_actions(steps: &[Step]) -> impl Iterator<Item = &Action> {
    all_steps(steps).into_iter().filter_map(|step| match step {
        Step::Action(action) => Some(action),
        Step::ForEach(_) | Step::Choose(_) | Step::Wait(_) => None,
    })
}

/// Outputs that later steps can name after these steps, with the ids of their steps. Those within a loop are not among them.
pub(in crate::automation) fn outputs_of(steps: &[Step]) -> Vec<(&str, &str)> {
    let mut outputs = Vec::new();
    for step in steps {
        outputs.extend(step.output_as().map(|name| (name, step.id().unwrap_or("?"))));
        if let Step::Choose(choose) = step {
            for branch in choose.branches.iter().map(|branch| &branch.steps).chain([&choose.otherwise]) {
                outputs.extend(outputs_of(branch));
            }
        }
    }
    outputs
}

/// The name of the failure in a `catch`.
pub(in crate::automation) const ERROR: &str = "error";

/// The name of the filled values in the stored filter of a wait.
pub(in crate::automation) const FILLED: &str = "filled";

/// As [`moment_in`]; spaces may surround the text.
pub(in crate::automation) fn moment(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    moment_in(text.trim(), zone).map(|at| Timestamp::from_millis(at.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_in_brackets_comes_before_that_of_the_run() {
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        for (text, at) in [
            ("2027-01-31T09:00[America/New_York]", "2027-01-31T14:00:00Z"),
            ("2027-01-31[America/New_York]", "2027-01-31T05:00:00Z"),
            (" 2027-01-31T09:00 ", "2027-01-31T08:00:00Z"),
            ("2027-01-31", "2027-01-30T23:00:00Z"),
            ("2027-01-31T09:00-05:00[America/New_York]", "2027-01-31T14:00:00Z"),
        ] {
            assert_eq!(moment(text, &berlin), at.parse().ok(), "{text}");
        }
        assert_eq!(moment("2027-01-31T09:00[Mars/Base]", &berlin), None);
    }
}
