//! Tools in a prompt: an automation's prompt says which tools there are, the model writes calls into its answer, and what came
//! of them goes back, until it gives its final response.
//!
//! A tool is a [`ToolDefinition`]; the registry holds them, and a run can call only what it was offered.

mod definition;
mod wget;

pub use definition::{CallContext, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter};
pub use tool_calls as parser;
pub use wget::wget;
