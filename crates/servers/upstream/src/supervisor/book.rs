//! Book of a server: its eras, its sessions by slot, its last manifests, its back-off.
//!
//! Back-off between start attempts: none after the first failure, then doubled up to a minute, with
//! jitter. Time is an argument.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};
use std::{collections::HashMap, sync::Arc, sync::Weak};

use client::LinkError;
use model::{Coding, LinkId, ParticipantId};
use platform::{Full, Share, Taken};
use wire::mcp::Era;

use crate::fault::Fault;
use crate::kept::{Kept, KeptLists};
use crate::session_api::{Caller, SessionKey};
use crate::{interest::Interest, manifest::Manifest, session::Session, status::ServerState};

/// The place of one session and its successors.
pub(super) type SessionPlace = (Era, SessionKey);

/// State of the server and its sessions.
#[derive(Default)]
pub(super) struct Book {
    /// The eras that it is known to speak; empty before detection.
    pub(super) eras: Vec<Era>,
    /// Whether a modern server speaks legacy too; `None` before it was asked. A server may do so
    /// without listing a legacy revision.
    pub(super) legacy: Option<bool>,
    /// Whether the probe spoils a process of it, which then had to be started again for the
    /// handshake alone.
    pub(super) dislikes_probe: bool,
    pub(super) slots: HashMap<SessionPlace, Slot>,
    /// Sessions that end with their calls, and their places.
    pub(super) single_call: Vec<(Arc<Session>, Taken)>,
    /// The last lists in each era, in the order of the first fetch.
    pub(super) listed: Vec<Listed>,
    /// Whether its lists were kept by an earlier process, and no session has fetched them since.
    pub(super) is_remembered: bool,
    /// Why a session of a caller's own did not open last, for operators.
    pub(super) own_cause: String,
    /// Why all callers share one session although some could have their own: a second process did
    /// not start.
    pub(super) single: Option<String>,
    /// Why a process that has not answered in time may go on starting up.
    pub(super) slow: Option<String>,
    /// How long the next start may take, if the last one took too long.
    pub(super) patience: Option<Duration>,
    pub(super) backoff: Backoff,
    /// Starts that wait for a place in the gate of starts.
    pub(super) queued: usize,
    /// Attempts that are running, and the session that the last one of them opens for all callers.
    pub(super) starting: usize,
    pub(super) opening: Weak<Session>,
    /// Every session that an attempt has begun to open, for the end of the server.
    pub(super) begun: Vec<Weak<Session>>,
    /// How long the last attempt waited that ended without an answer.
    pub(super) waited: Duration,
    /// Why the lists are incomplete, in words for callers.
    pub(super) incomplete: Option<String>,
    /// Why the last start failed or the last session ended, for operators, and the last lines of
    /// the process on stderr.
    pub(super) cause: String,
    pub(super) last_words: Vec<Arc<str>>,
    /// Noise of the attempts that have failed since the present start began, for all callers.
    pub(super) failed_noise: Option<String>,
    /// Advice to operators about that failure; empty if there is none.
    pub(super) hint: &'static str,
    /// Whether a server that is configured to speak proto-mcp speaks JSON-RPC instead.
    pub(super) proto_fallback: bool,
    /// Whether the server only speaks HTTP+SSE (2024-11-05).
    pub(super) http_sse: bool,
    pub(super) closed: bool,
}

/// An open session that was found.
pub(super) struct Found {
    pub(super) session: Arc<Session>,
    /// Whether it is used by a link that has not used it before.
    pub(super) is_first_use: bool,
}

/// The server's latest lists in one era.
pub(super) struct Listed {
    pub(super) era: Era,
    pub(super) manifest: Arc<Manifest>,
    /// Of what the manifest was made; `None` if that cannot be kept.
    pub(super) of: Option<KeptLists>,
}

impl Book {
    pub(super) fn manifest(&self) -> Arc<Manifest> {
        self.listed
            .first()
            .map(|listed| Arc::clone(&listed.manifest))
            .unwrap_or_default()
    }

    /// Noise on the stdout of the process that is starting, or of the one before it in the same
    /// start, if there is some.
    pub(super) fn noise(&self) -> Option<String> {
        if self.starting == 0 {
            return None;
        }
        let opening = self.opening.upgrade();
        opening
            .and_then(|session| session.noise())
            .or_else(|| self.failed_noise.clone())
    }

