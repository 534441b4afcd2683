//! The stand-ins against what the services say of themselves: their examples, their errors, their signatures.

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
