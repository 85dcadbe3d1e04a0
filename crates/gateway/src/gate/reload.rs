//! What is configured, in force: servers, topics, identities and grants, from the start to the end, and when they expire.
//!
//! Owns what a change means for those who are here. Must not know how they came.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;

use auth::Identities;
use client::Guard;
use model::ParticipantId;
use platform::{Mutex, RwLock, millis, random, unix_ms};
use room::{Close, RoomConfig};
use store::{EndedSessions, Record, Writer};
use tokio::sync::{Notify, oneshot};
use upstream::{Upstream, UpstreamSpec};

use super::Gate;
use crate::audit::Recorder;
use crate::bounds::{Bounds, Held};
use crate::caller::Caller;
use crate::config::{Access, Config, ParticipantConfig};
use crate::grants::Grants;
use crate::greeting;
use crate::ground::Ground;
use crate::pump::{Plan, Pump};
use crate::resume::{Mark, SESSION_ID_SECS};
use crate::sessions::Sessions;

/// How often idle sessions and callers are looked for.
const SWEEP: Duration = Duration::from_secs(5);
/// Ended sessions in one record of the journal.
const RECORD_MARKS_MAX: usize = 1024;

impl Gate {
    /// Starts the configured upstreams and opens the topics. Must be called inside a runtime.
    pub fn start(
        config: Config,
        identities: Identities,
        ground: Ground,
        guard: Option<Guard>,
        journal: Option<Writer>,
        audit: Recorder,
    ) -> Arc<Self> {
        let ended: Vec<Mark> = journal.as_ref().map_or_else(Vec::new, |journal| {
            journal.state(|state| state.ended_sessions(unix_ms()).map(Mark::of).collect())
        });
        let limits = &config.limits;
        let sessions = Sessions::new(limits.sessions_max, limits.participant_sessions_max, ended);
        let held = Held::new(config.limits.held_bytes_max);
        let bounds = RwLock::new(Bounds::new(&config.limits, Arc::clone(&held)));
        let gate = Arc::new_cyclic(|this| Self {
            ground: Arc::new(ground),
            guard,
            journal,
            audit,
            config: RwLock::new(Arc::new(config.clone())),
            identities: RwLock::new(Arc::new(identities)),
            grants: RwLock::default(),
            // Beyond this process no guest has the name of another, and what was that one's.
            guests: AtomicU64::new(u64::from_le_bytes(random()) >> 16),
            topics: RwLock::default(),
            upstreams: RwLock::default(),
            sessions,
            held,
            bounds,
            modern: Mutex::default(),
            renewed: Arc::default(),
            this: this.clone(),
        });
        gate.apply(config);
        tokio::spawn(sweep(Arc::downgrade(&gate), Arc::clone(&gate.renewed)));
        gate
    }

    /// Takes over a new configuration: servers that did not change keep running, topics learn what is new, and who may
    /// not come in any more is put out at once.
    pub fn reload(&self, config: Config, identities: Identities) {
        self.renew(identities);
        self.apply(config);
        self.expel();
    }

    /// Takes over new identities only: a token was issued or revoked.
    pub fn set_identities(&self, identities: Identities) {
        self.renew(identities);
        self.expel();
    }

    /// Takes over other grants. Those of one participant, or of all, are in force when this returns.
    pub fn set_grants(&self, grants: Grants, changed: Option<&ParticipantId>) {
        *self.grants.write() = Arc::new(grants);
        self.renewed.notify_one();
        match changed {
            None => self.expel(),
            Some(id) => {
                let Some(known) = self.known(id) else { return };
                for pump in self.topics() {
                    pump.regrant(id, &self.in_force(&known, Some(pump.name())));
                }
            }
        }
    }

    /// Ends everything, upstreams in order.
    pub async fn stop(&self) {
        self.release_held();
        for pump in self.topics() {
            pump.everyone().iter().for_each(|caller| pump.cut(caller.link(), Close::GoingAway));
        }
        for session in self.sessions.take_all() {
            self.leave(session.caller());
            session.end();
        }
        let _ = self.write_ended().await;
        let mut closing = tokio::task::JoinSet::new();
        for upstream in self.upstreams() {
            closing.spawn(async move { upstream.close().await });
        }
        while closing.join_next().await.is_some() {}
        self.audit.flush().await;
    }

    /// Answers all whose calls are held for now, so that their proposals outlive this process.
    pub fn release_held(&self) {
        for pump in self.topics() {
            pump.release_held();
        }
    }

    fn renew(&self, identities: Identities) {
        *self.identities.write() = Arc::new(identities);
        self.renewed.notify_one();
    }

    fn apply(&self, config: Config) {
        let Some(events) = self.this.upgrade() else { return };
        let mut old = std::mem::take(&mut *self.upstreams.write());
        let mut upstreams = Vec::new();
        for server in config.servers.iter().filter(|server| server.enabled) {
            if let Some(at) = old.iter().position(|(known, _)| known == server) {
                upstreams.push(old.swap_remove(at));
                continue;
            }
            let environment = upstream::Environment {
                guard: self.guard.clone(),
                identity: greeting::identity_raw(),
                events: Arc::<Gate>::clone(&events),
                dial_in: None,
            };
            let spec = UpstreamSpec::new(server.clone(), &config.limits.servers());
            upstreams.push((server.clone(), Upstream::start(spec, environment)));
        }
        *self.upstreams.write() = upstreams;
        for (_, gone) in old {
            tokio::spawn(async move { gone.close().await });
        }
        *self.bounds.write() = Bounds::new(&config.limits, Arc::clone(&self.held));
        *self.config.write() = Arc::new(config);
        self.open_topics();
    }

