//! `automation_memory`. Key: `organization_id` (partition), `place` (sort): `<automation>#<key>` for a value, `<automation>` for the
//! number of its keys.
//!
//! A write is one transaction of the value, at the version that was read, the number of keys if the key is new, and a marker in
//! `idempotency` (`memory#<organization>#<automation>#<writer>`), so a repeated action finds its answer and writes nothing. DynamoDB
//! expires values without counting, so a full memory is counted anew before it is called full.

use std::time::Duration;

use aws_sdk_dynamodb::types::AttributeValue;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use futures_util::{StreamExt, TryStreamExt, stream, try_join};
use ring::digest::{SHA256, digest};

use super::{
    Cursor, Page,
    audit::Change,
    database::{Database, Item, from_item, id, key, number, rows, text},
    idempotency::RETENTION,
    table::Table,
    write::{Refused, Write, transact},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{Act, AutomationId, E164, Noun, OrganizationId, RememberedValue, Timestamp},
    redaction,
};

pub const MOST_KEYS: u32 = 256;
/// Before a write that met another one is tried again.
const PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);
/// Expired values deleted concurrently.
const BESIDE: usize = 10;

const WRITTEN_MEANWHILE: &str = "a run wrote the value in between; read the memory again";

#[derive(Clone)]
pub struct AutomationMemory {
    table: Table,
    markers: Table,
}

#[derive(Debug, Clone, Copy)]
pub struct NewValue<'a> {
    pub key: &'a str,
    /// JSON text.
    pub value: &'a str,
    /// Written only at this version; 0: only if the key has no value.
    pub at_version: Option<u64>,
    pub kept: Duration,
    /// Names the action: the same writer writes once.
    pub writer: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Remembering {
    Stored {
        version: u64,
    },
    /// The key is at another version: its present value.
    Other(Option<RememberedValue>),
    /// The automation has [`MOST_KEYS`] keys.
    Full,
}

