//! Lists that were read, until something says that they have changed.

use std::sync::Arc;

use model::ListKind;
use platform::Mutex;
use wire::mcp::method::ListNames;
use wire::mcp::proxy::ProxySubject;

use super::definition::Definition;

/// At most one list for each subject, each within [`LIST_BYTES_MAX`](super::LIST_BYTES_MAX).
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<[Slot; 3]>);

#[derive(Debug, Default)]
struct Slot {
    list: Option<Arc<[Definition]>>,
    /// The number of changes, so that a list that was being read meanwhile is not kept.
    changes: u64,
}

impl Cache {
    /// The list if it is known, and the number of changes so far.
    pub(super) fn get(&self, subject: ProxySubject) -> (Option<Arc<[Definition]>>, u64) {
        let [tools, resources, prompts] = &*self.0.lock();
        let slot = match subject {
            ProxySubject::Tool => tools,
            ProxySubject::Resource => resources,
            ProxySubject::Prompt => prompts,
        };
        (slot.list.clone(), slot.changes)
    }

    /// Keeps a list whose reading began after so many changes, unless there were more since.
    pub(super) fn put(&self, subject: ProxySubject, list: &Arc<[Definition]>, changes: u64) {
        self.edit(subject, |slot| {
            if slot.changes == changes {
                slot.list = Some(Arc::clone(list));
            }
        });
    }

    /// Forgets a list.
    pub(super) fn forget(&self, subject: ProxySubject) {
        self.edit(subject, |slot| {
            *slot = Slot {
                list: None,
                changes: slot.changes + 1,
            }
        });
    }

    fn edit(&self, subject: ProxySubject, edit: impl FnOnce(&mut Slot)) {
        let [tools, resources, prompts] = &mut *self.0.lock();
        edit(match subject {
            ProxySubject::Tool => tools,
            ProxySubject::Resource => resources,
            ProxySubject::Prompt => prompts,
        });
    }
}

/// The list that a notification of this method says has changed.
pub(super) fn changed_by(method: &str) -> Option<ProxySubject> {
    let lists = [
        (ProxySubject::Tool, ListKind::Tools),
        (ProxySubject::Resource, ListKind::Resources),
        (ProxySubject::Prompt, ListKind::Prompts),
    ];
    lists
        .into_iter()
        .find(|(_, list)| ListNames::of(*list).changed == method)
        .map(|(subject, _)| subject)
}
