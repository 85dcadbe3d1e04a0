//! Owns the book of proposals that are not over: what each is about, and how far it has come.
//! Must not know effects; whoever takes a proposal out tells how it ended.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

use model::{Digest, OperationId, ParticipantId, ProposalState};

use crate::{idmap::IdMap, operations::Method};

/// How far a proposal has come. What must be durable is done in two steps, so three of these wait for the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Its opening is being written down. Nobody was told of it.
    Opening,
    /// Open to decisions.
    Pending,
    /// A decision is being written down. Nobody was told of it.
    Deciding(Ruling),
    /// Approved. It runs, once.
    Running,
    /// Its end is being written down.
    Ending(ProposalState, Option<Arc<str>>),
}

/// What was decided, by whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) by: ParticipantId,
    /// [`ProposalState::Running`], [`ProposalState::Rejected`] or [`ProposalState::Withdrawn`].
    pub(crate) state: ProposalState,
    pub(crate) reason: Option<Arc<str>>,
    /// Nobody asked for it: the topic takes the proposal back itself, whether or not that can be written down.
    pub(crate) forced: bool,
}

/// One proposal that is not over.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// Its number in the order of opening.
    pub(crate) order: u64,
    pub(crate) by: ParticipantId,
    pub(crate) method: Method,
    /// The upstream's own name or URI.
    pub(crate) context: Option<Arc<str>>,
    /// The public name or URI, of a call that is held.
    pub(crate) public: Option<Arc<str>>,
    /// Whom it names; nobody is anybody.
    pub(crate) to: Box<[ParticipantId]>,
    pub(crate) digest: Digest,
    pub(crate) expires_ms: u64,
    /// The call that is held behind it, and later the one that carries it out.
    pub(crate) call: Option<OperationId>,
    pub(crate) phase: Phase,
    /// It is to be taken back as soon as what is being written down is written, for this reason.
    pub(crate) recalled: Option<Arc<str>>,
}

impl Proposal {
    /// Its addressees as the matcher takes them.
    pub(crate) fn addressees(&self) -> Vec<&str> {
        self.to.iter().map(ParticipantId::as_str).collect()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.phase == Phase::Running
    }

    /// Where it stands, as it may be told.
    pub(crate) fn state(&self) -> ProposalState {
        match &self.phase {
            Phase::Opening | Phase::Pending | Phase::Deciding(_) => ProposalState::Pending,
            Phase::Running | Phase::Ending(ProposalState::Completed | ProposalState::Failed, _) => {
                ProposalState::Running
            }
            Phase::Ending(..) => ProposalState::Pending,
        }
    }
}

/// All proposals of the topic that are not over.
#[derive(Debug, Default)]
pub(crate) struct Proposals {
    all: IdMap<OperationId, Proposal>,
    /// How many each participant has.
    counts: HashMap<ParticipantId, usize>,
    /// The pending ones, by the time at which they expire.
    pending: BTreeSet<(u64, OperationId)>,
    opened: u64,
}

impl Proposals {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// How many this participant has.
    pub(crate) fn count(&self, by: &ParticipantId) -> usize {
        self.counts.get(by).copied().unwrap_or_default()
    }

    pub(crate) fn get(&self, id: OperationId) -> Option<&Proposal> {
        self.all.get(&id)
    }

    /// For everything but the phase, which [`Proposals::turn`] changes.
    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Proposal> {
        self.all.get_mut(&id)
    }

    /// Enters one and numbers it.
    pub(crate) fn insert(&mut self, id: OperationId, mut proposal: Proposal) {
        proposal.order = self.opened;
        self.opened += 1;
        *self.counts.entry(proposal.by.clone()).or_default() += 1;
        if proposal.phase == Phase::Pending {
            self.pending.insert((proposal.expires_ms, id));
        }
        self.all.insert(id, proposal);
    }

    /// Turns one to another phase and gives back the older one.
    pub(crate) fn turn(&mut self, id: OperationId, phase: Phase) -> Option<Phase> {
        let proposal = self.all.get_mut(&id)?;
        let key = (proposal.expires_ms, id);
        if phase == Phase::Pending {
            self.pending.insert(key);
        } else {
            self.pending.remove(&key);
        }
        Some(std::mem::replace(&mut proposal.phase, phase))
    }

    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Proposal> {
        let proposal = self.all.remove(&id)?;
        self.pending.remove(&(proposal.expires_ms, id));
        if let Some(count) = self.counts.get_mut(&proposal.by) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&proposal.by);
            }
        }
        Some(proposal)
    }

    /// The pending one that expires first, with the time at which it does.
    pub(crate) fn first_to_expire(&self) -> Option<(u64, OperationId)> {
        self.pending.first().copied()
    }

    /// Those of one participant, in the order of opening.
    pub(crate) fn of(&self, by: &ParticipantId) -> Vec<OperationId> {
        if self.count(by) == 0 {
            return Vec::new();
        }
        self.in_order().filter(|(_, proposal)| proposal.by == *by).map(|(id, _)| id).collect()
    }

    /// All of them, in the order of opening.
    pub(crate) fn in_order(&self) -> impl Iterator<Item = (OperationId, &Proposal)> {
        let mut all: Vec<(OperationId, &Proposal)> = self.all.iter().map(|(id, own)| (*id, own)).collect();
        all.sort_unstable_by_key(|(_, proposal)| proposal.order);
        all.into_iter()
    }
}
