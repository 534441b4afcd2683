//! Shared parts of the clients' contract tests: addresses, deadlines, fixtures, and names of failures.

use std::{
    net::SocketAddr,
    panic::Location,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;
use shared::{
    Deadline,
    clients::{Error, Failure},
};
use tokio::net::TcpSocket;

/// Any free port of this machine.
pub fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// An address without a server; it stays bound until the process ends, so no other test's server gets it.
pub fn nowhere() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(anywhere()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    format!("http://{address}")
}

/// Enough for every retry, even on a busy machine.
pub fn ample() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

/// Ends long before a delayed answer, but leaves time for the request to arrive, even on a busy machine.
pub fn short() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

/// A delay in milliseconds, far longer than [`short`].
pub const LATE: u64 = 60_000;

/// A file of `tests/fixtures`; `ORIGIN.md` there names its source.
pub fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The failure's kind and status in one word, for tables of expectations.
pub fn class(error: &Error) -> String {
    match &error.failure {
        Failure::Unreachable => "unreachable".into(),
        Failure::Refused(_) => "refused".into(),
        Failure::NoAnswer => "no answer".into(),
        Failure::BrokenOff => "broken off".into(),
        Failure::RateLimited => match error.retry_after() {
            None => "rate limited".into(),
            Some(wait) => format!("rate limited for {} s", wait.as_secs()),
        },
        Failure::Rejected { status, .. } => format!("rejected {status}"),
        Failure::Broken { status, .. } => format!("broken {status}"),
        Failure::Undecodable(_) => "undecodable".into(),
        Failure::TooLarge(_) => "too large".into(),
    }
}

/// The logged part of the service's answer.
pub fn excerpt(error: &Error) -> &str {
    match &error.failure {
        Failure::Rejected { excerpt, .. } | Failure::Broken { excerpt, .. } | Failure::Undecodable(excerpt) => excerpt,
        _ => "",
    }
}

/// Waits for a state.
///
/// # Panics
/// If it does not come within two minutes.
#[track_caller]
pub fn until(condition: impl Fn() -> bool) -> impl Future<Output = ()> {
    let (caller, begun) = (Location::caller(), Instant::now());
    async move {
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(120), "the state awaited at {caller} did not come");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
