//! Clients of external services, with private wire formats.
//!
//! Vendors share one [`Error`], one HTTP client and one way to send, since HTTP fails in the same ways everywhere.

mod aws;
mod bearer;
pub mod call_control;
mod http_client;
mod jwks;
pub mod llm;
pub mod outbound;
pub mod pipedream;
mod scheduler;
pub mod secrets;
mod sqs;
pub mod twilio;
pub mod vapi;

pub use crate::error::upstream::{Error, Failure, ModelParameter, Reason, StatusEffect, UpstreamService};
pub(crate) use aws::aws_endpoint;
pub use aws::sdk_config;
pub use call_control::CallControl;
pub use http_client::{http_client, segment as path_segment};
pub use jwks::{Jwks, SigningKey};
pub use llm::Llm;
pub use outbound::Outbound;
pub use pipedream::Pipedream;
pub use scheduler::{Scheduler, SchedulerTarget};
pub use secrets::Secrets;
pub use sqs::{Queue, QueueMessage, Unsent};
pub use twilio::Twilio;
pub use vapi::Vapi;
