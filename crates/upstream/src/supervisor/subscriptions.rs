//! End of a link's subscriptions: in every session of the server, and in the slots whose session is not open.

use std::sync::Arc;

use model::LinkId;

use super::Upstream;
use crate::interest::Interest;
use crate::session::Session;

impl Upstream {
    /// Ends a link's subscription to a resource, in whichever session it was made. `uri` is the server's own.
    pub fn unsubscribe(&self, link: LinkId, uri: &str) {
        let end = |session: &Session| session.unsubscribe(link, uri);
        self.end_interest(link, end, |interest| interest.remove_uri(link, uri));
    }

    /// Ends a link's subscription to a task, in whichever session it was made. `own` is the server's own id.
    pub fn unwatch_task(&self, link: LinkId, own: &str) {
        let end = |session: &Session| session.unwatch_task(link, own);
        self.end_interest(link, end, |interest| interest.remove_task(link, own));
    }

    /// Ends all subscriptions of a link.
    pub fn forget(&self, link: LinkId) {
        let end = |session: &Session| session.forget(link);
        self.end_interest(link, end, |interest| {
            interest.forget_uris(link);
            interest.forget_tasks(link)
        });
    }

    /// Ends interest of a link: by the session where one is open, so that the server learns of it, else where it is kept for the
    /// next session.
    fn end_interest(&self, link: LinkId, by_session: impl Fn(&Session), closed: impl Fn(&Interest) -> bool) {
        let open: Vec<Arc<Session>> = {
            let inner = self.inner();
            let may_have = |owner: Option<LinkId>| owner.is_none_or(|owner| owner == link);
            let slots = inner.slots.iter().filter(|((_, key), _)| may_have(key.owner()));
            let mut open = Vec::new();
            for (_, slot) in slots.filter(|(_, slot)| slot.interest.len() > 0) {
                let session = slot.session.lock().clone();
                match session.filter(|session| session.is_open()) {
                    Some(session) => open.push(session),
                    None => {
                        closed(&slot.interest);
                    }
                }
            }
            open.extend(inner.single_call.iter().filter(|one| may_have(one.key().owner())).cloned());
            open
        };
        // A session sends, so no lock is held here.
        open.iter().for_each(|session| by_session(session));
    }
}
