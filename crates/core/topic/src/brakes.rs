//! Brakes: pauses of participants. What a paused one could do directly waits for the decision of
//! another participant, and it decides nothing itself, until it is resumed.

use model::{
    GATEWAY, KindRef, MethodFacts, PAUSE, PROPOSAL, ParticipantId, REJECT, REQUEST,
    method::is_notification,
};

use crate::{
    Handles, Topic,
    effect::{Cause, RoomEffect, Verdict},
    event::Brake,
};

/// The most participants of one topic that are paused at a time.
pub const BRAKES_MAX: usize = 1000;

impl<H: Handles> Topic<H> {
    /// Pauses a participant, or resumes it without a brake. What it has begun goes on.
    pub(crate) fn brake(&mut self, participant: &ParticipantId, brake: Option<Brake>) {
        if brake.is_some() && !self.has_room_for_brake(participant) {
            self.effects.verdict = Some(Verdict::Refused(Cause::Limit));
            return;
        }
        if !self.members.set_brake(participant, brake) {
            return;
        }
        let Some(seat) = self.members.seat(participant) else {
            return;
        };
        if let Some(member) = self.members.get(seat)
            && let Some(link) = member.listener
        {
            self.effects.publish(RoomEffect::Renew {
                link,
                person: self.members.person(member),
                roster: self.members.roster(),
            });
        }
        self.announce_changed(seat);
    }

    /// Whether a participant may be paused: not too many others are.
    pub fn has_room_for_brake(&self, participant: &ParticipantId) -> bool {
        self.is_braked(participant) || self.members.brakes().len() < BRAKES_MAX
    }

    /// The pause of a participant, if it is paused. It need not be in the topic.
    pub fn brake_of(&self, participant: &ParticipantId) -> Option<&Brake> {
        self.members.brakes().get(participant)
    }

    /// All participants that are paused, by name.
    pub fn brakes(&self) -> impl Iterator<Item = (&ParticipantId, &Brake)> {
        self.members.brakes().iter()
    }

    /// Whether a participant is paused.
    pub fn is_braked(&self, participant: &ParticipantId) -> bool {
        self.members.is_braked(participant)
    }
}

/// Whether an envelope does something directly that a paused participant may not: it decides, pauses
/// or resumes, or requests something of others. Notifications, lists, the ends of subscriptions and
/// the gateway's own tools pass: what these do is judged again.
pub(crate) fn is_braked_envelope(kind: KindRef<'_>, to: &[&str]) -> bool {
    if kind.head() == REJECT || kind.head() == PAUSE {
        return true;
    }
    let Some(method) = kind.method().filter(|_| kind.head() == REQUEST) else {
        return false;
    };
    !is_notification(method) && is_braked_request(method, kind.context(), to)
}

/// Whether a paused participant may not request this in the room directly.
pub(crate) fn is_braked_request(method: &str, context: Option<&str>, to: &[&str]) -> bool {
    if to == [GATEWAY] {
        return false;
    }
    let facts = MethodFacts::of(method);
    !facts.is_ending && (!facts.is_free || context.is_some())
}

/// The request that a proposal is about, which a paused participant may propose if it may make it.
pub(crate) fn proposed_request(kind: KindRef<'_>) -> Option<KindRef<'_>> {
    if kind.head() != PROPOSAL {
        return None;
    }
    KindRef::request(kind.method()?, kind.context()).ok()
}
