//! `audit_entries`. Key: `organization_id` (partition), `place` (sort): time and id of the entry.
//!
//! One partition an organization is enough: a partition takes 1,000 writes a second, and people and agents change things a few
//! times a minute. An entry is a put in the transaction of its change ([`Write::audited`]); only changes that no transaction can
//! hold use [`AuditLog::note`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::{
    Cursor, Page,
    cursor::begins_within,
    database::{Database, Item, key, number, rows, text, to_attribute, to_item},
    erasure::names,
    table::{Table, Values},
    write::Write,
};
use crate::{
    Result,
    models::{AUDIT_DAYS, Act, Actor, AuditDetails, AuditEntry, E164, Noun, OrganizationId, Timestamp, UserId},
};

pub(super) const TABLE: &str = "audit_entries";
/// Pages read for one answer, since a filter may leave nothing of a page.
const PAGES: usize = 8;
/// Sorts before every time.
const FIRST: &str = "0";
/// Sorts after every time.
const LAST: &str = "~";

#[derive(Debug, Clone)]
pub(super) struct Change {
    action: Act,
    noun: Noun,
    id: Option<String>,
    name: Option<String>,
    details: BTreeMap<String, Value>,
}

impl Change {
    pub(super) fn new(action: Act, noun: Noun) -> Self {
        Self { action, noun, id: None, name: None, details: BTreeMap::new() }
    }

    #[expect(clippy::needless_pass_by_value, reason = "ids are Copy, and a reference is as good")]
    pub(super) fn of(action: Act, noun: Noun, id: impl ToString) -> Self {
        Self { id: Some(id.to_string()), ..Self::new(action, noun) }
    }

