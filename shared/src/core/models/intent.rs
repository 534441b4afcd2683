//! Intents: changes of two systems that have begun.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{
    Actor, AgentId, AutomationId, HookId, IntentId, KeyService, KnowledgeBaseId, OrganizationId, PhoneNumberId,
    SecretId, ServiceId, Timestamp, ToolId, ToolName,
};
use crate::names::Names;

/// A row of `intents`: written before VAPI, Secrets Manager or Scheduler is changed, deleted by the transaction that ends the
/// change. After a crash or an outage `settle` finishes or undoes the change.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Intent {
    pub id: IntentId,
    pub organization_id: OrganizationId,
    #[serde(flatten, deserialize_with = "change_or_unknown")]
    pub change: Change,
    pub created_at: Timestamp,
    /// The end of the owner's time; milliseconds since 1970.
    pub owner_until: i64,
    /// For the audit entries of a change that is completed after a crash.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<Actor>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Names)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    CreateTool {
        tool_id: ToolId,
        name: ToolName,
    },
    UpdateTool {
        tool_id: ToolId,
        /// A new name reserved for the change.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<ToolName>,
        /// VAPI's id before the change: assistants may still name it after VAPI has lost the tool.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        external_tool_id: Option<String>,
    },
    DeleteTool {
        tool_id: ToolId,
    },
    /// `external_tool_id` is VAPI's, kept because the tool may be deleted by the time of settling.
    AttachTool {
        agent_id: AgentId,
        tool_id: ToolId,
        external_tool_id: String,
    },
    DetachTool {
        agent_id: AgentId,
        tool_id: ToolId,
        external_tool_id: String,
    },
    /// The removal of an agent, after that of its tools.
    DetachAllTools {
        agent_id: AgentId,
    },
    /// A base's automatic tool is deleted if no agent has it any more.
    QueryTool {
        knowledge_base_id: KnowledgeBaseId,
    },
    /// A secret that a row gains or loses: it is kept only if the row names it.
    StoreSecret {
        /// Its name in Secrets Manager.
        secret: String,
        of: SecretOwner,
    },
    /// The triggers of an automation must match its row and version, for example its schedule at `EventBridge`
    /// Scheduler.
    AutomationTrigger {
        automation_id: AutomationId,
    },
    /// A change of a newer version, left for that version to settle.
    #[serde(skip)]
    Unknown,
}

fn change_or_unknown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Change, D::Error> {
    Ok(Change::deserialize(Value::deserialize(deserializer)?).unwrap_or(Change::Unknown))
}

/// The row that names a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretOwner {
    PhoneNumber(PhoneNumberId),
    Tool(ToolId),
    OwnKey { service: KeyService, id: SecretId },
    Credential { service: ServiceId, id: SecretId },
    Hook { hook: HookId, id: SecretId },
}

impl SecretOwner {
    /// Whether the owner may have a secret of this name: only this organization's secrets may be deleted.
    pub fn owns_secret_name(self, organization: OrganizationId, secret: &str) -> bool {
        let parts: Vec<&str> = secret.rsplit('/').collect();
        let is = |part: &str, id: &dyn ToString| part == id.to_string();
        let ours = |part: &str| is(part, &organization);
        match (self, parts.as_slice()) {
            (Self::PhoneNumber(id), [last, ..]) if is(last, &id) => true,
            // A replaced secret has its own id below the number's.
            (Self::PhoneNumber(id), [_, number, ..]) => is(number, &id),
            (Self::Tool(id), [_, tool, whose, "tools", ..]) => is(tool, &id) && ours(whose),
            (Self::OwnKey { service, id }, [key, whose, of, ..]) => is(key, &id) && ours(whose) && is(of, &service),
            (Self::Credential { service, id }, [key, of, whose, "services", ..]) => {
                is(key, &id) && is(of, &service) && ours(whose)
            }
            (Self::Hook { hook, id }, [key, of, whose, "hooks", ..]) => is(key, &id) && is(of, &hook) && ours(whose),
            _ => false,
        }
    }
}

impl Intent {
    /// A change that its owner completes or abandons within `time`.
    pub fn new(organization_id: OrganizationId, change: Change, time: Duration) -> Self {
        let created_at = Timestamp::now();
        let owner_until = created_at.plus(time).as_millis();
        let actor = Actor::present();
        Self { id: IntentId::generate(), organization_id, change, created_at, owner_until, actor }
    }
}
