//! Organizations (tenants) and their members.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::{OrganizationId, OwnBudgets, OwnKeys, ServiceCredentials, ServiceId, Slug, Timestamp, UserId};
use crate::{described::Described, names::Names};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organization {
    pub id: OrganizationId,
    pub slug: Slug,
    pub name: String,
    /// Its own accounts at VAPI and at an LLM.
    #[serde(default)]
    pub own_keys: OwnKeys,
    #[serde(default, skip_serializing_if = "ServiceCredentials::is_empty")]
    pub service_credentials: ServiceCredentials,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_accounts: BTreeMap<ServiceId, String>,
    /// Budgets other than the deployment's. Only an operator writes them.
    #[serde(default, skip_serializing)]
    pub budgets: OwnBudgets,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// `organization_members.role`. Each role includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, Described, Names)]
#[serde(from = "String", rename_all = "snake_case")]
#[names(problem = "must be viewer, member, admin or owner")]
pub enum Role {
    /// Reads. Also the role of members with an unknown role, or none.
    #[default]
    Viewer,
    /// Uses existing things: tries tools, starts runs.
    Member,
    /// Creates, changes and deletes.
    Admin,
    Owner,
}

impl From<String> for Role {
    fn from(text: String) -> Self {
        Self::named(&text).unwrap_or_default()
    }
}

/// A row of `organization_members`, read by its user.
#[derive(Debug, Clone, Deserialize)]
pub struct Membership {
    pub organization_id: OrganizationId,
    #[serde(default)]
    pub role: Role,
}

/// A row of `organization_members`, as the organization sees it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OrganizationMember {
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    #[serde(default)]
    pub role: Role,
    /// The data of `{{user.…}}` in automations, as far as the row has it.
    #[serde(flatten)]
    pub contact: Contact,
    /// Rows that an operator wrote by hand may lack the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl OrganizationMember {
    pub fn new(organization_id: OrganizationId, user_id: UserId, role: Role, contact: Contact) -> Self {
        let now = Some(Timestamp::now());
        Self { organization_id, user_id, role, contact, created_at: now, updated_at: now }
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// E.164
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub phone: Option<String>,
    /// IANA name
    #[serde(default, deserialize_with = "text", skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// Text; `None` for another value, written by hand or by a newer version.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_str().map(str::to_owned))
}

/// An authorized user, a member of the organization in the URL.
///
/// Only `http::access` makes one after checking both, and the store for an earlier request's user, so `organization_id` is
/// authorized.
#[derive(Debug, Clone)]
pub struct Member {
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    pub role: Role,
}
