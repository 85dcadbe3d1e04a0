//! Interactive child programs: lines are typed to them, and their output is awaited line by line.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Instant;

use crate::http::TIMEOUT;
use crate::support::Gateway;
use crate::ws::token;

/// A program with its input and its output, stdout and stderr together. Dropping it kills the
/// program.
pub(crate) struct Program {
    child: Child,
    keys: Option<ChildStdin>,
    lines: Receiver<String>,
    seen: String,
}

/// The command of an SDK example as this participant.
pub(crate) fn example(name: &str, gateway: &Gateway, who: &str, args: &[&str]) -> Command {
    let mut command = Command::new(harness::example_binary(name));
    command
        .args(args)
        .env_clear()
        .env("PORTMOOT_URL", gateway.url())
        .env("PORTMOOT_TOKEN", token(who));
    command
}

impl Program {
    pub(crate) fn start(mut command: Command) -> Program {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (send, lines) = channel();
        let also = send.clone();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        std::thread::spawn(move || {
            BufReader::new(out)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        std::thread::spawn(move || {
            BufReader::new(err)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| also.send(line))
        });
        let keys = child.stdin.take();
        Program {
            child,
            keys,
            lines,
            seen: String::new(),
        }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Types a line.
    pub(crate) fn type_line(&mut self, line: &str) {
        writeln!(self.keys.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits for a line that contains this text, and returns it.
    #[track_caller]
    pub(crate) fn wait_for_line(&mut self, wanted: &str) -> String {
        let end = Instant::now() + TIMEOUT;
        while let Ok(line) = self
            .lines
            .recv_timeout(end.saturating_duration_since(Instant::now()))
        {
            self.seen.push_str(&line);
            self.seen.push('\n');
            if line.contains(wanted) {
                return line;
            }
        }
        panic!("never seen: {wanted:?}, but:\n{}", self.seen);
    }

    /// Closes its input.
    pub(crate) fn close_input(&mut self) {
        self.keys = None;
    }

    /// Closes its input and waits for its exit; returns the exit code and all output.
    #[track_caller]
    pub(crate) fn wait_for_exit(mut self) -> (i32, String) {
        self.close_input();
        let end = Instant::now() + TIMEOUT;
        loop {
            match self
                .lines
                .recv_timeout(end.saturating_duration_since(Instant::now()))
            {
                Ok(line) => self.seen += &format!("{line}\n"),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end"),
            }
        }
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        (code, std::mem::take(&mut self.seen))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            println!("--- the program has printed\n{}", self.seen);
        }
    }
}
