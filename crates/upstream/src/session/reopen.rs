//! A legacy HTTP session that the server has forgotten (404): one new handshake on the same link, then what is known
//! not to have run is sent again, once.

use std::sync::Arc;

use super::super::greet;
use super::Session;

impl Session {
    /// Keeps a request for the next session; false when it was sent twice already or cannot be sent again.
    pub(super) fn stall(self: &Arc<Self>, number: u64) -> bool {
        let mut open = self.open();
        if open.get(number).is_none_or(|open| open.sent.is_none()) || open.ended.is_some() {
            return false;
        }
        if let Some(stalled) = &mut open.stalled {
            stalled.push(number);
        } else {
            open.stalled = Some(vec![number]);
            let me = Arc::clone(self);
            tokio::spawn(async move { me.reopen().await });
        }
        true
    }

    async fn reopen(self: Arc<Self>) {
        tracing::info!(server = self.upstream(), "the server has forgotten the session; opening another");
        if let Some(link) = self.link() {
            link.forget_session();
        }
        if let Err(fault) = greet::initialize(&self, None).await {
            tracing::warn!(server = self.upstream(), %fault, "no new session");
            self.end(fault);
            return;
        }
        let again = {
            let mut open = self.open();
            let stalled = open.stalled.take().unwrap_or_default();
            stalled.into_iter().filter_map(|number| Some((number, open.unsend(number)?))).collect::<Vec<_>>()
        };
        for (number, request) in again {
            self.resend(number, request);
        }
        self.outdated_all();
    }

    /// Everything that the server told or was told belongs to the session before.
    fn outdated_all(&self) {
        self.stale.fetch_or(super::super::lists::ALL, std::sync::atomic::Ordering::SeqCst);
        self.opening.wants.renew();
        self.upkeep.notify_one();
    }
}
