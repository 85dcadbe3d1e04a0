//! Both directions of a client on a pipe or socket: what it writes is read until it closes its
//! side, what its stream has is written.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use gateway::{Dispatch, Link};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use wire::rpc;

use crate::stream::{Reader, Stream};
use crate::unread::place_of;

/// Bytes that are gathered into one write.
const WRITE_BYTES: usize = 64 * 1024;
/// Longest wait for answers when the client has closed its side: longer than a list waits for
/// servers that start.
const DRAIN: Duration = Duration::from_secs(30);
/// Time between two looks for open requests meanwhile.
const POLL: Duration = Duration::from_millis(10);

/// Longest time in which a client whose message is not read to its end may still write it: a
/// connection that ends before that takes the refusal with it.
const LINGER: Duration = Duration::from_secs(3);
/// Bytes of such a message that are read at once.
const DISCARDED_BYTES: usize = 8 * 1024;

/// Boundary between two messages.
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

/// A client, as its protocol reads it.
pub(crate) trait Client {
    /// The buffer to read into.
    fn buffer(&mut self) -> &mut BytesMut;
    /// Takes the messages that are there as a whole; false if nothing after them can be trusted.
    async fn take(&mut self) -> bool;
    /// The client has closed its side, or gets nothing any more: takes what is left, and lets its
    /// links leave.
    async fn end(self);
}

/// Begins to write what a stream has. `None` if the stream has a reader that cannot be replaced.
pub(crate) fn writes(
    out: &Arc<Stream>,
    output: impl AsyncWrite + Unpin + Send + 'static,
    framing: Framing,
) -> Option<JoinHandle<io::Result<()>>> {
    Some(tokio::spawn(write(out.read(None)?, output, framing)))
}

/// Serves a client until it closes its side.
///
/// # Errors
/// Errors of the connection.
pub(crate) async fn serve(
    mut client: impl Client,
    out: &Stream,
    mut input: impl AsyncRead + Unpin,
    mut writer: JoinHandle<io::Result<()>>,
) -> io::Result<()> {
    let mut written = None;
    let mut is_refused = false;
    let ended = loop {
        if !client.take().await {
            is_refused = true;
            break Ok(());
        }
        if out.has_ended() {
            break Ok(());
        }
        let read = tokio::select! {
            read = input.read_buf(client.buffer()) => read,
            // The client gets nothing any more: it was revoked, is too slow, or has closed its side
            // of the output.
            end = &mut writer => {
                written = Some(end);
                break Ok(());
            }
        };
        match read {
            Ok(0) => break Ok(()),
            Ok(_) => {}
            Err(error) => break Err(error),
        }
    };
    client.end().await;
    // After that, so that the answers to its last requests are written.
    out.end();
    let written = match written {
        Some(written) => written,
        None => writer.await,
    };
    if is_refused {
        linger(&mut input).await;
    }
    match written {
        Ok(written) => ended.and(written),
        Err(_) => ended,
    }
}

async fn write(
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
        let place = place_of(waiting.len(), &reader.stream.bounds.held);
        output.write_all(&waiting).await?;
        output.flush().await?;
        drop(place);
        waiting.clear();
        waiting.shrink_to(WRITE_BYTES);
    }
    // The client sees the end, and need not wait for that of the connection.
    output.shutdown().await
}

/// Reads on until a client closes its side, for a bounded time: it may still be writing what was
/// refused.
pub async fn linger(input: &mut (impl AsyncRead + Unpin)) {
    let rest = async {
        let mut discarded = vec![0; DISCARDED_BYTES];
        while input.read(&mut discarded).await.is_ok_and(|read| read > 0) {}
    };
    let _ = timeout(LINGER, rest).await;
}

/// Waits for the answers of what is open on these links, until they are in their stream, within a
/// bound.
pub(crate) async fn drain(dispatch: &Dispatch, links: &[&Arc<Link>], out: &Stream) {
    let is_awaited = || {
        links
            .iter()
            .any(|link| dispatch.with(|topic| topic.is_awaited(link.id)))
    };
    let deadline = Instant::now() + DRAIN;
    while (is_awaited() || out.is_owing()) && !out.has_ended() && Instant::now() < deadline {
        sleep(POLL).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use config::GatewayLimits;
    use model::TopicName;

    use super::*;
    use crate::fixture::{registry, user};
    use crate::reply::{Owed, Sink};
    use crate::stream::Lifetime;

    /// The topic is done with a call before the thread that has its mailbox encodes the answer.
    #[tokio::test(start_paused = true)]
    async fn a_closed_pipe_waits_for_answers_that_are_not_in_its_stream_yet() {
        let registry = registry(GatewayLimits::default());
        let dispatch = registry.topic(&TopicName::new("main").unwrap()).unwrap();
        let bounds = registry.bounds(&user(&registry).id);
        let out = Stream::new(0, Lifetime::Reader, 0, &bounds);
        let [answered, skipped] = [Owed::by(&out), Owed::by(&out)];
        let mut drained = pin!(drain(&dispatch, &[], &out));
        assert!(timeout(POLL * 3, &mut drained).await.is_err());
        answered.answer(Bytes::from_static(b"{}"), None);
        assert!(timeout(POLL * 3, &mut drained).await.is_err());
        skipped.skip();
        assert!(timeout(POLL * 3, &mut drained).await.is_ok());
    }

    #[tokio::test]
    async fn what_a_client_does_not_read_is_on_its_account_until_it_is_written() {
        let registry = registry(GatewayLimits::default());
        let bounds = registry.bounds(&user(&registry).id);
        let out = Stream::new(0, Lifetime::Reader, 0, &bounds);
        let (near, mut far) = tokio::io::duplex(64);
        let writer = writes(&out, near, Framing::Prefixed).unwrap();
        out.answer(Bytes::from(vec![b'x'; 100_000]), None);
        far.read_exact(&mut [0; 64]).await.unwrap();
        assert_eq!(bounds.held.taken(), 100_000);
        out.end();
        let mut rest = Vec::new();
        far.read_to_end(&mut rest).await.unwrap();
        writer.await.unwrap().unwrap();
        assert_eq!((rest.len(), bounds.held.taken()), (100_000 - 64, 0));
    }
}
