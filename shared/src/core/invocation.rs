//! The current invocation, to which cached reads belong.
//!
//! A process may sleep between requests, so values that decide whose key is used are cached only for the invocation that read
//! them (docs/adr/0024-keys-hold-at-once.md).

use std::time::Instant;

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static BEGAN: Instant;
}

/// Runs the work of one invocation, which begins now.
pub fn run<F: Future>(work: F) -> TaskLocalFuture<Instant, F> {
    BEGAN.scope(Instant::now(), work)
}

/// Runs work that continues after the answer's head was sent, as part of the same invocation.
pub async fn rejoin<F: Future>(began: Option<Instant>, work: F) -> F::Output {
    match began {
        Some(began) => BEGAN.scope(began, work).await,
        None => work.await,
    }
}

/// The start of the current invocation; `None` outside of one, where nothing is cached.
pub fn began() -> Option<Instant> {
    BEGAN.try_with(|began| *began).ok()
}
