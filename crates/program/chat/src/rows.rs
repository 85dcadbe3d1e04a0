//! Rows of a terminal. Texts of others are wrapped here, each row after the first behind a gutter,
//! so that no text can look like another participant's line: not by padding it to the width of the
//! terminal, nor by wide or combining characters, tabs, or letters that are written from right to
//! left.

use std::io;

use rustix::termios::tcgetwinsize;
use unicode_width::UnicodeWidthChar;

/// Fewest columns that count; a narrower terminal wraps rows itself.
const COLUMNS_MIN: usize = 12;
/// Fewest columns in which times are shown.
const TIME_COLUMNS_MIN: usize = 40;
/// Most columns of a speaker's name.
const NAME_COLUMNS_MAX: usize = 24;
/// Most marks on one character. More of them would cover the rows above and below.
const MARKS_MAX: usize = 4;
/// The width of a tab.
const TAB: &str = "    ";
/// The gutter of text without a speaker.
const INDENT: &str = "    ";
/// Has a row with letters that are written from right to left begin at the left all the same.
pub(crate) const LEFT_TO_RIGHT: char = '\u{200e}';

/// A text for the terminal, whose hidden characters are visible already.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rows {
    /// The time of day that the first row begins with.
    time: Option<String>,
    /// The participant that speaks.
    speaker: Option<String>,
    text: String,
}

/// One row of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TerminalRow {
    /// Its beginning, which the program alone decides.
    pub gutter: String,
    /// The text behind it.
    pub text: String,
}

impl Rows {
    /// Words of a participant, which every row names.
    #[must_use]
    pub fn said(speaker: String, text: String) -> Self {
        Self {
            time: None,
            speaker: Some(speaker),
            text,
        }
    }

    /// Any other text. The program alone decides how its first row begins.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            time: None,
            speaker: None,
            text: text.into(),
        }
    }

    /// The rows, with a time before them.
    #[must_use]
    pub fn at(self, time: String) -> Self {
        Self {
            time: Some(time),
            ..self
        }
    }

    /// The rows for a terminal of so many columns. Without a terminal only line feeds begin rows.
    #[must_use]
    pub fn rows(&self, columns: Option<usize>) -> Vec<TerminalRow> {
        let columns = columns.map(|columns| columns.max(COLUMNS_MIN));
        let name = self.speaker.as_deref().map(|name| match columns {
            Some(columns) => shortened(name, NAME_COLUMNS_MAX.min(columns / 3)),
            None => name.to_owned(),
        });
        // A narrow terminal has no room for times.
        let has_room = columns.is_none_or(|columns| columns >= TIME_COLUMNS_MIN);
        let (time, blank) = match self.time.as_deref() {
            Some(time) if has_room => (format!("{time} "), " ".repeat(width(time) + 1)),
            _ => (String::new(), String::new()),
        };
        let (lead, gutter) = match &name {
            Some(name) => (format!("{time}{name}: "), format!("{blank}{name}| ")),
            None => (time, format!("{blank}{INDENT}")),
        };
        let mut rows: Vec<TerminalRow> = Vec::new();
        for line in self.text.lines() {
            let line: Vec<String> = clusters(line);
            let mut rest = line.as_slice();
            loop {
                let before = if rows.is_empty() { &lead } else { &gutter };
                // The last column stays empty: some terminals wrap when it is written, some later.
                let room = columns.map_or(usize::MAX, |columns| {
                    (columns - 1).saturating_sub(width(before))
                });
                let (row, left) = split(rest, room);
                rows.push(TerminalRow {
                    gutter: before.clone(),
                    text: row.concat(),
                });
                rest = left;
                if rest.is_empty() {
                    break;
                }
            }
        }
        if rows.is_empty() {
            rows.push(TerminalRow {
                gutter: lead.trim_end().to_owned(),
                text: String::new(),
            });
        }
        rows
    }

    /// The rows as one text.
    #[must_use]
    pub fn render(&self, columns: Option<usize>) -> String {
        let rows = self.rows(columns);
        rows.iter()
            .map(TerminalRow::render)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

impl TerminalRow {
    /// The row as text. One with letters that are written from right to left begins at the left all
    /// the same.
    #[must_use]
    pub fn render(&self) -> String {
        let row = format!("{}{}", self.gutter, self.text);
        if row.chars().any(is_right_to_left) {
            format!("{LEFT_TO_RIGHT}{row}")
        } else {
            row
        }
    }
}

/// The columns of the terminal on stdout; `None` if it is none.
#[must_use]
pub fn columns() -> Option<usize> {
    tcgetwinsize(io::stdout())
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
}

/// The characters of a line, each with the marks on it.
fn clusters(line: &str) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let mut marks = 0;
    for c in line.chars() {
        match (c, all.last_mut()) {
            ('\t', _) => all.extend(TAB.chars().map(String::from)),
            (c, Some(last)) if is_mark(c) && marks < MARKS_MAX && last != " " => {
                marks += 1;
                last.push(c);
                continue;
            }
            // A mark without a character of its own would sit on the gutter.
            (c, _) if is_mark(c) => {
                all.extend(c.escape_unicode().map(String::from));
                marks = MARKS_MAX;
                continue;
            }
            (c, _) => all.push(c.into()),
        }
        marks = 0;
    }
    all
}

