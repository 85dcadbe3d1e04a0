//! Terminal input: questions to the user.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use zeroize::Zeroizing;

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
        let _open = spinner::QuietSpinner::open();
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

/// Reads a line that is typed at the process's own terminal and not shown, at most so many bytes.
/// `None` if it is given up (Ctrl-C, Ctrl-D) or longer.
///
/// # Errors
/// When stdin is no terminal, or cannot be read.
pub fn hidden(prompt: &str, bytes_max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    let _open = spinner::QuietSpinner::open();
    let mut err = io::stderr().lock();
    // First, so that nothing that is typed after the question is shown or thrown away.
    let silent = Silent::begin()?;
    write!(err, "{prompt} ").and_then(|()| err.flush())?;
    let line = typed(io::stdin().lock(), bytes_max);
    drop(silent);
    writeln!(err)?;
    line
}

/// The terminal while it shows nothing of what is typed and hands over each key at once.
struct Silent(Termios);

impl Silent {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent
            .local_modes
            .remove(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG);
        // What was typed before the question is no answer to it.
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// A line of keys: a backspace takes back a byte of it, and Ctrl-U all.
fn typed(mut keys: impl Read, bytes_max: usize) -> io::Result<Option<Zeroizing<Vec<u8>>>> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const CTRL_U: u8 = 21;
    // With room for all: no copy that a growing buffer leaves behind.
    let mut line = Zeroizing::new(Vec::with_capacity(bytes_max + 1));
    let mut key = [0];
    loop {
        if keys.read(&mut key)? == 0 {
            return Ok(None);
        }
        match key[0] {
            b'\r' | b'\n' => return Ok((line.len() <= bytes_max).then_some(line)),
            CTRL_C | CTRL_D => return Ok(None),
            CTRL_U => line.clear(),
            8 | 127 => drop(line.pop()),
            byte if line.len() <= bytes_max => line.push(byte),
            _ => {}
        }
    }
}

/// Asks a yes-or-no question; every answer but `y` and `yes` is no. Input typed before the question
/// is discarded.
pub fn confirm(terminal: &mut dyn Terminal, question: &str) -> bool {
    terminal.discard_input();
    let answer = terminal.ask(&format!("{question} [y/N]"));
    answer.is_some_and(|answer| matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hidden_line_is_what_was_typed_last_and_bounded() {
        for (keys, expect) in [
            (&b"hush\r"[..], Some(&b"hush"[..])),
            (b"hushh\x7f\n", Some(b"hush")),
            (b"other\x15hush\n", Some(b"hush")),
            (b"\x7f\x08\n", Some(b"")),
            (b"eightbyt\n", Some(b"eightbyt")),
            (b"eightbyte\n", None),
            (b"hu\x03sh\n", None),
            (b"hush\x04", None),
            (b"hush", None),
        ] {
            let line = typed(keys, 8).unwrap();
            assert_eq!(
                line.as_ref().map(|line| line.as_slice()),
                expect,
                "{keys:?}"
            );
        }
    }
}
