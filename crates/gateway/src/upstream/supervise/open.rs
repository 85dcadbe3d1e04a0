//! Opening sessions: one at a time for each place, within bounds, and never during a back-off.

use std::sync::Arc;
use std::time::{Duration, Instant};

use client::LinkError;
use model::{Era, Refusal, RefusalCode};
use tokio::time::{sleep, timeout};

use super::super::fault::Fault;
use super::super::relay::{Overseer, Relay};
use super::super::session::{Opening, Session};
use super::super::sink::{Hello, SessionKey};
use super::super::wants::Wants;
use super::super::{greet, lists, subscriptions};
use super::slot::Slot;
use super::{Book, Upstream, close_all};
use crate::config::{EraChoice, Sessions, Transport};
use platform::millis;

/// A call waits this long for the next attempt rather than be refused.
const WAIT: Duration = Duration::from_secs(2);

impl Upstream {
    /// The open session of this place, or a new one.
    pub(super) async fn obtain(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
    ) -> Result<Arc<Session>, Refusal> {
        if self.is_away() {
            return Err(self.not_here());
        }
        if self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared {
            return self.open(era, key, hello, Arc::default()).await;
        }
        // Until the era is known there is one place, so that only one process is asked.
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
        // Whoever waited behind a start that failed shares its outcome.
        let (failed, reason) = {
            let backoff = slot.backoff.lock();
            (backoff.total() > failures, backoff.reason())
        };
        if let (true, Some(reason)) = (failed, reason) {
            return Err(Refusal::new(RefusalCode::UpstreamDown, reason).hint("it is tried again by itself"));
        }
        self.wait_for_turn(&slot).await?;
        let opened = self.open(era, key, hello, Arc::clone(&slot.wants)).await;
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
        let mut book = self.book();
        if book.closed {
            close_all(vec![session]);
            return Err(self.down("was stopped"));
        }
        let found = (session.era(), key.clone());
        if found != place {
            book.slots.remove(&place);
        }
        let home = Arc::clone(book.slots.entry(found).or_insert_with(|| Arc::clone(&slot)));
        // Whoever waits at the first place finds it there too.
        *slot.session.lock() = Some(Arc::clone(&session));
        *home.session.lock() = Some(Arc::clone(&session));
        if *key == SessionKey::Shared {
            book.lists(&session);
        }
        drop(book);
        self.ground.sink.changed(&session, &[]);
        // Whoever waited for the first start finds the lists there.
        self.tell();
        self.settled.send_replace(true);
        self.wake.notify_one();
        Ok(session)
    }

    fn slot(&self, place: (Era, SessionKey)) -> Result<Arc<Slot>, Refusal> {
        let mut book = self.book();
        if book.closed {
            drop(book);
            return Err(self.down("was stopped"));
        }
        if let Some(slot) = book.slots.get(&place).filter(|slot| slot.is_taken()) {
            return Ok(Arc::clone(slot));
        }
        if place.1 != SessionKey::Shared {
            self.room(&mut book)?;
        }
        Ok(Arc::clone(book.slots.entry(place).or_default()))
    }

    /// Makes room for one more session of a caller: the one that was idle longest goes, and only if there is none of these
    /// one that is kept for its tasks alone.
    fn room(&self, book: &mut Book) -> Result<(), Refusal> {
        let own = || book.slots.iter().filter(|((_, key), _)| *key != SessionKey::Shared);
        let taken = own().filter(|(_, slot)| slot.is_taken()).count();
        if taken + book.once.len() < self.spec.bounds.caller_sessions_max {
            return Ok(());
        }
        let longest = own()
            .filter_map(|(place, slot)| {
                let (quiet, session) = (slot.quiet()?, slot.session.lock().clone()?);
                Some((slot.idle().is_some(), quiet, place.clone(), session))
            })
            .max_by_key(|(idle, quiet, ..)| (*idle, *quiet));
        let Some((_, _, place, session)) = longest else {
            let what = format!("the server `{}` serves as many callers as it may", self.spec.name());
            return Err(Refusal::new(RefusalCode::UpstreamBusy, what).hint("try again later"));
        };
        book.slots.remove(&place);
        close_all(vec![session]);
        Ok(())
    }

