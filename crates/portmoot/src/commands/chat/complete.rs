//! Completion of commands, participants, tools and proposals.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use platform::Mutex;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use json::visible;

const COMMANDS: [&str; 8] =
    ["/approve", "/call", "/help", "/proposals", "/quit", "/reject", "/tools", "/who"];
/// Most tools kept per participant.
const TOOLS_MAX: usize = 1024;

/// Names that can be completed.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    participants: BTreeSet<String>,
    tools: BTreeMap<String, BTreeSet<String>>,
    proposals: Vec<String>,
}

/// Candidates shared with the thread that reads the terminal.
pub(super) type SharedCandidates = Arc<Mutex<Candidates>>;

fn is_plain(name: &str) -> bool {
    !name.chars().any(|c| visible::is_hidden(c) || c.is_whitespace())
}

impl Candidates {
    /// Sets the participants and open proposals. Names with hidden characters are left out.
    pub(super) fn set_participants(
        &mut self,
        participants: impl Iterator<Item = String>,
        proposals: impl Iterator<Item = String>,
    ) {
        self.participants = participants.filter(|name| is_plain(name)).collect();
        self.proposals = proposals.collect();
        self.tools.retain(|owner, _| self.participants.contains(owner));
    }

    /// Sets the tools of a participant.
    pub(super) fn set_tools(&mut self, owner: &str, tools: impl Iterator<Item = String>) {
        let tools = tools.filter(|name| is_plain(name)).take(TOOLS_MAX).collect();
        self.tools.insert(owner.to_owned(), tools);
    }

    /// Completes the last word: its start in the line, and the candidates.
    fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(' ').map_or(0, |at| at + 1);
        let (before, word) = line.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let all: Vec<&str> = match before.as_slice() {
            [] => COMMANDS.to_vec(),
            ["/call" | "/tools"] => self.participants.iter().map(String::as_str).collect(),
            ["/call", owner] => self.tools.get(*owner).into_iter().flatten().map(String::as_str).collect(),
            ["/approve" | "/reject"] => self.proposals.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        };
        // An empty line has no candidates.
        let is_begun = !word.is_empty() || start > 0;
        let fitting = all.into_iter().filter(|one| is_begun && one.starts_with(word));
        (start, fitting.map(|one| format!("{one} ")).collect())
    }
}

/// Completion for the line editor.
pub(super) struct Completing(pub(super) SharedCandidates);

impl Completer for Completing {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let known = self.0.lock();
        Ok(known.complete(line.get(..at).unwrap_or_default()))
    }
}

impl Hinter for Completing {
    type Hint = String;
}

impl Highlighter for Completing {}
impl Validator for Completing {}
impl Helper for Completing {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed() {
        let names = SharedCandidates::default();
        let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>().into_iter();
        names.lock().set_participants(texts(&["worker", "boss", "e\u{202e}vil", "a b"]), texts(&["1", "12"]));
        names.lock().set_tools("worker", texts(&["echo", "add", "e\nvil"]));
        names.lock().set_tools("boss", texts(&[]));
        for (line, start, expect) in [
            ("/p", 0, &["/proposals"][..]),
            ("hello", 0, &[]),
            ("", 0, &[]),
            ("/call ", 6, &["boss", "worker"]),
            ("/call w", 6, &["worker"]),
            ("/tools b", 7, &["boss"]),
            ("/call worker ", 13, &["add", "echo"]),
            ("/call worker e", 13, &["echo"]),
            ("/call absent ", 13, &[]),
            ("/approve 1", 9, &["1", "12"]),
            ("say e", 4, &[]),
        ] {
            let found = names.lock().complete(line);
            assert_eq!(found, (start, texts(expect).map(|one| one + " ").collect()), "{line}");
        }
        names.lock().set_participants(texts(&["boss"]), texts(&[]));
        assert_eq!(names.lock().complete("/call worker ").1, Vec::<String>::new());
    }
}
