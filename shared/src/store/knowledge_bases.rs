//! `knowledge_bases`. Key: id.
//!
//! [`super::KnowledgeEntries`] writes `version` and `entries`. Creating the query tool writes `query_tool_id` in the same
//! transaction, attaching it `agent_ids`. The tool's lease blocks attachments, so its holder sees all agents. The base's lease
//! serializes attaching and detaching the base.

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    Cursor, Intents, Lease, Page,
    audit::Change,
    database::{Database, id, number, text, texts},
    table::Table,
    write::{Write, transact},
};
use crate::{
    Deadline, Error, Result,
    models::{
        Act, AgentId, Intent, KnowledgeBase, KnowledgeBaseId, Noun, OrganizationId, Timestamp, ToolAttachment, ToolId,
    },
};

/// Longer than any holder may run.
const LEASE: Duration = Duration::from_secs(30);

const OVERTAKEN: &str = "another change of this knowledge base came in between; try again";

#[derive(Clone)]
pub struct KnowledgeBases {
    table: Table,
    intents: Intents,
}

impl KnowledgeBases {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("knowledge_bases"), intents: Intents::new(database) }
    }

    pub async fn create(&self, base: &KnowledgeBase) -> Result<()> {
        let created = Change::of(Act::Created, Noun::KnowledgeBase, base.id).named(&base.name);
        self.table.put(base)?.when("attribute_not_exists(#id)").audited(created)?.send().await
    }

    /// The base after the last completed load.
    pub async fn get(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<KnowledgeBase> {
        self.table.owned(organization, id(base), "knowledge base").await
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<KnowledgeBase>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    /// Acquires the lease and reads the base. [`Error::Conflict`] if another holder keeps it until `deadline`.
    pub async fn acquire(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(KnowledgeBase, Lease)> {
        Lease::acquire(organization, &self.table, id(base), "knowledge base", LEASE, deadline).await
    }

    /// Sets the new query tool of the leased base and clears its agents.
    pub(super) fn note_tool_in_transaction(lease: &Lease, tool: ToolId) -> Write {
        let noted = lease.update_in_transaction("SET #query_tool_id = :tool REMOVE #agent_ids");
        noted.with([(":tool", text(tool))])
    }

    /// Adds an agent to the base; the transaction fails if the base no longer has that tool.
    pub(super) fn note_agent_in_transaction(&self, base: KnowledgeBaseId, row: &ToolAttachment) -> Write {
        self.table
            .update(id(base), "ADD #agent_ids :agent")
            .when("#query_tool_id = :tool")
            .of(row.organization_id)
            .with([(":agent", texts([row.agent_id])), (":tool", text(row.tool_id))])
    }

    /// Adds `added` to the base's count of entries; the transaction fails if the base is gone, is being deleted or holds more
    /// than `most` entries.
    pub(super) fn count_in_transaction(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        added: i64,
        most: i64,
    ) -> Write {
        self.table
            .update(id(base), "SET #updated_at = :now ADD #version :one, #entries :added")
            .when("#deleting <> :true AND #entries <= :most")
            .of(organization)
            .with([
                (":now", text(Timestamp::now())),
                (":one", number(1)),
                (":added", number(added)),
                (":true", AttributeValue::Bool(true)),
                (":most", number(most)),
            ])
    }

    /// Removes agents that no longer have the base's tool. Requires the leases of base and tool.
    pub async fn forget_agents(&self, agents: &BTreeSet<AgentId>, base: &Lease, tool: &Lease) -> Result<()> {
        let forgotten = base.update_in_transaction("DELETE #agent_ids :agents").with([(":agents", texts(agents))]);
        transact(vec![forgotten, tool.held_in_transaction()]).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    /// Clears the base's query tool, which no agent has, and opens the intent to delete it, in one transaction. Requires the
    /// leases of base and tool.
    pub async fn give_up_tool(&self, base: &Lease, tool: &Lease, deletion: &Intent) -> Result<()> {
        let given_up = base.update_in_transaction("REMOVE #query_tool_id, #agent_ids");
        let writes = vec![given_up, tool.held_in_transaction(), self.intents.open_in_transaction(deletion)?];
        transact(writes).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    /// From now on the base accepts and returns no entries. Repeatable.
    pub async fn begin_deletion(&self, base: &KnowledgeBase) -> Result<()> {
        let mut begun = self
            .table
            .update(id(base.id), "SET #deleting = :true, #updated_at = :now ADD #version :one")
            .of(base.organization_id)
            .with([(":true", AttributeValue::Bool(true)), (":now", text(Timestamp::now())), (":one", number(1))]);
        if !base.deleting {
            begun = begun.audited(Change::of(Act::Deleted, Noun::KnowledgeBase, base.id).named(&base.name))?;
        }
        if begun.unless_refused().await? { Ok(()) } else { Err(Error::NotFound("knowledge base")) }
    }

    /// Deletes the row of an emptied base. Repeatable.
    pub async fn delete(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<()> {
        let deleted = self.table.delete(id(base)).when("#deleting = :true").of(organization);
        deleted.with([(":true", AttributeValue::Bool(true))]).unless_refused().await.map(drop)
    }
}
