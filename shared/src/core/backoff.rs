//! Pauses between attempts.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use crate::{Deadline, Error, Result, error};

/// Exponential pauses with jitter, until a deadline.
pub struct Backoff {
    pauses: ExponentialBackoff,
    deadline: Deadline,
}

impl Backoff {
    /// Pauses of `first`, doubled each time up to `longest`; jitter adds at most as much again.
    pub fn new(first: Duration, longest: Duration, deadline: Deadline) -> Self {
        Self::at_most(usize::MAX, first, longest, deadline)
    }

    /// As [`Backoff::new`], with a limit on the number of pauses.
    pub fn at_most(pauses: usize, first: Duration, longest: Duration, deadline: Deadline) -> Self {
        let builder = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest).with_jitter();
        let builder = if pauses == usize::MAX { builder.without_max_times() } else { builder.with_max_times(pauses) };
        Self { pauses: builder.build(), deadline }
    }

    /// Waits before the next attempt. False, at once, if no attempt is left or the deadline comes first.
    pub async fn pause(&mut self) -> bool {
        self.pause_for(None).await
    }

    /// As [`Backoff::pause`]; `asked` is the pause a service asked for (`Retry-After`), in place of ours.
    pub async fn pause_for(&mut self, asked: Option<Duration>) -> bool {
        let pause = self.pauses.next().map(|pause| asked.unwrap_or(pause));
        self.wait(pause).await
    }

    /// As [`Backoff::pause`], and not shorter than a service asked for.
    pub async fn pause_at_least(&mut self, asked: Option<Duration>) -> bool {
        let pause = self.pauses.next().map(|pause| pause.max(asked.unwrap_or_default()));
        self.wait(pause).await
    }

    /// Repeats `attempt` while an outage fails it and a pause is left.
    pub async fn through_outages<T, F>(&mut self, what: &str, attempt: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        loop {
            match attempt().await {
                Err(outage) if is_passing(&outage) && self.pause().await => {
                    tracing::warn!("{what} is tried again: {}", error::chain(&outage));
                }
                done => return done,
            }
        }
    }

    async fn wait(&self, pause: Option<Duration>) -> bool {
        let Some(pause) = pause else { return false };
        if pause >= self.deadline.remaining() {
            return false;
        }
        tokio::time::sleep(pause).await;
        true
    }
}

/// A row that this version cannot read stays so.
const fn is_passing(error: &Error) -> bool {
    error.is_outage() && !matches!(error, Error::Unreadable { .. })
}
