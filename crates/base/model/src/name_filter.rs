//! Filter of names by patterns: those that are chosen, without those that are hidden.

use std::fmt;

use crate::pattern::Pattern;

/// The longest pattern of a name, in bytes.
pub const NAME_PATTERN_BYTES_MAX: usize = 512;

/// Why a text is no pattern of names. The messages address the author of the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NamePatternError {
    /// It is empty.
    #[error("a pattern cannot be empty")]
    Empty,
    /// Two stars side by side.
    #[error("write one `*`: it matches any run of characters")]
    DoubledStar,
    /// Longer than [`NAME_PATTERN_BYTES_MAX`].
    #[error("a pattern has at most {NAME_PATTERN_BYTES_MAX} bytes")]
    TooLong,
}

/// A name in which `*` stands for any run of characters, as in a capability.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    text: Box<str>,
    pattern: Pattern,
}

impl NamePattern {
    /// Reads and compiles a pattern.
    ///
    /// # Errors
    /// The fault, in words for the configuration's author.
    pub fn parse(text: &str) -> Result<Self, NamePatternError> {
        if text.is_empty() {
            return Err(NamePatternError::Empty);
        }
        if text.len() > NAME_PATTERN_BYTES_MAX {
            return Err(NamePatternError::TooLong);
        }
        if text.contains("**") {
            return Err(NamePatternError::DoubledStar);
        }
        Ok(Self {
            text: text.into(),
            pattern: Pattern::new(text),
        })
    }

    /// Whether the whole name matches, with its case.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        self.pattern.matches(name)
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

/// The names that a configuration chooses: all, or those that match one of `only`; without those
/// that match one of `hide`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameFilter {
    /// The patterns of which one must match; `None` chooses all names.
    pub only: Option<Vec<NamePattern>>,
    /// The patterns of which none may match.
    pub hide: Vec<NamePattern>,
}

impl NameFilter {
    /// Whether a name is chosen.
    #[must_use]
    pub fn admits(&self, name: &str) -> bool {
        let matches =
            |patterns: &[NamePattern]| patterns.iter().any(|pattern| pattern.matches(name));
        self.only.as_deref().is_none_or(matches) && !matches(&self.hide)
    }

    /// Whether it chooses every name.
    #[must_use]
    pub fn is_all(&self) -> bool {
        self.only.is_none() && self.hide.is_empty()
    }

    /// All of its patterns, those of `only` first.
    pub fn patterns(&self) -> impl Iterator<Item = &NamePattern> {
        self.only.iter().flatten().chain(&self.hide)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(only: Option<&[&str]>, hide: &[&str]) -> NameFilter {
        let parse = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| NamePattern::parse(text).unwrap())
                .collect()
        };
        NameFilter {
            only: only.map(parse),
            hide: parse(hide),
        }
    }

    #[test]
    fn names_are_chosen_and_hidden_by_patterns() {
        for (only, hide, admitted, refused) in [
            (None, &[][..], &["a", ""][..], &[][..]),
            (
                Some(&["get_*", "list"][..]),
                &[],
                &["get_", "get_x", "list"],
                &["list_x", "Get_x", "xget_"],
            ),
            (
                None,
                &["*_delete*"],
                &["delete", "get_x"],
                &["repo_delete", "a_delete_b"],
            ),
            (
                Some(&["get_*"]),
                &["get_secret"],
                &["get_x"],
                &["get_secret", "other"],
            ),
            (Some(&[]), &[], &[], &["a"]),
        ] {
            let filter = filter(only, hide);
            assert!(
                admitted.iter().all(|name| filter.admits(name)),
                "{filter:?}"
            );
            assert!(
                !refused.iter().any(|name| filter.admits(name)),
                "{filter:?}"
            );
        }
        assert!(NameFilter::default().is_all());
        assert!(!filter(Some(&["*"]), &[]).is_all());
    }

    #[test]
    fn texts_that_are_no_patterns() {
        for (text, expected) in [
            ("", NamePatternError::Empty),
            ("a**", NamePatternError::DoubledStar),
            (
                &"a".repeat(NAME_PATTERN_BYTES_MAX + 1),
                NamePatternError::TooLong,
            ),
        ] {
            assert_eq!(NamePattern::parse(text), Err(expected));
        }
        assert_eq!(NamePattern::parse("a*").unwrap().to_string(), "a*");
    }
}
