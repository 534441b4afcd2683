//! The result of a background tool.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::named;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AsyncResult {
    #[default]
    Speak,
    /// The model is told, but says nothing for now.
    Note,
    None,
}

impl AsyncResult {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("must be one of speak, note, none")]
pub struct NotAnAsyncResult;

impl FromStr for AsyncResult {
    type Err = NotAnAsyncResult;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text).ok_or(NotAnAsyncResult)
    }
}
