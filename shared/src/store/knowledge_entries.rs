//! `knowledge_entries`. Key: `knowledge_base_id` (partition), id (sort).
//!
//! Every change of entries is one transaction with the base's row: its `version` rises and its `entries` stay counted, so
//! whoever has read all entries at a version knows whether they still hold by reading the base alone. That an entry is
//! new or not is a condition of the transaction; if somebody else changed it in between, it is tried again.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    operation::transact_write_items::TransactWriteItemsError,
    types::{AttributeValue, Delete, DeleteRequest, KeysAndAttributes, Put, TransactWriteItem, Update, WriteRequest},
};
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::{TryStreamExt, stream, try_join};

use super::{
    Page,
    database::{Database, Item, failed, from_item, number, owned, readable, text, to_item},
};
use crate::{
    Deadline, Error, Result,
    models::{EntryId, KnowledgeBase, KnowledgeBaseId, KnowledgeEntry, OrganizationId, Timestamp},
};

/// Entries of one [`KnowledgeEntries::load`]: a transaction takes 100 items, and the base's row is one of them.
pub const LARGEST_LOAD: usize = 99;

/// DynamoDB takes 25 writes in one batch.
const BATCH: usize = 25;
/// Batches of deletions on their way beside each other.
const BESIDE: usize = 4;
/// Between two tries of what somebody else's change got in the way of.
const PAUSE: Duration = Duration::from_millis(40);
/// Nothing new is begun with less time than this.
const LAST_CALL: Duration = Duration::from_millis(1_500);

#[derive(Clone)]
pub struct KnowledgeEntries {
    client: Client,
    table: String,
    bases: String,
}

/// What came of a change that had conditions.
enum Written {
    Done,
    /// Somebody else changed the same rows in between.
    Overtaken,
    /// The condition of this item failed.
    Refused(usize),
}

