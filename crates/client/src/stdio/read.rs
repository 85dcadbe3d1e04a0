//! The two readers of a child: messages from stdout, the log from stderr.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::limits::StdioLimits;
use super::lines::{Line, Lines};
use crate::contract::Inbox;

/// Room for one read; the size of a pipe.
const READ_BYTES: usize = 64 << 10;
/// Room for one read while little arrives.
const READ_BYTES_IDLE: usize = 4 << 10;

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
    loop {
        buffer.reserve(room);
        let count = pipe.read_buf(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        room = if count >= READ_BYTES_IDLE { READ_BYTES } else { READ_BYTES_IDLE };
        while let Some(line) = lines.next(&mut buffer) {
            match line {
                Line::Whole(line) if line.iter().all(u8::is_ascii_whitespace) => {}
                Line::Whole(line) => {
                    inbox.frame(line, None);
                }
                Line::Overlong(head) => {
                    tracing::warn!(
                        server = &*name,
                        limit = limits.line_bytes_max,
                        "a line on stdout is too long"
                    );
                    inbox.skipped(&head);
                }
            }
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
