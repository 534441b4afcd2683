//! The prompt and the tools that a run's model receives.

use super::run_request::{NamedTool, RunRequest};
use crate::{
    Error, Result,
    catalogue::{BuiltInTools, CatalogueTool},
    error::Problems,
    injection::{FINAL_RESPONSE, system_prompt},
    models::{RunPrompt, ToolRef},
    tool::Unavailable,
};

/// Bytes of the prompt with its tool descriptions, well below DynamoDB's 400 KB per item.
const LARGEST_PROMPT: usize = 300_000;

const NO_HOSTS: &str = "does not apply to this tool, which calls no address that a model chooses; leave it out";

/// The available tools, each under a unique name. Unavailable ones become problems.
///
/// # Errors
/// [`Error::Unreadable`] for a tool written by a newer program.
pub fn named_tools(
    built_in: &BuiltInTools,
    named: &[NamedTool],
    resolved: Vec<Result<CatalogueTool, Unavailable>>,
    problems: &mut Problems,
) -> Result<Vec<CatalogueTool>> {
    let mut found: Vec<CatalogueTool> = Vec::new();
    for (NamedTool { place, tool, allowed_hosts }, resolved) in named.iter().zip(resolved) {
        match resolved {
            Ok(found_tool) => {
                let is_taken = |name: &str| {
                    name == FINAL_RESPONSE || built_in.has(name) || found.iter().any(|other| other.spec().name == name)
                };
                match found_tool.with_free_name(is_taken).restricted_to_hosts(allowed_hosts) {
                    Some(held) => found.push(held),
                    None => problems.add(format!("{place}.allowed_hosts"), NO_HOSTS),
                }
            }
            Err(Unavailable::Unreadable) => {
                return Err(Error::Unreadable { row: "tool", key: tool.to_string() });
            }
            Err(Unavailable::NotFound) if matches!(tool, ToolRef::Service { .. }) => {
                problems.add(place, built_in.unknown());
            }
            Err(why) => problems.add(place, why.for_author()),
        }
    }
    Ok(found)
}

impl RunRequest {
    /// The stored prompt, identical in every request to the model. Reports a problem if it is too large.
    pub fn prompt_with(&self, tools: &[CatalogueTool], problems: &mut Problems) -> RunPrompt {
        let prompt = RunPrompt {
            system_prompt: system_prompt(&self.system_prompt, tools.iter().map(CatalogueTool::spec)),
            prompt: self.prompt.clone(),
            schema: self.schema.clone(),
            tools: tools.iter().map(CatalogueTool::offered).collect(),
        };
        let size = prompt.system_prompt.len() + prompt.prompt.len() + prompt.schema.as_ref().map_or(0, String::len);
        if size > LARGEST_PROMPT {
            let problem = format!("make a prompt of {size} bytes; the limit is {LARGEST_PROMPT}; offer fewer tools");
            problems.add("tools", problem);
        }
        prompt
    }
}
