//! The talk: the latest entries, and which of their rows are on the screen.

use std::collections::VecDeque;

use crate::clock::Zone;
use crate::entry::{ChatEntry, Tone};
use crate::rows::TerminalRow;

/// Entries that are kept; older ones are dropped.
pub const ENTRIES_MAX: usize = 5_000;
/// Bytes of their texts together. The newest is kept in any case.
pub const ENTRIES_BYTES_MAX: usize = 4 << 20;
/// Longest text of an entry on the full screen, in characters; a longer one says how much is
/// missing.
pub const ENTRY_CHARS_MAX: usize = 20_000;

/// The latest entries.
#[derive(Debug, Default)]
pub struct Talk {
    entries: VecDeque<ChatEntry>,
    bytes: usize,
    /// All entries that there were.
    pushed: u64,
    /// Rows below the last one on the screen.
    pub(crate) scroll: usize,
    /// Entries that came while the end was not on the screen.
    pub(crate) below: usize,
}

/// A row of the talk with the tone of its entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TalkRow {
    /// The tone.
    pub tone: Tone,
    /// The participant that speaks.
    pub speaker: Option<String>,
    /// The row.
    pub row: TerminalRow,
}

impl Talk {
    /// Adds an entry, which takes so many rows at the present width.
    pub(crate) fn push(&mut self, entry: ChatEntry, rows: usize) {
        self.bytes += entry.text.len();
        self.pushed += 1;
        self.entries.push_back(entry);
        while self.entries.len() > ENTRIES_MAX
            || (self.bytes > ENTRIES_BYTES_MAX && self.entries.len() > 1)
        {
            let Some(oldest) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= oldest.text.len();
        }
        if self.scroll > 0 {
            // What is on the screen stays there.
            self.scroll += rows;
            self.below += 1;
        }
    }

    /// The number of all entries that there were.
    #[must_use]
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The kept entries after the first `seen` ones.
    pub fn since(&self, seen: u64) -> impl Iterator<Item = &ChatEntry> {
        let new = usize::try_from(self.pushed.saturating_sub(seen)).unwrap_or(usize::MAX);
        self.entries
            .iter()
            .skip(self.entries.len().saturating_sub(new))
    }

    /// The rows above the scroll that fit, oldest first. A row with the day stands between two
    /// days.
    #[must_use]
    pub fn rows(&self, columns: usize, height: usize, zone: Zone) -> Vec<TalkRow> {
        let wanted = height.saturating_add(self.scroll);
        let mut rows: VecDeque<TalkRow> = VecDeque::new();
        for (at, entry) in self.entries.iter().enumerate().rev() {
            if rows.len() >= wanted {
                break;
            }
            for row in entry_rows(entry, columns, zone).into_iter().rev() {
                rows.push_front(row);
            }
            let before = at.checked_sub(1).and_then(|at| self.entries.get(at));
            let day = zone.day(entry.at_ms);
            if before.is_some_and(|before| zone.day(before.at_ms) != day) {
                let row = TerminalRow {
                    gutter: format!("--- {day}"),
                    text: String::new(),
                };
                rows.push_front(TalkRow {
                    tone: Tone::Note,
                    speaker: None,
                    row,
                });
            }
        }
        let end = rows.len().saturating_sub(self.scroll);
        let begin = end.saturating_sub(height);
        rows.into_iter().skip(begin).take(end - begin).collect()
    }

    /// The number of all rows at this width.
    fn row_count(&self, columns: usize, zone: Zone) -> usize {
        let rows = |entry: &ChatEntry| entry_rows(entry, columns, zone).len();
        let days: Vec<String> = self
            .entries
            .iter()
            .map(|entry| zone.day(entry.at_ms))
            .collect();
        let changes = days
            .windows(2)
            .filter(|two| matches!(two, [one, next] if one != next))
            .count();
        self.entries.iter().map(rows).sum::<usize>() + changes
    }

    /// Scrolls so many rows up, or down if negative, for a screen of so many columns and rows.
    pub(crate) fn scroll_by(&mut self, rows: isize, columns: usize, height: usize, zone: Zone) {
        let most = if rows > 0 {
            self.row_count(columns, zone).saturating_sub(height)
        } else {
            self.scroll
        };
        self.scroll = self.scroll.saturating_add_signed(rows).min(most);
        if self.scroll == 0 {
            self.below = 0;
        }
    }
}

