//! Log of a server's stderr, and of what on its stdout is no message: the last lines of its
//! processes, bounded in lines and bytes.

use std::{collections::VecDeque, sync::Arc};

use platform::{Mutex, unix_ms};
use tokio::sync::watch;

/// Lines that the log of one server keeps.
pub const STDERR_LINES_MAX: usize = 1000;
/// Bytes of these lines.
pub const STDERR_BYTES_MAX: usize = 256 << 10;

/// One line, without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StderrLine {
    /// Its number; the first line of the log's life has 1.
    pub number: u64,
    /// When it was read, in Unix milliseconds.
    pub at_ms: u64,
    /// The process that the gateway started: the server, or its keeper.
    pub pid: u32,
    /// The text as the process wrote it: untrusted, with control characters.
    pub text: Arc<str>,
    /// Whether it is of stdout, where only messages may be.
    is_of_stdout: bool,
}

/// The last lines that the processes of one server wrote to stderr.
#[derive(Debug)]
pub struct StderrLog {
    ring: Mutex<Ring>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Ring {
    lines: VecDeque<StderrLine>,
    bytes: usize,
}

impl Default for StderrLog {
    fn default() -> Self {
        Self {
            ring: Mutex::default(),
            newest: watch::Sender::new(0),
        }
    }
}

impl StderrLog {
    /// Adds a line, and drops the oldest beyond the limits.
    pub fn push(&self, pid: u32, text: &str) {
        self.add(pid, text, false);
    }

    /// Adds the beginning of what a process printed to stdout and is no message.
    pub fn push_of_stdout(&self, pid: u32, text: &str) {
        self.add(pid, &format!("on stdout, no message: {text}"), true);
    }

    fn add(&self, pid: u32, text: &str, is_of_stdout: bool) {
        let mut ring = self.ring.lock();
        let number = *self.newest.borrow() + 1;
        ring.bytes += text.len();
        ring.lines.push_back(StderrLine {
            number,
            at_ms: unix_ms(),
            pid,
            text: text.into(),
            is_of_stdout,
        });
        while ring.lines.len() > STDERR_LINES_MAX || ring.bytes > STDERR_BYTES_MAX {
            let dropped = ring.lines.pop_front().map_or(0, |line| line.text.len());
            ring.bytes = ring.bytes.saturating_sub(dropped);
        }
        self.newest.send_replace(number);
    }

    /// The lines after the one with this number, oldest first, and the number of the newest line.
    pub fn after(&self, number: u64) -> (Vec<StderrLine>, u64) {
        let ring = self.ring.lock();
        let lines = ring
            .lines
            .iter()
            .filter(|line| line.number > number)
            .cloned()
            .collect();
        (lines, *self.newest.borrow())
    }

    /// The last lines of a process, oldest first.
    pub fn last_of(&self, pid: u32, lines_max: usize) -> Vec<Arc<str>> {
        let ring = self.ring.lock();
        let newest = ring
            .lines
            .iter()
            .rev()
            .filter(|line| line.pid == pid)
            .take(lines_max);
        let mut last: Vec<Arc<str>> = newest.map(|line| Arc::clone(&line.text)).collect();
        last.reverse();
        last
    }

    /// When a process wrote its newest line to stderr, in Unix milliseconds.
    pub fn newest_ms(&self, pid: u32) -> Option<u64> {
        let ring = self.ring.lock();
        let of_stderr = |line: &&StderrLine| line.pid == pid && !line.is_of_stdout;
        ring.lines
            .iter()
            .rev()
            .find(of_stderr)
            .map(|line| line.at_ms)
    }

    /// Waits for a line after the one with this number.
    pub async fn wait_after(&self, number: u64) {
        // The sender is the log itself, so the wait ends with a line only.
        let _ = self
            .newest
            .subscribe()
            .wait_for(|newest| *newest > number)
            .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_bounded_in_lines_and_bytes() {
        let log = StderrLog::default();
        for at in 1..=STDERR_LINES_MAX + 1 {
            log.push(7, &at.to_string());
        }
        let (lines, newest) = log.after(0);
        assert_eq!(
            (lines.len(), newest),
            (STDERR_LINES_MAX, STDERR_LINES_MAX as u64 + 1)
        );
        assert_eq!((lines[0].number, &*lines[0].text), (2, "2"));
        assert_eq!(log.after(newest - 1).0.len(), 1);
        let long = "x".repeat(STDERR_BYTES_MAX / 2);
        (0..2).for_each(|_| log.push(8, &long));
        assert_eq!(
            log.after(0).0.len(),
            2,
            "two lines are as long as the limit"
        );
        log.push(9, "x");
        assert_eq!(log.after(0).0.len(), 2, "one byte more drops a line");
        assert_eq!(log.last_of(9, 5), [Arc::from("x")]);
        assert!(log.last_of(7, 5).is_empty());
    }

    #[tokio::test]
    async fn a_reader_waits_for_the_next_line() {
        let log = Arc::new(StderrLog::default());
        log.push(1, "one");
        log.wait_after(0).await;
        let waiting = tokio::spawn({
            let log = Arc::clone(&log);
            async move { log.wait_after(1).await }
        });
        tokio::task::yield_now().await;
        assert!(!waiting.is_finished());
        log.push(1, "two");
        waiting.await.unwrap();
    }
}
