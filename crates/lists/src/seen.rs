//! Lists of one caller in full, for the built-in tools that look into them.

use std::sync::Arc;

use access::config::ToolsList;
use model::ListKind;
use topic::ListSnapshot;
use wire::mcp::{search::Index, task::TaskListing};

use crate::cache::{IndexCache, ListInputs};
use crate::merged::{Manifests, Merged};

/// What a caller sees.
pub struct Seen {
    snapshot: ListSnapshot,
    manifests: Manifests,
    tasks: TaskListing,
}

impl Seen {
    /// What a caller with this snapshot sees of these manifests. `tasks`: what a list of tools says about tasks.
    pub fn new(snapshot: ListSnapshot, manifests: Manifests, tasks: TaskListing) -> Self {
        Self { snapshot, manifests, tasks }
    }

    /// One list in full, whatever the topic's lists show of it.
    pub fn list(&self, list: ListKind) -> Merged<'_> {
        let tasks = if list == ListKind::Tools { self.tasks } else { TaskListing::AsWritten };
        Merged::new(&self.snapshot, list, &self.manifests, tasks)
    }

    /// The index of the tools, without those that find the others. It is made once for as long as nothing changes.
    pub fn index(&self, indexes: &IndexCache) -> Arc<Index> {
        let kind = (ListKind::Tools, ToolsList::Full);
        let source = ListInputs::new(kind, TaskListing::AsWritten, self.snapshot.clone(), &self.manifests);
        if let Some(index) = indexes.get(&source) {
            return index;
        }
        let merged = self.list(ListKind::Tools);
        let entries = merged.entries().iter();
        let index = Arc::new(Index::new(entries.map(|entry| {
            let definition = (!entry.finds()).then_some(&*entry.item.raw);
            (&*entry.public, definition)
        })));
        indexes.keep(source, &index);
        index
    }
}
