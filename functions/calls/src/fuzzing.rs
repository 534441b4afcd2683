//! A reader that is private otherwise, for `tests/fuzz`.

use serde_json::Value;

use crate::events::news;

/// Whether a message of VAPI's tells something that a call's row takes.
pub fn event(message: &Value) -> bool {
    news(message).is_some()
}
