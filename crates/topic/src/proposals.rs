//! Proposals of a topic: terms and phase of each, those that are over, and the digests of their envelopes.

use std::{
    collections::{BTreeSet, HashMap as Map, VecDeque},
    sync::Arc,
};

use foldhash::{HashMap, HashMapExt};
use model::{
    Capabilities, Digest, KindRef, LinkId, Method, OperationId, Outcome, ParticipantId, ProposalState,
};

use crate::{
    Handles,
    event::{Decision, Terms},
};

/// The most ended proposals that queries still return.
pub const ENDED_PROPOSALS_MAX: usize = 1000;
/// The most requests of a proposer that wait for the withdrawal of its own proposal.
pub(crate) const DEFERRED_MAX: usize = 16;

/// The phase of a proposal. A change that must be on disk first takes two steps, so three phases wait for the journal.
#[derive(Debug, Clone)]
pub(crate) enum Phase<H: Handles> {
    /// Its opening is being written.
    Opening,
    /// Open to decisions.
    Pending,
    /// A decision is being written.
    Deciding(Box<Ruling<H>>),
    /// Approved: it runs, once.
    Running,
    /// Its end is being written.
    Ending(ProposalState, Option<Arc<str>>),
}

/// A decision that a participant made.
#[derive(Debug, Clone)]
pub(crate) struct Ruling<H: Handles> {
    pub(crate) by: ParticipantId,
    /// The capabilities of `by`, if it is not in the topic.
    pub(crate) outside: Option<Arc<Capabilities>>,
    /// [`ProposalState::Running`], [`ProposalState::Rejected`] or [`ProposalState::Withdrawn`].
    pub(crate) state: ProposalState,
    pub(crate) reason: Option<Arc<str>>,
    /// Of an approval: the digests of the request as the participant saw it, and as it is now.
    pub(crate) approves: Option<(Digest, Option<Digest>)>,
    /// The shell's part of it; `None` if the topic itself withdraws the proposal, even if the journal fails.
    pub(crate) handle: Option<H::Ruling>,
    /// The envelope that fulfils the proposal, or the one that announces an approval without an envelope.
    pub(crate) fulfilment: Option<Arc<str>>,
    /// The calls by which servers carry it out, if it was a request in the room.
    pub(crate) requested: Option<RoomRequests<H>>,
}

impl<H: Handles> Ruling<H> {
    /// A decision without an envelope, of a participant in the topic.
    pub(crate) fn new(by: ParticipantId, decision: Decision<'_>, handle: Option<H::Ruling>) -> Self {
        let (state, reason, approves) = match decision {
            Decision::Approve { shown, current } => (ProposalState::Running, None, Some((shown, current))),
            Decision::Reject { reason } => (ProposalState::Rejected, reason, None),
            Decision::Withdraw { reason } => (ProposalState::Withdrawn, reason, None),
        };
        let (outside, fulfilment, requested) = (None, None, None);
        Self { by, outside, state, reason: reason.map(Arc::from), approves, handle, fulfilment, requested }
    }
}

/// A call of a request in the room, with its server and its operation.
pub(crate) type RoomCall<H> = (ParticipantId, OperationId, <H as Handles>::Call);

/// A request in the room, at each of the servers that it names.
#[derive(Debug, Clone)]
pub(crate) struct RoomRequests<H: Handles> {
    pub(crate) link: LinkId,
    pub(crate) tag: Option<H::Tag>,
    pub(crate) method: Method,
    pub(crate) context: Option<Arc<str>>,
    pub(crate) calls: Vec<RoomCall<H>>,
}

impl<H: Handles> RoomRequests<H> {
    /// Whether it asks for what was proposed, at whatever server.
    pub(crate) fn asks_for(&self, proposal: &Proposal<H>) -> bool {
        self.method == proposal.terms.method && self.context == proposal.terms.context
    }
}

/// An answer in the room that arrived before the approval was on disk.
#[derive(Debug, Clone)]
pub(crate) struct Early<H: Handles> {
    pub(crate) outcome: Outcome,
    pub(crate) answer: H::Answer,
    pub(crate) message: H::Message,
    pub(crate) names_proposer: bool,
}

