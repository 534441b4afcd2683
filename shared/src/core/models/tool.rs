//! An organization's tool, as stored.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    AsyncResult, Confirm, IfCallOver, KnowledgeBaseId, OrganizationId, Speech, SpokenAtStart, Timestamp, ToolId,
    ToolName,
};
use crate::{described::Described, names::Names};

/// The only property of a tool without arguments, because VAPI requires one. Its value is dropped.
pub const NO_ARGUMENTS: &str = "no_arguments";

/// Beside the model's arguments in a call by VAPI: the call's data and our token. No argument of a model can have this name.
pub const CALL_METADATA: &str = "metadata";

/// Clients use a second spelling of some types; `externalApp` is the former name of `pipedream_action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Described, Names)]
#[serde(rename_all = "snake_case")]
pub enum ToolType {
    Sms,
    #[serde(alias = "apiRequest")]
    ApiRequest,
    #[serde(alias = "externalApp")]
    PipedreamAction,
    #[serde(alias = "transferCall")]
    TransferCall,
    PlaceCall,
    Query,
}

crate::described!(Tool => {"$ref": "#/components/schemas/Tool"});

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tool {
    pub id: ToolId,
    pub name: ToolName,
    pub label: String,
    pub description: Option<String>,
    pub organization_id: OrganizationId,
    /// VAPI's id of the tool; null for a tool that only runs on call start.
    pub external_tool_id: Option<String>,
    #[serde(rename = "type")]
    pub kind: ToolType,
    /// Shown to the model: `{name, description, parameters}`.
    pub function_schema: Value,
    /// Hidden from the model, with its variables unresolved.
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
    /// VAPI's object, its token masked; empty for a tool that only runs on call start.
    #[serde(default)]
    pub data: Value,
    /// The secret with the configuration's masked values (`actions::SecretValues`). Never shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values_secret: Option<String>,
    /// Whether callers hear a sentence at the start, unless the configuration says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spoken_at_start: Option<SpokenAtStart>,
    /// The knowledge base whose attaching made this tool, which is deleted with its last agent.
    pub automatic_for: Option<KnowledgeBaseId>,
    /// Counts edits; an edit of an older version is a conflict.
    #[serde(default)]
    pub version: u64,
    /// The version of the last change of behavior; absent in rows of older programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<Unchanged>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Valid for `version` only: an older program may have edited the tool since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unchanged {
    pub version: u64,
    pub since: u64,
}

const BESIDE_THE_BINDING: [&str; 10] = [
    "label",
    "description",
    "repeatable",
    "limits",
    "chat",
    "redact",
    "speech",
    "async_result",
    "if_call_over",
    "confirm",
];

impl Tool {
    /// The last change of name, parameters or behavior, to which automations are bound.
    pub fn bound_version(&self) -> u64 {
        self.unchanged.filter(|unchanged| unchanged.version == self.version).map_or(self.version, |since| since.since)
    }

    /// Whether the behavior is unchanged since that version.
    pub fn behaves_as_in_version(&self, version: u64) -> bool {
        (self.bound_version()..=self.version).contains(&version)
    }

    /// Whether a field of the configuration does not change the behavior of a call.
    pub fn is_beside_the_binding(field: &str) -> bool {
        BESIDE_THE_BINDING.contains(&field)
    }

    /// Continues the version count of the previous row.
    pub fn continue_version_of(&mut self, before: &Self) {
        self.version += 1;
        let since = if self.binding() == before.binding() { before.bound_version() } else { self.version };
        self.unchanged = Some(Unchanged { version: self.version, since });
    }

    /// Automatic where it is unreadable.
    pub fn speech(&self) -> Speech {
        self.configured("speech")
    }

    pub fn async_result(&self) -> AsyncResult {
        self.configured("async_result")
    }

    pub fn if_call_over(&self) -> Option<IfCallOver> {
        self.configured("if_call_over")
    }

    pub fn confirms(&self) -> Option<Confirm> {
        self.configured("confirm")
    }

    fn configured<T: DeserializeOwned + Default>(&self, name: &str) -> T {
        self.config_metadata.get(name).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
    }

    fn binding(&self) -> Value {
        let mut config = self.config_metadata.clone();
        if let Some(config) = config.as_object_mut() {
            config.retain(|name, _| !Self::is_beside_the_binding(name));
        }
        let parameters = self.function_schema.get("parameters");
        json!([self.name, self.kind, parameters, self.static_config, config, self.values_secret])
    }
}

const fn attachable() -> bool {
    true
}
