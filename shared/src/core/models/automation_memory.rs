//! Values that automations keep between their runs.

use serde::{Deserialize, Serialize};

use super::{AutomationId, OrganizationId, Timestamp};

/// A row of `automation_memory`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RememberedValue {
    pub organization_id: OrganizationId,
    pub automation_id: AutomationId,
    pub key: String,
    /// JSON text.
    pub value: String,
    /// Counts the writes of the key, from 1.
    pub version: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    /// In seconds.
    pub expires_at: i64,
}
