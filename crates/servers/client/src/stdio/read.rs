//! Readers of a child's output: messages from stdout, log lines from stderr.

use std::time::{Duration, Instant};
use std::{io, sync::Arc};

use tokio::io::{AsyncRead, AsyncReadExt};
use wire::line::{Line, Lines};

use super::stderr::StderrLog;
use crate::transport::{Flow, LinkInbox};

/// Buffer space for one read: the size of a pipe.
const READ_BYTES: usize = 64 << 10;
/// Buffer space for one read while little arrives.
const READ_BYTES_IDLE: usize = 4 << 10;
/// Lines of one child that are handled before other tasks get a turn. A child that floods has
/// hundreds in one read.
const TURN_LINES_MAX: usize = 16;
/// Bytes of stdout in a second that are not messages. Beyond this the link does not read for the
/// rest of the second. An overlong line counts as the longest possible one.
const NOISE_BYTES_PER_SECOND: usize = 4 << 20;
/// Bytes that a line counts for at least when it is not a message.
const NOISE_LINE_BYTES: usize = 256;
/// Length of a line of stderr in the log, in bytes; the rest is cut.
const STDERR_LINE_BYTES_MAX: usize = 4096;
/// Lines of stderr that are logged in a second; further ones are counted.
const STDERR_LINES_PER_SECOND: usize = 100;

const SECOND: Duration = Duration::from_secs(1);

/// Hands each line of stdout to the inbox until the pipe ends.
pub(super) async fn stdout(
    name: Arc<str>,
    line_bytes_max: usize,
    mut pipe: impl AsyncRead + Unpin,
    inbox: Arc<dyn LinkInbox>,
) -> io::Result<()> {
    let mut lines = Lines::new(line_bytes_max);
    let mut room = READ_BYTES_IDLE;
    // A child with too much of it is not read until the next second: its pipe fills, and the child
    // waits.
    let mut noise = PerSecond::new();
    loop {
        noise.wait(NOISE_BYTES_PER_SECOND).await;
        lines.buffer().reserve(room);
        let count = pipe.read_buf(lines.buffer()).await?;
        if count == 0 {
            return Ok(());
        }
        room = if count >= READ_BYTES_IDLE {
            READ_BYTES
        } else {
            READ_BYTES_IDLE
        };
        let mut turn = 0;
        while let Some(line) = lines.next_line() {
            turn += 1;
            if turn % TURN_LINES_MAX == 0 {
                tokio::task::yield_now().await;
            }
            match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => {
                    let length = line.len();
                    if inbox.frame(line, None) == Flow::Noise {
                        noise.count += length.max(NOISE_LINE_BYTES);
                    }
                }
                Line::Overlong(head) => {
                    noise.count += line_bytes_max;
                    tracing::warn!(
                        server = &*name,
                        limit = line_bytes_max,
                        "a line on stdout is too long"
                    );
                    inbox.skipped(&head);
                }
            }
        }
        if room == READ_BYTES {
            // A child that floods must not keep other tasks waiting.
            tokio::task::yield_now().await;
        }
    }
}

/// A count that starts again with each second.
struct PerSecond {
    since: Instant,
    count: usize,
}

impl PerSecond {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            count: 0,
        }
    }

    /// Starts again when the second is over, and returns the count of the last one.
    fn ended(&mut self) -> Option<usize> {
        if self.since.elapsed() < SECOND {
            return None;
        }
        let last = std::mem::replace(self, Self::new());
        Some(last.count)
    }

    /// Waits for the end of the second if the count has reached its limit.
    async fn wait(&mut self, limit: usize) {
        // What counts nothing needs no clock.
        if self.count == 0 {
            return;
        }
        if self.count >= limit {
            tokio::time::sleep(SECOND.saturating_sub(self.since.elapsed())).await;
        }
        self.ended();
    }
}

/// Logs stderr under the server's name, and keeps it, up to a number of lines a second.
pub(super) async fn stderr(
    name: Arc<str>,
    mut pipe: impl AsyncRead + Unpin,
    (pid, log): (u32, Arc<StderrLog>),
) -> io::Result<()> {
    let mut lines = Lines::new(STDERR_LINE_BYTES_MAX);
    let mut rate = PerSecond::new();
    loop {
        lines.buffer().reserve(READ_BYTES_IDLE);
        let has_ended = pipe.read_buf(lines.buffer()).await? == 0;
        if has_ended {
            // Ends the last line, which often has the reason of a crash.
            lines.buffer().extend_from_slice(b"\n");
        }
        while let Some(line) = lines.next_line() {
            let (text, cut) = match &line {
                Line::Whole(text) => (text, ""),
                Line::Overlong(head) => (head, "..."),
            };
            if let Some(omitted) = omitted(&mut rate) {
                let omitted = format!("{omitted} more lines omitted");
                tracing::info!(target: "portmoot::stderr", server = &*name, "{omitted}");
                log.push(pid, &omitted);
            }
            rate.count += 1;
            if rate.count <= STDERR_LINES_PER_SECOND {
                let text = String::from_utf8_lossy(text);
                log.push(pid, &format!("{text}{cut}"));
                // Escaped, so that a server cannot write to the operator's terminal.
                tracing::info!(target: "portmoot::stderr", server = &*name, "{}{cut}", text.escape_debug());
            }
        }
        if has_ended {
            return Ok(());
        }
    }
}

/// How many lines of a second that has just ended were not logged, if there are some.
fn omitted(lines: &mut PerSecond) -> Option<usize> {
    let omitted = lines.ended()?.checked_sub(STDERR_LINES_PER_SECOND)?;
    (omitted > 0).then_some(omitted)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;
    use crate::error::LinkError;

    /// Counts messages.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl LinkInbox for Count {
        fn frame(&self, _: Bytes, _: Option<u64>) -> Flow {
            self.0.fetch_add(1, Ordering::Relaxed);
            Flow::Open
        }

        fn failed(&self, _: u64, _: LinkError) {}

        fn closed(&self, _: LinkError) {}
    }

    #[tokio::test(flavor = "current_thread")]
    async fn other_tasks_run_while_a_child_floods() {
        const LINES: usize = 4096;
        let inbox = Arc::new(Count::default());
        let turns = Arc::new(AtomicUsize::new(0));
        let text = "{}\n".repeat(LINES);
        let counted = Arc::clone(&turns);
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let counting: Arc<dyn LinkInbox> = Arc::<Count>::clone(&inbox);
        stdout("flood".into(), 4096, text.as_bytes(), counting)
            .await
            .unwrap();
        other.abort();
        assert_eq!(inbox.0.load(Ordering::Relaxed), LINES);
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= LINES / TURN_LINES_MAX, "{turns} turns");
    }
}
