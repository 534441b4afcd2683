//! Limits of an automation.

use serde::{Deserialize, Serialize};

use crate::described::Described;

/// Limits of the active version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(default)]
pub struct AutomationQuotas {
    #[schema(minimum = 1, maximum = Self::HIGHEST.runs_per_hour)]
    pub runs_per_hour: u32,
    /// Calls of tools that change something.
    #[schema(minimum = 1, maximum = Self::HIGHEST.effects_per_run)]
    pub effects_per_run: u32,
    /// SMS, e-mails, chat messages and placed calls in a UTC day.
    #[schema(minimum = 1, maximum = Self::HIGHEST.messages_per_day)]
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
