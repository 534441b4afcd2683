//! `agent_tools`. Key: `agent_id` (partition), `tool_id` (sort).
//!
//! Index `by_tool`: `tool_id`.

use std::collections::BTreeSet;

use aws_sdk_dynamodb::types::AttributeValue;

use super::{
    Intents, KnowledgeBases, Lease,
    audit::Change,
    database::{Database, Item, id, key, number, rows, text},
    table::Table,
    write::{Refused, Write, transact},
};
use crate::{
    Deadline, Error, Result,
    models::{Act, AgentId, IntentId, Noun, OrganizationId, Timestamp, Tool, ToolAttachment, ToolId},
};

/// Attachments removed per transaction: DynamoDB takes 100 actions, and one checks the lease.
pub const REMOVED_AT_ONCE: usize = 99;

const OVERTAKEN: &str = "another change of this agent came in between; try again";

#[derive(Clone)]
pub struct ToolAttachments {
    table: Table,
    tools: Table,
    intents: Intents,
    bases: KnowledgeBases,
}

impl ToolAttachments {
    pub fn new(database: &Database) -> Self {
        Self {
            table: database.table("agent_tools"),
            tools: database.table("tools"),
            intents: Intents::new(database),
            bases: KnowledgeBases::new(database),
        }
    }

    pub async fn find(
        &self,
        organization: OrganizationId,
        agent: AgentId,
        tool: ToolId,
    ) -> Result<Option<ToolAttachment>> {
        let row = self.table.get_consistent(pair(agent, tool)).await?;
        Ok(row.filter(|row: &ToolAttachment| row.organization_id == organization))
    }

    /// All attachments of an agent, read consistently: complete for the holder of the agent's lease.
    pub async fn of_agent(&self, organization: OrganizationId, agent: AgentId) -> Result<Vec<ToolAttachment>> {
        self.table.query("#agent_id = :agent").now().of(organization).with([(":agent", text(agent))]).collect().await
    }

    /// All attachments of a tool. The index lags: a recent attachment may be missing.
    pub async fn of_tool(&self, organization: OrganizationId, tool: ToolId) -> Result<Vec<ToolAttachment>> {
        let rows = self.table.query_index("by_tool", "#tool_id = :tool").of(organization);
        rows.with([(":tool", text(tool))]).collect().await
    }

    /// The subset of these agents that have the tool, read consistently.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if DynamoDB does not answer for all of them by `deadline`.
    pub async fn among(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        agents: &BTreeSet<AgentId>,
        deadline: Deadline,
    ) -> Result<BTreeSet<AgentId>> {
        let keys = agents.iter().map(|agent| pair(*agent, tool)).collect();
        let found: Vec<ToolAttachment> = rows(self.table.batch_get(keys, None, deadline).await?);
        Ok(found.into_iter().filter(|row| row.organization_id == organization).map(|row| row.agent_id).collect())
    }

    /// Writes the attachment, closes the intent and releases the agent's lease in one transaction. The base of an automatic tool
    /// records the agent.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a lost lease, an existing row, or a tool that is being edited or has changed since it was read.
    pub async fn attach(
        &self,
        row: &ToolAttachment,
        tool: &Tool,
        lease: &Lease,
        intent: Option<IntentId>,
    ) -> Result<()> {
        let tool_is_as_read = self
            .tools
            .check(id(row.tool_id))
            .when(
                "(#version = :version OR (attribute_not_exists(#version) AND :version = :zero)) \
                 AND (attribute_not_exists(#lease_until) OR #lease_until < :now)",
            )
            .of(row.organization_id)
            .with([
                (":version", AttributeValue::N(tool.version.to_string())),
                (":zero", number(0)),
                (":now", number(Timestamp::now().as_millis())),
            ]);
        let new = self.new_row(row)?.audited(attachment(Act::Attached, row, Some(tool)))?;
        let mut writes = vec![new, lease.release_in_transaction(), tool_is_as_read];
        writes.extend(intent.map(|intent| self.intents.close_in_transaction(intent)));
        writes.extend(tool.automatic_for.map(|base| self.bases.note_agent_in_transaction(base, row)));
        transact(writes).await.map_err(|refused| match refused {
            Refused::Condition(0) => Error::Conflict("the tool is already attached to this agent".into()),
            Refused::Condition(1) => Error::Conflict(OVERTAKEN.into()),
            refused => refused.or("the tool is being changed or was deleted; try again"),
        })
    }

