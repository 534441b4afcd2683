//! `organizations`. Key: id. Index `by_slug`: slug.

use aws_sdk_dynamodb::Client;

use super::database::{Database, failed, from_item, text};
use crate::{
    Error, Result,
    models::{Organization, Slug},
};

#[derive(Clone)]
pub struct Organizations {
    client: Client,
    table: String,
}

impl Organizations {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("organizations") }
    }

    /// The organization in a URL. Whether the reader belongs to it is for `http::access` to find out.
    ///
    /// # Errors
    /// [`Error::NotFound`] if no organization has the slug.
    pub async fn by_slug(&self, slug: &Slug) -> Result<Organization> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_slug")
            .key_condition_expression("#slug = :slug")
            .expression_attribute_names("#slug", "slug")
            .expression_attribute_values(":slug", text(slug))
            .limit(1)
            .send()
            .await
            .map_err(failed)?;
        let item = found.items.unwrap_or_default().into_iter().next().ok_or(Error::NotFound("organization"))?;
        from_item(item)
    }
}
