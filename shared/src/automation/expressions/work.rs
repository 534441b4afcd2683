//! A bound on the work of conditions and templates. A byte of work takes about a nanosecond of a whole processor.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

/// Bytes that one condition may compare, unless its caller shares a bound among several.
pub const MOST_COMPARED: usize = 100_000_000;
/// Bytes that the templates of one step may read.
pub const MOST_FILLED_IN: usize = 500_000_000;
/// Cost of parsing a template, per byte.
pub(super) const PARSING: usize = 8;
/// Minimal cost of a value: a short one may be compared as a number or a date.
const LEAST_OF_A_VALUE: usize = 32;

#[derive(Debug)]
pub struct Work {
    left: AtomicUsize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverBound;

impl Work {
    pub const fn of(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }

    /// # Errors
    /// If fewer than `bytes` are left; then none are consumed.
    pub(in crate::automation) fn take(&self, bytes: usize) -> Result<(), OverBound> {
        let rest = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).map(drop).map_err(|_left| OverBound)
    }
}

/// Approximate cost of going through a value, in bytes.
pub(super) fn bytes(value: &Value) -> usize {
    LEAST_OF_A_VALUE
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(bytes).sum::<usize>(),
            Value::Object(members) => members.iter().map(|(name, value)| name.len() + bytes(value)).sum::<usize>(),
            _ => 0,
        }
}
