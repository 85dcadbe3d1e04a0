//! Caches of what is made from lists, bounded in bytes: what was used longest ago goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use model::ListKind;
use platform::Mutex;
use topic::ListSnapshot;
use topic::section::ToolsList;
use upstream::Manifest;
use wire::mcp::search::Index;

use crate::merged::{Manifests, Reader, Rendered};

/// The rendered lists that one topic keeps, in bytes together, and the indexes. A longer list is
/// rendered for each page anew, a larger index made for each search.
pub const LIST_BYTES_MAX: usize = 8 << 20;
/// The number of rendered lists that one topic keeps, and of indexes.
pub const LISTS_MAX: usize = 64;

/// Product of a list that is kept.
pub trait Made {
    /// The memory that it takes.
    fn bytes(&self) -> usize;
}

impl Made for Rendered {
    fn bytes(&self) -> usize {
        let extras = self.extras.iter().map(|(key, raw)| key.len() + raw.len());
        self.items.memory_bytes().saturating_add(extras.sum())
    }
}

impl Made for Index {
    fn bytes(&self) -> usize {
        self.memory_bytes()
    }
}

/// Everything that a list follows from.
pub(crate) struct ListInputs {
    list: ListKind,
    /// Part of the list that the topic shows.
    only: ToolsList,
    reader: Reader,
    pub(crate) snapshot: ListSnapshot,
    /// A manifest that only the cache knows is freed, and its address is not used again.
    manifests: Box<[Weak<Manifest>]>,
}

/// The rendered lists of one topic.
pub type PageCache = Cache<Rendered>;
/// The indexes of its lists of tools.
pub type IndexCache = Cache<Index>;

/// Products of lists of one topic, the latest used kept.
pub struct Cache<T>(Mutex<Kept<T>>);

struct Kept<T> {
    /// Products, the one that was used last at the end.
    all: VecDeque<Product<T>>,
    /// Bytes of all of them.
    bytes: usize,
}

struct Product<T> {
    source: ListInputs,
    made: Arc<T>,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self(Mutex::new(Kept {
            all: VecDeque::new(),
            bytes: 0,
        }))
    }
}

impl ListInputs {
    pub(crate) fn new(
        list: ListKind,
        only: ToolsList,
        reader: Reader,
        snapshot: ListSnapshot,
        manifests: &Manifests,
    ) -> Self {
        let manifests = manifests
            .iter()
            .map(|(_, manifest)| Arc::downgrade(manifest))
            .collect();
        Self {
            list,
            only,
            reader,
            snapshot,
            manifests,
        }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.list == other.list
            && self.only == other.only
            && self.reader == other.reader
            && self.manifests.len() == other.manifests.len()
            && self
                .manifests
                .iter()
                .zip(&other.manifests)
                .all(|(one, other)| one.ptr_eq(other))
            && self.snapshot.is_same(&other.snapshot)
    }
}

impl<T: Made> Cache<T> {
    /// The product of these inputs.
    pub(crate) fn get(&self, source: &ListInputs) -> Option<Arc<T>> {
        let mut kept = self.0.lock();
        let at = kept
            .all
            .iter()
            .position(|known| known.source.is_same(source))?;
        let found = kept.all.remove(at)?;
        let made = Arc::clone(&found.made);
        kept.all.push_back(found);
        Some(made)
    }

    /// Keeps what was made. What no caller can ask for any more goes first, then what was used
    /// longest ago.
    pub(crate) fn keep(&self, source: ListInputs, made: &Arc<T>) {
        let bytes = made.bytes();
        if bytes > LIST_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock();
        kept.all.retain(|known| {
            // Another caller may have made this very list meanwhile: it was made without the lock.
            let is_twice = known.source.is_same(&source);
            known.source.snapshot.is_concurrent(&source.snapshot) && !is_twice
        });
        kept.bytes = kept.all.iter().map(|known| known.made.bytes()).sum();
        while kept.all.len() >= LISTS_MAX || kept.bytes.saturating_add(bytes) > LIST_BYTES_MAX {
            let Some(oldest) = kept.all.pop_front() else {
                break;
            };
            kept.bytes = kept.bytes.saturating_sub(oldest.made.bytes());
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.all.push_back(Product {
            source,
            made: Arc::clone(made),
        });
    }
}

#[cfg(test)]
impl PageCache {
    /// Number of kept lists, and their bytes.
    pub(crate) fn size(&self) -> (usize, usize) {
        let kept = self.0.lock();
        (kept.all.len(), kept.bytes)
    }

    /// Whether a list is kept that was made from this.
    pub(crate) fn has(&self, snapshot: &ListSnapshot) -> bool {
        self.0
            .lock()
            .all
            .iter()
            .any(|known| known.source.snapshot.is_same(snapshot))
    }
}
