//! `knowledge_entries`. Key: `knowledge_base_id` (partition), id (sort).
//!
//! Each change of entries raises the base's `version` and updates its count `entries` in the same transaction, so cached entries
//! are valid while the version is unchanged. The transaction requires each entry's known presence, and is retried after
//! interference.

use std::{collections::HashMap, time::Duration};

use futures_util::try_join;

use super::{
    Cursor, KnowledgeBases, Page,
    audit::Change,
    database::{Database, Item, key, rows, text, to_item},
    deletion::OutOfTime,
    table::{Query, Table},
    write::{Refused, Write, transact},
};
use crate::{
    Deadline, Error, Result,
    backoff::Backoff,
    models::{Act, EntryId, KnowledgeBase, KnowledgeBaseId, KnowledgeEntry, Noun, OrganizationId, Timestamp},
};

/// Entries per [`KnowledgeEntries::load`]: a transaction takes 100 items, two of them the base's row and the
/// audit entry.
pub const LARGEST_LOAD: usize = 98;

/// Between attempts when another change interferes.
const PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Remaining time below which no work is started.
const LAST_CALL: Duration = Duration::from_millis(1_500);

/// A place among the entries of a base: where a read goes on. By default before the first.
#[derive(Debug, Default)]
pub struct EntryPlace(Option<Item>);

#[derive(Clone)]
pub struct KnowledgeEntries {
    table: Table,
    bases: KnowledgeBases,
}

impl KnowledgeEntries {
    pub fn new(database: &Database) -> Self {
        Self { table: database.table("knowledge_entries"), bases: KnowledgeBases::new(database) }
    }

    /// Inserts or replaces at most [`LARGEST_LOAD`] entries of one base, with distinct ids, in one transaction. Returns the ids
    /// of entries that exceeded the base's capacity. `announced`: the rows of a request that begins with this load, for its audit
    /// entry.
    ///
    /// # Errors
    /// [`Error::NotFound`] if the base is gone, [`Error::Conflict`] if it is being deleted, [`Error::Unavailable`] if other
    /// changes interfere until `deadline`.
    pub async fn load(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        entries: &[KnowledgeEntry],
        announced: Option<usize>,
        deadline: Deadline,
    ) -> Result<Vec<EntryId>> {
        let mut backoff = tries(deadline);
        loop {
            let present = self.present(base, entries, deadline);
            let (present, before) = try_join!(present, self.bases.get(organization, base))?;
            if before.deleting {
                return Err(Error::Conflict("the knowledge base is being deleted".into()));
            }
            let held = usize::try_from(before.entries).unwrap_or(usize::MAX);
            let room = KnowledgeBase::MOST_ENTRIES.saturating_sub(held);
            let (mut writes, mut no_room, mut added) = (Vec::new(), Vec::new(), 0);
            for entry in entries {
                let created_at = present.get(&entry.id).copied();
                if created_at.is_none() && added == room {
                    no_room.push(entry.id.clone());
                    continue;
                }
                added += usize::from(created_at.is_none());
                writes.push(self.put(entry, created_at)?);
            }
            if writes.is_empty() {
                return Ok(no_room);
            }
            let most = i64::try_from(KnowledgeBase::MOST_ENTRIES.saturating_sub(added)).unwrap_or(i64::MAX);
            let added = i64::try_from(added).unwrap_or(i64::MAX);
            let counted = self.bases.count_in_transaction(organization, base, added, most);
            writes.push(match announced {
                Some(rows) => counted.audited(
                    Change::of(Act::Loaded, Noun::KnowledgeBase, base).named(&before.name).with("rows", rows),
                )?,
                None => counted,
            });
            match transact(writes).await {
                Ok(()) => return Ok(no_room),
                Err(Refused::Other(error)) => return Err(error),
                Err(Refused::Condition(_) | Refused::Busy(_)) if backoff.pause().await => {}
                Err(Refused::Condition(_) | Refused::Busy(_)) => return Err(overtaken()),
            }
        }
    }

