//! Owns the second book-keeping: who is in, what is open, and what an effect may say.
//! Must not know how events are drawn.

use std::collections::{BTreeMap, BTreeSet};

use model::{LinkId, OperationId, Outcome, ParticipantId};
use topic::{Cause, Ear, Effect, Effects, End};

use crate::deals::{Deals, Turn};

/// One open operation as an outsider knows it.
#[derive(Debug, Clone)]
pub(crate) struct Open {
    pub(crate) ask: bool,
    pub(crate) link: LinkId,
    pub(crate) upstream: ParticipantId,
    /// It waits for a proposal; nobody has it yet.
    pub(crate) held: bool,
    /// The proposal that it waits for or carries out.
    pub(crate) proposal: Option<OperationId>,
    pub(crate) method: &'static str,
    pub(crate) own: String,
    pub(crate) public: String,
}

impl Open {
    fn new(ask: bool, link: LinkId, upstream: &ParticipantId) -> Self {
        let (own, public) = <_>::default();
        Self {
            ask,
            link,
            upstream: upstream.clone(),
            held: false,
            proposal: None,
            method: "tools/call",
            own,
            public,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Books {
    /// Every link and whose it is.
    pub(crate) links: BTreeMap<LinkId, ParticipantId>,
    pub(crate) upstreams: BTreeSet<ParticipantId>,
    pub(crate) open: BTreeMap<OperationId, Open>,
    pub(crate) settled: BTreeSet<OperationId>,
    /// What each link that listens hears.
    pub(crate) ears: BTreeMap<LinkId, Ear>,
    /// Who is here, as far as joins and leaves tell.
    pub(crate) told_here: BTreeSet<ParticipantId>,
    pub(crate) deals: Deals,
    /// How often each effect was seen.
    pub(crate) tally: BTreeMap<&'static str, usize>,
    /// Who left in this step, perhaps to come back in it.
    pub(crate) left: BTreeSet<ParticipantId>,
    /// Which links this step ends.
    pub(crate) ending: BTreeSet<LinkId>,
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
    /// The link that comes in, entered before the step.
    pub(crate) joining: Option<LinkId>,
    /// What the step is about, as far as proposals are concerned.
    pub(crate) turn: Turn,
}

impl Books {
    fn present(&self, participant: &ParticipantId) -> bool {
        self.links.values().any(|own| own == participant)
    }

    /// Enters the effects of one step, in order, and refuses whatever must not be.
    pub(crate) fn enter(&mut self, effects: &Effects, expected: &Expected, now_ms: u64) {
        self.left.clear();
        let ended = |effect: &Effect| match effect {
            Effect::Ended { link, .. } => Some(*link),
            _ => None,
        };
        self.ending = effects.iter().filter_map(ended).collect();
        for effect in effects {
            *self.tally.entry(name(effect)).or_default() += 1;
            self.deals.enter(effect, &expected.turn, now_ms);
            self.enter_one(effect, expected);
        }
        // What a link that went had open was cancelled with it; what it owed is settled at the other side.
        self.links.retain(|link, _| !expected.leaving.contains(link));
        self.ears.retain(|link, _| self.links.contains_key(link));
        let gone: Vec<OperationId> = self
            .open
            .iter()
            .filter(|(_, open)| {
                (!open.ask && !self.links.contains_key(&open.link))
                    || (open.ask && (!self.present(&open.upstream) || self.left.contains(&open.upstream)))
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
            let stayed = self.present(&open.upstream) && !self.left.contains(&open.upstream);
            let other_side = if open.ask { self.links.contains_key(&open.link) } else { stayed };
            assert!(
                told || open.held || !other_side,
                "{id} was dropped, and the other side never heard of it"
            );
        }
    }

    fn enter_one(&mut self, effect: &Effect, expected: &Expected) {
        match effect {
            Effect::Joined { participant } => {
                assert!(self.told_here.insert(participant.clone()), "{participant} joined twice");
            }
            Effect::NotJoined { .. } => {}
            Effect::Publish { .. } | Effect::Withhold { .. } => {}
            Effect::Regranted { link } => {
                assert!(self.ears.contains_key(link) && expected.joining != Some(*link));
            }
            Effect::Hold { operation, from, to, .. } => {
                assert_eq!(expected.request, Some((*operation, *from)));
                assert!(self.present(to), "held for {to}, who is not here");
                let open = Open { held: true, ..Open::new(false, *from, to) };
                assert!(self.open.insert(*operation, open).is_none());
            }
            Effect::Store { .. } | Effect::Proposed { .. } => {}
            Effect::NotProposed { .. } | Effect::Approved { .. } | Effect::Told { .. } => {}
            Effect::RefuseDecision { .. } => {}
            Effect::Left { participant } => {
                let left = |link: &LinkId| expected.leaving.contains(link);
                self.links.retain(|link, own| own != participant || !left(link));
                let mut links = self.links.iter().filter(|(link, _)| expected.joining != Some(**link));
                assert!(links.all(|(_, own)| own != participant), "{participant} left with links");
                assert!(self.told_here.remove(participant), "{participant} left twice");
                self.left.insert(participant.clone());
            }
            Effect::Ended { link, why } => {
                assert_eq!(*why == End::Replaced, expected.joining.is_some());
                assert!(expected.leaving.contains(link), "{link} was ended without cause");
                assert!(self.links.remove(link).is_some(), "{link} ended twice");
            }
            Effect::Deliver { operation, from, to, own } => {
                assert!(self.present(to), "delivered to {to}, who is not here");
                self.deliver(*operation, *from, to, own.as_deref(), expected);
            }
            Effect::DeliverAsk { operation, from, to, about } => {
                assert_eq!(expected.ask, Some((*operation, from.clone())));
                self.knows_link(*to, expected);
                if let Some(call) = about {
                    let call = &self.open[call];
                    assert_eq!((call.ask, call.link, &call.upstream), (false, *to, from));
                }
                let open = Open::new(true, *to, from);
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
                assert_eq!((open.ask, open.held, &open.upstream), (false, false, upstream));
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

    fn deliver(
        &mut self,
        operation: OperationId,
        from: LinkId,
        to: &ParticipantId,
        own: Option<&str>,
        expected: &Expected,
    ) {
        match &expected.turn {
            // What was held goes on, in the step that tells that its approval is written down.
            &Turn::Stored(proposal) => {
                let open = self.open.get_mut(&operation).unwrap();
                assert_eq!((open.link, &open.upstream, open.proposal), (from, to, Some(proposal)));
                assert!(std::mem::take(&mut open.held), "{operation} was not held");
                let own = own.unwrap_or(&open.public);
                self.deals.runs(proposal, operation, to, own);
                *self.tally.entry("let go").or_default() += 1;
                return;
            }
            Turn::Execute(new, proposal, own) => {
                assert_eq!(*new, operation);
                self.deals.runs(*proposal, operation, to, own);
                *self.tally.entry("carried out").or_default() += 1;
            }
            _ => {}
        }
        assert_eq!(expected.request, Some((operation, from)));
        let proposal = match &expected.turn {
            Turn::Execute(_, proposal, _) => Some(*proposal),
            _ => None,
        };
        let open = Open { proposal, ..Open::new(false, from, to) };
        assert!(self.open.insert(operation, open).is_none());
    }

    /// After a crash: whoever was here is gone, and what was open is over.
    pub(crate) fn forget(&mut self) {
        self.links.clear();
        self.ears.clear();
        self.told_here.clear();
        self.settled.extend(std::mem::take(&mut self.open).into_keys());
    }

    fn knows_link(&self, link: LinkId, expected: &Expected) {
        assert!(self.links.contains_key(&link), "{link} is not here");
        // Until its end is told it may be.
        let gone = expected.leaving.contains(&link) && !self.ending.contains(&link);
        assert!(!gone, "{link} is leaving, and is named");
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

/// What an effect is called in the tally. What must be told apart is.
fn name(effect: &Effect) -> &'static str {
    match effect {
        Effect::Joined { .. } => "joined",
        Effect::NotJoined { .. } => "not joined",
        Effect::Left { .. } => "left",
        Effect::Ended { why: End::Revoked, .. } => "revoked",
        Effect::Ended { why: End::Replaced, .. } => "replaced",
        Effect::Publish { .. } => "published",
        Effect::Withhold { .. } => "withheld",
        Effect::Regranted { .. } => "regranted",
        Effect::Deliver { .. } => "delivered",
        Effect::Hold { .. } => "held",
        Effect::Store { .. } => "stored",
        Effect::Proposed { .. } => "proposed",
        Effect::NotProposed { .. } => "not proposed",
        Effect::Approved { .. } => "approved",
        Effect::Told { state, .. } => state.as_str(),
        Effect::RefuseDecision { cause, .. } => match cause {
            Cause::Own => "own",
            Cause::Differs => "differs",
            Cause::Decided => "decided",
            Cause::Moot => "moot",
            Cause::NotAdmitted => "not admitted",
            Cause::LogUnavailable => "log unavailable",
            _ => "unknown",
        },
        Effect::DeliverAsk { .. } => "asked",
        Effect::Settle { .. } => "settled",
        Effect::Refuse { cause: Cause::Rejected, .. } => "held and rejected",
        Effect::Refuse { cause: Cause::TakenBack, .. } => "held and taken back",
        Effect::Refuse { .. } => "refused",
        Effect::SettleAsk { .. } => "ask settled",
        Effect::RefuseAsk { .. } => "ask refused",
        Effect::CancelAt { .. } => "cancelled",
        Effect::CancelAsk { .. } => "ask cancelled",
        Effect::ListChanged { .. } => "list changed",
    }
}
