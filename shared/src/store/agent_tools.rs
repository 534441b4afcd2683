//! `agent_tools`. Key: `agent_id` (partition), `tool_id` (sort), which *is* `UNIQUE(agent_id, tool_id)`. Index `by_tool`:
//! `tool_id`.

use aws_sdk_dynamodb::{
    Client,
    operation::transact_write_items::TransactWriteItemsError,
    types::{ConditionCheck, Put, TransactWriteItem},
};

use super::{
    Lease,
    database::{Database, failed, from_item, text, to_item},
};
use crate::{
    Error, Result,
    models::{AgentId, AgentTool, OrganizationId, ToolId},
};

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

    /// All attachments of an agent.
    pub async fn of_agent(&self, organization: OrganizationId, agent: AgentId) -> Result<Vec<AgentTool>> {
        let mut rows = Vec::new();
        let mut pages = self
            .client
            .query()
            .table_name(&self.table)
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

    /// All attachments of a tool.
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
}
