//! Open proposals of a chat, numbered.

use std::collections::VecDeque;

use client::participant::{Event, IncomingProposal, ProposalState};

use super::complete::SharedCandidates;

/// Most proposals kept; the oldest are dropped first.
const OPEN_PROPOSALS_MAX: usize = 256;

/// A proposal by its proposer and the id that the proposer chose: two proposers may choose the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) by: String,
    pub(super) id: String,
}

impl Named {
    pub(super) fn of(proposed: &IncomingProposal) -> Self {
        Self { by: proposed.from().to_owned(), id: proposed.id().to_owned() }
    }
}

/// The open proposals.
pub(super) struct OpenProposals {
    names: SharedCandidates,
    next: usize,
    open: VecDeque<(usize, IncomingProposal)>,
}

impl OpenProposals {
    pub(super) fn new(names: SharedCandidates) -> Self {
        Self { names, next: 1, open: VecDeque::new() }
    }

    /// The completion candidates.
    pub(super) fn names(&self) -> SharedCandidates {
        self.names.clone()
    }

    /// Updates the completion candidates with the participants and open proposals.
    pub(super) fn set_participants(&self, participants: impl Iterator<Item = String>) {
        let proposals = self.open.iter().map(|(number, _)| number.to_string());
        self.names.lock().set_participants(participants, proposals);
    }

    /// Processes an event: a proposal is open until the gateway reports to its proposer that it runs or is over.
    pub(super) fn receive(&mut self, event: &Event) {
        match event {
            Event::Proposal(proposed) => {
                self.open.push_back((self.next, IncomingProposal::clone(proposed)));
                self.next += 1;
                if self.open.len() > OPEN_PROPOSALS_MAX {
                    self.open.pop_front();
                }
            }
            Event::ProposalState { proposal, to, state, .. } if *state != ProposalState::Pending => {
                self.close(&Named { by: to.clone(), id: proposal.clone() });
            }
            _ => {}
        }
    }

    /// Removes a proposal.
    pub(super) fn close(&mut self, named: &Named) {
        self.open.retain(|(_, proposed)| Named::of(proposed) != *named);
    }

    /// All open proposals, oldest first.
    pub(super) fn open(&self) -> Vec<(usize, IncomingProposal)> {
        self.open.iter().cloned().collect()
    }

    /// The number of a proposal.
    pub(super) fn number(&self, named: &Named) -> Option<usize> {
        let (number, _) = self.open.iter().find(|(_, proposed)| Named::of(proposed) == *named)?;
        Some(*number)
    }

    /// The proposal with this id or number; `None` if the text is the id or number of several.
    pub(super) fn find(&self, which: &str) -> Option<&IncomingProposal> {
        let number: Option<usize> = which.trim_start_matches('#').parse().ok();
        let is_meant =
            |(own, proposed): &&(usize, IncomingProposal)| Some(*own) == number || proposed.id() == which;
        let mut meant = self.open.iter().filter(is_meant);
        let (_, one) = meant.next()?;
        meant.next().is_none().then_some(one)
    }
}
