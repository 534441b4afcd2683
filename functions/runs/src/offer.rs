//! The tools of a run, as they are now: what the model is told of them, and which version of each may be called.

use std::sync::Arc;

use shared::{
    Result,
    error::Problems,
    injection::{DescribedOnly, FINAL_RESPONSE, ToolDefinition, ToolRegistry, callable_name, organization_tool},
    models::{OfferedTool, Tool, ToolId, ToolType},
    redaction::Marks,
};

use crate::wanted::{Named, Which};

/// What a run is offered, in the order in which it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Offer {
    pub(crate) definitions: Vec<ToolDefinition>,
    pub(crate) tools: Vec<OfferedTool>,
}

/// The ids of the organization's tools among these.
pub(crate) fn ids(named: &[Named]) -> Vec<ToolId> {
    let id = |named: &Named| match named.tool {
        Which::Organizations(id) => Some(id),
        Which::BuiltIn(_) => None,
    };
    named.iter().filter_map(id).collect()
}

/// Offers the tools that are named, of which `found` are the organization's; notes which cannot be.
///
/// # Errors
/// When a tool's configuration cannot be read.
pub(crate) fn offer(
    named: &[Named],
    found: &[Tool],
    registry: &ToolRegistry,
    problems: &mut Problems,
) -> Result<Offer> {
    let mut offer = Offer::default();
    for Named { place, tool } in named {
        match tool {
            Which::BuiltIn(name) => {
                offer.definitions.extend(registry.get(name).cloned());
                offer.tools.push(OfferedTool { name: name.clone(), tool_id: None, version: 0, redact: Vec::new() });
            }
            Which::Organizations(id) => match found.iter().find(|tool| tool.id == *id) {
                None => problems.add(place, "is not a tool of this organization"),
                Some(tool) if tool.kind == ToolType::TransferCall => {
                    problems.add(place, "transfers a call, and a run has none; leave it out, or give it to an agent");
                }
                Some(tool) => {
                    let name = free_name(callable_name(tool), |name| {
                        name == FINAL_RESPONSE || registry.has(name) || offer.tools.iter().any(|tool| tool.name == name)
                    });
                    offer.definitions.push(organization_tool(tool, name.clone(), Arc::new(DescribedOnly))?);
                    let redact = Marks::stored(tool).into();
                    offer.tools.push(OfferedTool { name, tool_id: Some(tool.id), version: tool.version, redact });
                }
            },
        }
    }
    Ok(offer)
}

/// The name, or with the first number that makes it one of its own: `send_sms_2`.
fn free_name(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    if !is_taken(&name) {
        return name;
    }
    let numbered = (2_u32..).map(|number| format!("{name}_{number}"));
    numbered.into_iter().find(|name| !is_taken(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_gets_a_number() {
        let taken = ["send", "send_2", "wget"];
        let free = |name: &str| free_name(name.to_owned(), |name| taken.contains(&name));
        assert_eq!((free("send").as_str(), free("wget").as_str(), free("call").as_str()), ("send_3", "wget_2", "call"));
    }
}
