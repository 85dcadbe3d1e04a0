//! Claims of participants on proposals: the right to claim, and what ends a claim.

use std::{collections::BTreeSet, sync::Arc};

use model::{Capabilities, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    claims::{CLAIM_MS, ClaimKey, HeldClaim},
    effect::{Cause, Effect, Verdict},
    event::{Claiming, Decision, Event},
    proposals::{Proposal, Ruling},
    refusals,
};

/// The claims that an event may end, beside those on proposals that it ends.
#[derive(Debug)]
pub(crate) enum ClaimsAtStake {
    None,
    Of(ParticipantId),
    All,
}

impl<H: Handles> Topic<H> {
    /// Has a participant look at a proposal from now on, or goes on with it.
    pub(crate) fn claim(&mut self, claiming: Claiming<'_>) {
        if let Err(cause) = self.may_claim(&claiming) {
            self.effects.verdict = Some(Verdict::Refused(cause));
            self.effects.refusal = Some(refusals::of_decision(cause));
            return;
        }
        let Claiming {
            proposal,
            by,
            outside,
            at_ms,
            ..
        } = claiming;
        let key = ClaimKey {
            proposal,
            by: by.clone(),
        };
        let claim = HeldClaim {
            since_ms: at_ms,
            until_ms: self.now_ms.saturating_add(CLAIM_MS),
            outside: outside.cloned(),
            ends_with_presence: self.is_here(by),
        };
        if self.claims.hold(key, claim) {
            self.announce_claims(proposal);
        }
    }

    /// Whether a participant may claim: it may decide about the proposal, which is open.
    fn may_claim(&self, claiming: &Claiming<'_>) -> Result<(), Cause> {
        let id = claiming.proposal;
        let by = claiming.by.clone();
        let mut deciding = Ruling::new(by.clone(), Decision::Reject { reason: None }, None);
        deciding.outside = claiming.outside.cloned();
        deciding.narrowing = claiming.narrowing.cloned();
        self.may_decide(id, &deciding)?;
        let proposal = self.proposals.get(id).ok_or(Cause::Decided)?;
        if !proposal.is_open() {
            return Err(Cause::Unknown);
        }
        if proposal.state() != ProposalState::Pending {
            return Err(Cause::Decided);
        }
        if !self.claims.has_room(&ClaimKey { proposal: id, by }) {
            return Err(Cause::Limit);
        }
        Ok(())
    }

    /// The claims that an event may end. Judged before its step.
    pub(crate) fn claims_at_stake(&self, event: &Event<'_, H>) -> ClaimsAtStake {
        if self.claims.is_empty() {
            return ClaimsAtStake::None;
        }
        match event {
            Event::Join(join) => ClaimsAtStake::Of(join.participant.clone()),
            Event::Leave { link } => match self.members.of_link(*link) {
                Some(member) => ClaimsAtStake::Of(member.id.clone()),
                None => ClaimsAtStake::None,
            },
            Event::Revoke { participant }
            | Event::Regrant { participant, .. }
            | Event::Brake { participant, .. } => ClaimsAtStake::Of((*participant).clone()),
            // Names of tools may be others from now on, and with them the right to decide.
            Event::Configure(_)
            | Event::Listed { .. }
            | Event::Attach { .. }
            | Event::Detach { .. } => ClaimsAtStake::All,
            _ => ClaimsAtStake::None,
        }
    }

    /// Ends claims of a participant whose name has another bearer from now on.
    pub(crate) fn drop_claims_of(&mut self, participant: &ParticipantId) {
        self.end_claims(|_, key, _| key.by != *participant);
    }

    /// Notes what a participant may do now, for claims of it.
    pub(crate) fn note_claimant(
        &mut self,
        participant: &ParticipantId,
        capabilities: Option<&Arc<Capabilities>>,
    ) {
        self.claims.note_outside(participant, capabilities);
    }

    /// Ends claims whose holders have left, or may not decide any more.
    pub(crate) fn review_claims(&mut self, at_stake: &ClaimsAtStake) {
        match at_stake {
            ClaimsAtStake::None => {}
            ClaimsAtStake::All => self.end_claims(Self::still_claims),
            ClaimsAtStake::Of(one) => {
                self.end_claims(|topic, key, held| key.by != *one || topic.still_claims(key, held))
            }
        }
    }

    /// Ends claims whose time has run out.
    pub(crate) fn end_due_claims(&mut self) {
        let mut of = BTreeSet::new();
        while let Some(key) = self.claims.take_due(self.now_ms) {
            of.insert(key.proposal);
        }
        of.into_iter().for_each(|id| self.announce_claims(id));
    }

    fn end_claims(&mut self, lasts: impl Fn(&Self, &ClaimKey, &HeldClaim) -> bool) {
        let ended = self.claims.which(|key, held| !lasts(self, key, held));
        let mut of = BTreeSet::new();
        for key in ended {
            self.claims.remove(&key);
            of.insert(key.proposal);
        }
        of.into_iter().for_each(|id| self.announce_claims(id));
    }

    fn still_claims(&self, key: &ClaimKey, held: &HeldClaim) -> bool {
        let Some(proposal) = self.proposals.get(key.proposal) else {
            return false;
        };
        let by = &key.by;
        let is_present = !held.ends_with_presence || self.is_here(by);
        let granted = self.capabilities(by).or(held.outside.as_ref());
        is_present
            && !self.is_braked(by)
            && granted.is_some_and(|granted| self.could_rule(granted, proposal))
    }

    /// Announces who looks at a proposal, while it is open to decisions.
    fn announce_claims(&mut self, id: OperationId) {
        let proposal = self.proposals.get(id);
        let is_pending = |one: &Proposal<H>| one.state() == ProposalState::Pending;
        if proposal.is_some_and(is_pending)
            && let Some(proposal) = self.view_of(id)
        {
            self.effects.push(Effect::Claimed { proposal });
        }
    }
}
