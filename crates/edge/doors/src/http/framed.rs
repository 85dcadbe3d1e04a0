//! proto-mcp on the gateway's port without HTTP: frames from the first byte on, over TCP or TLS
//! (proto-mcp v1.0, "Stdio Transport").

use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use auth::{Wire, check_proto_listen};
use bytes::{Buf as _, Bytes, BytesMut};
use model::Refusal;
use prost::Message as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::time::{sleep, timeout};
use wire::proto::call::token_of;
use wire::proto::contract::InitializeRequest;
use wire::proto::frame::{PREFIX, of_field};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, spell};

use super::authorization::token_end;
use super::connection::Connection;
use super::handover::Watch as _;
use super::places::Standing;
use super::progress::Progressing;
use crate::outlet::Visitor;
use crate::proto::{self, ProtoArrival};
use crate::stream::{Lifetime, Stream};

/// The key in the metadata of `InitializeRequest` that names a topic other than `main`.
const TOPIC: &str = "mcp.topic";
/// Time in which the first message must be there.
const FIRST_MESSAGE: Duration = Duration::from_secs(30);
/// The longest first message that is read of a client that is not known yet, in bytes.
const FIRST_BYTES_MAX: usize = 64 * 1024;
/// A frame without a message.
const KEEP_ALIVE: Bytes = Bytes::from_static(&[0; PREFIX]);

/// First message of a client, before it is a participant.
#[derive(Default)]
struct FirstReply {
    /// The id of the message.
    id: u64,
    /// The token in it.
    token: Option<String>,
    /// The topic that it names.
    topic: Option<String>,
}

/// Serves a connection until either side ends it. `read` are bytes of it that were read before.
pub(super) async fn serve(
    mut socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    mut read: BytesMut,
    connection: &Arc<Connection>,
    standing: Option<Arc<Standing>>,
) {
    let evicted = async {
        match &standing {
            Some(standing) => poll_fn(|cx| standing.poll_evicted(cx)).await,
            None => pending().await,
        }
    };
    let first = tokio::select! {
        first = timeout(FIRST_MESSAGE, first(&mut socket, &mut read, connection)) => first.unwrap_or_default(),
        () = evicted => None,
        () = connection.stopping() => None,
    };
    let Some(first) = first else { return };
    connection.unfinished.end();
    let registry = &connection.links.registry;
    let admitted = match first.token.as_deref() {
        Some(token) => Box::pin(registry.admit(token, connection.peer)).await,
        None => Ok(()),
    };
    let visitor = match admitted.and_then(|()| enter(connection, &first)) {
        Ok(visitor) => visitor,
        Err(refusal) => {
            let refused = of_field(first.id, &spell(&refusal, "").field()).unwrap_or_default();
            if let Err(error) = socket.write_all(&refused).await {
                tracing::trace!(%error, "a refused connection ended");
            }
            return;
        }
    };
    let limits = connection.links.registry.limits();
    let out = Stream::new(
        0,
        Lifetime::Reader,
        0,
        &connection.links.registry.bounds(&visitor.participant.id),
    );
    let (input, output) = tokio::io::split(socket);
    let output = Progressing::new(output);
    let bearer = Arc::clone(&visitor.participant);
    // Then it is as if the client had closed its side: what is open is answered, and it leaves.
    let over = async {
        tokio::select! {
            () = connection.stopping() => {}
            () = token_end(&bearer) => {}
        }
    };
    let input = Until {
        input,
        stop: pin!(over),
    };
    // A client that is gone without a word is noticed by what cannot be written to it.
    let kept_alive = async {
        loop {
            sleep(limits.topics.keep_alive).await;
            // As an answer, for which there is always room.
            out.answer(KEEP_ALIVE);
        }
    };
    let arrival = ProtoArrival {
        visitor,
        host: connection.authority.clone(),
        address: connection.peer,
        trace: None,
    };
    tokio::select! {
        served = proto::serve(&connection.links, arrival, &out, read, input, output) => {
            if let Err(error) = served {
                tracing::trace!(%error, "connection ended");
            }
        }
        () = kept_alive => {}
    }
}

/// Reads until the first message is there, and what it says; `None` if the client leaves before, or
/// too much of clients at its address waits. `read` keeps its bytes.
async fn first(
    socket: &mut (impl AsyncRead + Unpin),
    read: &mut BytesMut,
    connection: &Connection,
) -> Option<FirstReply> {
    if !connection.read(read.len()) {
        return None;
    }
    loop {
        while read.starts_with(&KEEP_ALIVE) {
            read.advance(PREFIX);
        }
        if let Some(len) = read
            .first_chunk()
            .map(|len| u32::from_be_bytes(*len) as usize)
        {
            if len > FIRST_BYTES_MAX {
                // It introduces itself by nothing.
                return Some(FirstReply::default());
            }
            if let Some(message) = read.get(PREFIX..PREFIX + len) {
                return Some(FirstReply::of(Bytes::copy_from_slice(message)));
            }
        }
        let more = socket.read_buf(read).await.ok()?;
        if more == 0 || !connection.read(more) {
            return None;
        }
    }
}

impl FirstReply {
    fn of(message: Bytes) -> Self {
        let Ok(ProtoEnvelope { id, content }) = ProtoEnvelope::read(&message) else {
            return Self::default();
        };
        let Content::Payload(PayloadKind::InitializeRequest, field) = content else {
            return Self {
                id,
                ..Self::default()
            };
        };
        let hello =
            PayloadKind::split(&field).and_then(|(_, hello)| InitializeRequest::decode(hello).ok());
        let metadata = hello.unwrap_or_default().metadata;
        let token = metadata
            .iter()
            .find_map(|(key, value)| token_of(&key.to_ascii_lowercase(), value));
        Self {
            id,
            token: token.map(str::to_owned),
            topic: metadata.get(TOPIC).cloned(),
        }
    }
}

/// The participant of a client, and its topic.
fn enter(connection: &Connection, first: &FirstReply) -> Result<Visitor, Refusal> {
    let registry = &connection.links.registry;
    let config = registry.config();
    check_proto_listen(config.doors.listen, config.doors.tls.is_some())?;
    let presented = connection.presented(first.token.as_deref());
    let topic = first.topic.as_deref().unwrap_or("main");
    let (dispatch, participant) = registry.visitor(
        presented,
        topic,
        Wire::Proto,
        None,
        &connection.client.guests,
    )?;
    connection.belongs_to(&participant.id)?;
    Ok(Visitor {
        dispatch,
        participant,
    })
}

/// Input of a client, until the gateway stops or the client's token ends.
struct Until<'s, R, S> {
    input: R,
    stop: Pin<&'s mut S>,
}

impl<R: AsyncRead + Unpin, S: Future<Output = ()>> AsyncRead for Until<'_, R, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.stop.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.input).poll_read(cx, into)
    }
}
