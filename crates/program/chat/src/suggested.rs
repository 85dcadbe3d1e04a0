//! The page of rules that are suggested to the person, each with what it rests on.

use serde_json::Value;

use crate::card::{self, CardLine, CardPart};
use crate::inbox::SETTLE_MS;
use crate::offers::{NONE, items, not_offered, offer, text};
use crate::rows::TerminalRow;

/// A rule that is suggested.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Suggestion {
    /// The digest of its text, which a decision names.
    digest: String,
    lines: Vec<CardLine>,
}

/// A decision about a suggested rule that waits for a second key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleQuestion {
    /// The digest of the rule's text: a yes is about no other rule.
    pub(crate) digest: String,
    /// Whether the rule is put in force.
    pub(crate) accept: bool,
}

/// The rules that are suggested, and the one that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suggestions {
    found: Vec<Suggestion>,
    /// Words about what is not suggested.
    others: Vec<CardLine>,
    at: usize,
    /// The first row that is shown.
    pub(crate) scroll: usize,
    /// Rows of the open one that were shown, from its beginning.
    pub(crate) seen_rows: usize,
    /// The decision that waits for a second key.
    pub(crate) asked: Option<RuleQuestion>,
    /// The digest of the rule whose decision is on its way to the gateway.
    pub(crate) deciding: Option<String>,
    /// Until when no key is taken, in Unix milliseconds.
    pub(crate) settled_ms: u64,
}

impl Suggestions {
    /// The suggestions in an answer of the gateway.
    pub(crate) fn read(answer: &Value) -> Self {
        let found = items(answer, "offers").iter().map(|one| Suggestion {
            digest: text(one, "digest").unwrap_or_default(),
            lines: lines(&offer(one)),
        });
        Self {
            found: found.collect(),
            others: lines(&not_offered(answer).join("\n")),
            at: 0,
            scroll: 0,
            seen_rows: 0,
            asked: None,
            deciding: None,
            settled_ms: 0,
        }
    }

    /// Their number.
    #[must_use]
    pub fn len(&self) -> usize {
        self.found.len()
    }

    /// Whether nothing is suggested.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The digest of the open one.
    pub(crate) fn digest(&self) -> Option<&str> {
        self.found.get(self.at).map(|one| one.digest.as_str())
    }

    /// The rows of the open one.
    pub(crate) fn rows(&self, columns: usize) -> Vec<(CardPart, TerminalRow)> {
        let heading = format!("suggested rule {} of {}", self.at + 1, self.found.len());
        let mut shown = Vec::new();
        if let Some(open) = self.found.get(self.at) {
            shown.push(line(CardPart::Head, &heading));
            shown.extend(open.lines.iter().cloned());
        }
        shown.extend(self.others.iter().cloned());
        card::rows(&shown, Some(columns))
    }

    /// Opens the one `by` places further down.
    pub(crate) fn step(&mut self, by: isize) {
        let last = self.found.len().saturating_sub(1);
        let next = self.at.saturating_add_signed(by).min(last);
        if next != self.at {
            (self.at, self.scroll, self.seen_rows) = (next, 0, 0);
        }
    }

    /// Takes one out that is decided. Another one may open in its place: no question and no key
    /// that was meant for the former one is about it.
    pub(crate) fn remove(&mut self, digest: &str, now_ms: u64) {
        let open = self.digest().map(str::to_owned);
        self.found.retain(|one| one.digest != digest);
        if self.found.is_empty() && self.others.is_empty() {
            self.others = lines(NONE);
        }
        let kept = self
            .found
            .iter()
            .position(|one| Some(&one.digest) == open.as_ref());
        self.at = kept.unwrap_or_else(|| self.at.min(self.found.len().saturating_sub(1)));
        (self.scroll, self.seen_rows) = (0, 0);
        self.asked = None;
        self.settled_ms = now_ms + SETTLE_MS;
    }

    /// Notes that rows of the open one are on the screen, `height` from the scroll on.
    pub(crate) fn note_shown(&mut self, height: usize) {
        if self.scroll <= self.seen_rows {
            self.seen_rows = self.seen_rows.max(self.scroll + height);
        }
    }
}

fn line(part: CardPart, text: &str) -> CardLine {
    CardLine {
        part,
        text: text.to_owned(),
    }
}

fn lines(text: &str) -> Vec<CardLine> {
    let lines = text.lines();
    lines.map(|one| line(CardPart::Asked, one)).collect()
}
