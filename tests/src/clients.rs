//! What the contract tests of all clients share: addresses, time limits, fixtures, and what a failure is called.

use std::{net::SocketAddr, path::Path, time::Duration};

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

/// An address at which nobody listens: bound until the process ends, so that no server of another test is given it.
pub fn nowhere() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(anywhere()).unwrap();
    let address = socket.local_addr().unwrap();
    std::mem::forget(socket);
    format!("http://{address}")
}

/// Enough for every retry, also on a busy machine.
pub fn ample() -> Deadline {
    Deadline::after(Duration::from_secs(30))
}

/// Over long before a delayed answer comes; enough for the request to arrive, also on a busy machine.
pub fn short() -> Deadline {
    Deadline::after(Duration::from_secs(1))
}

/// A delay, in milliseconds, that outlasts [`short`] by far.
pub const LATE: u64 = 60_000;

/// A file of `tests/fixtures`; `ORIGIN.md` there says where it comes from.
pub fn fixture(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The failure in one word, with its status: what a table of expectations compares.
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
    }
}

/// What the service said, as far as it is kept for the log.
pub fn excerpt(error: &Error) -> &str {
    match &error.failure {
        Failure::Rejected { excerpt, .. } | Failure::Broken { excerpt, .. } | Failure::Undecodable(excerpt) => excerpt,
        _ => "",
    }
}

/// Waits as long as it takes: the test runner stops a test that waits for ever.
pub async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
