//! What callers want to hear besides answers: resources they follow, log levels. Must not know doors.

use std::sync::Arc;

use model::{Refusal, RefusalCode};
use topic::Target;
use upstream::{ClientProfile, Session};
use wire::rpc::{Message, Shape};

use super::{Pump, Seat};
use crate::caller::{Caller, LOG_LEVELS};
use crate::spell;

impl Pump {
    /// Passes a legacy caller's log level on to the servers that it uses; none of them can make this fail.
    pub async fn set_level(&self, caller: &Arc<Caller>) {
        for seat in self.seats().iter() {
            if let Some(session) = seat.upstream.open_session(caller.key(), caller.hello(), caller.era()) {
                self.pass_level(&session).await;
            }
        }
    }

    /// Tells a session from which severity on log messages are wanted: its owner's level, or on a shared session the
    /// mildest of all who use it. Each caller gets only what it asked for.
    pub async fn pass_level(&self, session: &Session) {
        let wanted = match self.owner(session) {
            Some(caller) => caller.log_level(),
            None => self.everyone().iter().filter_map(|caller| caller.log_level()).min(),
        };
        let Some(level) = wanted.and_then(|at| LOG_LEVELS.get(at)) else { return };
        if let Err(refusal) = session.set_level(level).await {
            tracing::debug!(upstream = session.upstream(), %refusal, "log level not taken");
        }
    }

    /// The sessions of a caller's own that are open now.
    pub fn own_sessions(&self, caller: &Caller) -> Vec<Arc<Session>> {
        if !caller.key().is_own() {
            return Vec::new();
        }
        let seats = self.seats();
        let open = |seat: &Seat| seat.upstream.open_session(caller.key(), caller.hello(), caller.era());
        seats.iter().filter_map(open).filter(|session| session.key().is_own()).collect()
    }

    /// Whether this caller may follow a resource.
    pub fn may_follow(&self, caller: &Caller, uri: &str) -> bool {
        self.with(|topic| topic.admits(caller.link(), "resources/subscribe", Some(Target::Uri(uri))))
    }

    /// Has updates of a resource sent for a modern caller that listens to it.
    ///
    /// # Errors
    /// What the upstream answers.
    pub async fn follow(
        &self,
        caller: &Arc<Caller>,
        hello: &ClientProfile,
        uri: &str,
    ) -> Result<Message, Refusal> {
        let Some((seat, own)) = self.find(caller, uri) else {
            return Err(Refusal::new(RefusalCode::UnknownTarget, "resource not found"));
        };
        self.session(caller, &seat, hello).await?.subscribe(caller.link(), &own).await
    }

    /// Ends that.
    pub fn unfollow(&self, caller: &Caller, uri: &str) {
        if let Some((seat, own)) = self.find(caller, uri) {
            self.unsubscribe(caller, &seat, &own);
        }
    }

    /// Ends a subscription at the upstream, unless another link has it too.
    pub fn unsubscribe(&self, caller: &Caller, seat: &Seat, own: &str) {
        if let Some(session) = seat.upstream.open_session(caller.key(), caller.hello(), caller.era()) {
            session.unsubscribe(caller.link(), own);
        }
    }

    pub(super) fn find(&self, caller: &Caller, uri: &str) -> Option<(Seat, String)> {
        let (upstream, own) = self.with(|topic| {
            let route = topic.lookup(caller.link(), Target::Uri(uri))?;
            Some((route.upstream.clone(), route.own.to_owned()))
        })?;
        let seat = self.seats().iter().find(|seat| seat.id == upstream).cloned()?;
        Some((seat, own))
    }

    /// Subscribes a caller to a resource.
    ///
    /// # Errors
    /// What the upstream, or the bound of subscriptions, answers.
    pub async fn subscribe(
        &self,
        caller: &Arc<Caller>,
        seat: &Seat,
        own: &str,
        public: &str,
        hello: &ClientProfile,
    ) -> Result<Message, Refusal> {
        if !caller.subscribe(public) {
            return Err(Refusal::new(RefusalCode::Overloaded, "too many subscriptions")
                .hint("unsubscribe from resources that are no longer needed"));
        }
        let session = self.session(caller, seat, hello).await;
        let done = match session {
            Ok(session) => session.subscribe(caller.link(), own).await,
            Err(refusal) => Err(refusal),
        };
        if !done.as_ref().is_ok_and(|answer| answer.shape() == Shape::Result) {
            caller.unsubscribe(public);
        }
        done
    }

    /// The session that a caller uses at an upstream, opened if need be.
    ///
    /// # Errors
    /// Why the upstream cannot be used now.
    pub async fn session(
        &self,
        caller: &Arc<Caller>,
        seat: &Seat,
        hello: &ClientProfile,
    ) -> Result<Arc<Session>, Refusal> {
        seat.upstream.session(&spell::session_key(caller, hello), hello, caller.era()).await
    }
}
