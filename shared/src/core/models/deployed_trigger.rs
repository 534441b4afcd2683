//! Triggers that Pipedream runs for automations.

use serde::{Deserialize, Serialize};

use super::{AutomationId, HookId, OrganizationId, Timestamp};

/// A row of `deployed_triggers`: written before the deployment, deleted after the removal.
#[declare::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeployedTrigger {
    pub id: AutomationId,
    pub organization_id: OrganizationId,
    /// The deployment as JSON text: `{"component", "version", "configured_props"}`.
    pub configuration: String,
    /// As in its hook. Absent in rows of older versions.
    pub deployed_for: Option<String>,
    /// The hook that receives its events.
    pub hook_id: HookId,
    /// The hook's address at the deployment, or since it was changed at Pipedream. Absent in rows of older versions.
    pub webhook_url: Option<String>,
    /// Pipedream's `dc_…`; absent until the deployment is confirmed.
    pub trigger_id: Option<String>,
    /// Pipedream was asked to deploy it. Before that no search is needed.
    #[serde(default)]
    pub asked: bool,
    pub created_at: Timestamp,
}
