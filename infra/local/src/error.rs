//! Errors of the local stack and the demo: one sentence each, with the remedy.

use std::{io, path::PathBuf};

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The message of `make-venv`.
    #[error("{0}")]
    Python(String),
    #[error(
        "port {port} of 127.0.0.1, needed for {service}, is taken: end what uses it, or choose others with --port-base"
    )]
    PortTaken { port: u16, service: &'static str },
    #[error("another stack runs with the state directory {}: end it, or choose another with --state-dir", .0.display())]
    StateInUse(PathBuf),
    #[error("cargo is not on the PATH: install Rust from https://rustup.rs and run this again")]
    NoCargo,
    #[error("the build failed; the compiler's messages are above")]
    Build,
    #[error(
        "cargo built no program named `{0}`, although functions/{0} exists: its Cargo.toml must say `name = \"{0}\"`"
    )]
    NoProgram(String),
    #[error("ministack did not start: {last_words} (log: {})", log.display())]
    MinistackEnded { last_words: String, log: PathBuf },
    #[error("ministack did not answer within {seconds} s (log: {})", log.display())]
    MinistackSilent { seconds: u64, log: PathBuf },
    #[error("ministack refused {action}: {status} {message}")]
    Aws { action: String, status: u16, message: String },
    #[error("ministack's answer to {action} has no {field}")]
    AwsAnswer { action: String, field: &'static str },
    #[error("the stack could not be created: {0}")]
    Stack(String),
    #[error("the stack was not complete within {0} s")]
    StackSlow(u64),
    #[error("the catalogue of services was not loaded: {0}")]
    Catalogue(String),
    #[error("infra/local/demo.json: {0}")]
    DemoData(String),
    #[error("the stand-in for {service} did not start: {source}")]
    Standin { service: &'static str, source: io::Error },
    #[error("no answer from {address}: {source}")]
    Http { address: String, source: reqwest::Error },
    #[error("{what}: {source}")]
    File { what: String, source: io::Error },
    #[error("the demo failed: {0}")]
    Demo(String),
    #[error("the local client for HTTP could not be made: {0}")]
    Client(#[source] shared::Error),
    #[error("usage: {0} (see --help)")]
    Usage(String),
}

impl Error {
    /// For `map_err` around file operations: `Error::file("write stack.json")`.
    pub(crate) fn file(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |source| Self::File { what, source }
    }
}
