//! `organization_members`. Key: `user_id` (partition), `organization_id` (sort).

use aws_sdk_dynamodb::Client;

use super::database::{Database, failed, readable, text};
use crate::{
    Result,
    models::{Membership, UserId},
};

#[derive(Clone)]
pub struct OrganizationMembers {
    client: Client,
    table: String,
}

impl OrganizationMembers {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("organization_members") }
    }

    /// The organizations a user belongs to, so that membership can be read beside the slug, not after it.
    pub async fn of_user(&self, user: &UserId) -> Result<Vec<Membership>> {
        let mut memberships = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#user = :user")
            .expression_attribute_names("#user", "user_id")
            .expression_attribute_values(":user", text(user))
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            memberships.extend(readable::<Membership>(item.map_err(failed)?));
        }
        Ok(memberships)
    }
}
