//! Choice of a session: shared or the caller's own, in the caller's era where possible; release when the caller leaves.

use std::sync::Arc;

use model::{Era, ParticipantId, Refusal};

use super::slot::Slot;
use super::{Upstream, close_all};
use crate::config::Sessions;
use crate::session::Session;
use crate::session_api::{ClientProfile, SessionKey};

impl Upstream {
    /// Whether a session in this era would open now: the server speaks the era and has no shared session in it.
    #[must_use]
    pub fn could_open(&self, era: Era) -> bool {
        let speaks = self.inner().eras.contains(&era);
        // The session with a server that dials in opens as soon as it connects.
        speaks && self.environment.dial_in.is_none() && self.open_shared(era).is_none()
    }

    /// Obtains the session for a caller: the shared one where configuration and declared capabilities allow it, else the
    /// caller's own, opened on first use. Its era is the caller's if the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server is not available.
    pub async fn session(
        &self,
        key: &SessionKey,
        client: &ClientProfile,
        era: Era,
    ) -> Result<Arc<Session>, Refusal> {
        loop {
            let known = self.inner().eras.clone();
            let era = match known.first() {
                Some(_) if known.contains(&era) => era,
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
            let key = if self.shares(key, client, era) { SessionKey::Shared } else { key.clone() };
            let client = (key != SessionKey::Shared).then_some(client);
            return self.obtain(Some(era), &key, client).await;
        }
    }

    /// The session that [`Upstream::session`] would return, if it is open.
    #[must_use]
    pub fn open_session(&self, key: &SessionKey, client: &ClientProfile, era: Era) -> Option<Arc<Session>> {
        let shared = self.shares(key, client, self.spoken(era)?);
        if shared { self.open_shared(era) } else { self.find_open(era, key.clone()) }
    }

    /// The open session with this instance number.
    #[must_use]
    pub fn session_by_instance(&self, instance: u64) -> Option<Arc<Session>> {
        let inner = self.inner();
        let slots: Vec<_> = inner.slots.values().filter_map(|slot| slot.session.lock().clone()).collect();
        let mut all = slots.into_iter().chain(inner.single_call.iter().cloned());
        all.find(|session| session.instance() == instance && session.is_open())
    }

    /// The shared session for callers of this era, if it is open.
    #[must_use]
    pub fn open_shared(&self, era: Era) -> Option<Arc<Session>> {
        self.find_open(era, SessionKey::Shared)
    }

    fn find_open(&self, era: Era, key: SessionKey) -> Option<Arc<Session>> {
        if self.spec.config.sessions == Sessions::Call && key != SessionKey::Shared {
            return None;
        }
        let place = (self.spoken(era)?, key);
        let session = self.inner().slots.get(&place)?.session.lock().clone();
        session.filter(|session| session.is_open())
    }

    /// The era of the server's sessions for a caller of this era, if it is known.
    fn spoken(&self, era: Era) -> Option<Era> {
        let inner = self.inner();
        if inner.eras.contains(&era) { Some(era) } else { inner.eras.first().copied() }
    }

    /// Closes the sessions of a legacy caller that has left.
    pub fn release(&self, key: &SessionKey) {
        if *key != SessionKey::Shared {
            self.close_owned(|other| other == key);
        }
    }

    /// Closes the sessions of a modern caller that has left, whatever capabilities it declared.
    pub fn release_participant(&self, id: &ParticipantId) {
        self.close_owned(|key| matches!(key, SessionKey::Principal { participant, .. } if participant == id));
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

    /// Whether a caller with this profile uses the shared session.
    #[must_use]
    pub fn shares(&self, key: &SessionKey, client: &ClientProfile, era: Era) -> bool {
        match self.spec.config.sessions {
            Sessions::Shared => true,
            Sessions::Caller | Sessions::Call => *key == SessionKey::Shared,
            // Every modern request carries its client's capabilities.
            Sessions::Auto => era == Era::Modern || !client.can_be_asked(),
        }
    }
}
