//! A real gateway for one test: started on a free port in the home of the test, ended with it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::runner::{Home, Ran};

/// A busy machine needs this long at most.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway that serves.
pub(crate) struct Serving {
    child: Child,
    lines: Receiver<String>,
    said: String,
    /// Where it listens: `http://127.0.0.1:PORT`.
    pub(crate) url: String,
}

impl Serving {
    /// Starts `portmoot serve` with these arguments, on a free port, and waits until it says where it listens.
    pub(crate) fn start(home: &Home, args: &[&str]) -> Serving {
        let mut command: Command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut child = command.args(args).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (send, lines) = channel();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            let mut line = String::new();
            while stderr.read_line(&mut line).is_ok_and(|read| read > 0) {
                let _ = send.send(std::mem::take(&mut line));
            }
        });
        let mut serving = Serving { child, lines, said: String::new(), url: String::new() };
        let line = serving.hear("/mcp");
        let url = line.split_whitespace().find_map(|word| word.strip_suffix("/mcp"));
        serving.url = url.unwrap().to_owned();
        serving
    }

    /// Waits for a line on stderr that contains this, and gives it.
    pub(crate) fn hear(&mut self, wanted: &str) -> String {
        let end = Instant::now() + PATIENCE;
        while let Ok(line) = self.lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            self.said.push_str(&line);
            if line.contains(wanted) {
                return line;
            }
        }
        panic!("it never said {wanted:?}, but:\n{}", self.said);
    }

    /// Asks it to stop, waits, and gives all that it said on stderr; stdout is in `stdout`.
    pub(crate) fn stop(mut self) -> Ran {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        let end = Instant::now() + PATIENCE;
        let code = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code().unwrap_or(-1),
                None => assert!(Instant::now() < end, "it does not stop:\n{}", self.said),
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        while let Ok(line) = self.lines.recv_timeout(PATIENCE) {
            self.said.push_str(&line);
        }
        let mut stdout = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut stdout).unwrap();
        Ran { code, stdout, stderr: std::mem::take(&mut self.said) }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
