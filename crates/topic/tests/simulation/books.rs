//! Owns the second book-keeping: who is in, what is open, and what an effect may say.
//! Must not know how events are drawn.

use std::collections::{BTreeMap, BTreeSet};

use model::{LinkId, OperationId, Outcome, ParticipantId};
use topic::{Effect, Effects};

/// One open operation as an outsider knows it.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) ask: bool,
    pub(crate) link: LinkId,
    pub(crate) upstream: ParticipantId,
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Every link and whose it is.
    pub(crate) links: BTreeMap<LinkId, ParticipantId>,
    pub(crate) upstreams: BTreeSet<ParticipantId>,
    pub(crate) open: BTreeMap<OperationId, Open>,
    pub(crate) settled: BTreeSet<OperationId>,
}

/// What one step was about, as far as effects may speak of something new.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) request: Option<(OperationId, LinkId)>,
    pub(crate) ask: Option<(OperationId, ParticipantId)>,
    /// Links that this step takes away, without or with an `Ended`.
    pub(crate) leaving: Vec<LinkId>,
    /// The only operation that this step may settle with an outcome.
    pub(crate) ending: Option<(OperationId, Outcome)>,
}

impl Books {
    fn present(&self, participant: &ParticipantId) -> bool {
        self.links.values().any(|own| own == participant)
    }

    /// Enters the effects of one step, in order, and refuses whatever must not be.
    pub(crate) fn enter(&mut self, effects: &Effects, expected: &Expected) {
        for effect in effects {
            self.enter_one(effect, expected);
        }
        // What a link that went had open was cancelled with it; what it owed is settled at the other side.
        self.links.retain(|link, _| !expected.leaving.contains(link));
        let gone: Vec<OperationId> = self
            .open
            .iter()
            .filter(|(_, open)| {
                (!open.ask && !self.links.contains_key(&open.link))
                    || (open.ask && !self.present(&open.upstream))
            })
            .map(|(id, _)| *id)
            .collect();
        for id in gone {
            let open = self.open.remove(&id).unwrap();
            assert!(self.settled.insert(id), "{id} settled twice");
            let told = effects.iter().any(|effect| match effect {
                Effect::CancelAt { operation, .. } => *operation == id && !open.ask,
                Effect::CancelAsk { operation, .. } => *operation == id && open.ask,
                _ => false,
            });
            let other_side =
                if open.ask { self.links.contains_key(&open.link) } else { self.present(&open.upstream) };
            assert!(told || !other_side, "{id} was dropped, and the other side never heard of it");
        }
    }

    fn enter_one(&mut self, effect: &Effect, expected: &Expected) {
        match effect {
            Effect::Joined { .. } | Effect::NotJoined { .. } => {}
            Effect::Publish { .. } | Effect::Withhold { .. } | Effect::Regranted { .. } => {}
            Effect::Hold { .. } | Effect::Store { .. } | Effect::Proposed { .. } => {}
            Effect::NotProposed { .. } | Effect::Approved { .. } | Effect::Told { .. } => {}
            Effect::RefuseDecision { .. } => {}
            Effect::Left { participant } => {
                let left = |link: &LinkId| expected.leaving.contains(link);
                self.links.retain(|link, own| own != participant || !left(link));
                assert!(!self.present(participant), "{participant} left with links");
            }
            Effect::Ended { link, .. } => {
                assert!(expected.leaving.contains(link), "{link} was ended without cause");
                assert!(self.links.remove(link).is_some(), "{link} ended twice");
            }
            Effect::Deliver { operation, from, to, .. } => {
                assert_eq!(expected.request, Some((*operation, *from)));
                assert!(self.present(to), "delivered to {to}, who is not here");
                let open = Open { ask: false, link: *from, upstream: to.clone() };
                assert!(self.open.insert(*operation, open).is_none());
            }
            Effect::DeliverAsk { operation, from, to, about } => {
                assert_eq!(expected.ask, Some((*operation, from.clone())));
                self.knows_link(*to, expected);
                if let Some(call) = about {
                    let call = &self.open[call];
                    assert_eq!((call.ask, call.link, &call.upstream), (false, *to, from));
                }
                let open = Open { ask: true, link: *to, upstream: from.clone() };
                assert!(self.open.insert(*operation, open).is_none());
            }
            Effect::Settle { operation, to, outcome } => {
                assert_eq!(expected.ending, Some((*operation, *outcome)));
                self.settle_call(*operation, *to, expected);
            }
            Effect::Refuse { operation, to, .. } if expected.request == Some((*operation, *to)) => {
                assert!(self.settled.insert(*operation), "{operation} refused twice");
            }
            Effect::Refuse { operation, to, .. } => self.settle_call(*operation, *to, expected),
            Effect::SettleAsk { operation, to, outcome } => {
                assert_eq!(expected.ending, Some((*operation, *outcome)));
                self.settle_ask(*operation, to);
            }
            Effect::RefuseAsk { operation, to, .. }
                if expected.ask.as_ref() == Some(&(*operation, to.clone())) =>
            {
                assert!(self.settled.insert(*operation), "{operation} refused twice");
            }
            Effect::RefuseAsk { operation, to, .. } => self.settle_ask(*operation, to),
            Effect::CancelAt { operation, upstream } => {
                let open = &self.open[operation];
                assert_eq!((open.ask, &open.upstream), (false, upstream));
                assert!(self.present(upstream), "{upstream} is not here");
            }
            Effect::CancelAsk { operation, to } => {
                let open = &self.open[operation];
                assert_eq!((open.ask, open.link), (true, *to));
                self.knows_link(*to, expected);
            }
            Effect::ListChanged { links, .. } => {
                assert!(!links.is_empty() && links.is_sorted());
                for link in links {
                    self.knows_link(*link, expected);
                    assert!(!self.upstreams.contains(&self.links[link]), "an upstream sees no lists");
                }
            }
        }
    }

    fn knows_link(&self, link: LinkId, expected: &Expected) {
        assert!(self.links.contains_key(&link), "{link} is not here");
        let leaving_caller = expected.leaving.contains(&link);
        assert!(!leaving_caller, "{link} is leaving, and is named");
    }

    fn settle_call(&mut self, operation: OperationId, to: LinkId, expected: &Expected) {
        let open = self.open.remove(&operation).expect("what is settled is open");
        assert_eq!((open.ask, open.link), (false, to));
        self.knows_link(to, expected);
        assert!(self.settled.insert(operation), "{operation} settled twice");
    }

    fn settle_ask(&mut self, operation: OperationId, to: &ParticipantId) {
        let open = self.open.remove(&operation).expect("what is settled is open");
        assert_eq!((open.ask, &open.upstream), (true, to));
        assert!(self.present(to), "{to} is not here");
        assert!(self.settled.insert(operation), "{operation} settled twice");
    }
}
