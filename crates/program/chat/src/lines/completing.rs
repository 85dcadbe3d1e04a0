//! Completion in the line editor.

use std::sync::Arc;

use platform::Mutex;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

use crate::complete::Candidates;

/// Candidates shared with the thread that reads the terminal.
pub(super) type SharedCandidates = Arc<Mutex<Candidates>>;

/// Completion for the line editor.
pub(super) struct Completing(pub(super) SharedCandidates);

impl Completer for Completing {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let known = self.0.lock();
        Ok(known.complete(line.get(..at).unwrap_or_default()))
    }
}

impl Hinter for Completing {
    type Hint = String;
}

impl Highlighter for Completing {}
impl Validator for Completing {}
impl Helper for Completing {}
