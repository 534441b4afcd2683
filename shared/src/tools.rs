//! Tools: their types, execution, sources, discovery, and their copies at VAPI.

pub mod accounts;
pub mod actions;
pub mod background_execution;
pub mod catalogue;
pub mod connections;
pub mod discovery;
pub mod execution;
pub mod lifecycle;
pub mod receipts;
pub mod result_variables;
pub mod tool;
pub mod voice_tokens;
pub mod webhooks;
