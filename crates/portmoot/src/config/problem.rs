//! What is wrong with a configuration, told so that it can be mended. Must not know any key.

use std::fmt;

use crate::config::node::Place;

/// One thing to mend.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    /// Stable code for scripts.
    pub(crate) code: &'static str,
    /// What is wrong, lower case, names in backticks.
    pub(crate) message: String,
    /// Where.
    pub(crate) place: Option<Place>,
    /// What to do next.
    pub(crate) hint: Option<String>,
}

impl Problem {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem { code, message: message.into(), place: None, hint: None }
    }

    pub(crate) fn at(mut self, place: &Place) -> Problem {
        self.place = Some(place.clone());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Problem {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.message, self.code)?;
        if let Some(place) = &self.place {
            write!(f, "\n  at {place}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "\n  hint: {hint}")?;
        }
        Ok(())
    }
}

/// The known word that is nearest to an unknown one, if any is near.
pub(crate) fn nearest<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let score = |word: &str| strsim::jaro_winkler(&unknown.to_lowercase(), word);
    let near = known.into_iter().map(|word| (score(word), word)).filter(|(score, _)| *score > 0.8);
    near.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, word)| word)
}
