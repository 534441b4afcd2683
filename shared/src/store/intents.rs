//! `intents`. Key: id. Closed intents are deleted, so a scan is short.

use std::time::Duration;

use super::{
    database::{Database, Item, from_item, id, number, text},
    table::Table,
    write::Write,
};
use crate::{
    Result,
    models::{Intent, IntentId, OrganizationId, Timestamp},
};

#[derive(Clone)]
pub struct Intents {
    table: Table,
}

impl Intents {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("intents") }
    }

    pub async fn open(&self, intent: &Intent) -> Result<()> {
        self.open_in_transaction(intent)?.send().await
    }

    pub(super) fn open_in_transaction(&self, intent: &Intent) -> Result<Write> {
        self.table.put(intent)
    }

    pub async fn close(&self, intent: IntentId) -> Result<()> {
        self.close_in_transaction(intent).send().await
    }

    pub(super) fn close_in_transaction(&self, intent: IntentId) -> Write {
        self.table.delete(id(intent))
    }

    /// Hands the change to the next settler; older abandoned changes are settled first.
    pub async fn leave(&self, intent: IntentId) -> Result<()> {
        let left = self.table.update(id(intent), "SET #owner_until = :gone").when("attribute_exists(#id)");
        let gone = number(Timestamp::now().as_millis() - 1);
        left.with([(":gone", gone)]).unless_refused().await.map(drop)
    }

    /// Abandoned changes of all organizations, oldest first, for `settle`. Unreadable intents are reported and skipped.
    pub async fn abandoned(&self) -> Result<Vec<Intent>> {
        let abandoned = self.table.scan().now().filter("NOT #owner_until >= :now");
        let now = number(Timestamp::now().as_millis());
        let mut intents: Vec<Intent> = abandoned.with([(":now", now)]).collect().await?;
        intents.sort_by_key(|intent| intent.created_at);
        Ok(intents)
    }

    /// The number of open changes of all organizations older than this, unreadable intents included.
    pub async fn older_than(&self, age: Duration) -> Result<usize> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let begun_before = Timestamp::from_millis(Timestamp::now().as_millis().saturating_sub(age));
        // An intent without a time counts: its age is unknown.
        let older = self.table.scan().filter("NOT #created_at > :begun_before");
        let mut count = 0;
        let add = |items: Vec<Item>| {
            count += items.len();
            Ok(())
        };
        older.with([(":begun_before", text(begun_before))]).each_page(add).await?;
        Ok(count)
    }

    /// An organization's open changes, read consistently: any other change has not begun.
    ///
    /// # Errors
    /// [`crate::Error::Unreadable`] if any intent cannot be read, because it might be any change.
    pub async fn open_of(&self, organization: OrganizationId) -> Result<Vec<Intent>> {
        let items = self.table.scan().now().of(organization).items().await?;
        items.into_iter().map(from_item).collect()
    }

    /// Takes over an abandoned change until `until`, so that only one settler works on it. False: another settler did.
    pub async fn take_over(&self, intent: &Intent, until: Timestamp) -> Result<bool> {
        let taken = self.table.update(id(intent.id), "SET #owner_until = :until").when("#owner_until = :seen");
        let values = [(":until", number(until.as_millis())), (":seen", number(intent.owner_until))];
        taken.with(values).unless_refused().await
    }
}
