//! Owns what is carried out at an upstream after it was admitted elsewhere: envelopes said to the room, and
//! approved proposals.
//! Must not know how it was admitted.

use model::{LinkId, OperationId, ParticipantId, ProposalState};

use crate::{
    effect::{Cause, Effect, Effects},
    members::Seat,
    operations::{Method, Open, Way},
    refusals,
    topic::Topic,
};

/// What is carried out.
pub(crate) struct Execution<'a> {
    pub(crate) link: LinkId,
    pub(crate) operation: OperationId,
    pub(crate) upstream: &'a ParticipantId,
    pub(crate) method: &'a str,
    pub(crate) context: Option<&'a str>,
    pub(crate) proposal: Option<OperationId>,
}

impl Topic {
    pub(crate) fn execute(&mut self, effects: &mut Effects, run: Execution<'_>) {
        let Execution { link, operation, upstream, method, context, proposal } = run;
        if self.members.link(link).is_none() || self.operations.contains(operation) {
            return;
        }
        let refuse = |effects: &mut Effects, cause| {
            let refusal = Box::new(refusals::plain(cause));
            effects.push(Effect::Refuse { operation, to: link, refusal, cause });
        };
        if let Some(proposal) = proposal
            && let Err(cause) = self.may_carry_out(proposal, upstream, method, context)
        {
            return refuse(effects, cause);
        }
        let seat = match self.room_for(link, upstream) {
            Ok(seat) => seat,
            Err(cause) => {
                refuse(effects, cause);
                if let Some(proposal) = proposal {
                    let reason = refusals::plain(cause).message;
                    self.outcome(effects, proposal, ProposalState::Failed, Some((&*reason).into()));
                }
                return;
            }
        };
        let way = proposal.map_or(Way::Call, |proposal| Way::Run { proposal });
        if let Some(own) = proposal.and_then(|proposal| self.proposals.get_mut(proposal)) {
            own.call = Some(operation);
        }
        effects.push(Effect::Deliver { operation, from: link, to: upstream.clone(), own: None });
        let (method, context) = (Method::new(method), context.map(Into::into));
        let open = Open { order: 0, way, link, upstream: seat, method, context, asks: 0 };
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
        self.present.get(usize::from(index.0)).copied().flatten().ok_or(Cause::UpstreamDown)
    }
}
