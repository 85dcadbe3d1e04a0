//! Links to proto-mcp servers over a socket or a WebSocket: length-prefixed messages (proto-mcp
//! v1.0, "Transport Layer").

mod ws;

use std::{io, sync::Arc};

use bytes::Bytes;
use bytes::BytesMut;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use wire::proto::frame::{Frame, Frames};
use wire::proto::sniff::{Sniffed, sniff};

use crate::error::{LinkError, SendError};
use crate::http::{HttpSpec, connect::Connector, endpoint};
use crate::queue::{self, Framing, SendQueue, closed};
use crate::transport::{Closing, LinkInbox, LinkTransport, SendMeta};

/// Bytes that may wait until the server reads them.
const QUEUE_BYTES_MAX: usize = 16 << 20;
/// Buffer space for one read.
const READ_BYTES: usize = 64 << 10;
/// Messages that are handled before other tasks get a turn.
const TURN_FRAMES_MAX: usize = 16;

/// A link over one connection. Dropping it closes the connection.
#[derive(Debug)]
pub(crate) struct FramedLink {
    queue: Arc<SendQueue>,
    close: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

impl FramedLink {
    /// Connects, and starts the tasks that read and write.
    pub(crate) async fn connect(
        spec: &HttpSpec,
        websocket: bool,
        queue_len_max: usize,
        inbox: Arc<dyn LinkInbox>,
    ) -> Result<Self, LinkError> {
        let url =
            endpoint::parse(&spec.url).map_err(|why| LinkError::Unreachable(why.to_owned()))?;
        let mut connector = Connector::new(url.clone(), &spec.tls, spec.limits.connect);
        // A proxy of the environment is one for HTTP, with which a WebSocket begins.
        if websocket {
            connector = connector.through_proxy(false);
        }
        let socket = TokioIo::new(connector.connect().await?);
        let queue = Arc::new(SendQueue::new(
            Framing::Frames,
            QUEUE_BYTES_MAX,
            queue_len_max,
        ));
        let frame_bytes_max = spec.limits.frame_bytes_max;
        let (close, closing) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let queued = Arc::clone(&queue);
        let into = Arc::clone(&inbox);
        let run: Closing<'static> = if websocket {
            let opened =
                tokio::time::timeout(spec.limits.connect, ws::open(&url, spec, socket)).await;
            let socket = opened.unwrap_or(Err(LinkError::Timeout))?;
            Box::pin(ws::run(socket, queued, into, closing))
        } else {
            Box::pin(run(socket, frame_bytes_max, queued, into, closing))
        };
        tokio::spawn(async move {
            run.await;
            let _ = done.send(true);
        });
        Ok(Self {
            queue,
            close,
            ended,
        })
    }
}

impl LinkTransport for FramedLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        self.queue.push(frame, meta.unsent.as_ref())
    }

    fn close(&self) -> Closing<'_> {
        self.queue.close();
        let _ = self.close.send(true);
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}

/// Reads and writes until either side ends.
async fn run(
    socket: impl AsyncRead + tokio::io::AsyncWrite + Send,
    bytes_max: usize,
    queue: Arc<SendQueue>,
    inbox: Arc<dyn LinkInbox>,
    mut closing: watch::Receiver<bool>,
) {
    let (reader, writer) = tokio::io::split(socket);
    let reader = std::pin::pin!(reader);
    let why = tokio::select! {
        read = read_frames(reader, bytes_max, Arc::clone(&inbox)) => match read {
            Ok(()) => LinkError::Broken("the server closed the connection".to_owned()),
            Err(why) => broken(&why),
        },
        written = queue::write(Arc::clone(&queue), writer) => match written {
            // The queue is closed from this side.
            Ok(()) => LinkError::Closed,
            Err(why) => broken(&why),
        },
        () = closed(&mut closing) => LinkError::Closed,
    };
    queue.close();
    inbox.closed(why);
}

/// Why a stream of frames ended: by what it carried, or by the connection.
pub(crate) fn broken(why: &io::Error) -> LinkError {
    match why.kind() {
        io::ErrorKind::InvalidData => LinkError::Malformed(why.to_string()),
        _ => LinkError::Broken(why.to_string()),
    }
}

/// Hands each message of a stream to the inbox until the stream ends.
///
/// # Errors
/// `InvalidData` if the server writes anything but frames, or one that is too long; nothing after
/// it can be read.
pub(crate) async fn read_frames(
    mut pipe: impl AsyncRead + Unpin,
    bytes_max: usize,
    inbox: Arc<dyn LinkInbox>,
) -> io::Result<()> {
    let mut frames = Frames::new(bytes_max, BytesMut::new());
    let mut is_first = true;
    let mut turn = 0;
    loop {
        frames.buffer().reserve(READ_BYTES);
        if pipe.read_buf(frames.buffer()).await? == 0 {
            return if frames.is_cut() {
                Err(invalid("the last message is cut"))
            } else {
                Ok(())
            };
        }
        // The first byte says what the server speaks.
        if is_first && let Some(first) = frames.buffer().first() {
            match sniff(*first) {
                Sniffed::Proto => {}
                Sniffed::Json => return Err(invalid("the server writes JSON, not proto-mcp")),
                Sniffed::Tls | Sniffed::Http | Sniffed::Unknown => {
                    return Err(invalid("the server does not write proto-mcp"));
                }
            }
            is_first = false;
        }
        while let Some(frame) = frames.next_frame() {
            match frame {
                Frame::KeepAlive => {}
                Frame::Message(message) => drop(inbox.frame(message, None)),
                Frame::TooLong(_) => return Err(invalid("a message is longer than the limit")),
            }
            turn += 1;
            if turn % TURN_FRAMES_MAX == 0 {
                // A server that floods must not keep other tasks waiting.
                tokio::task::yield_now().await;
            }
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use platform::Mutex;

    use super::*;
    use crate::transport::Flow;

    #[derive(Default)]
    struct Keeper(Mutex<Vec<Bytes>>);

    impl LinkInbox for Keeper {
        fn frame(&self, frame: Bytes, _: Option<u64>) -> Flow {
            self.0.lock().push(frame);
            Flow::Open
        }

        fn failed(&self, _: u64, _: LinkError) {}

        fn closed(&self, _: LinkError) {}
    }

    async fn read(bytes: &[u8], max: usize) -> (Vec<Bytes>, Option<String>) {
        let kept = Arc::new(Keeper::default());
        let into: Arc<dyn LinkInbox> = Arc::<Keeper>::clone(&kept);
        let why = read_frames(bytes, max, into)
            .await
            .err()
            .map(|why| broken(&why).to_string());
        (std::mem::take(&mut *kept.0.lock()), why)
    }

    #[tokio::test]
    async fn frames_are_messages_and_anything_else_ends_the_stream() {
        let bytes = [0, 0, 0, 2, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 8];
        assert_eq!(
            read(&bytes, 2).await,
            (vec![vec![8, 3].into(), vec![8].into()], None)
        );
        for (bytes, expected) in [
            (
                &b"{\"jsonrpc\""[..],
                "unreadable answer: the server writes JSON, not proto-mcp",
            ),
            (
                b"HTTP/1.1 200",
                "unreadable answer: the server does not write proto-mcp",
            ),
            (
                &[0, 0, 0, 3, 1, 1, 1],
                "unreadable answer: a message is longer than the limit",
            ),
            (
                &[0, 0, 0, 2, 1],
                "unreadable answer: the last message is cut",
            ),
        ] {
            assert_eq!(
                read(bytes, 2).await,
                (Vec::new(), Some(expected.to_owned()))
            );
        }
    }
}
