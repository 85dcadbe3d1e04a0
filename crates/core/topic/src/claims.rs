//! Claims: participants that look at a proposal, as others who may decide about it see. A claim
//! stops no participant from deciding.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use model::{Capabilities, OperationId, ParticipantId};

use crate::{effect::Claim, members::account};

/// The time after which a claim ends, unless its holder claims again.
pub const CLAIM_MS: u64 = 300_000;
/// The most claims of one topic.
pub const CLAIMS_MAX: usize = 1024;
/// The most claims of one participant; all guests count as one.
pub const CLAIMS_PER_PARTICIPANT_MAX: usize = 16;

/// The claim of one participant on one proposal. In the order of its fields.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ClaimKey {
    pub(crate) proposal: OperationId,
    pub(crate) by: ParticipantId,
}

/// In the order of its fields.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimEnd {
    at_ms: u64,
    key: ClaimKey,
}

/// One claim while it lasts.
#[derive(Debug)]
pub(crate) struct HeldClaim {
    pub(crate) since_ms: u64,
    pub(crate) until_ms: u64,
    /// The capabilities of its holder while that is not in the topic.
    pub(crate) outside: Option<Arc<Capabilities>>,
    /// Whether its holder was in the topic when it claimed: then it ends when the holder leaves.
    pub(crate) ends_with_presence: bool,
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
    pub(crate) fn which(&self, fits: impl Fn(&ClaimKey, &HeldClaim) -> bool) -> Vec<ClaimKey> {
        let keys = self.ends.iter().map(|end| &end.key);
        let fitting = keys.filter(|key| self.get(key).is_some_and(|held| fits(key, held)));
        fitting.cloned().collect()
    }

    /// Whether one more claim of this participant has room.
    pub(crate) fn has_room(&self, key: &ClaimKey) -> bool {
        let own = self.counts.get(account(&key.by, self.guests));
        let own = own.copied().unwrap_or_default();
        self.get(key).is_some() || self.ends.len() < CLAIMS_MAX && own < CLAIMS_PER_PARTICIPANT_MAX
    }

    /// Adds or renews one. Returns whether it is new.
    pub(crate) fn hold(&mut self, key: ClaimKey, mut claim: HeldClaim) -> bool {
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

    pub(crate) fn remove(&mut self, key: &ClaimKey) -> Option<HeldClaim> {
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
    pub(crate) fn take_due(&mut self, now_ms: u64) -> Option<ClaimKey> {
        let due = self.ends.first().filter(|end| end.at_ms <= now_ms)?;
        let key = due.key.clone();
        self.remove(&key);
        Some(key)
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Notes the capabilities of a participant while it is not in the topic.
    pub(crate) fn note_outside(
        &mut self,
        participant: &ParticipantId,
        capabilities: Option<&Arc<Capabilities>>,
    ) {
        for of_proposal in self.all.values_mut() {
            if let Some(held) = of_proposal.get_mut(participant) {
                held.outside = capabilities.cloned();
            }
        }
    }
}
