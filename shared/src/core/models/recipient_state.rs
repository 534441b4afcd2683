//! The state of a message for one recipient.

use serde::{Deserialize, Serialize};

use crate::described::Described;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum RecipientState {
    /// The message was sent now.
    Sent,
    /// An earlier execution sent the same message. It is not sent again.
    AlreadySent,
    /// The message certainly was not sent.
    NotSent,
    /// Possibly sent, and never sent again. Newer states read as this one.
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
