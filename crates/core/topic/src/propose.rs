//! Opening of proposals: held calls, envelopes, and proposals from before a restart.

use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId, Refusal};

use crate::{
    Handles, Limits, Topic,
    effect::{Cause, Effect, ProposalChange},
    event::{End, EndedProposal, Restore, Terms},
    operations::{Operation, State},
    proposals::{Amount, Phase, Proposal},
    refusals,
    say::Said,
};

impl<H: Handles> Topic<H> {
    /// Holds a call as a proposal.
    pub(crate) fn propose_held(
        &mut self,
        id: OperationId,
        terms: Terms,
        content: H::Content,
        (held, park_ms): (OperationId, u64),
    ) {
        if self.proposals.known(id).is_some() {
            return;
        }
        let waits = self.held_alone(held);
        let own = waits
            .and_then(|open| self.members.of_link(open.link))
            .is_some_and(|by| by.id == terms.by);
        // The caller may have cancelled its call meanwhile.
        let may = if own {
            self.may_propose(&terms)
        } else {
            Err(Cause::Moot)
        };
        if let Err(cause) = may {
            self.not_proposed(id, terms.by, content, true, cause);
            if cause != Cause::Moot {
                self.refuse_call(held, cause);
            }
            return;
        }
        let public = self
            .operations
            .get(held)
            .and_then(|open| open.context.clone());
        self.operations
            .turn(held, State::Held { proposal: Some(id) });
        self.park_at(held, park_ms);
        let proposal = Proposal {
            public,
            held: true,
            call: Some(held),
            ..Proposal::new(terms, content, Phase::Opening)
        };
        self.enter_proposal(id, proposal);
    }

    /// A held call without a proposal.
    fn held_alone(&self, held: OperationId) -> Option<&Operation<H>> {
        self.operations
            .get(held)
            .filter(|open| open.state == (State::Held { proposal: None }))
    }

    /// Ends a held call that is not proposed.
    pub(crate) fn unproposable(&mut self, held: OperationId, end: End<H::Answer>) {
        let (outcome, _) = end.parts();
        if self.held_alone(held).is_some()
            && let Some(call) = self.stop_call(held, outcome)
        {
            self.finish(call, end, None);
        }
    }

    /// Opens the proposal of an envelope, which is published once the opening is on disk: before, a
    /// kill would leave participants with a proposal that the gateway does not know, and each
    /// fulfilment would run.
    pub(crate) fn propose_said(
        &mut self,
        said: Said<'_, H>,
        id: OperationId,
        terms: Terms,
        content: H::Content,
    ) {
        if self.proposals.known(id).is_some() || self.is_taken(&said, Some(&content)) {
            return;
        }
        if let Err(cause) = self.may_propose(&terms) {
            self.remember_rejected(said.say.proposal_digest, &terms.by);
            return self.not_proposed(id, terms.by, content, false, cause);
        }
        let id_digest = said.say.proposal_digest;
        let unpublished = said.unpublished;
        let proposal = Proposal {
            id_digest,
            unpublished,
            ..Proposal::new(terms, content, Phase::Opening)
        };
        self.enter_proposal(id, proposal);
    }

    /// Rejects an envelope that proposes what cannot be proposed.
    pub(crate) fn reject_said(
        &mut self,
        mut said: Said<'_, H>,
        refusal: Box<Refusal>,
        published: bool,
    ) {
        if !self.is_taken(&said, None) {
            if let Some(envelope) = said.unpublished.take().filter(|_| published) {
                self.publish(envelope.message, envelope.bytes, envelope.audience);
            }
            self.remember_rejected(said.say.proposal_digest, &said.from);
            self.effects.push(Effect::Rejected {
                by: said.from,
                envelope: said.say.id.into(),
                refusal,
            });
        }
    }

    /// Whether the id of a proposing envelope names a proposal already, for ever: then nothing is
    /// proposed and nothing published. Who sends its own once more gets the present state.
    fn is_taken(&mut self, said: &Said<'_, H>, content: Option<&H::Content>) -> bool {
        let link = said.say.link;
        let by = &said.from;
        let digest = said.say.proposal_digest;
        if let Some(known) = self.proposals.of_envelope(said.say.id) {
            let own = self
                .proposals
                .known(known)
                .filter(|own| own.terms.by == *by);
            let again = own
                .zip(content)
                .filter(|(own, content)| H::is_same_request(&own.content, content));
            match again.map(|(own, _)| own.is_open()) {
                None => self.withhold(link, said.say.message.clone(), Cause::Repeated),
                // Its sender hears of it as soon as the opening is on disk.
                Some(false) => {}
                Some(true) => {
                    let state = self.handle(link).zip(self.view_of(known));
                    let remind = |(handle, proposal)| Effect::Remind { handle, proposal };
                    self.effects.all.extend(state.map(remind));
                }
            }
            return true;
        }
        if digest.and_then(|digest| self.proposals.rejected.by(digest)) == Some(by) {
            let by = by.clone();
            let envelope = said.say.id.into();
            let refusal = refusals::rejected_before();
            self.effects.push(Effect::Rejected {
                by,
                envelope,
                refusal,
            });
            return true;
        }
        let is_closed = self.is_closed(digest);
        if is_closed {
            self.withhold(link, said.say.message.clone(), Cause::Repeated);
        }
        is_closed
    }

