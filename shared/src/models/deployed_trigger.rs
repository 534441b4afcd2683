//! A trigger that Pipedream runs for an automation.

use serde::{Deserialize, Serialize};

use super::{AutomationId, HookId, OrganizationId, Timestamp};

/// A row of `deployed_triggers`: recorded before anything is deployed, deleted after it is gone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployedTrigger {
    /// The automation's.
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    /// What is deployed, as JSON text: `{"component", "version", "configured_props"}`.
    pub configuration: String,
    /// Where its events come in.
    pub hook_id: HookId,
    /// Pipedream's `dc_…`; absent while it is not known whether it is deployed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger_id: Option<String>,
    /// Pipedream was asked to deploy it, with whatever outcome. Until then there is nothing to be looked for.
    #[serde(default)]
    pub asked: bool,
    pub created_at: Timestamp,
}
