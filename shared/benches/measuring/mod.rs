//! What all benchmarks share.

/// Whether figures are wanted: `cargo bench` says so. Under `cargo test` a benchmark does everything once and on little, so that
/// one that no longer works fails there.
pub(crate) fn measures() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}