impl AutomationMemory {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("automation_memory"), markers: database.table("idempotency") }
    }

    pub async fn recall(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        key: &str,
    ) -> Result<Option<RememberedValue>> {
        let row = self.table.item(place_of(organization, &place(automation, key)), true).await?;
        Ok(row.map(from_item::<RememberedValue>).transpose()?.filter(is_kept))
    }

    /// The values of an automation, in the order of their keys.
    pub async fn page(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<Page<RememberedValue>> {
        let start = after.map(|Cursor(key)| place_of(organization, &place(automation, key)));
        let kept = self.of(organization, automation).filter("#expires_at > :now");
        let kept = kept.with([(":now", number(Timestamp::now().as_seconds()))]).now();
        let (items, next) = kept.filled(start, limit, true).await?;
        let next = next.as_ref().and_then(place_in);
        let next_cursor = next.and_then(|place| Some(Cursor(place.split_once('#')?.1).to_string()));
        Ok(Page { items: rows(items), next_cursor })
    }

    /// Deletes a value: for the next `remember` the key is a new one.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the key has no value, [`Error::Conflict`] if it was written meanwhile.
    pub async fn forget(&self, organization: OrganizationId, automation: AutomationId, key: &str) -> Result<()> {
        let at = place_of(organization, &place(automation, key));
        let row: Option<RememberedValue> = self.table.get_consistent(at.clone()).await?;
        let read = row.filter(is_kept).ok_or(Error::NotFound("remembered value"))?;
        let deletion = self.table.delete(at).when("#version = :read").with([(":read", amount(read.version))]);
        // The key may name a person, so the entry has none.
        let deletion =
            deletion.audited(Change::of(Act::Edited, Noun::Automation, automation).with("forgotten_keys", 1))?;
        let one_less = self
            .table
            .update(place_of(organization, &automation.to_string()), "SET #keys = #keys - :one")
            .when("#keys >= :one")
            .with([(":one", number(1))]);
        match transact(vec![deletion, one_less]).await {
            Ok(()) => Ok(()),
            Err(Refused::Condition(_) | Refused::Busy(_)) => Err(Error::Conflict(WRITTEN_MEANWHILE.into())),
            Err(Refused::Other(error)) => Err(error),
        }
    }

    /// Writes a value. One round trip to read, one to write; concurrent writes of a key follow one another.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others keep writing the key until the deadline.
    pub async fn remember(
        &self,
        organization: OrganizationId,
        automation: AutomationId,
        new: &NewValue<'_>,
        deadline: Deadline,
    ) -> Result<Remembering> {
        let marker = marker_of(organization, automation, new.writer);
        let at = place_of(organization, &place(automation, new.key));
        let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE, deadline);
        let mut counted_anew = false;
        loop {
            let (row, written) = try_join!(self.table.item(at.clone(), true), self.markers.item(id(&marker), true))?;
            if let Some(version) = written.as_ref().and_then(|written| written.get("version")) {
                let version = version.as_n().ok().and_then(|version| version.parse().ok()).unwrap_or_default();
                return Ok(Remembering::Stored { version });
            }
            let row: Option<RememberedValue> = row.map(from_item).transpose()?;
            let live = row.as_ref().filter(|row| is_kept(row));
            if new.at_version.is_some_and(|wanted| wanted != live.map_or(0, |live| live.version)) {
                return Ok(Remembering::Other(live.cloned()));
            }
            let version = row.as_ref().map_or(0, |row| row.version) + 1;
            let mut writes =
                vec![self.value(at.clone(), automation, new, row.as_ref()), marked(&self.markers, &marker, version)];
            if row.is_none() {
                writes.push(self.one_more(organization, automation));
            }
            match transact(writes).await {
                Ok(()) => return Ok(Remembering::Stored { version }),
                Err(Refused::Condition(2)) if counted_anew => return Ok(Remembering::Full),
                Err(Refused::Condition(2)) => counted_anew = self.count_anew(organization, automation).await?,
                Err(Refused::Condition(_) | Refused::Busy(_)) if backoff.pause().await => {}
                Err(Refused::Condition(_) | Refused::Busy(_)) => {
                    return Err(Error::Conflict("others keep writing this key of the automation's memory".into()));
                }
                Err(Refused::Other(error)) => return Err(error),
            }
        }
    }

    fn value(&self, at: Item, automation: AutomationId, new: &NewValue<'_>, read: Option<&RememberedValue>) -> Write {
        let now = Timestamp::now();
        let change = "SET #automation_id = :automation, #key = :key, #value = :value, #version = :next, #created_at = :created, \
                      #updated_at = :now, #expires_at = :expires_at";
        let live = read.filter(|read| is_kept(read));
        let update = self.table.update(at, change).with([
            (":automation", text(automation)),
            (":key", text(new.key)),
            (":value", text(new.value)),
            (":next", amount(read.map_or(0, |read| read.version) + 1)),
            (":created", text(live.map_or(now, |live| live.created_at))),
            (":now", text(now)),
            (":expires_at", number(now.plus(new.kept).as_seconds())),
        ]);
        match read {
            None => update.when("attribute_not_exists(#place)"),
            Some(read) => update.when("#version = :read").with([(":read", amount(read.version))]),
        }
    }

    fn one_more(&self, organization: OrganizationId, automation: AutomationId) -> Write {
        self.table
            .update(place_of(organization, &automation.to_string()), "SET #keys = if_not_exists(#keys, :zero) + :one")
            .when("attribute_not_exists(#keys) OR #keys < :most")
            .with([(":zero", number(0)), (":one", number(1)), (":most", number(MOST_KEYS.into()))])
    }

    /// Deletes expired values and counts the others. False if the number changed meanwhile.
    async fn count_anew(&self, organization: OrganizationId, automation: AutomationId) -> Result<bool> {
        let counter = place_of(organization, &automation.to_string());
        let before = self.table.item(counter.clone(), true).await?.and_then(|counter| counter.get("keys").cloned());
        let Some(before) = before else { return Ok(true) };
        let now = number(Timestamp::now().as_seconds());
        let (mut kept, mut expired) = (0_u64, Vec::new());
        let values = self.of(organization, automation).attributes("#organization_id, #place, #expires_at").now();
        values
            .each_page(|items| {
                for item in items {
                    if expires_at(&item).is_none_or(|at| at > Timestamp::now().as_seconds()) {
                        kept += 1;
                    } else {
                        expired.extend(place_in(&item));
                    }
                }
                Ok(())
            })
            .await?;
        let deleted = expired.into_iter().map(|place| {
            let deletion = self.table.delete(place_of(organization, &place)).when("#expires_at <= :now");
            deletion.with([(":now", now.clone())]).unless_refused()
        });
        // A refused deletion is a value that was written again.
        let refused = stream::iter(deleted)
            .buffer_unordered(BESIDE)
            .try_fold(0, |refused, deleted| async move { Ok(refused + u64::from(!deleted)) });
        let counted = self.table.update(counter, "SET #keys = :kept").when("#keys = :before");
        counted.with([(":kept", amount(kept + refused.await?)), (":before", before)]).unless_refused().await
    }

    fn of(&self, organization: OrganizationId, automation: AutomationId) -> super::table::Query {
        let of = self.table.query("#organization_id = :organization AND begins_with(#place, :automation)");
        of.with([(":organization", text(organization)), (":automation", text(place(automation, "")))])
    }

    /// The deletions of an automation's values and of their number.
    pub(super) async fn deletions(&self, organization: OrganizationId, automation: AutomationId) -> Result<Vec<Write>> {
        let values = self.of(organization, automation).attributes("#place").now().items().await?;
        let places = values.iter().filter_map(place_in).chain([automation.to_string()]);
        Ok(places.map(|place| self.table.delete(place_of(organization, &place))).collect())
    }

    /// The keys of values on the next page whose key or value contains the number, and the cursor after it.
    pub(super) async fn keys_mentioning(
        &self,
        organization: OrganizationId,
        named: &E164,
        after: Option<&Cursor<String>>,
        limit: i32,
    ) -> Result<(Vec<Item>, Option<Cursor<String>>)> {
        let start = after.map(|Cursor(place)| place_of(organization, place));
        let all = self.table.query("#organization_id = :organization").with([(":organization", text(organization))]);
        let (items, next) = all.now().page(start, Some(limit)).await?;
        let names = |item: &&Item| {
            let texts = ["key", "value"].into_iter().filter_map(|name| item.get(name)?.as_s().ok());
            texts.into_iter().any(|text| redaction::mentions(text, named))
        };
        let keys = items.iter().filter(names).filter_map(place_in).map(|place| place_of(organization, &place));
        Ok((keys.collect(), next.as_ref().and_then(place_in).map(Cursor)))
    }

    pub(super) fn table(&self) -> &Table {
        &self.table
    }
}

