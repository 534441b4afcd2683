//! Automations: the [`Definition`], its [`Diagnostic`]s, and [`Deployment`], which saves it.
//! Definitions are read strictly, then validated against the tools and services they name. [`validate`] does no I/O: the caller
//! reads tools and services first. Validation and runs share the parse trees of templates and conditions. `docs/automations.md`
//! is the reference for authors.

mod definition;
mod deployment;
mod expressions;
#[doc(hidden)]
pub mod fuzzing;
mod running;
#[cfg(test)]
mod tests;
mod triggers;
mod validation;

pub use definition::diagnostics::{
    CheckReport, CheckResult, Code, Diagnostic, Diagnostics, MOST_DIAGNOSTICS, Severity,
};
pub use definition::schedule::ScheduleRule;
pub use definition::steps::{
    AwaitedEvent, Branch, Choose, DEEPEST_STEPS, ForEach, LONGEST_WAIT, MOST_AT_ONCE, MOST_ITEMS, Step, Wait,
    WaitUntil, all_actions,
};
pub use definition::trigger::{
    AGGREGATION_MODES, DAYS, INTERVALS, MISSED, MOST_CRON_EXPRESSIONS, MOST_EXCLUDED_DAYS, Missed, Polling,
    TRIGGER_TYPES, Trigger,
};
pub use definition::{Action, AutomationBody, Definition, LARGEST_DEFINITION, MOST_ACTIONS, OnError, PROMPT_FIELDS};
pub use deployment::alerts::{AlertHook, Alerts};
pub use deployment::automation_view::{AutomationReader, AutomationView};
pub use deployment::difference::{Difference, DifferenceKind, Differences, differences};
pub use deployment::failure_pause::{FailurePause, MOST_FAILURES, PauseCause};
pub use deployment::{Deployed, DeployedAutomation, Deployment, SeenVersion, Switch, at_revision};
pub use expressions::conditions::{Clause, Condition, Explained, ExplainedClause, Explanation, Operator};
pub use expressions::data::{Data, Lowered, Outputs};
pub use expressions::path::Path;
pub use expressions::templates::{Filled, NO_DATA, Template, Unfilled, filled_in_within};
pub use expressions::work::{MOST_COMPARED, MOST_FILLED_IN, OverBound, Work};
pub use running::action_run::{
    ActionRun, EventToAwait, LARGEST_ARGUMENTS, LARGEST_OUTPUT, MOST_RESULTS, Next, PlannedAction,
};
pub use running::approval_rules::{ApprovalVerdict, approval_verdict, asking_rule, recipients};
pub use running::called_run::{CalledOutputs, DEEPEST_CALLS, ancestors, outputs_of_run};
pub use running::effect_quota::EffectQuota;
pub use running::manual_run::ManualRun;
pub use running::pinned_tools::{drift, drifted, pinned_tools};
pub use running::retry::{Retry, RetryAction, RetryRequest, RetryStep, kept_results};
pub use running::run_data::RunData;
pub use running::run_end::{end_pending_work, report_end};
pub use running::run_prompt::named_tools;
pub use running::run_queue::RunQueue;
pub use running::run_request::{NamedTool, NewRun, RunRequest};
pub use running::run_starter::{RunCause, RunStarter};
pub use running::run_view::{ERROR_BUDGET, RunView};
pub use running::whole_run_view::{LARGEST_RUN_VIEW, WholeRunView, whole_run_view};
pub use triggers::answered_calls::{AnsweredCallQueue, AnsweredCalls};
pub use triggers::dispatch::{Dispatch, LARGEST_DATA};
pub use triggers::ended_calls::{CALLS, EndedCallQueue, EndedCalls};
pub use triggers::event_hooks::EventHooks;
pub use triggers::event_replays::{EventReplays, MOST_REPLAYED, ReplayCause};
pub use triggers::failed_tools::FailedTools;
pub use triggers::matching::EventFilters;
pub use triggers::pipedream_triggers::PipedreamTriggers;
pub use triggers::polling::{Poll, PolledItem, answered_items, items_together, next_poll};
pub use triggers::source::SourceAnswer;
pub use triggers::{SettledTriggers, Triggers};
pub use validation::known::{
    BUILT_IN_FINGERPRINT, CalledAutomation, Known, KnownService, KnownTool, Preflight, Purpose, UsableTool,
};
pub use validation::validate;

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
