//! `knowledge_bases`. Key: id. Index `by_organization`: `organization_id`, `created_at`.
//!
//! `version` and `entries` are written with the entries, by [`super::KnowledgeEntries`]. `query_tool_id` is written in the
//! transaction that makes the tool, and an agent is added to `agent_ids` in the one that attaches it: whoever holds the
//! tool's lease, under which nothing is attached, misses none. Attaching and detaching a base are serialized by the lease
//! on its row.

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_dynamodb::{
    Client,
    types::{AttributeValue, TransactWriteItem, Update},
};

use super::{
    Cursor, Intents, Lease, Page,
    database::{Database, condition_failure, failed, key, owned, text, to_item, transact},
};
use crate::{
    Deadline, Error, Result,
    models::{AgentId, AgentTool, Intent, KnowledgeBase, KnowledgeBaseId, OrganizationId, Timestamp, ToolId},
};

/// Longer than any function that holds it may run.
const LEASE: Duration = Duration::from_secs(30);

const OVERTAKEN: &str = "another change of this knowledge base came in between; try again";

#[derive(Clone)]
pub struct KnowledgeBases {
    client: Client,
    table: String,
    intents: Intents,
}

impl KnowledgeBases {
    pub fn new(database: &Database) -> Self {
        Self {
            client: database.client.clone(),
            table: database.table("knowledge_bases"),
            intents: Intents::new(database),
        }
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
        owned(organization, found.item, "knowledge base")
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

    /// Takes the lease on a base and reads it. Waits for another holder until `deadline`, then [`Error::Conflict`].
    pub async fn lock(
        &self,
        organization: OrganizationId,
        id: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(KnowledgeBase, Lease)> {
        Lease::acquire(&self.client, &self.table, (organization, key(id)), "knowledge base", LEASE, deadline).await
    }

    pub async fn unlock(&self, lease: Lease) -> Result<()> {
        lease.release(&self.client).await
    }

    /// Notes, as part of a transaction, the tool that was made for the base whose lease this is; no agent has it yet.
    pub(super) fn note_tool_in_transaction(lease: &Lease, tool: ToolId) -> Result<TransactWriteItem> {
        let update = lease
            .update_in_transaction()
            .update_expression("SET #tool = :tool REMOVE #agents")
            .expression_attribute_names("#tool", "query_tool_id")
            .expression_attribute_names("#agents", "agent_ids")
            .expression_attribute_values(":tool", text(tool))
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Notes, as part of a transaction, an agent that gets the base's tool; the transaction fails if the base has given that
    /// tool up.
    pub(super) fn note_agent_in_transaction(
        &self,
        base: KnowledgeBaseId,
        row: &AgentTool,
    ) -> Result<TransactWriteItem> {
        let update = Update::builder()
            .table_name(&self.table)
            .key("id", text(base))
            .update_expression("ADD #agents :agent")
            .condition_expression("#organization = :organization AND #tool = :tool")
            .expression_attribute_names("#agents", "agent_ids")
            .expression_attribute_names("#organization", "organization_id")
            .expression_attribute_names("#tool", "query_tool_id")
            .expression_attribute_values(":agent", AttributeValue::Ss(vec![row.agent_id.to_string()]))
            .expression_attribute_values(":organization", text(row.organization_id))
            .expression_attribute_values(":tool", text(row.tool_id))
            .build()
            .map_err(Error::internal)?;
        Ok(TransactWriteItem::builder().update(update).build())
    }

    /// Forgets agents that no longer have the base's tool. The leases of base and tool are held.
    pub async fn forget_agents(&self, agents: &BTreeSet<AgentId>, base: &Lease, tool: &Lease) -> Result<()> {
        let update = base
            .update_in_transaction()
            .update_expression("DELETE #agents :agents")
            .expression_attribute_names("#agents", "agent_ids")
            .expression_attribute_values(
                ":agents",
                AttributeValue::Ss(agents.iter().map(ToString::to_string).collect()),
            )
            .build()
            .map_err(Error::internal)?;
        let items = vec![
            TransactWriteItem::builder().update(update).build(),
            TransactWriteItem::builder().condition_check(tool.held_in_transaction()?).build(),
        ];
        transact(&self.client, items).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    /// Gives up the base's tool, which no agent has, and records the intent to delete it, both or neither: from here on the
    /// base gets a new one. The leases of base and tool are held.
    pub async fn give_up_tool(&self, base: &Lease, tool: &Lease, deletion: &Intent) -> Result<()> {
        let update = base
            .update_in_transaction()
            .update_expression("REMOVE #tool, #agents")
            .expression_attribute_names("#tool", "query_tool_id")
            .expression_attribute_names("#agents", "agent_ids")
            .build()
            .map_err(Error::internal)?;
        let items = vec![
            TransactWriteItem::builder().update(update).build(),
            TransactWriteItem::builder().condition_check(tool.held_in_transaction()?).build(),
            self.intents.open_in_transaction(deletion)?,
        ];
        transact(&self.client, items).await.map_err(|refused| refused.or(OVERTAKEN))
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
