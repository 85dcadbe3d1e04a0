//! Excerpt of a configuration file: the line of a problem as it may be shown, and the place in it.

use std::ops::Range;

use json::{Span, visible};

use crate::expand::is_reference;
use crate::hidden::{HIDDEN, SECRET_KEYS, SECRET_TABLES, is_hidden};
use crate::node::{Location, Node, Value};

/// Most characters of a line that are shown before, in and after the marked place.
const PART_CHARS_MAX: usize = 80;
const CUT: &str = "...";

/// A line whose hidden characters are visible and whose secrets are hidden.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// Line number, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
    /// The marked bytes of `text`.
    pub(crate) marked: Range<usize>,
}

impl Excerpt {
    /// The excerpt at a location; `None` without a place in a file, and where a secret could be in
    /// text that cannot be read.
    pub(crate) fn at(location: &Location) -> Option<Excerpt> {
        let span = location.span?;
        let line = location.line?;
        let text = location.layer.text.as_str();
        let start = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
        let end = text
            .get(span.start..)?
            .find('\n')
            .map_or(text.len(), |end| span.start + end);
        let secrets = match location.layer.secrets.get() {
            Some(secrets) => secrets.as_slice(),
            None if may_hold_secret(text, start, end) => return None,
            None => &[],
        };
        let marked_end = span.end.clamp(span.start, end);
        let part = |from: usize, to: usize| {
            shown(
                text,
                Span {
                    start: from,
                    end: to,
                },
                secrets,
            )
        };
        let before = part(start, span.start);
        let within = part(span.start, marked_end);
        let after = part(marked_end, end);
        let before = keep_last(&before);
        let marked = before.len()..before.len() + keep_first(&within).len();
        let text = before + &keep_first(&within) + &keep_first(&after);
        Some(Excerpt { line, text, marked })
    }
}

/// A part of a line, as it may be shown.
fn shown(text: &str, part: Span, secrets: &[Span]) -> String {
    let mut out = String::new();
    let mut at = part.start;
    for secret in secrets
        .iter()
        .filter(|secret| secret.start < part.end && part.start < secret.end)
    {
        out += &plain(text.get(at..secret.start).unwrap_or_default());
        out += HIDDEN;
        at = secret.end;
    }
    out + &plain(text.get(at..part.end).unwrap_or_default())
}

fn plain(text: &str) -> String {
    visible::line(&text.trim_end_matches('\r').replace('\t', "    "))
}

fn keep_first(text: &str) -> String {
    match text.char_indices().nth(PART_CHARS_MAX) {
        Some((end, _)) => text.get(..end).unwrap_or_default().to_owned() + CUT,
        None => text.to_owned(),
    }
}

fn keep_last(text: &str) -> String {
    match text
        .char_indices()
        .rev()
        .nth(PART_CHARS_MAX - 1)
        .filter(|(start, _)| *start > 0)
    {
        Some((start, _)) => CUT.to_owned() + text.get(start..).unwrap_or_default(),
        None => text.to_owned(),
    }
}

/// The places of secrets in a file, in their order.
pub(crate) fn secrets(tree: &Node) -> Vec<Span> {
    fn collect(node: &Node, is_secret: bool, found: &mut Vec<Span>) {
        match &node.value {
            Value::Text(text) if is_secret && !is_reference(text) => {
                found.extend(node.location.span)
            }
            Value::Text(_) | Value::Integer(_) | Value::Decimal(_) | Value::Flag(_) => {}
            Value::List(items) => items
                .iter()
                .for_each(|item| collect(item, is_secret, found)),
            Value::Table(entries) => {
                for entry in entries {
                    collect(&entry.node, is_hidden(entry, is_secret), found);
                }
            }
        }
    }
    let mut found = Vec::new();
    collect(tree, false, &mut found);
    found.sort_unstable();
    found
}

/// Whether a line of a file that cannot be read may have a secret: it names a table of secrets, or
/// follows such a name without the name of another table between them.
fn may_hold_secret(text: &str, start: usize, end: usize) -> bool {
    let names = SECRET_TABLES.iter().chain(&SECRET_KEYS);
    let before = text.get(..start).unwrap_or_default();
    let line = text.get(start..end).unwrap_or_default();
    names.into_iter().any(|name| {
        let after = before
            .rfind(name)
            .and_then(|at| before.get(at + name.len()..));
        line.contains(name)
            || after.is_some_and(|after| !after.contains("\n[") && !after.contains('}'))
    })
}

#[cfg(test)]
mod tests {
    use crate::node::{Layer, SourceOrigin};
    use crate::{json_file, toml_file};

    use super::*;

    /// The excerpt of a TOML file at the first place of a text.
    fn at(toml: &str, wanted: &str) -> Option<Excerpt> {
        let layer = Layer::file("x.toml", SourceOrigin::Operator, toml);
        let _ = toml_file::read(&layer);
        let start = toml.find(wanted).unwrap();
        Excerpt::at(&layer.at(Span {
            start,
            end: start + wanted.len(),
        }))
    }

    #[test]
    fn long_lines_are_cut_around_the_place() {
        let line = |length: usize| format!("{} = 1", "x".repeat(length));
        for (before, cut) in [(PART_CHARS_MAX, false), (PART_CHARS_MAX + 1, true)] {
            // `before` characters before the value.
            let excerpt = at(&line(before - 3), "1").unwrap();
            assert_eq!(excerpt.text.starts_with(CUT), cut, "{before}");
            assert_eq!(&excerpt.text[excerpt.marked], "1");
            let after = format!("a = [1, {}]", "2,".repeat(before));
            assert!(at(&after, "1").unwrap().text.ends_with(CUT));
            let text = "é".repeat(before);
            let excerpt = at(&format!("a = '{text}'"), &text).unwrap();
            assert_eq!(excerpt.text[excerpt.marked].ends_with(CUT), cut, "{before}");
        }
    }

    #[test]
    fn no_secret_is_in_an_excerpt() {
        let secret = "hush";
        for toml in [
            "[servers.a]\nenv = { A = 'hush', B = \"\"\"hush\"\"\" } # here",
            "[servers.a.headers]\nx = 'hush' # here",
            "servers.a.env.K = 'hush' # here",
            "[participants.a]\ntoken = 'hush' # here",
            "[participants.a]\ntoken = ['hush'] # here",
            "[participants.a]\ntoken = { value = 'hush' } # here",
            "[servers.a]\nenv = { A = { command = 'hush' } } # here",
            "[issuers.a]\nclient_secret = 'hush' # here",
            // Not TOML, so that no value is known.
            "[servers.a]\nenv = { A = 'hush } # here",
            "[servers.a.env]\nOTHER = 'x'\nK = hush # here",
            "[participants.a]\ntoken = hush # here",
        ] {
            let shown = at(toml, "# here")
                .map(|excerpt| excerpt.text)
                .unwrap_or_default();
            assert!(!shown.contains(secret), "{toml}: {shown}");
        }
        let json = "{\"mcpServers\":{\"a\":{\"env\":{\"K\":\"hush\"},\"args\":[]}}}";
        let layer = Layer::file("x.json", SourceOrigin::Operator, json);
        json_file::read(&layer).unwrap();
        let place = json.find("args").unwrap();
        let shown = Excerpt::at(&layer.at(Span {
            start: place,
            end: place + 4,
        }))
        .unwrap();
        assert_eq!(shown.text, json.replace("\"hush\"", HIDDEN));
        assert_eq!(&shown.text[shown.marked], "args");
    }
}
