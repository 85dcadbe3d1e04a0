//! What a participant remembers of others' envelopes, within bounds: which it has had, and who proposed what.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::BuildHasher;

/// Envelopes whose repeat is recognised; older ones are forgotten.
pub const REPEATS_MAX: usize = 4096;
/// Proposals whose proposer is remembered.
pub const PROPOSALS_MAX: usize = 1024;

/// What was heard.
#[derive(Debug, Default)]
pub(super) struct Memory {
    hasher: RandomState,
    had: HashSet<u64>,
    order: VecDeque<u64>,
    proposers: HashMap<String, String>,
    proposals: VecDeque<String>,
}

impl Memory {
    /// Notes an envelope; true if its sender used this id before.
    pub(super) fn is_repeat(&mut self, from: &str, id: &str) -> bool {
        // A keyed hash of 64 bits: nobody can aim at a collision.
        let mark = self.hasher.hash_one((from, id));
        if !self.had.insert(mark) {
            return true;
        }
        self.order.push_back(mark);
        if self.order.len() > REPEATS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.had.remove(&oldest);
        }
        false
    }

    /// Notes who proposed. Of two with the same id the first counts.
    pub(super) fn proposed(&mut self, id: &str, by: &str) {
        if self.proposers.contains_key(id) {
            return;
        }
        self.proposers.insert(id.to_owned(), by.to_owned());
        self.proposals.push_back(id.to_owned());
        if self.proposals.len() > PROPOSALS_MAX
            && let Some(oldest) = self.proposals.pop_front()
        {
            self.proposers.remove(&oldest);
        }
    }

    /// Who made this proposal, if it was seen.
    pub(super) fn proposer(&self, id: &str) -> Option<&str> {
        self.proposers.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeat_is_the_same_id_of_the_same_sender() {
        let mut memory = Memory::default();
        for (from, id, repeat) in
            [("a", "1", false), ("b", "1", false), ("a", "1", true), ("a", "2", false), ("a1", "", false)]
        {
            assert_eq!(memory.is_repeat(from, id), repeat, "{from} {id}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut memory = Memory::default();
        for number in 0..=REPEATS_MAX {
            assert!(!memory.is_repeat("a", &number.to_string()));
        }
        assert_eq!(memory.had.len(), REPEATS_MAX);
        assert!(!memory.is_repeat("a", "0"), "the oldest is forgotten");
        for number in 0..=PROPOSALS_MAX {
            memory.proposed(&number.to_string(), "b");
        }
        assert_eq!((memory.proposer("0"), memory.proposer("1")), (None, Some("b")));
        assert_eq!(memory.proposers.len(), PROPOSALS_MAX);
    }

    #[test]
    fn nobody_takes_over_a_proposal() {
        let mut memory = Memory::default();
        memory.proposed("p", "a");
        memory.proposed("p", "mallory");
        assert_eq!(memory.proposer("p"), Some("a"));
    }
}
