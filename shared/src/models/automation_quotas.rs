//! How much an automation may do.

use serde::{Deserialize, Serialize};

/// The limits of an automation, those of the version that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutomationQuotas {
    /// Runs that begin from one full hour to the next.
    pub runs_per_hour: u32,
    /// Calls of tools that change something, in one run.
    pub effects_per_run: u32,
    /// SMS, e-mails and chat messages within a day, UTC.
    pub messages_per_day: u32,
}

impl AutomationQuotas {
    pub const HIGHEST: Self = Self { runs_per_hour: 10_000, effects_per_run: 1_000, messages_per_day: 10_000 };
}

impl Default for AutomationQuotas {
    fn default() -> Self {
        Self { runs_per_hour: 1_000, effects_per_run: 100, messages_per_day: 500 }
    }
}
