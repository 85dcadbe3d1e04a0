//! Output: results to stdout, messages and errors to stderr, those of a running gateway as lines of
//! its log. All printing of the program goes through here.

pub mod spinner;

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::failure::Failure;
use crate::output::spinner::Spinner;
use config::report;
use json::visible;
use platform::Mutex;

/// Output settings from flags and environment.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    /// `--json`.
    pub json: bool,
    quiet: bool,
    color: bool,
    /// Whether results have colours.
    result_color: bool,
    /// Buffer to which results go instead of stdout.
    watched: Option<&'static Mutex<String>>,
    /// Whether colours are unwanted everywhere.
    plain: bool,
    /// Whether messages are lines of the log.
    log: Option<LogFormat>,
}

/// Form of the lines of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Time, level and text.
    Text,
    /// A JSON object a line.
    Json,
}

/// The log's target for messages of the program itself.
pub const LOG_TARGET: &str = "portmoot::run";

impl Output {
    /// Colours follow the terminal, `NO_COLOR` and `--no-color`.
    pub fn new(json: bool, quiet: bool, no_color: bool) -> Output {
        let unwanted =
            no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = !unwanted && io::stderr().is_terminal();
        let result_color = !unwanted && !json && io::stdout().is_terminal();
        Output {
            json,
            quiet,
            color,
            result_color,
            watched: None,
            plain: unwanted,
            log: None,
        }
    }

    /// The output, with results kept for the caller.
    pub fn watched(self, results: &'static Mutex<String>) -> Output {
        Output {
            watched: Some(results),
            ..self
        }
    }

    /// Whether the command runs again and again.
    pub fn is_watched(self) -> bool {
        self.watched.is_some()
    }

    /// A sign on the terminal that the program waits for something.
    pub fn spinner(self, what: &str) -> Spinner {
        Spinner::start(
            what,
            self.color && !self.quiet && !self.json && !self.is_watched(),
        )
    }

    /// Whether there are colours on a stream that is a terminal, or not.
    pub fn is_colourful(self, is_terminal: bool) -> bool {
        !self.plain && is_terminal
    }

    /// The output, with messages as lines of the log.
    pub fn to_log(self, format: LogFormat) -> Output {
        Output {
            log: Some(format),
            ..self
        }
    }

    /// Prints a text for people, such as a banner; with a log in JSON, `line` instead.
    pub fn banner(self, text: &str, line: &str) {
        match self.log {
            Some(LogFormat::Json) => self.message(line),
            Some(LogFormat::Text) | None => Output { log: None, ..self }.message(text),
        }
    }

    /// Prints a result, with a line feed at its end.
    pub fn result(self, text: &str) {
        spinner::clear();
        if let Some(watched) = self.watched {
            let mut kept = watched.lock();
            kept.push_str(text.trim_end_matches('\n'));
            return kept.push('\n');
        }
        let mut out = io::stdout().lock();
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        // A closed pipe is not an error of the command.
        let _ = write!(out, "{text}{newline}").and_then(|()| out.flush());
    }

    /// Writes bytes as they are.
    pub fn bytes(self, bytes: &[u8]) {
        let mut out = io::stdout().lock();
        // A closed pipe is not an error of the command.
        let _ = out.write_all(bytes).and_then(|()| out.flush());
    }

    /// Prints a result as JSON.
    pub fn result_json(self, value: &Value) {
        self.result_json_text(&serde_json::to_string_pretty(value).unwrap_or_default());
    }

    /// Prints a result that is JSON already.
    pub fn result_json_text(self, json: &str) {
        self.result(&safe(json));
    }

    /// Prints the list under a member of an answer: the answer as JSON with `--json`, else a table.
    pub fn listing(
        self,
        answer: &Value,
        member: &str,
        columns: &[&str],
        row: impl Fn(&Value) -> Vec<String>,
    ) {
        if self.json {
            return self.result_json(answer);
        }
        self.listing_or(answer, member, columns, "none", row);
    }

    /// Prints a listing; without entries, `none` says so and what is next.
    pub fn listing_or(
        self,
        answer: &Value,
        member: &str,
        columns: &[&str],
        none: &str,
        row: impl Fn(&Value) -> Vec<String>,
    ) {
        if self.json {
            return self.result_json(answer);
        }
        let items = answer
            .get(member)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default();
        self.table(columns, items.iter().map(row));
        if items.is_empty() {
            self.message(none);
        }
    }

