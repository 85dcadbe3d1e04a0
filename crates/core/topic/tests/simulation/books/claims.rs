//! Claims: who looks at a proposal, for as long as that may last.

use std::{collections::BTreeMap, sync::Arc};

use model::{Capabilities, OperationId, ParticipantId};
use topic::{CLAIM_MS, CLAIMS_PER_PARTICIPANT_MAX, Cause};

use super::{Books, deals::Deal};
use crate::{numbers::ProposalView, turn::Decided};

/// The claims of one topic, and what was announced of them.
#[derive(Debug, Default)]
pub(crate) struct ClaimBook {
    held: BTreeMap<OperationId, BTreeMap<ParticipantId, BookedClaim>>,
    announced: BTreeMap<OperationId, Vec<ParticipantId>>,
}

#[derive(Debug, Clone)]
struct BookedClaim {
    until_ms: u64,
    /// Its capabilities, if it claims from outside of the topic: then it need not be there.
    outside: Option<Arc<Capabilities>>,
}

impl Books {
    /// Whether a participant may claim.
    pub(crate) fn may_claim(&self, id: OperationId, by: &Decided) -> Result<(), Cause> {
        let known = self.deals.get(&id).filter(|deal| deal.is_known());
        let deal = known.ok_or(Cause::Unknown)?;
        if deal.by == by.by {
            let is_good = self.is_in_scope(by.token.as_ref(), deal);
            return Err(if is_good {
                Cause::Own
            } else {
                Cause::NotAdmitted
            });
        }
        let count = |(_, held): (&OperationId, &BTreeMap<ParticipantId, BookedClaim>)| {
            usize::from(held.contains_key(&by.by))
        };
        let claims = &self.claims.held;
        let is_renewed = claims
            .get(&id)
            .is_some_and(|held| held.contains_key(&by.by));
        let own = claims.iter().map(count).sum::<usize>();
        match () {
            () if self.braked.contains(&by.by) => Err(Cause::Paused),
            () if deal.over.is_some() => Err(Cause::Decided),
            () if !self.could(by, deal) => Err(Cause::NotAdmitted),
            () if deal.durable.is_empty() => Err(Cause::Unknown),
            () if deal.approved > 0 => Err(Cause::Decided),
            () if !is_renewed && own >= CLAIMS_PER_PARTICIPANT_MAX => Err(Cause::Limit),
            () => Ok(()),
        }
    }

    /// A participant claims, or claims again.
    pub(crate) fn claims_from_now(&mut self, id: OperationId, by: &Decided) {
        let claim = BookedClaim {
            until_ms: self.now_ms + CLAIM_MS,
            outside: by.outside.clone(),
        };
        let held = self.claims.held.entry(id).or_default();
        let before = held.insert(by.by.clone(), claim);
        self.count(before.map_or("claimed", |_| "claimed again"));
    }

    /// Time has passed: claims end by themselves.
    pub(crate) fn end_due_claims(&mut self) {
        let now_ms = self.now_ms;
        self.keep_claims("a claim ended by itself", |_, claim, _| {
            claim.until_ms > now_ms
        });
    }

    /// The participants whose claims are announced to others have changed.
    pub(crate) fn claimed(&mut self, view: &ProposalView) {
        let deal = &self.deals[&view.id];
        assert!(
            deal.is_known() && deal.over.is_none() && deal.approved == 0,
            "{} is decided",
            view.id
        );
        let by = view.claims.iter().map(|one| one.by.clone()).collect();
        let before = self.claims.announced.insert(view.id, by);
        assert_ne!(before.as_ref(), self.claims.announced.get(&view.id));
    }

    /// Claims that may not last are over with the step that ends their reason.
    pub(crate) fn finish_claims(&mut self) {
        let with_proposal = "a claim ended with its proposal";
        self.keep_claims(with_proposal, |_, _, deal| {
            deal.is_known() && deal.over.is_none() && deal.approved == 0
        });
        // Also those that are here to serve alone.
        let holders = self.claims.held.values().flat_map(BTreeMap::keys);
        let here: Vec<ParticipantId> = holders.filter(|one| self.is_here(one)).cloned().collect();
        let braked = self.braked.clone();
        let granted: BTreeMap<ParticipantId, Arc<Capabilities>> = here
            .iter()
            .filter_map(|one| Some((one.clone(), self.granted(one)?.clone())))
            .collect();
        let mut gone = Vec::new();
        for (id, held) in &self.claims.held {
            for (by, claim) in held {
                let own = granted.get(by).or(claim.outside.as_ref());
                let may = own.is_some_and(|own| self.could_decide(own, &self.deals[id]));
                if braked.contains(by) || !may {
                    gone.push((*id, by.clone()));
                }
            }
        }
        for (id, by) in gone {
            self.claims.held.get_mut(&id).unwrap().remove(&by);
            self.count("a claim ended with its holder's right");
        }
        let over = |id: &OperationId| {
            let deal = &self.deals[id];
            !deal.is_known() || deal.over.is_some() || deal.approved > 0
        };
        let ended: Vec<OperationId> = self.claims.announced.keys().copied().filter(over).collect();
        for id in ended {
            self.claims.announced.remove(&id);
        }
    }

    fn keep_claims(
        &mut self,
        ends: &'static str,
        lasts: impl Fn(&ParticipantId, &BookedClaim, &Deal) -> bool,
    ) {
        let mut ended = 0;
        for (id, held) in &mut self.claims.held {
            let deal = &self.deals[id];
            let before = held.len();
            held.retain(|by, claim| lasts(by, claim, deal));
            ended += before - held.len();
        }
        self.claims.held.retain(|_, held| !held.is_empty());
        (0..ended).for_each(|_| self.count(ends));
    }

    /// The participants that look at a proposal, as others know by announcements.
    pub(crate) fn claimants(&self, id: OperationId) -> Vec<ParticipantId> {
        let held = self.claims.held.get(&id);
        let held: Vec<_> = held
            .into_iter()
            .flat_map(|held| held.keys().cloned())
            .collect();
        let announced = self.claims.announced.get(&id).cloned().unwrap_or_default();
        assert_eq!(held, announced, "{id}: others know of other claims");
        held
    }
}
