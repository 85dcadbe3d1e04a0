//! Legacy sessions over HTTP: from `initialize` to DELETE, idleness or revocation.
//!
//! Owns session ids, the streams of each session and how many sessions there may be. Must not know HTTP headers or
//! what travels on the streams (MCP 2025-11-25, Transports, "Session Management").

mod ended;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use auth::Participant;
use siphasher::sip128::SipHasher13;
use smallvec::SmallVec;

use crate::caller::Caller;
use crate::guests::is_guest;
use crate::resume::Mark;
use crate::stream::{Lifetime, Stream};
use ended::Ended;
use platform::{Mutex, MutexGuard, random};

/// Finished streams that one session keeps, so that a client that lost its connection may still fetch the answer.
pub const STREAMS_KEPT_MAX: usize = 8;
/// How long a finished stream is kept for that.
pub const STREAM_KEPT_SECS: u64 = 60;
/// Streams open at once in one session, which is requests open at once over HTTP.
pub const STREAMS_MAX: usize = 1024;
/// Sessions looked at, oldest first, when room is needed.
const EVICTION_LOOKS: usize = 64;

/// A session id by its hash under a key of this process: the sealed id itself is some 240 bytes long.
type Key = u128;

/// One session.
pub struct Session {
    key: Key,
    mark: Mark,
    caller: Arc<Caller>,
    last_seen_ms: AtomicU64,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    next: u64,
    /// Streams that may still be asked for, oldest first, with the time at which a finished one was left.
    /// Mostly one at most, which is kept in place.
    live: SmallVec<[(Arc<Stream>, Option<u64>); 1]>,
}

