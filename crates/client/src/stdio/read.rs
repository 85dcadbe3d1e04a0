//! The two readers of a child: messages from stdout, the log from stderr.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::limits::StdioLimits;
use super::lines::{Line, Lines};
use crate::contract::{Flow, Inbox};

/// Room for one read; the size of a pipe.
const READ_BYTES: usize = 64 << 10;
/// Room for one read while little arrives.
const READ_BYTES_IDLE: usize = 4 << 10;
/// Lines of one child that are dealt with in a row: then others have their turn. A child that floods has hundreds in one read.
const TURN_LINES_MAX: usize = 16;
/// What a line that is no message counts at least.
const NOISE_LINE_BYTES: usize = 256;

/// Gives every line of stdout to the inbox, all lines of a read at once, until the pipe ends.
pub(super) async fn stdout(
    name: Arc<str>,
    limits: StdioLimits,
    mut pipe: impl AsyncRead + Unpin,
    inbox: Arc<dyn Inbox>,
) -> io::Result<()> {
    let mut lines = Lines::new(limits.line_bytes_max);
    let mut buffer = BytesMut::new();
    let mut room = READ_BYTES_IDLE;
    let mut noise = Noise { since: Instant::now(), bytes: 0 };
    loop {
        noise.wait(limits.noise_bytes_per_second).await;
        buffer.reserve(room);
        let count = pipe.read_buf(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        room = if count >= READ_BYTES_IDLE { READ_BYTES } else { READ_BYTES_IDLE };
        let mut turn = 0;
        while let Some(line) = lines.next(&mut buffer) {
            turn += 1;
            if turn % TURN_LINES_MAX == 0 {
                tokio::task::yield_now().await;
            }
            match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => {
                    let length = line.len();
                    if inbox.frame(line, None) == Flow::Noise {
                        noise.bytes += length.max(NOISE_LINE_BYTES);
                    }
                }
                Line::Overlong(head) => {
                    noise.bytes += limits.line_bytes_max;
                    tracing::warn!(
                        server = &*name,
                        limit = limits.line_bytes_max,
                        "a line on stdout is too long"
                    );
                    inbox.skipped(&head);
                }
            }
        }
        if room == READ_BYTES {
            // A child that always has more to say must not keep the others waiting.
            tokio::task::yield_now().await;
        }
    }
}

/// What a child has said in this second that was no message. One that goes on is not read until the next second: the
/// pipe fills, and it waits.
struct Noise {
    since: Instant,
    bytes: usize,
}

impl Noise {
    async fn wait(&mut self, per_second: usize) {
        if self.bytes >= per_second {
            tokio::time::sleep(Duration::from_secs(1).saturating_sub(self.since.elapsed())).await;
        }
        if self.since.elapsed() >= Duration::from_secs(1) {
            *self = Self { since: Instant::now(), bytes: 0 };
        }
    }
}

/// Logs stderr under the server's name, so many lines a second.
pub(super) async fn stderr(
    name: Arc<str>,
    limits: StdioLimits,
    mut pipe: impl AsyncRead + Unpin,
) -> io::Result<()> {
    let mut lines = Lines::new(limits.stderr_line_bytes_max);
    let mut buffer = BytesMut::new();
    let mut rate = Rate { since: Instant::now(), logged: 0, left_out: 0 };
    loop {
        buffer.reserve(READ_BYTES_IDLE);
        let count = pipe.read_buf(&mut buffer).await?;
        if count == 0 {
            // A last line without an end is often the reason of a crash.
            buffer.extend_from_slice(b"\n");
        }
        while let Some(line) = lines.next(&mut buffer) {
            let (text, cut) = match &line {
                Line::Whole(text) => (text, ""),
                Line::Overlong(head) => (head, "..."),
            };
            if !text.is_empty() && rate.admit(&name, limits.stderr_lines_per_second) {
                let text = String::from_utf8_lossy(text);
                // Escaped: a server must not write to the operator's terminal.
                tracing::info!(target: "portmoot::stderr", server = &*name, "{}{cut}", text.escape_debug());
            }
        }
        if count == 0 {
            return Ok(());
        }
    }
}

struct Rate {
    since: Instant,
    logged: u32,
    left_out: u64,
}

impl Rate {
    fn admit(&mut self, name: &str, per_second: u32) -> bool {
        if self.since.elapsed() >= Duration::from_secs(1) {
            if self.left_out > 0 {
                tracing::info!(target: "portmoot::stderr", server = name, "{} more lines left out", self.left_out);
            }
            *self = Self { since: Instant::now(), logged: 0, left_out: 0 };
        }
        let admitted = self.logged < per_second;
        self.logged += u32::from(admitted);
        self.left_out += u64::from(!admitted);
        admitted
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;

    use super::*;
    use crate::contract::LinkFailure;

    /// Counts what it hears.
    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Inbox for Count {
        fn frame(&self, _: Bytes, _: Option<u64>) -> Flow {
            self.0.fetch_add(1, Ordering::Relaxed);
            Flow::Open
        }

        fn failed(&self, _: u64, _: LinkFailure) {}

        fn closed(&self, _: LinkFailure) {}
    }

    #[tokio::test(flavor = "current_thread")]
    async fn while_one_child_floods_others_have_their_turns() {
        const LINES: usize = 4096;
        let (inbox, turns) = (Arc::new(Count::default()), Arc::new(AtomicUsize::new(0)));
        let (text, counted) = ("{}\n".repeat(LINES), Arc::clone(&turns));
        let other = tokio::spawn(async move {
            loop {
                counted.fetch_add(1, Ordering::Relaxed);
                tokio::task::yield_now().await;
            }
        });
        let heard: Arc<dyn Inbox> = Arc::<Count>::clone(&inbox);
        stdout("flood".into(), StdioLimits::default(), text.as_bytes(), heard).await.unwrap();
        other.abort();
        assert_eq!(inbox.0.load(Ordering::Relaxed), LINES);
        let turns = turns.load(Ordering::Relaxed);
        assert!(turns >= LINES / TURN_LINES_MAX, "{turns} turns");
    }
}
