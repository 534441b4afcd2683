//! How much comparing the conditions of many automations may take together.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Counts the bytes that clauses compare.
pub(in crate::automation) trait Meter {
    /// That there were too many.
    type Over;

    /// # Errors
    /// If there are no more so many left; then none are taken.
    fn take(&self, bytes: usize) -> Result<(), Self::Over>;
}

/// Bytes that may still be compared.
#[derive(Debug)]
pub struct Work {
    left: AtomicUsize,
}

/// Comparing on would take longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::automation) struct OverBound;

impl Work {
    pub const fn of(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }
}

impl Meter for Work {
    type Over = OverBound;

    fn take(&self, bytes: usize) -> Result<(), OverBound> {
        let rest = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest).map(drop).map_err(|_left| OverBound)
    }
}

/// For the conditions of one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoBound;

impl Meter for NoBound {
    type Over = Infallible;

    fn take(&self, _bytes: usize) -> Result<(), Infallible> {
        Ok(())
    }
}
