//! A tool, as the table has it.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{KnowledgeBaseId, OrganizationId, Timestamp, ToolId, ToolName, named};

/// The one property of a tool without arguments: VAPI wants at least one. Whatever a model writes into it is dropped.
pub const NO_ARGUMENTS: &str = "no_arguments";

/// What a tool does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolType {
    #[serde(alias = "apiRequest")]
    ApiRequest,
    #[serde(alias = "externalApp")]
    PipedreamAction,
    Query,
    Sms,
    #[serde(alias = "transferCall")]
    TransferCall,
}

#[derive(Debug, thiserror::Error)]
#[error("must be one of sms, api_request, pipedream_action, transfer_call, query")]
pub struct NotAToolType;

impl ToolType {
    /// The one spelling that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ApiRequest => "api_request",
            Self::PipedreamAction => "pipedream_action",
            Self::Query => "query",
            Self::Sms => "sms",
            Self::TransferCall => "transfer_call",
        }
    }
}

impl FromStr for ToolType {
    type Err = NotAToolType;

    /// Some types have a second spelling, which clients use; `externalApp` is what
    /// `pipedream_action` was called before.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        named(text).ok_or(NotAToolType)
    }
}

impl fmt::Display for ToolType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

crate::described! {
    Tool => {"$ref": "#/components/schemas/Tool"},
    ToolType => {"type": "string", "enum": ["sms", "api_request", "pipedream_action", "transfer_call", "query"]},
}

/// A row of `tools`, column by column.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    pub id: ToolId,
    pub name: ToolName,
    pub label: String,
    #[serde(default)]
    pub description: Option<String>,
    pub organization_id: OrganizationId,
    /// VAPI's id of the tool; null for a tool that only runs on call start.
    #[serde(default)]
    pub external_tool_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: ToolType,
    /// What the model sees: `{name, description, parameters}`.
    pub function_schema: Value,
    /// What the model must never see, with its variables still in place.
    #[serde(default)]
    pub static_config: Value,
    /// The whole `ToolConfig`, for editing; `tools::ToolConfig::stored` reads it.
    #[serde(default)]
    pub config_metadata: Value,
    #[serde(default, rename = "async")]
    pub is_async: bool,
    #[serde(default)]
    pub execute_on_call_start: bool,
    #[serde(default = "attachable")]
    pub attach_to_agent: bool,
    /// VAPI's own object, its token masked; empty for a tool that only runs on call start.
    #[serde(default)]
    pub data: Value,
    /// Name of the secret with the values that the configuration only masks (`actions::SecretValues`); absent for a tool
    /// without secrets. It is answered to nobody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_secret: Option<String>,
    /// The knowledge base whose attaching made this tool: it goes when no agent has it any more. Null for a tool that
    /// somebody made.
    #[serde(default)]
    pub automatic_for: Option<KnowledgeBaseId>,
    /// Counts the edits; an edit of an older version is a conflict.
    #[serde(default)]
    pub version: u64,
    /// Since which version the tool does the same; absent in rows that no program wrote that knows of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// It says nothing of another version than `version`: an older program may have edited the tool since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchanged {
    pub version: u64,
    pub since: u64,
}

/// What is written of a configuration for people and models, or holds calls of the tool back: not what a call does.
const BESIDE_THE_BINDING: [&str; 6] = ["label", "description", "repeatable", "limits", "chat", "redact"];

impl Tool {
    /// The version in which its name, its parameters or what carries it out changed last: what an automation's action is bound to.
    pub fn bound_version(&self) -> u64 {
        self.unchanged.filter(|unchanged| unchanged.version == self.version).map_or(self.version, |since| since.since)
    }

    /// Whether a tool that was read at a version still does the same.
    pub fn does_as_in(&self, version: u64) -> bool {
        (self.bound_version()..=self.version).contains(&version)
    }

    /// It is the next version of another one.
    pub fn follows(&mut self, before: &Self) {
        self.version += 1;
        let since = if self.binding() == before.binding() { before.bound_version() } else { self.version };
        self.unchanged = Some(Unchanged { version: self.version, since });
    }

    fn binding(&self) -> Value {
        let mut config = self.config_metadata.clone();
        if let Some(config) = config.as_object_mut() {
            config.retain(|name, _| !BESIDE_THE_BINDING.contains(&name.as_str()));
        }
        let parameters = self.function_schema.get("parameters");
        json!([self.name, self.kind, parameters, self.static_config, config, self.values_secret])
    }
}

const fn attachable() -> bool {
    true
}
