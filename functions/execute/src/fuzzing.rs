//! A reader that is private otherwise, for `tests/fuzz`.

use serde_json::Value;

use crate::invocation::Invocation;

/// Reads a request of VAPI's to run tools. `None`: it is none. Else the number of tool calls.
pub fn invocation(body: Value) -> Option<usize> {
    Some(Invocation::read(body).ok()?.requested.len())
}
