//! Opening of sessions: one attempt per slot at a time, within bounds, not during a back-off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::LinkError;
use model::{Era, Refusal, RefusalCode};
use platform::millis;
use tokio::time::{sleep, timeout};

use super::session_events::SupervisedEvents;
use super::slot::Slot;
use super::{Inner, Upstream, close_all};
use crate::config::{EraChoice, Sessions, Transport};
use crate::fault::Fault;
use crate::interest::Interest;
use crate::session::{Session, SessionSetup};
use crate::session_api::{ClientProfile, SessionKey};
use crate::{handshake, listen_stream, lists};

/// Longest back-off that a call waits for; with a longer one it is refused.
const WAIT: Duration = Duration::from_secs(2);

const RETRIED: &str = "the gateway retries by itself";

impl Upstream {
    /// The open session of a slot, or a new one.
    pub(super) async fn obtain(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        client: Option<&ClientProfile>,
    ) -> Result<Arc<Session>, Refusal> {
        if self.is_away() {
            return Err(self.away_refusal());
        }
        if self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared {
            return self.open(era, key, client, Arc::default()).await;
        }
        // Before detection there is one slot, so that only one process is probed.
        let place = (era.unwrap_or(Era::Modern), key.clone());
        let slot = self.slot(place.clone())?;
        if let Some(session) = slot.session.lock().clone().filter(|session| session.is_open()) {
            return Ok(session);
        }
        let failures = slot.backoff.lock().total();
        let _turn = slot.turn.lock().await;
        if let Some(session) = slot.session.lock().clone().filter(|session| session.is_open()) {
            return Ok(session);
        }
        // A task that waited for a failed attempt shares its outcome.
        let (failed, reason) = {
            let backoff = slot.backoff.lock();
            (backoff.total() > failures, backoff.reason())
        };
        if let (true, Some(reason)) = (failed, reason) {
            return Err(Refusal::new(RefusalCode::UpstreamDown, reason).hint(RETRIED));
        }
        self.await_backoff(&slot).await?;
        let opened = self.open(era, key, client, Arc::clone(&slot.interest)).await;
        let session = match opened {
            Ok(session) => {
                slot.backoff.lock().started();
                session
            }
            Err(refusal) => {
                slot.backoff.lock().failed(Instant::now(), refusal.message.clone().into_owned());
                return Err(refusal);
            }
        };
        let mut inner = self.inner();
        if inner.closed {
            close_all(vec![session]);
            return Err(self.down("was stopped"));
        }
        let found = (session.era(), key.clone());
        if found != place {
            inner.slots.remove(&place);
        }
        let home = Arc::clone(inner.slots.entry(found).or_insert_with(|| Arc::clone(&slot)));
        // Tasks that wait at the first slot find the session there, too.
        *slot.session.lock() = Some(Arc::clone(&session));
        *home.session.lock() = Some(Arc::clone(&session));
        if *key == SessionKey::Shared {
            inner.keep_manifest(&session);
        }
        drop(inner);
        self.environment.events.changed(&session, &[]);
        // Tasks that wait for the first start find the lists complete.
        self.log_status();
        self.settled.send_replace(true);
        self.wake.notify_one();
        Ok(session)
    }

    fn slot(&self, place: (Era, SessionKey)) -> Result<Arc<Slot>, Refusal> {
        let mut inner = self.inner();
        if inner.closed {
            drop(inner);
            return Err(self.down("was stopped"));
        }
        if let Some(slot) = inner.slots.get(&place).filter(|slot| slot.is_taken()) {
            return Ok(Arc::clone(slot));
        }
        if place.1 != SessionKey::Shared {
            self.make_room(&mut inner)?;
        }
        Ok(Arc::clone(inner.slots.entry(place).or_default()))
    }

    /// Makes room for one more session of a caller: closes the session that was idle longest, or, if none is idle, one that
    /// only tasks keep open.
    fn make_room(&self, inner: &mut Inner) -> Result<(), Refusal> {
        let own = || inner.slots.iter().filter(|((_, key), _)| *key != SessionKey::Shared);
        let taken = own().filter(|(_, slot)| slot.is_taken()).count();
        if taken + inner.single_call.len() < self.spec.bounds.caller_sessions_max {
            return Ok(());
        }
        let longest = own()
            .filter_map(|(place, slot)| {
                let (quiet, session) = (slot.quiet()?, slot.session.lock().clone()?);
                Some((slot.idle().is_some(), quiet, place.clone(), session))
            })
            .max_by_key(|(idle, quiet, ..)| (*idle, *quiet));
        let Some((_, _, place, session)) = longest else {
            let what = format!("the server `{}` has too many sessions", self.spec.name());
            return Err(Refusal::new(RefusalCode::UpstreamBusy, what).hint("try again later"));
        };
        inner.slots.remove(&place);
        close_all(vec![session]);
        Ok(())
    }

