//! Stand-ins for the services the project talks to: VAPI, Twilio, Pipedream, an OpenAI-compatible LLM, a company's CRM, a web
//! site, and Google's keys and pushes.
//!
//! They refuse what the real services refuse, keep what they received and can be told to fail. Each runs on a thread and a
//! runtime of its own, holds all its state itself and ends, connections included, when its [`Standin`] is dropped.
//!
//! Control routes, on every stand-in and without credentials:
//!
//! | route | does |
//! |---|---|
//! | `GET /requests` | what was received, in order of arrival: `[{method, path, query, headers, body, at, status}]` |
//! | `DELETE /requests` | forgets it |
//! | `PUT /faults` | replaces the faults to come by one [`Fault`] or a list of them |
//! | `GET /faults`, `DELETE /faults` | the faults not used up yet; drops them |

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
mod record;
mod server;

pub use fault::{DropAt, Effect, Fault};
pub use record::Recorded;
pub use server::Standin;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The guarded value, also after a thread panicked while it held the lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
