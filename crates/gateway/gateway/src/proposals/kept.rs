//! Proposals of the journal: open ones, the last ended ones, digests of closed ones.

mod closed;
mod record;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};

use model::{Latest, ProposalState, account};
use store::Fold;
use topic::{ENDED_PROPOSALS_BYTES_MAX, ENDED_PROPOSALS_MAX};

pub use closed::{CLOSED_PROPOSALS_KEPT_MS, closed_digest};
pub use record::{
    AmendmentRecord, ApprovalRecord, ClosedProposals, DecidedProposal, DecisionRecord, EndRecord,
    ExtensionRecord, OpenedPlan, OpenedProposal, PlanRecord, ProposalRecord,
};

use closed::ClosedSet;

/// A proposal with its decision and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptProposal {
    /// The proposal.
    pub opened: OpenedProposal,
    /// The approvals before the decision, of one that needs several, in their order. Whether each
    /// still counts is for the topic to judge.
    pub approvals: Vec<ApprovalRecord>,
    /// The times at which its expiry was moved, in their order. `opened` has the last one.
    pub extensions: Vec<ExtensionRecord>,
    /// The decision. The outcome of a proposal that is approved and not ended after a restart is
    /// unknown.
    pub decided: Option<DecidedProposal>,
    /// The end, if it is not the decision.
    pub ended: Option<EndRecord>,
}

impl KeptProposal {
    /// Whether a reviewer has changed its params, of one that needs several approvals.
    pub(crate) fn is_amended(&self) -> bool {
        self.approvals.iter().any(|one| one.params.is_some())
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let refused = |decided: &DecidedProposal| match decided.decision {
            DecisionRecord::Approved => false,
            DecisionRecord::Rejected | DecisionRecord::Withdrawn => true,
        };
        self.ended.is_some() || self.decided.as_ref().is_some_and(refused)
    }

    /// Its state, if it has ended.
    pub(crate) fn ended_state(&self) -> Option<ProposalState> {
        if let Some(end) = &self.ended {
            return Some(end.state.parse().unwrap_or(ProposalState::Failed));
        }
        match self.decided.as_ref()?.decision {
            DecisionRecord::Approved => None,
            DecisionRecord::Rejected => Some(ProposalState::Rejected),
            DecisionRecord::Withdrawn => Some(ProposalState::Withdrawn),
        }
    }

    /// Time of its end in Unix milliseconds. A rejection or withdrawal is an end.
    fn ended_ms(&self) -> u64 {
        let ended = self.ended.as_ref().map(|ended| ended.at_ms);
        ended
            .or_else(|| self.decided.as_ref().map(|decided| decided.at_ms))
            .unwrap_or(self.opened.at_ms)
    }

    fn records(&self) -> impl Iterator<Item = ProposalRecord> + '_ {
        let opened = std::iter::once(ProposalRecord::ProposalOpened(self.opened.clone()));
        let extensions = self.extensions.iter().cloned();
        let approvals = self.approvals.iter().cloned();
        opened
            .chain(extensions.map(ProposalRecord::ProposalExtended))
            .chain(approvals.map(ProposalRecord::ProposalApproved))
            .chain(
                self.decided
                    .iter()
                    .cloned()
                    .map(ProposalRecord::ProposalDecided),
            )
            .chain(
                self.ended
                    .iter()
                    .cloned()
                    .map(ProposalRecord::ProposalEnded),
            )
    }

    fn records_count(&self) -> usize {
        1 + self.approvals.len()
            + self.extensions.len()
            + usize::from(self.decided.is_some())
            + usize::from(self.ended.is_some())
    }

    fn text_bytes(&self) -> usize {
        let of = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let decided = self.decided.as_ref().map_or(0, |decided| {
            of(&decided.params) + of(&decided.reason) + of(&decided.note)
        });
        let ended = self
            .ended
            .as_ref()
            .map_or(0, |ended| of(&ended.answer) + of(&ended.reason));
        let approvals = self.approvals.iter();
        let approvals = approvals.map(|one| of(&one.params) + of(&one.note));
        approvals.sum::<usize>()
            + of(&self.opened.params)
            + of(&self.opened.tool)
            + of(&self.opened.door)
            + decided
            + ended
    }
}

/// All proposals of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeptProposals {
    /// Proposals without an end, by id.
    open: BTreeMap<String, KeptProposal>,
    /// The last ended ones of each topic, in the order of their ends: as many as the topic keeps.
    ended: BTreeMap<String, Latest<KeptProposal>>,
    /// The ids of all of these.
    ended_ids: HashSet<String>,
    ended_records: usize,
    open_records: usize,
    /// Digests of those that are no longer kept in full.
    closed: ClosedSet,
}

impl KeptProposals {
    /// Proposals without a decision, and approved ones without an outcome; by id.
    pub(crate) fn open(&self) -> impl Iterator<Item = &KeptProposal> {
        self.open.values()
    }

    /// The last ended proposals, those of one topic in the order of their ends. Of each topic they
    /// are at most [`ENDED_PROPOSALS_MAX`] with [`ENDED_PROPOSALS_BYTES_MAX`] of text.
    pub(crate) fn ended(&self) -> impl Iterator<Item = &KeptProposal> {
        self.ended.values().flat_map(Latest::iter)
    }

