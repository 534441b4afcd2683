//! `knowledge_bases`. Key: id. Index `by_organization`: `organization_id`, `created_at`.
//!
//! `version` and `entries` are written with the entries, by [`super::KnowledgeEntries`]. `query_tool_id` is written in the
//! transaction that makes the tool, and an agent is added to `agent_ids` in the one that attaches it: while the tool's
//! lease is held nothing is attached, so its holder misses none. Attaching and detaching a base are serialized by the lease
//! on its row.

use std::{collections::BTreeSet, time::Duration};

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    Cursor, Intents, Lease, Page,
    database::{Database, id, number, text, texts},
    table::Table,
    write::{Write, transact},
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
    table: Table,
    intents: Intents,
}

impl KnowledgeBases {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("knowledge_bases"), intents: Intents::new(database) }
    }

    pub async fn create(&self, base: &KnowledgeBase) -> Result<()> {
        self.table.put(base)?.when("attribute_not_exists(#id)").send().await
    }

    /// The base as the last finished load left it.
    pub async fn get(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<KnowledgeBase> {
        self.table.owned(organization, id(base), "knowledge base").await
    }

    /// A page of the organization's knowledge bases, newest first.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor>,
        limit: i32,
    ) -> Result<Page<KnowledgeBase>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    /// Acquires the lease on a base and reads it. Waits for another holder until `deadline`, then [`Error::Conflict`].
    pub async fn acquire(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(KnowledgeBase, Lease)> {
        Lease::acquire(organization, &self.table, id(base), "knowledge base", LEASE, deadline).await
    }

    /// Notes, as part of a transaction, the tool that was made for the base whose lease this is; no agent has it yet.
    pub(super) fn note_tool_in_transaction(lease: &Lease, tool: ToolId) -> Write {
        let noted = lease.update_in_transaction("SET #query_tool_id = :tool REMOVE #agent_ids");
        noted.with([(":tool", text(tool))])
    }

    /// Notes, as part of a transaction, an agent that gets the base's tool; the transaction fails if the base has given that
    /// tool up.
    pub(super) fn note_agent_in_transaction(&self, base: KnowledgeBaseId, row: &AgentTool) -> Write {
        self.table
            .update(id(base), "ADD #agent_ids :agent")
            .when("#organization_id = :organization AND #query_tool_id = :tool")
            .with([
                (":agent", texts([row.agent_id])),
                (":organization", text(row.organization_id)),
                (":tool", text(row.tool_id)),
            ])
    }

    /// Counts, as part of a transaction, a change of the base's entries by `added`; the transaction fails if the base is gone,
    /// is being deleted or holds more than `most` of them before.
    pub(super) fn count_in_transaction(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        added: i64,
        most: i64,
    ) -> Write {
        self.table
            .update(id(base), "SET #updated_at = :now ADD #version :one, #entries :added")
            .when("#organization_id = :organization AND #deleting <> :true AND #entries <= :most")
            .with([
                (":now", text(Timestamp::now())),
                (":one", number(1)),
                (":added", number(added)),
                (":organization", text(organization)),
                (":true", AttributeValue::Bool(true)),
                (":most", number(most)),
            ])
    }

    /// Forgets agents that no longer have the base's tool. The leases of base and tool are held.
    pub async fn forget_agents(&self, agents: &BTreeSet<AgentId>, base: &Lease, tool: &Lease) -> Result<()> {
        let forgotten = base.update_in_transaction("DELETE #agent_ids :agents").with([(":agents", texts(agents))]);
        transact(vec![forgotten, tool.held_in_transaction()]).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    /// Gives up the base's tool, which no agent has, and records the intent to delete it, both or neither: from here on the
    /// base gets a new one. The leases of base and tool are held.
    pub async fn give_up_tool(&self, base: &Lease, tool: &Lease, deletion: &Intent) -> Result<()> {
        let given_up = base.update_in_transaction("REMOVE #query_tool_id, #agent_ids");
        let writes = vec![given_up, tool.held_in_transaction(), self.intents.open_in_transaction(deletion)?];
        transact(writes).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    /// From here on nothing is loaded into it and nothing is found in it; may be repeated.
    pub async fn begin_deletion(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<()> {
        let begun = self
            .table
            .update(id(base), "SET #deleting = :true, #updated_at = :now ADD #version :one")
            .when("#organization_id = :organization")
            .with([
                (":true", AttributeValue::Bool(true)),
                (":now", text(Timestamp::now())),
                (":one", number(1)),
                (":organization", text(organization)),
            ]);
        if begun.unless_refused().await? { Ok(()) } else { Err(Error::NotFound("knowledge base")) }
    }

    /// Removes the row of a base whose entries are gone; one that is gone already is as good.
    pub async fn delete(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<()> {
        let deleted = self.table.delete(id(base)).when("#organization_id = :organization AND #deleting = :true");
        let values = [(":organization", text(organization)), (":true", AttributeValue::Bool(true))];
        deleted.with(values).unless_refused().await.map(drop)
    }
}
