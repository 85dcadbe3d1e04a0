//! Problem in a configuration: message, location, hint.

use std::fmt;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use json::visible;

use crate::excerpt::Excerpt;
use crate::node::Location;

/// A problem to correct.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// Stable code for scripts.
    pub code: &'static str,
    /// Message, in lower case, names in backticks.
    pub message: String,
    /// Location of the value.
    pub location: Option<Location>,
    /// Advice to the user.
    pub hint: Option<String>,
}

impl Problem {
    /// A problem without location and hint.
    pub fn new(code: &'static str, message: impl Into<String>) -> Problem {
        Problem {
            code,
            message: message.into(),
            location: None,
            hint: None,
        }
    }

    /// Adds the location.
    #[must_use]
    pub fn at(mut self, location: &Location) -> Problem {
        self.location = Some(location.clone());
        self
    }

    /// Adds the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Problem {
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

/// Problems for a terminal: each with an excerpt of its file, a mark and its hint.
pub fn report(problems: &[Problem], color: bool) -> String {
    let renderer = if color {
        Renderer::styled()
    } else {
        Renderer::plain()
    };
    problems
        .iter()
        .map(|problem| problem.rendered(&renderer))
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// Stands for the path in a rendered excerpt: a character that no text here has.
const PATH: &str = "\u{f8ff}";

impl Problem {
    fn rendered(&self, renderer: &Renderer) -> String {
        let title = Level::ERROR
            .primary_title(visible::line(&self.message))
            .id(self.code);
        let hint = self
            .hint
            .as_ref()
            .map(|hint| Level::HELP.message(visible::line(hint)));
        let Some(location) = &self.location else {
            return renderer.render(&[Group::with_title(title).elements(hint)]);
        };
        let path = visible::line(&location.layer.name);
        let Some(excerpt) = Excerpt::at(location) else {
            let path = annotate_snippets::Origin::path(path);
            let place = location
                .line
                .map_or_else(|| path.clone(), |line| path.clone().line(line));
            return renderer.render(&[title.element(place).elements(hint)]);
        };
        let line = excerpt.line;
        let column = excerpt
            .text
            .get(..excerpt.marked.start)
            .map_or(0, |before| before.chars().count())
            + 1;
        let snippet = Snippet::source(excerpt.text).line_start(line).path(PATH);
        let marked = snippet.annotation(AnnotationKind::Primary.span(excerpt.marked));
        let shown = renderer.render(&[title.element(marked).elements(hint)]);
        // The excerpt may be cut, and hides secrets: the column is that of the file.
        let place = format!("{path}:{line}:{}", location.column().unwrap_or(column));
        shown.replacen(&format!("{PATH}:{line}:{column}"), &place, 1)
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

/// The least similarity, of 0 to 1, of a word that may be meant.
const SIMILAR: f64 = 0.8;

/// A "did you mean" hint, if a known word is similar.
pub(crate) fn suggestion<'a>(
    unknown: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    let unknown = unknown.to_lowercase();
    let mut best = None;
    let mut best_score = SIMILAR;
    for word in known {
        let score = strsim::jaro_winkler(&unknown, word);
        // Of equally similar words the last one.
        if score > SIMILAR && score >= best_score {
            best = Some(word);
            best_score = score;
        }
    }
    best.map(|word| format!("did you mean `{word}`?"))
}
