//! `organization_members`. Key: `user_id` (partition), `organization_id` (sort).

use super::{
    database::{Database, text},
    table::Table,
};
use crate::{
    Result,
    models::{Membership, UserId},
};

#[derive(Clone)]
pub struct OrganizationMembers {
    table: Table,
}

impl OrganizationMembers {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("organization_members") }
    }

    /// The organizations a user belongs to, so that membership can be read beside the slug, not after it.
    pub async fn of_user(&self, user: &UserId) -> Result<Vec<Membership>> {
        self.table.query("#user_id = :user").with([(":user", text(user))]).collect().await
    }
}
