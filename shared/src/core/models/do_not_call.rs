//! The organization's do-not-call list.

use serde::{Deserialize, Serialize};

use super::{DoNotCallId, E164, OrganizationId, Timestamp};
use crate::described::Described;

/// A row of `do_not_call`. It holds a digest in place of the number, so it can outlive the erasure of the number.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DoNotCall {
    pub organization_id: OrganizationId,
    pub id: DoNotCallId,
    /// The last two digits.
    pub ending: String,
    #[serde(default)]
    pub source: DoNotCallSource,
    pub created_at: Timestamp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, Described)]
#[serde(rename_all = "snake_case")]
pub enum DoNotCallSource {
    /// A member of the organization.
    #[default]
    Member,
    /// The person sent STOP.
    Sms,
    /// The person said so in a call.
    Call,
    #[serde(other)]
    Other,
}

impl DoNotCall {
    pub fn new(organization_id: OrganizationId, number: &E164, source: DoNotCallSource) -> Self {
        let id = DoNotCallId::of_number(organization_id, number);
        Self { organization_id, id, ending: number.masked(), source, created_at: Timestamp::now() }
    }
}
