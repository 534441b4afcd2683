//! Stand-ins for VAPI, Twilio, Pipedream, an OpenAI-compatible LLM, a CRM, a web site and Google.
//!
//! They refuse requests as the real services do, record requests, and fail on command. Each runs on its own thread
//! and runtime, holds all its state and ends, connections included, when its [`Standin`] is dropped.
//!
//! Control routes, on every stand-in and without credentials:
//!
//! | route | does |
//! |---|---|
//! | `GET /requests` | received requests in order of arrival: `[{method, path, query, headers, body, at, status}]` |
//! | `DELETE /requests` | deletes the record |
//! | `PUT /faults` | replaces the pending faults by one [`Fault`] or a list |
//! | `GET /faults`, `DELETE /faults` | returns or drops the pending faults |

pub mod crm;
pub mod google;
pub mod llm;
pub mod pipedream;
pub mod site;
pub mod twilio;
pub mod vapi;

mod client;
mod clock;
mod exchange;
mod fault;
mod request_log;
mod server;

pub use fault::{DropAt, Effect, Fault};
pub use request_log::Recorded;
pub use server::Standin;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The guarded value, even if a thread panicked while it held the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
