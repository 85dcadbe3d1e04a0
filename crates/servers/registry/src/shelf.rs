//! Commits that were answered: they answer again after the module has changed.

use std::sync::Arc;

use model::{Latest, account};
use platform::Mutex;

use crate::commit::{Commit, Files};

/// Commits kept. When there are more, the participant with most loses its oldest.
pub const COMMITS_MAX: usize = 1_024;
/// Bytes of their files, together; the participant with most loses its oldest.
pub const SHELF_BYTES_MAX: usize = 32 << 20;

/// The modules that one participant sees.
pub trait ModuleSource {
    /// Their names.
    fn names(&self) -> Vec<String>;
    /// The files of one, without `buf/validate/validate.proto`; `None` if the participant does not
    /// see it.
    fn files(&self, module: &str) -> Option<Files>;
}

/// A caller of the registry.
#[derive(Clone, Copy)]
pub struct Viewer<'a> {
    /// Its participant id.
    pub id: &'a str,
    /// Modules that the viewer sees.
    pub source: &'a dyn ModuleSource,
    /// Milliseconds since 1970.
    pub now_ms: u64,
}

/// The latest commits of all participants. A commit answers only the participants that saw it,
/// while they see its module.
#[derive(Debug, Default)]
pub struct Shelf(Mutex<Latest<Held>>);

/// A commit that a viewer saw.
#[derive(Debug)]
struct Held {
    viewer: Arc<str>,
    commit: Arc<Commit>,
}

impl Shelf {
    /// The commit of a module as the viewer sees it now, kept for later. `None` if the viewer does
    /// not see the module.
    pub fn current(&self, module: &str, viewer: &Viewer<'_>) -> Option<Arc<Commit>> {
        let commit = Commit::new(module, viewer.source.files(module)?, viewer.now_ms);
        let mut shelf = self.0.lock();
        let known = shelf
            .iter()
            .find(|held| held.commit.id == commit.id)
            .map(|held| Arc::clone(&held.commit));
        if shelf.iter().any(|held| held.is_of(viewer, &commit.id)) {
            return known;
        }
        // Viewers with the same files share one copy.
        let commit = known.unwrap_or_else(|| Arc::new(commit));
        let held = Held {
            viewer: viewer.id.into(),
            commit: Arc::clone(&commit),
        };
        shelf.push(account(viewer.id), commit.bytes(), held);
        shelf.shrink(COMMITS_MAX, SHELF_BYTES_MAX);
        Some(commit)
    }

    /// A commit that the viewer saw before.
    pub(crate) fn held(&self, id: &str, viewer: &Viewer<'_>) -> Option<Arc<Commit>> {
        if Commit::validate().id == id {
            return Some(Commit::validate());
        }
        let found = self
            .0
            .lock()
            .iter()
            .find(|held| held.is_of(viewer, id))
            .map(|held| Arc::clone(&held.commit));
        // The viewer may have lost the server since.
        found.filter(|commit| viewer.source.names().contains(&commit.module))
    }
}

impl Held {
    /// Whether it is the commit with this id, as this viewer saw it.
    fn is_of(&self, viewer: &Viewer<'_>, id: &str) -> bool {
        self.commit.id == id && &*self.viewer == viewer.id
    }
}
