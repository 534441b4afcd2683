//! The lowest layer: rows, errors, settings, fields, schemas, and the hiding of personal data.

pub mod backoff;
pub mod config;
pub mod cut;
pub mod deadline;
pub mod declared;
pub mod described;
pub mod error;
pub mod fields;
pub mod invocation;
pub mod json_schema;
pub mod models;
pub mod names;
pub mod numbering;
pub mod opt_out;
pub mod placeholder;
pub mod ranking;
pub mod redaction;
pub mod telemetry;
