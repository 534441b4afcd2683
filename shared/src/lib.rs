//! The code that Switchboard's functions share.
//!
//! Imports go one way: `functions -> platform -> entry -> authoring_tools -> automation, chat -> injection -> tools -> store ->
//! clients -> core`. Modules of the folders `core`, `tools` and `entry` are named without their folder.

extern crate self as shared; // the macros of `declare` name it

pub mod authoring_tools;
pub mod automation;
pub mod chat;
pub mod clients;
mod core;
mod entry;
pub mod injection;
pub mod platform;
pub mod store;
mod tools;

pub use self::core::{
    backoff, config, cut, deadline, declared, described, error, fields, invocation, json_schema, models, names,
    numbering, opt_out, placeholder, ranking, redaction, telemetry,
};
pub use chat::planner;
pub use entry::{direct_invocation, http, queue};
pub use tools::{
    accounts, actions, catalogue, connections, discovery, execution, lifecycle, receipts, spoken_claims, tool, webhooks,
};

pub use deadline::Deadline;
pub use error::{Error, Result};
pub use platform::Platform;
pub use store::idempotency;
