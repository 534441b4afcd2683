//! Tests the stand-ins against the services' own examples, errors and signatures.

mod client;
mod import;
mod llm;
mod pipedream;
mod server;
mod twilio;
mod vapi;
mod vapi_calls;
mod vapi_control;
mod vapi_incoming;
