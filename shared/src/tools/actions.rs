//! Tools of organizations: configuration, model-visible schema, hidden values and execution.
//!
//! An author edits the [`ToolConfig`]. It yields the `function_schema` (the arguments a model fills in) and the `static_config`
//! (hidden from the model). Execution joins both: [`ActionTool::check`] admits the declared arguments, each [`Parameter`] yields
//! its value, where the static one wins, and the type's own file acts.

mod action_tool;
mod allowed_hosts;
pub mod api_request;
mod config;
mod content_type;
mod hours;
mod limits;
mod no_request;
mod parameter;
mod parameters;
pub mod pipedream_action;
pub mod place_call;
pub mod query;
mod refusal;
mod run;
mod schema;
mod secret_values;
pub mod service_request;
mod signed;
pub mod sms;
pub mod token;
pub mod transfer_call;
pub mod variables;
pub mod voice_tokens;

pub use action_tool::{ActionTool, CheckArguments, EffectPart};
pub use config::{ToolAction, ToolConfig};
pub use parameter::Parameter;
pub use run::{ActionCall, ActionClients, Attempt, find_again, preview, run, told};
pub use secret_values::SecretValues;
pub use token::ToolTokens;
pub use variables::to_liquid;

/// Seconds. VAPI's time-out for a tool: `timeoutSeconds` of the tools we create there.
pub const VAPI_WAITS_SECONDS: u32 = 20;

/// Our own time-out, shorter than VAPI's, so that the model gets our error rather than VAPI's.
pub const ANSWER_WITHIN: std::time::Duration = std::time::Duration::from_secs(18);

/// The same while only the record of an outcome is waited for.
pub const ANSWER_AT_LATEST: std::time::Duration = std::time::Duration::from_secs(19);
