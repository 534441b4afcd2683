//! How often a tool may run.

use serde::{Deserialize, Serialize};

/// A tool's limits, each 1 to [`Limits::HIGHEST`]; one that is absent limits nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Runs in one conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_call: Option<u32>,
    /// Runs by everybody from one full hour to the next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
}

impl Limits {
    pub const HIGHEST: u32 = 10_000;

    pub const fn none(&self) -> bool {
        self.per_call.is_none() && self.per_hour.is_none()
    }
}

/// Which limit is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    PerCall,
    PerHour,
    PerDay,
}

impl Limit {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerCall => "per_call",
            Self::PerHour => "per_hour",
            Self::PerDay => "per_day",
        }
    }
}
