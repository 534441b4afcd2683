//! What a run was offered, as it can be called now.

use std::sync::Arc;

use shared::{
    Result,
    injection::{Carried, ToolExecutor, organization_tool},
    models::{OfferedTool, OrganizationId, ToolId},
};

use crate::Deps;

/// The tools under the names by which they were offered. One that was deleted or changed since is not run: the model was told
/// something else.
pub(crate) async fn offered(deps: &Deps, organization: OrganizationId, wanted: &[OfferedTool]) -> Result<ToolExecutor> {
    let ids: Vec<ToolId> = wanted.iter().filter_map(|offered| offered.tool_id).collect();
    let found = if ids.is_empty() { Vec::new() } else { deps.tools.get_many(organization, &ids).await? };
    let mut executor = ToolExecutor::default();
    for OfferedTool { name, tool_id, version, .. } in wanted {
        let Some(id) = tool_id else {
            match deps.registry.get(name) {
                Some(built_in) => executor.offer(built_in.clone()),
                None => executor.gone(name, "this tool is not there any more; do without it."),
            }
            continue;
        };
        match found.iter().find(|tool| tool.id == *id) {
            Some(tool) if tool.version == *version => {
                let carried = Carried { tool: tool.clone(), executor: deps.executor.clone() };
                match organization_tool(tool, name.clone(), Arc::new(carried)) {
                    Ok(definition) => executor.offer(definition),
                    Err(unreadable) => {
                        tracing::warn!(tool.id = %id, "a run does without a tool: {unreadable}");
                        executor.gone(name, "this tool cannot be used just now; do without it.");
                    }
                }
            }
            Some(_) => executor.gone(name, "this tool was changed while the run was under way; do without it."),
            None => executor.gone(name, "this tool was deleted or cannot be used just now; do without it."),
        }
    }
    Ok(executor)
}
