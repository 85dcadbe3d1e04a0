//! Opening of sessions: one attempt per slot at a time, within bounds, not during a back-off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::{AccountFault, AccountHolder, LinkError};
use model::{Refusal, RefusalCode};
use platform::{Full, Taken, millis};
use tokio::sync::{OwnedMutexGuard, oneshot, watch};
use tokio::time::{sleep, timeout};
use wire::mcp::Era;

use super::book::{Book, Purpose, SessionPlace};
use super::wanted::Wanted;
use super::{Upstream, close_all};
use crate::config::{EraChoice, ProtoConfig, SessionSharing, Transport};
use crate::session::{Session, SessionEvent, SessionSetup};
use crate::session_api::{Caller, SessionKey};
use crate::starts::{Entry, Place};
use crate::startup::{self, START_MAX, Sight};
use crate::{fault::Fault, handshake, interest::Interest, listen_stream, lists};

/// Longest back-off that a call waits for; with a longer one it is refused.
const WAIT: Duration = Duration::from_secs(2);

const RETRIED: &str = "the gateway retries by itself";

/// A time in which no session is opened, and why.
struct Pause {
    remaining: Duration,
    reason: Option<String>,
}

/// The look of an attempt at the slot of a session.
enum Looked {
    /// The session is open.
    Open(Arc<Session>),
    /// It is to be opened, once it is the attempt's turn.
    NotOpen(NextTurn),
}

/// The turn for which an attempt waits.
struct NextTurn {
    lock: Arc<tokio::sync::Mutex<()>>,
    failures_before: u64,
    place: SessionPlace,
}

impl NextTurn {
    async fn wait(self) -> Turn {
        Turn {
            _guard: self.lock.lock_owned().await,
            failures_before: self.failures_before,
            place: self.place,
        }
    }
}

/// The turn of an attempt to open the session of a slot: no other one opens it meanwhile.
struct Turn {
    _guard: OwnedMutexGuard<()>,
    /// Failures of the slot before the attempt waited for its turn.
    failures_before: u64,
    place: SessionPlace,
}

/// An open session on its way to the caller that waits for it. If that gives up before it takes the
/// session out, nothing else may want it.
struct Handover {
    session: Option<Arc<Session>>,
    upstream: Arc<Upstream>,
}

impl Handover {
    fn take(mut self) -> Option<Arc<Session>> {
        self.session.take()
    }
}

impl Drop for Handover {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            self.upstream.given_up(session);
        }
    }
}

impl Upstream {
    /// The open session that is wanted; a new one where none is open. A start that has begun goes on
    /// if its caller gives up: the next caller would have to wait for it from the beginning.
    pub(super) async fn obtain(&self, wanted: Wanted) -> Result<Arc<Session>, Refusal> {
        if self.is_away() {
            return Err(self.away_refusal());
        }
        let owner = wanted.owner();
        if let Some(fault) = self.blocked(owner.as_ref().map(Caller::holder)) {
            return Err(fault.refusal(self.spec.name()));
        }
        let turn = if owner.is_some() && self.spec.config.sessions == SessionSharing::Call {
            None
        } else {
            match self.look(&wanted)? {
                Looked::Open(session) => return Ok(session),
                Looked::NotOpen(next) => Some(next.wait().await),
            }
        };
        let stopped = self.down("was stopped");
        let Some(me) = self.me.upgrade() else {
            return Err(stopped);
        };
        let (answer, obtained) = oneshot::channel();
        tokio::spawn(async move {
            let obtained = match turn {
                Some(turn) => me.obtain_in_turn(&wanted, turn).await,
                None => me.obtain_for_one_call(&wanted).await,
            };
            // Its caller may have given up by now, or may do so before it looks.
            let _ = answer.send(obtained.map(|session| Handover {
                session: Some(session),
                upstream: me,
            }));
        });
        match obtained.await {
            Ok(obtained) => obtained?.take().ok_or(stopped),
            Err(_) => Err(stopped),
        }
    }

