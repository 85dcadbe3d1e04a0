//! Announcements of changed lists: one for each client and list, even if a configuration changes
//! much.

use std::collections::HashSet;

use model::ListKind;
use platform::Mutex;
use topic::Receiver;

use crate::live::Live;

/// A client that is notified, and the list.
pub(crate) type Announcement = (ListKind, Receiver<Live>);

/// Announcements that are held back while a configuration changes: a client that lists again at
/// once sees the change as a whole.
#[derive(Default)]
pub(crate) struct Announcements(Mutex<State>);

#[derive(Default)]
struct State {
    /// The changes of a configuration that are under way.
    holds: usize,
    held: Vec<Announcement>,
}

/// A change of a configuration that is under way. Announcements are held back until it is dropped,
/// also by a panic.
#[must_use]
pub(crate) struct Held<'a>(&'a Announcements);

impl Announcements {
    /// Holds back announcements for as long as the returned value lives.
    pub(crate) fn hold(&self) -> Held<'_> {
        self.0.lock().holds += 1;
        Held(self)
    }

    /// Returns announcements that must be made now: these, with those that a change left behind,
    /// each once; none while announcements are held back.
    pub(crate) fn pass(&self, new: Vec<Announcement>) -> Vec<Announcement> {
        let mut state = self.0.lock();
        // The common case: nothing to sort out.
        if state.holds == 0 && state.held.is_empty() {
            return new;
        }
        state.held.extend(new);
        if state.holds > 0 {
            return Vec::new();
        }
        let mut all = std::mem::take(&mut state.held);
        drop(state);
        let mut known = HashSet::new();
        all.retain(|(list, to)| {
            let to = match to {
                Receiver::Call(call) => (Some(call.id), None),
                Receiver::Link(link) => (None, Some(link.id)),
            };
            known.insert((*list, to))
        });
        all
    }
}

impl Held<'_> {
    /// Ends the hold, and returns the announcements that must be made now. If the value is only
    /// dropped, the next announcement brings them.
    pub(crate) fn release(self) -> Vec<Announcement> {
        let announcements = self.0;
        drop(self);
        announcements.pass(Vec::new())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.0.lock().holds -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use model::ListKind::{Prompts, Tools};
    use model::{Form, LinkId, ParticipantId};
    use topic::Receiver;

    use super::Announcements;
    use crate::link::{Link, NoOutlet, plain_client};

    fn a_link() -> Arc<Link> {
        let id = ParticipantId::new("ann").unwrap();
        let ann = auth::Participant::new(id, Arc::default(), Vec::new());
        Link::new(
            LinkId(1),
            Arc::new(ann),
            Form::Legacy,
            plain_client(),
            Arc::new(NoOutlet),
        )
    }

    #[test]
    fn announcements_wait_for_a_change_and_are_made_once() {
        let announcements = Announcements::default();
        let to = a_link();
        let link = || Receiver::Link(Arc::<Link>::clone(&to));
        assert_eq!(
            announcements.pass(vec![(Tools, link())]).len(),
            1,
            "no change is under way"
        );
        let held = announcements.hold();
        for list in [Tools, Prompts, Tools] {
            assert!(announcements.pass(vec![(list, link())]).is_empty());
        }
        let lists: Vec<_> = held.release().into_iter().map(|(list, _)| list).collect();
        assert_eq!(lists, [Tools, Prompts]);
        assert_eq!(
            announcements.pass(vec![(Tools, link())]).len(),
            1,
            "the change is over"
        );
    }

    #[test]
    fn a_panic_holds_no_announcement_for_ever() {
        let announcements = Announcements::default();
        let to = a_link();
        let link = || Receiver::Link(Arc::<Link>::clone(&to));
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let _held = announcements.hold();
            announcements.pass(vec![(Tools, link())]);
            panic!("a fault while a configuration changes");
        }));
        assert!(panicked.is_err());
        let lists: Vec<_> = announcements
            .pass(vec![(Prompts, link())])
            .into_iter()
            .map(|(list, _)| list)
            .collect();
        assert_eq!(lists, [Tools, Prompts]);
    }
}
