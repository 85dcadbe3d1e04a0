//! Claims: participants that look at a proposal, as others who may decide about it see. A claim
//! stops no participant from deciding.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{Capabilities, Narrowing, OperationId, ParticipantId, ProposalState};

use crate::{
    Handles, Topic,
    effect::{Cause, Effect, Verdict},
    event::{Decision, Event},
    members::account,
    proposals::{Proposal, Ruling},
    refusals,
};

/// The time after which a claim ends, unless its holder claims again.
pub const CLAIM_MS: u64 = 300_000;
/// The most claims of one topic.
pub const CLAIMS_MAX: usize = 1024;
/// The most claims of one participant; all guests count as one.
pub const CLAIMS_PER_PARTICIPANT_MAX: usize = 16;

/// A participant that looks at a proposal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The participant.
    pub by: ParticipantId,
    /// The time since when, in Unix milliseconds.
    pub since_ms: u64,
}

/// A claim that a participant makes.
#[derive(Debug, Clone, Copy)]
pub struct Claiming<'a> {
    /// The proposal.
    pub proposal: OperationId,
    /// The participant.
    pub by: &'a ParticipantId,
    /// Its capabilities, if it is not in the topic.
    pub outside: Option<&'a Arc<Capabilities>>,
    /// The part of its capabilities that its access token is good for; `None` is all of them.
    pub narrowing: Option<&'a Narrowing>,
    /// The time in Unix milliseconds, for those who are shown the claim.
    pub at_ms: u64,
}

/// The claim of one participant on one proposal. In the order of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimKey {
    proposal: OperationId,
    by: ParticipantId,
}

/// In the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimEnd {
    at_ms: u64,
    key: ClaimKey,
}

#[derive(Debug)]
struct HeldClaim {
    since_ms: u64,
    until_ms: u64,
    /// The capabilities of its holder while that is not in the topic.
    outside: Option<Arc<Capabilities>>,
    /// Whether its holder was in the topic when it claimed: then it ends when the holder leaves.
    ends_with_presence: bool,
}

/// All claims of a topic.
#[derive(Debug)]
pub(crate) struct Claims {
    all: BTreeMap<OperationId, BTreeMap<ParticipantId, HeldClaim>>,
    ends: BTreeSet<ClaimEnd>,
    /// The number on each account.
    counts: BTreeMap<Box<str>, usize>,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl Claims {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            all: BTreeMap::new(),
            ends: BTreeSet::new(),
            counts: BTreeMap::new(),
            guests,
        }
    }

    /// The claims on a proposal, by the names of their holders.
    pub(crate) fn on(&self, proposal: OperationId) -> Vec<Claim> {
        let held = self.all.get(&proposal).into_iter().flatten();
        held.map(|(by, held)| Claim {
            by: by.clone(),
            since_ms: held.since_ms,
        })
        .collect()
    }

    /// The time at which the next one ends.
    pub(crate) fn next_end_ms(&self) -> Option<u64> {
        Some(self.ends.first()?.at_ms)
    }

    fn get(&self, key: &ClaimKey) -> Option<&HeldClaim> {
        self.all.get(&key.proposal)?.get(&key.by)
    }

    /// The keys of those for which `fits` holds.
    fn which(&self, fits: impl Fn(&ClaimKey, &HeldClaim) -> bool) -> Vec<ClaimKey> {
        let keys = self.ends.iter().map(|end| &end.key);
        let fitting = keys.filter(|key| self.get(key).is_some_and(|held| fits(key, held)));
        fitting.cloned().collect()
    }

    /// Whether one more claim of this participant has room.
    fn has_room(&self, key: &ClaimKey) -> bool {
        let own = self.counts.get(account(&key.by, self.guests));
        let own = own.copied().unwrap_or_default();
        self.get(key).is_some() || self.ends.len() < CLAIMS_MAX && own < CLAIMS_PER_PARTICIPANT_MAX
    }

    /// Adds or renews one. Returns whether it is new.
    fn hold(&mut self, key: ClaimKey, mut claim: HeldClaim) -> bool {
        let before = self.remove(&key);
        if let Some(before) = &before {
            claim.since_ms = before.since_ms;
        }
        let at_ms = claim.until_ms;
        let ClaimKey { proposal, by } = key.clone();
        *self
            .counts
            .entry(account(&by, self.guests).into())
            .or_default() += 1;
        self.all.entry(proposal).or_default().insert(by, claim);
        self.ends.insert(ClaimEnd { at_ms, key });
        before.is_none()
    }

    fn remove(&mut self, key: &ClaimKey) -> Option<HeldClaim> {
        let of_proposal = self.all.get_mut(&key.proposal)?;
        let held = of_proposal.remove(&key.by)?;
        if of_proposal.is_empty() {
            self.all.remove(&key.proposal);
        }
        self.ends.remove(&ClaimEnd {
            at_ms: held.until_ms,
            key: key.clone(),
        });
        let own = account(&key.by, self.guests);
        if let Some(count) = self.counts.get_mut(own) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(own);
            }
        }
        Some(held)
    }

    /// Ends all on a proposal.
    pub(crate) fn drop_on(&mut self, proposal: OperationId) {
        let held = self.all.get(&proposal).into_iter().flatten();
        let holders: Vec<ParticipantId> = held.map(|(by, _)| by.clone()).collect();
        for by in holders {
            self.remove(&ClaimKey { proposal, by });
        }
    }

    /// Takes out one whose time has run out.
    fn take_due(&mut self, now_ms: u64) -> Option<ClaimKey> {
        let due = self.ends.first().filter(|end| end.at_ms <= now_ms)?;
        let key = due.key.clone();
        self.remove(&key);
        Some(key)
    }
}

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
        if self.claims.all.is_empty() {
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
        for of_proposal in self.claims.all.values_mut() {
            if let Some(held) = of_proposal.get_mut(participant) {
                held.outside = capabilities.cloned();
            }
        }
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
