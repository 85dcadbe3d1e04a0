//! Owns the questions that can be asked about proposals which are not over.
//! Must not know how they change.

use model::{Capabilities, Digest, OperationId, ParticipantId, ProposalState};

use crate::{
    event::Role,
    proposals::{Phase, Proposal},
    topic::Topic,
};

/// A proposal that is not over.
#[derive(Debug, Clone, Copy)]
pub struct Proposed<'a> {
    /// Its id.
    pub id: OperationId,
    /// The proposer.
    pub by: &'a ParticipantId,
    /// The method of the request that is proposed.
    pub method: &'a str,
    /// The upstream's own name or URI.
    pub context: Option<&'a str>,
    /// Whom it names; nobody is anybody.
    pub to: &'a [ParticipantId],
    /// Of what is shown to whoever decides.
    pub digest: Digest,
    /// When it expires, on the clock of [`Topic::step`].
    pub expires_ms: u64,
    /// As far as it was told: pending or running.
    pub state: ProposalState,
    /// The call that is held behind it, or the operation that carries it out.
    pub call: Option<OperationId>,
}

impl Topic {
    /// A proposal that is told of and not over.
    pub fn proposal(&self, id: OperationId) -> Option<Proposed<'_>> {
        self.proposals.get(id).and_then(|proposal| shown(id, proposal))
    }

    /// All of them, in the order in which they were made.
    pub fn proposals(&self) -> impl Iterator<Item = Proposed<'_>> {
        self.proposals.in_order().filter_map(|(id, proposal)| shown(id, proposal))
    }

    /// How many there are, with those that nobody was told of yet.
    pub fn proposals_len(&self) -> usize {
        self.proposals.len()
    }

    /// When the next [`Event::Tick`](crate::Event::Tick) has something to do.
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.proposals.first_to_expire().map(|(expires_ms, _)| expires_ms)
    }

    /// Whether `by`, with these capabilities, could approve or reject a proposal. Whoever could not may not be
    /// told about it over wires that hide what is refused.
    pub fn could_decide(&self, id: OperationId, by: &ParticipantId, capabilities: &Capabilities) -> bool {
        let proposal = self.proposals.get(id).filter(|own| own.phase != Phase::Opening && own.by != *by);
        proposal.is_some_and(|proposal| self.covers(capabilities, proposal))
    }

    /// The participants in the topic who could decide about a proposal, in the order of their seats.
    pub fn deciders(&self, id: OperationId) -> impl Iterator<Item = &ParticipantId> {
        let callers = self.participants().filter(|present| present.role == Role::Caller);
        let may = move |present: &crate::topic::Present<'_>| {
            self.could_decide(id, present.id, present.capabilities)
        };
        callers.filter(may).map(|present| present.id)
    }
}

fn shown(id: OperationId, proposal: &Proposal) -> Option<Proposed<'_>> {
    let Proposal { by, method, context, to, digest, expires_ms, call, phase, .. } = proposal;
    let shown = Proposed {
        id,
        by,
        method: method.as_str(),
        context: context.as_deref(),
        to,
        digest: *digest,
        expires_ms: *expires_ms,
        state: proposal.state(),
        call: *call,
    };
    Some(shown).filter(|_| *phase != Phase::Opening)
}
