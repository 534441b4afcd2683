//! A reader that is private otherwise, for `tests/fuzz`.

use serde_json::Value;

use crate::input::{RunInput, thread_and_run};

/// Whether a body names a thread, and whether it asks for a run.
pub fn run_input(body: &Value) -> (bool, bool) {
    (thread_and_run(body, "").is_ok(), RunInput::read(body, "").is_ok())
}
