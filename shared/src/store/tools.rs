//! `tools`. Key: id. Indexes: `by_organization` (`organization_id`, `created_at`), `by_external_tool_id`
//! (`external_tool_id`).
//!
//! That a name is unique within its organization is kept by a guard item beside the rows, with the key
//! `name#<organization>#<name>`. It is put before VAPI hears of the tool and confirmed with the row; if the process dies
//! in between, the reservation runs out by itself.

use std::{collections::HashMap, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{Delete, KeysAndAttributes, Put, TransactWriteItem},
};

use super::{
    AgentTools, Cursor, Intents, KnowledgeBases, Lease, Page,
    database::{
        Database, Item, Refused, condition_failure, failed, from_item, is_of, key, number, owned, readable, set_all,
        text, to_item, transact,
    },
};
use crate::{
    Deadline, Error, Result,
    models::{
        AgentTool, Intent, IntentId, KnowledgeBaseId, OrganizationId, Timestamp, Tool, ToolId, ToolName, ToolType,
        VerifiedTool,
    },
};

/// Longer than `create` may run.
const RESERVATION: Duration = Duration::from_secs(60);

/// DynamoDB takes 100 keys in one batch.
const BATCH: usize = 100;

/// Longer than any function that holds it may run.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Tools {
    client: Client,
    table: String,
    intents: Intents,
    attachments: AgentTools,
}

