//! `tools`. Key: id. Index `by_organization`: `organization_id`, `created_at`.
//!
//! That a name is unique within its organization is kept by a guard item beside the rows, with the key
//! `name#<organization>#<name>`. It is put before VAPI hears of the tool and confirmed with the row; if the process dies
//! in between, the reservation runs out by itself.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{KeysAndAttributes, Put, TransactWriteItem},
};

use super::{
    Cursor, Page,
    database::{Database, Item, condition_failure, failed, from_item, number, text, to_item},
};
use crate::{
    Error, Result,
    models::{KnowledgeBaseId, OrganizationId, Timestamp, Tool, ToolId, ToolName, ToolType, VerifiedTool},
};

/// Longer than `create` may run.
const RESERVATION: Duration = Duration::from_secs(60);

/// DynamoDB takes 100 keys in one batch.
const BATCH: usize = 100;

#[derive(Clone)]
pub struct Tools {
    client: Client,
    table: String,
}

impl Tools {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("tools") }
    }

    pub async fn get(&self, organization: OrganizationId, id: ToolId) -> Result<Tool> {
        let tool = self.read(id).await?;
        if tool.organization_id == organization { Ok(tool) } else { Err(Error::NotFound("tool")) }
    }

    /// The tool whose own token was presented: the token stands in the place of the organization.
    pub async fn of_token(&self, tool: VerifiedTool) -> Result<Tool> {
        self.read(tool.id()).await
    }

    async fn read(&self, id: ToolId) -> Result<Tool> {
        let found = self.client.get_item().table_name(&self.table).key("id", text(id)).send().await.map_err(failed)?;
        from_item(found.item.ok_or(Error::NotFound("tool"))?)
    }

    /// The tools with these ids, in no order; ids of other organizations or of no tool are left out.
    pub async fn get_many(&self, organization: OrganizationId, ids: &[ToolId]) -> Result<Vec<Tool>> {
        let mut tools = Vec::new();
        for batch in ids.chunks(BATCH) {
            let mut wanted: Vec<Item> = batch.iter().map(|id| Item::from([("id".to_owned(), text(id))])).collect();
            while !wanted.is_empty() {
                let keys = KeysAndAttributes::builder().set_keys(Some(wanted)).build().map_err(Error::internal)?;
                let found =
                    self.client.batch_get_item().request_items(&self.table, keys).send().await.map_err(failed)?;
                for item in found.responses.into_iter().flat_map(HashMap::into_values).flatten() {
                    tools.push(from_item(item)?);
                }
                wanted = found
                    .unprocessed_keys
                    .and_then(|mut left| left.remove(&self.table))
                    .map(|left| left.keys)
                    .unwrap_or_default();
            }
        }
        tools.retain(|tool: &Tool| tool.organization_id == organization);
        Ok(tools)
    }

    /// A page of the organization's tools, newest first.
    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Tool>> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_organization")
            .key_condition_expression("#organization = :organization")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":organization", text(organization))
            .set_exclusive_start_key(after.map(|cursor| cursor.start_key(organization)))
            .scan_index_forward(false)
            .limit(limit)
            .send()
            .await
            .map_err(failed)?;
        let next_cursor = found.last_evaluated_key.as_ref().and_then(Cursor::after);
        let items = found.items.unwrap_or_default().into_iter().map(from_item).collect::<Result<_>>()?;
        Ok(Page { items, next_cursor })
    }

    /// The organization's tools that search a knowledge base.
    pub async fn of_knowledge_base(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<Vec<Tool>> {
        let mut tools = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_organization")
            .key_condition_expression("#organization = :organization")
            .filter_expression("#type = :query AND #config.#base = :base")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#type", "type")
            .expression_attribute_names("#config", "config_metadata")
            .expression_attribute_names("#base", "knowledge_base_id")
            .expression_attribute_values(":organization", text(organization))
            .expression_attribute_values(":query", text(ToolType::Query))
            .expression_attribute_values(":base", text(base))
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            tools.push(from_item(item.map_err(failed)?)?);
        }
        Ok(tools)
    }

    /// Reserves a name for a tool about to be made. False: the name is taken.
    pub async fn reserve_name(&self, organization: OrganizationId, name: &ToolName, id: ToolId) -> Result<bool> {
        let now = Timestamp::now();
        let outcome = self
            .client
            .put_item()
            .table_name(&self.table)
            .item("id", text(guard(organization, name)))
            .item("tool_id", text(id))
            .item("reserved_until", number(now.plus(RESERVATION).as_millis()))
            .condition_expression("attribute_not_exists(#id) OR #tool = :tool OR #until < :now")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_names("#until", "reserved_until")
            .expression_attribute_values(":tool", text(id))
            .expression_attribute_values(":now", number(now.as_millis()))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(true),
            Err(error) if condition_failure(&error).is_some() => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }

    /// Gives a reserved name back.
    pub async fn release_name(&self, organization: OrganizationId, name: &ToolName, id: ToolId) -> Result<()> {
        self.client
            .delete_item()
            .table_name(&self.table)
            .key("id", text(guard(organization, name)))
            .condition_expression("#tool = :tool")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_values(":tool", text(id))
            .send()
            .await
            .map_err(failed)
            .map(drop)
    }

    /// Writes a new tool and confirms its name, both or neither.
    pub async fn create(&self, tool: &Tool) -> Result<()> {
        let row = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(tool)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let name = Put::builder()
            .table_name(&self.table)
            .item("id", text(guard(tool.organization_id, &tool.name)))
            .item("tool_id", text(tool.id))
            .condition_expression("#tool = :tool")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_values(":tool", text(tool.id))
            .build()
            .map_err(Error::internal)?;
        let written = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(row).build())
            .transact_items(TransactWriteItem::builder().put(name).build())
            .client_request_token(tool.id.to_string())
            .send()
            .await
            .map_err(failed);
        match written {
            Ok(_) => Ok(()),
            // The answer may be lost of a transaction that went through: what stands in the table decides.
            Err(Error::Unavailable(..)) if self.stands(tool.id).await => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether the row is there for certain.
    async fn stands(&self, id: ToolId) -> bool {
        let found =
            self.client.get_item().table_name(&self.table).key("id", text(id)).consistent_read(true).send().await;
        found.is_ok_and(|found| found.item.is_some())
    }
}

fn guard(organization: OrganizationId, name: &ToolName) -> String {
    format!("name#{organization}#{name}")
}
