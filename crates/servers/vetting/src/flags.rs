//! Flags: texts of servers that look as if they instruct a model, or hide something from people.
//!
//! A flag is a reason to look, not a verdict: nothing is changed or refused because of one. An
//! attacker who knows the rules can write around them; the corpus test says what they find.

mod encoded;
mod flag;
mod phrases;
mod words;

use json::visible;

pub use flag::Flag;

use crate::definition::{Part, PartDefinition};
use crate::pointer;

/// Findings of one server at most.
pub const FINDINGS_MAX: usize = 100;
/// Characters of a text that a finding shows.
const EXCERPT_CHARS_MAX: usize = 120;
/// Characters of one text that are looked at.
const TEXT_CHARS_MAX: usize = 65_536;
/// White space in a line, and empty lines, that push what follows out of sight.
const BLANKS: usize = 60;
const EMPTY_LINES: usize = 12;

/// A flagged text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlaggedText {
    /// The kind of its definition.
    pub part: Part,
    /// The name of its definition.
    pub name: String,
    /// Place in the definition, as a JSON Pointer such as
    /// `/inputSchema/properties/path/description`.
    pub path: String,
    /// Why it was flagged.
    pub flag: Flag,
    /// Its beginning from there on, with hidden characters visible. The server wrote it: untrusted.
    pub excerpt: String,
}

/// The flags of a definition, each once for a text. Texts are values and names of members: schemas
/// hold them in descriptions, names, defaults, examples and values of enumerations.
#[must_use]
pub fn scan(definition: &PartDefinition) -> Vec<FlaggedText> {
    let mut findings = Vec::new();
    for place in pointer::walk(&definition.text) {
        // The digests of a skill's files look like encoded text.
        if definition.part == Part::Skill && place.pointer.ends_with("/digest") {
            continue;
        }
        let value = json::text(place.raw.as_bytes());
        for text in place.member.as_deref().into_iter().chain(value.as_deref()) {
            look(definition, &place.pointer, text, &mut findings);
        }
    }
    findings.truncate(FINDINGS_MAX);
    findings
}

/// The flags of one text.
fn look(definition: &PartDefinition, pointer: &str, text: &str, findings: &mut Vec<FlaggedText>) {
    let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
    for (flag, at) in flags(&text) {
        let from = text.get(at..).unwrap_or(&text);
        findings.push(FlaggedText {
            part: definition.part,
            name: visible::line(&definition.name),
            path: visible::line(pointer),
            flag,
            excerpt: visible::line(from)
                .chars()
                .take(EXCERPT_CHARS_MAX)
                .collect(),
        });
    }
}

/// The flags of a text, each with the place in it where its reason begins.
fn flags(text: &str) -> Vec<(Flag, usize)> {
    let mut found = Vec::new();
    found.extend(hidden(text).map(|at| (Flag::HiddenCharacters, at)));
    found.extend(phrases::marks(text));
    found.extend(phrases::phrases(text));
    found.extend(encoded::find(text).map(|at| (Flag::EncodedText, at)));
    found.sort();
    found.dedup_by_key(|(flag, _)| *flag);
    found
}

/// The first hidden character that is no part of an emoji, or a long blank.
fn hidden(text: &str) -> Option<usize> {
    let mut before = ' ';
    let mut blanks = 0;
    let mut lines = 0;
    for (at, c) in text.char_indices() {
        // Selectors and joiners of emoji.
        let is_emoji = matches!(c, '\u{fe0f}' | '\u{200d}')
            && (before > '\u{2000}' || before == '\u{a9}' || before == '\u{ae}');
        let is_keycap = c == '\u{fe0f}' && (before.is_ascii_digit() || "#*".contains(before));
        if visible::is_hidden(c) && !matches!(c, '\n' | '\t' | '\r') && !is_emoji && !is_keycap {
            return Some(at);
        }
        match c {
            '\n' => (blanks, lines) = (0, lines + 1),
            c if c.is_whitespace() => blanks += 1,
            _ => (blanks, lines) = (0, 0),
        }
        if blanks > BLANKS || lines > EMPTY_LINES {
            return Some(at);
        }
        before = c;
    }
    None
}

/// The names of a server's tools that imitate others: of another server, which callers know under
/// its prefix, or of the gateway. `others` are public names.
#[must_use]
pub fn imitations(names: &[&str], prefix: &str, others: &[&str]) -> Vec<FlaggedText> {
    let skeleton = |name: &str| {
        unicode_security::skeleton(&name.to_lowercase())
            .collect::<String>()
            .replace('-', "_")
    };
    let others: Vec<(&str, String)> = others
        .iter()
        .map(|other| (*other, skeleton(other)))
        .collect();
    let finding = |name: &&str| {
        let own = skeleton(name);
        let public = skeleton(&format!("{prefix}_{name}"));
        let alike = others.iter().find(|(other, known)| {
            *known == own || *known == public && *other != format!("{prefix}_{name}")
        })?;
        let excerpt = format!("looks like {}", visible::line(alike.0));
        Some(FlaggedText {
            part: Part::Tool,
            name: visible::line(name),
            path: "/name".to_owned(),
            flag: Flag::ImitatesName,
            excerpt,
        })
    };
    names.iter().filter_map(finding).collect()
}

#[cfg(test)]
mod tests;