    /// Replaces the lists by those of a shared session, and drops those of eras that the server no
    /// longer speaks.
    pub(super) fn take_lists(&mut self, session: &Session) {
        let era = session.era();
        let newer = Listed {
            era,
            manifest: session.manifest(),
            of: kept_lists(session),
        };
        match self.listed.iter_mut().find(|older| older.era == era) {
            Some(older) => *older = newer,
            None => self.listed.push(newer),
        }
        self.listed
            .retain(|listed| listed.era == era || self.eras.contains(&listed.era));
        self.is_remembered = false;
    }

    /// What a later process needs to list the server without starting it; `None` if its lists are
    /// incomplete or cannot be kept.
    pub(super) fn to_keep(&self) -> Option<Kept> {
        if self.incomplete.is_some() || self.listed.is_empty() {
            return None;
        }
        let lists = self
            .listed
            .iter()
            .map(|listed| listed.of.clone())
            .collect::<Option<_>>()?;
        Some(Kept {
            eras: self.eras.clone(),
            legacy: self.legacy,
            dislikes_probe: self.dislikes_probe,
            lists,
        })
    }

    /// The era of the server's sessions for a caller of this one, if it is known.
    pub(super) fn spoken(&self, era: Era) -> Option<Era> {
        if self.eras.contains(&era) {
            return Some(era);
        }
        if self.must_ask(era) {
            return None;
        }
        self.eras.first().copied()
    }

    /// Whether the server must be asked (`initialize`) before it is known if it speaks this era.
    pub(super) fn must_ask(&self, era: Era) -> bool {
        era == Era::Legacy && self.legacy.is_none() && self.eras == [Era::Modern]
    }

    /// Forgets what a failed start makes doubtful: the detected eras, unless a session in the other
    /// era is open.
    pub(super) fn doubt(&mut self, failed: Option<Era>) {
        let is_modern = self.has_open(Era::Modern);
        if !is_modern && !self.has_open(Era::Legacy) {
            self.eras.clear();
            self.legacy = None;
        } else if is_modern && failed == Some(Era::Legacy) {
            // The modern session shows that it speaks that era: only the other one is doubtful.
            self.eras = vec![Era::Modern];
            self.legacy = None;
        }
    }

    /// Whether the shared session in an era is open.
    fn has_open(&self, era: Era) -> bool {
        self.slots
            .get(&(era, SessionKey::Shared))
            .is_some_and(|slot| slot.open().is_some())
    }

    /// The open session at a place. `user` is the caller that is going to use it. A session whose
    /// server waits for an answer of its modern caller gets no further call, because its next
    /// question could belong to either: it goes on alone, and ends with its calls. So does one of a
    /// sign-in that was replaced.
    pub(super) fn open(
        &mut self,
        place: &SessionPlace,
        user: Option<&Caller<'_>>,
    ) -> Option<Found> {
        let slot = self.slots.get_mut(place)?;
        let session = slot.open().map(Arc::clone)?;
        if session.is_asking() || session.is_void() {
            slot.session = None;
            session.retire();
            // Only callers' own sessions have a place; a shared one is closed by its last call.
            if let Some(taken) = slot.taken.take() {
                self.single_call.push((session, taken));
            }
            return None;
        }
        let is_first_use = slot.used_by(user);
        Some(Found {
            session,
            is_first_use,
        })
    }

    /// Passes the interest of sessions that failed to a new session, if they will have no other
    /// successor: detection may find another era, and `only` says that the server speaks no other
    /// than the new session's.
    pub(super) fn pass_on(&self, session: &Session, only: bool) {
        let successor = &session.setup.interest;
        for ((era, key), slot) in &self.slots {
            let is_followed = key == session.key() && (*era == session.era() || only);
            if !is_followed || slot.open().is_some() {
                continue;
            }
            // The session may have been opened with its slot's own interest.
            if !Arc::ptr_eq(&slot.interest, successor) {
                successor.absorb(&slot.interest);
            }
        }
    }

