//! The organization's own tools in discovery.

use super::listed::{ListedTool, Source};
use crate::{
    Result,
    actions::ActionTool,
    catalogue::callable_name,
    error,
    models::{OrganizationId, Tool},
    store::Tools,
    tool::{Conversation, ToolSpec},
};

pub(super) struct OwnTool {
    pub tool: ActionTool,
    /// The organization's name for it: `send-sms`, callable as `send_sms`.
    pub own_name: String,
    pub label: String,
    pub version: u64,
    pub bound_version: u64,
    pub needs_call: Option<String>,
}

#[derive(Default)]
pub(super) struct OwnTools {
    pub tools: Vec<OwnTool>,
    pub unreadable: usize,
}

impl OwnTool {
    pub(super) fn of_row(row: &Tool) -> Result<Self> {
        let mut tool = ActionTool::of_row(row)?;
        let needs_call = tool.needs_call();
        if needs_call.is_none() {
            tool.spec = tool.spec_in(&Conversation::default());
        }
        tool.spec.name = callable_name(&tool.spec.name);
        Ok(Self {
            tool,
            own_name: row.name.as_str().to_owned(),
            label: row.label.clone(),
            version: row.version,
            bound_version: row.bound_version(),
            needs_call,
        })
    }

    pub(super) fn is_named(&self, name: &str) -> bool {
        self.tool.spec.name.eq_ignore_ascii_case(name) || self.own_name.eq_ignore_ascii_case(name)
    }

    pub(super) fn listed(&self) -> ListedTool {
        let (fingerprint, version) = (fingerprint(self.bound_version), self.version.to_string());
        ListedTool {
            id: Some(self.tool.id),
            title: self.label.clone(),
            needs_call: self.needs_call.clone(),
            ..ListedTool::of_spec(&self.tool.spec, Source::Organization, fingerprint, version)
        }
    }
}

impl OwnTools {
    pub(super) async fn read(tools: &Tools, organization: OrganizationId) -> Result<Self> {
        let mut own = Self::default();
        for row in tools.all(organization).await? {
            match OwnTool::of_row(&row) {
                Ok(tool) => own.tools.push(tool),
                Err(error) => {
                    tracing::error!("a tool is left out: {}", error::chain(&error));
                    own.unreadable += 1;
                }
            }
        }
        Ok(own)
    }
}

/// Required in definitions that use the tool.
pub(super) fn fingerprint(version: u64) -> String {
    format!("v{version}")
}

/// The category of a tool outside the catalogue.
pub(super) const fn category(spec: &ToolSpec) -> &'static str {
    if spec.acts() { "write" } else { "read" }
}