/// One proposal.
#[derive(Debug)]
pub(crate) struct Proposal<H: Handles> {
    /// Its number in the order of opening.
    pub(crate) order: u64,
    pub(crate) terms: Terms,
    /// The public name or URI, of a held call.
    pub(crate) public: Option<Arc<str>>,
    pub(crate) content: H::Content,
    /// Whether it was a held call.
    pub(crate) held: bool,
    /// The held or parked call behind it, and later the operation that carries it out.
    pub(crate) call: Option<OperationId>,
    pub(crate) phase: Phase<H>,
    /// The reason for which it is withdrawn as soon as the change that is being written is on disk.
    pub(crate) recalled: Option<Arc<str>>,
    /// A decision that arrived before the opening was on disk.
    pub(crate) queued: Option<Box<Ruling<H>>>,
    /// Requests of the proposer itself that run once the withdrawal is on disk.
    pub(crate) deferred: Vec<RoomRequests<H>>,
    /// The participant that decided, with the shell's part of its decision.
    pub(crate) decided: Option<(ParticipantId, Option<H::Ruling>)>,
    /// The envelope that fulfils it, once known.
    pub(crate) fulfilment: Option<Arc<str>>,
    pub(crate) early: Option<Early<H>>,
    /// The time until which a participant may answer in the room.
    pub(crate) run_until_ms: Option<u64>,
    /// The outcome and the answer.
    pub(crate) answer: Option<H::Answer>,
    /// Its last state, once it is over.
    pub(crate) over: Option<(ProposalState, Option<Arc<str>>)>,
    /// Whether its end could not be written, so that it is pending again after a restart.
    pub(crate) end_lost: bool,
    pub(crate) updated_ms: u64,
    /// Operations that wait for its end.
    pub(crate) waiting: Vec<OperationId>,
}

impl<H: Handles> Proposal<H> {
    /// One that no participant has decided about.
    pub(crate) fn new(terms: Terms, content: H::Content, phase: Phase<H>) -> Self {
        Self {
            order: 0,
            terms,
            public: None,
            content,
            held: false,
            call: None,
            phase,
            recalled: None,
            queued: None,
            deferred: Vec::new(),
            decided: None,
            fulfilment: None,
            early: None,
            run_until_ms: None,
            answer: None,
            over: None,
            end_lost: false,
            updated_ms: 0,
            waiting: Vec::new(),
        }
    }

    /// Its addressees, for capabilities to match.
    pub(crate) fn addressees(&self) -> Vec<&str> {
        self.terms.to.iter().map(ParticipantId::as_str).collect()
    }

    /// Whether these capabilities admit the proposed request as an envelope to its addressees.
    pub(crate) fn is_asked_for(&self, capabilities: &Capabilities) -> bool {
        KindRef::request(self.terms.method.as_str(), self.terms.context.as_deref())
            .is_ok_and(|kind| capabilities.admits(kind, &self.addressees()))
    }

    pub(crate) fn is_running(&self) -> bool {
        matches!(self.phase, Phase::Running) && self.over.is_none()
    }

    /// Whether it is open to decisions.
    pub(crate) fn is_pending(&self) -> bool {
        matches!(self.phase, Phase::Pending) && self.over.is_none()
    }

    /// Whether its opening is on disk, so that participants may learn of it.
    pub(crate) fn is_open(&self) -> bool {
        !matches!(self.phase, Phase::Opening)
    }

    /// Its state, as participants may learn it.
    pub(crate) fn state(&self) -> ProposalState {
        if let Some((state, _)) = &self.over {
            return *state;
        }
        match &self.phase {
            Phase::Opening | Phase::Pending | Phase::Deciding(_) => ProposalState::Pending,
            Phase::Running | Phase::Ending(ProposalState::Completed | ProposalState::Failed, _) => {
                ProposalState::Running
            }
            Phase::Ending(..) => ProposalState::Pending,
        }
    }

    /// Whether a response in the room of this sender and kind answers it.
    pub(crate) fn is_answered_by(&self, from: &ParticipantId, kind: KindRef<'_>) -> bool {
        (self.terms.to.is_empty() || self.terms.to.contains(from))
            && kind.answers(self.terms.method.as_str(), self.terms.context.as_deref())
    }
}

/// All proposals of a topic.
#[derive(Debug)]
pub(crate) struct Proposals<H: Handles> {
    all: HashMap<OperationId, Proposal<H>>,
    /// The number that each participant has that are not over.
    counts: Map<ParticipantId, usize>,
    /// The pending ones, and those whose answer is awaited in the room, by the time at which that ends.
    deadlines: BTreeSet<(u64, OperationId)>,
    /// By the envelope that proposed.
    by_envelope: Map<Arc<str>, OperationId>,
    /// By the envelope that fulfils.
    by_fulfilment: Map<Arc<str>, Vec<OperationId>>,
    ended: VecDeque<OperationId>,
    /// Digests of the envelopes of those that are over, kept or not.
    pub(crate) closed: ClosedDigests,
    opened: u64,
}

