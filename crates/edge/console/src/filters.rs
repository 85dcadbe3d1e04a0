//! Filters of a page in its address: those of known names, with what a person wrote into them.

use maud::{Markup, html};

use crate::api_client::encoded;
use crate::asked::Form;
use crate::page::command;

/// The longest text of a filter, in characters.
const FILTER_CHARS_MAX: usize = 1_000;

/// Names of the filters of the audit log; `after` and `verify` are in its address beside them.
pub(crate) const OF_AUDIT: [&str; 9] = [
    "kinds",
    "participant",
    "topic",
    "verdict",
    "operation",
    "since",
    "until",
    "after",
    "verify",
];
/// Names of the filters of calls; `after` is in the address beside them.
pub(crate) const OF_CALLS: [&str; 6] =
    ["participant", "server", "tool", "outcome", "topic", "after"];

/// Filters that are set, in the order of the page.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Filters(Vec<(&'static str, String)>);

impl Filters {
    /// Reads the filters with these names from a query.
    pub(crate) fn read(names: &[&'static str], query: &Form) -> Self {
        let set = names.iter().filter_map(|name| {
            let text = query.some(name)?;
            Some((*name, text.chars().take(FILTER_CHARS_MAX).collect()))
        });
        Self(set.collect())
    }

    /// The text of a filter; empty if it is not set.
    pub(crate) fn get(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(one, _)| *one == name);
        found.map_or("", |(_, text)| text)
    }

    /// Whether no filter but these is set.
    pub(crate) fn are_unset_but(&self, names: &[&str]) -> bool {
        self.0.iter().all(|(one, _)| names.contains(one))
    }

    /// The filters as a query, with what else belongs to it; empty if there is nothing.
    pub(crate) fn query(&self, without: &[&str], more: &[(&str, &str)]) -> String {
        let own = self.0.iter().map(|(name, text)| (*name, text.as_str()));
        let own = own.filter(|(name, _)| !without.contains(name));
        let pairs = own.chain(more.iter().copied());
        let pairs: Vec<String> = pairs
            .map(|(name, text)| format!("{name}={}", encoded(text)))
            .collect();
        if pairs.is_empty() {
            return String::new();
        }
        format!("?{}", pairs.join("&"))
    }

    /// A command with those of the filters that it has options for, unless a shell or a reader could
    /// take a text for something else.
    pub(crate) fn command(&self, words: &str, names: &[&str]) -> String {
        let mut words = words.to_owned();
        for name in names {
            let option = format!("{words} --{name}");
            let whole = command(&option, self.get(name));
            if whole != option {
                words = whole;
            }
        }
        words
    }

    /// A field for a filter.
    pub(crate) fn field(&self, name: &str, label: &str, example: &str) -> Markup {
        html! {
            label class="line" {
                (label)
                input type="text" name=(name) value=(self.get(name)) placeholder=(example) maxlength=(FILTER_CHARS_MAX) autocomplete="off" data-testid=(name);
            }
        }
    }

    /// A choice of words for a filter.
    pub(crate) fn choice(&self, name: &str, label: &str, words: &[&str]) -> Markup {
        html! {
            label class="line" {
                (label)
                select name=(name) data-testid=(name) {
                    option value="" { "any" }
                    @for word in words { option value=(word) selected[self.get(name) == *word] { (word) } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_written_and_said_as_a_command() {
        let query = Form::parse(b"tool=read_*&participant=it%27s+me&other=1&server=");
        let filters = Filters::read(&["participant", "server", "tool"], &query);
        assert_eq!(
            filters.query(&[], &[]),
            "?participant=it%27s%20me&tool=read_%2A"
        );
        let next = filters.query(&["tool"], &[("after", "1-2")]);
        assert_eq!(next, "?participant=it%27s%20me&after=1-2");
        assert!(filters.are_unset_but(&["participant", "tool"]));
        assert!(!filters.are_unset_but(&["tool"]));
        assert_eq!(
            filters.command("portmoot audit query", &["server", "participant", "tool"]),
            r"portmoot audit query --participant 'it'\''s me' --tool 'read_*'"
        );
        let query = Form::parse("tool=-x&participant=a\u{202e}b".as_bytes());
        let odd = Filters::read(&["participant", "tool"], &query);
        assert_eq!(
            odd.command("portmoot", &["participant", "tool"]),
            "portmoot"
        );
        assert_eq!(Filters::default().query(&[], &[]), "");
    }
}
