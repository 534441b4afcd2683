//! The tools of an automation's run: those that its version was checked against.

use crate::{
    Result,
    automation::{definition::Definition, validation::known::BUILT_IN_FINGERPRINT},
    catalogue::{Catalogue, callable_name},
    models::{AutomationVersion, OfferedTool, OrganizationId, ToolRef},
    tool::{Toolbox, Unavailable},
};

/// The tools that a version uses, under the definition's names, at the versions that were checked. Only a version that an older
/// program wrote is looked up.
pub async fn pinned_tools(
    catalogue: &Catalogue,
    organization: OrganizationId,
    version: &AutomationVersion,
    definition: &Definition,
) -> Result<Vec<OfferedTool>> {
    let mut pinned = Vec::new();
    let mut own = None;
    for name in definition.tools().into_keys() {
        let checked = version.checked.get(&name);
        let fingerprint = checked.map(|checked| &checked.fingerprint).or_else(|| definition.fingerprints.get(&name));
        let number = fingerprint.and_then(|fingerprint| fingerprint.strip_prefix('v')?.parse::<u64>().ok());
        let id = checked.and_then(|checked| checked.tool_id).or_else(|| name.parse().ok());
        let reference = match (fingerprint, id, number) {
            (Some(fingerprint), ..) if fingerprint == BUILT_IN_FINGERPRINT => ToolRef::BuiltIn(name.clone()),
            (_, Some(id), number) => ToolRef::Organization { id, version: number },
            (_, None, Some(number)) => {
                if own.is_none() {
                    own = Some(catalogue.tools.all(organization).await?);
                }
                let called = |tool: &&crate::models::Tool| {
                    tool.name.as_str() == name || callable_name(tool.name.as_str()) == name
                };
                match own.iter().flatten().find(called) {
                    Some(tool) => ToolRef::Organization { id: tool.id, version: Some(number) },
                    None => ToolRef::Service { name: name.clone(), fingerprint: fingerprint.cloned() },
                }
            }
            (fingerprint, None, None) => ToolRef::Service { name: name.clone(), fingerprint: fingerprint.cloned() },
        };
        pinned.push(OfferedTool::new(name, reference));
    }
    Ok(pinned)
}

/// Why the automation must not go on, if one of its tools has changed since it was checked.
pub fn drifted(toolbox: &Toolbox) -> Option<String> {
    toolbox.unavailable().find_map(|(name, why)| drift(name, why))
}

/// Why an automation must not go on with this tool; none if the tool may be available again later.
pub fn drift(tool: &str, why: &Unavailable) -> Option<String> {
    let change = match why {
        Unavailable::NotFound => "no longer exists, or is switched off",
        Unavailable::Changed => "has changed since the automation was activated",
        Unavailable::NeedsCall(_)
        | Unavailable::NotConnected { .. }
        | Unavailable::Unreachable { .. }
        | Unavailable::Unreadable
        | Unavailable::Unusable
        | Unavailable::NeedsRole(_) => return None,
    };
    Some(format!(
        "The tool {tool} {change}. Read it with fetch_tool_data, save the automation with its present fingerprint, and activate that version."
    ))
}