/// The rows of an entry.
pub(crate) fn entry_rows(entry: &ChatEntry, columns: usize, zone: Zone) -> Vec<TalkRow> {
    let rows = entry.rows(zone).rows(Some(columns)).into_iter();
    rows.map(|row| TalkRow {
        tone: entry.tone,
        speaker: entry.speaker.clone(),
        row,
    })
    .collect()
}

/// A text of at most [`ENTRY_CHARS_MAX`] characters, with a word about the rest.
pub(crate) fn cut(text: String) -> String {
    match text.char_indices().nth(ENTRY_CHARS_MAX) {
        None => text,
        Some((at, _)) => {
            let (begin, rest) = text.split_at(at);
            let left = rest.chars().count();
            format!(
                "{begin}\n[{left} characters more, which are not shown; portmoot chat --json prints all]"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talk(texts: &[&str]) -> Talk {
        let mut talk = Talk::default();
        for text in texts {
            talk.push(ChatEntry::said(Tone::Said, "a".into(), (*text).into()), 1);
        }
        talk
    }

    fn shown(talk: &Talk, height: usize) -> Vec<String> {
        talk.rows(30, height, Zone::utc())
            .into_iter()
            .map(|row| row.row.text)
            .collect()
    }

    #[test]
    fn the_end_is_shown_and_scrolling_stops_at_both_ends() {
        let mut talk = talk(&["1", "2\n3", "4"]);
        assert_eq!(shown(&talk, 2), ["3", "4"]);
        assert_eq!(shown(&talk, 9), ["1", "2", "3", "4"]);
        talk.scroll_by(1, 30, 2, Zone::utc());
        assert_eq!(shown(&talk, 2), ["2", "3"]);
        talk.scroll_by(50, 30, 2, Zone::utc());
        assert_eq!(
            (shown(&talk, 2), talk.scroll),
            (vec!["1".to_owned(), "2".to_owned()], 2)
        );
        talk.push(ChatEntry::said(Tone::Said, "a".into(), "5".into()), 1);
        assert_eq!(
            (talk.below, shown(&talk, 2)),
            (1, vec!["1".to_owned(), "2".to_owned()])
        );
        talk.scroll_by(-50, 30, 2, Zone::utc());
        assert_eq!(
            (shown(&talk, 2), talk.scroll, talk.below),
            (vec!["4".to_owned(), "5".to_owned()], 0, 0)
        );
    }

    #[test]
    fn each_day_begins_with_a_row() {
        let mut talk = Talk::default();
        for day in [0, 0, 1] {
            let entry = ChatEntry::said(Tone::Said, "a".into(), "x".into());
            talk.push(
                ChatEntry {
                    at_ms: 1_785_241_800_000 + day * 86_400_000,
                    ..entry
                },
                1,
            );
        }
        let rows: Vec<String> = talk
            .rows(60, 9, Zone::utc())
            .into_iter()
            .map(|row| row.row.render())
            .collect();
        assert_eq!(
            rows,
            ["12:30 a: x", "12:30 a: x", "--- 2026-07-29", "12:30 a: x"]
        );
    }

    #[test]
    fn entries_have_a_limit_in_number_bytes_and_length() {
        let mut many = talk(&[]);
        (0..=ENTRIES_MAX)
            .for_each(|number| many.push(ChatEntry::new(Tone::Note, number.to_string()), 1));
        assert_eq!(
            (many.entries.len(), many.pushed()),
            (ENTRIES_MAX, ENTRIES_MAX as u64 + 1)
        );
        assert_eq!(many.since(many.pushed() - 2).count(), 2);
        assert_eq!(many.since(0).count(), ENTRIES_MAX);
        let large = "x".repeat(ENTRIES_BYTES_MAX);
        let large = talk(&[&large, "y", &large]);
        assert_eq!((large.entries.len(), large.bytes), (1, ENTRIES_BYTES_MAX));
        assert_eq!(cut("x".repeat(ENTRY_CHARS_MAX)).len(), ENTRY_CHARS_MAX);
        let long = cut("ä".repeat(ENTRY_CHARS_MAX + 2));
        assert!(long.ends_with(
            "\n[2 characters more, which are not shown; portmoot chat --json prints all]"
        ));
    }
}
