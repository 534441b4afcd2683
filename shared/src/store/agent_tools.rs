//! `agent_tools`. Key: `agent_id` (partition), `tool_id` (sort), which *is* `UNIQUE(agent_id, tool_id)`.

use aws_sdk_dynamodb::{
    Client,
    operation::transact_write_items::TransactWriteItemsError,
    types::{ConditionCheck, Delete, Put, TransactWriteItem},
};

use super::{
    Lease,
    database::{Database, failed, failed_transaction, from_item, refused_action, text, to_item},
};
use crate::{
    Error, Result,
    models::{AgentId, AgentTool, OrganizationId, ToolId},
};

/// Attachments that one transaction removes: DynamoDB takes 100 actions, and one is the check of the lease.
pub const REMOVED_AT_ONCE: usize = 99;

#[derive(Clone)]
pub struct AgentTools {
    client: Client,
    table: String,
    tools: String,
}

impl AgentTools {
    pub fn new(database: &Database) -> Self {
        Self { client: database.client.clone(), table: database.table("agent_tools"), tools: database.table("tools") }
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
            rows.push(from_item(item.map_err(failed)?)?);
        }
        Ok(rows)
    }

    /// Writes the attachment and gives the agent's lease back, in one transaction that fails as a whole if the lease is
    /// no longer ours or the tool is gone.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a lost lease or an existing row, [`Error::NotFound`] for a deleted tool.
    pub async fn attach(&self, row: &AgentTool, lease: &Lease) -> Result<()> {
        let put = Put::builder()
            .table_name(&self.table)
            .set_item(Some(to_item(row)?))
            .condition_expression("attribute_not_exists(#agent)")
            .expression_attribute_names("#agent", "agent_id")
            .build()
            .map_err(Error::internal)?;
        let tool_is_there = ConditionCheck::builder()
            .table_name(&self.tools)
            .key("id", text(row.tool_id))
            .condition_expression("#organization = :organization")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_values(":organization", text(row.organization_id))
            .build()
            .map_err(Error::internal)?;
        let outcome = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().put(put).build())
            .transact_items(TransactWriteItem::builder().update(lease.release_in_transaction()?).build())
            .transact_items(TransactWriteItem::builder().condition_check(tool_is_there).build())
            .send()
            .await;
        let Err(error) = outcome else { return Ok(()) };
        let Some(TransactWriteItemsError::TransactionCanceledException(cancelled)) = error.as_service_error() else {
            return Err(failed(error));
        };
        let refused =
            cancelled.cancellation_reasons().iter().position(|why| why.code() == Some("ConditionalCheckFailed"));
        Err(match refused {
            Some(0) => Error::Conflict("the tool is already attached to this agent".into()),
            Some(1) => Error::Conflict("another change of this agent came in between; try again".into()),
            Some(2) => Error::NotFound("tool"),
            _ => Error::Unavailable("the database", Box::new(error)),
        })
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
        let mut transaction = self
            .client
            .transact_write_items()
            .transact_items(TransactWriteItem::builder().condition_check(lease.held_in_transaction()?).build());
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
            transaction = transaction.transact_items(TransactWriteItem::builder().delete(delete).build());
        }
        let Err(error) = transaction.send().await else { return Ok(()) };
        Err(match refused_action(&error) {
            Some(0) => Error::Conflict("another change of this agent came in between; try again".into()),
            Some(_) => Error::NotFound("agent"),
            None => failed_transaction(error),
        })
    }
}
