//! Table of a topic's proposals: by id, by envelope, by deadline, and those that are over.

mod closed;
mod proposal;

use std::{
    collections::{BTreeSet, HashMap as Map, VecDeque},
    sync::Arc,
};

use foldhash::{HashMap, HashMapExt};
use model::{OperationId, ParticipantId, ProposalState};

use crate::{Handles, members::is_guest};
pub use closed::CLOSED_PROPOSALS_MAX;
use closed::ClosedDigests;
pub(crate) use proposal::{Early, Phase, Proposal, RoomCall, RoomRequests, Ruling};

/// The most ended proposals that queries still return.
pub const ENDED_PROPOSALS_MAX: usize = 1000;
/// The share of one proposer, and of all guests together: beyond it its own oldest is forgotten first.
pub const PARTICIPANT_ENDED_PROPOSALS_MAX: usize = 250;
/// The most requests of a proposer that wait for the withdrawal of its own proposal.
pub(crate) const DEFERRED_MAX: usize = 16;

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
    /// Those that participants carry out in the room, by the number of their opening.
    in_room: BTreeSet<(u64, OperationId)>,
    ended: VecDeque<OperationId>,
    /// The number of those on each account.
    ended_counts: Map<Box<str>, usize>,
    /// Digests of the envelopes of those that are over, kept or not.
    pub(crate) closed: ClosedDigests,
    opened: u64,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl<H: Handles> Proposals<H> {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        let (counts, deadlines, by_envelope, by_fulfilment, in_room, ended, closed, opened) = <_>::default();
        let (all, ended_counts) = (HashMap::new(), Map::new());
        Self {
            all,
            counts,
            deadlines,
            by_envelope,
            by_fulfilment,
            in_room,
            ended,
            ended_counts,
            closed,
            opened,
            guests,
        }
    }

    /// The account of a proposer: its own, or the one of all guests.
    fn account<'a>(&self, by: &'a ParticipantId) -> &'a str {
        if is_guest(by, self.guests) { self.guests } else { by.as_str() }
    }

    /// The number of those that are not over and on the account of a participant.
    pub(crate) fn count_on_account(&self, by: &ParticipantId) -> usize {
        if !is_guest(by, self.guests) {
            return self.count(by);
        }
        let guests = self.counts.iter().filter(|(by, _)| is_guest(by, self.guests));
        guests.map(|(_, count)| count).sum()
    }

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
            self.keep_ended(id, &proposal.terms.by);
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

    /// Sets the participants that were asked to carry one out in the room, and the time until which they may answer.
    pub(crate) fn await_answer(&mut self, id: OperationId, asked: Box<[ParticipantId]>, until_ms: u64) {
        self.unschedule(id);
        if let Some(proposal) = self.all.get_mut(&id).filter(|proposal| proposal.over.is_none()) {
            (proposal.run_until_ms, proposal.asked) = (Some(until_ms), asked);
            self.in_room.insert((proposal.order, id));
        }
        self.schedule(id);
    }

    /// The proposals that this participant was asked to carry out in the room, and that still run, in the order of opening.
    pub(crate) fn asked_of(&self, participant: &ParticipantId) -> Vec<OperationId> {
        let all = self.in_room.iter().map(|(_, id)| *id);
        let of = |id: &OperationId| {
            self.get(*id).is_some_and(|own| own.is_running() && own.asked.contains(participant))
        };
        all.filter(of).collect()
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
        let place = (proposal.order, id);
        (proposal.recalled, proposal.queued, proposal.early) = (None, None, None);
        let by = proposal.terms.by.clone();
        self.in_room.remove(&place);
        self.keep_ended(id, &by);
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

    fn keep_ended(&mut self, id: OperationId, by: &ParticipantId) {
        self.ended.push_back(id);
        *self.ended_counts.entry(self.account(by).into()).or_default() += 1;
    }

    /// Whether a proposal that is over is one of too many of its proposer.
    fn is_beyond_share(&self, ended: &OperationId) -> bool {
        let Some(proposal) = self.all.get(ended) else { return true };
        let count = self.ended_counts.get(self.account(&proposal.terms.by));
        count.is_some_and(|count| *count > PARTICIPANT_ENDED_PROPOSALS_MAX)
    }

    fn forget_oldest(&mut self) {
        while self.ended.len() > ENDED_PROPOSALS_MAX {
            let at = self.ended.iter().position(|id| self.is_beyond_share(id)).unwrap_or_default();
            let Some(oldest) = self.ended.remove(at) else { return };
            let Some(gone) = self.all.remove(&oldest) else { continue };
            if self.of_envelope(&gone.terms.envelope) == Some(oldest) {
                self.by_envelope.remove(&gone.terms.envelope);
            }
            let account = self.account(&gone.terms.by);
            if let Some(count) = self.ended_counts.get_mut(account) {
                *count -= 1;
                if *count == 0 {
                    self.ended_counts.remove(account);
                }
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
