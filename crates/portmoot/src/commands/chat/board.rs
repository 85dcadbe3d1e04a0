//! The proposals that were heard and are still open, numbered, and the names that can be completed.

use std::collections::VecDeque;

use client::participant::{Event, IncomingProposal};

use super::complete::{Names, meet};

/// Proposals that are kept; of more, the oldest are forgotten.
const BOARD_MAX: usize = 256;

/// What is open.
pub(super) struct Board {
    names: Names,
    next: usize,
    open: VecDeque<(usize, IncomingProposal)>,
}

impl Board {
    pub(super) fn new(names: Names) -> Self {
        Self { names, next: 1, open: VecDeque::new() }
    }

    /// What can be completed.
    pub(super) fn names(&self) -> Names {
        self.names.clone()
    }

    /// Who is here.
    pub(super) fn meet(&self, people: impl Iterator<Item = String>) {
        meet(&self.names, people, self.open.iter().map(|(number, _)| number.to_string()));
    }

    /// Takes what is heard: a proposal is open until something fulfils it or the gateway says that it is over.
    pub(super) fn hear(&mut self, event: &Event) {
        match event {
            Event::Proposal(proposed) => {
                self.open.push_back((self.next, IncomingProposal::clone(proposed)));
                self.next += 1;
                if self.open.len() > BOARD_MAX {
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

    /// This one is over.
    pub(super) fn close(&mut self, id: &str) {
        self.open.retain(|(_, proposed)| proposed.id() != id);
    }

    /// All that are open, oldest first.
    pub(super) fn open(&self) -> Vec<(usize, IncomingProposal)> {
        self.open.iter().cloned().collect()
    }

    /// The number of a proposal.
    pub(super) fn number(&self, id: &str) -> Option<usize> {
        self.open.iter().find(|(_, proposed)| proposed.id() == id).map(|(number, _)| *number)
    }

    /// The proposal with this number or id. An id that is a number wins over the number.
    pub(super) fn find(&self, which: &str) -> Option<&IncomingProposal> {
        let by_id = self.open.iter().find(|(_, proposed)| proposed.id() == which);
        let by_number = || {
            let number: usize = which.trim_start_matches('#').parse().ok()?;
            self.open.iter().find(|(own, _)| *own == number)
        };
        // Two that match leave open which one is meant.
        match (by_id, by_number()) {
            (Some(one), Some(other)) if one.0 != other.0 => None,
            (Some(one), _) | (None, Some(one)) => Some(&one.1),
            (None, None) => None,
        }
    }
}
