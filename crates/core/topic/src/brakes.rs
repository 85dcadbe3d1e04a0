//! Brakes: pauses of participants. What a paused one could do directly waits for the decision of
//! another participant, and it decides nothing itself, until it is resumed.

use model::{
    GATEWAY, KindRef, MethodFacts, PAUSE, PROPOSAL, ParticipantId, REJECT, REQUEST,
    method::is_notification,
};

use crate::{
    Handles, Topic,
    brake::{BRAKES_MAX, Brake},
    effect::{Cause, RoomEffect, Verdict},
};

impl<H: Handles> Topic<H> {
    /// Pauses a participant, or resumes it without a brake. What it has begun goes on.
    pub(crate) fn brake(&mut self, participant: &ParticipantId, brake: Option<Brake>) {
        let is_braked = brake.is_some();
        match brake {
            Some(brake) => {
                if !self.has_room_for_brake(participant) {
                    self.effects.verdict = Some(Verdict::Refused(Cause::Limit));
                    return;
                }
                self.brakes.insert(participant.clone(), brake);
            }
            None => _ = self.brakes.remove(participant),
        }
        let Some(seat) = self.members.seat(participant) else {
            return;
        };
        let Some(member) = self.members.get(seat) else {
            return;
        };
        if member.braked == is_braked {
            return;
        }
        let listener = member.listener;
        self.members.set_braked(seat, is_braked);
        if let Some(link) = listener
            && let Some(member) = self.members.get(seat)
        {
            self.effects.publish(RoomEffect::Renew {
                link,
                person: member.person(),
                roster: self.members.roster(),
            });
        }
        self.announce_changed(seat);
    }

    /// Whether a participant may be paused: not too many others are.
    pub fn has_room_for_brake(&self, participant: &ParticipantId) -> bool {
        self.brakes.contains_key(participant) || self.brakes.len() < BRAKES_MAX
    }

    /// The pause of a participant, if it is paused. It need not be in the topic.
    pub fn brake_of(&self, participant: &ParticipantId) -> Option<&Brake> {
        self.brakes.get(participant)
    }

    /// All participants that are paused, by name.
    pub fn brakes(&self) -> impl Iterator<Item = (&ParticipantId, &Brake)> {
        self.brakes.iter()
    }

    /// Whether a participant is paused.
    pub fn is_braked(&self, participant: &ParticipantId) -> bool {
        !self.brakes.is_empty() && self.brakes.contains_key(participant)
    }
}

/// Whether an envelope does something directly that a paused participant may not: it decides, pauses
/// or resumes, or requests something of others. Notifications, lists and the gateway's own tools pass: what these
/// do is judged again.
pub(crate) fn is_braked_envelope(kind: KindRef<'_>, to: &[&str]) -> bool {
    if kind.head() == REJECT || kind.head() == PAUSE {
        return true;
    }
    let Some(method) = kind.method().filter(|_| kind.head() == REQUEST) else {
        return false;
    };
    if is_notification(method) || to == [GATEWAY] {
        return false;
    }
    !MethodFacts::of(method).is_free || kind.context().is_some()
}

/// The request that a proposal is about, which a paused participant may propose if it may make it.
pub(crate) fn proposed_request(kind: KindRef<'_>) -> Option<KindRef<'_>> {
    if kind.head() != PROPOSAL {
        return None;
    }
    KindRef::request(kind.method()?, kind.context()).ok()
}
