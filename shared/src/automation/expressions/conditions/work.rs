//! A bound on the comparisons of many conditions together.

use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

pub(in crate::automation) trait Meter {
    /// The error of an exceeded limit.
    type Over;

    /// # Errors
    /// If fewer than `bytes` are left; then none are consumed.
    fn take(&self, bytes: usize) -> Result<(), Self::Over>;
}

/// Bytes left for comparisons.
#[derive(Debug)]
pub struct Work {
    left: AtomicUsize,
}

/// The comparison exceeds the limit.
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

/// For the conditions of one run, which have no limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct NoBound;

impl Meter for NoBound {
    type Over = Infallible;

    fn take(&self, _bytes: usize) -> Result<(), Infallible> {
        Ok(())
    }
}