    /// # Errors
    /// [`Error::NotFound`] if there is none, [`Error::Unavailable`] if other changes interfere until `deadline`.
    pub async fn delete(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        entry: &EntryId,
        deadline: Deadline,
    ) -> Result<()> {
        let mut backoff = tries(deadline);
        let edited = Change::of(Act::Edited, Noun::KnowledgeBase, base).with("deleted_entries", 1);
        loop {
            let deleted = self.table.delete(entry_key(base, entry)).of(organization).audited(edited.clone())?;
            match transact(vec![deleted, self.bases.count_in_transaction(organization, base, -1, i64::MAX)]).await {
                Ok(()) => return Ok(()),
                Err(Refused::Condition(0)) => return Err(Error::NotFound("entry")),
                Err(Refused::Condition(_)) => return Err(Error::NotFound("knowledge base")),
                Err(Refused::Other(error)) => return Err(error),
                Err(Refused::Busy(_)) if backoff.pause().await => {}
                Err(Refused::Busy(_)) => return Err(overtaken()),
            }
        }
    }

    pub async fn page(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        after: Option<&Cursor<EntryId>>,
        limit: i32,
    ) -> Result<Page<KnowledgeEntry>> {
        let start = after.map(|Cursor(entry)| entry_key(base, entry));
        let (items, next) = self.of_base(organization, base).page(start, Some(limit)).await?;
        let last = next.as_ref().and_then(|key| key.get("id")?.as_s().ok());
        Ok(Page { items: rows(items), next_cursor: last.map(|id| Cursor(id).to_string()) })
    }

    /// Shows each entry from a place on, and moves the place on. False: the deadline came before the last entry.
    pub async fn each(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        place: &mut EntryPlace,
        deadline: Deadline,
        mut take: impl FnMut(KnowledgeEntry),
    ) -> Result<bool> {
        let entries = self.of_base(organization, base).now();
        loop {
            let page = entries.page(place.0.clone(), None);
            let Ok(page) = tokio::time::timeout(deadline.remaining(), page).await else { return Ok(false) };
            let (items, next) = page?;
            rows(items).into_iter().for_each(&mut take);
            if next.is_none() {
                return Ok(true);
            }
            place.0 = next;
        }
    }

    /// Removes all entries of a base being deleted.
    ///
    /// # Errors
    /// [`Error::Conflict`] if out of time; a repetition resumes.
    pub async fn delete_all(
        &self,
        organization: OrganizationId,
        base: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<()> {
        let entries = self.of_base(organization, base).attributes("#knowledge_base_id, #id").now();
        let mut start = None;
        loop {
            let (keys, next) = entries.page(start, None).await?;
            let too_late =
                |_: OutOfTime| Error::Conflict("not all entries could be deleted in time; delete it again".into());
            self.table.delete_all(keys, deadline).await?.map_err(too_late)?;
            if next.is_none() {
                return Ok(());
            }
            start = next;
        }
    }

    fn of_base(&self, organization: OrganizationId, base: KnowledgeBaseId) -> Query {
        self.table.query("#knowledge_base_id = :base").of(organization).with([(":base", text(base))])
    }

    async fn present(
        &self,
        base: KnowledgeBaseId,
        entries: &[KnowledgeEntry],
        deadline: Deadline,
    ) -> Result<HashMap<EntryId, Timestamp>> {
        #[derive(serde::Deserialize)]
        struct Present {
            id: EntryId,
            created_at: Timestamp,
        }

        let keys = entries.iter().map(|entry| entry_key(base, &entry.id)).collect();
        let present: Vec<Present> = rows(self.table.batch_get(keys, Some("#id, #created_at"), deadline).await?);
        Ok(present.into_iter().map(|Present { id, created_at }| (id, created_at)).collect())
    }

    /// `created_at`: the existing entry's creation time; `None` for a new entry.
    fn put(&self, entry: &KnowledgeEntry, created_at: Option<Timestamp>) -> Result<Write> {
        let mut item = to_item(entry)?;
        let Some(created_at) = created_at else {
            return Ok(self.table.put_item(item).when("attribute_not_exists(#id)"));
        };
        item.insert("created_at".into(), text(created_at));
        Ok(self.table.put_item(item).when("attribute_exists(#id)"))
    }
}

fn tries(deadline: Deadline) -> Backoff {
    Backoff::new(PAUSE, LONGEST_PAUSE, deadline.reserving(LAST_CALL))
}

fn overtaken() -> Error {
    Error::Unavailable("the knowledge base", "others went on changing it until the time was up".into())
}

fn entry_key(base: KnowledgeBaseId, entry: &EntryId) -> Item {
    key([("knowledge_base_id", text(base)), ("id", text(entry))])
}
