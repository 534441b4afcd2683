//! Limits on a tool's executions.

use serde::{Deserialize, Serialize};

use crate::names::Names;

/// A tool's limits, each 1 to [`Limits::HIGHEST`]; absent: unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Executions in one conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_call: Option<u32>,
    /// Executions by all callers in a full hour.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_hour: Option<u32>,
}

impl Limits {
    pub const HIGHEST: u32 = 10_000;

    pub const fn none(&self) -> bool {
        self.per_call.is_none() && self.per_hour.is_none()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Names)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    PerCall,
    PerMinute,
    PerHour,
    PerDay,
    PerPersonAndDay,
}
