//! Legacy sessions over HTTP: from `initialize` to DELETE, idleness or revocation.
//!
//! Owns session ids, the streams of each session and how many sessions there may be. Must not know HTTP headers or
//! what travels on the streams (MCP 2025-11-25, Transports, "Session Management").

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use auth::Participant;

use crate::caller::Caller;
use crate::guests::is_guest;
use crate::stream::{Lifetime, Stream};

/// Ids of closed sessions that are remembered, so that they stay closed.
pub const CLOSED_KEPT_MAX: usize = 65_536;
/// Finished streams that one session keeps, so that a client that lost its connection may still fetch the answer.
pub const STREAMS_KEPT_MAX: usize = 8;
/// How long a finished stream is kept for that.
pub const STREAM_KEPT_SECS: u64 = 60;
/// Streams open at once in one session, which is requests open at once over HTTP.
pub const STREAMS_MAX: usize = 1024;
/// Sessions looked at, oldest first, when room is needed.
const EVICTION_LOOKS: usize = 64;

/// One session.
pub struct Session {
    id: Arc<str>,
    caller: Arc<Caller>,
    last_seen_ms: AtomicU64,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    next: u64,
    /// Streams that may still be asked for, oldest first, with the time at which a finished one was left.
    live: VecDeque<(Arc<Stream>, Option<u64>)>,
}

impl Session {
    /// The id that the client sends with every request.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The caller to whom the session belongs.
    pub fn caller(&self) -> &Arc<Caller> {
        &self.caller
    }

    /// A stream for one POST with `answers` requests in it. `None` when too many are open.
    pub fn open_stream(&self, answers: u32, now_ms: u64) -> Option<Arc<Stream>> {
        let mut streams = self.streams();
        streams.forget(now_ms);
        if streams.live.len() >= STREAMS_MAX {
            return None;
        }
        streams.next += 1;
        let stream = Stream::new(streams.next, Lifetime::Resumable, answers, self.caller.bounds());
        streams.live.push_back((Arc::clone(&stream), None));
        Some(stream)
    }

    /// Drops a stream whose answer went out whole, so that nobody can come back for it.
    pub fn close_stream(&self, id: u64) {
        let mut streams = self.streams();
        streams.live.retain(|(stream, _)| stream.id() != id);
        if streams.live.is_empty() {
            streams.live.shrink_to(0);
        }
    }

    /// The stream of this number, if it is still kept; 0 is the one that belongs to no request.
    pub fn stream(&self, id: u64) -> Option<Arc<Stream>> {
        if id == 0 {
            return self.caller.home().cloned();
        }
        self.streams().live.iter().find(|(stream, _)| stream.id() == id).map(|(stream, _)| Arc::clone(stream))
    }

    fn is_idle(&self) -> bool {
        !self.caller.has_open_operations() && !self.caller.home().is_some_and(|home| home.is_attached())
    }

