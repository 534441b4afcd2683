//! A per-process cache of search indexes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::timeout;

use super::index::{Builder, Index};
use crate::{
    Deadline, Result,
    models::{KnowledgeBase, KnowledgeBaseId, OrganizationId},
    store::{EntryPlace, KnowledgeBases, KnowledgeEntries},
};

/// Bytes of all cached indexes; the latest one is kept at any size.
const LARGEST_SHELF: usize = 64 * 1024 * 1024;
const MOST_UNFINISHED: usize = 2;

/// Reads knowledge bases, and caches their indexes. Clones share the cache.
#[derive(Clone)]
pub struct Knowledge {
    bases: KnowledgeBases,
    entries: KnowledgeEntries,
    cache: Arc<Mutex<IndexCache>>,
    /// One index is built at once, because several large ones exceed a function's memory.
    building: Arc<tokio::sync::Mutex<()>>,
}

impl Knowledge {
    pub fn new(bases: KnowledgeBases, entries: KnowledgeEntries) -> Self {
        let cache = IndexCache { largest: LARGEST_SHELF, indexes: Vec::new(), unfinished: Vec::new() };
        Self { bases, entries, cache: Arc::new(Mutex::new(cache)), building: Arc::default() }
    }

    /// Never held during a build.
    fn cache(&self) -> MutexGuard<'_, IndexCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The base and its index; no index if it could not be read in time, and then the next request reads on. A cached index
    /// costs one small read, and is rebuilt only if the entries changed.
    ///
    /// # Errors
    /// [`crate::Error::NotFound`] for an unknown base or one of another organization.
    pub(super) async fn open(
        &self,
        organization: OrganizationId,
        id: KnowledgeBaseId,
        deadline: Deadline,
    ) -> Result<(KnowledgeBase, Option<Arc<Index>>)> {
        let base = self.bases.get(organization, id).await?;
        let cached = self.cache().take(id, base.version);
        if let Some(index) = cached {
            return Ok((base, Some(index)));
        }
        // Concurrent requests share the index.
        let building = timeout(deadline.remaining(), self.building.lock()).await;
        let Ok(_building) = building else { return Ok((base, None)) };
        let built = self.cache().take(id, base.version);
        if let Some(index) = built {
            return Ok((base, Some(index)));
        }
        // Entries may be newer than `base.version`; the next query then sees a new version and rebuilds.
        let mut begun = self.cache().take_unfinished(&base);
        let Unfinished { builder, place, .. } = &mut begun;
        let read = self.entries.each(organization, id, place, deadline, |entry| builder.add(&entry)).await;
        if !matches!(read, Ok(true)) {
            self.cache().put_unfinished(begun);
            return read.map(|_too_late| (base, None));
        }
        let index = Arc::new(begun.builder.finish());
        self.cache().put(id, base.version, Arc::clone(&index));
        Ok((base, Some(index)))
    }
}

/// Least recently used first.
struct IndexCache {
    largest: usize,
    indexes: Vec<Kept>,
    /// Indexes that are not finished, the newest last.
    unfinished: Vec<Unfinished>,
}

struct Unfinished {
    base: KnowledgeBaseId,
    version: u64,
    builder: Builder,
    place: EntryPlace,
}

struct Kept {
    base: KnowledgeBaseId,
    version: u64,
    size: usize,
    index: Arc<Index>,
}

impl IndexCache {
    /// The index at this version. An index of another version is obsolete and is dropped.
    fn take(&mut self, base: KnowledgeBaseId, version: u64) -> Option<Arc<Index>> {
        let at = self.indexes.iter().position(|kept| kept.base == base)?;
        let kept = self.indexes.remove(at);
        (kept.version == version).then(|| {
            let index = Arc::clone(&kept.index);
            self.indexes.push(kept);
            index
        })
    }

    fn take_unfinished(&mut self, base: &KnowledgeBase) -> Unfinished {
        let at = self.unfinished.iter().position(|begun| begun.base == base.id);
        let begun = at.map(|at| self.unfinished.remove(at));
        begun.filter(|begun| begun.version == base.version).unwrap_or_else(|| Unfinished {
            base: base.id,
            version: base.version,
            builder: Builder::new(&base.fields),
            place: EntryPlace::default(),
        })
    }

    fn put_unfinished(&mut self, begun: Unfinished) {
        self.unfinished.push(begun);
        if self.unfinished.len() > MOST_UNFINISHED {
            self.unfinished.remove(0);
        }
    }

    fn put(&mut self, base: KnowledgeBaseId, version: u64, index: Arc<Index>) {
        self.indexes.push(Kept { base, version, size: index.size(), index });
        while self.indexes.len() > 1 && self.indexes.iter().map(|kept| kept.size).sum::<usize>() > self.largest {
            self.indexes.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Arc<Index> {
        let entry = serde_json::json!({
            "knowledge_base_id": KnowledgeBaseId::generate(), "id": "a", "organization_id": OrganizationId::generate(),
            "text": "a river", "created_at": "2026-11-20T16:20:52.123Z", "updated_at": "2026-11-20T16:20:52.123Z",
        });
        let mut builder = Builder::new(&[]);
        builder.add(&serde_json::from_value(entry).unwrap());
        Arc::new(builder.finish())
    }

    #[test]
    fn an_index_holds_for_its_version_only() {
        let mut cache = IndexCache { largest: 10_000, indexes: Vec::new(), unfinished: Vec::new() };
        let base = KnowledgeBaseId::generate();
        cache.put(base, 1, index());
        assert!(cache.take(base, 1).is_some() && cache.take(base, 1).is_some());
        assert!(cache.take(KnowledgeBaseId::generate(), 1).is_none());
        assert!(cache.take(base, 2).is_none());
        assert!(cache.indexes.is_empty());
    }

    #[test]
    fn the_least_lately_used_goes_first_and_the_newest_stays() {
        let mut cache = IndexCache { largest: 10_000, indexes: Vec::new(), unfinished: Vec::new() };
        let [one, two, three] = std::array::from_fn(|_| KnowledgeBaseId::generate());
        cache.put(one, 1, index());
        cache.put(two, 1, index());
        assert!(cache.take(one, 1).is_some());
        cache.largest = 2 * index().size();
        cache.put(three, 1, index());
        let left: Vec<_> = cache.indexes.iter().map(|kept| kept.base).collect();
        assert_eq!(left, [one, three], "one was used after two");
        cache.largest = 0;
        cache.put(two, 1, index());
        assert_eq!(cache.indexes.len(), 1, "the one in use stays, whatever it takes");
    }
}
