//! The state of a message for one recipient.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecipientState {
    /// Now.
    Sent,
    /// By an earlier execution; not sent again.
    AlreadySent,
    /// For certain.
    NotSent,
    /// Possibly sent, never sent again. Newer states read as this one.
    #[serde(other)]
    Unknown,
}

impl RecipientState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::AlreadySent => "already_sent",
            Self::NotSent => "not_sent",
            Self::Unknown => "unknown",
        }
    }
}
