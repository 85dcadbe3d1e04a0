//! Proposals of the state: open ones, the last ended ones, digests of closed ones.

use std::collections::BTreeMap;

use model::{Latest, account};

use super::closed::{CLOSED_PROPOSALS_KEPT_MS, ClosedSet, closed_digest};
use crate::record::{DecidedProposal, Decision, EndedProposal, OpenedProposal, Record};

/// Ended proposals that the state keeps in full at most. Beyond it the proposer that has most loses
/// its oldest.
pub const ENDED_KEPT: usize = 256;

/// Bytes of text that these ended proposals hold together at most. Beyond it the proposer that has
/// most bytes loses its oldest.
pub const ENDED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A proposal with its decision and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The proposal.
    pub opened: OpenedProposal,
    /// The decision. The outcome of a proposal that is approved and not ended after a restart is
    /// unknown.
    pub decided: Option<DecidedProposal>,
    /// The end, if it is not the decision.
    pub ended: Option<EndedProposal>,
}

impl Proposal {
    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let refused = |decided: &DecidedProposal| match decided.decision {
            Decision::Approved => false,
            Decision::Rejected | Decision::Withdrawn => true,
        };
        self.ended.is_some() || self.decided.as_ref().is_some_and(refused)
    }

    /// Time of its end in Unix milliseconds. A rejection or withdrawal is an end.
    fn ended_ms(&self) -> u64 {
        let ended = self.ended.as_ref().map(|ended| ended.at_ms);
        ended
            .or_else(|| self.decided.as_ref().map(|decided| decided.at_ms))
            .unwrap_or(self.opened.at_ms)
    }

    fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let opened = std::iter::once(Record::ProposalOpened(self.opened.clone()));
        opened
            .chain(self.decided.iter().cloned().map(Record::ProposalDecided))
            .chain(self.ended.iter().cloned().map(Record::ProposalEnded))
    }

    fn records_count(&self) -> usize {
        1 + usize::from(self.decided.is_some()) + usize::from(self.ended.is_some())
    }

    fn text_bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let decided = self
            .decided
            .as_ref()
            .map_or(0, |decided| of(&decided.params) + of(&decided.reason));
        let ended = self
            .ended
            .as_ref()
            .map_or(0, |ended| of(&ended.answer) + of(&ended.reason));
        of(&self.opened.params) + of(&self.opened.tool) + of(&self.opened.door) + decided + ended
    }
}

/// All proposals of the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Proposals {
    /// Proposals without an end, by id.
    pub(super) open: BTreeMap<String, Proposal>,
    /// The last ended ones, in the order of their ends.
    pub(super) ended: Latest<Proposal>,
    ended_records: usize,
    open_records: usize,
    /// Digests of those that are no longer kept in full.
    pub(super) closed: ClosedSet,
}

impl Proposals {
    pub(super) fn get(&self, id: &str) -> Option<&Proposal> {
        self.open
            .get(id)
            .or_else(|| self.ended.iter().rev().find(|known| known.opened.id == id))
    }

    pub(super) fn opened(&mut self, opened: &OpenedProposal) {
        if self.get(&opened.id).is_none() {
            let proposal = Proposal {
                opened: opened.clone(),
                decided: None,
                ended: None,
            };
            self.open.insert(opened.id.clone(), proposal);
            self.open_records += 1;
        }
    }

    pub(super) fn decided(&mut self, decided: &DecidedProposal) {
        if let Some(open) = self
            .open
            .get_mut(&decided.id)
            .filter(|open| open.decided.is_none())
        {
            open.decided = Some(decided.clone());
            self.open_records += 1;
            self.settle(&decided.id);
        }
    }

    /// Ends an open proposal. An end after a rejection or withdrawal has no effect.
    pub(super) fn ended_as(&mut self, ended: &EndedProposal) {
        if let Some(open) = self.open.get_mut(&ended.id) {
            open.ended = Some(ended.clone());
            self.open_records += 1;
            self.settle(&ended.id);
        }
    }

    /// Records of closed, ended and open proposals: a replay in this order rebuilds the same state.
    pub(super) fn records(&self) -> impl Iterator<Item = Record> + '_ {
        let closed = self.closed.records();
        closed.chain(
            self.ended
                .iter()
                .chain(self.open.values())
                .flat_map(Proposal::records),
        )
    }

    pub(super) fn len(&self) -> usize {
        self.closed.len() + self.ended_records + self.open_records
    }

    fn settle(&mut self, id: &str) {
        let Some(ended) = self.open.get(id).filter(|open| open.has_ended()) else {
            return;
        };
        let records = ended.records_count();
        self.ended_records += records;
        self.open_records -= records;
        let Some(ended) = self.open.remove(id) else {
            return;
        };
        let (by, bytes) = (ended.opened.by.clone(), ended.text_bytes());
        self.ended.push(account(&by), bytes, ended);
        for oldest in self.ended.shrink(ENDED_KEPT, ENDED_BYTES_MAX) {
            self.ended_records -= oldest.records_count();
            let until_ms = oldest.ended_ms().saturating_add(CLOSED_PROPOSALS_KEPT_MS);
            self.closed.add(
                until_ms,
                closed_digest(&oldest.opened.topic, &oldest.opened.envelope),
            );
        }
    }
}
