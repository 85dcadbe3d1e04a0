//! Violations of a schema in words: where, and what was expected. The caller's values are not repeated.

use std::fmt::{self, Write as _};

use json::visible;
use jsonschema::ValidationError;

/// Violations that are named; the others are counted.
const VIOLATIONS_MAX: usize = 8;
/// Bytes of the words for one violation, before hidden characters are made visible.
const VIOLATION_BYTES_MAX: usize = 300;

/// One line for each violation.
pub(super) fn of<'e>(violations: impl Iterator<Item = ValidationError<'e>>) -> String {
    let (mut out, mut count) = (String::new(), 0_usize);
    for violation in violations {
        count += 1;
        if count > VIOLATIONS_MAX {
            continue;
        }
        let path = violation.instance_path().as_str();
        let place = if path.is_empty() { "the arguments" } else { path };
        let line = bounded(format_args!("{place}: {}", violation.masked_with("this")));
        let _ = writeln!(out, "- {line}");
    }
    match count.saturating_sub(VIOLATIONS_MAX) {
        0 => {}
        more => drop(writeln!(out, "- and {more} more")),
    }
    out.truncate(out.trim_end().len());
    out
}

/// A text on one line with its hidden characters visible, cut at [`VIOLATION_BYTES_MAX`].
pub(super) fn bounded(text: fmt::Arguments<'_>) -> String {
    let mut cut = Cut::default();
    let whole = cut.write_fmt(text).is_ok();
    let mut line = visible::line(&cut.0);
    if !whole {
        line.push_str("...");
    }
    line
}

/// The beginning of what is written; writing ends with an error where it is full.
#[derive(Default)]
struct Cut(String);

impl fmt::Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = VIOLATION_BYTES_MAX - self.0.len();
        if text.len() <= room {
            self.0.push_str(text);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        self.0.push_str(text.get(..end).unwrap_or_default());
        Err(fmt::Error)
    }
}
