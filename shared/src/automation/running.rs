//! Runs of automations: their requests, actions, tools, views and ends.

pub(super) mod action_run;
pub(super) mod approval_rules;
pub(super) mod called_run;
pub(super) mod effect_quota;
pub(super) mod manual_run;
pub(super) mod pinned_tools;
pub(super) mod retry;
pub(super) mod run_data;
pub(super) mod run_end;
pub(super) mod run_prompt;
pub(super) mod run_queue;
pub(super) mod run_request;
pub(super) mod run_starter;
pub(super) mod run_view;
pub(super) mod whole_run_view;