    /// Waits for the end of the back-off if that is near.
    async fn wait_for_turn(&self, slot: &Slot) -> Result<(), Refusal> {
        let now = Instant::now();
        let (remaining, reason) = {
            let (book, slot) = (self.book(), slot.backoff.lock());
            let later =
                if slot.remaining(now) > book.backoff.remaining(now) { &*slot } else { &book.backoff };
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
                    .hint("it is tried again by itself")
                    .retry_after_ms(millis(remaining)))
            }
        }
    }

    fn down(&self, what: &str) -> Refusal {
        Refusal::new(RefusalCode::UpstreamDown, format!("the server `{}` {what}", self.spec.name()))
    }

    /// Opens a session within the start's time and reads its lists.
    async fn open(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
        wants: Arc<Wants>,
    ) -> Result<Arc<Session>, Refusal> {
        self.book().starting += 1;
        let mut outcome = self.attempt(era, key, hello, &wants).await;
        if let Err(Fault::Link(LinkError::Http { status: 400 | 404 | 405, .. })) = &outcome
            && matches!(self.spec.config.transport, Transport::Http(_))
            && era != Some(Era::Modern)
            && !self.book().older
        {
            // What a server of 2024-11-05 answers to a POST; one that is none fails again.
            self.book().older = true;
            let second = self.attempt(Some(Era::Legacy), key, hello, &wants).await;
            self.book().older = second.is_ok();
            outcome = if second.is_ok() { second } else { outcome };
        }
        self.settle(&outcome, key);
        self.tell();
        if outcome.is_err() {
            self.settled.send_replace(true);
        }
        outcome.map_err(|fault| fault.refusal(self.spec.name()))
    }

    fn settle(&self, outcome: &Result<Arc<Session>, Fault>, key: &SessionKey) {
        let mut book = self.book();
        book.starting = book.starting.saturating_sub(1);
        match outcome {
            Ok(session) => {
                if *key == SessionKey::Shared {
                    book.backoff.started();
                }
                if let Some(greeting) = session.greeted()
                    && (book.eras.is_empty() || (greeting.both && book.eras.len() == 1))
                    && self.spec.config.era == EraChoice::Auto
                {
                    book.eras =
                        if greeting.both { vec![Era::Modern, Era::Legacy] } else { vec![greeting.era] };
                }
                if session.opening.once {
                    book.once.push(Arc::clone(session));
                }
            }
            Err(fault) => {
                if *key != SessionKey::Shared {
                    tracing::warn!(server = self.spec.name(), %fault, "a caller's session could not be opened");
                    return;
                }
                tracing::debug!(server = self.spec.name(), %fault, "the server could not be started");
                book.cause = fault.to_string();
                let reason = fault.refusal(self.spec.name()).message.into_owned();
                book.backoff.failed(Instant::now(), reason);
                // The verdict on its era may have been wrong, or the server was replaced.
                if self.spec.config.era == EraChoice::Auto {
                    book.eras.clear();
                }
            }
        }
    }

    async fn attempt(
        &self,
        era: Option<Era>,
        key: &SessionKey,
        hello: Option<&Hello>,
        wants: &Arc<Wants>,
    ) -> Result<Arc<Session>, Fault> {
        let session = Session::new(Opening {
            spec: Arc::clone(&self.spec),
            key: key.clone(),
            hello: hello.cloned(),
            identity: self.ground.identity.clone(),
            sink: Arc::new(Relay::new(
                self.me.clone() as std::sync::Weak<dyn Overseer>,
                Arc::clone(&self.ground.sink),
            )),
            guard: self.ground.guard.clone(),
            wants: Arc::clone(wants),
            once: self.spec.config.sessions == Sessions::Call && *key != SessionKey::Shared,
            older: self.book().older,
            dialer: self.ground.dialer.clone(),
        });
        let opened = timeout(self.spec.config.timeouts.start, greet::open(&session, era)).await;
        if let Err(fault) = opened.unwrap_or(Err(Fault::Timeout)) {
            session.close().await;
            return Err(fault);
        }
        let Some(greeting) = session.greeted() else { return Err(Fault::Answer("no greeting".to_owned())) };
        let listed =
            timeout(self.spec.config.timeouts.start, lists::refresh(&session, &greeting, lists::ALL)).await;
        let complete = matches!(listed, Ok(Ok(_)));
        if !session.is_open() {
            return Err(Fault::Link(LinkError::Broken(
                "it ended while it was asked for its lists".to_owned(),
            )));
        }
        if *key == SessionKey::Shared {
            self.book().incomplete = (!complete).then(|| "its lists could not be read in full".to_owned());
        }
        if greeting.era == Era::Legacy {
            session.tell_wants().await;
        }
        tokio::spawn(lists::keep(Arc::downgrade(&session), Arc::clone(&session.upkeep)));
        if greeting.era == Era::Modern {
            tokio::spawn(subscriptions::listen(Arc::downgrade(&session), Arc::clone(&session.listening)));
        }
        Ok(session)
    }
}
