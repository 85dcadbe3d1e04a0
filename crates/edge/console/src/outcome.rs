//! The outcome of an act at the console, before it is a page.

use axum::http::StatusCode;
use maud::Markup;

use crate::api_client::Problem;
use crate::page::{Content, done};
use crate::state::At;

/// The outcome of an act.
pub(crate) enum Outcome {
    /// A part of a page, for the script alone.
    Part(Markup),
    /// A redirect to a path below the console's, which a reload does not send again.
    Led(String),
    /// This content, under what was wrong.
    Page {
        content: Content,
        wrong: Option<Problem>,
    },
    /// A page, under this.
    Show { at: At, said: Markup },
    /// A failure, above a page; to the script alone.
    Fail { at: At, problem: Problem },
    /// The session has ended by the person's wish.
    Left,
}

impl Outcome {
    /// This content.
    pub(crate) fn page(content: Content) -> Self {
        Self::Page {
            content,
            wrong: None,
        }
    }

    /// A failure, above a page.
    pub(crate) fn fail(at: At, problem: Problem) -> Self {
        Self::Fail { at, problem }
    }

    /// An act that the page does not name.
    pub(crate) fn no_page(at: At) -> Self {
        Self::fail(at, no_page())
    }

    /// Words about what was done, above a page.
    pub(crate) fn did(at: At, words: &str) -> Self {
        Self::Show {
            at,
            said: done(words),
        }
    }
}

/// The failure of an address without a page.
pub(crate) fn no_page() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no such page.")
}