impl KnowledgeEntries {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("knowledge_entries"),
            bases: database.table("knowledge_bases"),
        }
    }

    /// Writes at most [`LARGEST_LOAD`] entries of one base, all with different ids, in one transaction; those that are
    /// there are replaced. Gives the ids of those for which the base had no room.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the base is gone, [`Error::Conflict`] if it is being deleted, [`Error::Unavailable`] if others
    /// change it until `deadline`.
    pub async fn load(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        entries: &[KnowledgeEntry],
        deadline: Deadline,
    ) -> Result<Vec<EntryId>> {
        loop {
            let (present, before) = try_join!(self.present(base, entries), self.base(organization, base))?;
            if before.deleting {
                return Err(Error::Conflict("the knowledge base is being deleted".into()));
            }
            let held = usize::try_from(before.entries).unwrap_or(usize::MAX);
            let mut room = KnowledgeBase::MOST_ENTRIES.saturating_sub(held);
            let (mut puts, mut no_room, mut added) = (Vec::new(), Vec::new(), 0);
            for entry in entries {
                let created_at = present.get(&entry.id).copied();
                if created_at.is_none() && room == 0 {
                    no_room.push(entry.id.clone());
                    continue;
                }
                if created_at.is_none() {
                    room -= 1;
                    added += 1;
                }
                puts.push(self.put(entry, created_at)?);
            }
            if puts.is_empty() {
                return Ok(no_room);
            }
            let most = KnowledgeBase::MOST_ENTRIES.saturating_sub(added);
            let change = Change { organization, base, added: i64::try_from(added).unwrap_or(i64::MAX), most };
            // Refused or overtaken: another change came in between, so what was read no longer holds.
            match self.write(puts, &change).await? {
                Written::Done => return Ok(no_room),
                Written::Overtaken | Written::Refused(_) if deadline.remaining() > LAST_CALL => {
                    tokio::time::sleep(PAUSE).await;
                }
                Written::Overtaken | Written::Refused(_) => {
                    return Err(overtaken());
                }
            }
        }
    }

    /// Removes an entry.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is none.
    pub async fn delete(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        id: &EntryId,
        deadline: Deadline,
    ) -> Result<()> {
        loop {
            let delete = Delete::builder()
                .table_name(&self.table)
                .key("knowledge_base_id", text(base))
                .key("id", text(id))
                .condition_expression("#organization = :organization")
                .expression_attribute_names("#organization", "organization_id")
                .expression_attribute_values(":organization", text(organization))
                .build()
                .map_err(Error::internal)?;
            let change = Change { organization, base, added: -1, most: usize::MAX };
            let delete = TransactWriteItem::builder().delete(delete).build();
            match self.write(vec![delete], &change).await? {
                Written::Done => return Ok(()),
                Written::Refused(0) => return Err(Error::NotFound("entry")),
                Written::Refused(_) => return Err(Error::NotFound("knowledge base")),
                Written::Overtaken if deadline.remaining() > LAST_CALL => tokio::time::sleep(PAUSE).await,
                Written::Overtaken => {
                    return Err(overtaken());
                }
            }
        }
    }

    /// A page of a base's entries, by id.
    pub async fn page(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        after: Option<&EntryId>,
        limit: i32,
    ) -> Result<Page<KnowledgeEntry>> {
        let found = self
            .of_base(organization, base)
            .set_exclusive_start_key(after.map(|id| key(base, id)))
            .limit(limit)
            .send()
            .await
            .map_err(failed)?;
        let last = found.last_evaluated_key.as_ref().and_then(|key| key.get("id")?.as_s().ok());
        let next_cursor = last.map(|id| BASE64_URL_SAFE_NO_PAD.encode(id));
        let items = found.items.unwrap_or_default().into_iter().filter_map(readable).collect();
        Ok(Page { items, next_cursor })
    }

    /// The entry after which a page begins.
    ///
    /// # Errors
    /// [`Error::Invalid`] for `cursor` when the text is no cursor of [`KnowledgeEntries::page`].
    pub fn cursor(text: &str) -> Result<EntryId> {
        let id = BASE64_URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        id.and_then(|id| id.parse().ok())
            .ok_or_else(|| Error::invalid("cursor", "is not a cursor from next_cursor of an earlier page"))
    }

    /// Hands all entries of a base to `take`, in order of their ids.
    pub async fn each(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        mut take: impl FnMut(KnowledgeEntry),
    ) -> Result<()> {
        let mut items = self.of_base(organization, base).consistent_read(true).into_paginator().items().send();
        while let Some(item) = items.next().await {
            readable(item.map_err(failed)?).into_iter().for_each(&mut take);
        }
        Ok(())
    }

    /// Removes all entries of a base whose deletion has begun, in pages.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the time did not suffice; what is gone is gone, and it can be gone on with.
    pub async fn delete_all(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<()> {
        loop {
            let found = self
                .of_base(organization, base)
                .projection_expression("#base, #id")
                .expression_attribute_names("#base", "knowledge_base_id")
                .expression_attribute_names("#id", "id")
                .consistent_read(true)
                .send()
                .await
                .map_err(failed)?;
            let more = found.last_evaluated_key.is_some();
            let keys = found.items.unwrap_or_default();
            let batches: Vec<Vec<Item>> = keys.chunks(BATCH).map(<[Item]>::to_vec).collect();
            stream::iter(batches.into_iter().map(Ok))
                .try_for_each_concurrent(BESIDE, |batch| self.delete_batch(batch, deadline))
                .await?;
            if !more {
                return Ok(());
            }
        }
    }

    async fn delete_batch(&self, keys: Vec<Item>, deadline: Deadline) -> Result<()> {
        let request = |key: Item| {
            let delete = DeleteRequest::builder().set_key(Some(key)).build().map_err(Error::internal)?;
            Ok(WriteRequest::builder().delete_request(delete).build())
        };
        let mut left = keys.into_iter().map(request).collect::<Result<Vec<_>>>()?;
        while !left.is_empty() {
            if deadline.remaining() < LAST_CALL {
                return Err(Error::Conflict("not all entries could be deleted in time; delete it again".into()));
            }
            let sent = self.client.batch_write_item().request_items(&self.table, left).send().await.map_err(failed)?;
            left = sent.unprocessed_items.and_then(|mut left| left.remove(&self.table)).unwrap_or_default();
            if !left.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    fn of_base(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
    ) -> aws_sdk_dynamodb::operation::query::builders::QueryFluentBuilder {
        self.client
            .query()
            .table_name(&self.table)
            .key_condition_expression("#base = :base")
            .filter_expression("#organization = :organization")
            .expression_attribute_names("#base", "knowledge_base_id")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":base", text(base))
            .expression_attribute_values(":organization", text(organization))
    }

    async fn base(&self, organization: OrganizationId, id: KnowledgeBaseId) -> Result<KnowledgeBase> {
        let request = self.client.get_item().table_name(&self.bases).key("id", text(id)).consistent_read(true);
        let found = request.send().await.map_err(failed)?;
        owned(organization, found.item, "knowledge base")
    }

    /// Which of the entries are there, and since when.
    async fn present(&self, base: KnowledgeBaseId, entries: &[KnowledgeEntry]) -> Result<HashMap<EntryId, Timestamp>> {
        #[derive(serde::Deserialize)]
        struct Present {
            id: EntryId,
            created_at: Timestamp,
        }

        let mut present = HashMap::new();
        let mut wanted: Vec<Item> = entries.iter().map(|entry| key(base, &entry.id)).collect();
        while !wanted.is_empty() {
            let keys = KeysAndAttributes::builder()
                .set_keys(Some(wanted))
                .consistent_read(true)
                .projection_expression("#id, #created")
                .expression_attribute_names("#id", "id")
                .expression_attribute_names("#created", "created_at")
                .build()
                .map_err(Error::internal)?;
            let found = self.client.batch_get_item().request_items(&self.table, keys).send().await.map_err(failed)?;
            for item in found.responses.into_iter().flat_map(HashMap::into_values).flatten() {
                let Present { id, created_at } = from_item(item)?;
                present.insert(id, created_at);
            }
            let left = found.unprocessed_keys.and_then(|mut left| left.remove(&self.table));
            wanted = left.map(|left| left.keys).unwrap_or_default();
        }
        Ok(present)
    }

    /// The write of an entry that has been there since `created_at`, or is new.
    fn put(&self, entry: &KnowledgeEntry, created_at: Option<Timestamp>) -> Result<TransactWriteItem> {
        let mut item = to_item(entry)?;
        let condition = match created_at {
            None => "attribute_not_exists(#id)",
            Some(created_at) => {
                item.insert("created_at".into(), text(created_at));
                "attribute_exists(#id)"
            }
        };
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(item))
            .condition_expression(condition)
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().put(put).build())
    }

    async fn write(&self, entries: Vec<TransactWriteItem>, change: &Change) -> Result<Written> {
        let base = TransactWriteItem::builder().update(change.of_base(&self.bases)?).build();
        let outcome = self
            .client
            .transact_write_items()
            .set_transact_items(Some(entries))
            .transact_items(base)
            .client_request_token(uuid::Uuid::new_v4().to_string())
            .send()
            .await;
        let Err(error) = outcome else { return Ok(Written::Done) };
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Err(failed(error));
        };
        let codes = || cancelled.cancellation_reasons().iter().map(|reason| reason.code().unwrap_or_default());
        if let Some(item) = codes().position(|code| code == "ConditionalCheckFailed") {
            return Ok(Written::Refused(item));
        }
        if codes().any(|code| code == "TransactionConflict") {
            return Ok(Written::Overtaken);
        }
        Err(Error::Unavailable("the database", Box::new(error)))
    }
}

