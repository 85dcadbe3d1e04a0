//! Owns the second book-keeping of proposals: what is durable, who decided, how often each ran and ended.
//! Must not know how events are drawn.

use std::collections::BTreeMap;

use model::{OperationId, ParticipantId, ProposalState};
use topic::{Cause, Effect, Record};

/// One proposal as an outsider knows it. It is kept when it is over.
#[derive(Debug, Clone)]
pub(crate) struct Deal {
    pub(crate) by: ParticipantId,
    pub(crate) method: &'static str,
    /// The upstream's own name or URI.
    pub(crate) own: String,
    /// The public spelling, of a call that was held.
    pub(crate) public: Option<String>,
    pub(crate) to: Vec<ParticipantId>,
    pub(crate) expires_ms: u64,
    /// The call behind it, or the one that carries it out.
    pub(crate) held: Option<OperationId>,
    /// What the journal was asked to write and has not answered.
    pub(crate) waiting: Option<Record>,
    /// What the journal has.
    pub(crate) durable: Vec<Record>,
    pub(crate) proposed: bool,
    pub(crate) approved: u32,
    pub(crate) runs: u32,
    pub(crate) over: bool,
    /// It ended, and the journal could not be told.
    pub(crate) end_lost: bool,
}

/// What the event of one step was, as far as proposals are concerned.
#[derive(Debug, Default, Clone)]
pub(crate) enum Turn {
    #[default]
    Other,
    Propose(OperationId),
    /// Who decided, and whether it could have made the call.
    Decide(OperationId, ParticipantId, bool),
    Stored(OperationId),
    NotStored(OperationId),
    /// An operation that is to carry out a proposal, and the name that it is about.
    Execute(OperationId, OperationId, String),
}

#[derive(Debug, Default)]
pub(crate) struct Deals {
    pub(crate) all: BTreeMap<OperationId, Deal>,
}

