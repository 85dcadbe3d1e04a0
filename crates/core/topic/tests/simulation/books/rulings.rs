//! Decisions: each counts or is refused, once.

use model::{OperationId, ParticipantId, ProposalState};
use topic::{AMENDMENTS_MAX, Cause, PROPOSAL_EXTENSIONS_MAX};

use super::{
    Books,
    deals::{Deal, Fulfilment, Written},
};
use crate::numbers::RefusedDecision;
use crate::turn::{Decided, Turn};

impl Books {
    /// The decision that a step brings, or one that waited for the opening.
    pub(crate) fn decision(&self, id: OperationId, turn: &Turn) -> Option<Decided> {
        let brought = turn
            .decision
            .as_ref()
            .filter(|(about, _)| *about == id)
            .map(|(_, own)| own.clone());
        let queued = || {
            self.deals.get(&id)?.queued.clone().filter(|_| {
                let is_open = !self.deals[&id].durable.is_empty();
                turn.journal == Some((id, true)) || is_open && turn.journal == Some((id, false))
            })
        };
        brought.or_else(queued)
    }

    /// A decision is written: its participant may decide, in time, about the request that it saw.
    pub(crate) fn check_decision(
        &mut self,
        id: OperationId,
        deal: &Deal,
        (by, state, ruling): (&ParticipantId, ProposalState, u64),
        turn: &Turn,
    ) {
        let decided = self.decision(id, turn).expect("no participant decided");
        assert_eq!((&decided.by, decided.ruling), (by, ruling));
        assert_eq!(decided.withdraws, state == ProposalState::Withdrawn);
        if decided.withdraws || decided.amends.is_some() {
            assert_eq!(*by, deal.by, "only its proposer withdraws or amends");
            let is_good = self.is_in_scope(decided.token.as_ref(), deal);
            assert!(is_good, "done with a token that is not good for it");
        } else {
            assert_ne!(*by, deal.by, "no participant decides about its own");
            assert!(!self.braked.contains(by), "{by} is paused, and decides");
            assert!(self.could(&decided, deal), "{by} decided without leave");
            assert!(
                state != ProposalState::Running || decided.is_about(deal),
                "not what was shown"
            );
            let are_away = self.are_away(deal, &decided.named);
            assert!(
                state != ProposalState::Running || !are_away,
                "those that would carry it out are away"
            );
        }
        assert!(
            !deal.is_late(self.now_ms, self.wall_ms) && (deal.proposed || turn.journal.is_some()),
            "too late or too soon"
        );
        let by = decided.by.clone();
        let fulfils = decided.fulfilment.map(|envelope| Fulfilment {
            envelope,
            by,
            order: 0,
        });
        let deal = self.deals.get_mut(&id).unwrap();
        (deal.requested, deal.named, deal.fulfils) = (decided.requested, decided.named, fulfils);
    }

    /// A decision is entered: it must count or be refused.
    pub(crate) fn decides(&mut self, id: OperationId, ruling: u64) {
        assert!(self.rulings.insert(ruling, id).is_none());
    }

    pub(crate) fn ruled(&mut self, ruling: u64, turn: &Turn) {
        let id = self
            .rulings
            .remove(&ruling)
            .expect("a decision is ruled once");
        assert_eq!(
            turn.journal,
            Some((id, true)),
            "a decision counts once it is on disk"
        );
        let deal = &self.deals[&id];
        let own = match deal.durable.last() {
            Some(Written::Decided { ruling, .. }) => *ruling,
            _ => deal.counted.last().map(|one| one.ruling),
        };
        let all = [own, deal.extended, deal.amended];
        assert!(all.contains(&Some(ruling)), "{id} was not decided");
    }