impl<H: Handles> Default for Proposals<H> {
    fn default() -> Self {
        let (counts, deadlines, by_envelope, by_fulfilment, ended, closed, opened) = <_>::default();
        let all = HashMap::new();
        Self { all, counts, deadlines, by_envelope, by_fulfilment, ended, closed, opened }
    }
}

impl<H: Handles> Proposals<H> {
    /// The number of those that are not over.
    pub(crate) fn len(&self) -> usize {
        self.all.len() - self.ended.len()
    }

    /// The number of a participant's that are not over.
    pub(crate) fn count(&self, by: &ParticipantId) -> usize {
        self.counts.get(by).copied().unwrap_or_default()
    }

    /// The participants that have proposals which are not over.
    pub(crate) fn proposers(&self) -> impl Iterator<Item = &ParticipantId> {
        self.counts.keys()
    }

    /// A proposal that is not over.
    pub(crate) fn get(&self, id: OperationId) -> Option<&Proposal<H>> {
        self.all.get(&id).filter(|proposal| proposal.over.is_none())
    }

    /// The same, for everything but the phase, the fulfilment and the deadline.
    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Proposal<H>> {
        self.all.get_mut(&id).filter(|proposal| proposal.over.is_none())
    }

    /// A proposal, over or not.
    pub(crate) fn known(&self, id: OperationId) -> Option<&Proposal<H>> {
        self.all.get(&id)
    }

    /// The proposal that an envelope of this id made.
    pub(crate) fn of_envelope(&self, envelope: &str) -> Option<OperationId> {
        self.by_envelope.get(envelope).copied()
    }

    /// The proposals that an envelope of this id fulfils, or is about to.
    pub(crate) fn of_fulfilment(&self, envelope: &str) -> &[OperationId] {
        self.by_fulfilment.get(envelope).map_or(&[], Vec::as_slice)
    }

    /// Adds one and numbers it.
    pub(crate) fn insert(&mut self, id: OperationId, mut proposal: Proposal<H>) {
        proposal.order = self.opened;
        self.opened += 1;
        self.by_envelope.insert(Arc::clone(&proposal.terms.envelope), id);
        if proposal.over.is_some() {
            self.ended.push_back(id);
        } else {
            *self.counts.entry(proposal.terms.by.clone()).or_default() += 1;
        }
        self.all.insert(id, proposal);
        self.schedule(id);
        self.forget_oldest();
    }

    /// Changes the phase of one.
    pub(crate) fn turn(&mut self, id: OperationId, phase: Phase<H>) {
        self.unschedule(id);
        if let Some(proposal) = self.get_mut(id) {
            proposal.phase = phase;
        }
        self.schedule(id);
    }

    /// Sets the time until which a participant may answer in the room.
    pub(crate) fn await_answer(&mut self, id: OperationId, until_ms: u64) {
        self.unschedule(id);
        if let Some(proposal) = self.get_mut(id) {
            proposal.run_until_ms = Some(until_ms);
        }
        self.schedule(id);
    }

    /// Sets the envelope that fulfils one, or removes it.
    pub(crate) fn fulfil(&mut self, id: OperationId, envelope: Option<Arc<str>>) {
        let Some(proposal) = self.all.get_mut(&id) else { return };
        let older = std::mem::replace(&mut proposal.fulfilment, envelope.clone());
        if let Some(older) = older
            && let Some(all) = self.by_fulfilment.get_mut(&older)
        {
            all.retain(|other| *other != id);
            if all.is_empty() {
                self.by_fulfilment.remove(&older);
            }
        }
        if let Some(envelope) = envelope {
            self.by_fulfilment.entry(envelope).or_default().push(id);
        }
    }

    /// Removes the fulfilment of a decision that does not count, with an early answer to it.
    pub(crate) fn forget_fulfilment(&mut self, id: OperationId) {
        self.fulfil(id, None);
        if let Some(proposal) = self.get_mut(id) {
            proposal.early = None;
        }
    }

    fn deadline(&self, id: OperationId) -> Option<(u64, OperationId)> {
        let proposal = self.get(id)?;
        match &proposal.phase {
            Phase::Pending => Some((proposal.terms.expires_ms, id)),
            Phase::Running => Some((proposal.run_until_ms?, id)),
            Phase::Opening | Phase::Deciding(_) | Phase::Ending(..) => None,
        }
    }

