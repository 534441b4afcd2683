//! One warning for each budget and process: an LLM that reports no cost counts as free.

use std::sync::atomic::{AtomicBool, Ordering};

use super::Usage;
use crate::models::Budget;

#[derive(Default)]
pub(super) struct MissingCost {
    platform: AtomicBool,
    own: AtomicBool,
}

impl MissingCost {
    pub(super) fn check(&self, usage: Usage, on_own_key: bool) {
        let warned = if on_own_key { &self.own } else { &self.platform };
        if usage.cost.is_none() && !warned.swap(true, Ordering::Relaxed) {
            let budget = Budget::of_cost(on_own_key).as_str();
            tracing::warn!(budget, "an LLM reports tokens without usage.cost: its answers count as free");
        }
    }
}
