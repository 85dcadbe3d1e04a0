//! Which envelopes were acted on lately: one that comes again under the same id is not acted on twice (MCPx v0.1, section 3,
//! `id` is globally unique). Must not know what they ask.

use std::collections::{HashSet, VecDeque};
use std::hash::{BuildHasher, RandomState};

use model::ParticipantId;
use platform::Mutex;

/// Envelopes of one topic that are remembered.
pub const REPEATS_MAX: usize = 4096;

#[derive(Default)]
struct Seen {
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

/// The envelopes that were acted on lately.
#[derive(Default)]
pub(crate) struct Repeats {
    seen: Mutex<Seen>,
    /// Its keys are secret, so that nobody can make two ids look the same.
    hasher: RandomState,
}

impl Repeats {
    /// Whether this one of this sender was here before, on whatever connection; if not, it is remembered.
    pub(crate) fn is_repeat(&self, from: &ParticipantId, id: &str) -> bool {
        let key = self.hasher.hash_one((from, id));
        let mut seen = self.seen.lock();
        if !seen.known.insert(key) {
            return true;
        }
        seen.order.push_back(key);
        if seen.order.len() > REPEATS_MAX
            && let Some(oldest) = seen.order.pop_front()
        {
            seen.known.remove(&oldest);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_id_of_the_same_sender_counts_once() {
        let repeats = Repeats::default();
        let [ann, bob, cid] = ["ann", "bob", "cid"].map(|id| ParticipantId::new(id).unwrap());
        assert!(!repeats.is_repeat(&ann, "a"));
        assert!(repeats.is_repeat(&ann, "a"));
        assert!(!repeats.is_repeat(&bob, "a"));
        for number in 0..REPEATS_MAX {
            assert!(!repeats.is_repeat(&cid, &number.to_string()));
        }
        assert!(!repeats.is_repeat(&ann, "a"));
    }
}
