//! A tenant, and who belongs to it.

use std::{collections::BTreeMap, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{OrganizationId, OwnBudgets, OwnKeys, ServiceCredentials, ServiceId, Slug, Timestamp, UserId};

/// A row of `organizations`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organization {
    pub id: OrganizationId,
    pub slug: Slug,
    pub name: String,
    /// At which services it has an account of its own.
    #[serde(default)]
    pub own_keys: OwnKeys,
    /// Which services' tools act for it by a credential that it stored.
    #[serde(default, skip_serializing_if = "ServiceCredentials::is_empty")]
    pub service_credentials: ServiceCredentials,
    /// By service, which of its several accounts acts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub service_accounts: BTreeMap<ServiceId, String>,
    /// What it may use where it is not what the deployment says. Only an operator writes it.
    #[serde(default, skip_serializing)]
    pub budgets: OwnBudgets,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// What somebody may do in an organization: `organization_members.role`. Each may what those before it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(from = "String")]
pub enum Role {
    /// Reads. Also whoever has a role that is not known here, or none.
    #[default]
    Viewer,
    /// Uses what is there: tries tools, starts runs.
    Member,
    /// Makes, changes and deletes.
    Admin,
    Owner,
}

crate::described!(Role => {"type": "string", "enum": (Role::ALL)});

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Member, Self::Admin, Self::Owner];

    /// The one spelling that is stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }
}

impl From<String> for Role {
    fn from(text: String) -> Self {
        text.parse().unwrap_or_default()
    }
}

#[derive(Debug, thiserror::Error)]
#[error("must be viewer, member, admin or owner")]
pub struct NotARole;

impl FromStr for Role {
    type Err = NotARole;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or(NotARole)
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
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
    /// What `{{user.…}}` of an automation leads into; whoever made the row knew it, or did not.
    #[serde(flatten)]
    pub contact: Contact,
    /// Rows that an operator wrote by hand may lack the times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
}

impl OrganizationMember {
    /// Somebody who comes in now.
    pub fn new(organization_id: OrganizationId, user_id: UserId, role: Role, contact: Contact) -> Self {
        let now = Some(Timestamp::now());
        Self { organization_id, user_id, role, contact, created_at: now, updated_at: now }
    }
}

/// How somebody is called and reached.
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

/// Text, or nothing in place of what a hand or a newer version wrote there.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(Value::deserialize(deserializer)?.as_str().map(str::to_owned))
}

/// Somebody who was let in: a user who is a member of the organization in the URL.
///
/// Only `http::access` makes one, after it has checked both, and the store for a user of an earlier request; so an `organization_id` taken from here is authorized.
#[derive(Debug, Clone)]
pub struct Member {
    pub organization_id: OrganizationId,
    pub user_id: UserId,
    pub role: Role,
}
