//! The usage of a model by a run.

use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

use crate::described::Described;

#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, Described)]
#[serde(default)]
pub struct Spent {
    pub iterations: u32,
    pub calls: u32,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Prompt tokens from the provider's cache.
    pub cached_tokens: u64,
    pub cost: f64,
}

impl Spent {
    pub const fn tokens(&self) -> u64 {
        self.prompt_tokens + self.completion_tokens
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, more: Self) {
        self.iterations += more.iterations;
        self.calls += more.calls;
        self.prompt_tokens += more.prompt_tokens;
        self.completion_tokens += more.completion_tokens;
        self.cached_tokens += more.cached_tokens;
        self.cost += more.cost;
    }
}

impl Sub for Spent {
    type Output = Self;

    fn sub(self, less: Self) -> Self {
        Self {
            iterations: self.iterations - less.iterations,
            calls: self.calls - less.calls,
            prompt_tokens: self.prompt_tokens - less.prompt_tokens,
            completion_tokens: self.completion_tokens - less.completion_tokens,
            cached_tokens: self.cached_tokens - less.cached_tokens,
            cost: self.cost - less.cost,
        }
    }
}
