//! References to tools in runs, automations and plans.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AllowedHosts, ToolId};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ToolRef {
    /// By name; such tools change with the program.
    BuiltIn(String),
    /// An organization's tool at a version; without one the current version.
    Organization { id: ToolId, version: Option<u64> },
    /// A service's tool by name and fingerprint; without one its current form.
    Service { name: String, fingerprint: Option<String> },
}

impl fmt::Display for ToolRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BuiltIn(name) | Self::Service { name, .. } => f.write_str(name),
            Self::Organization { id, .. } => id.fmt(f),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredOffer", into = "StoredOffer")]
pub struct OfferedTool {
    pub name: String,
    pub tool: ToolRef,
    /// The fields of arguments and results that its author marked as hidden at that version.
    pub redact: Vec<String>,
    pub allowed_hosts: AllowedHosts,
}

impl OfferedTool {
    /// A tool without host restrictions and hidden fields.
    pub fn new(name: impl Into<String>, tool: ToolRef) -> Self {
        Self { name: name.into(), tool, redact: Vec::new(), allowed_hosts: AllowedHosts::default() }
    }

    pub fn of_front_end(name: &str) -> Self {
        Self::new(name, ToolRef::BuiltIn(name.to_owned()))
    }
}

/// The form in a run's row.
#[declare::skip_serializing_none]
#[derive(Serialize, Deserialize)]
struct StoredOffer {
    name: String,
    /// Absent for a built-in tool.
    tool_id: Option<ToolId>,
    version: Option<u64>,
    service_tool: Option<String>,
    fingerprint: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    redact: Vec<String>,
    #[serde(default, skip_serializing_if = "AllowedHosts::is_empty")]
    allowed_hosts: AllowedHosts,
}

impl From<StoredOffer> for OfferedTool {
    fn from(stored: StoredOffer) -> Self {
        let StoredOffer { name, tool_id, version, service_tool, fingerprint, redact, allowed_hosts } = stored;
        let tool = match (tool_id, service_tool) {
            (Some(id), _) => ToolRef::Organization { id, version },
            (None, Some(name)) => ToolRef::Service { name, fingerprint },
            (None, None) => ToolRef::BuiltIn(name.clone()),
        };
        Self { name, tool, redact, allowed_hosts }
    }
}

impl From<OfferedTool> for StoredOffer {
    fn from(OfferedTool { name, tool, redact, allowed_hosts }: OfferedTool) -> Self {
        let (tool_id, version, service_tool, fingerprint) = match tool {
            ToolRef::BuiltIn(_) => (None, None, None, None),
            ToolRef::Organization { id, version } => (Some(id), version, None, None),
            ToolRef::Service { name, fingerprint } => (None, None, Some(name), fingerprint),
        };
        Self { name, tool_id, version, service_tool, fingerprint, redact, allowed_hosts }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_offer_is_read_as_every_version_wrote_it() {
        let id = ToolId::generate();
        let read = |row| serde_json::from_value::<OfferedTool>(row).unwrap();
        let built_in = read(json!({"name": "wget", "version": 0}));
        assert_eq!(built_in.tool, ToolRef::BuiltIn("wget".into()));
        let row = json!({"name": "send", "tool_id": id, "version": 3, "redact": ["text"]});
        let own = read(row.clone());
        assert_eq!((own.tool.clone(), own.redact.len()), (ToolRef::Organization { id, version: Some(3) }, 1));
        assert_eq!(serde_json::to_value(own).unwrap(), row);
        let row = json!({"name": "post", "service_tool": "slack_post_message", "fingerprint": "ab"});
        assert_eq!(serde_json::to_value(read(row.clone())).unwrap(), row);
        let row = json!({"name": "wget", "allowed_hosts": ["a.example"]});
        assert_eq!(serde_json::to_value(read(row.clone())).unwrap(), row);
        assert!(built_in.allowed_hosts.is_empty());
        // A restriction that cannot be read is an error.
        assert!(serde_json::from_value::<OfferedTool>(json!({"name": "wget", "allowed_hosts": 7})).is_err());
    }
}
