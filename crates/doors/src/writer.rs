//! Writer of a stream's messages to a pipe or socket, and the wait for open answers when its client has closed its side.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gateway::{Dispatch, Link};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep};
use wire::rpc;

use crate::stream::{Reader, Stream};

/// Bytes that are gathered into one write.
const WRITE_BYTES: usize = 64 * 1024;
/// Longest wait for answers when the client has closed its side.
const DRAIN: Duration = Duration::from_secs(5);
/// Time between two looks for open requests meanwhile.
const POLL: Duration = Duration::from_millis(10);

/// Where one message ends and the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Each ends with its line.
    Lines,
    /// Each begins with its length, which is written already.
    Prefixed,
}

impl Framing {
    fn append(self, waiting: &mut Vec<u8>, frame: &Bytes) {
        match self {
            Self::Lines => {
                waiting.extend_from_slice(&rpc::one_line(frame.clone()));
                waiting.push(b'\n');
            }
            Self::Prefixed => waiting.extend_from_slice(frame),
        }
    }
}

/// Writes what a stream has, until it ends.
///
/// # Errors
/// Those of the pipe.
pub(crate) async fn write(
    mut reader: Reader,
    mut output: impl AsyncWrite + Unpin,
    framing: Framing,
) -> io::Result<()> {
    let mut waiting = Vec::new();
    while let Some(item) = reader.next().await {
        framing.append(&mut waiting, &item.frame);
        while waiting.len() < WRITE_BYTES {
            let Some(item) = reader.try_next() else { break };
            framing.append(&mut waiting, &item.frame);
        }
        output.write_all(&waiting).await?;
        output.flush().await?;
        waiting.clear();
        waiting.shrink_to(WRITE_BYTES);
    }
    Ok(())
}

/// Waits for the answers of what is open on these links, within a bound.
pub(crate) async fn drain(dispatch: &Dispatch, links: &[&Arc<Link>], out: &Stream) {
    let open = || links.iter().any(|link| dispatch.with(|topic| topic.is_awaited(link.id)));
    let deadline = Instant::now() + DRAIN;
    while open() && !out.has_ended() && Instant::now() < deadline {
        sleep(POLL).await;
    }
}