    /// Waits for the end of a short back-off; refuses during a long one.
    async fn await_backoff(&self, slot: &Slot) -> Result<(), Refusal> {
        let now = Instant::now();
        let (remaining, reason) = {
            let (inner, slot) = (self.inner(), slot.backoff.lock());
            let later =
                if slot.remaining(now) > inner.backoff.remaining(now) { &*slot } else { &inner.backoff };
            (later.remaining(now), later.reason())
        };
        match remaining {
            None => Ok(()),
            Some(remaining) if remaining <= WAIT => {
                sleep(remaining).await;
                Ok(())
            }
            Some(remaining) => {
                let reason = reason.unwrap_or_else(|| "is not running".to_owned());
                Err(Refusal::new(RefusalCode::UpstreamDown, reason)
                    .hint(RETRIED)
                    .retry_after_ms(millis(remaining)))
            }
        }
    }

    fn down(&self, what: &str) -> Refusal {
        Refusal::new(RefusalCode::UpstreamDown, format!("the server `{}` {what}", self.spec.name()))
    }

    /// Opens a session within the start timeout and fetches its lists.
    async fn open(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        client: Option<&ClientProfile>,
        interest: Arc<Interest>,
    ) -> Result<Arc<Session>, Refusal> {
        self.inner().starting += 1;
        let mut outcome = self.attempt(era, key, client, &interest).await;
        if let Err(Fault::Link(LinkError::Http { status: 400 | 404 | 405, .. })) = &outcome
            && matches!(self.spec.config.transport, Transport::Http(_))
            && era != Some(Era::Modern)
            && !self.inner().http_sse
        {
            // Servers of 2024-11-05 answer a POST like this; any other server fails again.
            self.inner().http_sse = true;
            let second = self.attempt(Some(Era::Legacy), key, client, &interest).await;
            self.inner().http_sse = second.is_ok();
            outcome = if second.is_ok() { second } else { outcome };
        }
        self.record(&outcome, key);
        self.log_status();
        if outcome.is_err() {
            self.settled.send_replace(true);
        }
        outcome.map_err(|fault| fault.refusal(self.spec.name()))
    }

    /// Records the outcome of an attempt: eras, back-off, cause.
    fn record(&self, outcome: &Result<Arc<Session>, Fault>, key: &SessionKey) {
        let mut inner = self.inner();
        inner.starting = inner.starting.saturating_sub(1);
        match outcome {
            Ok(session) => {
                if *key == SessionKey::Shared {
                    inner.backoff.started();
                }
                if let Some(handshake) = session.handshake()
                    && (inner.eras.is_empty() || (handshake.both && inner.eras.len() == 1))
                    && self.spec.config.era == EraChoice::Auto
                {
                    inner.eras =
                        if handshake.both { vec![Era::Modern, Era::Legacy] } else { vec![handshake.era] };
                }
                if session.setup.single_call {
                    inner.single_call.push(Arc::clone(session));
                }
            }
            Err(fault) => {
                if *key != SessionKey::Shared {
                    tracing::warn!(server = self.spec.name(), %fault, "could not open a caller's session");
                    return;
                }
                tracing::debug!(server = self.spec.name(), %fault, "could not start the server");
                inner.cause = fault.to_string();
                let reason = fault.refusal(self.spec.name()).message.into_owned();
                inner.backoff.failed(Instant::now(), reason);
                // The detected era may be wrong, or the operator has replaced the server.
                if self.spec.config.era == EraChoice::Auto {
                    inner.eras.clear();
                }
            }
        }
    }

    /// One attempt: dials, shakes hands, fetches the lists, starts the session's tasks.
    async fn attempt(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        client: Option<&ClientProfile>,
        interest: &Arc<Interest>,
    ) -> Result<Arc<Session>, Fault> {
        let session = Session::new(SessionSetup {
            spec: Arc::clone(&self.spec),
            key: key.clone(),
            client: client.cloned(),
            identity: self.environment.identity.clone(),
            events: Arc::new(SupervisedEvents {
                upstream: self.me.clone(),
                events: Arc::clone(&self.environment.events),
            }),
            guard: self.environment.guard.clone(),
            interest: Arc::clone(interest),
            single_call: self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared,
            http_sse: self.inner().http_sse,
            dial_in: self.environment.dial_in.clone(),
        });
        let opened = timeout(self.spec.config.timeouts.start, handshake::open(&session, era)).await;
        if let Err(fault) = opened.unwrap_or(Err(Fault::Timeout)) {
            session.close().await;
            return Err(fault);
        }
        let Some(handshake) = session.handshake() else {
            return Err(Fault::Answer("no handshake".to_owned()));
        };
        let listed =
            timeout(self.spec.config.timeouts.start, lists::refresh(&session, &handshake, lists::ALL)).await;
        let complete = matches!(listed, Ok(Ok(_)));
        if !session.is_open() {
            return Err(Fault::Link(LinkError::Broken(
                "the server ended while its lists were fetched".to_owned(),
            )));
        }
        if *key == SessionKey::Shared {
            self.inner().incomplete =
                (!complete).then(|| "its lists are incomplete: some could not be fetched".to_owned());
        }
        if handshake.era == Era::Legacy {
            session.restore_interest().await;
        }
        tokio::spawn(lists::keep(Arc::downgrade(&session), Arc::clone(&session.upkeep)));
        if handshake.era == Era::Modern {
            tokio::spawn(listen_stream::keep(Arc::downgrade(&session), Arc::clone(&session.listening)));
        }
        Ok(session)
    }
}
