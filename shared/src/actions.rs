//! What a tool is: its configuration, what of it the model sees, what stays hidden, and what happens when it is called.
//!
//! [`ToolConfig`] is what a person edits. From it come the `function_schema` (the arguments a model fills in) and the
//! `static_config` (what the model must never see). At execution the two meet again: what the schema declares is let
//! through ([`ActionTool::check`]), each [`Parameter`] gives its value with the static one winning, and the type's own file acts.

mod action_tool;
mod allowed_hosts;
pub mod api_request;
mod config;
mod limits;
mod parameter;
mod parameters;
pub mod pipedream_action;
pub mod query;
mod run;
mod schema;
mod secret_values;
pub mod service_request;
pub mod sms;
pub mod token;
pub mod transfer_call;
pub mod variables;

pub use action_tool::{ActionTool, CheckArguments, Part};
pub use config::{Action, ToolConfig};
pub use parameter::Parameter;
pub use run::{Attempt, Services, preview, run, told};
pub use secret_values::SecretValues;
pub use token::ToolTokens;
pub use variables::to_liquid;

/// How long VAPI waits for a tool, in seconds: `timeoutSeconds` of the tools we make there.
pub const VAPI_WAITS_SECONDS: u32 = 20;

/// Within which we answer it, so that the model gets our sentence and not VAPI's time-out.
pub const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(18);
