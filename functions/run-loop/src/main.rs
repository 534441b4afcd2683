//! SQS: continues a run of an automation.

shared::main!(shared::queue::serve, run_loop::Deps::new, run_loop::handle);