    fn schedule(&mut self, id: OperationId) {
        self.deadlines.extend(self.deadline(id));
    }

    fn unschedule(&mut self, id: OperationId) {
        if let Some(deadline) = self.deadline(id) {
            self.deadlines.remove(&deadline);
        }
    }

    /// The next deadline, with its proposal.
    pub(crate) fn next_deadline(&self) -> Option<(u64, OperationId)> {
        self.deadlines.first().copied()
    }

    /// Ends one: it is kept for queries only, and the oldest of those are dropped.
    pub(crate) fn end(
        &mut self,
        id: OperationId,
        state: ProposalState,
        reason: Option<Arc<str>>,
        now_ms: u64,
    ) {
        self.unschedule(id);
        self.fulfil(id, None);
        let Some(proposal) = self.get_mut(id) else { return };
        proposal.over = Some((state, reason));
        proposal.updated_ms = now_ms;
        (proposal.recalled, proposal.queued, proposal.early) = (None, None, None);
        let by = proposal.terms.by.clone();
        self.ended.push_back(id);
        self.lessen(&by);
        self.forget_oldest();
    }

    /// Removes one that was never opened.
    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Proposal<H>> {
        self.unschedule(id);
        self.fulfil(id, None);
        let proposal = self.all.remove(&id)?;
        self.by_envelope.remove(&proposal.terms.envelope);
        self.lessen(&proposal.terms.by);
        Some(proposal)
    }

    fn lessen(&mut self, by: &ParticipantId) {
        if let Some(count) = self.counts.get_mut(by) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(by);
            }
        }
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_PROPOSALS_MAX {
            let Some(oldest) = self.ended.pop_front() else { return };
            if let Some(gone) = self.all.remove(&oldest)
                && self.of_envelope(&gone.terms.envelope) == Some(oldest)
            {
                self.by_envelope.remove(&gone.terms.envelope);
            }
        }
    }

    /// The proposals of one participant that are not over, in the order of opening.
    pub(crate) fn of(&self, by: &ParticipantId) -> Vec<OperationId> {
        if self.count(by) == 0 {
            return Vec::new();
        }
        self.in_order(|proposal| proposal.over.is_none() && proposal.terms.by == *by)
            .map(|(id, _)| id)
            .collect()
    }

    /// The proposals for which `fits` holds, in the order of opening.
    pub(crate) fn in_order(
        &self,
        fits: impl Fn(&Proposal<H>) -> bool,
    ) -> impl Iterator<Item = (OperationId, &Proposal<H>)> {
        let all = self.all.iter().filter(|(_, proposal)| fits(proposal));
        let mut all: Vec<(OperationId, &Proposal<H>)> = all.map(|(id, own)| (*id, own)).collect();
        all.sort_unstable_by_key(|(_, proposal)| proposal.order);
        all.into_iter()
    }
}

/// The most ended proposals whose envelope ids are kept as digests; the first to expire is dropped first.
pub const CLOSED_PROPOSALS_MAX: usize = 100_000;

/// Digests with the times until which they are kept.
#[derive(Debug, Default)]
pub(crate) struct ClosedDigests {
    /// In the order of the times.
    all: VecDeque<(u64, u128)>,
    /// The latest time of each digest: an envelope's id may be used again once its proposal is forgotten.
    until_ms: HashMap<u128, u64>,
}

impl ClosedDigests {
    /// Adds a digest, or keeps it longer.
    pub(crate) fn add(&mut self, until_ms: u64, digest: u128) {
        if self.until_ms.get(&digest).is_some_and(|known_ms| *known_ms >= until_ms) {
            return;
        }
        self.until_ms.insert(digest, until_ms);
        self.all.push_back((until_ms, digest));
        if self.all.len() > CLOSED_PROPOSALS_MAX {
            self.forget_first();
        }
    }

    /// Whether a digest is kept.
    pub(crate) fn contains(&mut self, now_ms: u64, digest: u128) -> bool {
        while self.all.front().is_some_and(|(until_ms, _)| *until_ms <= now_ms) {
            self.forget_first();
        }
        self.until_ms.contains_key(&digest)
    }

    fn forget_first(&mut self) {
        let Some((until_ms, digest)) = self.all.pop_front() else { return };
        if self.until_ms.get(&digest) == Some(&until_ms) {
            self.until_ms.remove(&digest);
        }
    }
}