    /// Looks for an open session in its slot, and notes there whose it is and who uses it.
    ///
    /// # Errors
    /// The server was stopped.
    fn look(&self, wanted: &Wanted) -> Result<Looked, Refusal> {
        let owner = wanted.owner();
        let user = wanted.user();
        // Before detection there is one slot, so that only one process is probed.
        let era = wanted.era.unwrap_or(Era::Modern);
        let place = (era, SessionKey::of(owner.as_ref()));
        let mut book = self.book.lock();
        if book.closed {
            return Err(self.down("was stopped"));
        }
        if let Some(found) = book.open(&place, user.as_ref()) {
            return Ok(Looked::Open(found.session));
        }
        let slot = book.slots.entry(place.clone()).or_default();
        slot.used_by(user.as_ref());
        slot.participant = owner.map(|owner| owner.participant.clone());
        Ok(Looked::NotOpen(NextTurn {
            lock: Arc::clone(&slot.turn),
            failures_before: slot.backoff.total,
            place,
        }))
    }

    /// Ends a session whose caller has given up and left meanwhile; one for a single call is for no
    /// other caller.
    fn given_up(&self, session: Arc<Session>) {
        if session.setup.single_call {
            close_all(vec![session]);
        } else if session.key().is_own() {
            self.end_unused((session.era(), session.key().clone()));
        }
    }

    /// The open session of a slot, once it is this attempt's turn; a new one where none is open.
    async fn obtain_in_turn(&self, wanted: &Wanted, turn: Turn) -> Result<Arc<Session>, Refusal> {
        let era = wanted.era;
        let owner = wanted.owner();
        let user = wanted.user();
        let Turn {
            _guard,
            failures_before,
            place,
        } = turn;
        let interest;
        let mut taken = None;
        {
            let mut book = self.book.lock();
            // A task that waited for another attempt shares its outcome, in whichever era it
            // succeeded.
            for other in [Era::Modern, Era::Legacy] {
                let is_wanted = era.is_none_or(|era| era == other);
                let place = (other, place.1.clone());
                if is_wanted && let Some(found) = book.open(&place, user.as_ref()) {
                    return Ok(found.session);
                }
            }
            let slot = book.slots.entry(place.clone()).or_default();
            if slot.backoff.total > failures_before
                && let Some(reason) = slot.backoff.reason.clone()
            {
                return Err(Refusal::new(RefusalCode::UpstreamDown, reason).hint(RETRIED));
            }
            interest = Arc::clone(&slot.interest);
            if let Some(owner) = &owner {
                taken = Some(self.own_place(&mut book, owner)?);
            }
        }
        self.await_backoff(&place).await?;
        let opened = self.open(era, owner.as_ref(), interest, wanted.entry());
        let session = match opened.await {
            Ok(session) => session,
            Err(refusal) => {
                if let Some(slot) = self.book.lock().slots.get_mut(&place) {
                    let reason = refusal.message.clone().into_owned();
                    slot.backoff.failed(Instant::now(), reason);
                }
                return Err(refusal);
            }
        };
        if session.key().is_own() {
            // Its lists are known before calls find it: it would seem to list nothing.
            if let Some(slot) = self.book.lock().slots.get(&place) {
                slot.pass_users(&session);
            }
            session.emit(SessionEvent::Changed(&[]));
        }
        self.enter_session(&session, place, taken, wanted.purpose)?;
        session.emit(SessionEvent::Changed(&[]));
        // Tasks that wait for the first start find the lists complete.
        self.log_status();
        self.settled.send_replace(true);
        Ok(session)
    }

    /// A new session that ends with the call for which it is opened.
    async fn obtain_for_one_call(&self, wanted: &Wanted) -> Result<Arc<Session>, Refusal> {
        let Some(owner) = wanted.owner() else {
            return Err(self.down("has sessions for single calls alone"));
        };
        let place = self.own_place(&mut self.book.lock(), &owner)?;
        let session = self
            .open(wanted.era, Some(&owner), Arc::default(), wanted.entry())
            .await?;
        let mut book = self.book.lock();
        self.check_wanted_still(&book, &session)?;
        book.single_call.retain(|(other, _)| other.is_open());
        book.single_call.push((Arc::clone(&session), place));
        Ok(session)
    }