    /// Ends its streams.
    pub fn end(&self) {
        for (stream, _) in self.streams().live.drain(..) {
            stream.end();
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    fn forget(&mut self, now_ms: u64) {
        for (stream, left) in &mut self.live {
            if left.is_none() && stream.has_ended() && !stream.is_attached() {
                *left = Some(now_ms);
            }
        }
        let old =
            |left: &Option<u64>| left.is_some_and(|at| now_ms.saturating_sub(at) > STREAM_KEPT_SECS * 1000);
        self.live.retain(|(_, left)| !old(left));
        let mut spare =
            self.live.iter().filter(|(_, left)| left.is_some()).count().saturating_sub(STREAMS_KEPT_MAX);
        self.live.retain(|(_, left)| {
            let drop = left.is_some() && spare > 0;
            spare -= usize::from(drop);
            !drop
        });
    }
}

/// All sessions of the gateway.
pub struct Sessions {
    max: usize,
    per_participant_max: usize,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_id: HashMap<Arc<str>, Arc<Session>>,
    /// Ids in the order in which the sessions began or were last passed over.
    order: VecDeque<Arc<str>>,
    per_participant: HashMap<String, usize>,
    /// Ids of sessions that were closed for good, by hash, oldest first.
    closed: VecDeque<u64>,
}

impl Sessions {
    /// No sessions; at most `max`, and of one participant at most `per_participant_max`.
    pub fn new(max: usize, per_participant_max: usize) -> Self {
        Self { max, per_participant_max, table: Mutex::default() }
    }

    /// Begins a session for this caller, and gives the ones that were put out to make room for it. No session when those
    /// that are there are busy.
    pub fn open(
        &self,
        id: String,
        caller: Arc<Caller>,
        now_ms: u64,
    ) -> (Option<Arc<Session>>, Vec<Arc<Session>>) {
        let mut put_out = Vec::new();
        let mut table = self.lock();
        let participant = caller.participant().id.as_str().to_owned();
        let id: Arc<str> = id.into();
        while table.by_id.len() >= self.max {
            let Some(session) = table.evict(None) else { return (None, put_out) };
            put_out.push(session);
        }
        while table.per_participant.get(&participant).copied().unwrap_or(0) >= self.per_participant_max {
            let Some(session) = table.evict(Some(&participant)) else { return (None, put_out) };
            put_out.push(session);
        }
        let last_seen_ms = AtomicU64::new(now_ms);
        let session =
            Arc::new(Session { id: Arc::clone(&id), caller, last_seen_ms, streams: Mutex::default() });
        table.by_id.insert(Arc::clone(&id), Arc::clone(&session));
        table.order.push_back(id);
        *table.per_participant.entry(participant).or_default() += 1;
        (Some(session), put_out)
    }

    /// The session of this id, if it is this participant's.
    pub fn find(&self, id: &str, participant: &str, now_ms: u64) -> Option<Arc<Session>> {
        let session = self.lock().by_id.get(id).cloned()?;
        if session.caller.participant().id.as_str() != participant {
            return None;
        }
        session.last_seen_ms.store(now_ms, Ordering::Relaxed);
        Some(session)
    }

    /// The guest whose session this is, if it is a guest's.
    pub fn guest(&self, id: &str) -> Option<Arc<Participant>> {
        let session = self.lock().by_id.get(id).cloned()?;
        Some(Arc::clone(session.caller.participant())).filter(|who| is_guest(&who.id))
    }

    /// Takes out one session for good: its id is not taken up again.
    pub fn close(&self, id: &str) -> Option<Arc<Session>> {
        let mut table = self.lock();
        table.close(id)
    }

    /// The same for all sessions whose callers may not go on.
    pub fn close_those(&self, gone: impl Fn(&Caller) -> bool) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        let sessions = table.by_id.values().filter(|session| gone(&session.caller));
        let ids: Vec<Arc<str>> = sessions.map(|session| Arc::clone(&session.id)).collect();
        ids.iter().filter_map(|id| table.close(id)).collect()
    }

    /// Whether the session of this id was closed for good.
    pub fn was_closed(&self, id: &str) -> bool {
        self.lock().closed.contains(&hash(id))
    }

    /// Takes out the sessions that were idle longer than this.
    pub fn sweep(&self, now_ms: u64, idle: Duration) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        table.by_id.values().for_each(|session| session.streams().forget(now_ms));
        let over = |session: &Session| {
            let quiet_ms = now_ms.saturating_sub(session.last_seen_ms.load(Ordering::Relaxed));
            u128::from(quiet_ms) > idle.as_millis() && session.is_idle()
        };
        let ids: Vec<Arc<str>> = table
            .by_id
            .values()
            .filter(|session| over(session))
            .map(|session| Arc::clone(&session.id))
            .collect();
        ids.iter().filter_map(|id| table.remove(id)).collect()
    }

    /// Takes out all.
    pub fn take_all(&self) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        table.order.clear();
        table.per_participant.clear();
        table.by_id.drain().map(|(_, session)| session).collect()
    }

    /// How many sessions are open.
    pub fn len(&self) -> usize {
        self.lock().by_id.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Table {
    fn close(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.remove(id)?;
        self.closed.push_back(hash(id));
        if self.closed.len() > CLOSED_KEPT_MAX {
            self.closed.pop_front();
        }
        Some(session)
    }

    fn remove(&mut self, id: &str) -> Option<Arc<Session>> {
        let session = self.by_id.remove(id)?;
        let participant = session.caller.participant().id.as_str();
        if let Some(count) = self.per_participant.get_mut(participant) {
            *count -= 1;
            if *count == 0 {
                self.per_participant.remove(participant);
            }
        }
        // `order` may keep the id a while; what is not in the table is passed over.
        if self.order.len() > 2 * self.by_id.len() + EVICTION_LOOKS {
            let by_id = &self.by_id;
            self.order.retain(|id| by_id.contains_key(id));
        }
        Some(session)
    }

    /// Takes out the longest idle session, of this participant if one is named.
    fn evict(&mut self, participant: Option<&str>) -> Option<Arc<Session>> {
        let mut looked = Vec::new();
        let mut best: Option<(u64, Arc<str>)> = None;
        let looks = if participant.is_some() { usize::MAX } else { EVICTION_LOOKS };
        while looked.len() < looks {
            let Some(id) = self.order.pop_front() else { break };
            let Some(session) = self.by_id.get(&id) else { continue };
            let seen = session.last_seen_ms.load(Ordering::Relaxed);
            let fits = participant.is_none_or(|name| session.caller.participant().id.as_str() == name);
            if fits && session.is_idle() && best.as_ref().is_none_or(|(other, _)| seen < *other) {
                best = Some((seen, Arc::clone(&id)));
            }
            let enough = fits && best.is_some() && participant.is_some();
            looked.push(id);
            if enough {
                break;
            }
        }
        looked.into_iter().rev().for_each(|id| self.order.push_front(id));
        let (_, id) = best?;
        self.order.retain(|other| *other != id);
        self.remove(&id)
    }
}