    /// All sessions, also one that has ended just now.
    pub(super) fn sessions(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.slots
            .values()
            .filter_map(|slot| slot.session.as_ref())
            .chain(self.single_call.iter().map(|(session, _)| session))
    }

    /// Records that an attempt begins to open a session.
    ///
    /// # Errors
    /// When the server has been closed: no process is to start for it.
    pub(super) fn begin(&mut self, session: &Arc<Session>) -> Result<(), Fault> {
        if self.closed {
            return Err(Fault::Link(LinkError::Closed));
        }
        if !session.key().is_own() {
            self.opening = Arc::downgrade(session);
        }
        self.begun.retain(|other| other.strong_count() > 0);
        self.begun.push(Arc::downgrade(session));
        Ok(())
    }

    /// Every session, also those that have yet to open, for the end of the server.
    pub(super) fn all(&mut self) -> Vec<Arc<Session>> {
        let begun = self.begun.drain(..).filter_map(|session| session.upgrade());
        let mut all: Vec<Arc<Session>> = begun.collect();
        for session in self.sessions() {
            if !all.iter().any(|other| Arc::ptr_eq(other, session)) {
                all.push(Arc::clone(session));
            }
        }
        all
    }

    /// Removes callers' sessions that have been idle for as long as `idle`, and slots without one.
    /// A session for a single call is idle if the call ended before it was sent there.
    pub(super) fn take_idle(&mut self, idle: Duration) -> Vec<Arc<Session>> {
        let gone = self.slots.extract_if(|(_, key), slot| {
            key.is_own() && (slot.is_blank() || slot.idle().is_some_and(|quiet| quiet >= idle))
        });
        let mut taken: Vec<Arc<Session>> = gone.filter_map(|(_, slot)| slot.session).collect();
        let of_calls = self.single_call.extract_if(.., |(session, _)| {
            let interest = &session.setup.interest;
            let is_in_use = session.calls() > 0 || session.tasks() > 0 || interest.len() > 0;
            !is_in_use && session.since_last_call() >= idle
        });
        taken.extend(of_calls.map(|(session, _)| session));
        taken
    }

    /// Removes shared sessions that are not needed any more: no client that used them is connected,
    /// and they were unused for as long as `idle`.
    pub(super) fn take_unneeded(&mut self, idle: Duration) -> Vec<Arc<Session>> {
        let shared = self.slots.iter_mut().filter(|((_, key), _)| !key.is_own());
        shared
            .filter_map(|(_, slot)| slot.take_unneeded(idle))
            .collect()
    }

    /// The era in which a shared session is missing: a client that used it is connected, or
    /// subscribed to something.
    pub(super) fn missing_era(&self) -> Option<Era> {
        for ((era, key), slot) in &self.slots {
            // An era that the server does not speak any more has a successor.
            let is_spoken = self.eras.is_empty() || self.eras.contains(era);
            let is_needed = !slot.users.is_empty() || slot.interest.len() > 0;
            if !key.is_own() && is_spoken && is_needed && slot.open().is_none() {
                return Some(*era);
            }
        }
        None
    }

    /// The links that keep sessions open which were unused for as long as `idle`.
    pub(super) fn quiet_users(&self, idle: Duration) -> Vec<LinkId> {
        let quiet = self.slots.values().filter(|slot| slot.is_quiet(idle));
        quiet.flat_map(|slot| slot.users.keys().copied()).collect()
    }

    /// Forgets that links which are not connected use sessions that were unused for as long as
    /// `idle`. Returns the callers' own sessions that are left without a user.
    pub(super) fn forget_users(&mut self, gone: &[LinkId], idle: Duration) -> Vec<Arc<Session>> {
        let mut closing = Vec::new();
        self.slots.retain(|(_, key), slot| {
            if !slot.is_quiet(idle) {
                return true;
            }
            let had_users = !slot.users.is_empty();
            slot.users.retain(|link, _| !gone.contains(link));
            let is_left = key.is_own() && had_users && slot.users.is_empty();
            if is_left {
                closing.extend(slot.session.take());
            }
            !is_left
        });
        closing
    }

    /// The participants that use the server, sorted.
    pub(super) fn users(&self) -> Vec<ParticipantId> {
        let users = self
            .slots
            .values()
            .flat_map(|slot| slot.users.values().cloned());
        let mut users: Vec<ParticipantId> = users.collect();
        users.sort_unstable();
        users.dedup();
        users
    }
}