    /// Puts a session that has opened into the slot for which it was opened.
    ///
    /// # Errors
    /// The server was stopped, or the session's sign-in replaced, while it opened.
    fn enter_session(
        &self,
        session: &Arc<Session>,
        place: SessionPlace,
        taken: Option<Taken>,
        purpose: Purpose,
    ) -> Result<(), Refusal> {
        let mut book = self.book.lock();
        self.check_wanted_still(&book, session)?;
        let mut slot = book.slots.remove(&place).unwrap_or_default();
        slot.backoff.started();
        slot.session = Some(Arc::clone(session));
        slot.taken = taken;
        slot.interest = Arc::clone(&session.setup.interest);
        // A caller may have come to use it meanwhile.
        slot.purpose = if slot.users.is_empty() || purpose == Purpose::Warm {
            purpose
        } else {
            Purpose::Use
        };
        slot.pass_users(session);
        // Under the era that it has: detection may have found another one than that of the place.
        let (_, key) = place;
        let replaced = book.slots.insert((session.era(), key), slot);
        close_all(replaced.and_then(|slot| slot.session).into_iter().collect());
        Ok(())
    }

    /// Checks that a session which has opened can still be used; else it is closed.
    ///
    /// # Errors
    /// The server was stopped, or the session's sign-in replaced, while it opened.
    fn check_wanted_still(&self, book: &Book, session: &Arc<Session>) -> Result<(), Refusal> {
        let refusal = if book.closed {
            self.down("was stopped")
        } else if session.is_void() {
            let fault = Fault::Link(LinkError::Account(AccountFault::Replaced));
            fault.refusal(self.spec.name())
        } else {
            return Ok(());
        };
        close_all(vec![Arc::clone(session)]);
        Err(refusal)
    }

    /// A place for one more session of a caller. If there is none, the session that was idle
    /// longest is closed for it, or, if none is idle, one that only tasks keep open: one of the
    /// participant itself if its share is full.
    fn own_place(&self, book: &mut Book, owner: &Caller<'_>) -> Result<Taken, Refusal> {
        let account = self.own_sessions.of(owner.account);
        loop {
            let full = match account.take(1) {
                Ok(taken) => return Ok(taken),
                Err(full) => full,
            };
            let ranked = book
                .slots
                .iter()
                .filter_map(|(place, slot)| Some((slot.rank_to_close(&account, full)?, place)));
            let Some((_, place)) = ranked.max_by_key(|(rank, _)| *rank) else {
                return Err(self.full_of_sessions(full));
            };
            let place = place.clone();
            // Its end frees its place.
            let slot = book.slots.remove(&place);
            close_all(slot.and_then(|slot| slot.session).into_iter().collect());
        }
    }

    fn full_of_sessions(&self, full: Full) -> Refusal {
        let who = match full {
            Full::Share => "you have too many sessions at",
            Full::Pool => "too many sessions are open at",
        };
        let what = format!("{who} the server `{}`", self.spec.name());
        Refusal::new(RefusalCode::UpstreamBusy, what).hint("try again later")
    }

    /// Waits for the end of a short back-off; refuses during a long one.
    async fn await_backoff(&self, place: &SessionPlace) -> Result<(), Refusal> {
        let Some(pause) = self.pause(place) else {
            return Ok(());
        };
        if pause.remaining <= WAIT {
            sleep(pause.remaining).await;
            return Ok(());
        }
        let reason = pause.reason.unwrap_or_else(|| "is not running".to_owned());
        Err(Refusal::new(RefusalCode::UpstreamDown, reason)
            .hint(RETRIED)
            .retry_after_ms(millis(pause.remaining)))
    }

    /// The back-off of the server or of a slot, whichever ends later.
    fn pause(&self, place: &SessionPlace) -> Option<Pause> {
        let now = Instant::now();
        let book = self.book.lock();
        let mut backoff = &book.backoff;
        if let Some(slot) = book.slots.get(place)
            && slot.backoff.remaining(now) > backoff.remaining(now)
        {
            backoff = &slot.backoff;
        }
        Some(Pause {
            remaining: backoff.remaining(now)?,
            reason: backoff.reason.clone(),
        })
    }

    /// Why no session of this caller can open until a person acts; of the shared session without
    /// one.
    pub(super) fn blocked(&self, caller: Option<AccountHolder<'_>>) -> Option<Fault> {
        let fault = self.environment.accounts.as_ref()?.blocked(caller)?;
        Some(Fault::Link(LinkError::Account(fault)))
    }

    /// Moves whenever an account at the server changes.
    pub(super) fn account_changes(&self) -> Option<watch::Receiver<u64>> {
        self.environment
            .accounts
            .as_ref()
            .map(|accounts| accounts.changes())
    }

