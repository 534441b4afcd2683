//! A bound on the comparisons of conditions. A byte of work takes about a nanosecond of a whole processor.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that one condition may compare, unless its caller shares a bound among several.
pub const MOST_COMPARED: usize = 100_000_000;

/// Bytes left for comparisons.
#[derive(Debug)]
pub struct Work {
    left: AtomicUsize,
}

/// The comparison exceeds the limit.
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
