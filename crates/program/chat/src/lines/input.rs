//! Chat input and output: a line editor at a terminal, plain lines otherwise.
//!
//! The reading thread waits after each line for `resume`, so that no line is being edited when the
//! program exits.

use std::io::{self, BufRead};
use std::sync::Arc;

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{CompletionType, Config, Editor};
use tokio::sync::mpsc;

use super::completing::{Completing, SharedCandidates};
use super::printer::Printer;
use crate::complete::Candidates;
use crate::output::ChatOutput;

const PROMPT: &str = "> ";
/// Lines in the history of this session. The history is not written to disk.
const HISTORY_MAX: usize = 1000;

/// Typed lines.
pub(super) struct Input {
    lines: mpsc::Receiver<String>,
    resume: std::sync::mpsc::SyncSender<()>,
    names: SharedCandidates,
    is_edited: bool,
}

impl Input {
    /// Starts the reading thread.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(super) fn open(
        output: Arc<dyn ChatOutput>,
        is_edited: bool,
    ) -> io::Result<(Self, Printer)> {
        let (send, lines) = mpsc::channel(1);
        let (resume, resumed) = std::sync::mpsc::sync_channel(1);
        let names = SharedCandidates::default();
        let (printer, read): (_, Box<dyn FnMut() -> Option<String> + Send>) = if is_edited {
            let mut editor = editor(names.clone()).map_err(broken)?;
            let external = editor.create_external_printer().map_err(broken)?;
            (
                Printer::beside(external, output),
                Box::new(move || edited(&mut editor)),
            )
        } else {
            (Printer::plain(output), Box::new(plain))
        };
        std::thread::spawn(move || pass(read, &send, &resumed));
        Ok((
            Self {
                lines,
                resume,
                names,
                is_edited,
            },
            printer,
        ))
    }

    /// Sets the completion candidates.
    pub(super) fn set_names(&self, names: &Candidates) {
        if self.is_edited {
            *self.names.lock() = names.clone();
        }
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// Lets the thread read the next line.
    pub(super) fn resume(&self) {
        let _ = self.resume.try_send(());
    }

    /// Waits until no line is being edited.
    pub(super) async fn leave(&mut self) {
        if self.is_edited {
            self.next().await;
        }
    }
}

type Lines = Editor<Completing, MemHistory>;

fn editor(names: SharedCandidates) -> rustyline::Result<Lines> {
    let config = Config::builder()
        .max_history_size(HISTORY_MAX)?
        .auto_add_history(true)
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_history(config.clone(), MemHistory::with_config(&config))?;
    editor.set_helper(Some(Completing(names)));
    Ok(editor)
}

fn edited(editor: &mut Lines) -> Option<String> {
    match editor.readline(PROMPT) {
        Ok(line) => Some(line),
        Err(ReadlineError::Eof | ReadlineError::Interrupted) => None,
        Err(error) => {
            tracing::warn!(%error, "the terminal cannot be read");
            None
        }
    }
}

fn plain() -> Option<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim_end_matches(['\n', '\r']).to_owned())
}

/// Sends each line to the channel.
fn pass(
    mut read: Box<dyn FnMut() -> Option<String> + Send>,
    send: &mpsc::Sender<String>,
    resume: &std::sync::mpsc::Receiver<()>,
) {
    while let Some(line) = read() {
        if send.blocking_send(line).is_err() || resume.recv().is_err() {
            return;
        }
    }
}

fn broken(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other.to_string()),
    }
}