    /// Prints a table whose cells have hidden characters made visible. On a terminal it is as wide
    /// as that: cells are wrapped.
    pub fn table(self, columns: &[&str], rows: impl Iterator<Item = Vec<String>>) {
        self.result(&table(
            columns,
            rows,
            self.result_color,
            self.result_columns(),
        ));
    }

    /// Prints a result of lines; on a terminal each is wrapped, and its further rows begin after so
    /// many blanks.
    pub fn indented(self, text: &str, indent: usize) {
        let Some(columns) = self.result_columns() else {
            return self.result(text);
        };
        let rows = text
            .lines()
            .flat_map(|line| indented(line, indent, columns))
            .collect::<Vec<_>>();
        self.result(&rows.join("\n"));
    }

    /// Prints an indented text that begins with `plain`, which is printed as `painted`.
    pub fn indented_with(self, text: &str, indent: usize, plain: &str, painted: &str) {
        let Some(columns) = self.result_columns() else {
            return self.result(&text.replacen(plain, painted, 1));
        };
        let rows = text
            .lines()
            .flat_map(|line| indented(line, indent, columns))
            .collect::<Vec<_>>();
        self.result(&rows.join("\n").replacen(plain, painted, 1));
    }

    /// The columns of the terminal to which results go, if they go to one.
    pub fn result_columns(self) -> Option<usize> {
        if self.json || self.is_watched() {
            None
        } else {
            chat::rows::columns()
        }
    }

    /// Prints one more row of a table, without padding.
    pub fn row(self, cells: &[String]) {
        self.result(
            &cells
                .iter()
                .map(|cell| visible::line(cell))
                .collect::<Vec<_>>()
                .join("  "),
        );
    }

