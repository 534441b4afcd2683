//! Shared code of all benchmarks.

/// Whether figures are wanted: `cargo bench` says so. Under `cargo test` a benchmark does everything once on little data, so
/// that a broken benchmark fails there.
pub(crate) fn measures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}
