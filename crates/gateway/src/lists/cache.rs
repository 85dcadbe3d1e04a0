//! Cache of rendered lists, bounded in bytes: the list that was used longest ago goes first.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use model::ListKind;
use platform::Mutex;
use topic::ListSnapshot;
use upstream::Manifest;
use wire::mcp::task::Shown;

use super::merged::{Manifests, Rendered};

/// The rendered lists that one topic keeps, in bytes together. A longer list is rendered for each page anew.
pub const LIST_BYTES_MAX: usize = 8 << 20;
/// The number of rendered lists that one topic keeps.
pub const LISTS_MAX: usize = 64;

/// Everything that a rendered list follows from.
pub(super) struct Source {
    list: ListKind,
    tasks: Shown,
    pub(super) snapshot: ListSnapshot,
    /// A manifest that only the cache knows is freed, and its address is not used again.
    manifests: Box<[Weak<Manifest>]>,
}

/// The rendered lists of one topic.
#[derive(Default)]
pub(crate) struct PageCache(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The list that was used last comes last.
    all: VecDeque<(Source, Arc<Rendered>)>,
    bytes: usize,
}

impl Source {
    pub(super) fn new(list: ListKind, tasks: Shown, snapshot: ListSnapshot, manifests: &Manifests) -> Self {
        let manifests = manifests.iter().map(|(_, manifest)| Arc::downgrade(manifest)).collect();
        Self { list, tasks, snapshot, manifests }
    }

    fn is_same(&self, other: &Self) -> bool {
        self.list == other.list
            && self.tasks == other.tasks
            && self.manifests.len() == other.manifests.len()
            && self.manifests.iter().zip(&other.manifests).all(|(one, other)| one.ptr_eq(other))
            && self.snapshot.is_same(&other.snapshot)
    }
}

impl PageCache {
    /// The list that was rendered from this.
    pub(super) fn get(&self, source: &Source) -> Option<Arc<Rendered>> {
        let mut kept = self.0.lock();
        let at = kept.all.iter().position(|(known, _)| known.is_same(source))?;
        let found = kept.all.remove(at)?;
        let rendered = Arc::clone(&found.1);
        kept.all.push_back(found);
        Some(rendered)
    }

    /// Keeps a rendered list. Lists that no caller can ask for any more go first, then those that were used longest ago.
    pub(super) fn keep(&self, source: Source, rendered: &Arc<Rendered>) {
        let bytes = bytes_of(rendered);
        if bytes > LIST_BYTES_MAX {
            return;
        }
        let mut kept = self.0.lock();
        kept.all
            .retain(|(known, _)| known.snapshot.is_concurrent(&source.snapshot) && !known.is_same(&source));
        kept.bytes = kept.all.iter().map(|(_, rendered)| bytes_of(rendered)).sum();
        while kept.all.len() >= LISTS_MAX || kept.bytes.saturating_add(bytes) > LIST_BYTES_MAX {
            let Some((_, oldest)) = kept.all.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(bytes_of(&oldest));
        }
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.all.push_back((source, Arc::clone(rendered)));
    }
}

#[cfg(test)]
impl PageCache {
    /// How many lists are kept, and their bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        let kept = self.0.lock();
        (kept.all.len(), kept.bytes)
    }

    /// Whether a list is kept that was made from this.
    pub(super) fn has(&self, snapshot: &ListSnapshot) -> bool {
        self.0.lock().all.iter().any(|(known, _)| known.snapshot.is_same(snapshot))
    }
}

fn bytes_of(rendered: &Rendered) -> usize {
    let extras = rendered.extras.iter().map(|(key, raw)| key.len() + raw.len());
    rendered.items.memory_bytes().saturating_add(extras.sum())
}
