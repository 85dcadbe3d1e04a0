//! Lists of one caller in full, for the built-in tools that look into them.

use std::sync::Arc;

use model::ListKind;
use topic::ListSnapshot;
use topic::section::ToolsList;
use wire::mcp::{search::Index, task::TaskListing};

use crate::cache::{IndexCache, ListInputs};
use crate::merged::{Manifests, MergedList, Reader};

/// Lists as one caller sees them, for look-up.
pub struct Seen {
    snapshot: ListSnapshot,
    manifests: Manifests,
    tasks: TaskListing,
    outputs: bool,
}

impl Seen {
    /// Lists of these manifests as a caller with this snapshot sees them. `tasks`: what a list of
    /// tools says about tasks; `outputs`: whether it promises structured results.
    pub fn new(
        snapshot: ListSnapshot,
        manifests: Manifests,
        tasks: TaskListing,
        outputs: bool,
    ) -> Self {
        Self {
            snapshot,
            manifests,
            tasks,
            outputs,
        }
    }

    /// One list in full, whatever the topic's lists show of it. A model finds nothing here that is
    /// for apps alone.
    pub fn list(&self, list: ListKind) -> MergedList<'_> {
        let tasks = if list == ListKind::Tools {
            self.tasks
        } else {
            TaskListing::AsWritten
        };
        MergedList::new(
            &self.snapshot,
            list,
            &self.manifests,
            Reader {
                tasks,
                outputs: self.outputs,
                ..Reader::PLAIN
            },
        )
    }

    /// The index of the tools, without those that find the others, or of the skills. It is made
    /// once for as long as nothing changes.
    pub fn index(&self, list: ListKind, indexes: &IndexCache) -> Arc<Index> {
        let snapshot = self.snapshot.clone();
        let source = ListInputs::new(
            list,
            ToolsList::Full,
            Reader::PLAIN,
            snapshot,
            &self.manifests,
        );
        if let Some(index) = indexes.get(&source) {
            return index;
        }
        let merged = self.list(list);
        let entries = merged.entries().iter();
        let index = Arc::new(match list {
            // The frontmatter of a skill has the members of a definition that are searched.
            ListKind::Skills => Index::new(
                entries.map(|entry| (&*entry.public, json::at(&entry.item.raw, &["frontmatter"]))),
            ),
            _ => Index::new(entries.map(|entry| {
                let definition = (!entry.finds()).then_some(&*entry.item.raw);
                (&*entry.public, definition)
            })),
        });
        indexes.keep(source, &index);
        index
    }
}
