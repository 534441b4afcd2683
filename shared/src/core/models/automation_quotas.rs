//! Limits of an automation.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AutomationQuotas {
    pub runs_per_hour: u32,
    /// Calls of acting tools in one run.
    pub effects_per_run: u32,
    /// SMS, e-mails and chat messages in a UTC day.
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
