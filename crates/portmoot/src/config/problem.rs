//! Problem in a configuration: message, location, hint.

use std::fmt;

use crate::config::node::Location;

/// A problem to correct.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    /// Stable code for scripts.
    pub(crate) code: &'static str,
    /// Message, in lower case, names in backticks.
    pub(crate) message: String,
    /// Location of the value.
    pub(crate) location: Option<Location>,
    /// What the user can do.
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), location: None, hint: None }
    }

    pub(crate) fn at(mut self, location: &Location) -> Problem {
        self.location = Some(location.clone());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }

    /// A hint at the known word most similar to an unknown one, or else `otherwise`.
    pub(crate) fn suggest<'a>(
        self,
        unknown: &str,
        known: impl IntoIterator<Item = &'a str>,
        otherwise: impl Into<String>,
    ) -> Problem {
        let hint = suggestion(unknown, known).unwrap_or_else(|| otherwise.into());
        self.hint(hint)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        if let Some(location) = &self.location {
            write!(f, "\n  at {location}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// A "did you mean" hint, if a known word is similar.
pub(crate) fn suggestion<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let score = |word: &str| strsim::jaro_winkler(&unknown.to_lowercase(), word);
    let near = known.into_iter().map(|word| (score(word), word)).filter(|(score, _)| *score > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, word)| format!("did you mean `{word}`?"))
}
