//! The deadline of an invocation's answer.

use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy)]
pub struct Deadline(Instant);

impl Deadline {
    pub fn after(duration: Duration) -> Self {
        Self(Instant::now() + duration)
    }

    /// The remaining time; zero after the deadline.
    pub fn remaining(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    #[must_use]
    pub fn at_most(self, duration: Duration) -> Self {
        Self(self.0.min(Instant::now() + duration))
    }

    /// This deadline, `reserve` earlier, for work that another step follows.
    #[must_use]
    pub fn reserving(self, reserve: Duration) -> Self {
        Self(self.0.checked_sub(reserve).unwrap_or(self.0))
    }
}
