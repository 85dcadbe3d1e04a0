//! Reopening of a forgotten legacy HTTP session (404): a new handshake on the same link.
//!
//! Every request that is known not to have run is then sent again, once.

use std::sync::Arc;

use super::Session;
use crate::{handshake, lists};

impl Session {
    /// Keeps a request until the session is open again; false when it was sent twice already or cannot be sent again.
    pub(super) fn await_reopen(self: &Arc<Self>, number: u64) -> bool {
        let mut pending = self.pending.lock();
        if pending.requests.get(&number).is_none_or(|request| request.sent.is_none())
            || pending.ended.is_some()
        {
            return false;
        }
        if let Some(requests) = &mut pending.awaiting_reopen {
            requests.push(number);
        } else {
            pending.awaiting_reopen = Some(vec![number]);
            let me = Arc::clone(self);
            tokio::spawn(async move { me.reopen().await });
        }
        true
    }

    async fn reopen(self: Arc<Self>) {
        tracing::info!(server = self.upstream(), "the server forgot the session; opening a new one");
        if let Some(link) = self.link.get() {
            link.forget_session();
        }
        if let Err(fault) = handshake::initialize(&self, None).await {
            tracing::warn!(server = self.upstream(), %fault, "the new session failed");
            self.end(fault);
            return;
        }
        let again = {
            let mut pending = self.pending.lock();
            let requests = pending.awaiting_reopen.take().unwrap_or_default();
            let again = requests.into_iter().filter_map(|number| Some((number, pending.take_sent(number)?)));
            again.collect::<Vec<_>>()
        };
        for (number, request) in again {
            self.send_kept(number, request);
        }
        // Lists and subscriptions belonged to the forgotten session.
        self.setup.interest.renew();
        self.mark_stale(lists::ALL);
    }
}
