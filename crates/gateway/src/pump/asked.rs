//! Who was asked lately, so that an answer of somebody who was not is noticed (MCPx v0.1, 4.3: participants report who
//! misbehaves). It holds nothing back: receivers decide whom they believe. Must not know what was asked.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use platform::Mutex;

/// Requests of one topic that are remembered.
pub const ASKED_MAX: usize = 4096;
/// Requests under one id that are remembered: an id is globally unique (section 3).
const ASKERS_MAX: usize = 4;

struct Request {
    asker: u64,
    to: Box<[u64]>,
}

#[derive(Default)]
struct Memory {
    order: VecDeque<u64>,
    known: HashMap<u64, Vec<Request>>,
}

/// The requests that were said lately.
#[derive(Default)]
pub(super) struct Asked {
    memory: Mutex<Memory>,
    /// Its keys are secret, so that nobody can make two names look the same.
    hasher: RandomState,
}

impl Asked {
    /// Remembers a request. One that names nobody may be answered by anybody.
    pub(super) fn note<'t>(&self, asker: &str, id: &str, to: impl Iterator<Item = &'t str>) {
        let to: Box<[u64]> = to.map(|to| self.hasher.hash_one(to)).collect();
        if to.is_empty() {
            return;
        }
        let (id, asker) = (self.hasher.hash_one(id), self.hasher.hash_one(asker));
        let mut memory = self.memory.lock();
        let Memory { order, known } = &mut *memory;
        let requests = known.entry(id).or_insert_with(|| {
            order.push_back(id);
            Vec::with_capacity(1)
        });
        // The first of its sender counts: what repeats an id changes nothing.
        if requests.len() < ASKERS_MAX && requests.iter().all(|request| request.asker != asker) {
            requests.push(Request { asker, to });
        }
        if order.len() > ASKED_MAX
            && let Some(oldest) = order.pop_front()
        {
            known.remove(&oldest);
        }
    }

    /// Whether this answers a request that named others only. An answer to everybody is one to whoever asked.
    pub(super) fn is_intrusion<'t>(
        &self,
        from: &str,
        request: &str,
        to: impl Iterator<Item = &'t str> + Clone,
    ) -> bool {
        let id = self.hasher.hash_one(request);
        let memory = self.memory.lock();
        let Some(requests) = memory.known.get(&id) else { return false };
        let from = self.hasher.hash_one(from);
        let to_all = to.clone().next().is_none();
        let is_meant =
            |request: &&Request| to_all || to.clone().any(|to| self.hasher.hash_one(to) == request.asker);
        let mut meant = requests.iter().filter(is_meant).peekable();
        meant.peek().is_some() && !meant.any(|request| request.to.contains(&from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intrudes(asked: &Asked, from: &str, request: &str, to: &[&str]) -> bool {
        asked.is_intrusion(from, request, to.iter().copied())
    }

    #[test]
    fn only_who_was_asked_answers() {
        let asked = Asked::default();
        asked.note("ann", "1", ["bob", "cid"].into_iter());
        // It is ann's: what others ask under the same id, or ann herself once more, gives nobody a say in it.
        asked.note("eve", "1", ["eve"].into_iter());
        asked.note("ann", "1", ["eve"].into_iter());
        asked.note("ann", "all", [].into_iter());
        for (from, request, to, expected) in [
            ("bob", "1", &["ann"][..], false),
            ("cid", "1", &["ann", "zoe"], false),
            ("bob", "1", &[], false),
            ("eve", "1", &["ann"], true),
            ("dan", "1", &["ann"], true),
            ("dan", "1", &[], true),
            ("eve", "1", &["eve"], false),
            ("dan", "1", &["zoe"], false),
            ("dan", "all", &["ann"], false),
            ("dan", "other", &["ann"], false),
        ] {
            assert_eq!(intrudes(&asked, from, request, to), expected, "{from} {request} {to:?}");
        }
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let asked = Asked::default();
        for number in 0..=ASKED_MAX {
            asked.note("ann", &number.to_string(), ["bob"].into_iter());
        }
        assert!(!intrudes(&asked, "eve", "0", &["ann"]));
        assert!(intrudes(&asked, "eve", "1", &["ann"]));
    }
}
