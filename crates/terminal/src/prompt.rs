//! Terminal input: questions to the user.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::output::spinner;

/// A terminal. Tests use one with scripted answers.
pub trait Terminal: Send {
    /// Whether stdin and stderr are both terminals.
    fn is_interactive(&self) -> bool;
    /// Shows a text.
    fn show(&mut self, text: &str);
    /// Asks for one line; `None` at the end of input.
    fn ask(&mut self, prompt: &str) -> Option<String>;
    /// Discards input that was typed before the question.
    fn discard_input(&mut self) {}
}

/// A terminal without a person.
#[derive(Debug, Default)]
pub struct Unattended;

impl Terminal for Unattended {
    fn is_interactive(&self) -> bool {
        false
    }

    fn show(&mut self, _: &str) {}

    fn ask(&mut self, _: &str) -> Option<String> {
        None
    }
}

/// The process's own terminal.
#[derive(Debug, Default)]
pub struct ProcessTerminal;

impl Terminal for ProcessTerminal {
    fn is_interactive(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn show(&mut self, text: &str) {
        spinner::clear();
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    fn ask(&mut self, prompt: &str) -> Option<String> {
        let _open = spinner::Question::open();
        let mut err = io::stderr().lock();
        write!(err, "{prompt} ").and_then(|()| err.flush()).ok()?;
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
        }
    }

    fn discard_input(&mut self) {
        // Fails if stdin is not a terminal; then there is nothing to discard.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}

/// Asks a yes-or-no question; every answer but `y` and `yes` is no. Input typed before the question is discarded.
pub fn confirm(terminal: &mut dyn Terminal, question: &str) -> bool {
    terminal.discard_input();
    let answer = terminal.ask(&format!("{question} [y/N]"));
    answer.is_some_and(|answer| matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
