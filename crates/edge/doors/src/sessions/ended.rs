//! Ended legacy sessions: marks of their ids, and those that the journal does not have yet.

use std::collections::{BTreeMap, HashSet};

use model::Latest;

use super::id::Mark;

/// Ended sessions that are remembered, so that no client resumes them. Beyond it the account that
/// has most loses its oldest.
pub(crate) const ENDED_KEPT_MAX: usize = 65_536;

/// The sessions that ended last.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    known: HashSet<Mark>,
    /// With their numbers in the order of their ends.
    latest: Latest<(u64, Mark)>,
    next: u64,
    /// Ended sessions that the journal does not have yet, by number, each with its account.
    unwritten: BTreeMap<u64, (Box<str>, Mark)>,
}

impl Ended {
    /// These ended before a restart, and are in the journal, each with its account.
    pub(crate) fn known<'m>(marks: impl IntoIterator<Item = (&'m str, Mark)>) -> Self {
        let mut ended = Self::default();
        marks
            .into_iter()
            .for_each(|(on, mark)| ended.note(on, mark, false));
        ended
    }

    /// Notes one more on an account; `lasting` if its id would be valid after a restart.
    pub(crate) fn note(&mut self, on: &str, mark: Mark, lasting: bool) {
        if !self.known.insert(mark) {
            return;
        }
        self.latest.push(on, 1, (self.next, mark));
        if lasting {
            self.unwritten.insert(self.next, (on.into(), mark));
        }
        self.next += 1;
        for (number, oldest) in self.latest.shrink(ENDED_KEPT_MAX, usize::MAX) {
            self.known.remove(&oldest);
            self.unwritten.remove(&number);
        }
    }

    /// Whether this one has ended.
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.known.contains(&mark)
    }

    /// Ended sessions that the journal does not have yet, by account, each once.
    pub(crate) fn take_unwritten(&mut self) -> BTreeMap<Box<str>, Vec<Mark>> {
        let mut all: BTreeMap<_, Vec<Mark>> = BTreeMap::new();
        for (on, mark) in std::mem::take(&mut self.unwritten).into_values() {
            all.entry(on).or_default().push(mark);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: usize) -> Mark {
        Mark::of(&number.to_string())
    }

    /// Those of one account.
    fn taken(ended: &mut Ended, on: &str) -> Vec<Mark> {
        ended.take_unwritten().remove(on).unwrap_or_default()
    }

    #[test]
    fn each_mark_is_taken_for_the_journal_once() {
        let mut ended = Ended::known([("ann", mark(0))]);
        assert!(ended.has(mark(0)) && ended.take_unwritten().is_empty());
        [1, 2, 1, 0]
            .iter()
            .for_each(|number| ended.note("ann", mark(*number), true));
        assert_eq!(taken(&mut ended, "ann"), [mark(1), mark(2)]);
        ended.note("ann", mark(3), true);
        ended.note("ann", mark(4), false);
        ended.note("bob", mark(5), true);
        assert_eq!(
            ended.take_unwritten().into_values().collect::<Vec<_>>(),
            [[mark(3)], [mark(5)]]
        );
        assert!(ended.has(mark(4)));
        assert!(ended.take_unwritten().is_empty());
    }

    #[test]
    fn ended_sessions_of_one_participant_push_out_no_others() {
        let mut ended = Ended::default();
        ended.note("bob", mark(ENDED_KEPT_MAX), true);
        (0..ENDED_KEPT_MAX - 1).for_each(|number| ended.note("ann", mark(number), true));
        assert!(ended.has(mark(0)));
        ended.note("ann", mark(ENDED_KEPT_MAX - 1), true);
        assert!(!ended.has(mark(0)) && ended.has(mark(1)) && ended.has(mark(ENDED_KEPT_MAX - 1)));
        assert!(ended.has(mark(ENDED_KEPT_MAX)));
        assert_eq!(taken(&mut ended, "ann").len(), ENDED_KEPT_MAX - 1);
    }
}
