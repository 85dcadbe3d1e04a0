//! Choice of a session: shared or the caller's own, in the caller's era where possible; release when the caller leaves.

use std::sync::Arc;

use model::{Form, Refusal};
use wire::mcp::Era;

use super::slot::Slot;
use super::{Inner, Upstream, close_all};
use crate::config::Sessions;
use crate::session::Session;
use crate::session_api::{Caller, ClientProfile, SessionKey};

impl Upstream {
    /// Whether a session in this form would open now: the server speaks it and has no shared session in it.
    #[must_use]
    pub fn could_open(&self, form: Form) -> bool {
        let speaks = self.inner().eras.contains(&Era::of(form));
        // The session with a server that dials in opens as soon as it connects.
        speaks && self.environment.dial_in.is_none() && self.open_shared(form).is_none()
    }

    /// Obtains the session for a caller: the shared one where configuration and declared capabilities allow it, else the
    /// caller's own, opened on first use. Its form is the caller's if the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server is not available.
    pub async fn session(&self, caller: &Caller<'_>) -> Result<Arc<Session>, Refusal> {
        let wanted = Era::of(caller.form);
        loop {
            let known = self.inner().eras.clone();
            let era = match known.first() {
                Some(_) if known.contains(&wanted) => wanted,
                Some(other) => *other,
                None => {
                    // Opening the shared session detects the era.
                    let session = self.obtain(None, &SessionKey::Shared, None).await?;
                    if self.inner().eras.is_empty() {
                        return Ok(session);
                    }
                    continue;
                }
            };
            let shares = self.shares(caller.client, era);
            let key = if shares { SessionKey::Shared } else { caller.key() };
            return self.obtain(Some(era), &key, (!shares).then_some(caller.client)).await;
        }
    }

    /// The session that [`Upstream::session`] would return, if it is open.
    #[must_use]
    pub fn open_session(&self, caller: &Caller<'_>) -> Option<Arc<Session>> {
        let inner = self.inner();
        let era = inner.spoken(caller.form)?;
        if self.shares(caller.client, era) {
            return inner.open(era, SessionKey::Shared);
        }
        if self.spec.config.sessions == Sessions::Call { None } else { inner.open(era, caller.key()) }
    }

    /// The open session with this instance number.
    #[must_use]
    pub fn session_by_instance(&self, instance: u64) -> Option<Arc<Session>> {
        let inner = self.inner();
        let slots: Vec<_> = inner.slots.values().filter_map(|slot| slot.session.lock().clone()).collect();
        let mut all = slots.into_iter().chain(inner.single_call.iter().cloned());
        all.find(|session| session.instance() == instance && session.is_open())
    }

    /// The shared session for callers of this form, if it is open.
    #[must_use]
    pub fn open_shared(&self, form: Form) -> Option<Arc<Session>> {
        let inner = self.inner();
        inner.open(inner.spoken(form)?, SessionKey::Shared)
    }

    /// Closes the sessions of a caller that has left: of one with a session of its own those of its link, of the others those
    /// of its participant, whatever capabilities it declared.
    pub fn release(&self, caller: &Caller<'_>) {
        match Era::of(caller.form) {
            Era::Legacy => self.close_owned(|key| key.owner() == Some(caller.link)),
            Era::Modern => self.close_owned(
                |key| matches!(key, SessionKey::Principal { participant, .. } if participant == caller.participant),
            ),
        }
    }

    /// Closes a caller's sessions, except those with tasks: the caller may come back for the results.
    fn close_owned(&self, owned: impl Fn(&SessionKey) -> bool) {
        let closing: Vec<Arc<Session>> = {
            let mut inner = self.inner();
            let has_tasks =
                |slot: &Slot| slot.session.lock().as_ref().is_some_and(|session| session.tasks() > 0);
            let slots = inner.slots.iter().filter(|((_, key), slot)| owned(key) && !has_tasks(slot));
            let places: Vec<_> = slots.map(|(place, _)| place.clone()).collect();
            places.iter().filter_map(|place| inner.slots.remove(place)?.session.lock().take()).collect()
        };
        close_all(closing);
    }

    /// Whether this caller has sessions of its own here.
    #[must_use]
    pub fn is_owned(&self, caller: &Caller<'_>) -> bool {
        let era = self.inner().spoken(caller.form);
        !self.shares(caller.client, era.unwrap_or(Era::of(caller.form)))
    }

    /// Whether a client with this profile uses the shared session.
    fn shares(&self, client: &ClientProfile, era: Era) -> bool {
        match self.spec.config.sessions {
            Sessions::Shared => true,
            Sessions::Caller | Sessions::Call => false,
            // Every modern request carries its client's capabilities.
            Sessions::Auto => era == Era::Modern || !client.can_be_asked(),
        }
    }
}

impl Inner {
    /// The era of the server's sessions for a caller of this form, if it is known.
    fn spoken(&self, form: Form) -> Option<Era> {
        let era = Era::of(form);
        if self.eras.contains(&era) { Some(era) } else { self.eras.first().copied() }
    }

    fn open(&self, era: Era, key: SessionKey) -> Option<Arc<Session>> {
        let session = self.slots.get(&(era, key))?.session.lock().clone();
        session.filter(|session| session.is_open())
    }
}
