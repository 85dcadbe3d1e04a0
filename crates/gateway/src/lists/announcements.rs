//! Announcements of changed lists: one for each client and list, even if a configuration changes much.

use std::collections::HashSet;

use model::ListKind;
use platform::Mutex;
use topic::Receiver;

use crate::live::Live;

/// A client that is notified, and the list.
pub(crate) type Announcement = (ListKind, Receiver<Live>);

/// Announcements that are held back while a configuration changes: a client that lists again at once sees the change as a whole.
#[derive(Default)]
pub(crate) struct Announcements(Mutex<Option<Vec<Announcement>>>);

impl Announcements {
    /// Holds back announcements from now on.
    pub(crate) fn hold(&self) {
        self.0.lock().get_or_insert_default();
    }

    /// Returns announcements that must be made now.
    pub(crate) fn pass(&self, new: Vec<Announcement>) -> Vec<Announcement> {
        match &mut *self.0.lock() {
            Some(held) => {
                held.extend(new);
                Vec::new()
            }
            None => new,
        }
    }

    /// Holds back no more, and returns what was held back, each announcement once.
    pub(crate) fn release(&self) -> Vec<Announcement> {
        let (mut held, mut known) = (self.0.lock().take().unwrap_or_default(), HashSet::new());
        held.retain(|(list, to)| {
            let to = match to {
                Receiver::Call(call) => (Some(call.id), None),
                Receiver::Link(link) => (None, Some(link.id)),
            };
            known.insert((*list, to))
        });
        held
    }
}