    fn open_topics(&self) {
        let config = self.config();
        let upstreams = self.upstreams();
        let mut topics = self.topics.write();
        let gone: Vec<_> =
            topics.extract_if(|name, _| !config.topics.iter().any(|t| t.name == *name)).collect();
        for topic in &config.topics {
            let limits = topic::Limits {
                participants_max: config.limits.topic_participants_max,
                operations_per_link_max: config.limits.participant_calls_max,
                operations_per_participant_max: config.limits.participant_calls_max,
                ..topic::Limits::default()
            };
            let new = !topics.contains_key(&topic.name);
            let pump = topics.entry(topic.name.clone()).or_insert_with(|| {
                let plan = Plan {
                    name: topic.name.clone(),
                    list_wait: topic.list_wait,
                    away: config.limits.away,
                    limits,
                    room: RoomConfig { history: topic.history, ping_ms: millis(config.limits.keep_alive) },
                    proposal_ttl: topic.proposal_ttl,
                    hold: config.limits.hold,
                    mcp_calls: topic.mcp_calls,
                    journal: self.journal.clone(),
                    audit: self.audit.clone(),
                    bounds: self.bounds(),
                };
                Pump::new(Arc::clone(&self.ground), plan)
            });
            let taking_part =
                |id: &&ParticipantId| upstreams.iter().find(|up| up.spec().name() == id.as_str()).cloned();
            let seated: Vec<_> = topic.servers.iter().filter_map(|id| taking_part(&id)).collect();
            let open = topic.access == Access::Public;
            let comes = |one: &&ParticipantConfig| open || one.participant.may_enter(&topic.name);
            let serving: Vec<_> =
                config.participants.iter().filter(comes).filter_map(ParticipantConfig::server).collect();
            pump.configure(&seated, &serving, &config.limits);
            pump.list_own(&topic.builtin);
            if new {
                pump.restore();
            }
        }
        drop(topics);
        for (_, pump) in gone {
            pump.everyone().iter().for_each(|caller| put_out_of(&pump, caller));
        }
    }

    /// Puts out whoever is not known any more or may not enter its topic any more, and gives the others what they may do
    /// now.
    fn expel(&self) {
        let now = |caller: &Caller| self.standing(caller);
        self.put_out(self.sessions.close_those(|caller| now(caller).is_none()));
        // Held until they have left: a caller that nobody holds cannot.
        let gone: Vec<_> = {
            let mut modern = self.modern.lock();
            modern.extract_if(|_, seen| now(&seen.caller).is_none()).map(|(_, seen)| seen.caller).collect()
        };
        gone.iter().for_each(|caller| self.leave(caller));
        for pump in self.topics() {
            for caller in pump.everyone() {
                match now(&caller) {
                    Some(capabilities) => pump.regrant(&caller.participant().id, &capabilities),
                    None => put_out_of(&pump, &caller),
                }
            }
        }
    }

    /// Writes down which sessions have ended for good since the last time; tells when that is done.
    fn write_ended(&self) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        let Some(journal) = &self.journal else { return told };
        // Without room now they are written the next time.
        let Ok(place) = journal.reserve() else { return told };
        let marks = self.sessions.take_unwritten();
        if marks.is_empty() {
            return told;
        }
        let at_ms = unix_ms();
        let until_ms = at_ms + SESSION_ID_SECS * 1000;
        let record = |some: &[Mark]| {
            let marks = some.iter().map(Mark::to_string).collect();
            Record::SessionsEnded(EndedSessions { marks, at_ms, until_ms })
        };
        place.submit(marks.chunks(RECORD_MARKS_MAX).map(record).collect(), move |written| {
            if let Err(error) = written {
                tracing::error!(%error, "closed sessions could not be written down: a restart may forget them");
            }
            let _ = tell.send(());
        });
        told
    }

    /// When the next token or grant expires after this time.
    fn next_expiry(&self, since_ms: u64) -> Option<u64> {
        let identities = self.identities.read();
        [identities.next_expiry(since_ms), self.grants().next_expiry(since_ms)].into_iter().flatten().min()
    }
}

/// Its socket is closed too, if it has one.
fn put_out_of(pump: &Pump, caller: &Caller) {
    pump.cut(caller.link(), Close::Revoked);
    pump.leave(caller);
}

async fn sweep(gate: Weak<Gate>, renewed: Arc<Notify>) {
    loop {
        let since_ms = unix_ms();
        let Some(expiry_ms) = gate.upgrade().map(|gate| gate.next_expiry(since_ms)) else { return };
        let wait =
            expiry_ms.map_or(SWEEP, |at| Duration::from_millis(at.saturating_sub(since_ms)).min(SWEEP));
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = renewed.notified() => {}
        }
        let Some(gate) = gate.upgrade() else { return };
        // Whose token has expired is put out like one whose token was revoked; the others have what they have now.
        if gate.next_expiry(since_ms).is_some_and(|at| at <= unix_ms()) {
            gate.expel();
        }
        gate.tidy();
        drop(gate.write_ended());
    }
}
