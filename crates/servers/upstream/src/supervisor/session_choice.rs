//! Choice of a session: shared or the caller's own, in the caller's era where possible. End of
//! subscriptions, and of the sessions of a link that leaves.

use std::sync::Arc;
use std::time::Duration;

use client::SendError;
use model::{Form, LinkId, ParticipantId, Refusal};
use tokio::time::timeout;
use wire::mcp::Era;

use super::wanted::Wanted;
use super::{Upstream, close_all};
use crate::config::{Placement, SessionSharing, Transport};
use crate::session_api::{Caller, ClientProfile, SessionKey};
use crate::{fault::Fault, interest::Subscription, manifest::Manifest, session::Session};

/// Longest wait for the end of a session that takes no call any more.
const ENDS: Duration = Duration::from_secs(3);

impl Upstream {
    /// Obtains the session for a caller that uses it: the shared one where configuration and
    /// declared capabilities allow it, else the caller's own, opened on first use. Its form is the
    /// caller's if the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server is not available.
    pub async fn session(&self, caller: &Caller<'_>) -> Result<Arc<Session>, Refusal> {
        let caller = self.known(caller);
        let session = self.choose(&caller).await?;
        self.note_use(&caller, session.key().is_own());
        Ok(session)
    }

    async fn choose(&self, caller: &Caller<'_>) -> Result<Arc<Session>, Refusal> {
        let spoken = || self.book.lock().spoken(caller.form);
        let mut era = spoken();
        if self.has_callers_accounts() {
            if era.is_none() && self.book.lock().must_ask(caller.form) {
                let asked = self
                    .obtain(Wanted::by(caller, Some(caller.form), true))
                    .await;
                era = spoken();
                if asked.is_ok() || era.is_none() {
                    return asked;
                }
            }
            return self.obtain(Wanted::by(caller, era, true)).await;
        }
        if era.is_none() && !self.book.lock().must_ask(caller.form) {
            // Opening the shared session detects the era.
            let session = self.obtain(Wanted::by(caller, None, false)).await?;
            era = spoken();
            if era.is_none() && !self.book.lock().must_ask(caller.form) {
                return Ok(session);
            }
        }
        if era.is_none() {
            // Of both eras the caller's own is better: the session in which the server is asked for
            // it is the caller's.
            let is_own = !self.shares(caller.client, caller.form);
            let asked = self
                .obtain(Wanted::by(caller, Some(caller.form), is_own))
                .await;
            tracing::debug!(
                server = self.spec.name(),
                speaks = asked.is_ok(),
                "asked whether it speaks legacy"
            );
            if asked.is_ok() {
                return asked;
            }
            // Without an answer the caller gets what there is, and the next one asks again.
            era = spoken().or_else(|| self.book.lock().eras.first().copied());
        }
        let is_own = era.is_some_and(|era| !self.shares(caller.client, era));
        match self.obtain(Wanted::by(caller, era, is_own)).await {
            Err(refusal) if self.may_be_single(&refusal) => {
                self.share_one(caller, era, is_own, refusal).await
            }
            obtained => obtained,
        }
    }

    /// Obtains the session for a caller whose call this one did not take, because it is about to
    /// end.
    ///
    /// # Errors
    /// As [`Upstream::session`]; also if the session does not end in time.
    pub async fn successor(
        &self,
        ended: &Session,
        caller: &Caller<'_>,
    ) -> Result<Arc<Session>, Refusal> {
        let mut end = ended.ended.subscribe();
        if timeout(ENDS, end.wait_for(|ended| *ended)).await.is_err() {
            return Err(ended.refusal(&Fault::Unsent(SendError::Closed)));
        }
        self.session(caller).await
    }

    /// The session that [`Upstream::session`] would return, if it is open.
    #[must_use]
    pub fn open_session(&self, caller: &Caller<'_>) -> Option<Arc<Session>> {
        let caller = &self.known(caller);
        let mut book = self.book.lock();
        let era = book.spoken(caller.form)?;
        let is_own = !self.shares(caller.client, era);
        let key = SessionKey::of(Some(caller).filter(|_| is_own));
        let found = book.open(&(era, key), Some(caller))?;
        drop(book);
        if found.is_first_use {
            self.note_use(caller, is_own);
        }
        Some(found.session)
    }

    /// The open session that is a caller's own, without use of it.
    #[must_use]
    pub fn own_session(&self, caller: &Caller<'_>) -> Option<Arc<Session>> {
        let key = self.known(caller).key();
        let book = self.book.lock();
        let era = book.spoken(caller.form)?;
        book.slots.get(&(era, key))?.open().cloned()
    }

