//! Queries about proposals: those that a participant may see, and the participants that could
//! decide.

use std::sync::Arc;

use model::{Capabilities, Narrowing, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    decide::NamedBy,
    effect::{DECIDERS_SHOWN_MAX, NotedApproval, ProposalView},
    event::{CountedApproval, Terms},
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
    /// only if `all`. `capabilities` are narrowed to the scope of its access token, if that has
    /// one.
    pub fn proposals(
        &self,
        who: &ParticipantId,
        capabilities: &Capabilities,
        all: bool,
    ) -> Vec<ProposalView<H>> {
        let found = self.proposals.in_order(|proposal| {
            proposal.is_open()
                && (all || proposal.over.is_none())
                && self.may_see(proposal, who, capabilities)
        });
        found
            .map(|(id, proposal)| self.glance(id, proposal))
            .collect()
    }

    /// Proposals that are open to decisions, with their contents, in no order.
    pub fn undecided(&self) -> impl Iterator<Item = (OperationId, &H::Content)> {
        self.proposals
            .pending()
            .map(|(id, proposal)| (id, &proposal.content))
    }

    /// Proposals that are open to decisions, in the order of opening, as lists show them.
    pub fn undecided_views(&self) -> Vec<ProposalView<H>> {
        let found = self.proposals.in_order(Proposal::is_pending);
        found
            .map(|(id, proposal)| self.glance(id, proposal))
            .collect()
    }

    /// Proposals that wait for a decision, one that is being written included, in the order of
    /// opening, as lists show them.
    pub fn waiting_views(&self) -> Vec<ProposalView<H>> {
        let found = self.proposals.in_order(|proposal| {
            proposal.is_open()
                && proposal.state() == ProposalState::Pending
                && !proposal.terms.is_later_step()
        });
        found
            .map(|(id, proposal)| self.glance(id, proposal))
            .collect()
    }

    /// Whether a proposal is open to decisions, as this content.
    pub fn is_undecided(&self, id: OperationId, is_it: impl FnOnce(&H::Content) -> bool) -> bool {
        let proposal = self.proposals.get(id);
        proposal.is_some_and(|proposal| proposal.is_pending() && is_it(&proposal.content))
    }

    /// The number of proposals that are not over, including those whose opening is being written.
    pub fn proposals_len(&self) -> usize {
        self.proposals.len()
    }

    /// The participants that have proposals which are not over.
    pub fn proposers(&self) -> impl Iterator<Item = &ParticipantId> {
        self.proposals.proposers()
    }

    /// Whether `who` may see a proposal: its proposer, and every participant that could decide
    /// about it. `capabilities` are narrowed to the scope of its access token, if that has one: its
    /// own proposals must be in that scope too.
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
    /// participant that could make the call under its public name or may approve it, except its
    /// proposer; of a plan, its first step, by a participant that could decide about each step. A pause
    /// aside: see [`Topic::is_braked`].
    pub fn could_decide(
        &self,
        id: OperationId,
        who: &ParticipantId,
        capabilities: &Capabilities,
    ) -> bool {
        let Some(proposal) = self.proposals.get(id) else {
            return false;
        };
        proposal.is_open()
            && proposal.terms.by != *who
            && !proposal.terms.is_later_step()
            && self.has_right_to_decide(capabilities, proposal, NamedBy::Clients)
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
        if !self.owns(id, by) || !self.covers_proposal(narrowing, id) {
            return None;
        }
        self.proposal(id)
    }

    /// The proposal of a held call that these terms repeat: the same request of the same participant,
    /// which waits for a decision or runs. One that is on its way to another end is not repeated, and
    /// neither is one whose caller still waits: two calls at one time may be meant.
    pub fn repeated_by(
        &self,
        terms: &Terms,
        narrowing: Option<&Narrowing>,
    ) -> Option<ProposalView<H>> {
        let is_repeated = |id: &OperationId| {
            self.proposals.get(*id).is_some_and(|proposal| {
                proposal.held
                    && proposal.terms.plan.is_none()
                    && proposal.terms.digest == terms.digest
                    && proposal.is_of(&terms.by)
                    && proposal.is_to_run()
                    && !self.has_waiting_caller(proposal)
                    && self.covers_proposal(narrowing, *id)
            })
        };
        let id = self.proposals.of(&terms.by).into_iter().find(is_repeated)?;
        self.proposal(id)
    }

    /// Whether the caller of the held call behind a proposal waits for the decision now.
    pub fn is_waited_for(&self, id: OperationId) -> bool {
        let proposal = self.proposals.get(id);
        proposal.is_some_and(|proposal| self.has_waiting_caller(proposal))
    }

    /// Whether the caller of the held call behind a proposal waits for its own answer: it was not
    /// answered for now with the proposal. One that was asked questions comes back with the answers.
    /// No caller waits for a request in the room, nor for a call of before a restart.
    fn has_waiting_caller(&self, proposal: &Proposal<H>) -> bool {
        let call = proposal.call.and_then(|id| self.operations.get(id));
        call.is_some_and(|call| !call.in_room && (!call.answered || call.state.is_paused()))
    }

    /// Whether an access token with this narrowing is good for a proposal: for making it, or what it
    /// proposes. Its proposer needs no capability for it beside that.
    pub fn covers_proposal(&self, narrowing: Option<&Narrowing>, id: OperationId) -> bool {
        let Some(narrowing) = narrowing else {
            return true;
        };
        self.proposals
            .known(id)
            .is_some_and(|proposal| self.is_in_scope(Some(&narrowing.to), proposal))
    }

    /// Whether an access token of this scope is good for a proposal of its participant's own: for each
    /// step of a plan that is shown whole.
    fn is_in_scope(&self, scope: Option<&Capabilities>, proposal: &Proposal<H>) -> bool {
        let Some(scope) = scope else {
            return true;
        };
        if proposal.terms.is_later_step() {
            return self.may_still(scope, proposal);
        }
        self.holds_of_all(proposal, |step| self.may_still(scope, step))
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
        (proposal.is_of(who) && self.is_in_scope(capabilities.scope(), proposal))
            || self.could_rule(capabilities, proposal)
    }

    /// A proposal with the participants that could decide, and those that are missing.
    pub(crate) fn view(&self, id: OperationId, proposal: &Proposal<H>) -> ProposalView<H> {
        let mut view = self.glance(id, proposal);
        if view.state == ProposalState::Pending {
            view.deciders = self.deciders(proposal);
            view.absent = self.absent(&proposal.terms.to);
        }
        view
    }

    /// The participants among these that others do not see in the topic.
    fn absent(&self, named: &[ParticipantId]) -> Vec<ParticipantId> {
        let mut absent = Vec::new();
        for one in named {
            let member = self.members.of_id(one);
            if !member.is_some_and(Member::is_seen) {
                absent.push(one.clone());
            }
        }
        absent
    }

    pub(crate) fn view_of(&self, id: OperationId) -> Option<Box<ProposalView<H>>> {
        self.proposals
            .known(id)
            .map(|proposal| Box::new(self.view(id, proposal)))
    }

    /// The participants in the topic that could decide about a proposal, in the order of their
    /// seats.
    fn deciders(&self, proposal: &Proposal<H>) -> Vec<ParticipantId> {
        let others = self
            .members
            .callers()
            .filter(|member| member.id != proposal.terms.by && !self.is_braked(&member.id));
        others
            .filter(|member| self.could_rule(&member.capabilities, proposal))
            .map(|member| member.id.clone())
            .take(DECIDERS_SHOWN_MAX)
            .collect()
    }

    /// The terms that have the time to decide about a proposal: of a plan, those of its first step.
    fn decided_about<'p>(&'p self, proposal: &'p Proposal<H>) -> &'p Terms {
        let plan = proposal.terms.plan.as_ref().map(|place| place.plan);
        let first = plan.and_then(|first| self.proposals.known(first));
        &first.unwrap_or(proposal).terms
    }

    /// A proposal alone, as lists of proposals show it.
    fn glance(&self, id: OperationId, proposal: &Proposal<H>) -> ProposalView<H> {
        let decided = proposal.decided.as_ref();
        let decided_about = self.decided_about(proposal);
        let over = proposal.over.as_ref();
        let approvals: Vec<&CountedApproval> = if proposal.is_pending() {
            self.counting(proposal).collect()
        } else {
            proposal.approved_by.iter().collect()
        };
        let notes = approvals.iter().filter_map(|one| {
            Some(NotedApproval {
                by: one.by.clone(),
                note: one.note.clone()?,
            })
        });
        ProposalView {
            id,
            by: proposal.terms.by.clone(),
            envelope: Arc::clone(&proposal.terms.envelope),
            content: proposal.content.clone(),
            held: proposal.held,
            state: proposal.state(),
            plan: proposal.terms.plan.clone(),
            reason: over.and_then(|over| over.reason.clone()),
            expires_wall_ms: decided_about.expires_wall_ms,
            extensions: decided_about.extensions,
            amendments: proposal.terms.amendments,
            approvals: proposal.terms.approvals.max(1),
            notes: notes.collect(),
            approved_by: approvals.iter().map(|one| one.by.clone()).collect(),
            decided_by: decided.map(|decided| decided.by.clone()),
            ruling: decided.and_then(|decided| decided.ruling.clone()),
            fulfilment: proposal.fulfilment.clone(),
            in_room: proposal.run_until_ms.is_some(),
            answer: proposal.answer.clone(),
            updated_ms: proposal.updated_ms,
            claims: self.claims.on(id),
            deciders: Vec::new(),
            absent: Vec::new(),
        }
    }
}
