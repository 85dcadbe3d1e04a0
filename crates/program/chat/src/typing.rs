//! The line that is being typed: text, cursor, and what of it fits on a row.

use json::visible;
use unicode_segmentation::UnicodeSegmentation;

use crate::rows::width;

/// Longest line that can be typed, in bytes.
pub const TYPED_BYTES_MAX: usize = 64 * 1024;
/// Earlier lines that can be brought back.
pub const EARLIER_LINES_MAX: usize = 200;

/// A line that is being typed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Typing {
    text: String,
    /// The cursor, in bytes, between two characters as a person sees them.
    at: usize,
}

impl Typing {
    /// A line that begins with this text, the cursor behind it.
    pub(crate) fn new(text: &str) -> Self {
        let mut typing = Self::default();
        typing.insert(text);
        typing
    }

    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    #[must_use]
    pub fn before(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn after(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Inserts a text at the cursor. False if the line would be longer than [`TYPED_BYTES_MAX`]:
    /// then nothing is inserted.
    pub(crate) fn insert(&mut self, text: &str) -> bool {
        if self.text.len() + text.len() > TYPED_BYTES_MAX {
            return false;
        }
        self.text.insert_str(self.at, text);
        self.at += text.len();
        true
    }

    /// Replaces the text before the cursor from `start` on.
    pub(crate) fn replace(&mut self, start: usize, text: &str) {
        if self.text.is_char_boundary(start) && start <= self.at {
            self.text.replace_range(start..self.at, "");
            self.at = start;
            self.insert(text);
        }
    }

    pub(crate) fn left(&mut self) {
        self.at -= self
            .before()
            .graphemes(true)
            .next_back()
            .map_or(0, str::len);
    }

    pub(crate) fn right(&mut self) {
        self.at += self.after().graphemes(true).next().map_or(0, str::len);
    }

    pub(crate) fn home(&mut self) {
        self.at = 0;
    }

    pub(crate) fn end(&mut self) {
        self.at = self.text.len();
    }

    pub(crate) fn backspace(&mut self) {
        let end = self.at;
        self.left();
        self.text.replace_range(self.at..end, "");
    }

    pub(crate) fn delete(&mut self) {
        let len = self.after().graphemes(true).next().map_or(0, str::len);
        self.text.replace_range(self.at..self.at + len, "");
    }

    /// Deletes the word before the cursor.
    pub(crate) fn word_back(&mut self) {
        let kept = self.before().trim_end().rfind(char::is_whitespace);
        let start = kept.and_then(|at| {
            self.before()
                .get(at..)?
                .chars()
                .next()
                .map(|c| at + c.len_utf8())
        });
        let start = start.unwrap_or_default();
        self.text.replace_range(start..self.at, "");
        self.at = start;
    }

    /// Deletes everything before the cursor.
    pub(crate) fn cut_before(&mut self) {
        self.text.replace_range(..self.at, "");
        self.at = 0;
    }

    /// Deletes everything after the cursor.
    pub(crate) fn cut_after(&mut self) {
        self.text.truncate(self.at);
    }

    /// Takes the text; the line is empty then.
    pub(crate) fn take(&mut self) -> String {
        self.at = 0;
        std::mem::take(&mut self.text)
    }

    /// The part around the cursor that fits into so many columns, hidden characters made visible,
    /// and the cursor's column in it.
    #[must_use]
    pub fn shown(&self, columns: usize) -> (String, usize) {
        let shown = |text: &str| text.graphemes(true).map(visible::line).collect::<Vec<_>>();
        let before = shown(self.before());
        let after = shown(self.after());
        // One column is for the cursor at the end.
        let mut room = columns.saturating_sub(1);
        let mut kept = Vec::new();
        for cluster in before.iter().rev() {
            let Some(left) = room.checked_sub(width(cluster)) else {
                break;
            };
            room = left;
            kept.push(cluster.as_str());
        }
        kept.reverse();
        let column = kept.iter().map(|cluster| width(cluster)).sum();
        for cluster in &after {
            let Some(left) = room.checked_sub(width(cluster)) else {
                break;
            };
            room = left;
            kept.push(cluster);
        }
        (kept.concat(), column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Edit = fn(&mut Typing);

    #[test]
    fn lines_are_edited_by_what_a_person_sees_as_a_character() {
        for (edits, expect, at) in [
            (
                &[Typing::left as Edit, Typing::backspace][..],
                "ab \u{6f22}",
                3,
            ),
            (&[Typing::backspace], "ab e\u{301}", 6),
            (&[Typing::left, Typing::left, Typing::delete], "ab 漢", 3),
            (&[Typing::left, Typing::delete], "ab e\u{301}", 6),
            (
                &[Typing::home, Typing::delete, Typing::right],
                "b e\u{301}漢",
                1,
            ),
            (
                &[Typing::home, Typing::left, Typing::backspace],
                "ab e\u{301}漢",
                0,
            ),
            (&[Typing::word_back], "ab ", 3),
            (&[Typing::word_back, Typing::word_back], "", 0),
            (&[Typing::left, Typing::cut_before], "漢", 0),
            (&[Typing::home, Typing::right, Typing::cut_after], "a", 1),
            (
                &[Typing::home, Typing::end, Typing::right, Typing::delete],
                "ab e\u{301}漢",
                9,
            ),
        ] {
            let mut typing = Typing::new("ab e\u{301}漢");
            edits.iter().for_each(|edit| edit(&mut typing));
            assert_eq!((typing.text(), typing.at), (expect, at));
        }
    }

    #[test]
    fn a_line_has_a_limit() {
        let mut typing = Typing::new(&"x".repeat(TYPED_BYTES_MAX - 1));
        assert!(!typing.insert("ab"));
        assert!(typing.insert("a") && !typing.insert("a"));
        assert_eq!(typing.text().len(), TYPED_BYTES_MAX);
    }

    #[test]
    fn the_part_around_the_cursor_is_shown() {
        let mut typing = Typing::new("0123456789");
        assert_eq!(typing.shown(20), ("0123456789".to_owned(), 10));
        assert_eq!(typing.shown(5), ("6789".to_owned(), 4));
        typing.home();
        assert_eq!(typing.shown(5), ("0123".to_owned(), 0));
        assert_eq!(Typing::new("a\nb\u{1b}").shown(40).0, "a\\u{a}b\\u{1b}");
        assert_eq!(Typing::new("漢字").shown(4), ("字".to_owned(), 2));
        assert_eq!(Typing::new("x").shown(0), (String::new(), 0));
    }
}
