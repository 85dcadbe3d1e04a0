//! Table of a topic's proposals: by id, by envelope, by deadline, and those that are over.

mod closed;
mod proposal;
mod rejected;

use std::{
    collections::{BTreeSet, HashMap as Map},
    sync::Arc,
};

use foldhash::{HashMap, HashMapExt};
use model::{Capabilities, Digest, Latest, OperationId, ParticipantId};

use crate::{
    Handles,
    deadlines::Deadlines,
    event::{CountedApproval, Terms},
    members::account,
};
pub use closed::CLOSED_PROPOSALS_MAX;
use closed::ClosedDigests;
pub(crate) use proposal::{
    Approval, Decided, LastState, Phase, Proposal, RoomCall, RoomRequests, Ruling, RulingForm,
    TermsChange, Unpublished,
};
pub use rejected::REJECTED_PROPOSALS_MAX;
use rejected::RejectedIds;

/// The most ended proposals that queries still return. Beyond it the proposer that has most loses
/// its oldest; all guests count as one.
pub const ENDED_PROPOSALS_MAX: usize = 1000;
/// The most bytes that they keep: contents, edited params and answers. Beyond it the proposer that
/// has most bytes loses its oldest.
pub const ENDED_PROPOSALS_BYTES_MAX: usize = 64 << 20;
/// The most requests of a proposer that wait for the withdrawal of its own proposal.
pub(crate) const DEFERRED_MAX: usize = 16;

/// A number of proposals, and the bytes of their contents.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Amount {
    pub(crate) count: usize,
    pub(crate) bytes: usize,
}

impl Amount {
    /// Whether so many more fit below a limit.
    pub(crate) fn has_room(self, more: Self, limit: Self) -> bool {
        self.count.saturating_add(more.count) <= limit.count
            && self.bytes.saturating_add(more.bytes) <= limit.bytes
    }

    /// Whether a content of these bytes fits below a limit in place of an older one.
    pub(crate) fn has_room_instead(self, older: usize, bytes: usize, bytes_max: usize) -> bool {
        (self.bytes - older).saturating_add(bytes) <= bytes_max
    }
}

/// All proposals of a topic.
#[derive(Debug)]
pub(crate) struct Proposals<H: Handles> {
    all: HashMap<OperationId, Proposal<H>>,
    /// The number that each participant has that are not over.
    counts: Map<ParticipantId, usize>,
    /// The number and the bytes of those on each account.
    accounts: Map<Box<str>, Amount>,
    /// The number and the bytes of all that are not over.
    open: Amount,
    /// The pending ones, and those whose answer is awaited in the room, by the time at which that
    /// ends.
    deadlines: Deadlines,
    /// The pending ones, by the time on the wall clock at which they expire.
    wall_deadlines: Deadlines,
    /// The pending ones whose warning is to come, by its time.
    warnings: Deadlines,
    /// By the envelope that proposed.
    by_envelope: Map<Arc<str>, OperationId>,
    /// Running proposals, by the envelope that fulfils.
    by_fulfilment: Map<Arc<str>, Vec<OperationId>>,
    /// Proposals that participants carry out in the room, by the number of their opening.
    in_room: BTreeSet<(u64, OperationId)>,
    /// Open proposals that have approvals and need others.
    approved: BTreeSet<OperationId>,
    ended: Latest<OperationId>,
    /// Digests of the envelopes of those that are over, kept or not.
    pub(crate) closed: ClosedDigests,
    /// Ids of envelopes whose proposals were rejected when they arrived.
    pub(crate) rejected: RejectedIds,
    opened: u64,
    /// The beginning of guests' ids.
    guests: &'static str,
}

impl<H: Handles> Proposals<H> {
    /// None. Ids that begin with `guests` are those of guests.
    pub(crate) fn new(guests: &'static str) -> Self {
        Self {
            all: HashMap::new(),
            counts: Map::new(),
            accounts: Map::new(),
            open: Amount::default(),
            deadlines: Deadlines::default(),
            wall_deadlines: Deadlines::default(),
            warnings: Deadlines::default(),
            by_envelope: Map::new(),
            by_fulfilment: Map::new(),
            in_room: BTreeSet::new(),
            approved: BTreeSet::new(),
            ended: Latest::default(),
            closed: ClosedDigests::default(),
            rejected: RejectedIds::new(guests),
            opened: 0,
            guests,
        }
    }

    /// Open proposals on the account of a participant: its own, or the one of all guests.
    pub(crate) fn on_account(&self, by: &ParticipantId) -> Amount {
        self.accounts
            .get(account(by, self.guests))
            .copied()
            .unwrap_or_default()
    }

