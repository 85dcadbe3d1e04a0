//! Where lines come from and where words go: a line editor at a terminal, plain lines otherwise.
//!
//! The reading thread waits after each line until it is told to go on, so that nothing is half-typed when the program ends.

use std::io::{self, BufRead, IsTerminal};

use rustyline::error::ReadlineError;
use rustyline::history::MemHistory;
use rustyline::{CompletionType, Config, Editor, ExternalPrinter};
use tokio::sync::mpsc;

use super::complete::{Completing, Names};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Output;

const PROMPT: &str = "> ";
/// Lines of this session that the arrow keys bring back. They are kept nowhere else.
const HISTORY_MAX: usize = 1000;

/// What was typed.
pub(super) struct Input {
    lines: mpsc::Receiver<String>,
    go_on: std::sync::mpsc::SyncSender<()>,
    names: Names,
    is_edited: bool,
}

/// Where words go. Over a line that is being edited they are written by its editor.
pub(super) struct Paper {
    over: Option<Box<dyn ExternalPrinter + Send>>,
    output: Output,
}

impl Input {
    /// Begins to read.
    ///
    /// # Errors
    /// When the terminal cannot be used.
    pub(super) fn open(output: Output) -> Result<(Self, Paper), Failure> {
        let (send, lines) = mpsc::channel(1);
        let (go_on, may_go_on) = std::sync::mpsc::sync_channel(1);
        let names = Names::default();
        let is_edited = io::stdin().is_terminal() && io::stdout().is_terminal();
        let mut paper = Paper { over: None, output };
        let read: Box<dyn FnMut() -> Option<String> + Send> = if is_edited {
            let mut editor = editor(names.clone()).map_err(|error| broken(&error))?;
            let printer = editor.create_external_printer().map_err(|error| broken(&error))?;
            paper.over = Some(Box::new(printer));
            Box::new(move || edited(&mut editor))
        } else {
            Box::new(plain)
        };
        std::thread::spawn(move || pass(read, &send, &may_go_on));
        Ok((Self { lines, go_on, names, is_edited }, paper))
    }

    /// What can be completed.
    pub(super) fn names(&self) -> Names {
        self.names.clone()
    }

    /// The next line; `None` at the end.
    pub(super) async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }

    /// The line was dealt with; the next may be read.
    pub(super) fn go_on(&self) {
        let _ = self.go_on.try_send(());
    }

    /// Waits until nothing is being typed.
    pub(super) async fn leave(mut self) {
        if self.is_edited {
            self.next().await;
        }
    }
}

impl Paper {
    /// What somebody said, or what a command found.
    pub(super) fn result(&mut self, text: &str) {
        self.print(text, Output::result);
    }

    /// What the program says.
    pub(super) fn talk(&mut self, text: &str) {
        self.print(text, Output::talk);
    }

    fn print(&mut self, text: &str, plainly: fn(Output, &str)) {
        let printed = self.over.as_mut().is_some_and(|over| over.print(format!("{text}\n")).is_ok());
        if !printed {
            plainly(self.output, text);
        }
    }
}

type Lines = Editor<Completing, MemHistory>;

fn editor(names: Names) -> rustyline::Result<Lines> {
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

/// Hands on line after line.
fn pass(
    mut read: Box<dyn FnMut() -> Option<String> + Send>,
    send: &mpsc::Sender<String>,
    go_on: &std::sync::mpsc::Receiver<()>,
) {
    while let Some(line) = read() {
        if send.blocking_send(line).is_err() || go_on.recv().is_err() {
            return;
        }
    }
}

fn broken(error: &ReadlineError) -> Failure {
    Failure::new(Exit::Failed, "no_terminal", format!("the terminal cannot be used: {error}"))
}