impl Tools {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("tools"),
            intents: Intents::new(database),
            attachments: AgentTools::new(database),
        }
    }

    /// The tool as of now: one that was made a moment ago is found.
    pub async fn get(&self, organization: OrganizationId, id: ToolId) -> Result<Tool> {
        owned(organization, self.read(id, true).await?, "tool")
    }

    /// The tool whose own token was presented: the token stands in the place of the organization.
    pub async fn of_token(&self, tool: VerifiedTool) -> Result<Tool> {
        from_item(self.read(tool.id(), false).await?.ok_or(Error::NotFound("tool"))?)
    }

    /// Whose tool it is, before it is known who asks: what the caller has to show depends on it.
    pub async fn owner(&self, id: ToolId) -> Result<OrganizationId> {
        let tool: Tool = from_item(self.read(id, false).await?.ok_or(Error::NotFound("tool"))?)?;
        Ok(tool.organization_id)
    }

    async fn read(&self, id: ToolId, as_of_now: bool) -> Result<Option<Item>> {
        let read = self.client.get_item().table_name(&self.table).key("id", text(id)).consistent_read(as_of_now);
        Ok(read.send().await.map_err(failed)?.item)
    }

    /// The tools with these ids as of now, in no order; ids of other organizations or of no tool are left out, and those of
    /// tools that cannot be read.
    pub async fn get_many(&self, organization: OrganizationId, ids: &[ToolId]) -> Result<Vec<Tool>> {
        Ok(self.find_many(organization, ids).await?.into_iter().filter_map(readable).collect())
    }

    /// As [`Tools::get_many`], for whoever cannot do without one of them.
    ///
    /// # Errors
    /// [`Error::Unreadable`]
    pub async fn get_all(&self, organization: OrganizationId, ids: &[ToolId]) -> Result<Vec<Tool>> {
        self.find_many(organization, ids).await?.into_iter().map(from_item).collect()
    }

    async fn find_many(&self, organization: OrganizationId, ids: &[ToolId]) -> Result<Vec<Item>> {
        let mut tools = Vec::new();
        for batch in ids.chunks(BATCH) {
            let mut wanted: Vec<Item> = batch.iter().map(|id| Item::from([("id".to_owned(), text(id))])).collect();
            while !wanted.is_empty() {
                let keys = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true);
                let keys = keys.build().map_err(Error::internal)?;
                let found =
                    self.client.batch_get_item().request_items(&self.table, keys).send().await.map_err(failed)?;
                tools.extend(found.responses.into_iter().flat_map(HashMap::into_values).flatten());
                wanted = found
                    .unprocessed_keys
                    .and_then(|mut left| left.remove(&self.table))
                    .map(|left| left.keys)
                    .unwrap_or_default();
            }
        }
        tools.retain(|item| is_of(item, organization));
        Ok(tools)
    }

    /// The organization's tool that VAPI knows by this id.
    pub async fn by_external_id(&self, organization: OrganizationId, external_id: &str) -> Result<Option<Tool>> {
        let found = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_external_tool_id")
            .key_condition_expression("#external = :external")
            .expression_attribute_names("#external", "external_tool_id")
            .expression_attribute_values(":external", text(external_id))
            .limit(1)
            .send()
            .await
            .map_err(failed)?;
        let item = found.items.unwrap_or_default().into_iter().next();
        item.filter(|item| is_of(item, organization)).map(from_item).transpose()
    }

    /// A page of the organization's tools, newest first.
    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Tool>> {
        let query = self.client.query().table_name(&self.table).index_name("by_organization");
        Page::newest_of(query, organization, after, limit).await
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

    /// Reserves a name for a tool, and records the intent to use it. False: the name is taken, and nothing is recorded.
    pub async fn reserve_name(&self, intent: &Intent, name: &ToolName, id: ToolId) -> Result<bool> {
        let now = Timestamp::now();
        let reserve = Put::builder()
            .table_name(&self.table)
            .item("id", text(guard(intent.organization_id, name)))
            .item("tool_id", text(id))
            .item("reserved_until", number(now.plus(RESERVATION).as_millis()))
            .condition_expression("attribute_not_exists(#id) OR #tool = :tool OR #until < :now")
            .expression_attribute_names("#id", "id")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_names("#until", "reserved_until")
            .expression_attribute_values(":tool", text(id))
            .expression_attribute_values(":now", number(now.as_millis()))
            .build()
            .map_err(Error::internal)?;
        let reserve = TransactWriteItem::builder().put(reserve).build();
        match transact(&self.client, vec![reserve, self.intents.open_in_transaction(intent)?]).await {
            Ok(()) => Ok(true),
            Err(Refused::Condition(_)) => Ok(false),
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Gives a reserved name back. One that is not this tool's, or no longer, is nothing to give back.
    pub async fn release_name(&self, organization: OrganizationId, name: &ToolName, id: ToolId) -> Result<()> {
        let outcome = self
            .client
            .delete_item()
            .table_name(&self.table)
            .key("id", text(guard(organization, name)))
            .condition_expression("#tool = :tool")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_values(":tool", text(id))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes a new tool, confirms its name and closes the intent, all or nothing. With the lease of a knowledge base, the
    /// base notes it as its query tool.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another tool took the name or the lease was lost.
    pub async fn create(&self, tool: &Tool, intent: IntentId, base: Option<&Lease>) -> Result<()> {
        let row = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(tool)?))
            .condition_expression("attribute_not_exists(#id)")
            .expression_attribute_names("#id", "id")
            .build()
            .map_err(Error::internal)?;
        let mut items = vec![
            TransactWriteItem::builder().put(row).build(),
            TransactWriteItem::builder().put(self.confirmed_name(tool)?).build(),
            self.intents.close_in_transaction(intent)?,
        ];
        items.extend(base.map(|lease| KnowledgeBases::note_tool_in_transaction(lease, tool.id)).transpose()?);
        match transact(&self.client, items).await.map_err(|refused| match refused {
            Refused::Condition(3) => {
                Error::Conflict("another change of this knowledge base came in between; try again".into())
            }
            refused => refused.or("another tool took this name; try again"),
        }) {
            // The answer may be lost of a transaction that went through: what stands in the table decides.
            Err(Error::Unavailable(..)) if self.stands(tool.id).await => Ok(()),
            written => written,
        }
    }

    /// Whether the row is there for certain.
    async fn stands(&self, id: ToolId) -> bool {
        let found =
            self.client.get_item().table_name(&self.table).key("id", text(id)).consistent_read(true).send().await;
        found.is_ok_and(|found| found.item.is_some())
    }

    /// Takes the lease on a tool and reads it. Does not wait: two edits at once are a conflict, not a queue.
    pub async fn lock(&self, organization: OrganizationId, id: ToolId, deadline: Deadline) -> Result<(Tool, Lease)> {
        Lease::acquire(&self.client, &self.table, (organization, key(id)), "tool", LEASE, deadline).await
    }

    pub async fn unlock(&self, lease: Lease) -> Result<()> {
        lease.release(&self.client).await
    }

    /// Rewrites the row of a tool whose lease is held; the lease stays. `updated_at` and `version` are set here. With a new
    /// name (reserved before) the old one is given up in the same transaction.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease was lost.
    pub async fn replace(&self, tool: &mut Tool, old_name: &ToolName, lease: &Lease) -> Result<()> {
        tool.updated_at = Timestamp::now();
        tool.version += 1;
        let row = set_all(lease.update_in_transaction(), to_item(tool)?, &["external_tool_id", "automatic_for"]);
        let row = row.build().map_err(Error::internal)?;
        let mut items = vec![TransactWriteItem::builder().update(row).build()];
        if tool.name != *old_name {
            let given_up =
                Delete::builder().table_name(&self.table).key("id", text(guard(tool.organization_id, old_name)));
            items.push(TransactWriteItem::builder().put(self.confirmed_name(tool)?).build());
            items.push(TransactWriteItem::builder().delete(given_up.build().map_err(Error::internal)?).build());
        }
        transact(&self.client, items)
            .await
            .map_err(|refused| refused.or("another edit of this tool came in between; read it again and repeat yours"))
    }

    /// The guard item of a tool's name, no longer a reservation.
    fn confirmed_name(&self, tool: &Tool) -> Result<Put> {
        Put::builder()
            .table_name(&self.table)
            .item("id", text(guard(tool.organization_id, &tool.name)))
            .item("tool_id", text(tool.id))
            .condition_expression("#tool = :tool")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_values(":tool", text(tool.id))
            .build()
            .map_err(Error::internal)
    }

    /// Deletes a tool whose lease is held with its name, the attachments given and the intent, in one transaction.
    pub async fn delete(&self, tool: &Tool, lease: &Lease, attachments: &[AgentTool], intent: IntentId) -> Result<()> {
        let row = Delete::builder()
            .table_name(&self.table)
            .key("id", text(tool.id))
            .condition_expression("#token = :token")
            .expression_attribute_names("#token", "lease_token")
            .expression_attribute_values(":token", lease.token())
            .build()
            .map_err(Error::internal)?;
        let name = Delete::builder()
            .table_name(&self.table)
            .key("id", text(guard(tool.organization_id, &tool.name)))
            .build()
            .map_err(Error::internal)?;
        let mut items = vec![
            TransactWriteItem::builder().delete(row).build(),
            TransactWriteItem::builder().delete(name).build(),
            self.intents.close_in_transaction(intent)?,
        ];
        for attachment in attachments {
            items.push(self.attachments.delete_in_transaction(attachment)?);
        }
        transact(&self.client, items)
            .await
            .map_err(|refused| refused.or("another change of this tool came in between; try again"))
    }
}

fn guard(organization: OrganizationId, name: &ToolName) -> String {
    format!("name#{organization}#{name}")
}