    /// Open proposals of all participants.
    pub(crate) fn open(&self) -> Amount {
        self.open
    }

    /// Number of open proposals.
    pub(crate) fn len(&self) -> usize {
        self.open.count
    }

    /// Number of a participant's open proposals.
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

    /// An open proposal, for changes of anything but its phase, fulfilment and deadline.
    pub(crate) fn get_mut(&mut self, id: OperationId) -> Option<&mut Proposal<H>> {
        self.all
            .get_mut(&id)
            .filter(|proposal| proposal.over.is_none())
    }

    /// A proposal, over or not.
    pub(crate) fn known(&self, id: OperationId) -> Option<&Proposal<H>> {
        self.all.get(&id)
    }

    /// The proposal that an envelope of this id made.
    pub(crate) fn of_envelope(&self, envelope: &str) -> Option<OperationId> {
        self.by_envelope.get(envelope).copied()
    }

    /// The proposals that an envelope of this id fulfils.
    pub(crate) fn of_fulfilment(&self, envelope: &str) -> &[OperationId] {
        self.by_fulfilment.get(envelope).map_or(&[], Vec::as_slice)
    }

    /// Adds one and numbers it.
    pub(crate) fn insert(&mut self, id: OperationId, mut proposal: Proposal<H>) {
        proposal.order = self.opened;
        self.opened += 1;
        self.by_envelope
            .insert(Arc::clone(&proposal.terms.envelope), id);
        let is_over = proposal.over.is_some();
        if !is_over {
            self.count_in(&proposal);
            if !proposal.approved_by.is_empty() {
                self.approved.insert(id);
            }
        }
        self.all.insert(id, proposal);
        self.schedule(id);
        if is_over {
            self.keep_ended(id);
        }
    }

    fn count_in(&mut self, proposal: &Proposal<H>) {
        let terms = &proposal.terms;
        *self.counts.entry(terms.by.clone()).or_default() += 1;
        let on_account = self
            .accounts
            .entry(account(&terms.by, self.guests).into())
            .or_default();
        for amount in [on_account, &mut self.open] {
            amount.count += 1;
            amount.bytes += terms.bytes;
        }
    }

    /// Changes the phase of one.
    pub(crate) fn turn(&mut self, id: OperationId, phase: Phase<H>) {
        self.unschedule(id);
        if let Some(proposal) = self.get_mut(id) {
            proposal.phase = phase;
        }
        self.schedule(id);
    }

    /// Sets the participants that were asked to carry one out in the room, and the time until which
    /// they may answer.
    pub(crate) fn await_answer(
        &mut self,
        id: OperationId,
        asked: Box<[ParticipantId]>,
        until_ms: u64,
    ) {
        self.unschedule(id);
        if let Some(proposal) = self.get_mut(id) {
            proposal.run_until_ms = Some(until_ms);
            proposal.asked = asked;
            let order = proposal.order;
            self.in_room.insert((order, id));
        }
        self.schedule(id);
    }

    /// The proposals that this participant was asked to carry out in the room, and that still run,
    /// in the order of opening.
    pub(crate) fn asked_of(&self, participant: &ParticipantId) -> Vec<OperationId> {
        let mut found = Vec::new();
        for (_, id) in &self.in_room {
            if let Some(proposal) = self.get(*id)
                && proposal.is_running()
                && proposal.asked.contains(participant)
            {
                found.push(*id);
            }
        }
        found
    }

    /// Sets the envelope that fulfils one, once its approval is on disk.
    pub(crate) fn fulfil(&mut self, id: OperationId, envelope: Option<Arc<str>>) {
        let Some(proposal) = self.all.get_mut(&id) else {
            return;
        };
        proposal.fulfilment.clone_from(&envelope);
        if let Some(envelope) = envelope {
            self.by_fulfilment.entry(envelope).or_default().push(id);
        }
    }

    /// Has answers to the envelope that fulfils one settle it no more.
    fn unfulfil(&mut self, id: OperationId) {
        let Some(proposal) = self.all.get(&id) else {
            return;
        };
        let Some(envelope) = proposal.fulfilment.clone() else {
            return;
        };
        if let Some(all) = self.by_fulfilment.get_mut(&envelope) {
            all.retain(|other| *other != id);
            if all.is_empty() {
                self.by_fulfilment.remove(&envelope);
            }
        }
    }

    /// The time on the steady clock at which a proposal expires, or the wait for its answer in the
    /// room ends. A change that is being written stops the clock.
    fn deadline(&self, id: OperationId) -> Option<u64> {
        let proposal = self.get(id)?;
        match &proposal.phase {
            Phase::Pending => Some(proposal.terms.expires_ms),
            Phase::Running => proposal.run_until_ms,
            Phase::Opening
            | Phase::Waiting
            | Phase::Due
            | Phase::Deciding(_)
            | Phase::Ending(_) => None,
        }
    }

