//! A reader that is private otherwise, for `tests/fuzz`.

use serde_json::Value;

use crate::input::{RunInput, thread_and_run};

/// Whether a body asks for a run.
pub fn run_input(body: &Value) -> bool {
    let named = thread_and_run(body, "").is_ok();
    let read = RunInput::read(body, "").is_ok();
    assert!(named || !read, "a run has a thread");
    read
}
