//! `agent_tools`. Key: `agent_id` (partition), `tool_id` (sort), which *is* `UNIQUE(agent_id, tool_id)`. Index
//! `by_tool`: `tool_id`.

use std::collections::{BTreeSet, HashMap};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, ConditionCheck, Delete, KeysAndAttributes, Put, TransactWriteItem},
};

use super::{
    Intents, KnowledgeBases, Lease,
    database::{
        Database, Item, Refused, condition_failure, failed, from_item, number, readable, text, to_item, transact,
    },
};
use crate::{
    Error, Result,
    models::{AgentId, AgentTool, IntentId, OrganizationId, Timestamp, Tool, ToolId},
};

/// Attachments that one transaction removes: DynamoDB takes 100 actions, and one is the check of the lease.
pub const REMOVED_AT_ONCE: usize = 99;

/// DynamoDB takes 100 keys in one batch.
const BATCH: usize = 100;

#[derive(Clone)]
pub struct AgentTools {
    client: Client,
    table: String,
    tools: String,
    intents: Intents,
    bases: KnowledgeBases,
}

impl AgentTools {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("agent_tools"),
            tools: database.table("tools"),
            intents: Intents::new(database),
            bases: KnowledgeBases::new(database),
        }
    }

    pub async fn find(&self, organization: OrganizationId, agent: AgentId, tool: ToolId) -> Result<Option<AgentTool>> {
        let found = self
            .client
            .get_item()
            .table_name(&self.table)
            .key("agent_id", text(agent))
            .key("tool_id", text(tool))
            .consistent_read(true)
            .send()
            .await
            .map_err(failed)?;
        let row: Option<AgentTool> = found.item.map(from_item).transpose()?;
        Ok(row.filter(|row| row.organization_id == organization))
    }

    /// All attachments of an agent, as of now: whoever holds the agent's lease misses none.
    pub async fn of_agent(&self, organization: OrganizationId, agent: AgentId) -> Result<Vec<AgentTool>> {
        let mut rows = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .consistent_read(true)
            .key_condition_expression("#agent = :agent")
            .filter_expression("#organization = :organization")
            .expression_attribute_names("#agent", "agent_id")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":agent", text(agent))
            .expression_attribute_values(":organization", text(organization))
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            rows.extend(readable::<AgentTool>(item.map_err(failed)?));
        }
        Ok(rows)
    }

    /// All attachments of a tool, as the index has them: what was written a moment ago may be missing.
    pub async fn of_tool(&self, organization: OrganizationId, tool: ToolId) -> Result<Vec<AgentTool>> {
        let mut rows = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
            .index_name("by_tool")
            .key_condition_expression("#tool = :tool")
            .filter_expression("#organization = :organization")
            .expression_attribute_names("#tool", "tool_id")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":tool", text(tool))
            .expression_attribute_values(":organization", text(organization))
            .into_paginator()
            .items()
            .send();
        while let Some(item) = pages.next().await {
            rows.extend(readable::<AgentTool>(item.map_err(failed)?));
        }
        Ok(rows)
    }

    /// Which of these agents have the tool as of now.
    pub async fn among(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        agents: &BTreeSet<AgentId>,
    ) -> Result<BTreeSet<AgentId>> {
        let mut having = BTreeSet::new();
        let key = |agent: &AgentId| Item::from([("agent_id".into(), text(agent)), ("tool_id".into(), text(tool))]);
        for batch in agents.iter().map(key).collect::<Vec<_>>().chunks(BATCH) {
            let mut wanted = batch.to_vec();
            while !wanted.is_empty() {
                let keys = KeysAndAttributes::builder().set_keys(Some(wanted)).consistent_read(true);
                let keys = keys.build().map_err(Error::internal)?;
                let found =
                    self.client.batch_get_item().request_items(&self.table, keys).send().await.map_err(failed)?;
                for item in found.responses.into_iter().flat_map(HashMap::into_values).flatten() {
                    let row: AgentTool = from_item(item)?;
                    having.extend((row.organization_id == organization).then_some(row.agent_id));
                }
                let left = found.unprocessed_keys.and_then(|mut left| left.remove(&self.table));
                wanted = left.map(|left| left.keys).unwrap_or_default();
            }
        }
        Ok(having)
    }

    /// Writes the attachment, closes the intent and gives the agent's lease back, in one transaction that fails as a whole
    /// if the lease is no longer ours, or the tool was edited or deleted since it was read, or is being so. The base of an
    /// automatic tool notes the agent.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a lost lease, an existing row or a tool that changed.
    pub async fn attach(&self, row: &AgentTool, tool: &Tool, lease: &Lease, intent: Option<IntentId>) -> Result<()> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(row)?))
            .condition_expression("attribute_not_exists(#agent)")
            .expression_attribute_names("#agent", "agent_id")
            .build()
            .map_err(Error::internal)?;
        let tool_is_as_read = ConditionCheck::builder()
            .table_name(&self.tools)
            .key("id", text(row.tool_id))
            .condition_expression(
                "#organization = :organization AND (#version = :version OR (attribute_not_exists(#version) AND :version = :zero)) \
                 AND (attribute_not_exists(#until) OR #until < :now)",
            )
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#version", "version")
            .expression_attribute_names("#until", "lease_until")
            .expression_attribute_values(":organization", text(row.organization_id))
            .expression_attribute_values(":version", AttributeValue::N(tool.version.to_string()))
            .expression_attribute_values(":zero", number(0))
            .expression_attribute_values(":now", number(Timestamp::now().as_millis()))
            .build()
            .map_err(Error::internal)?;
        let mut items = vec![
            TransactWriteItem::builder().put(put).build(),
            TransactWriteItem::builder().update(lease.release_in_transaction()?).build(),
            TransactWriteItem::builder().condition_check(tool_is_as_read).build(),
        ];
        items.extend(intent.map(|intent| self.intents.close_in_transaction(intent)).transpose()?);
        let base = tool.automatic_for.map(|base| self.bases.note_agent_in_transaction(base, row));
        items.extend(base.transpose()?);
        transact(&self.client, items).await.map_err(|refused| match refused {
            Refused::Condition(0) => Error::Conflict("the tool is already attached to this agent".into()),
            Refused::Condition(1) => Error::Conflict("another change of this agent came in between; try again".into()),
            Refused::Condition(_) => Error::Conflict("the tool is being changed or was deleted; try again".into()),
            Refused::Other(error) => error,
        })
    }

    /// Deletes the attachment, closes the intent and gives the agent's lease back, in one transaction.
    pub async fn detach(&self, row: &AgentTool, lease: &Lease, intent: Option<IntentId>) -> Result<()> {
        let mut items = vec![
            self.delete_in_transaction(row)?,
            TransactWriteItem::builder().update(lease.release_in_transaction()?).build(),
        ];
        items.extend(intent.map(|intent| self.intents.close_in_transaction(intent)).transpose()?);
        transact(&self.client, items)
            .await
            .map_err(|refused| refused.or("another change of this agent came in between; try again"))
    }

    pub(super) fn delete_in_transaction(&self, row: &AgentTool) -> Result<TransactWriteItem> {
        let delete = Delete::builder()
            .table_name(&self.table)
            .key("agent_id", text(row.agent_id))
            .key("tool_id", text(row.tool_id))
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().delete(delete).build())
    }

    /// Deletes up to 100 attachments in one transaction.
    pub async fn delete_page(&self, rows: &[AgentTool]) -> Result<()> {
        let items = rows.iter().map(|row| self.delete_in_transaction(row)).collect::<Result<Vec<_>>>()?;
        transact(&self.client, items)
            .await
            .map_err(|refused| refused.or("the attachments are being changed; try again"))
    }

    /// Notes an attachment that VAPI has and the table lacked. The agent's lease is held.
    pub async fn insert_missing(&self, row: &AgentTool) -> Result<()> {
        let outcome = self
            .client
            .put_item()
            .table_name(&self.table)
            .set_item(Some(to_item(row)?))
            .condition_expression("attribute_not_exists(#agent)")
            .expression_attribute_names("#agent", "agent_id")
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Notes whether the tool is in the assistant's `toolIds`. A row that is gone stays gone.
    pub async fn set_vapi_attached(&self, row: &AgentTool, is_vapi_attached: bool) -> Result<()> {
        let outcome = self
            .client
            .update_item()
            .table_name(&self.table)
            .key("agent_id", text(row.agent_id))
            .key("tool_id", text(row.tool_id))
            .update_expression("SET #attached = :attached, #updated = :updated")
            .condition_expression("#organization = :organization")
            .expression_attribute_names("#attached", "is_vapi_attached")
            .expression_attribute_names("#updated", "updated_at")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":attached", AttributeValue::Bool(is_vapi_attached))
            .expression_attribute_values(":updated", text(Timestamp::now()))
            .expression_attribute_values(":organization", text(row.organization_id))
            .send()
            .await;
        match outcome {
            Ok(_) => Ok(()),
            Err(error) if condition_failure(&error).is_some() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }

    /// Removes up to [`REMOVED_AT_ONCE`] attachments of an agent in one transaction, which fails as a whole if its lease is
    /// no longer ours. One that is gone already is fine.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a lost lease.
    pub async fn remove(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        tools: &[ToolId],
        lease: &Lease,
    ) -> Result<()> {
        let mut items = vec![TransactWriteItem::builder().condition_check(lease.held_in_transaction()?).build()];
        for tool in tools {
            let delete = Delete::builder()
                .table_name(&self.table)
                .key("agent_id", text(agent))
                .key("tool_id", text(*tool))
                .condition_expression("attribute_not_exists(#agent) OR #organization = :organization")
                .expression_attribute_names("#agent", "agent_id")
                .expression_attribute_names("#organization", "organization_id")
                .expression_attribute_values(":organization", text(organization))
                .build()
                .map_err(Error::internal)?;
            items.push(TransactWriteItem::builder().delete(delete).build());
        }
        transact(&self.client, items).await.map_err(|refused| match refused {
            Refused::Condition(0) => Error::Conflict("another change of this agent came in between; try again".into()),
            Refused::Condition(_) => Error::NotFound("agent"),
            Refused::Other(error) => error,
        })
    }
}
