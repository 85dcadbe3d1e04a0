//! Recent envelopes: which ids their senders have used, and who made which proposal.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;

/// Envelopes whose duplicate is recognized; older ones are forgotten.
pub const RECENT_ENVELOPES_MAX: usize = 4096;
/// Proposals whose proposer is known; older ones are forgotten.
pub const RECENT_PROPOSALS_MAX: usize = 1024;

/// The recent envelopes.
#[derive(Debug, Default)]
pub(super) struct Recent {
    hasher: RandomState,
    envelopes: HashSet<u64>,
    envelopes_by_age: VecDeque<u64>,
    proposers: HashMap<String, String>,
    proposals_by_age: VecDeque<String>,
}

impl Recent {
    /// Adds an envelope. True when its sender has used the id before.
    pub(super) fn is_duplicate(&mut self, from: &str, id: &str) -> bool {
        // A keyed hash of 64 bits: a sender cannot cause a collision on purpose.
        let hash = self.hasher.hash_one((from, id));
        if !self.envelopes.insert(hash) {
            return true;
        }
        self.envelopes_by_age.push_back(hash);
        if self.envelopes_by_age.len() > RECENT_ENVELOPES_MAX
            && let Some(oldest) = self.envelopes_by_age.pop_front()
        {
            self.envelopes.remove(&oldest);
        }
        false
    }

    /// Adds a proposal. Of two with the same id, the first one counts.
    pub(super) fn add_proposal(&mut self, id: &str, proposer: &str) {
        if self.proposers.contains_key(id) {
            return;
        }
        self.proposers.insert(id.to_owned(), proposer.to_owned());
        self.proposals_by_age.push_back(id.to_owned());
        if self.proposals_by_age.len() > RECENT_PROPOSALS_MAX
            && let Some(oldest) = self.proposals_by_age.pop_front()
        {
            self.proposers.remove(&oldest);
        }
    }

    /// The proposer of this proposal, if it is recent.
    pub(super) fn proposer(&self, id: &str) -> Option<&str> {
        self.proposers.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duplicate_has_the_same_sender_and_id() {
        let mut recent = Recent::default();
        for (from, id, duplicate) in
            [("a", "1", false), ("b", "1", false), ("a", "1", true), ("a", "2", false), ("a1", "", false)]
        {
            assert_eq!(recent.is_duplicate(from, id), duplicate, "{from} {id}");
        }
    }

    #[test]
    fn older_envelopes_and_proposals_are_forgotten() {
        let mut recent = Recent::default();
        for number in 0..=RECENT_ENVELOPES_MAX {
            assert!(!recent.is_duplicate("a", &number.to_string()));
        }
        assert_eq!(recent.envelopes.len(), RECENT_ENVELOPES_MAX);
        assert!(!recent.is_duplicate("a", "0"), "the oldest is forgotten");
        for number in 0..=RECENT_PROPOSALS_MAX {
            recent.add_proposal(&number.to_string(), "b");
        }
        assert_eq!((recent.proposer("0"), recent.proposer("1")), (None, Some("b")));
        assert_eq!(recent.proposers.len(), RECENT_PROPOSALS_MAX);
    }

    #[test]
    fn a_later_proposal_of_the_same_id_changes_nothing() {
        let mut recent = Recent::default();
        recent.add_proposal("p", "a");
        recent.add_proposal("p", "mallory");
        assert_eq!(recent.proposer("p"), Some("a"));
    }
}
