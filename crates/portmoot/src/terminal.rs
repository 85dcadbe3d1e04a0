//! Questions to the person at the terminal. Must not know what is asked.

use std::io::{self, BufRead, IsTerminal, Write};

/// Whoever can be asked. A trait so that tests answer from a list.
pub(crate) trait Terminal: Send {
    /// Whether somebody is there: stdin and stderr are both terminals.
    fn is_attended(&self) -> bool;
    /// Shows a text to that person.
    fn show(&mut self, text: &str);
    /// Asks for one line; `None` at the end of input.
    fn ask(&mut self, prompt: &str) -> Option<String>;
    /// Forgets what was typed before anything was asked.
    fn forget(&mut self) {}
}

/// A person whose answers are known beforehand, for tests.
#[cfg(test)]
#[derive(Default)]
pub(crate) struct Script {
    pub(crate) attended: bool,
    pub(crate) answers: std::collections::VecDeque<&'static str>,
    pub(crate) shown: String,
}

#[cfg(test)]
impl Script {
    pub(crate) fn new(attended: bool, answers: &[&'static str]) -> Self {
        Self { attended, answers: answers.iter().copied().collect(), shown: String::new() }
    }
}

#[cfg(test)]
impl Terminal for Script {
    fn is_attended(&self) -> bool {
        self.attended
    }

    fn show(&mut self, text: &str) {
        self.shown.push_str(text);
        self.shown.push('\n');
    }

    fn ask(&mut self, _: &str) -> Option<String> {
        self.answers.pop_front().map(str::to_owned)
    }
}

/// The process's own terminal.
#[derive(Debug, Default)]
pub(crate) struct Console;

impl Terminal for Console {
    fn is_attended(&self) -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    fn show(&mut self, text: &str) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    fn ask(&mut self, prompt: &str) -> Option<String> {
        let mut err = io::stderr().lock();
        write!(err, "{prompt} ").and_then(|()| err.flush()).ok()?;
        let mut line = String::new();
        match io::stdin().lock().read_line(&mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(line.trim_end_matches(['\n', '\r']).to_owned()),
        }
    }

    fn forget(&mut self) {
        // What is no terminal has nothing to forget.
        let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
    }
}

/// Asks yes or no; anything but a clear yes is no. What was typed before it was asked is no answer.
pub(crate) fn confirm(terminal: &mut dyn Terminal, question: &str) -> bool {
    terminal.forget();
    let answer = terminal.ask(&format!("{question} [y/N]"));
    answer.is_some_and(|answer| matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
