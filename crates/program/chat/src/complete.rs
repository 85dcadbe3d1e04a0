//! Completion of commands, participants, tools and proposals.

use json::visible;
use std::collections::{BTreeMap, BTreeSet};

const COMMANDS: [&str; 20] = [
    "/allow",
    "/approve",
    "/call",
    "/calls",
    "/claim",
    "/edit",
    "/extend",
    "/help",
    "/msg",
    "/pause",
    "/proposals",
    "/quit",
    "/reject",
    "/resume",
    "/rules",
    "/show",
    "/tools",
    "/who",
    "/withdraw",
    "/yes",
];
/// Most tools kept per participant.
const TOOLS_MAX: usize = 1024;

/// Names that can be completed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Candidates {
    participants: BTreeSet<String>,
    tools: BTreeMap<String, BTreeSet<String>>,
    proposals: Vec<String>,
}

fn is_plain(name: &str) -> bool {
    !name
        .chars()
        .any(|c| visible::is_hidden(c) || c.is_whitespace())
}

impl Candidates {
    /// Sets the participants and open proposals. Names with hidden characters are left out.
    pub(crate) fn set_participants(
        &mut self,
        participants: impl Iterator<Item = String>,
        proposals: impl Iterator<Item = String>,
    ) {
        self.participants = participants.filter(|name| is_plain(name)).collect();
        self.proposals = proposals.collect();
        self.tools
            .retain(|owner, _| self.participants.contains(owner));
    }

    /// Sets the tools of a participant.
    pub(crate) fn set_tools(&mut self, owner: &str, tools: impl Iterator<Item = String>) {
        let tools = tools
            .filter(|name| is_plain(name))
            .take(TOOLS_MAX)
            .collect();
        self.tools.insert(owner.to_owned(), tools);
    }

    /// Completes the last word: its start in the line, and the candidates.
    pub(crate) fn complete(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(' ').map_or(0, |at| at + 1);
        let (before, word) = line.split_at(start);
        let before: Vec<&str> = before.split_whitespace().collect();
        let all: Vec<&str> = match before.as_slice() {
            [] => COMMANDS.to_vec(),
            ["/call" | "/tools" | "/msg" | "/pause" | "/resume"] => {
                self.participants.iter().map(String::as_str).collect()
            }
            ["/call", owner] => self
                .tools
                .get(*owner)
                .into_iter()
                .flatten()
                .map(String::as_str)
                .collect(),
            ["/approve" | "/reject" | "/show" | "/edit" | "/allow" | "/withdraw"] => {
                self.proposals.iter().map(String::as_str).collect()
            }
            _ => Vec::new(),
        };
        // An empty line has no candidates.
        let is_begun = !word.is_empty() || start > 0;
        let fitting = all
            .into_iter()
            .filter(|one| is_begun && one.starts_with(word));
        (start, fitting.map(|one| format!("{one} ")).collect())
    }
}

/// The longest beginning that all candidates share.
pub(crate) fn shared(candidates: &[String]) -> Option<String> {
    let mut all = candidates.iter();
    let mut shared = all.next()?.clone();
    for one in all {
        let same = shared
            .chars()
            .zip(one.chars())
            .take_while(|(a, b)| a == b)
            .map(|(a, _)| a.len_utf8())
            .sum();
        shared.truncate(same);
    }
    Some(shared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed() {
        let mut names = Candidates::default();
        let texts = |all: &[&str]| {
            all.iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
                .into_iter()
        };
        names.set_participants(
            texts(&["worker", "boss", "e\u{202e}vil", "a b"]),
            texts(&["1", "12"]),
        );
        names.set_tools("worker", texts(&["echo", "add", "e\nvil"]));
        names.set_tools("boss", texts(&[]));
        for (line, start, expect) in [
            ("/p", 0, &["/pause", "/proposals"][..]),
            ("/pause w", 7, &["worker"]),
            ("/ca", 0, &["/call", "/calls"]),
            ("/msg w", 5, &["worker"]),
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
            let found = names.complete(line);
            assert_eq!(
                found,
                (start, texts(expect).map(|one| one + " ").collect()),
                "{line}"
            );
        }
        assert_eq!(
            shared(&["/call ".into(), "/calls ".into()]).as_deref(),
            Some("/call")
        );
        assert_eq!(
            (shared(&["a".into()]).as_deref(), shared(&[])),
            (Some("a"), None)
        );
        names.set_participants(texts(&["boss"]), texts(&[]));
        assert_eq!(names.complete("/call worker ").1, Vec::<String>::new());
        names.set_tools("boss", (0..=TOOLS_MAX).map(|number| format!("t{number}")));
        assert_eq!(names.complete("/call boss ").1.len(), TOOLS_MAX);
    }
}
