//! Tools in prompts: the model writes tool calls into its answers, and receives their results.
//!
//! A run can call only the tools in its [`crate::tool::Toolbox`]. The [`FeedbackLoop`] saves every step, so another invocation of
//! `run-loop` can resume the run.

mod built_in;
mod calls;
mod child_runs;
mod current_time;
mod dialogue;
mod feedback;
mod final_response;
mod llm_tools;
mod memory;
mod prompt;
mod read_feed;
mod reply;
mod run_model;
mod signature;
#[cfg(test)]
mod testing;
mod wget;

#[cfg(test)]
pub(crate) use built_in::well_described;
pub use built_in::{built_in_tools, tools_of_runs};
pub use child_runs::{AUTOMATION_ID, CALL_AUTOMATION, LLM_AGENT};
pub use current_time::CurrentTime;
pub use dialogue::Dialogue;
pub use feedback::{Ended, Ending, FeedbackLoop, Journal, Model, is_repeatable};
pub use final_response::{FINAL_RESPONSE, FinalFormat, final_response};
pub use llm_tools::LlmAccess;
pub use prompt::{system_prompt, tool_prompt};
#[doc(hidden)]
pub use read_feed::entries_of_feed;
pub use read_feed::{FEED_ENTRIES, FEED_ENTRY_ID, READ_FEED, described_read_feed, read_feed};
pub use tool_calls as parser;
pub use wget::Wget;
#[doc(hidden)]
pub use wget::text_of_page;
