//! Proposals as reviewers were shown them, and the time that each took to decide.
//!
//! Only a person who had time to read a call teaches rules by approving it. The time of a decision
//! counts from when its reviewer was first shown the proposal with its arguments, or from that
//! reviewer's decision before, whichever is later: of what is shown together, nothing is read at the
//! same time.

use std::collections::{BTreeMap, VecDeque};

use model::{Digest, OperationId, ParticipantId};
use platform::Mutex;
use rules::{Deliberation, HURRIED_DECISIONS};
use topic::DECIDERS_SHOWN_MAX;

use crate::live::ProposalView;

/// The most proposals of which it is known when a reviewer was shown them; the one that was shown
/// longest ago makes way.
pub const SHOWN_PROPOSALS_MAX: usize = 256;
/// The most reviewers of a topic of whom that is known; the one that was shown nothing for longest
/// makes way.
pub const SHOWN_REVIEWERS_MAX: usize = 256;

/// The showings of one topic. Times are milliseconds on the gateway's own clock, which never goes
/// back. Nothing of it outlives a restart: what is decided then was never shown.
#[derive(Debug, Default)]
pub(crate) struct Showings {
    by_reviewer: Mutex<BTreeMap<ParticipantId, Reviewer>>,
}

/// A proposal, with the digest of what is shown of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShownText {
    pub(crate) proposal: OperationId,
    pub(crate) digest: Digest,
}

#[derive(Debug, Default)]
struct Reviewer {
    shown: BTreeMap<OperationId, Showing>,
    /// When it was shown something last, or decided.
    active_ms: u64,
    decided_ms: Option<u64>,
    /// The times that its last decisions took, the latest last.
    took_ms: VecDeque<u32>,
}

/// The first showing of a text.
#[derive(Debug)]
struct Showing {
    digest: Digest,
    since_ms: u64,
}

impl ShownText {
    /// The text of a proposal, as it is shown.
    pub(crate) fn of(view: &ProposalView) -> Option<Self> {
        Some(Self {
            proposal: view.id,
            digest: view.content.opened.digest.parse().ok()?,
        })
    }
}

impl Showings {
    /// Notes that a reviewer is shown proposals with their arguments.
    pub(crate) fn note(
        &self,
        reviewer: &ParticipantId,
        shown: impl IntoIterator<Item = ShownText>,
        now_ms: u64,
    ) {
        let mut shown = shown.into_iter().peekable();
        if shown.peek().is_none() {
            return;
        }
        let mut all = self.by_reviewer.lock();
        let own = active(&mut all, reviewer, now_ms);
        for text in shown {
            own.note(text, now_ms);
        }
    }

    /// Measures a decision that a reviewer makes now, about the text with this digest.
    pub(crate) fn measure(
        &self,
        reviewer: &ParticipantId,
        decided: ShownText,
        now_ms: u64,
    ) -> Deliberation {
        let mut all = self.by_reviewer.lock();
        active(&mut all, reviewer, now_ms).decide(decided, now_ms)
    }

    /// The reviewers that were shown a proposal, in the order of their names: some of them.
    pub(crate) fn shown_to(&self, proposal: OperationId) -> Vec<ParticipantId> {
        let all = self.by_reviewer.lock();
        let shown = all
            .iter()
            .filter(|(_, own)| own.shown.contains_key(&proposal));
        shown
            .map(|(id, _)| id.clone())
            .take(DECIDERS_SHOWN_MAX)
            .collect()
    }

    /// The times that a reviewer's last decisions took, the latest last.
    pub(crate) fn last_ms(&self, reviewer: &ParticipantId) -> Vec<u32> {
        let all = self.by_reviewer.lock();
        let own = all.get(reviewer);
        own.map_or_else(Vec::new, |own| own.took_ms.iter().copied().collect())
    }

    /// Forgets a proposal that is over.
    pub(crate) fn forget(&self, proposal: OperationId) {
        for own in self.by_reviewer.lock().values_mut() {
            own.shown.remove(&proposal);
        }
    }
}

/// A reviewer, which is active now.
fn active<'a>(
    all: &'a mut BTreeMap<ParticipantId, Reviewer>,
    reviewer: &ParticipantId,
    now_ms: u64,
) -> &'a mut Reviewer {
    if all.len() >= SHOWN_REVIEWERS_MAX && !all.contains_key(reviewer) {
        let idle = all.iter().min_by_key(|(_, own)| own.active_ms);
        if let Some(idle) = idle.map(|(id, _)| id.clone()) {
            all.remove(&idle);
        }
    }
    let own = all.entry(reviewer.clone()).or_default();
    own.active_ms = now_ms;
    own
}

