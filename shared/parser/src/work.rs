//! What linear time is held by: the tests count the bytes that were looked at, for a clock would say something else each time.

#[cfg(test)]
thread_local! {
    static LOOKED_AT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// That so many bytes are looked at.
#[cfg(test)]
pub(crate) fn look_at(bytes: usize) {
    LOOKED_AT.set(LOOKED_AT.get() + bytes);
}

#[cfg(not(test))]
#[inline]
pub(crate) const fn look_at(_bytes: usize) {}

/// How many bytes were looked at by this thread so far.
#[cfg(test)]
pub(crate) fn looked_at() -> usize {
    LOOKED_AT.get()
}