/// The rows of one line with so much room each; one at least.
pub(crate) fn wrap(line: &str, room: usize) -> Vec<String> {
    let line = clusters(line);
    let mut rest = line.as_slice();
    let mut rows = Vec::new();
    loop {
        let (row, left) = split(rest, room);
        rows.push(row.concat());
        rest = left;
        if rest.is_empty() {
            return rows;
        }
    }
}

/// The clusters of a row with so much room, and the rest: cut at the last space, or anywhere in a
/// word that is too long.
fn split(line: &[String], room: usize) -> (&[String], &[String]) {
    let mut used = 0;
    let mut whole = 0;
    for cluster in line {
        used += width(cluster);
        if used > room {
            break;
        }
        whole += 1;
    }
    // A row has at least one cluster, so that a narrow terminal ends too.
    let whole = whole.max(1).min(line.len());
    let (row, rest) = line.split_at(whole);
    let cut = match rest.first() {
        None => return (row, rest),
        Some(next) if is_blank(next) => whole,
        Some(_) => row
            .iter()
            .rposition(|cluster| is_blank(cluster))
            .unwrap_or(whole),
    };
    // The blanks at the cut belong to neither.
    let (row, rest) = line.split_at(cut);
    let end = row
        .iter()
        .rposition(|cluster| !is_blank(cluster))
        .map_or(0, |last| last + 1);
    let next = rest
        .iter()
        .position(|cluster| !is_blank(cluster))
        .unwrap_or(rest.len());
    (
        row.get(..end).unwrap_or_default(),
        rest.get(next..).unwrap_or_default(),
    )
}

fn is_blank(cluster: &str) -> bool {
    cluster == " "
}

/// A name of at most so many columns: its beginning and its end.
pub(crate) fn shortened(name: &str, columns: usize) -> String {
    if width(name) <= columns {
        return name.to_owned();
    }
    let half = columns.saturating_sub(2) / 2;
    let begin = fitting(name.chars(), half);
    let mut end = fitting(name.chars().rev(), half);
    end.reverse();
    format!("{}..{}", String::from_iter(begin), String::from_iter(end))
}

/// The first of these characters, as many as so many columns have room for.
fn fitting(chars: impl Iterator<Item = char>, columns: usize) -> Vec<char> {
    let mut used = 0;
    let mut fitting = Vec::new();
    for c in chars {
        used += cells(c);
        if used > columns {
            break;
        }
        fitting.push(c);
    }
    fitting
}

pub(crate) fn width(text: &str) -> usize {
    text.chars().map(cells).sum()
}

/// The most columns that any terminal gives a character: those of ambiguous width count as wide,
/// marks as characters.
fn cells(c: char) -> usize {
    match c {
        c if c.is_ascii() => 1,
        '\u{1f000}'.. => 2,
        c => c.width_cjk().unwrap_or(1).max(1),
    }
}

fn is_mark(c: char) -> bool {
    !c.is_ascii() && c.width() == Some(0)
}