/// What a change of entries means for the base's row.
struct Change {
    organization: OrganizationId,
    base: KnowledgeBaseId,
    added: i64,
    /// Entries it may hold before the change.
    most: usize,
}

impl Change {
    fn of_base(&self, table: &str) -> Result<Update> {
        Update::builder()
            .table_name(table)
            .key("id", text(self.base))
            .update_expression("SET #updated = :now ADD #version :one, #entries :added")
            .condition_expression("#organization = :organization AND #deleting <> :true AND #entries <= :most")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#version", "version")
            .expression_attribute_names("#entries", "entries")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#deleting", "deleting")
            .expression_attribute_values(":now", text(Timestamp::now()))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":added", number(self.added))
            .expression_attribute_values(":organization", text(self.organization))
            .expression_attribute_values(":true", AttributeValue::Bool(true))
            .expression_attribute_values(":most", number(i64::try_from(self.most).unwrap_or(i64::MAX)))
            .build()
            .map_err(Error::internal)
    }
}

fn overtaken() -> Error {
    Error::Unavailable("the knowledge base", "others went on changing it until the time was up".into())
}

fn key(base: KnowledgeBaseId, id: &EntryId) -> Item {
    Item::from([("knowledge_base_id".into(), text(base)), ("id".into(), text(id))])
}