impl Session {
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
        streams.live.push((Arc::clone(&stream), None));
        Some(stream)
    }

    /// Drops a stream whose answer went out whole, so that nobody can come back for it.
    pub fn close_stream(&self, id: u64) {
        let mut streams = self.streams();
        streams.live.retain(|(stream, _)| stream.id() != id);
        if streams.live.is_empty() {
            streams.live.shrink_to_fit();
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
        self.streams.lock()
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
    hasher: SipHasher13,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    by_key: HashMap<Key, Arc<Session>>,
    /// Keys in the order in which the sessions began or were last passed over.
    order: VecDeque<Key>,
    per_participant: HashMap<String, usize>,
    ended: Ended,
}

impl Sessions {
    /// No sessions; at most `max`, and of one participant at most `per_participant_max`. Those that were `ended` before stay
    /// so.
    pub fn new(max: usize, per_participant_max: usize, ended: impl IntoIterator<Item = Mark>) -> Self {
        let table = Table { ended: Ended::known(ended), ..Table::default() };
        let hasher = SipHasher13::new_with_key(&random());
        Self { max, per_participant_max, hasher, table: Mutex::new(table) }
    }

    /// Begins a session for this caller, and gives the ones that were put out to make room for it. No session when those
    /// that are there are busy, or when one of this id was closed for good; the one that is there if another request took it
    /// up first.
    pub fn open(
        &self,
        id: &str,
        caller: Arc<Caller>,
        now_ms: u64,
    ) -> (Option<Arc<Session>>, Vec<Arc<Session>>) {
        let mut put_out = Vec::new();
        let mut table = self.lock();
        let participant = caller.participant().id.as_str().to_owned();
        let (key, mark) = (self.key(id), Mark::of(id));
        if table.ended.has(mark) {
            return (None, put_out);
        }
        if let Some(session) = table.by_key.get(&key) {
            return (Some(Arc::clone(session)), put_out);
        }
        while table.by_key.len() >= self.max {
            let Some(session) = table.evict(None) else { return (None, put_out) };
            put_out.push(session);
        }
        while table.per_participant.get(&participant).copied().unwrap_or(0) >= self.per_participant_max {
            let Some(session) = table.evict(Some(&participant)) else { return (None, put_out) };
            put_out.push(session);
        }
        let last_seen_ms = AtomicU64::new(now_ms);
        let session = Arc::new(Session { key, mark, caller, last_seen_ms, streams: Mutex::default() });
        table.by_key.insert(key, Arc::clone(&session));
        table.order.push_back(key);
        *table.per_participant.entry(participant).or_default() += 1;
        (Some(session), put_out)
    }

    /// The session of this id, if it is this participant's.
    pub fn find(&self, id: &str, participant: &str, now_ms: u64) -> Option<Arc<Session>> {
        let session = self.known(id)?;
        if session.caller.participant().id.as_str() != participant {
            return None;
        }
        session.last_seen_ms.store(now_ms, Ordering::Relaxed);
        Some(session)
    }

    /// The guest whose session this is, if it is a guest's.
    pub fn guest(&self, id: &str) -> Option<Arc<Participant>> {
        let session = self.known(id)?;
        Some(Arc::clone(session.caller.participant())).filter(|who| is_guest(&who.id))
    }

    /// Takes out one session for good: its id is not taken up again.
    pub fn close(&self, session: &Session) -> Option<Arc<Session>> {
        let mut table = self.lock();
        // It may have been put out meanwhile: its id is not good all the same.
        table.note_ended(session);
        table.remove(session.key)
    }

    /// The same for all sessions whose callers may not go on.
    pub fn close_those(&self, gone: impl Fn(&Caller) -> bool) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        let sessions = table.by_key.values().filter(|session| gone(&session.caller));
        let keys: Vec<Key> = sessions.map(|session| session.key).collect();
        keys.into_iter().filter_map(|key| table.close(key)).collect()
    }

    /// Whether the session of this id was closed for good.
    pub fn was_closed(&self, id: &str) -> bool {
        self.lock().ended.has(Mark::of(id))
    }

    /// Those that were closed for good and have yet to be written down, each once.
    pub fn take_unwritten(&self) -> Vec<Mark> {
        self.lock().ended.take_unwritten()
    }

    /// Takes out the sessions that were idle longer than this.
    pub fn sweep(&self, now_ms: u64, idle: Duration) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        table.by_key.values().for_each(|session| session.streams().forget(now_ms));
        let over = |session: &Session| {
            let quiet_ms = now_ms.saturating_sub(session.last_seen_ms.load(Ordering::Relaxed));
            u128::from(quiet_ms) > idle.as_millis() && session.is_idle()
        };
        let sessions = table.by_key.values().filter(|session| over(session));
        let keys: Vec<Key> = sessions.map(|session| session.key).collect();
        keys.into_iter().filter_map(|key| table.remove(key)).collect()
    }

    /// Takes out all.
    pub fn take_all(&self) -> Vec<Arc<Session>> {
        let mut table = self.lock();
        table.order.clear();
        table.per_participant.clear();
        table.by_key.drain().map(|(_, session)| session).collect()
    }

    /// How many sessions are open.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    fn key(&self, id: &str) -> Key {
        self.hasher.hash(id.as_bytes()).as_u128()
    }

    fn known(&self, id: &str) -> Option<Arc<Session>> {
        let key = self.key(id);
        self.lock().by_key.get(&key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    fn close(&mut self, key: Key) -> Option<Arc<Session>> {
        let session = self.remove(key)?;
        self.note_ended(&session);
        Some(session)
    }

    fn note_ended(&mut self, session: &Session) {
        // A guest's name, and with it its session, is good in this process only.
        self.ended.note(session.mark, !is_guest(&session.caller.participant().id));
    }

    fn remove(&mut self, key: Key) -> Option<Arc<Session>> {
        let session = self.by_key.remove(&key)?;
        let participant = session.caller.participant().id.as_str();
        if let Some(count) = self.per_participant.get_mut(participant) {
            *count -= 1;
            if *count == 0 {
                self.per_participant.remove(participant);
            }
        }
        // `order` may keep the key a while; what is not in the table is passed over.
        if self.order.len() > 2 * self.by_key.len() + EVICTION_LOOKS {
            let by_key = &self.by_key;
            self.order.retain(|key| by_key.contains_key(key));
        }
        Some(session)
    }

    /// Takes out the longest idle session, of this participant if one is named.
    fn evict(&mut self, participant: Option<&str>) -> Option<Arc<Session>> {
        let mut looked = Vec::new();
        let mut best: Option<(u64, Key)> = None;
        let looks = if participant.is_some() { usize::MAX } else { EVICTION_LOOKS };
        while looked.len() < looks {
            let Some(key) = self.order.pop_front() else { break };
            let Some(session) = self.by_key.get(&key) else { continue };
            let seen = session.last_seen_ms.load(Ordering::Relaxed);
            let fits = participant.is_none_or(|name| session.caller.participant().id.as_str() == name);
            if fits && session.is_idle() && best.as_ref().is_none_or(|(other, _)| seen < *other) {
                best = Some((seen, key));
            }
            let enough = fits && best.is_some() && participant.is_some();
            looked.push(key);
            if enough {
                break;
            }
        }
        looked.into_iter().rev().for_each(|key| self.order.push_front(key));
        let (_, key) = best?;
        self.order.retain(|other| *other != key);
        self.remove(key)
    }
}

#[cfg(test)]
mod tests {
    use model::{LinkId, TopicName};

    use super::*;
    use crate::bounds::{Bounds, Held};
    use crate::config::Limits;

    fn caller(link: u64) -> Arc<Caller> {
        let bounds = Bounds::new(&Limits::default(), Held::new(1 << 20));
        Arc::new(Caller::own(LinkId(link), &TopicName::new("main").unwrap(), &bounds))
    }

    #[test]
    fn an_id_has_one_session_and_none_once_it_was_closed() {
        let sessions = Sessions::new(2, 2, []);
        let first = sessions.open("a", caller(1), 0).0.unwrap();
        // Two requests that come at once after a restart both try to take it up.
        let again = sessions.open("a", caller(2), 0).0.unwrap();
        assert!(Arc::ptr_eq(&first, &again) && sessions.len() == 1);
        assert!(sessions.open("b", caller(3), 0).0.is_some());
        assert!(sessions.close(&first).is_some() && sessions.close(&first).is_none());
        assert!(sessions.open("a", caller(4), 0).0.is_none());
        assert!(sessions.open("c", caller(5), 0).0.is_some(), "its place is free");
        // One that was put out for room, and is closed all the same.
        let (_, out) = sessions.open("d", caller(6), 0);
        assert!(sessions.close(&out[0]).is_none());
        assert!(
            sessions.open(if out[0].key == sessions.key("b") { "b" } else { "c" }, caller(7), 0).0.is_none()
        );
    }
}
