//! The code that Switchboard's functions share.
//!
//! Imports go one way: `functions -> platform -> http, queue -> agent_tools -> automation, planner -> injection ->
//! discovery -> catalogue -> connections, execution -> lifecycle -> actions -> tool -> accounts -> store, clients ->
//! redaction -> models, backoff -> cut, ranking, described, error`.

extern crate self as shared; // the macros of `declare` name it

pub mod accounts;
pub mod actions;
pub mod agent_tools;
pub mod automation;
pub mod backoff;
pub mod catalogue;
pub mod chat;
pub mod clients;
pub mod config;
pub mod connections;
pub mod cut;
pub mod deadline;
pub mod described;
pub mod discovery;
pub mod error;
pub mod execution;
pub mod fields;
pub mod http;
pub mod injection;
pub mod invocation;
pub mod json_schema;
pub mod lifecycle;
pub mod models;
pub mod placeholder;
pub mod planner;
pub mod platform;
pub mod queue;
pub mod ranking;
pub mod redaction;
pub mod schedule;
pub mod store;
pub mod telemetry;
pub mod tool;
pub mod webhooks;

pub use deadline::Deadline;
pub use error::{Error, Result};
pub use platform::Platform;
pub use store::idempotency;