impl Reviewer {
    fn note(&mut self, text: ShownText, now_ms: u64) {
        let ShownText { proposal, digest } = text;
        let known = self.shown.get(&proposal);
        if known.is_some_and(|known| known.digest == digest) {
            return;
        }
        if known.is_none() && self.shown.len() >= SHOWN_PROPOSALS_MAX {
            let oldest = self.shown.iter().min_by_key(|(_, one)| one.since_ms);
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                self.shown.remove(&oldest);
            }
        }
        let since_ms = now_ms;
        self.shown.insert(proposal, Showing { digest, since_ms });
    }

    fn decide(&mut self, decided: ShownText, now_ms: u64) -> Deliberation {
        let shown = self.shown.get(&decided.proposal);
        let shown = shown.filter(|shown| shown.digest == decided.digest);
        let since_ms = shown.map(|shown| shown.since_ms.max(self.decided_ms.unwrap_or_default()));
        let took_ms = since_ms.map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
        let took_ms = u32::try_from(took_ms).unwrap_or(u32::MAX);
        let measured = Deliberation {
            shown_ms: took_ms,
            last_ms: self.took_ms.iter().copied().collect(),
            ..Deliberation::default()
        };
        self.decided_ms = Some(now_ms);
        if self.took_ms.len() == HURRIED_DECISIONS {
            self.took_ms.pop_front();
        }
        self.took_ms.push_back(took_ms);
        measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> ParticipantId {
        ParticipantId::new(name).unwrap()
    }

    fn text(proposal: u128, digest: u8) -> ShownText {
        ShownText {
            proposal: OperationId(proposal),
            digest: Digest([digest; 32]),
        }
    }

    #[test]
    fn a_decision_took_the_time_since_its_text_was_shown_first() {
        let showings = Showings::default();
        let ann = id("ann");
        let took = |proposal, digest, now_ms| {
            let measured = showings.measure(&ann, text(proposal, digest), now_ms);
            measured.shown_ms
        };
        assert_eq!(took(1, 1, 5), 0, "it was never shown");
        showings.note(&ann, [text(2, 1)], 10);
        showings.note(&ann, [text(2, 1)], 900);
        showings.note(&id("bo"), [text(3, 1)], 10);
        assert_eq!(took(2, 1, 1_010), 1_000);
        assert_eq!(took(3, 1, 1_020), 0, "another one was shown it");
        showings.note(&ann, [text(4, 1)], 2_000);
        assert_eq!(took(4, 2, 3_000), 0, "another text was shown");
        showings.note(&ann, [text(4, 2)], 4_000);
        assert_eq!(took(4, 2, 4_500), 500);
        showings.forget(OperationId(4));
        assert_eq!(took(4, 2, 5_000), 0, "it is over");
    }

    #[test]
    fn what_is_shown_together_is_read_one_after_the_other() {
        let showings = Showings::default();
        let ann = id("ann");
        showings.note(&ann, (0..3).map(|proposal| text(proposal, 1)), 0);
        let took: Vec<u32> = [(0, 9_000), (1, 9_010), (2, 11_000)]
            .into_iter()
            .map(|(proposal, now_ms)| showings.measure(&ann, text(proposal, 1), now_ms).shown_ms)
            .collect();
        assert_eq!(took, [9_000, 10, 1_990]);
        assert_eq!(showings.last_ms(&ann), took);
        let last = showings.measure(&ann, text(9, 1), 12_000).last_ms;
        assert_eq!(last, took, "of those before");
    }

    #[test]
    fn the_oldest_showing_and_the_idlest_reviewer_make_way_at_the_limit() {
        let showings = Showings::default();
        let ann = id("ann");
        for at in 0..=SHOWN_PROPOSALS_MAX {
            let now_ms = u64::try_from(at).unwrap();
            showings.note(&ann, [text(u128::try_from(at).unwrap(), 1)], now_ms);
        }
        let count = || showings.by_reviewer.lock()[&ann].shown.len();
        assert_eq!(count(), SHOWN_PROPOSALS_MAX);
        assert!(
            !showings.by_reviewer.lock()[&ann]
                .shown
                .contains_key(&OperationId(0))
        );
        showings.note(&ann, [text(1, 1)], 5_000);
        assert_eq!(count(), SHOWN_PROPOSALS_MAX);
        for at in 0..SHOWN_REVIEWERS_MAX {
            let now_ms = 10_000 + u64::try_from(at).unwrap();
            showings.note(&id(&format!("r{at}")), [text(1, 1)], now_ms);
        }
        let all = showings.by_reviewer.lock();
        assert_eq!(all.len(), SHOWN_REVIEWERS_MAX);
        assert!(!all.contains_key(&ann) && all.contains_key(&id("r0")));
    }

    #[test]
    fn no_more_decisions_are_kept_than_are_looked_at() {
        let showings = Showings::default();
        let ann = id("ann");
        for at in 0..=HURRIED_DECISIONS {
            let now_ms = u64::try_from(at).unwrap();
            showings.measure(&ann, text(1, 1), now_ms);
        }
        assert_eq!(showings.last_ms(&ann).len(), HURRIED_DECISIONS);
    }
}
