//! HTTP session registry: ids, limits, ends (MCP 2025-11-25, Transports, "Session Management").

mod ended;
mod id;
pub(crate) mod kept;
mod order;
mod session;

use std::collections::{BTreeMap, HashMap as Map};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use auth::Participant;
use config::GatewayLimits;
use control::Registry;
use foldhash::{HashSet, HashSetExt};
use gateway::Dispatch;
use model::{ANONYMOUS_PREFIX, ParticipantId};
use platform::{Mutex, MutexGuard};

use crate::outlet::Joined;
use ended::Ended;
pub(crate) use id::{Mark, SESSION_ID_SECS, open as open_id, seal as seal_id};
use order::{Order, SessionState};
pub(crate) use session::Session;
use session::{ByKey, Key};

/// All legacy sessions over HTTP.
pub(crate) struct Sessions {
    registry: Arc<Registry>,
    /// Clients write the ids, so their hashes are keyed: twice 64 bits.
    hashers: [RandomState; 2],
    table: Mutex<Table>,
}

struct Table {
    all: HashSet<ByKey>,
    order: Order,
    /// By account: all guests have one together.
    accounts: Map<Box<str>, Own>,
    ended: Ended,
}

/// The sessions on one account.
#[derive(Default)]
struct Own {
    count: usize,
    order: Order,
}

/// The session of an id that a client wants to open, and the sessions that were evicted to make
/// room.
pub(crate) struct Opened {
    /// The session; `None` if all others are busy, or if the session of this id has ended for good.
    pub(crate) session: Option<Arc<Session>>,
    /// The evicted sessions. Their links have yet to leave.
    pub(crate) evicted: Vec<Arc<Session>>,
}

impl Sessions {
    /// No sessions. Those that have `ended` for good are not resumed.
    pub(crate) fn new<'m>(
        ended: impl IntoIterator<Item = (&'m str, Mark)>,
        registry: &Arc<Registry>,
    ) -> Self {
        let table = Table {
            all: HashSet::new(),
            order: Order::default(),
            accounts: Map::new(),
            ended: Ended::known(ended),
        };
        let registry = Arc::clone(registry);
        let hashers = [RandomState::new(), RandomState::new()];
        Self {
            registry,
            hashers,
            table: Mutex::new(table),
        }
    }

    /// Opens a session for a link that has joined. Of two requests that resume one id, the second
    /// gets the session of the first.
    pub(crate) fn open(&self, id: &str, joined: Joined) -> Opened {
        let at = (self.key(id), Mark::of(id));
        let limits = self.registry.limits();
        self.change(|table| table.open(at, joined, &limits))
    }

    /// A participant's session by its id. Notes the sign of life.
    pub(crate) fn find(
        &self,
        id: &str,
        participant: &ParticipantId,
        now_ms: u64,
    ) -> Option<Arc<Session>> {
        let session = self
            .known(id)
            .filter(|session| session.joined.link.participant.id == *participant)?;
        if session.joined.home.liveness.touch(now_ms) {
            return Some(session);
        }
        // Its link has ended: of a revoked participant for good, else the id may be resumed.
        self.change(|table| table.take_ended(&session));
        None
    }

    /// The guest that has the session of this id.
    pub(crate) fn guest(&self, id: &str) -> Option<Arc<Participant>> {
        let session = self.known(id)?;
        Some(Arc::clone(&session.joined.link.participant)).filter(|guest| guest.id.is_guest())
    }

    /// Ends one session for good: its id is not resumed. The caller of this function lets its link
    /// leave.
    pub(crate) fn close(&self, session: &Session) -> Option<Arc<Session>> {
        self.change(|table| {
            // It may have been evicted meanwhile: its id is not valid all the same.
            table.note_ended(session);
            table.remove(session.key)
        })
    }

    /// Notes sessions of an account that have ended in another process, and takes out those that are
    /// here. Their links have yet to leave.
    pub(crate) fn end_elsewhere(
        &self,
        account: &str,
        marks: impl Iterator<Item = Mark>,
    ) -> Vec<Arc<Session>> {
        let marks: HashSet<Mark> = marks.collect();
        self.change(|table| {
            for mark in &marks {
                table.ended.note(account, *mark, false);
            }
            let is_meant = |one: &&ByKey| marks.contains(&one.0.mark);
            let keys: Vec<Key> = table
                .all
                .iter()
                .filter(is_meant)
                .map(|one| one.0.key)
                .collect();
            keys.into_iter()
                .filter_map(|key| table.remove(key))
                .collect()
        })
    }

    /// Whether the session of this id has ended for good.
    pub(crate) fn was_closed(&self, id: &str) -> bool {
        self.lock().ended.has(Mark::of(id))
    }

    /// Ended sessions that the journal does not have yet, by account, each once.
    pub(crate) fn take_unwritten(&self) -> BTreeMap<Box<str>, Vec<Mark>> {
        self.lock().ended.take_unwritten()
    }

