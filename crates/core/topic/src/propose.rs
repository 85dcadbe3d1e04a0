//! Opening of proposals: held calls, envelopes, and proposals from before a restart.

use std::sync::Arc;

use model::{Digest, OperationId, ParticipantId, Refusal};

use crate::{
    Handles, Topic,
    effect::{Cause, Effect, ProposalChange},
    event::{End, Restore, Terms},
    operations::{Operation, State},
    proposals::{Amount, Decided, LastState, Phase, Proposal},
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
        held: OperationId,
        park_ms: u64,
    ) {
        if self.proposals.known(id).is_some() {
            return;
        }
        // The caller may have cancelled its call meanwhile.
        if !self.is_held_for(held, &terms.by) {
            return self.not_proposed(id, terms.by, content, true, Cause::Moot);
        }
        if let Err(cause) = self.may_propose(&[&terms]) {
            self.not_proposed(id, terms.by, content, true, cause);
            return self.refuse_call(held, cause);
        }
        let mut proposal = Proposal::new(terms, content, Phase::Opening);
        proposal.held = true;
        proposal.call = Some(held);
        if let Some(open) = self.operations.get(held) {
            proposal.public = open.context.clone();
        }
        self.operations
            .turn(held, State::Held { proposal: Some(id) });
        self.park_at(held, park_ms);
        self.enter_proposal(id, proposal);
    }

    /// Whether a call is held for this caller, and not proposed yet.
    fn is_held_for(&self, call: OperationId, by: &ParticipantId) -> bool {
        let Some(open) = self.held_alone(call) else {
            return false;
        };
        let caller = self.members.of_link(open.link);
        caller.is_some_and(|caller| caller.id == *by)
    }

    /// A held call without a proposal.
    fn held_alone(&self, call: OperationId) -> Option<&Operation<H>> {
        let open = self.operations.get(call)?;
        if open.state != (State::Held { proposal: None }) {
            return None;
        }
        Some(open)
    }

    /// Ends a held call that is not proposed.
    pub(crate) fn unproposable(&mut self, held: OperationId, end: End<H::Answer>) {
        if self.held_alone(held).is_some()
            && let Some(call) = self.stop_call(held, end.outcome())
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
        if let Err(cause) = self.may_propose(&[&terms]) {
            self.remember_rejected(said.say.proposal_digest, &terms.by);
            return self.not_proposed(id, terms.by, content, false, cause);
        }
        let mut proposal = Proposal::new(terms, content, Phase::Opening);
        proposal.id_digest = said.say.proposal_digest;
        proposal.unpublished = said.unpublished;
        self.enter_proposal(id, proposal);
    }

    /// Rejects an envelope that proposes what cannot be proposed.
    pub(crate) fn reject_said(
        &mut self,
        said: Said<'_, H>,
        refusal: Box<Refusal>,
        published: bool,
    ) {
        if self.is_taken(&said, None) {
            return;
        }
        if published && let Some(envelope) = said.unpublished {
            self.publish(envelope.message, envelope.bytes, envelope.audience);
        }
        self.remember_rejected(said.say.proposal_digest, &said.from);
        self.effects.push(Effect::Rejected {
            by: said.from,
            envelope: said.say.id.into(),
            refusal,
        });
    }

    /// Whether the id of a proposing envelope names a proposal already, for ever: then nothing is
    /// proposed and nothing published. Who sends its own once more gets the present state.
    fn is_taken(&mut self, said: &Said<'_, H>, content: Option<&H::Content>) -> bool {
        if let Some(known) = self.proposals.of_envelope(said.say.id) {
            self.repeated(known, said, content);
            return true;
        }
        if self.was_rejected(said) {
            self.effects.push(Effect::Rejected {
                by: said.from.clone(),
                envelope: said.say.id.into(),
                refusal: refusals::rejected_before(),
            });
            return true;
        }
        let is_closed = self.is_closed(said.say.proposal_digest);
        if is_closed {
            self.withhold(said.say.link, said.say.message.clone(), Cause::Repeated);
        }
        is_closed
    }

    /// Whether a proposal of this sender and id was rejected when it arrived.
    fn was_rejected(&self, said: &Said<'_, H>) -> bool {
        let Some(digest) = said.say.proposal_digest else {
            return false;
        };
        self.proposals.rejected.by(digest) == Some(&said.from)
    }

    /// Answers an envelope whose id names this proposal already.
    fn repeated(&mut self, id: OperationId, said: &Said<'_, H>, content: Option<&H::Content>) {
        if !self.is_same_proposal(id, &said.from, content) {
            return self.withhold(said.say.link, said.say.message.clone(), Cause::Repeated);
        }
        // Until the opening is on disk there is no state: its sender gets one with the opening.
        if self.on_disk(id).is_none() {
            return;
        }
        let Some(handle) = self.handle(said.say.link) else {
            return;
        };
        if let Some(proposal) = self.view_of(id) {
            self.effects.push(Effect::Remind { handle, proposal });
        }
    }

    /// Whether a participant proposes what it has proposed already.
    fn is_same_proposal(
        &self,
        id: OperationId,
        by: &ParticipantId,
        content: Option<&H::Content>,
    ) -> bool {
        let Some(known) = self.proposals.known(id) else {
            return false;
        };
        let Some(content) = content else {
            return false;
        };
        known.terms.by == *by && H::is_same_request(&known.content, content)
    }

    fn remember_rejected(&mut self, digest: Option<u128>, by: &ParticipantId) {
        if let Some(digest) = digest {
            self.proposals.rejected.add(digest, by);
        }
    }

    /// Enters a proposal and gives its opening to the journal. It is open once that is on disk: see
    /// [`Topic::written`].
    pub(crate) fn enter_proposal(&mut self, id: OperationId, mut proposal: Proposal<H>) {
        let content = proposal.content.clone();
        proposal.updated_ms = self.now_ms;
        proposal.warn_ms = proposal.terms.warning_ms(self.now_ms);
        self.proposals.insert(id, proposal);
        self.effects.push(Effect::Store {
            proposal: id,
            content,
            record: Box::new(ProposalChange::Opened),
        });
    }

    pub(crate) fn not_proposed(
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

    /// Whether the topic accepts more proposals of one participant, all of them.
    pub(crate) fn may_propose(&self, all: &[&Terms]) -> Result<(), Cause> {
        let Some(first) = all.first() else {
            return Ok(());
        };
        let of_all = Amount {
            count: self.limits.proposals_max,
            bytes: self.limits.proposal_bytes_max,
        };
        let of_participant = Amount {
            count: self.limits.proposals_per_participant_max,
            bytes: self.limits.proposal_bytes_per_participant_max,
        };
        let more = Amount {
            count: all.len(),
            bytes: all.iter().map(|terms| terms.bytes).sum(),
        };
        let on_account = self.proposals.on_account(&first.by);
        if !self.proposals.open().has_room(more, of_all)
            || !on_account.has_room(more, of_participant)
        {
            return Err(Cause::Limit);
        }
        let is_taken = |terms: &&Terms| self.proposals.of_envelope(&terms.envelope).is_some();
        if all.iter().any(is_taken) {
            return Err(Cause::Repeated);
        }
        Ok(())
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
        let Some(proposal) = self.proposals.get(id) else {
            return;
        };
        if !matches!(proposal.phase, Phase::Pending) {
            return;
        }
        if self.has_room_instead(proposal, bytes) {
            self.proposals.describe(id, digest, content, bytes);
        }
    }

    /// Enters a proposal of before a restart: pending, or over.
    pub(crate) fn restore(&mut self, restore: Restore<'_, H>) {
        let Restore {
            proposal: id,
            terms,
            content,
            held,
            public,
            approved_by,
            end,
        } = restore;
        if self.proposals.known(id).is_some() {
            return;
        }
        let phase = if terms.is_later_step() {
            Phase::Waiting
        } else {
            Phase::Pending
        };
        let mut proposal = Proposal::new(terms, content, phase);
        proposal.held = held;
        proposal.public = public.map(Arc::from);
        proposal.updated_ms = self.now_ms;
        proposal.warn_ms = proposal.terms.warning_ms(self.now_ms);
        proposal.approved_by = approved_by;
        if let Some(end) = end {
            proposal.over = Some(LastState {
                state: end.state,
                reason: end.reason,
            });
            proposal.decided = end.decided.map(|(by, ruling)| Decided {
                by,
                ruling: Some(ruling),
            });
            proposal.fulfilment = end.fulfilment;
            proposal.answer = end.answer;
        }
        self.proposals.insert(id, proposal);
    }

    /// Opens a proposal whose opening is on disk: from now on participants may see it.
    pub(crate) fn opened(&mut self, id: OperationId) {
        self.proposals.turn(id, Phase::Pending);
        self.open_later_steps(id);
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
            if let Some(envelope) = unpublished {
                self.publish(envelope.message, envelope.bytes, envelope.audience);
            }
            if let Some(proposal) = self.view_of(id) {
                self.effects.push(Effect::Proposed { proposal });
            }
            self.show_later_steps(id);
        }
        // After it is shown: a decision about it may end it.
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
        let proposal = self.proposals.get_mut(id);
        if let Some(queued) = proposal.and_then(|proposal| proposal.queued.take()) {
            self.refuse_ruling(id, *queued, Cause::Unknown);
        }
        self.remove_later_steps(id);
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
        // No call waits for the opening of a plan.
        let held = held && terms.plan.is_none();
        self.not_proposed(id, terms.by, content, held, cause);
        for requests in deferred {
            self.run_deferred(requests);
        }
        if let Some(call) = call {
            self.refuse_call(call, cause);
        }
    }
}
