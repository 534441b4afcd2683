//! The present request, message or event: what was read for it counts for it, and for none that comes later.
//!
//! A process that has answered one request may sleep for minutes before the next. Whatever decides whose key is used is therefore
//! remembered no longer than the invocation that read it (docs/adr/0024-keys-hold-at-once.md).

use std::time::Instant;

use tokio::task::futures::TaskLocalFuture;

tokio::task_local! {
    static BEGAN: Instant;
}

/// Does the work of one invocation, which begins now.
pub fn run<F: Future>(work: F) -> TaskLocalFuture<Instant, F> {
    BEGAN.scope(Instant::now(), work)
}

/// Work that goes on when the present invocation has given its head of an answer: it belongs to it still.
pub async fn going_on<F: Future>(began: Option<Instant>, work: F) -> F::Output {
    match began {
        Some(began) => BEGAN.scope(began, work).await,
        None => work.await,
    }
}

/// When the present invocation began; `None` outside of any, where nothing is remembered.
pub fn began() -> Option<Instant> {
    BEGAN.try_with(|began| *began).ok()
}
