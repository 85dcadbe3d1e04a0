//! The gateway as a whole: its topics, upstreams, callers and identities, and how they change while it runs.
//!
//! Owns who is let in and what a reload does. Must not know HTTP, pipes or files.

mod rights;
mod sink;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError, RwLock, Weak};
use std::time::Duration;

use auth::{Identities, Participant};
use bytes::Bytes;
use client::Guard;
use model::{LinkId, ParticipantId, Refusal, RefusalCode, TopicName};
use store::Writer;
use tokio::sync::Notify;
use wire::mcp::Version;

use crate::audit::Recorder;
use crate::bounds::{Bounds, Held};
use crate::caller::Caller;
use crate::config::{Access, Config, Limits, ParticipantConfig, ServerConfig};
use crate::grants::Grants;
use crate::greeting;
use crate::ground::{Ground, unix_ms};
use crate::pump::{Hearing, Plan, Pump};
use crate::resume;
use crate::room::{Close, RoomConfig};
use crate::sessions::{Session, Sessions};
use crate::stream::Stream;
use crate::upstream::{self, Hello, Upstream, UpstreamSpec};

/// A modern caller without requests leaves its topic after this many seconds.
pub const MODERN_IDLE_SECS: u64 = 300;
/// How often idle sessions and callers are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// One running gateway.
pub struct Gate {
    ground: Arc<Ground>,
    guard: Option<Guard>,
    journal: Option<Writer>,
    audit: Recorder,
    config: RwLock<Arc<Config>>,
    identities: RwLock<Arc<Identities>>,
    grants: RwLock<Arc<Grants>>,
    /// The number of the next guest.
    guests: AtomicU64,
    topics: RwLock<HashMap<TopicName, Arc<Pump>>>,
    upstreams: RwLock<Vec<(ServerConfig, Arc<Upstream>)>>,
    sessions: Sessions,
    held: Arc<Held>,
    bounds: RwLock<Arc<Bounds>>,
    modern: Mutex<HashMap<(TopicName, ParticipantId), Seen>>,
    /// There are other identities now.
    renewed: Arc<Notify>,
    this: Weak<Gate>,
}

/// A modern caller, and when it last asked.
struct Seen {
    caller: Arc<Caller>,
    at_ms: u64,
}

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
        let sessions = Sessions::new(config.limits.sessions_max, config.limits.participant_sessions_max);
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
            guests: AtomicU64::new(1),
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

    /// The configuration in force.
    pub fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The limits in force.
    pub fn limits(&self) -> Limits {
        self.config().limits
    }

    /// The bounds of a new stream.
    pub fn bounds(&self) -> Arc<Bounds> {
        Arc::clone(&self.bounds.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The account of what waits.
    pub fn held(&self) -> &Arc<Held> {
        &self.held
    }

    /// The audit log.
    pub fn audit(&self) -> &Recorder {
        &self.audit
    }

    /// The clock and ids.
    pub fn ground(&self) -> &Arc<Ground> {
        &self.ground
    }

    /// Who shows this token.
    ///
    /// # Errors
    /// The refusal for whoever shows none, or a wrong one.
    pub fn identify(&self, bearer: Option<&str>) -> Result<Arc<Participant>, Refusal> {
        let identities = Arc::clone(&self.identities.read().unwrap_or_else(PoisonError::into_inner));
        identities.identify(bearer, unix_ms())
    }

    /// A topic.
    pub fn topic(&self, name: &TopicName) -> Option<Arc<Pump>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All topics.
    pub fn topics(&self) -> Vec<Arc<Pump>> {
        self.topics.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The upstreams, in the order of the configuration.
    pub fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let upstreams = self.upstreams.read().unwrap_or_else(PoisonError::into_inner);
        upstreams.iter().map(|(_, upstream)| Arc::clone(upstream)).collect()
    }

    /// The legacy sessions over HTTP.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// A legacy caller with a stream of its own (stdio, the 2024-11-05 pair). The door calls [`Gate::leave`] at the end.
    ///
    /// # Errors
    /// Why the topic does not let it in.
    pub fn legacy(
        &self,
        pump: &Arc<Pump>,
        participant: &Arc<Participant>,
        hello: Hello,
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
        hello: Hello,
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
        hello: Hello,
    ) -> Result<Arc<Session>, Refusal> {
        let caller = self.legacy(pump, participant, hello, None)?;
        let (session, put_out) = self.sessions.open(id, Arc::clone(&caller), self.ground.now_ms());
        self.put_out(put_out);
        session.ok_or_else(|| {
            pump.leave(&caller);
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
        let mut modern = self.modern.lock().unwrap_or_else(PoisonError::into_inner);
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
        let hello = Hello {
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

    fn renew(&self, identities: Identities) {
        *self.identities.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(identities);
        self.renewed.notify_one();
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

    fn apply(&self, config: Config) {
        let Some(sink) = self.this.upgrade() else { return };
        let mut old = std::mem::take(&mut *self.upstreams.write().unwrap_or_else(PoisonError::into_inner));
        let mut upstreams = Vec::new();
        for server in config.servers.iter().filter(|server| server.enabled) {
            if let Some(at) = old.iter().position(|(known, _)| known == server) {
                upstreams.push(old.swap_remove(at));
                continue;
            }
            let ground = upstream::Ground {
                guard: self.guard.clone(),
                identity: greeting::identity_raw(),
                sink: Arc::<Gate>::clone(&sink),
                dialer: None,
            };
            let spec = UpstreamSpec::new(server.clone(), &config.limits);
            upstreams.push((server.clone(), Upstream::start(spec, ground)));
        }
        *self.upstreams.write().unwrap_or_else(PoisonError::into_inner) = upstreams;
        for (_, gone) in old {
            tokio::spawn(async move { gone.close().await });
        }
        *self.bounds.write().unwrap_or_else(PoisonError::into_inner) =
            Bounds::new(&config.limits, Arc::clone(&self.held));
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        self.open_topics();
    }

    fn open_topics(&self) {
        let config = self.config();
        let upstreams = self.upstreams();
        let mut topics = self.topics.write().unwrap_or_else(PoisonError::into_inner);
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
            let mut modern = self.modern.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn put_out(&self, sessions: Vec<Arc<Session>>) {
        for session in sessions {
            self.leave(session.caller());
            session.end();
        }
    }

    /// When the next token or grant expires after this time.
    fn next_expiry(&self, since_ms: u64) -> Option<u64> {
        let identities = self.identities.read().unwrap_or_else(PoisonError::into_inner);
        [identities.next_expiry(since_ms), self.grants().next_expiry(since_ms)].into_iter().flatten().min()
    }

    fn tidy(&self) {
        let now_ms = self.ground.now_ms();
        self.put_out(self.sessions.sweep(now_ms, self.limits().session_idle));
        let mut idle = Vec::new();
        self.modern.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, seen| {
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

/// Its socket is closed too, if it has one.
fn put_out_of(pump: &Pump, caller: &Caller) {
    pump.cut(caller.link(), Close::Revoked);
    pump.leave(caller);
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
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
    }
}