fn marked(markers: &Table, marker: &str, version: u64) -> Write {
    let kept_until = Timestamp::now().plus(RETENTION).as_seconds();
    let write =
        markers.update(id(marker), "SET #version = :version, #expires_at = :until").when("attribute_not_exists(#id)");
    write.with([(":version", amount(version)), (":until", number(kept_until))])
}

/// The writer is hashed: its name may have any length.
fn marker_of(organization: OrganizationId, automation: AutomationId, writer: &str) -> String {
    let writer = BASE64_URL_SAFE_NO_PAD.encode(digest(&SHA256, writer.as_bytes()));
    format!("memory#{organization}#{automation}#{writer}")
}

fn place(automation: AutomationId, key: &str) -> String {
    format!("{automation}#{key}")
}

fn place_of(organization: OrganizationId, place: &str) -> Item {
    key([("organization_id", text(organization)), ("place", text(place))])
}

fn place_in(item: &Item) -> Option<String> {
    item.get("place")?.as_s().ok().cloned()
}

fn expires_at(item: &Item) -> Option<i64> {
    item.get("expires_at")?.as_n().ok()?.parse().ok()
}

/// DynamoDB drops expired rows up to two days late.
fn is_kept(row: &RememberedValue) -> bool {
    row.expires_at > Timestamp::now().as_seconds()
}

fn amount(value: u64) -> AttributeValue {
    AttributeValue::N(value.to_string())
}
