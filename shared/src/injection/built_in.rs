//! The tools that every automation can be offered.

use super::{BadDefinition, ToolRegistry, wget};
use crate::clients::Outbound;

/// # Errors
/// When a definition is not complete: a fault of ours, found when the process starts.
pub fn built_in_tools(outbound: &Outbound) -> Result<ToolRegistry, BadDefinition> {
    let mut registry = ToolRegistry::default();
    registry.register(wget(outbound.clone()))?;
    Ok(registry)
}
