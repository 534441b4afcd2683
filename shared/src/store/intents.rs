//! `intents`. Key: id. A closed intent is deleted, so the table holds only what is open, and a scan of it is short.

use aws_sdk_dynamodb::{
    Client,
    types::{Delete, Put, TransactWriteItem},
};

use super::database::{Database, failed, from_item, number, readable, text, to_item};
use crate::{
    Error, Result,
    models::{Intent, IntentId, OrganizationId, Timestamp},
};

#[derive(Clone)]
pub struct Intents {
    client: Client,
    table: String,
}

impl Intents {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("intents") }
    }

    /// Records a change before it begins.
    pub async fn open(&self, intent: &Intent) -> Result<()> {
        self.client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(intent)?))
            .send()
            .await
            .map_err(failed)
            .map(drop)
    }

    pub(super) fn open_in_transaction(&self, intent: &Intent) -> Result<TransactWriteItem> {
        let put = Put::builder().table_name(&self.table).set_item(Some(to_item(intent)?)).build();
        Ok(TransactWriteItem::builder().put(put.map_err(Error::internal)?).build())
    }

    /// The change has ended.
    pub async fn close(&self, id: IntentId) -> Result<()> {
        self.client.delete_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed).map(drop)
    }

    pub(super) fn close_in_transaction(&self, id: IntentId) -> Result<TransactWriteItem> {
        let delete = Delete::builder().table_name(&self.table).key("id", text(id)).build();
        Ok(TransactWriteItem::builder().delete(delete.map_err(Error::internal)?).build())
    }

    /// Its owner leaves the change to whoever settles next.
    pub async fn leave(&self, id: IntentId) -> Result<()> {
        let outcome = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("id", text(id))
            .update_expression("SET #until = :gone")
            .condition_expression("attribute_exists(#id)")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#until", "owner_until")
            .expression_attribute_values(":gone", number(0))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if super::condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// The changes of all organizations whose owner is gone, oldest first: for `settle`, which acts for each organization
    /// in turn.
    pub async fn abandoned(&self) -> Result<Vec<Intent>> {
        let mut intents = Vec::new();
        let mut pages = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression("#until < :now")
            .expression_attribute_names("#until", "owner_until")
            .expression_attribute_values(":now", number(Timestamp::now().as_millis()))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            intents.extend(readable::<Intent>(item.map_err(failed)?));
        }
        intents.sort_by_key(|intent| intent.created_at);
        Ok(intents)
    }

    /// The changes of an organization that have not ended. As of now: a change that is not among them has not begun.
    pub async fn open_of(&self, organization: OrganizationId) -> Result<Vec<Intent>> {
        let mut intents = Vec::new();
        let mut pages = self
            .client
            .scan()
            .table_name(&self.table)
            .filter_expression("#organization = :organization")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":organization", text(organization))
            .consistent_read(true)
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            intents.push(from_item::<Intent>(item.map_err(failed)?)?);
        }
        Ok(intents)
    }

    /// Takes an abandoned change over for `time`, so that two settlers do not work on it at once. False: somebody else did.
    pub async fn take_over(&self, intent: &Intent, until: Timestamp) -> Result<bool> {
        let outcome = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("id", text(intent.id))
            .update_expression("SET #until = :until")
            .condition_expression("#until = :seen")
            .expression_attribute_names("#until", "owner_until")
            .expression_attribute_values(":until", number(until.as_millis()))
            .expression_attribute_values(":seen", number(intent.owner_until))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(true),
            Err(error) if super::condition_failure(&error).is_some() => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}