    pub(super) fn named(self, name: &str) -> Self {
        Self { name: Some(name.to_owned()), ..self }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    fn by(self, actor: Actor) -> AuditEntry {
        let Self { action, noun, id, name, details } = self;
        AuditEntry { id, name, details: AuditDetails(details), ..AuditEntry::new(actor, action, noun) }
    }
}

/// The entry of a change as an item of `audit_entries`; `None` if no user makes the change.
pub(super) fn entry(change: Change) -> Result<Option<Item>> {
    let Some(actor) = Actor::present() else { return Ok(None) };
    let organization = actor.organization_id;
    let entry = change.by(actor);
    let mut item = to_item(&entry)?;
    item.retain(|_, value| !value.is_null());
    item.extend(place_of(organization, &entry.place()));
    let kept_until = entry.at.plus(std::time::Duration::from_hours(24 * AUDIT_DAYS));
    item.insert("expires_at".into(), number(kept_until.as_seconds()));
    Ok(Some(item))
}

fn place_of(organization: OrganizationId, place: &str) -> Item {
    key([("organization_id", text(organization)), ("place", text(place))])
}

#[derive(Clone)]
pub struct AuditLog {
    table: Table,
}

#[derive(Debug, Default)]
pub struct AuditFilter {
    /// Inclusive.
    pub since: Option<Timestamp>,
    /// Exclusive.
    pub until: Option<Timestamp>,
    pub actor: Option<UserId>,
    pub noun: Option<Noun>,
    pub id: Option<String>,
}

impl AuditLog {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("audit_entries") }
    }

    /// An entry on its own: for a change that no transaction holds.
    pub(super) async fn note(&self, change: Change) -> Result<()> {
        match entry(change)? {
            Some(item) => self.table.put_item(item).send().await,
            None => Ok(()),
        }
    }

    /// Newest first. A page may be short, or empty, and go on all the same.
    pub async fn page(
        &self,
        organization: OrganizationId,
        filter: &AuditFilter,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Page<AuditEntry>> {
        let since = filter.since.map_or_else(|| FIRST.to_owned(), |since| since.to_string());
        let until = filter.until.map_or_else(|| LAST.to_owned(), |until| until.to_string());
        if let Some(Cursor(place)) = after
            && !begins_within(place, &since, &until)?
        {
            return Ok(Page { items: Vec::new(), next_cursor: None });
        }
        let mut conditions = vec!["#expires_at > :clock"];
        let mut values: Values = [
            (":clock".to_owned(), number(Timestamp::now().as_seconds())),
            (":organization".to_owned(), text(organization)),
            (":since".to_owned(), text(since)),
            (":until".to_owned(), text(until)),
        ]
        .into();
        for (condition, name, value) in [
            ("#actor = :actor", ":actor", filter.actor.as_ref().map(text)),
            ("#noun = :noun", ":noun", filter.noun.map(|noun| to_attribute(&noun)).transpose()?),
            ("#id = :id", ":id", filter.id.as_ref().map(text)),
        ] {
            if let Some(value) = value {
                conditions.push(condition);
                values.insert(name.to_owned(), value);
            }
        }
        let query = self
            .table
            .query("#organization_id = :organization AND #place BETWEEN :since AND :until")
            .filter(conditions.join(" AND "))
            .with_all(values)
            .newest_first();
        let (mut found, mut start) = (Vec::new(), after.map(|Cursor(place)| place_of(organization, place)));
        for _ in 0..PAGES {
            let left = limit.saturating_sub(i32::try_from(found.len()).unwrap_or(limit));
            let (items, next) = query.page(start, Some(left)).await?;
            found.extend(items);
            start = next;
            if start.is_none() || found.len() >= usize::try_from(limit).unwrap_or_default() {
                break;
            }
        }
        let next = start.as_ref().and_then(|key| key.get("place")?.as_s().ok());
        let next_cursor = next.map(|place| Cursor(place).to_string());
        Ok(Page { items: rows(found), next_cursor })
    }

    /// Removes a phone number from the entries that contain it, from the page after `after` on. The entries stay: they record
    /// the acts of members. Returns the cursor after the page.
    pub(super) async fn mask(
        &self,
        organization: OrganizationId,
        named: &E164,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Option<Cursor<String>>> {
        let start = after.map(|Cursor(place)| place_of(organization, place));
        let entries =
            self.table.query("#organization_id = :organization").with([(":organization", text(organization))]);
        let (items, next) = entries.page(start, Some(limit)).await?;
        let place = |item: &Item| item.get("place").and_then(|place| place.as_s().ok()).cloned();
        for item in items {
            let told = |name: &str| item.get(name).is_some_and(|value| names(value, named));
            let gone: Vec<String> = ["id", "name", "details"]
                .into_iter()
                .filter(|name| told(name))
                .map(|name| format!("#{name}"))
                .collect();
            let Some(place) = place(&item).filter(|_| !gone.is_empty()) else { continue };
            let masked = self.table.update(place_of(organization, &place), format!("REMOVE {}", gone.join(", ")));
            masked.when("attribute_exists(#place)").unless_refused().await?;
        }
        Ok(next.as_ref().and_then(place).map(Cursor))
    }
}

impl Write {
    /// Adds the audit entry of this write, if a user makes the change: both are written or neither.
    pub(super) fn audited(self, change: Change) -> Result<Self> {
        Ok(match entry(change)? {
            Some(item) => self.along_with(item),
            None => self,
        })
    }
}

#[cfg(test)]
mod tests {
    use aws_sdk_dynamodb::types::AttributeValue;

    use super::*;
    use crate::models::{Member, Role, acting};

    #[tokio::test]
    async fn an_entry_is_kept_for_a_year_and_sorted_by_its_time() {
        let member =
            Member { organization_id: OrganizationId::generate(), user_id: UserId::new("u"), role: Role::Admin };
        let change = || Change::of(Act::Deleted, Noun::Tool, "7").named("Lookup").with("version", 2);
        assert!(entry(change()).unwrap().is_none());
        let item = acting(Some(Actor::of(&member)), async { entry(change()).unwrap().unwrap() }).await;
        let read: AuditEntry = serde_dynamo::from_item(item.clone()).unwrap();
        assert_eq!(item["place"], text(read.place()));
        let days = (item["expires_at"].as_n().unwrap().parse::<i64>().unwrap() - read.at.as_seconds()) / 86_400;
        assert_eq!(days, 365);
        assert!(read.place() > read.at.to_string() && *FIRST < *read.place() && *read.place() < *LAST);
        assert!(!item.contains_key("via") && !matches!(item["details"], AttributeValue::Null(_)));
    }
}
