//! Builds the first prompt of an automation's model, with the checked tools as they are now.

use shared::{
    Result,
    automation::{NamedTool, RunRequest, drift, named_tools},
    catalogue::CatalogueTool,
    error::Problems,
    models::{OfferedTool, RunPrompt, ToolRef},
};

use crate::deps::Held;

pub(crate) enum Briefing {
    Told(RunPrompt, Vec<CatalogueTool>),
    /// A tool changed since its check; the sentence for people.
    Drifted(String),
}

/// # Errors
/// [`shared::Error::Invalid`] for tools that cannot be offered together, and an outage of ours.
pub(crate) async fn brief(held: Held<'_>, named: &[NamedTool], request: &RunRequest) -> Result<Briefing> {
    let catalogue = &held.deps.catalogue;
    let references: Vec<ToolRef> = named.iter().map(|named| named.tool.clone()).collect();
    let resolved = Box::pin(catalogue.resolve(held.run.organization_id, &references, held.deadline)).await?;
    let drifted = references.iter().zip(&resolved).find_map(|(reference, resolved)| match resolved {
        Err(why) => drift(&reference.to_string(), why),
        Ok(_) => None,
    });
    if let Some(reason) = drifted {
        return Ok(Briefing::Drifted(reason));
    }
    let mut problems = Problems::default();
    let found = named_tools(&catalogue.built_in, named, resolved, &mut problems)?;
    let prompt = request.prompt_with(&found, &mut problems);
    problems.into_result(Some(Briefing::Told(prompt, found)))
}

pub(crate) fn pinned(tools: &[OfferedTool], name: &str) -> Option<ToolRef> {
    tools.iter().find(|tool| tool.name == name).map(|tool| tool.tool.clone())
}
