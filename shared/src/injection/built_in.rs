//! Built-in tools, available to every organization.
//!
//! To add one, implement [`CallableTool`] and list it in [`built_in_tools`].

#[cfg(test)]
mod testing;

use std::sync::Arc;

use super::{CurrentTime, LlmAccess, Wget, llm_tools::llm_tools, memory::memory_tools};
use crate::{catalogue::BuiltInTools, clients::Outbound, store::AutomationMemory, tool::CallableTool};

#[cfg(test)]
pub(crate) use self::testing::well_described;

pub fn built_in_tools(outbound: &Outbound) -> BuiltInTools {
    let tools: [Arc<dyn CallableTool>; 2] = [Arc::new(CurrentTime::new()), Arc::new(Wget::new(outbound.clone()))];
    tools.into_iter().collect()
}

/// The tools that runs name; without `access` or `memory`, descriptions only.
pub fn tools_of_runs(access: Option<&LlmAccess>, memory: Option<&AutomationMemory>) -> Vec<Arc<dyn CallableTool>> {
    llm_tools(access).into_iter().chain(memory_tools(memory)).collect()
}
