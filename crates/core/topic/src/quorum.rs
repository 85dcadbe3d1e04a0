//! Approvals of proposals that need several: which count, and what one more comes to.

use std::{collections::BTreeSet, sync::Arc};

use model::{Capabilities, OperationId, ParticipantId};

use crate::{
    Handles, Limits, Topic,
    effect::{Cause, CountedDecision, Effect},
    event::{Amended, CountedApproval},
    proposals::{Phase, Proposal, Ruling},
};

/// The most participants that a proposal may need the approvals of.
pub const APPROVALS_MAX: usize = 16;

impl<H: Handles> Topic<H> {
    /// The approvals of a proposal that count at this moment: of the request as reviewers see it
    /// now, and of participants that may decide about it now.
    pub(crate) fn counting<'p>(
        &'p self,
        proposal: &'p Proposal<H>,
    ) -> impl Iterator<Item = &'p CountedApproval> {
        let all = proposal.approved_by.iter();
        all.filter(move |one| one.shown == proposal.terms.digest && self.still_may(proposal, one))
    }

    /// Whether the author of an approval may decide about the proposal now. A paused one may not.
    fn still_may(&self, proposal: &Proposal<H>, approval: &CountedApproval) -> bool {
        if proposal.terms.is_later_step() {
            return self.may_run_on(proposal, approval);
        }
        let by = &approval.by;
        let granted = self.capabilities(by).or(approval.outside.as_ref());
        !self.is_braked(by) && granted.is_some_and(|granted| self.could_rule(granted, proposal))
    }

    /// Whether a participant has approved a proposal that needs several approvals, and its approval
    /// counts.
    pub fn has_approved(&self, id: OperationId, who: &ParticipantId) -> bool {
        let proposal = self.proposals.get(id);
        proposal.is_some_and(|proposal| self.counts_of(proposal, who))
    }

    fn counts_of(&self, proposal: &Proposal<H>, who: &ParticipantId) -> bool {
        let account = self.proposals.account(who);
        self.counting(proposal)
            .any(|one| self.proposals.account(&one.by) == account)
    }

    /// Whether an approval would count for a proposal that needs several: one of each participant,
    /// and all guests are one.
    pub(crate) fn may_count(
        &self,
        proposal: &Proposal<H>,
        ruling: &Ruling<H>,
    ) -> Result<(), Cause> {
        if !proposal.terms.needs_several() {
            return Ok(());
        }
        let account = |who| self.proposals.account(who);
        if account(&ruling.by) == account(&proposal.terms.by) {
            return Err(Cause::Own);
        }
        match &ruling.amended {
            None if self.counts_of(proposal, &ruling.by) => Err(Cause::Counted),
            Some(amended) if !self.has_room_instead(proposal, amended.bytes) => Err(Cause::Limit),
            None | Some(_) => Ok(()),
        }
    }

    /// Whether a ruling is an approval after which others must follow.
    pub(crate) fn is_partial(&self, id: OperationId, ruling: &Ruling<H>) -> bool {
        let Some(proposal) = self.proposals.get(id) else {
            return false;
        };
        if ruling.approves.is_none() || !proposal.terms.needs_several() {
            return false;
        }
        let mut counted = BTreeSet::from([self.proposals.account(&ruling.by)]);
        if ruling.amended.is_none() {
            counted.extend(
                self.counting(proposal)
                    .map(|one| self.proposals.account(&one.by)),
            );
        }
        counted.len() < proposal.terms.approvals
    }

    /// The participants whose approvals count beside this one, if it is the last that is needed.
    pub(crate) fn approvers_beside(
        &self,
        id: OperationId,
        last: &Ruling<H>,
    ) -> Box<[ParticipantId]> {
        let Some(proposal) = self.proposals.get(id) else {
            return Box::default();
        };
        if last.approves.is_none() || last.is_partial {
            return Box::default();
        }
        let others = self.counting(proposal).filter(|one| one.by != last.by);
        others.map(|one| one.by.clone()).collect()
    }

    /// Whether a content of so many bytes fits in place of that of a proposal.
    pub(crate) fn has_room_instead(&self, proposal: &Proposal<H>, bytes: usize) -> bool {
        let older = proposal.terms.bytes;
        let Limits {
            proposal_bytes_max,
            proposal_bytes_per_participant_max,
            ..
        } = self.limits;
        let on_account = self.proposals.on_account(&proposal.terms.by);
        self.proposals
            .open()
            .has_room_instead(older, bytes, proposal_bytes_max)
            && on_account.has_room_instead(older, bytes, proposal_bytes_per_participant_max)
    }

    /// Counts an approval that is on disk, after which others must follow: the proposal is open to
    /// them. One with other arguments is about those from now on, and earlier approvals are void.
    pub(crate) fn count_approval(&mut self, id: OperationId, approval: Ruling<H>) {
        let Ruling {
            by,
            outside,
            handle,
            requested,
            amended,
            ..
        } = approval;
        self.proposals.turn(id, Phase::Pending);
        let is_amended = amended.is_some();
        if let Some(amended) = amended {
            let Amended {
                digest,
                content,
                bytes,
            } = amended;
            self.proposals.describe(id, digest, content, bytes);
        }
        let outside = self.capabilities(&by).cloned().or(outside);
        let note = handle.as_ref().and_then(H::note);
        self.proposals
            .count_approval(id, by.clone(), outside, note, self.now_ms);
        // The request that came with it is not approved yet.
        if let Some(requested) = requested {
            self.drop_calls(requested);
        }
        if let Some(proposal) = self.view_of(id)
            && let Some(ruling) = handle.clone()
        {
            self.effects.push(Effect::Counted(CountedDecision {
                proposal,
                by,
                is_amended,
                ruling,
            }));
        }
        self.effects.extend_ruled(handle);
        self.go_on_undecided(id);
    }

    /// Refuses an approval that was written while the name of its author got another bearer.
    pub(crate) fn drop_void(&mut self, id: OperationId, approval: Ruling<H>) {
        self.proposals.turn(id, Phase::Pending);
        if approval.amended.is_some() {
            self.proposals.book(id, approval.older_bytes);
        }
        self.refuse_ruling(id, approval, Cause::NotAdmitted);
        self.go_on_undecided(id);
    }

    /// Goes on with a proposal that is open again: its proposer may have left, and another decision
    /// may have come.
    pub(crate) fn go_on_undecided(&mut self, id: OperationId) {
        let Some(proposal) = self.proposals.get_mut(id) else {
            return;
        };
        let recalled = proposal.recalled.take();
        let queued = proposal.queued.take();
        if let Some(reason) = recalled {
            self.recall(id, reason);
        }
        match queued {
            Some(queued) if queued.is_void => self.refuse_ruling(id, *queued, Cause::NotAdmitted),
            Some(queued) => self.decide(id, *queued),
            None => {}
        }
    }

    /// Notes what a participant may do now, for approvals of it that wait for others.
    pub(crate) fn note_approver(
        &mut self,
        participant: &ParticipantId,
        capabilities: Option<&Arc<Capabilities>>,
    ) {
        for id in self.proposals.approved().collect::<Vec<_>>() {
            let Some(proposal) = self.proposals.get_mut(id) else {
                continue;
            };
            for approval in &mut proposal.approved_by {
                if approval.by == *participant {
                    approval.outside = capabilities.cloned();
                }
            }
        }
    }

    /// Participants whose approvals wait for others, with repetitions.
    pub fn approvers(&self) -> impl Iterator<Item = &ParticipantId> {
        let waiting = self.proposals.approved();
        let waiting = waiting.filter_map(move |id| self.proposals.get(id));
        waiting.flat_map(|proposal| proposal.approved_by.iter().map(|one| &one.by))
    }

    /// Participants that have approved a proposal which needs others, whether that still counts or
    /// not.
    pub fn approvers_of(&self, id: OperationId) -> Vec<ParticipantId> {
        let Some(proposal) = self.proposals.get(id) else {
            return Vec::new();
        };
        proposal
            .approved_by
            .iter()
            .map(|one| one.by.clone())
            .collect()
    }
}