    pub(crate) fn refused_decision(&mut self, refused: &RefusedDecision, turn: &Turn) {
        let RefusedDecision {
            proposal: id,
            by,
            ruling,
            answered,
            cause,
            ..
        } = refused;
        let id = *id;
        let cause = *cause;
        assert_eq!(
            self.rulings.remove(ruling),
            Some(id),
            "a decision is refused once"
        );
        let decided = self.decision(id, turn);
        // The ruling that was written, or the one that waited for it.
        let decided = decided.filter(|decided| decided.ruling == *ruling);
        if self.is_displaced(refused, turn) {
            let brought = turn.decision.as_ref().map(|(_, brought)| brought);
            let ends_it = brought.is_some_and(|one| !one.approves && !one.changes());
            let expected = if ends_it {
                Cause::Decided
            } else {
                Cause::Limit
            };
            assert_eq!(cause, expected);
            self.deals.get_mut(&id).unwrap().queued = None;
            return self.count("displaced");
        }
        if cause == Cause::NotAdmitted && self.deals[&id].void.contains(ruling) {
            let deal = self.deals.get_mut(&id).unwrap();
            deal.queued.take_if(|one| one.ruling == *ruling);
            return self.count("refused for a former bearer");
        }
        let calls = turn.calls.keys().any(|call| self.returned.contains(call));
        assert!(
            !answered || calls || turn.journal.is_some(),
            "no call was refused with it"
        );
        let Some(deal) = self
            .deals
            .get(&id)
            .filter(|deal| deal.is_known() || turn.journal.is_some())
        else {
            return assert_eq!(cause, Cause::Unknown);
        };
        match turn.journal {
            // The record could not be written, or the decision does not count.
            Some((about, stored)) if decided.is_none() => {
                assert_eq!(about, id);
                let expected = if stored {
                    [Cause::Moot, Cause::Moot]
                } else {
                    [Cause::LogUnavailable, Cause::Unknown]
                };
                assert!(expected.contains(&cause), "{cause:?}");
                assert!(cause != Cause::Moot || deal.recalled);
            }
            Some(_) | None => {
                let decided = decided.expect("no participant decided");
                assert_eq!(decided.by, *by);
                self.check_refusal(deal, &decided, cause);
            }
        }
        let deal = self.deals.get_mut(&id).unwrap();
        let is_queued = deal
            .queued
            .as_ref()
            .is_some_and(|one| one.ruling == *ruling);
        if turn.journal.is_some_and(|(about, _)| about == id) && is_queued {
            deal.queued = None;
        }
    }

    /// Whether a decision that waited for the journal makes way for one of this step.
    fn is_displaced(&self, refused: &RefusedDecision, turn: &Turn) -> bool {
        let Some(deal) = self.deals.get(&refused.proposal) else {
            return false;
        };
        let (Some(queued), Some((_, brought))) = (&deal.queued, &turn.decision) else {
            return false;
        };
        let gives_way = if queued.extends {
            !brought.extends
        } else {
            let ends_nothing = queued.amends.is_some() || queued.approves && deal.approvals > 1;
            ends_nothing && !brought.approves && !brought.changes()
        };
        queued.ruling == refused.ruling && gives_way && turn.journal.is_none()
    }

    fn check_refusal(&self, deal: &Deal, decided: &Decided, cause: Cause) {
        let could = self.could(decided, deal);
        let own = deal.by == decided.by;
        let is_good = self.is_in_scope(decided.token.as_ref(), deal);
        let pending = deal.is_pending() && !deal.recalled;
        match cause {
            Cause::Paused => assert!(!own && self.braked.contains(&decided.by)),
            Cause::Own => {
                assert!(own && is_good && !decided.withdraws && decided.amends.is_none());
            }
            Cause::NotAdmitted if own => assert!(!is_good),
            Cause::NotAdmitted => {
                assert!(decided.withdraws || decided.amends.is_some() || !could);
            }
            Cause::Expired => assert!(deal.is_late(self.now_ms, self.wall_ms) && pending),
            Cause::Away => {
                assert!(pending && decided.is_about(deal) && self.are_away(deal, &decided.named))
            }
            Cause::Differs | Cause::Redefined => assert!(!decided.is_about(deal) && pending),
            Cause::Counted => {
                let own = deal.counted.iter().find(|one| one.by == decided.by);
                assert!(
                    own.is_some_and(|own| self.still_counts(deal, own)),
                    "it is new"
                );
            }
            Cause::Amended => assert!(deal.amendments >= AMENDMENTS_MAX),
            Cause::Extended => assert!(deal.extensions >= PROPOSAL_EXTENSIONS_MAX),
            Cause::Mismatch => assert!(decided.fulfilment.is_some()),
            Cause::Decided => assert!(!pending, "it is open: {deal:?}"),
            Cause::Limit
                if decided
                    .amends
                    .is_some_and(|new| !self.has_room_for(deal, new)) => {}
            Cause::Limit => {
                let first = deal.queued.as_ref().expect("another one waits");
                let is_one_of_several = deal.approvals > 1 && first.approves;
                assert!(decided.approves || decided.changes());
                assert!(first.changes() || is_one_of_several);
            }
            other => panic!("refused because of {other:?}"),
        }
    }
}
