//! `tools`. Key: id. Index `by_external_tool_id`: `external_tool_id`.
//!
//! Guard items with the key `name#<organization>#<name>` make names unique within an organization. A guard is reserved before
//! VAPI hears of the tool and confirmed with the row; a reservation left by a crash expires.

use std::{collections::HashMap, time::Duration};

use serde::de::IgnoredAny;

use super::{
    Cursor, Intents, KnowledgeBases, Lease, Page, ToolAttachments,
    audit::Change,
    database::{Database, Item, from_item, id, is_of, number, rows, text, to_attribute, to_item},
    table::Table,
    write::{Refused, Write, set_all, transact, transact_unless_refused},
};
use crate::{
    Deadline, Error, Result,
    models::{
        Act, AuthenticatedTool, Intent, IntentId, KnowledgeBaseId, Noun, OrganizationId, Timestamp, Tool,
        ToolAttachment, ToolId, ToolName, ToolType,
    },
};

/// Longer than `create-tool` may run.
const RESERVATION: Duration = Duration::from_secs(60);

/// Longer than any holder may run.
const LEASE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct Tools {
    table: Table,
    intents: Intents,
    attachments: ToolAttachments,
}

impl Tools {
    pub fn new(database: &Database) -> Self {
        Self {
            table: database.table("tools"),
            intents: Intents::new(database),
            attachments: ToolAttachments::new(database),
        }
    }

    pub async fn get(&self, organization: OrganizationId, tool: ToolId) -> Result<Tool> {
        self.table.owned(organization, id(tool), "tool").await
    }

    /// The tool whose own token was verified, which replaces the check of the organization.
    pub async fn of_token(&self, tool: AuthenticatedTool) -> Result<Tool> {
        self.table.get_consistent(id(tool.id())).await?.ok_or(Error::NotFound("tool"))
    }

    /// The tool's organization, before authentication: the required credentials depend on it.
    pub async fn owner(&self, tool: ToolId) -> Result<OrganizationId> {
        let row: Option<Tool> = self.table.get(id(tool)).await?;
        Ok(row.ok_or(Error::NotFound("tool"))?.organization_id)
    }

    /// The organization's readable tools with these ids, read consistently and unordered; other ids are skipped.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if DynamoDB does not answer for all of them by `deadline`.
    pub async fn get_many(
        &self,
        organization: OrganizationId,
        tools: &[ToolId],
        deadline: Deadline,
    ) -> Result<Vec<Tool>> {
        Ok(rows(self.items(organization, tools, deadline).await?))
    }

    /// Like [`Tools::get_many`], failing if any of the tools is unreadable.
    ///
    /// # Errors
    /// Also [`Error::Unreadable`].
    pub async fn get_all(
        &self,
        organization: OrganizationId,
        tools: &[ToolId],
        deadline: Deadline,
    ) -> Result<Vec<Tool>> {
        self.items(organization, tools, deadline).await?.into_iter().map(from_item).collect()
    }

    /// Like [`Tools::get_many`], by id, with an error for each unreadable tool.
    pub async fn find_each(
        &self,
        organization: OrganizationId,
        tools: &[ToolId],
        deadline: Deadline,
    ) -> Result<HashMap<ToolId, Result<Tool>>> {
        let items = self.items(organization, tools, deadline).await?;
        let by_id =
            items.into_iter().filter_map(|item| Some((item.get("id")?.as_s().ok()?.parse().ok()?, from_item(item))));
        Ok(by_id.collect())
    }

    async fn items(&self, organization: OrganizationId, tools: &[ToolId], deadline: Deadline) -> Result<Vec<Item>> {
        let mut items = self.table.batch_get(tools.iter().map(id).collect(), None, deadline).await?;
        items.retain(|item| is_of(item, organization));
        Ok(items)
    }

    pub async fn by_external_id(&self, organization: OrganizationId, external_id: &str) -> Result<Option<Tool>> {
        let found = self.table.query_index("by_external_tool_id", "#external_tool_id = :external");
        let found: Option<Item> = found.with([(":external", text(external_id))]).first_item().await?;
        found.filter(|item| is_of(item, organization)).map(from_item).transpose()
    }

    pub async fn page(&self, organization: OrganizationId, after: Option<&Cursor>, limit: i32) -> Result<Page<Tool>> {
        Page::newest(organization, &self.table, after, limit).await
    }

    pub async fn all(&self, organization: OrganizationId) -> Result<Vec<Tool>> {
        self.table.of_organization(organization).collect().await
    }

