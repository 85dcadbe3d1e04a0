//! Numbers that were seen, as far back as a window reaches.

/// Numbers behind the highest one of which it is known whether they were seen.
pub const WINDOW: u64 = 4096;
const WORDS: usize = 64;

/// The numbers seen of one sender. A number is new once; one from before the window never is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// One more than the highest number seen.
    end: u64,
    /// A bit for each of the last [`WINDOW`] numbers, at its rest by that.
    seen: [u64; WORDS],
}

impl Default for Window {
    fn default() -> Self {
        Self {
            end: 0,
            seen: [0; WORDS],
        }
    }
}

impl Window {
    /// Whether no number was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.end == 0
    }

    /// Whether this number was not seen and is not too old.
    pub(crate) fn is_new(&self, number: u64) -> bool {
        if number >= self.end {
            return number < u64::MAX;
        }
        self.end - number <= WINDOW && !self.bit(number)
    }

    /// Notes a number; whether it was new.
    pub(crate) fn note(&mut self, number: u64) -> bool {
        if !self.is_new(number) {
            return false;
        }
        if number >= self.end {
            let skipped = number - self.end;
            if skipped >= WINDOW {
                self.seen = [0; WORDS];
            } else {
                for between in self.end..number {
                    self.set(between, false);
                }
            }
            self.end = number + 1;
        }
        self.set(number, true);
        true
    }

    fn bit(&self, number: u64) -> bool {
        let (word, bit) = place(number);
        self.seen.get(word).is_some_and(|word| word & bit != 0)
    }

    fn set(&mut self, number: u64, is_seen: bool) {
        let (word, bit) = place(number);
        if let Some(word) = self.seen.get_mut(word) {
            *word = if is_seen { *word | bit } else { *word & !bit };
        }
    }
}

fn place(number: u64) -> (usize, u64) {
    let place = number % WINDOW;
    let word = usize::try_from(place / 64).unwrap_or_default();
    (word, 1 << (place % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_number_is_new_once_and_never_when_it_is_old(
            steps in proptest::collection::vec((0_u64..9000, any::<bool>()), 1..100),
        ) {
            let (mut window, mut seen, mut base) = (Window::default(), BTreeSet::new(), 0);
            for (number, moves) in steps {
                let number = base + number;
                let highest = seen.last().copied();
                let is_old = highest.is_some_and(|highest: u64| number + WINDOW <= highest);
                let expect = !is_old && seen.insert(number);
                prop_assert_eq!(window.is_new(number), expect);
                prop_assert_eq!(window.note(number), expect);
                base += u64::from(moves) * 2500;
            }
        }
    }

    #[test]
    fn the_window_reaches_back_so_far() {
        let mut window = Window::default();
        assert!(window.note(5) && window.note(4 + WINDOW));
        assert!(!window.is_new(4) && !window.is_new(5) && window.is_new(6));
        assert!(window.note(5 + WINDOW) && !window.is_new(5) && window.is_new(6));
        assert!(window.note(6) && !window.note(6));
        assert!(window.note(1 << 60) && !window.is_new(7 + WINDOW));
        assert!(!window.is_new(u64::MAX), "the end would not fit");
    }
}