    /// The time on the wall clock at which a proposal expires.
    fn wall_deadline(&self, id: OperationId) -> Option<u64> {
        let proposal = self.get(id)?;
        match proposal.phase {
            Phase::Pending => Some(proposal.terms.expires_wall_ms),
            _ => None,
        }
    }

    /// The time of the warning before its expiry.
    fn warning(&self, id: OperationId) -> Option<u64> {
        let proposal = self.get(id)?;
        match proposal.phase {
            Phase::Pending => proposal.warn_ms,
            _ => None,
        }
    }

    /// Takes out one that expires soon.
    pub(crate) fn take_warning(&mut self, now_ms: u64) -> Option<OperationId> {
        let id = self.warnings.take_due(now_ms)?;
        if let Some(proposal) = self.get_mut(id) {
            proposal.warn_ms = None;
        }
        Some(id)
    }

    /// Enters the deadlines of a proposal, after its phase has changed.
    fn schedule(&mut self, id: OperationId) {
        if let Some(at_ms) = self.deadline(id) {
            self.deadlines.insert(at_ms, id);
        }
        if let Some(at_ms) = self.wall_deadline(id) {
            self.wall_deadlines.insert(at_ms, id);
        }
        if let Some(at_ms) = self.warning(id) {
            self.warnings.insert(at_ms, id);
        }
    }

    /// Removes the deadlines of a proposal. Before its phase changes: they follow from that.
    fn unschedule(&mut self, id: OperationId) {
        if let Some(at_ms) = self.deadline(id) {
            self.deadlines.remove(at_ms, id);
        }
        if let Some(at_ms) = self.wall_deadline(id) {
            self.wall_deadlines.remove(at_ms, id);
        }
        if let Some(at_ms) = self.warning(id) {
            self.warnings.remove(at_ms, id);
        }
    }

    /// The next deadline on the steady clock.
    pub(crate) fn next_deadline_ms(&self) -> Option<u64> {
        let all = [self.deadlines.next_ms(), self.warnings.next_ms()];
        all.into_iter().flatten().min()
    }

    /// The next deadline on the wall clock.
    pub(crate) fn next_wall_deadline_ms(&self) -> Option<u64> {
        self.wall_deadlines.next_ms()
    }

    /// A proposal whose time has run out, on one of the clocks.
    pub(crate) fn due(&self, now_ms: u64, wall_ms: u64) -> Option<OperationId> {
        self.deadlines
            .due(now_ms)
            .or_else(|| self.wall_deadlines.due(wall_ms))
    }

    /// Has reviewers see another content, of so many bytes, under another digest.
    pub(crate) fn describe(
        &mut self,
        id: OperationId,
        digest: Digest,
        content: H::Content,
        bytes: usize,
    ) {
        let Some(proposal) = self.get_mut(id) else {
            return;
        };
        proposal.content = content;
        proposal.terms.digest = digest;
        self.book(id, bytes);
    }

    /// Counts so many bytes as the content of one.
    pub(crate) fn book(&mut self, id: OperationId, bytes: usize) {
        let Some(proposal) = self.get_mut(id) else {
            return;
        };
        let older = std::mem::replace(&mut proposal.terms.bytes, bytes);
        let by = proposal.terms.by.clone();
        let on_account = self.accounts.get_mut(account(&by, self.guests));
        for amount in on_account.into_iter().chain([&mut self.open]) {
            amount.bytes = amount.bytes - older + bytes;
        }
    }

    /// Ends one: it is kept for queries only, and the oldest of those are dropped.
    pub(crate) fn end(&mut self, id: OperationId, last: LastState, now_ms: u64) {
        self.unschedule(id);
        self.unfulfil(id);
        let Some(proposal) = self.get_mut(id) else {
            return;
        };
        proposal.over = Some(last);
        proposal.updated_ms = now_ms;
        let place = (proposal.order, id);
        proposal.recalled = None;
        proposal.queued = None;
        let terms = proposal.terms.clone();
        self.in_room.remove(&place);
        self.approved.remove(&id);
        self.count_out(&terms);
        self.keep_ended(id);
    }

    /// Removes one that was never opened.
    pub(crate) fn remove(&mut self, id: OperationId) -> Option<Proposal<H>> {
        self.unschedule(id);
        let proposal = self.all.remove(&id)?;
        self.by_envelope.remove(&proposal.terms.envelope);
        self.count_out(&proposal.terms);
        Some(proposal)
    }

