//! SQS: occurrences of schedules, polls, and events whose filters take long.

shared::main!(shared::queue::serve, schedule::Deps::new, schedule::handle);
