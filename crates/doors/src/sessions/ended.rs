//! Ended legacy sessions: marks of their ids, and those that the journal does not have yet.

use std::collections::{HashSet, VecDeque};

use super::id::Mark;

/// Ended sessions that are remembered, so that no client resumes them.
pub(crate) const ENDED_KEPT_MAX: usize = 65_536;

/// The sessions that ended last.
#[derive(Debug, Default)]
pub(crate) struct Ended {
    known: HashSet<Mark>,
    /// Oldest first.
    order: VecDeque<Mark>,
    /// Those that the journal does not have yet, oldest first.
    unwritten: VecDeque<Mark>,
}

impl Ended {
    /// These ended before a restart, and are in the journal.
    pub(crate) fn known(marks: impl IntoIterator<Item = Mark>) -> Self {
        let mut ended = Self::default();
        marks.into_iter().for_each(|mark| ended.note(mark, false));
        ended
    }

    /// Notes one more; `lasting` if its id would be valid after a restart.
    pub(crate) fn note(&mut self, mark: Mark, lasting: bool) {
        if !self.known.insert(mark) {
            return;
        }
        self.order.push_back(mark);
        if lasting {
            self.unwritten.push_back(mark);
        }
        if self.order.len() > ENDED_KEPT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
            if self.unwritten.front() == Some(&oldest) {
                self.unwritten.pop_front();
            }
        }
    }

    /// Whether this one has ended.
    pub(crate) fn has(&self, mark: Mark) -> bool {
        self.known.contains(&mark)
    }

    /// Those that the journal does not have yet, each once.
    pub(crate) fn take_unwritten(&mut self) -> Vec<Mark> {
        std::mem::take(&mut self.unwritten).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: usize) -> Mark {
        Mark::of(&number.to_string())
    }

    #[test]
    fn each_mark_is_taken_for_the_journal_once() {
        let mut ended = Ended::known([mark(0)]);
        assert!(ended.has(mark(0)) && ended.take_unwritten().is_empty());
        [1, 2, 1, 0].iter().for_each(|number| ended.note(mark(*number), true));
        assert_eq!(ended.take_unwritten(), [mark(1), mark(2)]);
        ended.note(mark(3), true);
        ended.note(mark(4), false);
        assert_eq!(ended.take_unwritten(), [mark(3)]);
        assert!(ended.has(mark(4)));
        assert!(ended.take_unwritten().is_empty());
    }

    #[test]
    fn the_number_of_remembered_marks_has_a_limit() {
        let mut ended = Ended::default();
        (0..ENDED_KEPT_MAX).for_each(|number| ended.note(mark(number), true));
        assert!(ended.has(mark(0)));
        ended.note(mark(ENDED_KEPT_MAX), true);
        assert!(!ended.has(mark(0)) && ended.has(mark(1)) && ended.has(mark(ENDED_KEPT_MAX)));
        assert_eq!(ended.take_unwritten().len(), ENDED_KEPT_MAX);
    }
}