    /// A caller as sessions here know it: by its access token only where that is exchanged.
    pub(super) fn known<'a>(&self, caller: &Caller<'a>) -> Caller<'a> {
        let mut known = *caller;
        let accounts = self.environment.accounts.as_ref();
        if !accounts.is_some_and(|accounts| accounts.are_of_tokens()) {
            known.token = None;
        }
        known
    }

    /// Whether every caller has an account of its own at the server, so that no session is shared.
    #[must_use]
    pub fn has_callers_accounts(&self) -> bool {
        self.environment
            .accounts
            .as_ref()
            .is_some_and(|accounts| accounts.are_of_callers())
    }

    fn down(&self, what: &str) -> Refusal {
        Refusal::new(
            RefusalCode::UpstreamDown,
            format!("the server `{}` {what}", self.spec.name()),
        )
    }

    /// Opens a session within the start timeout and fetches its lists. A process that is started
    /// for it has a place in the gate of starts meanwhile.
    async fn open(
        &self,
        era: Option<Era>,
        owner: Option<&Caller<'_>>,
        interest: Arc<Interest>,
        entry: Entry<'_>,
    ) -> Result<Arc<Session>, Refusal> {
        let mut place = None;
        if self.spec.config.transport.child().is_some() {
            place = Some(self.enter(entry).await);
        }
        let place = &mut place;
        let asks;
        // Skips the probe for a server that was found to be spoiled by it.
        let skips_probe;
        {
            let mut book = self.book.lock();
            book.starting += 1;
            if owner.is_none() {
                book.failed_noise = None;
            }
            asks = era.is_some_and(|era| book.must_ask(era));
            skips_probe = era.is_none() && book.dislikes_probe;
        }
        let era = if skips_probe { Some(Era::Legacy) } else { era };
        let mut outcome = self.attempt(era, owner, &interest, place).await;
        if !asks && era != Some(Era::Modern) && self.may_speak_http_sse(&outcome) {
            // Servers of 2024-11-05 answer a POST like this; any other server fails again.
            self.book.lock().http_sse = true;
            let second = self
                .attempt(Some(Era::Legacy), owner, &interest, place)
                .await;
            self.book.lock().http_sse = second.is_ok();
            outcome = second.or(outcome);
        }
        let spoiled = self.spoiled_by_probe(&outcome);
        if era.is_none()
            && let Some(only) = spoiled
        {
            self.enter_again(place, entry).await;
            let second = self.attempt(Some(only), owner, &interest, place).await;
            if second.is_ok() {
                self.book.lock().dislikes_probe = only == Era::Legacy;
                outcome = second;
            }
        } else if skips_probe && let Err(Fault::Answer(_)) = &outcome {
            // It answers the handshake with an error: another program may run in its place.
            self.book.lock().dislikes_probe = false;
        }
        if self.may_speak_other_coding(&outcome) {
            // It may speak JSON-RPC, or, if it did so before, proto-mcp now: a new process is
            // asked.
            let other = !self.book.lock().proto_fallback;
            self.book.lock().proto_fallback = other;
            self.enter_again(place, entry).await;
            let second = self.attempt(era, owner, &interest, place).await;
            self.book.lock().proto_fallback = other == second.is_ok();
            outcome = second.or(outcome);
        }
        if asks {
            self.record_asked(outcome.as_ref().err());
        } else {
            self.record(&outcome, era, owner.is_some());
        }
        self.log_status();
        if outcome.is_err() {
            self.settled.send_replace(true);
        }
        outcome.map_err(|fault| fault.refusal(self.spec.name()))
    }

    /// Whether an attempt failed as it does at a server that only speaks HTTP+SSE, and that was not
    /// tried yet.
    fn may_speak_http_sse(&self, outcome: &Result<Arc<Session>, Fault>) -> bool {
        let is_http = matches!(self.spec.config.transport, Transport::Http(_));
        let is_refused = matches!(
            outcome,
            Err(Fault::Link(LinkError::Http {
                status: 400 | 404 | 405,
                ..
            }))
        );
        is_http && is_refused && !self.book.lock().http_sse
    }

    /// The only era that a new process of the server is to be asked in, after an attempt that may
    /// have failed because of the probe, which precedes the handshake. Some legacy servers end at
    /// it, or answer no handshake after it; some modern ones answer it late, and end at the
    /// handshake that has followed.
    fn spoiled_by_probe(&self, outcome: &Result<Arc<Session>, Fault>) -> Option<Era> {
        if !matches!(self.spec.config.transport, Transport::Stdio(_)) {
            return None;
        }
        match outcome {
            Ok(_)
            | Err(Fault::Link(LinkError::Unreachable(_) | LinkError::Closed) | Fault::Itself(_)) => {
                None
            }
            Err(Fault::Ended(era)) => Some(*era),
            Err(_) => Some(Era::Legacy),
        }
    }

    /// Whether an attempt failed as it does at a server that speaks the other one of JSON-RPC and
    /// proto-mcp, and the configuration allows either.
    fn may_speak_other_coding(&self, outcome: &Result<Arc<Session>, Fault>) -> bool {
        let may_be_either = matches!(
            self.spec.config.transport,
            Transport::Proto(ProtoConfig::Child { fallback: true, .. })
        );
        match outcome {
            Ok(_) => false,
            Err(fault) => may_be_either && fault.is_of_protocol(),
        }
    }

    /// Waits for a place in the gate of starts.
    async fn enter(&self, entry: Entry<'_>) -> Place {
        self.book.lock().queued += 1;
        let place = self.environment.starts.enter(entry).await;
        self.book.lock().queued -= 1;
        place
    }

    /// Waits for a place for another process, if the one before gave its place up.
    async fn enter_again(&self, place: &mut Option<Place>, entry: Entry<'_>) {
        if place.is_none() {
            *place = Some(self.enter(entry).await);
        }
    }

    /// Records whether a modern server that was asked for the legacy handshake speaks it. A fault
    /// that says nothing about the era leaves it open.
    pub(super) fn record_asked(&self, fault: Option<&Fault>) {
        let mut book = self.book.lock();
        book.starting = book.starting.saturating_sub(1);
        match fault {
            None => {
                book.eras = vec![Era::Modern, Era::Legacy];
                book.legacy = Some(true);
            }
            Some(fault) if fault.says_nothing_of_era() => {}
            Some(_) => book.legacy = Some(false),
        }
    }

    /// Records the outcome of an attempt: eras, back-off, cause. `own` is a session of one caller.
    fn record(&self, outcome: &Result<Arc<Session>, Fault>, era: Option<Era>, own: bool) {
        let mut book = self.book.lock();
        book.starting = book.starting.saturating_sub(1);
        match outcome {
            Ok(session) => {
                if own {
                    book.own_cause.clear();
                } else {
                    book.backoff.started();
                    book.cause.clear();
                    book.last_words.clear();
                }
                if let Some(handshake) = session.handshake()
                    && (book.eras.is_empty() || (handshake.both && book.eras.len() == 1))
                    && self.spec.config.era == EraChoice::Auto
                {
                    book.eras = if handshake.both {
                        vec![Era::Modern, Era::Legacy]
                    } else {
                        vec![session.era()]
                    };
                }
            }
            Err(fault) => {
                if own {
                    tracing::warn!(server = self.spec.name(), %fault, "could not open a caller's session");
                    book.own_cause = fault.cause();
                    return;
                }
                tracing::debug!(server = self.spec.name(), %fault, "could not start the server");
                book.cause = match fault {
                    Fault::Timeout => {
                        format!("no answer in {} s (`start_timeout`)", book.waited.as_secs())
                    }
                    fault => self.spec.placed(fault),
                };
                if let Some(noise) = book.failed_noise.take() {
                    book.cause = format!("{}; {noise}", book.cause);
                }
                if matches!(fault, Fault::Itself(_)) {
                    // What it listed was the gateway's own.
                    book.listed.clear();
                }
                let reason = fault.refusal(self.spec.name()).message.into_owned();
                book.backoff.failed(Instant::now(), reason);
                // The detected era may be wrong, or the operator has replaced the server.
                if self.spec.config.era == EraChoice::Auto {
                    book.doubt(era);
                }
            }
        }
    }

    /// One attempt: dials, shakes hands, fetches the lists, starts the session's tasks.
    async fn attempt(
        &self,
        era: Option<Era>,
        owner: Option<&Caller<'_>>,
        interest: &Arc<Interest>,
        place: &mut Option<Place>,
    ) -> Result<Arc<Session>, Fault> {
        let start = self.spec.config.timeouts.start;
        let patience = self.book.lock().patience.unwrap_or(start);
        let session = self.new_session(owner, interest);
        self.book.lock().begin(&session)?;
        let began = Instant::now();
        if let Err(fault) = self.shake_hands(&session, era, patience, place).await {
            session.close().await;
            let mut book = self.book.lock();
            if owner.is_none() {
                book.last_words = session.last_words();
                // A further attempt may end before its process prints the reason again.
                if let Some(noise) = session.noise() {
                    book.failed_noise = Some(noise);
                }
                book.hint = session
                    .advice()
                    .or_else(|| fault.advice())
                    .unwrap_or_default();
            }
            if fault == Fault::Timeout {
                book.waited = began.elapsed();
                // The next attempt gets more time.
                book.patience = Some((patience * 2).min(START_MAX));
            }
            return Err(fault);
        }
        self.book.lock().patience = None;
        let Some(handshake) = session.handshake() else {
            return Err(Fault::Answer("no handshake".to_owned()));
        };
        let named = handshake.gateways.as_deref().unwrap_or_default();
        if let Some(fault) = Fault::of_gateways(named, &self.environment.instance) {
            session.close().await;
            return Err(fault);
        }
        self.book
            .lock()
            .pass_on(&session, era.is_none() && !handshake.both);
        let listed = timeout(start, lists::refresh(&session, &handshake, lists::ALL)).await;
        if let Ok(Err(fault @ Fault::Itself(_))) = &listed {
            session.close().await;
            return Err(fault.clone());
        }
        if !session.is_open() {
            return Err(Fault::Ended(session.era()));
        }
        if owner.is_none() {
            let is_complete = matches!(listed, Ok(Ok(())));
            self.book.lock().incomplete = if is_complete {
                None
            } else {
                Some("its lists are incomplete: some could not be fetched".to_owned())
            };
        }
        if session.era() == Era::Legacy {
            session.restore_interest().await;
        }
        let resolve = session.setup.environment.resolve.clone();
        tokio::spawn(lists::keep(
            Arc::downgrade(&session),
            Arc::clone(&session.upkeep),
            resolve,
        ));
        if session.era() == Era::Modern {
            tokio::spawn(listen_stream::keep(
                Arc::downgrade(&session),
                Arc::clone(&session.listening),
            ));
        }
        Ok(session)
    }

    /// A session that has yet to open.
    fn new_session(&self, owner: Option<&Caller<'_>>, interest: &Arc<Interest>) -> Arc<Session> {
        let http_sse = self.book.lock().http_sse;
        let proto_fallback = self.book.lock().proto_fallback;
        Session::new(SessionSetup {
            spec: Arc::clone(&self.spec),
            key: SessionKey::of(owner),
            owner: owner.map(Into::into),
            environment: self.environment.clone(),
            interest: Arc::clone(interest),
            single_call: self.spec.config.sessions == SessionSharing::Call && owner.is_some(),
            http_sse,
            proto_fallback,
            calls: Arc::clone(&self.calls),
            measured: Arc::clone(&self.measured),
        })
    }

    /// Dials and shakes hands, within the time of a start. A process that waits for something else
    /// than the processor gives its place in the gate of starts up.
    async fn shake_hands(
        &self,
        session: &Arc<Session>,
        era: Option<Era>,
        patience: Duration,
        place: &mut Option<Place>,
    ) -> Result<(), Fault> {
        // Where another process runs, its program is installed, and what keeps a second one may be
        // the first.
        let runs = self.book.lock().sessions().any(|session| session.is_open());
        let opening = handshake::open(session, era);
        let outcome = if runs {
            let start = self.spec.config.timeouts.start;
            timeout(start, opening).await.unwrap_or(Err(Fault::Timeout))
        } else {
            startup::bounded(session, patience, opening, |sight, waited| {
                // It does not start up with others any more: it waits.
                *place = None;
                if let Sight::Works(work) = sight {
                    self.book.lock().slow = Some(work.reason(waited));
                    self.log_status();
                }
            })
            .await
        };
        self.book.lock().slow = None;
        outcome
    }
}
