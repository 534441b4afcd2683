//! A tenant, and who belongs to it.

use serde::{Deserialize, Serialize};

use super::{OrganizationId, Slug, Timestamp, UserId};

/// A row of `organizations`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Organization {
    pub id: OrganizationId,
    pub slug: Slug,
    pub name: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Somebody who was let in: a user who is a member of the organization in the URL.
///
/// Only `http::access` makes one, after it has checked both; so an `organization_id` taken from here is authorized.
#[derive(Debug, Clone)]
pub struct Member {
    pub organization_id: OrganizationId,
    pub user_id: UserId,
}
