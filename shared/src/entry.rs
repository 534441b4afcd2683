//! Entries of an invocation: HTTP requests, batches of a queue, direct invocations.

pub mod direct_invocation;
pub mod http;
pub mod queue;
