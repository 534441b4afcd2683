//! `do_not_call`: numbers that tools never call. Key: `organization_id` (partition), `id` (sort), a digest of the number.
//!
//! No TTL, and no part of an erasure: an erased number must not be called again. The rows hold no number.

use super::{
    Cursor, Page,
    audit::Change,
    database::{Database, Item, key, rows, text},
    table::Table,
};
use crate::{
    Error, Result,
    models::{Act, DoNotCall, DoNotCallId, E164, Noun, OrganizationId},
};

#[derive(Clone)]
pub struct DoNotCallList {
    table: Table,
}

impl DoNotCallList {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("do_not_call") }
    }

    /// The number's entry, read consistently.
    pub async fn of_number(&self, organization: OrganizationId, number: &E164) -> Result<Option<DoNotCall>> {
        self.find(organization, DoNotCallId::of_number(organization, number)).await
    }

    async fn find(&self, organization: OrganizationId, id: DoNotCallId) -> Result<Option<DoNotCall>> {
        self.table.get_consistent(row(organization, id)).await
    }

    /// In the order of their ids.
    pub async fn page(
        &self,
        organization: OrganizationId,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Page<DoNotCall>> {
        let start = after.map(|Cursor(id)| key([("organization_id", text(organization)), ("id", text(id))]));
        let entries = self.table.query("#organization_id = :organization");
        let (items, next) = entries.with([(":organization", text(organization))]).page(start, Some(limit)).await?;
        let next = next.as_ref().and_then(|key| key.get("id")?.as_s().ok());
        Ok(Page { items: rows(items), next_cursor: next.map(|id| Cursor(id).to_string()) })
    }

    /// False if the number is listed already; its entry stays as it is.
    pub async fn add(&self, entry: &DoNotCall) -> Result<bool> {
        let new = self.table.put(entry)?.when("attribute_not_exists(#id)");
        new.audited(change(Act::Created, entry.id))?.unless_refused().await
    }

    pub async fn remove(&self, organization: OrganizationId, id: DoNotCallId) -> Result<()> {
        let gone = self.table.delete(row(organization, id)).when("attribute_exists(#id)");
        let removed = gone.audited(change(Act::Deleted, id))?.unless_refused().await?;
        if removed { Ok(()) } else { Err(Error::NotFound("do-not-call entry")) }
    }
}

fn change(action: Act, id: DoNotCallId) -> Change {
    Change::of(action, Noun::DoNotCall, id)
}

fn row(organization: OrganizationId, id: DoNotCallId) -> Item {
    key([("organization_id", text(organization)), ("id", text(id))])
}
