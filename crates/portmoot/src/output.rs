//! The one room that prints: results to stdout, talk to stderr. Must not know what it prints.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::visible;

/// How to print, as flags and environment want it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output {
    /// `--json`.
    pub(crate) json: bool,
    quiet: bool,
    color: bool,
}

impl Output {
    /// `color` follows stderr, `NO_COLOR` and `--no-color`.
    pub(crate) fn new(json: bool, quiet: bool, no_color: bool) -> Output {
        let unwanted = no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Output { json, quiet, color: !unwanted && io::stderr().is_terminal() }
    }

    /// A result as it is, with a line feed at its end.
    pub(crate) fn result(self, text: &str) {
        let mut out = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        // A reader that has gone away needs no answer.
        let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
    }

    /// A result as JSON.
    pub(crate) fn result_json(self, value: &Value) {
        self.result(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// A result that is a listing: JSON if wanted, else a table whose cells hide nothing.
    pub(crate) fn listing(self, value: &Value, columns: &[&str], rows: &[Vec<String>]) {
        if self.json { self.result_json(value) } else { self.result(&table(columns, rows)) }
    }

    /// Talk: progress, next steps. Silent with `--quiet`.
    pub(crate) fn talk(self, text: &str) {
        if !self.quiet {
            error_line(text);
        }
    }

    /// Something that the user should know even with `--quiet`.
    pub(crate) fn warn(self, text: &str) {
        error_line(&format!("{} {text}", self.paint("warning:", "33")));
    }

    /// Why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            return error_line(&failure.to_json().to_string());
        }
        let message = visible::lines(&failure.message);
        let code = format!("[{}]", failure.code);
        // A list of problems carries their codes.
        let message = if message.contains(&code) { message } else { format!("{message} {code}") };
        error_line(&format!("{} {message}", self.paint("error:", "31;1")));
        if let Some(hint) = &failure.hint {
            error_line(&format!("{} {}", self.paint("hint:", "36"), visible::lines(hint)));
        }
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

fn error_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn table(columns: &[&str], rows: &[Vec<String>]) -> String {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| visible::line(cell)).collect()).collect();
    let head = columns.iter().map(|column| (*column).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let width = |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let gap = width.saturating_sub(cell.chars().count());
            format!("{cell}{}", " ".repeat(gap))
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}