/// The lists of a session with all of what their manifest is made of; `None` if that cannot be kept,
/// as those in protobuf cannot.
fn kept_lists(session: &Session) -> Option<KeptLists> {
    if session.coding() != Coding::Json {
        return None;
    }
    let handshake = session.handshake()?;
    let written = session.written.lock().clone();
    Some(KeptLists { handshake, written })
}

/// State of a server, and its reason in words for callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Condition {
    pub(super) state: ServerState,
    pub(super) reason: Option<String>,
}

impl Condition {
    pub(super) fn new(state: ServerState, reason: Option<String>) -> Self {
        Self { state, reason }
    }
}

/// The states that were logged and reported last.
#[derive(Default)]
pub(super) struct Logged {
    /// The condition of the last status line.
    pub(super) line: Option<Condition>,
    /// Whether the server ran.
    pub(super) runs: Option<bool>,
}

/// The place of one session; a successor takes the same slot.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) session: Option<Arc<Session>>,
    /// Whose sessions they are, if they are a caller's.
    pub(super) participant: Option<ParticipantId>,
    /// The place of a caller's session.
    pub(super) taken: Option<Taken>,
    /// Held while a session is opened.
    pub(super) turn: Arc<tokio::sync::Mutex<()>>,
    pub(super) interest: Arc<Interest>,
    /// The back-off of a caller's own session; the shared session has the server's.
    pub(super) backoff: Backoff,
    /// Links that used its sessions and are still there, with their participants.
    pub(super) users: Users,
    /// The purpose for which its session was opened.
    pub(super) purpose: Purpose,
}

/// Rank of a session that can be closed for another one: the greatest goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RankToClose {
    /// Whether nothing is lost with it; false if it has tasks.
    is_idle: bool,
    quiet: Duration,
}

/// The purpose of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Purpose {
    /// A use, or the first list of its server.
    #[default]
    Use,
    /// A use that is likely to come.
    Warm,
    /// To ask whether a kept manifest still holds.
    Probe,
}

/// Links with their participants.
pub(super) type Users = foldhash::HashMap<LinkId, ParticipantId>;

impl Slot {
    /// Its session, if that is open.
    pub(super) fn open(&self) -> Option<&Arc<Session>> {
        self.session.as_ref().filter(|session| session.is_open())
    }

    /// Notes a link that uses its sessions; true if it has not done so before.
    pub(super) fn used_by(&mut self, user: Option<&Caller<'_>>) -> bool {
        let Some(user) = user else { return false };
        // In a session that was opened for another purpose its users are only expected yet.
        if self.purpose == Purpose::Use && self.users.contains_key(&user.link) {
            return false;
        }
        self.purpose = Purpose::Use;
        self.expect(user);
        true
    }

    /// Adds a link to those that use its sessions.
    pub(super) fn expect(&mut self, user: &Caller<'_>) {
        self.users.insert(user.link, user.participant.clone());
        if let Some(session) = &self.session {
            self.pass_users(session);
        }
    }

    /// Tells a caller's own session of the links that use it.
    pub(super) fn pass_users(&self, session: &Session) {
        if session.key().is_own() {
            let mut users: Vec<LinkId> = self.users.keys().copied().collect();
            users.sort_unstable();
            session.set_users(users);
        }
    }

    /// Removes a link that has left; true when it was the last one that used the sessions.
    pub(super) fn left_by(&mut self, link: LinkId) -> bool {
        self.users.remove(&link).is_some() && self.users.is_empty()
    }

    /// Takes out its session if it is not needed. One that was opened to be asked is not needed
    /// once it has answered.
    fn take_unneeded(&mut self, idle: Duration) -> Option<Arc<Session>> {
        let idle = if self.purpose == Purpose::Probe {
            Duration::ZERO
        } else {
            idle
        };
        if !self.users.is_empty() || !self.is_quiet(idle) {
            return None;
        }
        self.session.take()
    }

    /// Whether it has a session or one is being opened: a task that opens one shares its turn.
    pub(super) fn is_taken(&self) -> bool {
        Arc::strong_count(&self.turn) > 1 || self.session.is_some()
    }

