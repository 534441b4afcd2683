//! Tools: their types, execution, sources, discovery, and their copies at VAPI.

pub mod accounts;
pub mod actions;
pub mod catalogue;
pub mod connections;
pub mod discovery;
pub mod execution;
pub mod lifecycle;
pub mod receipts;
pub mod spoken_claims;
pub mod tool;
pub mod webhooks;
