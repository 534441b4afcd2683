//! Switchboard on one machine: a local AWS, the functions' programs, and stand-ins for the services outside.
//!
//! [`Stack::start`] starts all of it, for the program `local` (`make run`) and for the end-to-end test.

use std::path::PathBuf;

pub mod arguments;
pub mod catalogue;
pub mod cors;
pub mod demo;
pub mod http_api;
pub mod lambda;
pub mod ports;
pub mod report;
pub mod stack;
pub mod standins;

mod aws;
mod command;
mod deploy;
mod error;
mod function_logs;
mod identity;
mod llm_service;
mod lock;
mod ministack;
mod programs;
mod progress;
mod python;
mod seed;
mod state_files;
mod streaming;
mod workspace;

pub use error::{Error, Result};
pub use llm_service::LlmService;
pub use ports::Ports;
pub use programs::TARGETS_OF_TESTS;
pub use progress::Progress;
pub use stack::{Options, Stack};

/// `target/local` of this repository.
///
/// # Errors
/// If the repository of this program no longer exists.
pub fn default_state_dir() -> Result<PathBuf> {
    Ok(workspace::Workspace::find()?.path("target/local"))
}