    /// Takes out the sessions whose links have ended, and those whose clients were not seen for
    /// longer than `idle`. The links of the latter have yet to leave.
    pub(crate) fn sweep(&self, now_ms: u64, idle: Duration) -> Vec<Arc<Session>> {
        // Requests look sessions up meanwhile: the lock is held for the copy alone.
        let sessions: Vec<Arc<Session>> = self
            .lock()
            .all
            .iter()
            .map(|one| Arc::clone(&one.0))
            .collect();
        let mut expired = Vec::new();
        for session in sessions {
            session.forget_streams(now_ms);
            let liveness = &session.joined.home.liveness;
            if liveness.has_ended() {
                self.change(|table| table.take_ended(&session));
            } else if session.is_idle() && liveness.expire(now_ms, idle) {
                self.change(|table| table.remove_same(&session));
                expired.push(session);
            }
        }
        expired
    }

    /// Takes out a guest's session in a topic: the one that was not used for longest. Its link has
    /// yet to leave.
    pub(crate) fn evict_guest(
        &self,
        dispatch: &Arc<Dispatch>,
        now_ms: u64,
    ) -> Option<Arc<Session>> {
        let is_there = |session: &Session| Arc::ptr_eq(&session.joined.dispatch, dispatch);
        self.change(|table| table.evict(Some(ANONYMOUS_PREFIX), now_ms, is_there))
    }

    /// Takes out all.
    pub(crate) fn take_all(&self) -> Vec<Arc<Session>> {
        self.change(|table| {
            table.order.clear();
            table.accounts.clear();
            table.all.drain().map(|one| one.0).collect()
        })
    }

    /// Changes the table, and counts the sessions.
    fn change<T>(&self, change: impl FnOnce(&mut Table) -> T) -> T {
        let mut table = self.lock();
        let changed = change(&mut table);
        self.registry
            .http_sessions
            .store(table.all.len(), Ordering::Relaxed);
        changed
    }

    fn key(&self, id: &str) -> Key {
        self.hashers.each_ref().map(|hasher| hasher.hash_one(id))
    }

    fn known(&self, id: &str) -> Option<Arc<Session>> {
        let key = self.key(id);
        self.lock().get(&key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock()
    }
}

impl Table {
    fn open(&mut self, (key, mark): (Key, Mark), joined: Joined, limits: &GatewayLimits) -> Opened {
        let now_ms = joined.home.liveness.last_seen_ms();
        let on = joined.link.participant.id.account();
        let mut evicted = Vec::new();
        let known = self.get(&key).cloned();
        if known.is_some() || self.ended.has(mark) {
            let session = known.filter(|_| !self.ended.has(mark));
            return Opened { session, evicted };
        }
        loop {
            let own = self.accounts.get(on).map_or(0, |own| own.count);
            let of = if own >= limits.participant_sessions_max {
                Some(on)
            } else if self.all.len() >= limits.sessions_max {
                None
            } else {
                break;
            };
            let Some(session) = self.evict(of, now_ms, |_| true) else {
                return Opened {
                    session: None,
                    evicted,
                };
            };
            evicted.push(session);
        }
        let own = self.accounts.entry(on.into()).or_default();
        own.count += 1;
        own.order.push(key, now_ms);
        self.order.push(key, now_ms);
        let session = Arc::new(Session::new((key, mark), joined));
        self.all.insert(ByKey(Arc::clone(&session)));
        Opened {
            session: Some(session),
            evicted,
        }
    }

    fn get(&self, key: &Key) -> Option<&Arc<Session>> {
        self.all.get(key).map(|one| &one.0)
    }

    fn note_ended(&mut self, session: &Session) {
        // A guest's name, and with it its session, is valid in this process only.
        let id = &session.joined.link.participant.id;
        self.ended.note(id.account(), session.mark, !id.is_guest());
    }

    /// Takes out a session whose link has ended by itself.
    fn take_ended(&mut self, session: &Session) {
        if session.joined.home.liveness.was_revoked() {
            self.note_ended(session);
        }
        self.remove_same(session);
    }

    /// Takes out a session, unless its id was resumed meanwhile.
    fn remove_same(&mut self, session: &Session) {
        let there = self.get(&session.key);
        if there.is_some_and(|there| std::ptr::eq(Arc::as_ptr(there), session)) {
            self.remove(session.key);
        }
    }

    fn remove(&mut self, key: Key) -> Option<Arc<Session>> {
        let ByKey(session) = self.all.take(&key)?;
        let Self {
            all,
            order,
            accounts,
            ..
        } = self;
        let on = session.joined.link.participant.id.account();
        if let Some(own) = accounts.get_mut(on) {
            own.count -= 1;
            own.order.tidy(own.count, |key| all.contains(&key));
            if own.count == 0 {
                accounts.remove(on);
            }
        }
        order.tidy(all.len(), |key| all.contains(&key));
        Some(session)
    }

    /// Takes out the session that was not used for longest, of those that fit, on this account if
    /// one is named.
    fn evict(
        &mut self,
        on: Option<&str>,
        now_ms: u64,
        fits: impl Fn(&Session) -> bool,
    ) -> Option<Arc<Session>> {
        let Self {
            all,
            order,
            accounts,
            ..
        } = self;
        let look = |key: Key| match all.get(&key) {
            None => SessionState::Gone,
            Some(ByKey(session)) if !fits(session) || !session.is_idle() => SessionState::Busy,
            Some(ByKey(session)) => SessionState::Idle(session.joined.home.liveness.last_seen_ms()),
        };
        let key = match on {
            None => order.pop(now_ms, look),
            Some(on) => accounts.get_mut(on)?.order.pop(now_ms, look),
        }?;
        self.remove(key)
    }
}
