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

    /// For a first attempt: a third of the remaining time is left for a second one.
    #[must_use]
    pub fn leaving_a_third(self) -> Self {
        self.at_most(self.remaining() * 2 / 3)
    }

    /// This deadline, `reserve` earlier, for work that another step follows.
    #[must_use]
    pub fn reserving(self, reserve: Duration) -> Self {
        Self(self.0.checked_sub(reserve).unwrap_or(self.0))
    }
}
