//! Open proposals of a chat, numbered.

use std::collections::VecDeque;

use client::participant::{Event, IncomingProposal};

use super::complete::SharedCandidates;

/// Most proposals kept; the oldest are dropped first.
const OPEN_PROPOSALS_MAX: usize = 256;

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

    /// Processes an event: a proposal is open until a request fulfils it or the gateway reports that it is closed.
    pub(super) fn receive(&mut self, event: &Event) {
        match event {
            Event::Proposal(proposed) => {
                self.open.push_back((self.next, IncomingProposal::clone(proposed)));
                self.next += 1;
                if self.open.len() > OPEN_PROPOSALS_MAX {
                    self.open.pop_front();
                }
            }
            Event::Other(envelope) if envelope.kind().starts_with("mcp/request:") => {
                self.close(envelope.correlation_id().unwrap_or_default());
            }
            Event::ProposalState { proposal, state, .. } if state.is_over() => self.close(proposal),
            _ => {}
        }
    }

    /// Removes a proposal.
    pub(super) fn close(&mut self, id: &str) {
        self.open.retain(|(_, proposed)| proposed.id() != id);
    }

    /// All open proposals, oldest first.
    pub(super) fn open(&self) -> Vec<(usize, IncomingProposal)> {
        self.open.iter().cloned().collect()
    }

    /// The number of a proposal.
    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.open.iter().find(|(_, proposed)| proposed.id() == id).map(|(number, _)| *number)
    }

    /// The proposal with this id or number; `None` if the text matches the id of one and the number of another.
    pub(super) fn find(&self, which: &str) -> Option<&IncomingProposal> {
        let by_id = self.open.iter().find(|(_, proposed)| proposed.id() == which);
        let by_number = || {
            let number: usize = which.trim_start_matches('#').parse().ok()?;
            self.open.iter().find(|(own, _)| *own == number)
        };
        match (by_id, by_number()) {
            (Some(one), Some(other)) if one.0 != other.0 => None,
            (Some(one), _) | (None, Some(one)) => Some(&one.1),
            (None, None) => None,
        }
    }
}
