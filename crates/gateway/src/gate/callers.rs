//! Who is let in, and how they leave: sessions, pipes, modern callers, hearers.
//!
//! Owns how a caller begins and ends. Must not know how what is in force changes.

use std::sync::Arc;

use auth::Participant;
use bytes::Bytes;
use model::{LinkId, Refusal, RefusalCode};
use upstream::ClientProfile;
use wire::mcp::Version;

use super::{Gate, Seen};
use crate::caller::Caller;
use crate::pump::{Hearing, Pump};
use crate::resume;
use crate::sessions::Session;
use crate::stream::Stream;

/// A modern caller without requests leaves its topic after this many seconds.
const MODERN_IDLE_SECS: u64 = 300;

impl Gate {
    /// A legacy caller with a stream of its own (stdio, the 2024-11-05 pair). The door calls [`Gate::leave`] at the end.
    ///
    /// # Errors
    /// Why the topic does not let it in.
    pub fn legacy(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        hello: ClientProfile,
        home: Option<Arc<Stream>>,
    ) -> Result<Arc<Caller>, Refusal> {
        let caller = Arc::new(Caller::legacy(
            self.ground.link(),
            Arc::clone(participant),
            pump.name(),
            hello,
            home,
            &self.bounds(),
        ));
        self.join(pump, &caller, None)?;
        Ok(caller)
    }

    /// Begins a legacy session over HTTP, and gives its id.
    ///
    /// # Errors
    /// Why there is none.
    pub fn open_session(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        hello: ClientProfile,
    ) -> Result<String, Refusal> {
        let id = resume::seal(self.ground.sealer(), participant.id.as_str(), pump.name(), &hello);
        self.begin_session(&id, pump, participant, hello)?;
        Ok(id)
    }

    /// A participant's session by its id. One that this process does not know is taken up again if its id is one that
    /// this gateway gave (before a restart, or before it was put out for room).
    pub fn find_session(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        id: &str,
    ) -> Option<Arc<Session>> {
        if let Some(session) = self.sessions.find(id, participant.id.as_str(), self.ground.now_ms()) {
            return (session.caller().topic() == pump.name()).then_some(session);
        }
        if self.sessions.was_closed(id) {
            return None;
        }
        let hello = resume::open(self.ground.sealer(), participant.id.as_str(), pump.name(), id)?;
        self.begin_session(id, pump, participant, hello).ok()
    }

    fn begin_session(
        &self,
        id: &str,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        hello: ClientProfile,
    ) -> Result<Arc<Session>, Refusal> {
        let caller = self.legacy(pump, participant, hello, None)?;
        let (session, put_out) = self.sessions.open(id, Arc::clone(&caller), self.ground.now_ms());
        self.put_out(put_out);
        if session.as_ref().is_none_or(|session| !Arc::ptr_eq(session.caller(), &caller)) {
            pump.leave(&caller);
        }
        session.ok_or_else(|| {
            Refusal::new(RefusalCode::Overloaded, "too many sessions are open")
                .hint("close sessions with DELETE")
        })
    }

    /// Ends a session at its client's wish.
    pub fn close_session(&self, session: &Session) {
        self.put_out(self.sessions.close(session).into_iter().collect());
    }

    /// The modern caller that all requests of this participant are.
    ///
    /// # Errors
    /// Why the topic does not let it in.
    pub fn modern(&self, pump: &Arc<Pump>, participant: &Arc<Participant>) -> Result<Arc<Caller>, Refusal> {
        let at_ms = self.ground.now_ms();
        let mut modern = self.modern.lock();
        let key = (pump.name().clone(), participant.id.clone());
        if let Some(seen) = modern.get_mut(&key) {
            seen.at_ms = at_ms;
            return Ok(Arc::clone(&seen.caller));
        }
        let caller = self.modern_on(pump, participant, None)?;
        modern.insert(key, Seen { caller: Arc::clone(&caller), at_ms });
        Ok(caller)
    }

    /// A modern caller with a pipe of its own. The door calls [`Gate::leave`] at the end.
    ///
    /// # Errors
    /// Why the topic does not let it in.
    pub fn modern_on(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        home: Option<Arc<Stream>>,
    ) -> Result<Arc<Caller>, Refusal> {
        let caller = Arc::new(Caller::modern(
            self.ground.link(),
            Arc::clone(participant),
            pump.name(),
            home,
            &self.bounds(),
        ));
        self.join(pump, &caller, None)?;
        Ok(caller)
    }

    /// Somebody who hears and speaks in a topic's room. What it asks of servers it asks as a legacy caller without
    /// capabilities of its own. `link` says when it was accepted: of one participant the newest counts. The door calls
    /// [`Gate::leave`] at the end.
    ///
    /// # Errors
    /// Why the topic does not let it in.
    pub fn hearer(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        link: LinkId,
        hearing: Hearing,
    ) -> Result<Arc<Caller>, Refusal> {
        let hello = ClientProfile {
            capabilities: Bytes::from_static(b"{}"),
            client_info: None,
            version: Version::NEWEST_LEGACY,
        };
        let (who, bounds) = (Arc::clone(participant), self.bounds());
        let caller = Arc::new(Caller::legacy(link, who, pump.name(), hello, None, &bounds));
        self.join(pump, &caller, Some(hearing))?;
        Ok(caller)
    }

    /// A caller goes.
    pub fn leave(&self, caller: &Caller) {
        if let Some(pump) = self.topic(caller.topic()) {
            pump.leave(caller);
        } else {
            caller.leave();
        }
    }

    pub(super) fn put_out(&self, sessions: Vec<Arc<Session>>) {
        for session in sessions {
            self.leave(session.caller());
            session.end();
        }
    }

    pub(super) fn tidy(&self) {
        let now_ms = self.ground.now_ms();
        self.put_out(self.sessions.sweep(now_ms, self.limits().session_idle));
        let mut idle = Vec::new();
        self.modern.lock().retain(|_, seen| {
            let quiet = now_ms.saturating_sub(seen.at_ms) > MODERN_IDLE_SECS * 1000;
            let stays = !quiet || seen.caller.has_open_operations();
            if !stays {
                idle.push(Arc::clone(&seen.caller));
            }
            stays
        });
        idle.iter().for_each(|caller| self.leave(caller));
    }
}
