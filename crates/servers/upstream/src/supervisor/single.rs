//! Servers of which only one process can run, because it locks a file or a port: then all callers
//! share one session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use model::{Refusal, RefusalCode};
use tokio::time::timeout;
use wire::mcp::Era;

use super::wanted::Wanted;
use super::{TARGET, Upstream};
use crate::session::Session;
use crate::session_api::{Caller, SessionKey};

/// Longest wait for the end of the processes that make way for the shared one.
const ENDS: Duration = Duration::from_secs(10);

impl Upstream {
    /// Whether all callers share one session because a second process does not start.
    pub(super) fn is_single(&self) -> bool {
        self.single.load(Ordering::Relaxed)
    }

    /// Whether a session that was refused like this may have failed because another process of the
    /// server runs.
    pub(super) fn may_be_single(&self, refusal: &Refusal) -> bool {
        use RefusalCode::{UpstreamDown, UpstreamFailed, UpstreamTimeout};
        let has_failed = matches!(
            refusal.code,
            UpstreamDown | UpstreamFailed | UpstreamTimeout
        );
        let runs = || self.book.lock().sessions().any(|session| session.is_open());
        has_failed && self.spec.config.transport.child().is_some() && !self.is_single() && runs()
    }

    /// The session for a caller whose session did not start while another process of the server
    /// runs: the shared one, for which the sessions of single callers make way if it does not start
    /// beside them either.
    ///
    /// # Errors
    /// `refusal`, if the shared session does not start even alone.
    pub(super) async fn share_one(
        &self,
        caller: &Caller<'_>,
        era: Option<Era>,
        was_own: bool,
        refusal: Refusal,
    ) -> Result<Arc<Session>, Refusal> {
        let why = {
            let book = self.book.lock();
            if was_own {
                book.own_cause.clone()
            } else {
                book.cause.clone()
            }
        };
        let _turn = self.sharing.lock().await;
        let shared = || self.obtain(Wanted::by(caller, era, false));
        if self.is_single() {
            return shared().await;
        }
        let is_open = era.is_some_and(|era| {
            let book = self.book.lock();
            book.slots
                .get(&(era, SessionKey::Shared))
                .is_some_and(|slot| slot.open().is_some())
        });
        // Beside a shared session that runs, or instead of one's own session: the first way that
        // works.
        if was_own && let Ok(session) = shared().await {
            self.note_single(why);
            return Ok(session);
        }
        if is_open {
            return Err(refusal);
        }
        // From now on no caller opens one of its own.
        self.single.store(true, Ordering::Relaxed);
        if !self.retire_own().await {
            self.note_single(why);
            return Err(refusal);
        }
        self.reset_backoff();
        match shared().await {
            Ok(session) => {
                self.note_single(why);
                Ok(session)
            }
            Err(_) => {
                self.single.store(false, Ordering::Relaxed);
                Err(refusal)
            }
        }
    }

    /// Ends the sessions of single callers once their calls have ended; false if some take too
    /// long, and go on.
    async fn retire_own(&self) -> bool {
        let retired: Vec<Arc<Session>> = {
            let mut book = self.book.lock();
            let slots = book.slots.iter_mut().filter(|((_, key), _)| key.is_own());
            let own: Vec<_> = slots
                .filter_map(|(_, slot)| Some((slot.session.take()?, slot.taken.take()?)))
                .collect();
            let retired = own.iter().map(|(session, _)| Arc::clone(session)).collect();
            book.single_call.extend(own);
            retired
        };
        let mut ends: Vec<_> = retired
            .iter()
            .map(|session| session.ended.subscribe())
            .collect();
        retired.iter().for_each(|session| session.retire());
        let all_end = async {
            for end in &mut ends {
                let _ = end.wait_for(|ended| *ended).await;
            }
        };
        timeout(ENDS, all_end).await.is_ok()
    }

    fn note_single(&self, why: String) {
        self.single.store(true, Ordering::Relaxed);
        let mut book = self.book.lock();
        if book.single.is_some() {
            return;
        }
        tracing::warn!(
            target: TARGET,
            server = self.spec.name(),
            why,
            "a second process of it does not start: all clients share one, and it can ask none of them"
        );
        book.single = Some(why);
    }
}