impl Deals {
    /// Those that are open, and those that are over.
    pub(crate) fn which(&self, fits: impl Fn(&Deal) -> bool) -> Vec<OperationId> {
        self.all.iter().filter(|(_, deal)| fits(deal)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn open_len(&self) -> usize {
        self.all.values().filter(|deal| !deal.over).count()
    }

    /// Enters one effect and refuses what must not be.
    pub(crate) fn enter(&mut self, effect: &Effect, turn: &Turn, now_ms: u64) {
        match effect {
            Effect::Store { proposal, what } => self.store(*proposal, what, turn, now_ms),
            Effect::Proposed { proposal } => {
                let deal = self.written(*proposal, turn, &|what| *what == Record::Opened);
                assert!(!deal.proposed, "{proposal} was told twice");
                deal.proposed = true;
            }
            Effect::NotProposed { proposal, cause, .. } => {
                assert!(matches!(turn, Turn::Propose(id) | Turn::NotStored(id) if id == proposal));
                let deal = self.all.get_mut(proposal).unwrap();
                assert!(!deal.over && !deal.proposed, "{proposal} was told of: {cause:?}");
                deal.over = true;
            }
            Effect::Approved { proposal, by } => {
                let approval =
                    Record::Decided { by: by.clone(), state: ProposalState::Running, reason: None };
                let deal = self.written(*proposal, turn, &|what| *what == approval);
                assert!(deal.proposed, "{proposal} was approved before it was told of");
                assert_ne!(*by, deal.by, "nobody approves their own");
                deal.approved += 1;
                assert_eq!(deal.approved, 1, "{proposal} was approved twice");
            }
            Effect::Told { proposal, by, state, .. } => self.told(*proposal, by, *state, turn),
            Effect::RefuseDecision { proposal, by, cause, .. } => {
                self.refused(*proposal, by, *cause, turn);
            }
            _ => {}
        }
    }

    fn store(&mut self, id: OperationId, what: &Record, turn: &Turn, now_ms: u64) {
        let deal = self.all.get_mut(&id).expect("only what was proposed is written down");
        assert!(!deal.over, "{id} is over");
        assert_eq!(deal.waiting, None, "one thing at a time is written down");
        deal.waiting = Some(what.clone());
        let last = deal.durable.last();
        match what {
            Record::Opened => assert!(matches!(turn, Turn::Propose(own) if *own == id) && last.is_none()),
            Record::Decided { by, state: ProposalState::Withdrawn, .. } => {
                assert_eq!((by, last), (&deal.by, Some(&Record::Opened)));
            }
            Record::Decided { by, .. } => {
                assert_eq!(last, Some(&Record::Opened));
                let Turn::Decide(own, who, could) = turn else { panic!("{id} was decided by nobody") };
                assert_eq!((own, who), (&id, by));
                assert!(*could && *by != deal.by, "{by} decided without leave");
                assert!(now_ms < deal.expires_ms && deal.proposed, "too late or too soon");
            }
            Record::Ended { state: ProposalState::Expired, .. } => {
                assert!(deal.expires_ms <= now_ms && last == Some(&Record::Opened), "{id} expired early");
            }
            Record::Ended { state, .. } => {
                let approved = matches!(last, Some(Record::Decided { state: ProposalState::Running, .. }));
                assert!(approved, "{id} ended without an approval");
                assert_eq!(deal.approved == 0, *state == ProposalState::Withdrawn);
            }
        }
    }

    /// The deal of which this record was written down in this very step.
    fn written(&mut self, id: OperationId, turn: &Turn, what: &dyn Fn(&Record) -> bool) -> &mut Deal {
        assert!(matches!(turn, Turn::Stored(own) if *own == id), "{id}: told before it was written down");
        let deal = self.all.get_mut(&id).unwrap();
        assert!(deal.durable.last().is_some_and(what), "{id}: {:?}", deal.durable);
        deal
    }

    fn told(&mut self, id: OperationId, by: &ParticipantId, state: ProposalState, turn: &Turn) {
        let deal = self.all.get_mut(&id).unwrap();
        assert_eq!(*by, deal.by);
        assert!(!deal.over, "{id} ended twice");
        deal.over = true;
        let end = |what: &Record| match what {
            Record::Opened => None,
            Record::Decided { state, .. } | Record::Ended { state, .. } => Some(*state),
        };
        match turn {
            Turn::Stored(own) => {
                assert_eq!((*own, deal.durable.last().and_then(end)), (id, Some(state)));
            }
            Turn::NotStored(own) => {
                assert_eq!(*own, id);
                let own_will = [ProposalState::Rejected, ProposalState::Running];
                assert!(
                    state.is_over() && !own_will.contains(&state),
                    "a decision that was not written down"
                );
                deal.end_lost = true;
            }
            other => panic!("{id} ended in {other:?}"),
        }
    }

    fn refused(&self, id: OperationId, by: &ParticipantId, cause: Cause, turn: &Turn) {
        let deal = self.all.get(&id);
        match turn {
            Turn::Decide(own, who, could) => {
                assert_eq!((*own, who), (id, by));
                if cause == Cause::NotAdmitted {
                    assert!(!*could || deal.is_some_and(|deal| deal.by != *by));
                }
            }
            Turn::Stored(own) => assert_eq!((*own, cause), (id, Cause::Moot)),
            Turn::NotStored(own) => assert_eq!((*own, cause), (id, Cause::LogUnavailable)),
            other => panic!("a refusal in {other:?}"),
        }
    }

    /// A proposal whose call is over is on its way to its end, unless it waits for something else.
    pub(crate) fn check_calls(&self, is_open: impl Fn(OperationId) -> bool) {
        for (id, deal) in self.all.iter().filter(|(_, deal)| !deal.over && deal.waiting.is_none()) {
            assert!(deal.held.is_none_or(&is_open), "{id} goes on without its call");
        }
    }

    /// The journal answers: what it was asked to write is there, or is not.
    pub(crate) fn journal(&mut self, id: OperationId, stored: bool) {
        let deal = self.all.get_mut(&id).unwrap();
        let what = deal.waiting.take();
        deal.durable.extend(what.filter(|_| stored));
    }

    /// An upstream gets what was proposed: approved before, once, and nothing else.
    pub(crate) fn runs(&mut self, id: OperationId, call: OperationId, upstream: &ParticipantId, own: &str) {
        let deal = self.all.get_mut(&id).unwrap();
        deal.held = Some(call);
        assert!(deal.approved == 1 && !deal.over, "{id} runs unapproved");
        deal.runs += 1;
        assert_eq!(deal.runs, 1, "{id} runs twice");
        assert!(deal.to.contains(upstream) && deal.own == own, "{id} runs as something else");
    }
}