    /// Unexpired digests ([`closed_digest`]) of ended proposals of one topic that the journal no
    /// longer keeps in full. It keeps at most [`topic::CLOSED_PROPOSALS_MAX`] of all topics. Each
    /// has its expiry in Unix milliseconds, [`CLOSED_PROPOSALS_KEPT_MS`] after the end of the
    /// proposal. The first to expire comes first. Rarely a digest of another topic is among them;
    /// no envelope of this topic matches it.
    pub(crate) fn closed_in(
        &self,
        topic: &str,
        now_ms: u64,
    ) -> impl Iterator<Item = (u64, u128)> + use<> {
        self.closed.unexpired_in(topic, now_ms)
    }

    /// The open or ended proposal with this id.
    #[cfg(test)]
    pub(crate) fn get(&self, id: &str) -> Option<&KeptProposal> {
        self.open
            .get(id)
            .or_else(|| self.ended().find(|known| known.opened.id == id))
    }

    fn is_known(&self, id: &str) -> bool {
        self.open.contains_key(id) || self.ended_ids.contains(id)
    }

    fn opened(&mut self, opened: &OpenedProposal) {
        if !self.is_known(&opened.id) {
            let proposal = KeptProposal {
                opened: opened.clone(),
                approvals: Vec::new(),
                extensions: Vec::new(),
                decided: None,
                ended: None,
            };
            self.open.insert(opened.id.clone(), proposal);
            self.open_records += 1;
        }
    }

    fn approved(&mut self, approval: &ApprovalRecord) {
        let Some(open) = self.open.get_mut(&approval.id) else {
            return;
        };
        if open.decided.is_some() {
            return;
        }
        self.open_records -= open.approvals.len();
        if let Some(params) = &approval.params {
            open.opened.params = Some(params.clone());
            open.opened.digest.clone_from(&approval.digest);
            open.approvals.clear();
        }
        open.approvals.retain(|one| one.by != approval.by);
        open.approvals.push(approval.clone());
        self.open_records += open.approvals.len();
    }

    fn extended(&mut self, extension: &ExtensionRecord) {
        let open = self.open.get_mut(&extension.id);
        if let Some(open) = open.filter(|open| open.decided.is_none()) {
            open.opened.expires_ms = extension.expires_ms;
            open.extensions.push(extension.clone());
            self.open_records += 1;
        }
    }

    fn amended(&mut self, amendment: &AmendmentRecord) {
        let open = self.open.get_mut(&amendment.id);
        if let Some(open) = open.filter(|open| open.decided.is_none()) {
            self.open_records -= open.approvals.len();
            open.approvals.clear();
            let opened = &mut open.opened;
            opened.params.clone_from(&amendment.params);
            opened.digest.clone_from(&amendment.digest);
            opened.amendments += 1;
        }
    }

    fn decided(&mut self, decided: &DecidedProposal) {
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
    fn ended_as(&mut self, ended: &EndRecord) {
        if let Some(open) = self.open.get_mut(&ended.id) {
            open.ended = Some(ended.clone());
            self.open_records += 1;
            self.settle(&ended.id);
        }
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
        self.ended_ids.insert(id.to_owned());
        let by = ended.opened.by.clone();
        let bytes = ended.text_bytes();
        let of_topic = self.ended.entry(ended.opened.topic.clone()).or_default();
        of_topic.push(account(&by), bytes, ended);
        for oldest in of_topic.shrink(ENDED_PROPOSALS_MAX, ENDED_PROPOSALS_BYTES_MAX) {
            self.ended_ids.remove(&oldest.opened.id);
            self.ended_records -= oldest.records_count();
            let until_ms = oldest.ended_ms().saturating_add(CLOSED_PROPOSALS_KEPT_MS);
            self.closed.add(
                until_ms,
                closed_digest(&oldest.opened.topic, &oldest.opened.envelope),
            );
        }
    }
}

impl Fold for KeptProposals {
    const OWNER: &'static str = "proposals";
    type Record = ProposalRecord;

    fn apply(&mut self, record: &ProposalRecord) {
        match record {
            ProposalRecord::ProposalOpened(opened) => self.opened(opened),
            ProposalRecord::PlanOpened(plan) => {
                plan.steps.iter().for_each(|step| self.opened(step))
            }
            ProposalRecord::ProposalApproved(approval) => self.approved(approval),
            ProposalRecord::ProposalExtended(extension) => self.extended(extension),
            ProposalRecord::ProposalAmended(amendment) => self.amended(amendment),
            ProposalRecord::ProposalDecided(decided) => self.decided(decided),
            ProposalRecord::ProposalEnded(ended) => self.ended_as(ended),
            ProposalRecord::ProposalsClosed(closed) => self.closed.add_all(closed),
        }
    }

    fn live(&self) -> usize {
        self.closed.len() + self.ended_records + self.open_records
    }

    /// Records of closed, ended and open proposals: a replay in this order rebuilds the same state.
    fn records(&mut self, now_ms: u64) -> Vec<ProposalRecord> {
        self.closed.drop_expired(now_ms);
        let in_full = self.ended.values().flat_map(Latest::iter);
        let in_full = in_full.chain(self.open.values());
        self.closed
            .records()
            .chain(in_full.flat_map(KeptProposal::records))
            .collect()
    }
}
