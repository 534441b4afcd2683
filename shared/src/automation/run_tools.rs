//! The tools of a run of an automation: those that its version was checked against, and nothing else.

use std::collections::BTreeMap;

use super::{definition::Definition, known::BUILT_IN_FINGERPRINT};
use crate::{
    Deadline, Result,
    catalogue::{Catalogue, Gone, Resolved, callable_name},
    execution::Executor,
    models::{AutomationVersion, OrganizationId, ToolEffect, ToolRef},
    tool::Toolbox,
};

/// A tool that a version uses, and how it was when it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedTool {
    /// As the definition names it.
    pub name: String,
    pub reference: ToolRef,
}

/// The tools that a version uses, at the versions that were checked. Only a version of an older program must be looked up.
pub async fn pinned_tools(
    catalogue: &Catalogue,
    organization: OrganizationId,
    version: &AutomationVersion,
    definition: &Definition,
) -> Result<Vec<PinnedTool>> {
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
        pinned.push(PinnedTool { name, reference });
    }
    Ok(pinned)
}

/// Tools by the names of a definition, as they can be called now.
#[derive(Default)]
pub struct RunTools {
    pub toolbox: Toolbox,
    /// What their authors marked.
    redact: BTreeMap<String, Vec<String>>,
    effects: BTreeMap<String, ToolEffect>,
    gone: BTreeMap<String, Gone>,
}

impl RunTools {
    /// Looks all of them up at once. In a dry run those that act only show what they would have sent: nothing that could send it
    /// is in the toolbox.
    pub async fn of(
        catalogue: &Catalogue,
        executor: &Executor,
        organization: OrganizationId,
        pinned: &[PinnedTool],
        dry_run: bool,
        deadline: Deadline,
    ) -> Result<Self> {
        let references: Vec<ToolRef> = pinned.iter().map(|pinned| pinned.reference.clone()).collect();
        let resolved = catalogue.resolve(organization, &references, deadline).await?;
        let mut tools = Self::default();
        for (PinnedTool { name, .. }, resolved) in pinned.iter().zip(resolved) {
            match resolved {
                Resolved::Here(found) => {
                    tools.effects.insert(name.clone(), found.spec().effect);
                    let found = found.named(name);
                    tools.redact.insert(name.clone(), found.offered().redact);
                    tools.toolbox.offer(found.for_run(executor, dry_run));
                }
                Resolved::Gone(gone) => {
                    tools.gone.insert(name.clone(), gone);
                }
            }
        }
        Ok(tools)
    }

    /// What its author marked.
    pub fn redact(&self, tool: &str) -> Vec<String> {
        self.redact.get(tool).cloned().unwrap_or_default()
    }

    /// The effect of a tool that can be called and has one.
    pub fn effect(&self, tool: &str) -> Option<ToolEffect> {
        self.effects.get(tool).copied().filter(|effect| effect.acts())
    }

    /// Why a tool cannot be called.
    pub fn gone(&self, tool: &str) -> Option<&Gone> {
        self.gone.get(tool)
    }

    /// Why the automation must not go on, if one of its tools is not what it was checked against: a sentence.
    pub fn drift(&self) -> Option<String> {
        self.gone.iter().find_map(|(name, gone)| drift(name, gone))
    }
}

/// What is said of a tool that is not what an automation was checked against; none if it may be again.
pub fn drift(tool: &str, gone: &Gone) -> Option<String> {
    let what = match gone {
        Gone::NotFound => "is not there any more, or is switched off",
        Gone::Changed => "has changed since the automation was activated",
        Gone::NeedsCall(_) | Gone::NotConnected { .. } | Gone::Unreachable { .. } | Gone::Unreadable => return None,
    };
    Some(format!(
        "The tool {tool} {what}. Read it with fetch_tool_data, save the automation with what it is now, and activate that version."
    ))
}
