//! Counts bytes read, so that tests can prove linear time without a clock.

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn look_at(bytes: usize) {
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
}

#[cfg(not(test))]
#[inline]
pub(crate) const fn look_at(_bytes: usize) {}

/// Bytes read by this thread so far.
#[cfg(test)]
pub(crate) fn looked_at() -> usize {
    LOOKED_AT.get()
}
