//! Terminal input: questions to the user.

use std::io::{self, BufRead, IsTerminal, Write};

use crate::output::spinner;

/// A terminal. Tests use one with scripted answers.
pub(crate) trait Terminal: Send {
    /// Whether stdin and stderr are both terminals.
    fn is_interactive(&self) -> bool;
    /// Shows a text.
    fn show(&mut self, text: &str);
    /// Asks for one line; `None` at the end of input.
    fn ask(&mut self, prompt: &str) -> Option<String>;
    /// Discards input that was typed before the question.
    fn discard_input(&mut self) {}
}

/// A terminal with scripted answers, for tests.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct ScriptedTerminal {
    pub(crate) interactive: bool,
    pub(crate) answers: std::collections::VecDeque<&'static str>,
    pub(crate) shown: String,
}

#[cfg(test)]
impl ScriptedTerminal {
    pub(crate) fn new(interactive: bool, answers: &[&'static str]) -> Self {
        Self { interactive, answers: answers.iter().copied().collect(), shown: String::new() }
    }
}

#[cfg(test)]
impl Terminal for ScriptedTerminal {
    fn is_interactive(&self) -> bool {
        self.interactive
    }

    fn show(&mut self, text: &str) {
        self.shown.push_str(text);
        self.shown.push('\n');
    }

    fn ask(&mut self, _: &str) -> Option<String> {
        self.answers.pop_front().map(str::to_owned)
    }
}

/// A terminal without a person.
#[derive(Debug, Default)]
pub(crate) struct Unattended;

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
pub(crate) struct ProcessTerminal;

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
pub(crate) fn confirm(terminal: &mut dyn Terminal, question: &str) -> bool {
    terminal.discard_input();
    let answer = terminal.ask(&format!("{question} [y/N]"));
    answer.is_some_and(|answer| matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
