//! Which envelopes were acted on lately: one that comes again under the same id is not acted on twice (MCPx v0.1, section 3,
//! `id` is globally unique). Must not know what they ask.

use std::collections::{HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use model::LinkId;

/// Envelopes of one topic that are remembered.
pub const REPEATS_MAX: usize = 4096;

#[derive(Default)]
struct Seen {
    order: VecDeque<u64>,
    known: HashSet<u64>,
}

/// The envelopes that were acted on lately.
#[derive(Default)]
pub(crate) struct Repeats(Mutex<Seen>);

impl Repeats {
    /// Whether this one was here before; if not, it is remembered.
    pub(crate) fn is_repeat(&self, link: LinkId, id: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        (link, id).hash(&mut hasher);
        let key = hasher.finish();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    fn the_same_id_of_the_same_link_counts_once() {
        let repeats = Repeats::default();
        assert!(!repeats.is_repeat(LinkId(1), "a"));
        assert!(repeats.is_repeat(LinkId(1), "a"));
        assert!(!repeats.is_repeat(LinkId(2), "a"));
        for number in 0..REPEATS_MAX {
            assert!(!repeats.is_repeat(LinkId(3), &number.to_string()));
        }
        assert!(!repeats.is_repeat(LinkId(1), "a"));
    }
}
