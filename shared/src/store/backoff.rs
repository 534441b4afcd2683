//! Pauses between two tries, longer each time, until a deadline.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};

use crate::Deadline;

pub(super) struct Backoff {
    pauses: ExponentialBackoff,
    deadline: Deadline,
}

impl Backoff {
    /// Pauses of `first`, doubled each time up to `longest`, each with as much again at most by chance.
    pub(super) fn new(first: Duration, longest: Duration, deadline: Deadline) -> Self {
        let pauses = ExponentialBuilder::default().with_min_delay(first).with_max_delay(longest).with_jitter();
        Self { pauses: pauses.without_max_times().build(), deadline }
    }

    /// Waits before the next try. False, at once, if the deadline comes first.
    pub(super) async fn pause(&mut self) -> bool {
        let Some(pause) = self.pauses.next().filter(|pause| *pause < self.deadline.remaining()) else { return false };
        tokio::time::sleep(pause).await;
        true
    }
}
