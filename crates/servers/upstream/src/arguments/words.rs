//! Violations of a schema in words: where, and what was expected. The caller's values are not
//! repeated.

use std::fmt::{self, Write as _};

use json::visible;
use jsonschema::ValidationError;
use model::Violation;

/// Violations that are named; the others are counted.
const VIOLATIONS_MAX: usize = 8;
/// Bytes of the words for one violation, before hidden characters are made visible.
const VIOLATION_BYTES_MAX: usize = 300;

/// One line for each violation of a JSON Schema.
pub(super) fn of<'e>(violations: impl Iterator<Item = ValidationError<'e>>) -> String {
    lines(violations, |violation| {
        let place = place(violation.instance_path().as_str());
        bounded(format_args!("{place}: {}", violation.masked_with("this")))
    })
}

/// One line for each violation of a rule of a message.
pub(crate) fn of_rules(violations: &[Violation]) -> String {
    lines(
        violations.iter(),
        |Violation {
             field,
             rule,
             message,
         }| match message.as_str() {
            "" => bounded(format_args!("{}: {rule}", place(field))),
            message => bounded(format_args!("{}: {message}", place(field))),
        },
    )
}

fn place(path: &str) -> &str {
    if path.is_empty() {
        "the arguments"
    } else {
        path
    }
}

fn lines<V>(violations: impl Iterator<Item = V>, line: impl Fn(V) -> String) -> String {
    let mut out = String::new();
    let mut count = 0_usize;
    for violation in violations {
        count += 1;
        if count <= VIOLATIONS_MAX {
            let _ = writeln!(out, "- {}", line(violation));
        }
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
        let end = (0..=room)
            .rev()
            .find(|end| text.is_char_boundary(*end))
            .unwrap_or(0);
        self.0.push_str(text.get(..end).unwrap_or_default());
        Err(fmt::Error)
    }
}
