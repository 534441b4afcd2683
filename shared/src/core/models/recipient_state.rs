//! The state of a message for one recipient.

use serde::{Deserialize, Serialize};

use crate::{described::Described, names::Names};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
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
