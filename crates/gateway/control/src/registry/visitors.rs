//! Visitors: the bearer of a token or the holder of a certificate, the topics that a participant
//! may enter, and what it may do there.
//!
//! The one place where grants meet the configuration.
//!
//! | function | for | guests | a refusal is recorded |
//! |---|---|---|---|
//! | [`Registry::visitor`] | a client of a topic, over a wire | yes | yes |
//! | [`Registry::member`] | a client of a topic that may be no guest; the API | no | yes |
//! | [`Registry::asker`] | a request outside of topics | no | yes |
//! | [`Registry::sender`] | a request that is answered to strangers too | no | no |
//! | [`Registry::admit`] | an access token that its issuer must check first | no | yes |
//! | [`Registry::enter`] | a participant that is known already | yes | no |
//!
//! A participant comes from one of these, which are asked in this order: the gateway's own sign-in,
//! an issuer of access tokens, the configuration with the issued tokens.

use std::{net::IpAddr, sync::Arc, sync::atomic::Ordering};

use auth::{ACCESS_TOKEN_PREFIX, LOCAL_USER, Participant, Presented, Wire, Wires};
use json::quote;
use model::{
    ANONYMOUS_PREFIX, Capabilities, DeliveryMode, ParticipantId, Refusal, RefusalCode, TopicName,
};
use oauth::CheckedToken;
use platform::{default_share, unix_ms};
use store::audit::{EntryOrigin, RecordedVerdict};

use super::Registry;
use crate::in_force::InForce;
use store::recorder::UNKNOWN_PARTICIPANT;

use gateway::{Dispatch, Link};
use identity::{Guests, TOPIC_GUESTS_MAX, identities::local_user};
use topic::Joining;
use topic::section::Access;

/// A participant that comes to a topic, and the topic.
pub type Visitor = (Arc<Dispatch>, Arc<Participant>);

/// The links of callers whose requests are complete in themselves, for pages that make requests:
/// the door adds them to each request that it hands to a page.
pub trait CallerLinks: Send + Sync {
    /// The link of a participant that may enter the topic. It stays while its participant sends
    /// requests.
    ///
    /// # Errors
    /// Why the topic rejects it.
    fn of(&self, visitor: &Visitor) -> Result<Arc<Link>, Refusal>;
}

/// A refused access.
struct Denied {
    refusal: Refusal,
    /// The participant to which it is refused, if that is known.
    to: Option<Arc<Participant>>,
}

impl Denied {
    /// Access that is refused to a stranger.
    fn to_stranger(refusal: Refusal) -> Self {
        Self { refusal, to: None }
    }

    /// Access that is refused to a participant.
    fn to(participant: Arc<Participant>, refusal: Refusal) -> Self {
        Self {
            refusal,
            to: Some(participant),
        }
    }
}

