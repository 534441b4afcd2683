//! Shared test support: a [`World`] per test with real handlers and stand-ins.
//!
//! The handlers run over a real DynamoDB API and the stand-ins of `infra/local`.

#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test says what is wrong and stops"
)]

pub mod agui_client;
pub mod automation;
pub mod aws;
pub mod browser;
pub mod claims;
pub mod clients;
pub mod cross_origin;
pub mod declared;
pub mod event;
pub mod fault_options;
pub mod functions;
pub mod http_server;
pub mod issuer;
pub mod logs;
pub mod measured;
pub mod metrics;
pub mod paced_model;
pub mod page_tables;
mod process;
pub mod programs;
pub mod random;
pub mod secret_names;
pub mod sequential_round_trips;
pub mod streamed;
pub mod template;
pub mod vapi_differences;
pub mod vapi_openapi;
pub mod webhooks;
mod world;

pub use aws::{Aws, Fault, Trouble};
pub use event::{Answer, Event};
pub use local::{catalogue, lambda, standins};
pub use process::Process;
pub use streamed::Streamed;
pub use template::Template;
pub use world::{
    ANOTHER_KEY, OWN_KEYS, Options, PLATFORM_KEY, PROTOCOL, SECOND_PLATFORM_KEY, SLACK_SECRET, SLACK_TENANT, Tenant,
    World, ai_sms, api_request, automation_event, distant_weekday, phone, preemptive_sms, run_input, said,
    slack_action, slack_message, sms_without_call, within_one_hour,
};
