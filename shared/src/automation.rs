//! Automations: the [`Definition`], its [`Diagnostic`]s, and [`Deployment`], which saves it.
//! Definitions are read strictly, then validated against the tools and services they name. [`validate`] does no I/O: the caller
//! reads tools and services first. Validation and runs share the parse trees of templates and conditions. `docs/automations.md`
//! is the reference for authors.

mod action_run;
mod alerts;
mod approval_rules;
mod automation_view;
mod conditions;
mod control;
mod data;
mod definition;
mod deployment;
mod diagnostics;
mod difference;
mod dispatch;
mod duplicates;
mod effect_quota;
mod event_hooks;
mod known;
mod look_up;
mod manual_run;
mod matching;
mod members;
mod parameters;
mod path;
mod pinned_tools;
mod pipedream_triggers;
mod polling;
mod run_data;
mod run_end;
mod run_prompt;
mod run_queue;
mod run_request;
mod run_starter;
mod run_view;
mod schedule_rule;
mod scope;
mod source;
mod templates;
#[cfg(test)]
mod tests;
mod trigger;
mod triggers;
mod validation;
mod values_in_words;
mod watch;
mod whole_run_view;

pub use action_run::{ActionRun, LARGEST_ARGUMENTS, LARGEST_OUTPUT, Next, PlannedAction};
pub use alerts::{AlertHook, Alerts};
pub use approval_rules::{Standing, asking_rule, recipients, standing};
pub use automation_view::{AutomationReader, AutomationView};
pub use conditions::{Clause, Condition, Explained, ExplainedClause, Explanation, Operator, Work};
pub use data::{Data, Lowered, Outputs};
pub use definition::{Action, Body, Definition, LARGEST_DEFINITION, MOST_ACTIONS, OnError, PROMPT_FIELDS};
pub use deployment::{Deployed, DeployedAutomation, Deployment, SeenVersion, at_revision};
pub use diagnostics::{Code, Diagnostic, Diagnostics, MOST_DIAGNOSTICS, Outcome, Report, Severity};
pub use difference::{Change, Difference, Differences, differences};
pub use dispatch::{Dispatch, LARGEST_DATA};
pub use effect_quota::EffectQuota;
pub use event_hooks::EventHooks;
pub use known::{BUILT_IN_FINGERPRINT, Known, KnownService, KnownTool, Preflight, Purpose, UsableTool};
pub use matching::EventFilters;
pub use path::Path;
pub use pinned_tools::{drift, drifted, pinned_tools};
pub use pipedream_triggers::PipedreamTriggers;
pub use polling::{Poll, PolledItem, answered_items, items_together, next_poll};
pub use run_data::RunData;
pub use run_end::{end_what_it_waits_for, report_end};
pub use run_prompt::named_tools;
pub use run_queue::RunQueue;
pub use run_request::{NamedTool, RunRequest};
pub use run_starter::{Requested, RunCause, RunStarter};
pub use run_view::{ERROR_BUDGET, RunView};
pub use schedule_rule::ScheduleRule;
pub use source::SourceAnswer;
pub use templates::{NO_DATA, Template, TooLarge, filled_in, filled_in_within};
pub use trigger::{AGGREGATION_MODES, DAYS, INTERVALS, MISSED, Missed, Polling, TRIGGER_TYPES, Trigger};
pub use triggers::Triggers;
pub use validation::validate;
pub use watch::{MOST_FAILURES, Watch};
pub use whole_run_view::{LARGEST_RUN_VIEW, WholeRunView, whole_run_view};

use crate::ranking;

#[cfg(test)]
thread_local! {
    /// Calls on this thread; a near-name search is the most expensive part of a diagnostic.
    static LOOKED_FOR_NEAR_NAMES: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

fn nearest<'n>(written: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    #[cfg(test)]
    LOOKED_FOR_NEAR_NAMES.with(|count| count.set(count.get() + 1));
    ranking::nearest(written, names, 1).into_iter().next()
}