impl Registry {
    /// The participant of what a client presents, and the topic that it wants to enter. Without a
    /// token that is a guest, if the topic takes guests: `known`, the guest of the request's
    /// session, or else the guest of the connection.
    ///
    /// # Errors
    /// The refusal to send.
    pub fn visitor<'c>(
        &self,
        presented: impl Into<Presented<'c>>,
        topic: &str,
        wire: Wire,
        known: Option<Arc<Participant>>,
        guests: &Guests,
    ) -> Result<Visitor, Refusal> {
        let presented = presented.into();
        let denied = match self.entered(presented, topic, Some(wire)) {
            Ok(visitor) => return Ok(visitor),
            Err(denied) => denied,
        };
        // A token that is refused makes its bearer no guest.
        if denied.to.is_none()
            && presented.bearer.is_none()
            && let Some(guest) = self.guest(topic, known, guests)
        {
            return Ok(guest);
        }
        Err(self.denied(denied, presented.address, &for_topic(topic)))
    }

    /// A visitor that is no guest, where guests may not come; without a wire, for the API.
    ///
    /// # Errors
    /// The refusal to send.
    pub fn member<'c>(
        &self,
        presented: impl Into<Presented<'c>>,
        topic: &str,
        wire: Option<Wire>,
    ) -> Result<Visitor, Refusal> {
        let presented = presented.into();
        self.entered(presented, topic, wire)
            .map_err(|denied| self.denied(denied, presented.address, &for_topic(topic)))
    }

    /// The participant that asks for something outside of topics; `what` begins with "for".
    ///
    /// # Errors
    /// The refusal to send.
    pub fn asker<'c>(
        &self,
        presented: impl Into<Presented<'c>>,
        what: &str,
    ) -> Result<Arc<Participant>, Refusal> {
        let presented = presented.into();
        self.identify(presented, None)
            .map_err(|refusal| self.denied(Denied::to_stranger(refusal), presented.address, what))
    }

    /// The sender of a request, if it is known; without a token the local user, while callers need
    /// none. Records nothing.
    pub fn sender<'c>(&self, presented: impl Into<Presented<'c>>) -> Option<Arc<Participant>> {
        self.identify(presented.into(), None).ok()
    }

    /// The sender of a request, or the refusal of one that is not known. Records nothing.
    ///
    /// # Errors
    /// The refusal to send.
    pub fn known_sender<'c>(
        &self,
        presented: impl Into<Presented<'c>>,
    ) -> Result<Arc<Participant>, Refusal> {
        self.identify(presented.into(), None)
    }

    fn identify(
        &self,
        presented: Presented<'_>,
        topic: Option<&str>,
    ) -> Result<Arc<Participant>, Refusal> {
        let now = self.now();
        let Some(token) = presented.bearer else {
            return now.identities.identify(presented, unix_ms());
        };
        if token.starts_with(ACCESS_TOKEN_PREFIX)
            && let Some(signed_in) = now.sign_ins.identify(presented, topic, unix_ms())
        {
            return signed_in;
        }
        if self.is_of_issuer(&now, token)
            && let Some(of_issuer) = self.bearers.identify(presented, topic)
        {
            if let Ok(participant) = &of_issuer {
                self.note_checked(participant, token);
            }
            return of_issuer;
        }
        now.identities.identify(presented, unix_ms())
    }

    /// Notes for servers with token exchange that a participant came with this token of an issuer.
    /// Of no other token is known that an authorization server elsewhere may see it.
    fn note_checked(&self, participant: &Participant, token: &str) {
        let Some(bearer) = participant.bearer.as_deref() else {
            return;
        };
        if let Some(hash) = bearer.token {
            self.accounts.came(CheckedToken {
                participant: participant.id.as_str(),
                token,
                hash,
                ends_ms: bearer.ends_ms,
            });
        }
    }

    /// Whether a token is for the issuers to check: it is none of the gateway's own, nor of a
    /// configured participant.
    fn is_of_issuer(&self, now: &InForce, token: &str) -> bool {
        self.bearers.concerns(token) && !now.identities.knows(token)
    }

    /// Checks an access token of an issuer that may not be known yet, from this address, which may
    /// take as long as the issuer takes. Returns at once for other tokens.
    ///
    /// # Errors
    /// The refusal to send.
    pub async fn admit(&self, token: &str, from: Option<IpAddr>) -> Result<(), Refusal> {
        if !self.is_of_issuer(&self.now(), token) {
            return Ok(());
        }
        self.bearers.admit(token, from).await.map_err(|refusal| {
            // Its message names the issuer, and the subject of a token that is good.
            let what = format!("with an access token: {}", refusal.message);
            self.denied(Denied::to_stranger(refusal), from, &what)
        })
    }

    fn entered(
        &self,
        presented: Presented<'_>,
        topic: &str,
        wire: Option<Wire>,
    ) -> Result<Visitor, Denied> {
        let participant = self
            .identify(presented, Some(topic))
            .map_err(Denied::to_stranger)?;
        if wire.is_some_and(|wire| !participant.wires.contains(wire)) {
            return Err(Denied::to(participant, closed_wire()));
        }
        match self.enter(topic, &participant) {
            Ok(dispatch) => Ok((dispatch, participant)),
            Err(refusal) => Err(Denied::to(participant, refusal)),
        }
    }

    /// Records a refusal of access.
    fn denied(&self, denied: Denied, address: Option<IpAddr>, what: &str) -> Refusal {
        let from = match &denied.to {
            Some(participant) => participant.id.as_str(),
            None => UNKNOWN_PARTICIPANT,
        };
        let why = format!("{}: {what}", denied.refusal.code.as_str());
        let origin = EntryOrigin {
            address,
            client: None,
        };
        self.audit
            .write_connection(None, (from, origin), RecordedVerdict::Refused, &why);
        denied.refusal
    }

    /// A guest of a topic: the one that is `known`, one of this connection, or another one. `None` if
    /// the topic takes none.
    fn guest(
        &self,
        topic: &str,
        known: Option<Arc<Participant>>,
        guests: &Guests,
    ) -> Option<Visitor> {
        let name = TopicName::new(topic).ok()?;
        let now = self.now();
        let topic = now.topic(&name)?;
        let allowed = topic.anonymous.as_ref()?;
        let rate = topic.anonymous_rate;
        let dispatch = self.topic(&name)?;
        let known = known.filter(|guest| guest.id.is_guest() && guest.may_enter(&name));
        if let Some(known) = known.or_else(|| guests.of(&name)) {
            return Some((dispatch, known));
        }
        let number = self.guests.fetch_add(1, Ordering::Relaxed);
        let id = ParticipantId::new(&format!("{ANONYMOUS_PREFIX}{number}")).ok()?;
        let guest = Arc::new(Participant {
            id,
            capabilities: Arc::clone(allowed),
            topics: vec![name],
            rate: Some(rate),
            mode: DeliveryMode::default(),
            wires: Wires::ALL,
            expires_ms: None,
            bearer: None,
        });
        guests.add(&guest);
        Some((dispatch, guest))
    }

    /// The topic of this name, if the participant may enter it. A private topic does not exist for
    /// others.
    ///
    /// # Errors
    /// The refusal to send.
    pub fn enter(&self, topic: &str, participant: &Participant) -> Result<Arc<Dispatch>, Refusal> {
        let name = TopicName::new(topic).map_err(|_| no_topic())?;
        if !self.may_enter(participant, &name) {
            return Err(no_topic());
        }
        self.topic(&name).ok_or_else(no_topic)
    }

    /// Whether a known participant may enter a topic.
    pub fn may_enter(&self, participant: &Participant, topic: &TopicName) -> bool {
        self.now().may_enter(participant, topic)
    }

    /// Whether a known participant may know that a topic exists.
    pub fn may_know(&self, participant: &Participant, topic: &TopicName) -> bool {
        if !participant.is_for(topic) {
            return false;
        }
        let now = self.now();
        let private = now
            .topic(topic)
            .is_none_or(|topic| topic.access == Access::Private);
        !private || now.may_enter(participant, topic)
    }

    /// Capabilities of a participant now: in a topic, or outside of topics. With an access token
    /// for other topics, nothing.
    pub fn in_force(
        &self,
        participant: &Participant,
        topic: Option<&TopicName>,
    ) -> Arc<Capabilities> {
        self.now().capabilities(participant, topic)
    }

    /// Refuses a participant that is paused and would give something to others: in a topic, or,
    /// outside of topics, in any of them.
    ///
    /// # Errors
    /// If it is paused.
    pub fn refuse_paused(
        &self,
        by: &ParticipantId,
        topic: Option<&TopicName>,
    ) -> Result<(), Refusal> {
        let mut concerned = self.topics();
        concerned.retain(|dispatch| topic.is_none_or(|topic| topic == dispatch.name()));
        let mut all = concerned.iter();
        all.try_for_each(|dispatch| dispatch.refuse_paused(by))
    }

    /// A participant with its capabilities in a topic now.
    pub fn there(&self, participant: &Participant, topic: &TopicName) -> Arc<Participant> {
        Arc::new(Participant {
            capabilities: self.in_force(participant, Some(topic)),
            ..participant.clone()
        })
    }

    /// The topics that a participant may enter, by name, and the participant with its capabilities
    /// in each.
    pub fn topics_of(&self, who: &Participant) -> Vec<(Arc<Dispatch>, Arc<Participant>)> {
        let topics = self.sorted_topics(|topic| self.may_enter(who, topic));
        let there = |dispatch: Arc<Dispatch>| {
            let participant = self.there(who, dispatch.name());
            (dispatch, participant)
        };
        topics.into_iter().map(there).collect()
    }

    /// The local user, for a client on a pipe: it has started this process, and needs no token. It
    /// is known from now on.
    pub fn pipe_user(&self) -> Arc<Participant> {
        self.serves_pipe.store(true, Ordering::Relaxed);
        local_user(&self.config().identity)
    }

    /// A participant as it is known now, in a topic or not.
    pub fn known(&self, id: &ParticipantId) -> Option<Arc<Participant>> {
        self.known_by(&self.now(), id)
    }

    fn known_by(&self, now: &InForce, id: &ParticipantId) -> Option<Arc<Participant>> {
        if let Some(configured) = now.identities.participant(id, unix_ms()) {
            return Some(configured);
        }
        if let Some(of_issuer) = self.bearers.participant(id) {
            return Some(of_issuer);
        }
        if let Some(signed_in) = now.sign_ins.participant(id, unix_ms()) {
            return Some(signed_in);
        }
        let is_local = id.as_str() == LOCAL_USER && self.serves_pipe.load(Ordering::Relaxed);
        if is_local {
            Some(local_user(&now.config.identity))
        } else {
            None
        }
    }

    /// All participants that are known now, in a topic or not.
    pub fn everybody(&self) -> Vec<Arc<Participant>> {
        let now = self.now();
        let now_ms = unix_ms();
        let mut all = self.bearers.beside(now.identities.participants(now_ms));
        let signed_in = now.sign_ins.participants(now_ms);
        if !signed_in.is_empty() {
            all.extend(signed_in);
            all.sort_by(|one, other| one.id.cmp(&other.id));
            all.dedup_by(|one, other| one.id == other.id);
        }
        all
    }

    /// Lets a link join with what its participant may do now.
    ///
    /// # Errors
    /// Why the topic rejects it; if the participant may not enter it any more, or the topic is not
    /// configured any more.
    pub fn join(
        &self,
        dispatch: &Arc<Dispatch>,
        link: &Arc<Link>,
        joining: Joining,
    ) -> Result<(), Refusal> {
        let epoch = self.epoch();
        let participant = &link.participant.id;
        // A link joins once.
        let _ = link.held.set(self.held_of(participant));
        if participant.is_guest() && self.is_full_of_guests(dispatch) {
            let refusal =
                Refusal::new(RefusalCode::Overloaded, "too many guests are in this topic");
            return Err(refusal.hint("come with a token"));
        }
        // Much time may have passed since the participant was identified: a client may send its
        // request slowly.
        let standing = self
            .standing(participant, dispatch.name())
            .filter(|_| self.is_open(dispatch));
        let capabilities = standing.ok_or_else(no_topic)?;
        if !self.may_use(participant, link.wire) {
            return Err(closed_wire());
        }
        dispatch.join(link, &capabilities, joining)?;
        if self.epoch() != epoch {
            // Something changed meanwhile, and may have missed this link.
            dispatch.refresh(participant);
            self.close_wires(dispatch, Some(participant));
        }
        if !self.is_open(dispatch) {
            dispatch.revoke(participant);
        }
        Ok(())
    }

    /// Whether a participant may come in on a wire now.
    pub(crate) fn may_use(&self, id: &ParticipantId, wire: Wire) -> bool {
        let now = self.now();
        !now.limits_wires
            || id.is_guest()
            || self
                .known_by(&now, id)
                .is_some_and(|known| known.wires.contains(wire))
    }

    /// Whether no more links of guests may join a topic. All together have at most a participant's
    /// share of its places.
    pub fn is_full_of_guests(&self, dispatch: &Dispatch) -> bool {
        let places = TOPIC_GUESTS_MAX.min(default_share(self.limits().topics.participants_max));
        dispatch.with(|topic| topic.guests_len()) >= places
    }

    /// Whether this is a topic of the configuration in force.
    fn is_open(&self, dispatch: &Arc<Dispatch>) -> bool {
        self.topic(dispatch.name())
            .is_some_and(|open| Arc::ptr_eq(&open, dispatch))
    }

    /// Capabilities of a participant in a topic now; `None` if it may not be there.
    pub(crate) fn standing(
        &self,
        id: &ParticipantId,
        topic: &TopicName,
    ) -> Option<Arc<Capabilities>> {
        let now = self.now();
        if id.is_guest() {
            return now.topic(topic)?.anonymous.clone();
        }
        let known = self
            .known_by(&now, id)
            .filter(|known| now.may_enter(known, topic))?;
        Some(now.capabilities(&known, Some(topic)))
    }

    /// The capabilities in shadow of a participant in a topic, with what is granted to it; `None` if it
    /// has none.
    pub(crate) fn shadow(
        &self,
        id: &ParticipantId,
        topic: &TopicName,
    ) -> Option<Arc<Capabilities>> {
        let now = self.now();
        let mut known = now.config.identity.participants.iter();
        let shadow = known
            .find(|one| one.participant.id == *id)?
            .shadow
            .as_ref()?;
        Some(now.grants.over(id, shadow, Some(topic), unix_ms()))
    }
}

/// The refusal of a topic that does not exist, or not for this participant.
fn no_topic() -> Refusal {
    Refusal::new(
        RefusalCode::Forbidden,
        "there is no topic of this name that you may enter",
    )
}

/// The refusal of a wire that is closed to a participant.
fn closed_wire() -> Refusal {
    Refusal::new(
        RefusalCode::Forbidden,
        "you may not come in over this protocol",
    )
    .hint("the operator limits it with `wires` of the participant")
}

fn for_topic(topic: &str) -> String {
    format!("for topic {}", quote(topic))
}