    /// Notes at an existing attachment that it was requested again, closes the intent and releases the agent's lease in one
    /// transaction: an older detachment that is settled later leaves the attachment.
    ///
    /// # Errors
    /// [`Error::Conflict`] for a lost lease, or if the row is gone.
    pub async fn attach_again(&self, row: ToolAttachment, lease: &Lease, intent: IntentId) -> Result<ToolAttachment> {
        let row = ToolAttachment { updated_at: Timestamp::now(), ..row };
        let again = self.table.update(pair(row.agent_id, row.tool_id), "SET #updated_at = :now");
        let again = again.of(row.organization_id).with([(":now", text(row.updated_at))]);
        let writes = vec![again, lease.release_in_transaction(), self.intents.close_in_transaction(intent)];
        transact(writes).await.map_err(|refused| refused.or(OVERTAKEN))?;
        Ok(row)
    }

    /// `tool`: unknown if it is deleted already.
    pub async fn detach(
        &self,
        row: &ToolAttachment,
        tool: Option<&Tool>,
        lease: &Lease,
        intent: Option<IntentId>,
    ) -> Result<()> {
        let gone = self.delete_in_transaction(row).audited(attachment(Act::Detached, row, tool))?;
        let mut writes = vec![gone, lease.release_in_transaction()];
        writes.extend(intent.map(|intent| self.intents.close_in_transaction(intent)));
        transact(writes).await.map_err(|refused| refused.or(OVERTAKEN))
    }

    pub(super) fn delete_in_transaction(&self, row: &ToolAttachment) -> Write {
        self.table.delete(pair(row.agent_id, row.tool_id))
    }

    pub async fn delete_page(&self, rows: &[ToolAttachment]) -> Result<()> {
        let deleted = rows.iter().map(|row| self.delete_in_transaction(row)).collect();
        transact(deleted).await.map_err(|refused| refused.or("the attachments are being changed; try again"))
    }

    /// Writes an attachment that VAPI has and the table lacks. Requires the agent's lease.
    pub async fn insert_missing(&self, row: &ToolAttachment) -> Result<()> {
        self.new_row(row)?.unless_refused().await.map(drop)
    }

    fn new_row(&self, row: &ToolAttachment) -> Result<Write> {
        Ok(self.table.put(row)?.when("attribute_not_exists(#agent_id)"))
    }

    /// Records whether the tool is in the assistant's `toolIds`. Does not recreate a deleted row.
    pub async fn set_vapi_attached(&self, row: &ToolAttachment, is_vapi_attached: bool) -> Result<()> {
        let change = "SET #is_vapi_attached = :attached, #updated_at = :now";
        let noted = self.table.update(pair(row.agent_id, row.tool_id), change).of(row.organization_id);
        let values = [(":attached", AttributeValue::Bool(is_vapi_attached)), (":now", text(Timestamp::now()))];
        noted.with(values).unless_refused().await.map(drop)
    }

    /// Removes up to [`REMOVED_AT_ONCE`] attachments of an agent in one transaction; attachments already gone are skipped.
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
        let removed = tools.iter().map(|tool| {
            let removed = self.table.delete(pair(agent, *tool));
            let removed = removed.when("attribute_not_exists(#agent_id) OR #organization_id = :organization");
            removed.with([(":organization", text(organization))])
        });
        let writes = [lease.held_in_transaction()].into_iter().chain(removed).collect();
        transact(writes).await.map_err(|refused| match refused {
            Refused::Condition(1..) => Error::NotFound("agent"),
            refused => refused.or(OVERTAKEN),
        })
    }
}

/// Of a knowledge base, if the tool is made for one.
fn attachment(action: Act, row: &ToolAttachment, tool: Option<&Tool>) -> Change {
    let change = match tool.and_then(|tool| tool.automatic_for) {
        Some(base) => Change::of(action, Noun::KnowledgeBase, base),
        None => Change::of(action, Noun::Tool, row.tool_id),
    };
    let change = change.with("agent_id", row.agent_id.to_string());
    match tool {
        Some(tool) => change.named(&tool.label),
        None => change,
    }
}

fn pair(agent: AgentId, tool: ToolId) -> Item {
    key([("agent_id", text(agent)), ("tool_id", text(tool))])
}
