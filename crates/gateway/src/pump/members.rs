//! Who is in the topic: upstreams by configuration, callers as they come and go. Must not know what they ask.

use std::sync::{Arc, Weak};

use model::{Capabilities, Era, LinkId, ParticipantId, Refusal};
use room::{Cursor, RoomEvent};
use topic::{Effect, Event, Role, UpstreamNames, View};
use upstream::config::ServerConfig;
use upstream::{Manifest, Upstream};

use super::{Hearing, Pump, Seat};
use crate::caller::Caller;
use crate::config::{BuiltIn, Limits};
use crate::own::shelf;

impl Pump {
    /// Gives the topic these upstreams, in this order: new ones join, missing ones are cut off, the others stay as they are.
    /// So do those who serve, after them.
    pub fn configure(&self, upstreams: &[Arc<Upstream>], serving: &[ServerConfig], limits: &Limits) {
        let old = self.seats();
        let mut names = vec![UpstreamNames::gateway()];
        let mut seats = Vec::new();
        for upstream in upstreams {
            let Ok(id) = ParticipantId::new(upstream.spec().name()) else { continue };
            let kept = old.iter().find(|seat| seat.id == id && seat.served.is_none()).map(|seat| seat.link);
            names.push(UpstreamNames::new(id.clone(), &*upstream.spec().config.prefix));
            let link = kept.unwrap_or_else(|| self.ground.link());
            seats.push(Seat { id, link, upstream: Arc::clone(upstream), served: None });
        }
        for seat in self.serving(serving, limits, &old) {
            names.push(UpstreamNames::serving(seat.id.clone(), &*seat.upstream.spec().config.prefix));
            seats.push(seat);
        }
        *self.seats.write() = seats.clone().into();
        self.step(Event::Configure { upstreams: &names });
        self.seat(&self.own.0, self.own.1);
        for seat in &seats {
            if !old.iter().any(|other| other.link == seat.link) {
                self.seat(&seat.id, seat.link);
            }
            self.listed(&seat.id, View::Shared, &seat.manifests(), &[]);
        }
        self.meet(&seats, &old);
    }

    /// Lists these tools of the gateway's own; they change with the configuration only. What is said is kept where one of
    /// them reads it.
    pub(crate) fn list_own(&self, built_in: &[BuiltIn]) {
        self.room.keep_recent(built_in.contains(&BuiltIn::Room));
        let listed = Arc::new(shelf::manifest(built_in));
        if *self.built_in() != *listed {
            *self.built_in.write() = Arc::clone(&listed);
            self.listed(&self.own.0, View::Shared, &[listed], &[]);
        }
    }

    /// What the gateway's own participant lists here.
    pub(crate) fn built_in(&self) -> Arc<Manifest> {
        Arc::clone(&self.built_in.read())
    }

    pub(super) fn seat(&self, participant: &ParticipantId, link: LinkId) {
        if self.topic().participant(link).is_none() {
            let own = *participant == self.own.0;
            let capabilities = Arc::new(if own { Capabilities::gateway() } else { Capabilities::upstream() });
            let (rate, ear, promotes) = (None, None, false);
            let role = Role::Upstream;
            self.step(Event::Join { link, participant, role, capabilities, rate, ear, promotes });
        }
    }

    /// Lets a caller in, with these capabilities.
    ///
    /// # Errors
    /// What the topic answers: it is full, or the name is an upstream's.
    pub fn join(
        &self,
        caller: &Arc<Caller>,
        capabilities: &Arc<Capabilities>,
        hearing: Option<Hearing>,
    ) -> Result<(), Refusal> {
        let participant = caller.participant();
        if let Some(end) = self.room.end() {
            let offset = end.offset.saturating_sub(self.history);
            caller.came_at(Cursor { offset, ..end });
        }
        self.callers().insert(caller.link(), Arc::downgrade(caller));
        let event = Event::Join {
            link: caller.link(),
            participant: &participant.id,
            role: Role::Caller,
            capabilities: Arc::clone(capabilities),
            rate: participant
                .rate
                .map(|rate| topic::RateLimit { per_minute: rate.per_minute, burst: rate.burst }),
            ear: hearing.as_ref().map(|hearing| hearing.ear),
            promotes: hearing.is_none(),
        };
        let hears = hearing.is_some();
        let effects = match hearing {
            None => self.step(event),
            Some(hearing) => self.enter(caller, event, hearing),
        };
        for effect in effects {
            if let Effect::NotJoined { refusal, .. } = effect {
                self.callers().remove(&caller.link());
                return Err(*refusal);
            }
        }
        if hears {
            self.arrived(&participant.id, caller.link());
        }
        Ok(())
    }

    /// A caller goes; what it opened is cancelled, and its own sessions are closed.
    pub fn leave(&self, caller: &Caller) {
        caller.leave();
        // Whoever hears nothing is not in the room, and this is nothing to it.
        self.room.push(RoomEvent::Detach { link: caller.link(), close: None });
        self.step(Event::Leave { link: caller.link() });
        self.gone(caller.link());
        self.callers().remove(&caller.link());
        for seat in self.seats().iter() {
            match caller.era() {
                Era::Legacy => seat.upstream.release(caller.key()),
                Era::Modern => seat.upstream.release_participant(&caller.participant().id),
            }
            // What it followed on the shared session is followed for the others only.
            if let Some(session) = seat.upstream.open_shared(caller.era()) {
                session.forget(caller.link());
            }
        }
    }

    /// Gives a participant other capabilities, at once and for what is open as well.
    pub fn regrant(&self, participant: &ParticipantId, capabilities: &Arc<Capabilities>) {
        self.step(Event::Regrant { participant, capabilities: Arc::clone(capabilities) });
    }

    /// Everybody in the topic: who, with how many links, whether as a server, and with what.
    pub fn present(&self) -> Vec<(ParticipantId, usize, bool, Arc<Capabilities>)> {
        self.with(|topic| {
            let all = topic.everybody();
            all.map(|(id, links, role, held)| (id.clone(), links, role == Role::Upstream, Arc::clone(held)))
                .collect()
        })
    }

    /// Everybody who is linked now.
    pub fn everyone(&self) -> Vec<Arc<Caller>> {
        let mut all: Vec<_> = self.callers().values().filter_map(Weak::upgrade).collect();
        all.retain(|caller| caller.link() != self.own.1);
        all
    }
}