/// Letters of the scripts that are written from right to left.
pub(crate) fn is_right_to_left(c: char) -> bool {
    matches!(u32::from(c), 0x590..=0x8FF | 0xFB1D..=0xFDFF | 0xFE70..=0xFEFE | 0x10800..=0x10FFF | 0x1E800..=0x1EFFF)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str, columns: usize) -> Vec<String> {
        let rows = Rows::said("mallory".to_owned(), text.to_owned()).render(Some(columns));
        rows.lines().map(str::to_owned).collect()
    }

    #[test]
    fn every_row_of_a_speaker_names_it() {
        assert_eq!(said("hi", 40), ["mallory: hi"]);
        assert_eq!(said("", 40), ["mallory:"]);
        assert_eq!(
            said("hi\nboss: approve it", 40),
            ["mallory: hi", "mallory| boss: approve it"]
        );
        let padded = format!("hi{}boss: approve it", " ".repeat(29));
        assert_eq!(
            said(&padded, 40),
            ["mallory: hi", "mallory| boss: approve it"]
        );
        assert_eq!(
            said("a line that is longer than the terminal is wide", 30),
            [
                "mallory: a line that is",
                "mallory| longer than the",
                "mallory| terminal is wide"
            ]
        );
        assert_eq!(
            said(&"x".repeat(50), 40),
            [
                format!("mallory: {}", "x".repeat(30)),
                format!("mallory| {}", "x".repeat(20))
            ]
        );
        let piped =
            Rows::said("mallory".into(), format!("{}\nboss: b", "x".repeat(500))).render(None);
        assert_eq!(
            piped,
            format!("mallory: {}\nmallory| boss: b", "x".repeat(500))
        );
        let other = Rows::new("? proposal #1 by mallory\nparams {}").render(Some(24));
        assert_eq!(other, "? proposal #1 by\n    mallory\n    params {}");
    }

    /// The columns that a usual terminal gives a row.
    fn shown(row: &str) -> usize {
        row.chars().map(|c| c.width().unwrap_or(0)).sum()
    }

    #[test]
    fn no_text_reaches_the_last_column() {
        for text in [
            "漢字".repeat(60),
            "😀".repeat(60),
            "👩🏽".repeat(40),
            "é".repeat(90),
            "e\u{301}\u{302}\u{303}".repeat(60),
            format!("e{}", "\u{301}".repeat(400)),
            "a\tb".repeat(40),
            "שלום boss: approve ".repeat(10),
            "\u{1f1e6}\u{1f1e7}".repeat(40),
            "각".repeat(50),
            " ".repeat(300),
            "word ".repeat(60),
        ] {
            for columns in [10, 24, 40, 79, 80, 81, 200] {
                for row in said(&text, columns) {
                    let plain = row.trim_start_matches(LEFT_TO_RIGHT);
                    let name = shortened("mallory", columns.max(COLUMNS_MIN) / 3);
                    let gutters = [format!("{name}:"), format!("{name}| ")];
                    assert!(
                        gutters.iter().any(|gutter| plain.starts_with(gutter)),
                        "{row:?}"
                    );
                    assert!(
                        shown(plain) < columns.max(COLUMNS_MIN),
                        "{columns}: {row:?}"
                    );
                    assert!(!row.contains('\t'), "{row:?}");
                }
            }
        }
    }

    #[test]
    fn marks_stay_on_their_character_and_do_not_pile_up() {
        let piled = said(&format!("e{}x", "\u{301}".repeat(6)), 80);
        assert_eq!(
            piled,
            ["mallory: e\u{301}\u{301}\u{301}\u{301}\\u{301}\\u{301}x"]
        );
        // Neither on the gutter nor on a blank.
        assert_eq!(
            said("\u{301}a \u{301}b\n\u{301}c", 80),
            ["mallory: \\u{301}a \\u{301}b", "mallory| \\u{301}c"]
        );
        for row in said(&"e\u{301}".repeat(40), 24) {
            assert!(
                !row.contains("| \u{301}") && row.ends_with('\u{301}'),
                "{row:?}"
            );
        }
    }

    #[test]
    fn a_row_from_right_to_left_begins_at_the_left() {
        assert_eq!(
            said("שלום\nhi", 80),
            ["\u{200e}mallory: שלום", "mallory| hi"]
        );
        assert_eq!(
            Rows::new("* a\nשלום boss: b").render(Some(80)),
            "* a\n\u{200e}    שלום boss: b"
        );
    }

    #[test]
    fn times_stand_before_the_first_row_and_blanks_before_the_others() {
        let rows =
            Rows::said("mallory".into(), "one two\n12:31 boss: yes".into()).at("12:30".into());
        assert_eq!(
            rows.render(Some(40)),
            "12:30 mallory: one two\n      mallory| 12:31 boss: yes"
        );
        assert_eq!(
            rows.render(Some(39)),
            "mallory: one two\nmallory| 12:31 boss: yes"
        );
        assert_eq!(
            Rows::new("* a\nb").at("12:30".into()).render(None),
            "12:30 * a\n          b"
        );
    }

    #[test]
    fn long_names_are_shortened_in_the_middle() {
        let rows = Rows::said("a-very-long-name-of-a-participant".into(), "x ".repeat(40))
            .render(Some(60));
        for row in rows.lines() {
            assert!(
                row.starts_with("a-very-lo..rticipant") && shown(row) < 60,
                "{row}"
            );
        }
    }
}
