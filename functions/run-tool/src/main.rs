//! SQS: runs one queued tool.

shared::main!(shared::queue::serve, run_tool::Deps::new, run_tool::handle);
