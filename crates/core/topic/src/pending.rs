//! Queries about proposals: those that a participant may see, and the participants that could
//! decide.

use std::sync::Arc;

use model::{Capabilities, Narrowing, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    effect::{DECIDERS_SHOWN_MAX, ProposalView},
    members::Member,
    proposals::Proposal,
};

impl<H: Handles> Topic<H> {
    /// A proposal that is on disk, over or not.
    pub fn proposal(&self, id: OperationId) -> Option<ProposalView<H>> {
        self.on_disk(id).map(|proposal| self.view(id, proposal))
    }

    /// A proposal that is on disk, over or not, so that participants may learn of it.
    pub(crate) fn on_disk(&self, id: OperationId) -> Option<&Proposal<H>> {
        self.proposals
            .known(id)
            .filter(|proposal| proposal.is_open())
    }

    /// All proposals that are on disk and that `who` may see, in the order of opening; ended ones
    /// only if `all`.
    pub fn proposals(
        &self,
        who: &ParticipantId,
        capabilities: &Capabilities,
        all: bool,
    ) -> Vec<ProposalView<H>> {
        let wanted = |proposal: &Proposal<H>| {
            proposal.is_open()
                && (all || proposal.over.is_none())
                && self.may_see(proposal, who, capabilities)
        };
        self.proposals
            .in_order(wanted)
            .map(|(id, proposal)| glance(id, proposal))
            .collect()
    }

    /// Proposals that are open to decisions, with their contents, in no order.
    pub fn undecided(&self) -> impl Iterator<Item = (OperationId, &H::Content)> {
        self.proposals
            .pending()
            .map(|(id, proposal)| (id, &proposal.content))
    }

    /// The number of proposals that are not over, including those whose opening is being written.
    pub fn proposals_len(&self) -> usize {
        self.proposals.len()
    }

    /// The participants that have proposals which are not over.
    pub fn proposers(&self) -> impl Iterator<Item = &ParticipantId> {
        self.proposals.proposers()
    }

    /// Whether `who` may see a proposal: its proposer, and every participant that could make the
    /// request.
    pub fn may_see_proposal(
        &self,
        id: OperationId,
        who: &ParticipantId,
        capabilities: &Capabilities,
    ) -> bool {
        self.on_disk(id)
            .is_some_and(|proposal| self.may_see(proposal, who, capabilities))
    }

    /// Whether `who` could approve or reject a proposal that is not over without an envelope: every
    /// participant that could make the call under its public name, except its proposer.
    pub fn could_decide(
        &self,
        id: OperationId,
        who: &ParticipantId,
        capabilities: &Capabilities,
    ) -> bool {
        let open = self
            .proposals
            .get(id)
            .filter(|proposal| proposal.is_open() && proposal.terms.by != *who);
        open.is_some_and(|proposal| self.covers_as_call(capabilities, proposal))
    }

    /// The proposed request in full, and whether the proposal is on disk.
    pub fn proposed(&self, id: OperationId) -> Option<(&H::Content, bool)> {
        self.proposals
            .known(id)
            .map(|proposal| (&proposal.content, proposal.is_open()))
    }

    /// The proposed request of the proposal that an envelope made, on disk or not.
    pub fn proposed_by(&self, envelope: &str) -> Option<(OperationId, &H::Content)> {
        let id = self.proposals.of_envelope(envelope)?;
        Some((id, &self.proposals.known(id)?.content))
    }

    /// The proposal of a participant, by its id, if a request of it with this narrowing may be about
    /// it.
    pub fn own_proposal(
        &self,
        id: OperationId,
        by: &ParticipantId,
        narrowing: Option<&Narrowing>,
    ) -> Option<ProposalView<H>> {
        let is_theirs = self.owns(id, by) && self.covers_proposal(narrowing, id);
        self.proposal(id).filter(|_| is_theirs)
    }

    /// Whether an access token with this narrowing is good for a proposal: for making it, or what it
    /// proposes. Its proposer needs no capability for it beside that.
    pub fn covers_proposal(&self, narrowing: Option<&Narrowing>, id: OperationId) -> bool {
        let Some(narrowing) = narrowing else {
            return true;
        };
        self.proposals
            .known(id)
            .is_some_and(|proposal| self.may_still(&narrowing.to, proposal))
    }

    /// Whether a proposal, on disk or not, is of the present bearer of this name.
    pub fn owns(&self, id: OperationId, by: &ParticipantId) -> bool {
        self.proposals
            .known(id)
            .is_some_and(|proposal| proposal.is_of(by))
    }

    fn may_see(
        &self,
        proposal: &Proposal<H>,
        who: &ParticipantId,
        capabilities: &Capabilities,
    ) -> bool {
        proposal.is_of(who)
            || proposal.is_asked_for(capabilities)
            || (proposal.over.is_none() && self.covers(capabilities, proposal))
    }

    pub(crate) fn view(&self, id: OperationId, proposal: &Proposal<H>) -> ProposalView<H> {
        let mut view = glance(id, proposal);
        if view.state == ProposalState::Pending {
            view.deciders = self.deciders(proposal);
            let is_here =
                |one: &&ParticipantId| self.members.of_id(one).is_some_and(Member::is_seen);
            view.absent = proposal
                .terms
                .to
                .iter()
                .filter(|one| !is_here(one))
                .cloned()
                .collect();
        }
        view
    }

    pub(crate) fn view_of(&self, id: OperationId) -> Option<Box<ProposalView<H>>> {
        self.proposals
            .known(id)
            .map(|proposal| Box::new(self.view(id, proposal)))
    }

    /// The participants in the topic that could decide about a proposal, in the order of their
    /// seats.
    fn deciders(&self, proposal: &Proposal<H>) -> Vec<ParticipantId> {
        let callers = self.members.callers();
        let may = callers.filter(|member| {
            member.id != proposal.terms.by && self.covers(&member.capabilities, proposal)
        });
        may.map(|member| member.id.clone())
            .take(DECIDERS_SHOWN_MAX)
            .collect()
    }
}

fn glance<H: Handles>(id: OperationId, proposal: &Proposal<H>) -> ProposalView<H> {
    let (decided_by, ruling) = proposal.decided.clone().unzip();
    ProposalView {
        id,
        by: proposal.terms.by.clone(),
        envelope: Arc::clone(&proposal.terms.envelope),
        content: proposal.content.clone(),
        held: proposal.held,
        state: proposal.state(),
        reason: proposal
            .over
            .as_ref()
            .and_then(|(_, reason)| reason.clone()),
        decided_by,
        ruling: ruling.flatten(),
        fulfilment: proposal.fulfilment.clone(),
        in_room: proposal.run_until_ms.is_some(),
        answer: proposal.answer.clone(),
        updated_ms: proposal.updated_ms,
        deciders: Vec::new(),
        absent: Vec::new(),
    }
}
