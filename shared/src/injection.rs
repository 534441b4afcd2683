//! Tools in a prompt: an automation's prompt says which tools there are, the model writes calls into its answer, and what came
//! of them goes back, until it gives its final response.
//!
//! A tool is a [`ToolDefinition`]; the [`ToolRegistry`] holds those there are, and a run can call only what it was offered
//! ([`ToolExecutor`]). The [`FeedbackLoop`] is the same whether it runs in one go ([`use_tools_with_ai`]) or is written down at
//! every step and carried on by somebody else (`run-loop`).

mod ai;
mod built_in;
mod definition;
mod dialogue;
mod executor;
mod feedback;
mod final_response;
mod organization_tools;
mod prompt;
mod registry;
mod reply;
mod signature;
#[cfg(test)]
mod testing;
mod wget;

pub use ai::{AiError, AiResult, LlmModel, WithTools, use_tools_with_ai};
pub use built_in::built_in_tools;
pub use definition::{CallContext, ToolDefinition, ToolImplementation, ToolOutput, ToolParameter};
pub use dialogue::Dialogue;
pub use executor::{CALL_WITHIN, ToolExecutor};
pub use feedback::{Ended, Ending, FeedbackLoop, Flow, Journal, Model};
pub use final_response::{FINAL_RESPONSE, FinalFormat, final_response};
pub use organization_tools::{Carried, DescribedOnly, callable_name, organization_tool};
pub use prompt::{system_prompt, tool_prompt};
pub use registry::{BadDefinition, ToolRegistry};
pub use tool_calls as parser;
pub use wget::wget;
