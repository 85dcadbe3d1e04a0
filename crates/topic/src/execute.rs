//! Owns what is carried out at an upstream after it was admitted elsewhere: envelopes said to the room.
//! Must not know how it was admitted.

use model::{LinkId, OperationId, ParticipantId};

use crate::{
    effect::{Cause, Effect, Effects},
    event::Role,
    members::Seat,
    operations::{Method, Open, Way},
    refusals,
    topic::Topic,
};

impl Topic {
    pub(crate) fn execute(
        &mut self,
        effects: &mut Effects,
        link: LinkId,
        operation: OperationId,
        upstream: &ParticipantId,
        method: &str,
        context: Option<&str>,
    ) {
        if self.members.link(link).is_none() || self.operations.contains(operation) {
            return;
        }
        let seat = match self.room_for(link, upstream) {
            Ok(seat) => seat,
            Err(cause) => {
                let refusal = Box::new(refusals::plain(cause));
                return effects.push(Effect::Refuse { operation, to: link, refusal, cause });
            }
        };
        effects.push(Effect::Deliver { operation, from: link, to: upstream.clone(), own: None });
        let (method, context) = (Method::new(method), context.map(Into::into));
        let open = Open { order: 0, way: Way::Call, link, upstream: seat, method, context, asks: 0 };
        self.operations.insert(operation, open);
        self.members.begin(link, operation);
    }

    /// The seat of an upstream that takes one more operation of this link.
    fn room_for(&self, link: LinkId, upstream: &ParticipantId) -> Result<Seat, Cause> {
        let (own, member) = self.members.link(link).zip(self.members.of_link(link)).ok_or(Cause::Moot)?;
        let full = own.open.len() >= self.limits.operations_per_link_max
            || member.open >= self.limits.operations_per_participant_max
            || self.operations.len() >= self.limits.operations_max;
        if full {
            return Err(Cause::Limit);
        }
        let index = self.catalog.index(upstream).ok_or(Cause::Unknown)?;
        let seat = self.present.get(usize::from(index.0)).copied().flatten();
        seat.filter(|seat| self.members.get(*seat).is_some_and(|member| member.role == Role::Upstream))
            .ok_or(Cause::UpstreamDown)
    }
}
