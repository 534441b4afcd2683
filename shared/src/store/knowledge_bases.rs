//! `knowledge_bases`. Key: id. Index `by_organization`: `organization_id`, `created_at`.
//!
//! `version` and `entries` are written with the entries, by [`super::KnowledgeEntries`].

use aws_sdk_dynamodb::{Client, types::AttributeValue};

use super::{
    Cursor, Page,
    database::{Database, condition_failure, failed, from_item, text, to_item},
};
use crate::{
    Error, Result,
    models::{KnowledgeBase, KnowledgeBaseId, OrganizationId, Timestamp},
};

#[derive(Clone)]
pub struct KnowledgeBases {
    client: Client,
    table: String,
}

impl KnowledgeBases {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("knowledge_bases") }
    }

    pub async fn create(&self, base: &KnowledgeBase) -> Result<()> {
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(base)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .send()
            .await
            .map_err(failed)
            .map(drop)
    }

    /// The base as the last finished load left it.
    pub async fn get(&self, organization: OrganizationId, id: KnowledgeBaseId) -> Result<KnowledgeBase> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("id", text(id))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed)?;
        let base: KnowledgeBase = from_item(found.item.ok_or(Error::NotFound("knowledge base"))?)?;
        if base.organization_id == organization { Ok(base) } else { Err(Error::NotFound("knowledge base")) }
    }

    /// A page of the organization's knowledge bases, newest first.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<KnowledgeBase>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        Page::newest_of(query, organization, after, limit).await
    }

    /// From here on nothing is loaded into it and nothing is found in it; may be repeated.
    pub async fn begin_deletion(&self, organization: OrganizationId, id: KnowledgeBaseId) -> Result<()> {
        let outcome = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("id", text(id))
            .update_expression("SET #deleting = :true, #updated = :now ADD #version :one")
            .condition_expression("#organization = :organization")
            .expression_attribute_names("#deleting", "deleting")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#version", "version")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":true", AttributeValue::Bool(true))
            .expression_attribute_values(":now", text(Timestamp::now()))
            .expression_attribute_values(":one", super::number(1))
            .expression_attribute_values(":organization", text(organization))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Err(Error::NotFound("knowledge base")),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes the row of a base whose entries are gone; one that is gone already is as good.
    pub async fn delete(&self, organization: OrganizationId, id: KnowledgeBaseId) -> Result<()> {
        let outcome = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("id", text(id))
            .condition_expression("#organization = :organization AND #deleting = :true")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#deleting", "deleting")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":true", AttributeValue::Bool(true))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}
