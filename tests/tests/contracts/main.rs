//! Contract tests: clients against stand-ins or test servers, and our code against official vectors.

mod agui;
mod agui_clients;
mod call_control;
mod cross_origin;
mod fuzz_corpus;
mod json_schema;
mod llm;
mod llm_client;
mod llm_stream;
mod outbound;
mod pipedream;
mod secrets;
mod tokens;
mod twilio;
mod twilio_signatures;
mod vapi;
mod vapi_lists;
mod webhooks;
mod wget;