    fn remember_rejected(&mut self, digest: Option<u128>, by: &ParticipantId) {
        if let Some(digest) = digest {
            self.proposals.rejected.add(digest, by);
        }
    }

    fn enter_proposal(&mut self, id: OperationId, proposal: Proposal<H>) {
        let content = proposal.content.clone();
        self.proposals.insert(
            id,
            Proposal {
                updated_ms: self.now_ms,
                ..proposal
            },
        );
        self.effects.push(Effect::Store {
            proposal: id,
            content,
            record: ProposalChange::Opened,
        });
    }

    fn not_proposed(
        &mut self,
        proposal: OperationId,
        by: ParticipantId,
        content: H::Content,
        held: bool,
        cause: Cause,
    ) {
        let refusal = refusals::of_proposal(cause);
        self.effects.push(Effect::NotProposed {
            proposal,
            by,
            content,
            held,
            refusal,
            cause,
        });
    }

    /// Whether the topic accepts one more proposal of this participant.
    fn may_propose(&self, terms: &Terms) -> Result<(), Cause> {
        let Limits {
            proposals_max,
            proposal_bytes_max,
            ..
        } = self.limits;
        let Limits {
            proposals_per_participant_max,
            proposal_bytes_per_participant_max,
            ..
        } = self.limits;
        let all = self.proposals.open();
        let own = self.proposals.on_account(&terms.by);
        let fits = all.has_room(terms.bytes, (proposals_max, proposal_bytes_max))
            && own.has_room(
                terms.bytes,
                (
                    proposals_per_participant_max,
                    proposal_bytes_per_participant_max,
                ),
            );
        if !fits {
            Err(Cause::Limit)
        } else if self.proposals.of_envelope(&terms.envelope).is_some() {
            Err(Cause::Repeated)
        } else {
            Ok(())
        }
    }

    /// Has a pending proposal be decided about under the definition that its server has listed
    /// since, if there is room for it.
    pub(crate) fn describe(
        &mut self,
        id: OperationId,
        digest: Digest,
        content: H::Content,
        bytes: usize,
    ) {
        let pending = self
            .proposals
            .get(id)
            .filter(|own| matches!(own.phase, Phase::Pending));
        let Some(Terms {
            by, bytes: older, ..
        }) = pending.map(|own| &own.terms)
        else {
            return;
        };
        let Limits {
            proposal_bytes_max,
            proposal_bytes_per_participant_max,
            ..
        } = self.limits;
        let fits =
            |amount: Amount, bytes_max| (amount.bytes - older).saturating_add(bytes) <= bytes_max;
        if fits(self.proposals.open(), proposal_bytes_max)
            && fits(
                self.proposals.on_account(by),
                proposal_bytes_per_participant_max,
            )
        {
            self.proposals.describe(id, digest, content, bytes);
        }
    }

    pub(crate) fn restore(&mut self, restore: Restore<'_, H>) {
        let Restore {
            proposal: id,
            terms,
            content,
            held,
            public,
            end,
        } = restore;
        if self.proposals.known(id).is_some() {
            return;
        }
        let mut proposal = Proposal::new(terms, content, Phase::Pending);
        (proposal.held, proposal.public, proposal.updated_ms) =
            (held, public.map(Arc::from), self.now_ms);
        if let Some(EndedProposal {
            state,
            reason,
            decided,
            fulfilment,
            answer,
        }) = end
        {
            proposal.fulfilment = fulfilment;
            proposal.over = Some((state, reason));
            proposal.decided = decided.map(|(by, ruling)| (by, Some(ruling)));
            proposal.answer = answer;
        }
        self.proposals.insert(id, proposal);
    }

    /// Opens a proposal whose opening is on disk: from now on participants may see it.
    pub(crate) fn opened(&mut self, id: OperationId) {
        self.proposals.turn(id, Phase::Pending);
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let recalled = proposal.recalled.take();
        let queued = proposal.queued.take();
        let call = proposal.call;
        let unpublished = proposal.unpublished.take();
        if let Some(reason) = recalled {
            // The proposer may not be here any more: no participant sees the proposal.
            self.recall(id, reason);
        } else {
            if let Some(kept) = unpublished {
                self.publish(kept.message, kept.bytes, kept.audience);
            }
            let view = self.view_of(id);
            self.effects
                .all
                .extend(view.map(|proposal| Effect::Proposed { proposal }));
        }
        if let Some(queued) = queued {
            self.decide(id, *queued);
        }
        if let Some(call) = call {
            self.park_late(call);
        }
    }

    /// Removes a proposal whose opening cannot be written, and refuses its held call.
    pub(crate) fn not_opened(&mut self, id: OperationId) {
        let cause = Cause::LogUnavailable;
        if let Some(queued) = self
            .proposals
            .get_mut(id)
            .and_then(|proposal| proposal.queued.take())
        {
            self.refuse_ruling(id, *queued, Cause::Unknown);
        }
        let Some(proposal) = self.proposals.remove(id) else {
            return;
        };
        let Proposal {
            terms,
            content,
            held,
            call,
            deferred,
            id_digest,
            ..
        } = proposal;
        // Its proposer gets the state `rejected`.
        self.remember_rejected(id_digest, &terms.by);
        self.not_proposed(id, terms.by, content, held, cause);
        for requests in deferred {
            self.run_deferred(requests);
        }
        if let Some(call) = call {
            self.refuse_call(call, cause);
        }
    }
}