    /// Prints a message, such as progress or next steps, unless `--quiet` is set.
    pub fn message(self, text: &str) {
        if self.log.is_some() {
            return log_lines(text).for_each(|line| tracing::info!(target: LOG_TARGET, "{line}"));
        }
        if !self.quiet {
            error_line(text);
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub fn warn(self, text: &str) {
        if self.log.is_some() {
            return log_lines(text).for_each(|line| tracing::warn!(target: LOG_TARGET, "{line}"));
        }
        error_line(&format!("{} {text}", self.paint("warning:", "33")));
    }

    /// Prints why a command failed.
    pub fn failure(self, failure: &Failure) {
        if self.log.is_some() {
            return log_failure(failure);
        }
        if self.json {
            return error_line(&safe(&failure.to_json().to_string()));
        }
        let message = visible::lines(&failure.message);
        // Each problem has its own code.
        let message = if failure.problems.is_empty() {
            format!("{message} [{}]", failure.code)
        } else {
            error_line(&format!("{}\n", report(&failure.problems, self.color)));
            message
        };
        error_line(&format!("{} {message}", self.paint("error:", "31;1")));
        if let Some(hint) = &failure.hint {
            error_line(&format!(
                "{} {}",
                self.paint("hint:", "36"),
                visible::lines(hint)
            ));
        }
    }

    /// A text for a message, in a colour (a code of ECMA-48) where there are colours.
    pub fn painted(self, text: &str, code: &str) -> String {
        self.paint(text, code)
    }

    /// A painted text for a result.
    pub fn painted_result(self, text: &str, code: &str) -> String {
        Output {
            color: self.result_color,
            ..self
        }
        .paint(text, code)
    }

    fn paint(self, text: &str, code: &str) -> String {
        if self.color {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }
}

/// JSON in which hidden characters are escapes, which mean the same: none of them acts on a
/// terminal.
fn safe(json: &str) -> String {
    visible::escaped(json)
}

/// The lines of a text, hidden characters made visible.
fn log_lines(text: &str) -> impl Iterator<Item = String> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(visible::line)
}

/// Logs a failure: a line for each problem, then one for the whole.
fn log_failure(failure: &Failure) {
    for problem in &failure.problems {
        let place = problem.location.as_ref().map(ToString::to_string);
        let hint = problem.hint.as_deref();
        let place = place.unwrap_or_default();
        let hint = hint.unwrap_or_default();
        tracing::error!(target: LOG_TARGET, code = problem.code, place, hint, "{}", visible::line(&problem.message));
    }
    let code = failure.code.as_str();
    let hint = failure.hint.as_deref().unwrap_or_default();
    for line in log_lines(&failure.message) {
        tracing::error!(target: LOG_TARGET, code, hint, "{line}");
    }
}

fn error_line(text: &str) {
    spinner::clear();
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// The blanks between two columns of a table.
const GAP: usize = 2;
/// The narrowest column whose cells are wrapped.
const NARROWEST: usize = 8;
/// The narrowest last column that stands beside the others: with less room, its cells stand below
/// their rows.
const LAST_LEAST: usize = 24;
/// The blanks before a cell that stands below its row.
const BELOW_INDENT: usize = 4;
/// The code of bold letters on a terminal.
const BOLD: &str = "1";

/// A table whose head is bold, and whose states have colours. Where the last column has too little
/// `room` beside the others, its cells stand below their rows.
fn table(
    columns: &[&str],
    rows: impl Iterator<Item = Vec<String>>,
    has_color: bool,
    room: Option<usize>,
) -> String {
    let head: Vec<String> = columns.iter().map(|column| (*column).to_owned()).collect();
    let body: Vec<Vec<String>> = rows
        .map(|row| row.iter().map(|cell| visible::line(cell)).collect())
        .collect();
    let mut widths: Vec<usize> = (0..columns.len())
        .map(|index| width(index, &head, &body))
        .collect();
    let below = room.filter(|room| is_squeezed(&widths, *room));
    if below.is_some() {
        widths.pop();
    }
    if let Some(room) = room {
        fit(&mut widths, room);
    }
    let mut lines = cells(&head, &widths, |_, _| has_color.then_some(BOLD));
    for row in &body {
        lines.extend(cells(row, &widths, |index, whole| {
            if !has_color {
                return None;
            }
            state_color(columns.get(index)?, whole)
        }));
        if let Some(room) = below
            && let Some(last) = row.get(widths.len())
            && !["", "-"].contains(&last.as_str())
        {
            let room = room.saturating_sub(BELOW_INDENT).max(NARROWEST);
            for part in wrapped(last, room) {
                lines.push(format!("{:BELOW_INDENT$}{part}", ""));
            }
        }
    }
    lines.join("\n")
}

/// The characters of the widest cell of a column.
fn width(index: usize, head: &[String], rows: &[Vec<String>]) -> usize {
    std::iter::once(head)
        .chain(rows.iter().map(Vec::as_slice))
        .filter_map(|row| row.get(index))
        .map(|cell| cell.chars().count())
        .max()
        .unwrap_or(0)
}

/// The lines of one row, each cell wrapped in its width, and in the colour that `color` has for the
/// whole cell.
fn cells(
    row: &[String],
    widths: &[usize],
    color: impl Fn(usize, &str) -> Option<&'static str>,
) -> Vec<String> {
    let wrapped_cells: Vec<Vec<String>> = row
        .iter()
        .zip(widths)
        .map(|(cell, width)| wrapped(cell, *width))
        .collect();
    let height = wrapped_cells.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let mut lines = Vec::with_capacity(height);
    for line in 0..height {
        let mut texts = Vec::with_capacity(wrapped_cells.len());
        for (index, (parts, width)) in wrapped_cells.iter().zip(widths).enumerate() {
            let text = parts.get(line).map(String::as_str).unwrap_or_default();
            let whole = row.get(index).map(String::as_str).unwrap_or_default();
            // Padded first: the codes of colours take no room on the screen.
            let padded = format!("{text:width$}");
            texts.push(match color(index, whole) {
                Some(code) if !text.is_empty() => {
                    padded.replacen(text, &format!("\u{1b}[{code}m{text}\u{1b}[0m"), 1)
                }
                _ => padded,
            });
        }
        lines.push(texts.join("  ").trim_end().to_owned());
    }
    lines
}

/// Whether the last of these columns has not its room beside the others.
fn is_squeezed(widths: &[usize], room: usize) -> bool {
    let Some((last, others)) = widths.split_last().filter(|(_, others)| !others.is_empty()) else {
        return false;
    };
    let taken = others.iter().map(|width| width + GAP).sum::<usize>();
    taken + (*last).min(LAST_LEAST) > room
}

/// Makes the widest columns narrower until all fit into the room, as far as that goes.
fn fit(widths: &mut [usize], room: usize) {
    let gaps = GAP * widths.len().saturating_sub(1);
    loop {
        let all: usize = widths.iter().sum::<usize>() + gaps;
        let widest = widths.iter_mut().filter(|width| **width > NARROWEST).max();
        let Some(width) = widest else { return };
        if all <= room {
            return;
        }
        *width -= 1;
    }
}

/// The rows of a text on so many columns, broken between words where there are some.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut rows = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let long = word.trim_end().chars().count();
        if used > 0 && used + long > width {
            rows.push(String::new());
            used = 0;
        }
        for one in word.chars() {
            if used >= width && one == ' ' {
                continue;
            }
            if used >= width {
                rows.push(String::new());
                used = 0;
            }
            rows.last_mut().into_iter().for_each(|row| row.push(one));
            used += 1;
        }
    }
    rows.iter().map(|row| row.trim_end().to_owned()).collect()
}

/// The rows of a line of which all but the first begin after so many blanks, or after those of the
/// line itself.
fn indented(line: &str, indent: usize, columns: usize) -> Vec<String> {
    let own = line.len() - line.trim_start_matches(' ').len();
    if line.chars().count() <= columns || columns < 2 * indent {
        return vec![line.to_owned()];
    }
    let blanks = " ".repeat(indent.max(own));
    let (first, rest) = match line.char_indices().nth(indent.max(own)) {
        Some((at, _)) => line.split_at(at),
        None => (line, ""),
    };
    let rows = wrapped(rest, columns - indent.max(own))
        .into_iter()
        .enumerate();
    rows.map(|(at, row)| {
        if at == 0 {
            format!("{first}{row}")
        } else {
            format!("{blanks}{row}")
        }
    })
    .collect()
}

/// The colour of a state: green for what is well, red for what failed, yellow for what waits.
fn state_color(column: &str, cell: &str) -> Option<&'static str> {
    if column != "STATE" && column != "VERDICT" {
        return None;
    }
    match cell {
        "ready" | "connected" | "approved" | "completed" | "admitted" => Some("32"),
        "down" | "failed" | "broken file" | "rejected" | "refused" => Some("31"),
        "pending" | "starting" | "held" | "running" => Some("33"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(room: Option<usize>) -> String {
        let rows = [[
            "files",
            "down",
            "the program was not found, and a-word-that-is-longer-than-its-column",
        ]];
        let rows = rows.iter().map(|row| row.map(str::to_owned).to_vec());
        table(&["NAME", "STATE", "REASON"], rows, false, room)
    }

    #[test]
    fn a_table_is_as_wide_as_the_terminal() {
        assert_eq!(shown(None).lines().count(), 2);
        assert_eq!(shown(Some(200)), shown(None));
        let narrow = shown(Some(40));
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 40),
            "{narrow}"
        );
        let expect = "NAME   STATE  REASON\nfiles  down   the program was not found,\n              and\n              a-word-that-is-longer-than\n              -its-column";
        assert_eq!(narrow, expect, "{narrow}");
    }

    #[test]
    fn a_last_column_without_room_stands_below() {
        let squeezed = shown(Some(37));
        assert!(
            squeezed.lines().all(|line| line.chars().count() <= 37),
            "{squeezed}"
        );
        let expect = "NAME   STATE\nfiles  down\n    the program was not found, and\n    a-word-that-is-longer-than-its-co\n    lumn";
        assert_eq!(squeezed, expect, "{squeezed}");
        assert!(shown(Some(38)).starts_with("NAME   STATE  REASON\n"));
    }

    #[test]
    fn further_rows_of_a_line_are_indented() {
        let rows = indented("servers    0 of 3 ready and more words", 11, 24);
        assert_eq!(
            rows,
            [
                "servers    0 of 3 ready",
                "           and more",
                "           words"
            ]
        );
        assert_eq!(indented("short", 11, 24), ["short"]);
    }
}
