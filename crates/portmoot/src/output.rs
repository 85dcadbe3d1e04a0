//! Output: results to stdout, messages and errors to stderr. All printing of the program goes through here.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use json::visible;

/// Output settings from flags and environment.
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

    /// Prints a result, with a line feed at its end.
    pub(crate) fn result(self, text: &str) {
        let mut out = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        // A closed pipe is not an error of the command.
        let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
    }

    /// Prints a result as JSON.
    pub(crate) fn result_json(self, value: &Value) {
        self.result(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Prints the list under a member of an answer: the answer as JSON with `--json`, else a table.
    pub(crate) fn listing(
        self,
        answer: &Value,
        member: &str,
        columns: &[&str],
        row: impl Fn(&Value) -> Vec<String>,
    ) {
        if self.json {
            return self.result_json(answer);
        }
        let items = answer.get(member).and_then(Value::as_array).into_iter().flatten();
        self.table(columns, items.map(row));
    }

    /// Prints a table whose cells have hidden characters made visible.
    pub(crate) fn table(self, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) {
        self.result(&table(columns, rows));
    }

    /// Prints a message, such as progress or next steps, unless `--quiet` is set.
    pub(crate) fn message(self, text: &str) {
        if !self.quiet {
            error_line(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub(crate) fn warn(self, text: &str) {
        error_line(&format!("{} {text}", self.paint("warning:", "33")));
    }

    /// Prints why a command failed.
    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            return error_line(&failure.to_json().to_string());
        }
        let message = visible::lines(&failure.message);
        let code = format!("[{}]", failure.code);
        // A list of problems already contains the codes.
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

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> String {
    let head = columns.iter().map(|column| (*column).to_owned()).collect();
    let all: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.map(|row| row.iter().map(|cell| visible::line(cell)).collect()))
        .collect();
    let width = |at: usize| all.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns.len()).map(|at| width(at).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect::<Vec<_>>().join("\n")
}