    /// Whether its session has tasks.
    pub(super) fn has_tasks(&self) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.tasks() > 0)
    }

    /// How long its session has been idle. `None` while it is being opened, has a call, a
    /// subscription or a task.
    pub(super) fn idle(&self) -> Option<Duration> {
        if self.has_tasks() {
            return None;
        }
        self.quiet()
    }

    /// Whether its session was idle for as long as this.
    fn is_quiet(&self, idle: Duration) -> bool {
        self.idle().is_some_and(|quiet| quiet >= idle)
    }

    /// How long its session has been idle, whether or not it has tasks.
    pub(super) fn quiet(&self) -> Option<Duration> {
        let session = self.session.as_ref()?;
        let is_being_opened = Arc::strong_count(&self.turn) > 1;
        if is_being_opened || session.calls() > 0 || self.interest.len() > 0 {
            return None;
        }
        Some(session.since_last_call())
    }

    /// The rank of its session among those that can be closed to make room for one more of an
    /// account. `None` if it must stay, or if its end makes no such room.
    pub(super) fn rank_to_close(&self, account: &Arc<Share>, full: Full) -> Option<RankToClose> {
        let taken = self.taken.as_ref()?;
        match full {
            Full::Pool => {}
            Full::Share if taken.is_of(account) => {}
            Full::Share => return None,
        }
        Some(RankToClose {
            quiet: self.quiet()?,
            is_idle: !self.has_tasks(),
        })
    }

    /// Whether it can be removed without loss: it has neither a session nor subscriptions for the
    /// next one.
    fn is_blank(&self) -> bool {
        !self.is_taken() && self.interest.len() == 0
    }
}

/// The wait after the second failure in a row; doubled with each further failure.
const BASE: Duration = Duration::from_millis(250);
/// The longest wait, before jitter.
const MAX: Duration = Duration::from_secs(60);

/// Failures in a row and the wait after them: the circuit breaker of a server. No attempt runs
/// during the wait.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    /// All failures so far; a waiting task compares it to see a new one.
    pub(crate) total: u64,
    until: Option<Instant>,
    /// Why the last attempt failed, in words for callers; `None` after a successful start.
    pub(crate) reason: Option<String>,
}

impl Backoff {
    /// Records a failure and starts the wait.
    pub(crate) fn failed(&mut self, now: Instant, reason: String) {
        let wait = match self.failures {
            0 => Duration::ZERO,
            more => jittered((BASE * 2_u32.saturating_pow((more - 1).min(16))).min(MAX)),
        };
        self.failures = self.failures.saturating_add(1);
        self.total += 1;
        self.until = Some(now + wait);
        self.reason = Some(reason);
    }

    /// Failures in a row.
    pub(crate) fn failures(&self) -> u32 {
        self.failures
    }

    /// Records a successful start. The count of failures stays until the session lasts.
    pub(crate) fn started(&mut self) {
        self.until = None;
        self.reason = None;
    }

    /// Records that a session lasted: the next failure counts as the first.
    pub(crate) fn lasted(&mut self) {
        self.failures = 0;
    }

    /// The rest of the wait.
    pub(crate) fn remaining(&self, now: Instant) -> Option<Duration> {
        self.until
            .map(|until| until.saturating_duration_since(now))
            .filter(|wait| !wait.is_zero())
    }
}

/// Between 80 % and 120 % of the wait, so that servers that failed together do not restart
/// together.
fn jittered(wait: Duration) -> Duration {
    let dice = u32::try_from(RandomState::new().hash_one(0_u8) % 401).unwrap_or(200);
    wait * (800 + dice) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_limit() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let mut waits = Vec::new();
        for _ in 0..12 {
            backoff.failed(now, "why".to_owned());
            waits.push(backoff.remaining(now).unwrap_or_default());
        }
        assert_eq!(waits[0], Duration::ZERO);
        assert!(waits[1] >= BASE * 4 / 5 && waits[1] <= BASE * 6 / 5);
        assert!(waits[11] >= MAX * 4 / 5 && waits[11] <= MAX * 6 / 5);
        backoff.started();
        assert!(backoff.remaining(now).is_none() && backoff.reason.is_none());
    }
}
