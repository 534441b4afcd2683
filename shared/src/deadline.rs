//! How long there is left to answer.

use std::time::{Duration, Instant};

/// The moment by which the present invocation must have answered.
#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// Time left; zero when it has passed.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// The earlier of this deadline and `duration` from now.
    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        Self(self.0.min(Instant::now() + duration))
    }

    /// This deadline, `reserve` earlier: what is left for the work when something must follow it.
    #[must_use]
    pub fn reserving(self, reserve: Duration) -> Self {
        Self(self.0.checked_sub(reserve).unwrap_or(self.0))
    }
}
