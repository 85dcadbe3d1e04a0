//! Capabilities in shadow: sets that decide nothing. Each act whose verdict under one would differ is
//! recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use model::{Capabilities, Narrowing, ParticipantId};
use platform::Mutex;
use topic::RequestWay;

/// The capabilities in shadow of a participant in a topic now; `None` if it has none.
pub type ShadowSetOf = Box<dyn Fn(&ParticipantId) -> Option<Arc<Capabilities>> + Send + Sync>;

/// The capabilities in shadow of the participants of a topic.
#[derive(Default)]
pub(crate) struct ShadowSets {
    /// Whether there are any: without, no act is looked at.
    is_any: AtomicBool,
    /// Those of a participant in the topic now, with what is granted to it.
    now: OnceLock<ShadowSetOf>,
    state: Mutex<ShadowState>,
}

#[derive(Default)]
struct ShadowState {
    /// As the configuration has them.
    written: BTreeMap<ParticipantId, Arc<Capabilities>>,
    counts: BTreeMap<ParticipantId, WouldCounts>,
}

/// What capabilities in shadow would have decided otherwise, since the gateway runs and has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WouldCounts {
    /// The acts that were looked at.
    pub acts: u64,
    /// Acts that would have been refused.
    pub refused: u64,
    /// Acts that would have become proposals.
    pub held: u64,
    /// Acts that would have been allowed.
    pub allowed: u64,
}

impl WouldCounts {
    /// It in words.
    #[must_use]
    pub fn words(&self) -> String {
        let Self {
            acts,
            refused,
            held,
            allowed,
        } = self;
        format!(
            "of {acts} acts {refused} would have been refused, {held} would have become proposals, {allowed} would have been allowed"
        )
    }

    fn take(&mut self, would: Option<RequestWay>) {
        self.acts = self.acts.saturating_add(1);
        let count = match would {
            Some(RequestWay::Made) => &mut self.allowed,
            Some(RequestWay::Held) => &mut self.held,
            Some(RequestWay::Refused) => &mut self.refused,
            None => return,
        };
        *count = count.saturating_add(1);
    }
}

impl ShadowSets {
    /// Whether there are any.
    pub(crate) fn is_any(&self) -> bool {
        self.is_any.load(Ordering::Relaxed)
    }

    /// Those of a participant now, as far as an access token with this narrowing is good for them.
    pub(crate) fn of(
        &self,
        participant: &ParticipantId,
        narrowing: Option<&Narrowing>,
    ) -> Option<Arc<Capabilities>> {
        let set = self.now.get()?(participant)?;
        Some(match narrowing {
            Some(narrowing) => Arc::new(set.within(&narrowing.to)),
            None => set,
        })
    }

    pub(crate) fn count(&self, participant: &ParticipantId, would: Option<RequestWay>) {
        let mut state = self.state.lock();
        let counts = state.counts.entry(participant.clone()).or_default();
        counts.take(would);
    }

    /// Asks for them here, from now on.
    pub(crate) fn ask(&self, now: ShadowSetOf) {
        let _ = self.now.set(now);
    }

    /// Takes over the configured ones. What was counted of one that has changed begins anew.
    pub(crate) fn put(&self, written: BTreeMap<ParticipantId, Arc<Capabilities>>) {
        let mut state = self.state.lock();
        let ShadowState {
            written: before,
            counts,
        } = &mut *state;
        counts.retain(|id, _| before.get(id) == written.get(id));
        self.is_any.store(!written.is_empty(), Ordering::Relaxed);
        *before = written;
    }

    /// The counts of a participant; `None` if it has no set.
    pub(crate) fn counts_of(&self, participant: &ParticipantId) -> Option<WouldCounts> {
        let state = self.state.lock();
        let counts = || state.counts.get(participant).copied().unwrap_or_default();
        state.written.contains_key(participant).then(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acts_are_counted_by_the_way_that_they_would_have_gone() {
        let mut counts = WouldCounts::default();
        let ways = [
            None,
            Some(RequestWay::Made),
            Some(RequestWay::Held),
            Some(RequestWay::Held),
            Some(RequestWay::Refused),
        ];
        ways.into_iter().for_each(|way| counts.take(way));
        assert_eq!(
            counts.words(),
            "of 5 acts 1 would have been refused, 2 would have become proposals, 1 would have been allowed"
        );
    }
}
