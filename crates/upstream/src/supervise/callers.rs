//! Which session a caller uses, and what goes when the caller leaves. Must not know how sessions are opened.

use std::sync::Arc;

use model::{Era, ParticipantId, Refusal};

use super::super::session::Session;
use super::super::sink::{Hello, SessionKey};
use super::slot::Slot;
use super::{Upstream, close_all};
use crate::config::Sessions;

impl Upstream {
    /// Whether callers of this era wait for nothing but a session in it.
    #[must_use]
    pub fn could_open(&self, era: Era) -> bool {
        let speaks = self.book().eras.contains(&era);
        // Who dials in is opened as soon as it is here.
        speaks && self.ground.dialer.is_none() && self.open_shared(era).is_none()
    }

    /// The session for a caller: the shared one where policy and declared capabilities allow it, else the caller's own,
    /// opened on first use. Its era is the caller's where the server speaks it.
    ///
    /// # Errors
    /// A refusal that says why the server cannot be used now.
    pub async fn session(&self, key: &SessionKey, hello: &Hello, era: Era) -> Result<Arc<Session>, Refusal> {
        loop {
            let known = self.book().eras.clone();
            let era = match known.first() {
                Some(_) if known.contains(&era) => era,
                Some(other) => *other,
                None => {
                    // Nobody knows yet what it speaks: opening the shared session finds out.
                    let session = self.obtain(None, &SessionKey::Shared, None).await?;
                    if self.book().eras.is_empty() {
                        return Ok(session);
                    }
                    continue;
                }
            };
            let key = if self.shares(key, hello, era) { SessionKey::Shared } else { key.clone() };
            let hello = (key != SessionKey::Shared).then_some(hello);
            return self.obtain(Some(era), &key, hello).await;
        }
    }

    /// The session that [`Upstream::session`] would give, if it is open now.
    #[must_use]
    pub fn open_session(&self, key: &SessionKey, hello: &Hello, era: Era) -> Option<Arc<Session>> {
        let shared = self.shares(key, hello, self.spoken(era)?);
        if shared { self.open_shared(era) } else { self.ready(era, key.clone()) }
    }

    /// The open session of this birth number.
    #[must_use]
    pub fn session_of(&self, birth: u64) -> Option<Arc<Session>> {
        let book = self.book();
        let slots: Vec<_> = book.slots.values().filter_map(|slot| slot.session.lock().clone()).collect();
        let mut all = slots.into_iter().chain(book.once.iter().cloned());
        all.find(|session| session.birth() == birth && session.is_open())
    }

    /// The shared session for callers of this era, if it is open now.
    #[must_use]
    pub fn open_shared(&self, era: Era) -> Option<Arc<Session>> {
        self.ready(era, SessionKey::Shared)
    }

    fn ready(&self, era: Era, key: SessionKey) -> Option<Arc<Session>> {
        if self.spec.config.sessions == Sessions::Call && key != SessionKey::Shared {
            return None;
        }
        let place = (self.spoken(era)?, key);
        let session = self.book().slots.get(&place)?.session.lock().clone();
        session.filter(|session| session.is_open())
    }

    /// The era in which a caller of this era is served, if it is known by now.
    fn spoken(&self, era: Era) -> Option<Era> {
        let book = self.book();
        if book.eras.contains(&era) { Some(era) } else { book.eras.first().copied() }
    }

    /// Closes what belongs to a legacy caller that has left.
    pub fn leave(&self, key: &SessionKey) {
        if *key != SessionKey::Shared {
            self.close_those(|other| other == key);
        }
    }

    /// Closes what belongs to a modern caller that has left, whatever it declared.
    pub fn leave_participant(&self, who: &ParticipantId) {
        self.close_those(
            |key| matches!(key, SessionKey::Principal { participant, .. } if participant == who),
        );
    }

    /// Sessions in which tasks run stay until these are over: who made them may come back for them.
    fn close_those(&self, theirs: impl Fn(&SessionKey) -> bool) {
        let left: Vec<Arc<Session>> = {
            let mut book = self.book();
            let runs = |slot: &Slot| slot.session.lock().as_ref().is_some_and(|session| session.tasks() > 0);
            let those = book.slots.iter().filter(|((_, key), slot)| theirs(key) && !runs(slot));
            let keys: Vec<_> = those.map(|(place, _)| place.clone()).collect();
            keys.iter().filter_map(|key| book.slots.remove(key)?.session.lock().take()).collect()
        };
        close_all(left);
    }

    /// Whether a caller that says this of itself uses the shared session.
    #[must_use]
    pub fn shares(&self, key: &SessionKey, hello: &Hello, era: Era) -> bool {
        match self.spec.config.sessions {
            Sessions::Shared => true,
            Sessions::Caller | Sessions::Call => *key == SessionKey::Shared,
            // The modern era says all in each request.
            Sessions::Auto => era == Era::Modern || !hello.can_be_asked(),
        }
    }
}
