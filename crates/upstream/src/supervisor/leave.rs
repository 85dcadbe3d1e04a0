//! End of subscriptions, and of the sessions of a link that leaves: whether the session is open or a successor will be.

use std::sync::Arc;

use model::LinkId;

use super::{Upstream, close_all};
use crate::interest::Subscription;

impl Upstream {
    /// Ends a link's subscription, in whichever session it was made.
    pub fn unsubscribe(&self, link: LinkId, subscription: &Subscription) {
        let mut ended = Vec::new();
        let book = self.book.lock();
        for slot in book.slots.values() {
            if slot.interest.remove(link, subscription) {
                ended.extend(slot.open().cloned());
            }
        }
        let of_calls = book.single_call.iter();
        ended.extend(of_calls.filter(|one| one.setup.interest.remove(link, subscription)).cloned());
        drop(book);
        // A session sends, so no lock is held here.
        ended.iter().for_each(|session| session.unsubscribe_at_server(subscription));
    }

    /// Ends all subscriptions of a link that leaves, and the sessions that it used last, except those with tasks: their owner
    /// may come back for the results.
    pub fn release(&self, link: LinkId) {
        let (mut ended, mut closing) = (Vec::new(), Vec::new());
        let mut book = self.book.lock();
        book.slots.retain(|(_, key), slot| {
            let lost = slot.interest.forget(link);
            let leaves = slot.left_by(link) && key.is_own() && !slot.has_tasks();
            if leaves {
                closing.extend(slot.session.take());
            } else if let Some(session) = slot.open() {
                ended.push((Arc::clone(session), lost));
            }
            !leaves
        });
        ended.extend(book.single_call.iter().map(|one| (Arc::clone(one), one.setup.interest.forget(link))));
        drop(book);
        for (session, lost) in ended {
            lost.iter().for_each(|subscription| session.unsubscribe_at_server(subscription));
        }
        close_all(closing);
    }
}