    pub async fn of_knowledge_base(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Result<Vec<Tool>> {
        self.table
            .of_organization(organization)
            .filter("#type = :query AND #config_metadata.#knowledge_base_id = :base")
            .with([(":query", text(ToolType::Query)), (":base", text(base))])
            .collect()
            .await
    }

    /// Reserves a name for a tool and opens the intent, in one transaction. False if the name is taken.
    pub async fn reserve_name(&self, intent: &Intent, name: &ToolName, tool: ToolId) -> Result<bool> {
        let now = Timestamp::now();
        let mut guard = guard_of(intent.organization_id, name, tool);
        guard.insert("reserved_until".into(), number(now.plus(RESERVATION).as_millis()));
        let reserved = self
            .table
            .put_item(guard)
            .when("attribute_not_exists(#id) OR #tool_id = :tool OR #reserved_until < :now")
            .with([(":tool", text(tool)), (":now", number(now.as_millis()))]);
        transact_unless_refused(vec![reserved, self.intents.open_in_transaction(intent)?]).await
    }

    pub async fn release_name(&self, organization: OrganizationId, name: &ToolName, tool: ToolId) -> Result<()> {
        let released = self.table.delete(guard(organization, name)).when("#tool_id = :tool");
        released.with([(":tool", text(tool))]).unless_refused().await.map(drop)
    }

    /// Writes a new tool, confirms its name and closes the intents of tool and secret, in one transaction. With a knowledge
    /// base's lease, also sets the base's query tool.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another tool took the name or the lease is lost.
    pub async fn create(
        &self,
        tool: &Tool,
        intent: IntentId,
        secret: Option<IntentId>,
        base: Option<&Lease>,
    ) -> Result<()> {
        let row = audited(self.table.put(tool)?.when("attribute_not_exists(#id)"), Act::Created, tool)?;
        let mut writes = vec![row, self.confirmed_name(tool), self.intents.close_in_transaction(intent)];
        writes.extend(base.map(|lease| KnowledgeBases::note_tool_in_transaction(lease, tool.id)));
        writes.extend(secret.map(|secret| self.intents.close_in_transaction(secret)));
        match transact(writes).await.map_err(|refused| match refused {
            Refused::Condition(3) => {
                Error::Conflict("another change of this knowledge base came in between; try again".into())
            }
            refused => refused.or("another tool took this name; try again"),
        }) {
            // The transaction may have succeeded although its answer was lost.
            Err(Error::Unavailable(..)) if self.stands(tool.id).await => Ok(()),
            written => written,
        }
    }

    async fn stands(&self, tool: ToolId) -> bool {
        self.table.get_consistent::<IgnoredAny>(id(tool)).await.is_ok_and(|row| row.is_some())
    }

    /// Acquires the lease and reads the tool. [`Error::Conflict`] if another holder keeps it until `deadline`.
    pub async fn acquire(
        &self,
        organization: OrganizationId,
        tool: ToolId,
        deadline: Deadline,
    ) -> Result<(Tool, Lease)> {
        Lease::acquire(organization, &self.table, id(tool), "tool", LEASE, deadline).await
    }

    /// Rewrites a leased tool read as `before`, keeps the lease, and sets `updated_at` and `version`. The same transaction
    /// releases a changed name (the new one must be reserved), closes the intent `made` of a new secret and opens `left` of the
    /// old one.
    ///
    /// # Errors
    /// [`Error::Conflict`] if the lease is lost.
    pub async fn replace(
        &self,
        tool: &mut Tool,
        before: &Tool,
        lease: &Lease,
        made: Option<IntentId>,
        left: Option<&Intent>,
    ) -> Result<()> {
        tool.updated_at = Timestamp::now();
        tool.continue_version_of(before);
        let (change, values) = set_all(to_item(tool)?, &["external_tool_id", "automatic_for", "values_secret"]);
        let row = lease.update_in_transaction(change).with_all(values);
        let mut writes = vec![audited(row, Act::Edited, tool)?];
        if tool.name != before.name {
            writes.push(self.confirmed_name(tool));
            writes.push(self.table.delete(guard(tool.organization_id, &before.name)));
        }
        writes.extend(made.map(|made| self.intents.close_in_transaction(made)));
        writes.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        transact(writes)
            .await
            .map_err(|refused| refused.or("another edit of this tool came in between; read it again and repeat yours"))
    }

    /// Writes VAPI's object of a leased tool and the choice in it. The version stays: the author's configuration is the same.
    pub async fn note_at_vapi(&self, tool: &Tool) -> Result<()> {
        let note = self.table.update(id(tool.id), "SET #spoken_at_start = :choice, #data = :data");
        note.of(tool.organization_id)
            .with([(":choice", to_attribute(&tool.spoken_at_start)?), (":data", to_attribute(&tool.data)?)])
            .unless_refused()
            .await
            .map(drop)
    }

    fn confirmed_name(&self, tool: &Tool) -> Write {
        let guard = self.table.put_item(guard_of(tool.organization_id, &tool.name, tool.id));
        guard.when("#tool_id = :tool").with([(":tool", text(tool.id))])
    }

    /// Deletes a leased tool, its name and the given attachments, closes `intent` and opens the intent `left` of the tool's
    /// secret, in one transaction.
    pub async fn delete(
        &self,
        tool: &Tool,
        lease: &Lease,
        attachments: &[ToolAttachment],
        intent: IntentId,
        left: Option<&Intent>,
    ) -> Result<()> {
        let row = self.table.delete(id(tool.id)).when("#lease_token = :token").with([(":token", lease.token())]);
        let name = self.table.delete(guard(tool.organization_id, &tool.name));
        let row = audited(row, Act::Deleted, tool)?;
        let mut writes = vec![row, name, self.intents.close_in_transaction(intent)];
        writes.extend(attachments.iter().map(|attachment| self.attachments.delete_in_transaction(attachment)));
        writes.extend(left.map(|left| self.intents.open_in_transaction(left)).transpose()?);
        transact(writes).await.map_err(|refused| refused.or("another change of this tool came in between; try again"))
    }
}

/// A query tool that attaching a knowledge base makes is part of that attachment.
fn audited(write: Write, action: Act, tool: &Tool) -> Result<Write> {
    if tool.automatic_for.is_some() {
        return Ok(write);
    }
    let change = Change::of(action, Noun::Tool, tool.id).named(&tool.label);
    write.audited(change.with("type", tool.kind.as_str()))
}

fn guard(organization: OrganizationId, name: &ToolName) -> Item {
    id(format!("name#{organization}#{name}"))
}

fn guard_of(organization: OrganizationId, name: &ToolName, tool: ToolId) -> Item {
    let mut item = guard(organization, name);
    item.insert("tool_id".into(), text(tool));
    item
}