    fn count_out(&mut self, Terms { by, bytes, .. }: &Terms) {
        if let Some(count) = self.counts.get_mut(by) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(by);
            }
        }
        let account = account(by, self.guests);
        let Some(on_account) = self.accounts.get_mut(account) else {
            return;
        };
        for amount in [&mut *on_account, &mut self.open] {
            amount.count -= 1;
            amount.bytes -= bytes;
        }
        if on_account.count == 0 {
            self.accounts.remove(account);
        }
    }

    /// Keeps one that is over for queries, and forgets older ones.
    fn keep_ended(&mut self, id: OperationId) {
        let Some(proposal) = self.all.get(&id) else {
            return;
        };
        let decided = proposal.decided.as_ref();
        let ruling = decided.and_then(|decided| decided.ruling.as_ref());
        let bytes = proposal.terms.bytes + H::kept_bytes(ruling, proposal.answer.as_ref());
        self.ended
            .push(account(&proposal.terms.by, self.guests), bytes, id);
        for oldest in self
            .ended
            .shrink(ENDED_PROPOSALS_MAX, ENDED_PROPOSALS_BYTES_MAX)
        {
            let Some(gone) = self.all.remove(&oldest) else {
                continue;
            };
            if self.of_envelope(&gone.terms.envelope) == Some(oldest) {
                self.by_envelope.remove(&gone.terms.envelope);
            }
        }
    }

    /// Proposals that are open to decisions, in no order.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (OperationId, &Proposal<H>)> {
        self.all
            .iter()
            .filter(|(_, proposal)| proposal.is_pending())
            .map(|(id, proposal)| (*id, proposal))
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

    /// Notes that a name has another bearer from now on: the proposals and approvals of the former
    /// one are none of the next one's.
    pub(crate) fn disown(&mut self, by: &ParticipantId) {
        for proposal in self.all.values_mut() {
            if proposal.terms.by == *by {
                proposal.is_disowned = true;
            }
            proposal.void_of(by);
        }
        for id in self.approved().collect::<Vec<_>>() {
            if let Some(proposal) = self.get_mut(id) {
                proposal.approved_by.retain(|one| one.by != *by);
            }
        }
    }

    /// Adds an approval to one that needs others, in place of the ones that are void. `outside` has the
    /// capabilities of its author, if that is not in the topic.
    pub(crate) fn count_approval(
        &mut self,
        id: OperationId,
        by: ParticipantId,
        outside: Option<Arc<Capabilities>>,
        note: Option<Arc<str>>,
        now_ms: u64,
    ) {
        let Some(proposal) = self.get_mut(id) else {
            return;
        };
        proposal.updated_ms = now_ms;
        let shown = proposal.terms.digest;
        let kept = &mut proposal.approved_by;
        kept.retain(|one| one.shown == shown && one.by != by);
        kept.push(CountedApproval {
            by,
            outside,
            shown,
            note,
        });
        self.approved.insert(id);
    }

    /// Has the approvals of a plan count for one of its later steps.
    pub(crate) fn carry_approvals(&mut self, id: OperationId, all: &[CountedApproval]) {
        let Some(step) = self.get_mut(id) else {
            return;
        };
        let shown = step.terms.digest;
        let own = all.iter().map(|one| CountedApproval {
            shown,
            note: None,
            ..one.clone()
        });
        step.approved_by = own.collect();
        self.approved.insert(id);
    }

    /// Drops the approvals that one has.
    pub(crate) fn forget_approvals(&mut self, id: OperationId) {
        if let Some(proposal) = self.get_mut(id) {
            proposal.approved_by.clear();
        }
        self.approved.remove(&id);
    }

    /// Open proposals that have approvals and need others, in the order of their ids.
    pub(crate) fn approved(&self) -> impl Iterator<Item = OperationId> {
        self.approved.iter().copied()
    }

    /// The account of a participant: its own name, or the one of all guests.
    pub(crate) fn account<'a>(&'a self, who: &'a ParticipantId) -> &'a str {
        account(who, self.guests)
    }

    /// The proposals for which `fits` holds, in the order of opening.
    pub(crate) fn in_order(
        &self,
        fits: impl Fn(&Proposal<H>) -> bool,
    ) -> impl Iterator<Item = (OperationId, &Proposal<H>)> {
        let found = self.all.iter().filter(|(_, proposal)| fits(proposal));
        let mut found: Vec<_> = found.collect();
        found.sort_unstable_by_key(|(_, proposal)| proposal.order);
        found.into_iter().map(|(id, proposal)| (*id, proposal))
    }
}