    /// The manifests of the open sessions that are its modern caller's own and that this link uses.
    #[must_use]
    pub fn manifests_of(&self, link: LinkId) -> Vec<Arc<Manifest>> {
        let book = self.book.lock();
        let own = book
            .sessions()
            .filter(|session| matches!(session.key(), SessionKey::Principal { .. }));
        let used = own.filter(|session| session.is_open() && session.users().contains(&link));
        used.map(|session| session.manifest()).collect()
    }

    /// Lists of the newest open session that is this participant's own; a session in this form
    /// comes first.
    #[must_use]
    pub fn manifest_of(&self, participant: &ParticipantId, form: Form) -> Option<Arc<Manifest>> {
        let book = self.book.lock();
        let own = book.sessions().filter(|session| {
            let owner = session.setup.owner.as_ref();
            session.is_open() && owner.is_some_and(|owner| owner.participant() == participant)
        });
        let newest = own.max_by_key(|session| (session.era() == form, session.instance()));
        newest.map(|session| session.manifest())
    }

    /// The open session with this instance number.
    #[must_use]
    pub fn session_by_instance(&self, instance: u64) -> Option<Arc<Session>> {
        let book = self.book.lock();
        book.sessions()
            .find(|session| session.instance() == instance && session.is_open())
            .cloned()
    }

    /// The shared session for callers of this form, if it is open.
    #[must_use]
    pub fn open_shared(&self, form: Form) -> Option<Arc<Session>> {
        let mut book = self.book.lock();
        let era = book.spoken(form)?;
        Some(book.open(&(era, SessionKey::Shared), None)?.session)
    }

    /// Whether it makes no difference which node of a cluster calls the server for callers of this
    /// form: that is configured, or it keeps nothing between two calls. `None` if that is not known
    /// before a session for such callers is open.
    #[must_use]
    pub fn is_for_every_node(&self, form: Form) -> Option<bool> {
        let config = &self.spec.config;
        match config.placement {
            Placement::Every => Some(true),
            Placement::Home => Some(false),
            Placement::Auto if self.has_callers_accounts() => Some(false),
            Placement::Auto => match config.sessions {
                SessionSharing::Caller => Some(false),
                SessionSharing::Call => Some(config.transport.child().is_none()),
                SessionSharing::Auto | SessionSharing::Shared => {
                    Some(!self.open_shared(form)?.keeps_state())
                }
            },
        }
    }

    /// Whether this caller has sessions of its own here.
    #[must_use]
    pub fn is_owned(&self, caller: &Caller<'_>) -> bool {
        let era = self.book.lock().spoken(caller.form);
        !self.shares(caller.client, era.unwrap_or(caller.form))
    }

    /// Whether a client with this profile uses the shared session.
    pub(super) fn shares(&self, client: &ClientProfile, era: Era) -> bool {
        match self.spec.config.sessions {
            _ if self.has_callers_accounts() => false,
            _ if self.is_single() => true,
            SessionSharing::Shared => true,
            SessionSharing::Caller | SessionSharing::Call => false,
            // proto-mcp 1.0 has no questions.
            SessionSharing::Auto if matches!(self.spec.config.transport, Transport::Proto(_)) => {
                true
            }
            // Every modern request carries its client's capabilities.
            SessionSharing::Auto => era == Era::Modern || !client.can_be_asked(),
        }
    }
}

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
        let of_calls = book.single_call.iter().map(|(session, _)| session);
        ended.extend(
            of_calls
                .filter(|one| one.setup.interest.remove(link, subscription))
                .cloned(),
        );
        drop(book);
        // A session sends, so no lock is held here.
        ended
            .iter()
            .for_each(|session| session.unsubscribe_at_server(subscription));
    }

    /// Ends all subscriptions of a link that leaves, and the sessions that it used last, except
    /// those with tasks: their owner may come back for the results.
    pub fn release(&self, link: LinkId) {
        let mut ended = Vec::new();
        let mut closing = Vec::new();
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
        let of_calls = book.single_call.iter().map(|(session, _)| session);
        ended.extend(of_calls.map(|one| (Arc::clone(one), one.setup.interest.forget(link))));
        drop(book);
        for (session, lost) in ended {
            lost.iter()
                .for_each(|subscription| session.unsubscribe_at_server(subscription));
        }
        close_all(closing);
    }
}
