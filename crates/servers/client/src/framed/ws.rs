//! WebSockets that carry proto-mcp: binary messages with or without a prefix, subprotocol
//! `proto-mcp.v1`.

use std::sync::Arc;

use bytes::BytesMut;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::{StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message, client::IntoClientRequest};
use wire::proto::SUBPROTOCOL;
use wire::proto::frame::{Frame, Frames, PREFIX, framed, unprefixed};

use crate::error::LinkError;
use crate::http::{HttpSpec, connect::HttpSocket};
use crate::queue::{self, SendQueue, closed};
use crate::transport::LinkInbox;

/// A WebSocket after its handshake.
pub(super) type WebSocket = WebSocketStream<TokioIo<HttpSocket>>;

/// Shakes hands over this socket.
pub(super) async fn open(
    url: &Uri,
    spec: &HttpSpec,
    socket: TokioIo<HttpSocket>,
) -> Result<WebSocket, LinkError> {
    // `http` and `https` become `ws` and `wss`.
    let address = url.to_string().replacen("http", "ws", 1);
    let request = address.into_client_request();
    let mut request =
        request.map_err(|_| LinkError::Unreachable("the URL cannot be used".to_owned()))?;
    request.headers_mut().extend(spec.headers.clone());
    request.headers_mut().insert(
        SEC_WEBSOCKET_PROTOCOL,
        HeaderValue::from_static(SUBPROTOCOL),
    );
    let bytes_max = Some(spec.limits.frame_bytes_max.saturating_add(PREFIX));
    let config = WebSocketConfig::default()
        .max_message_size(bytes_max)
        .max_frame_size(bytes_max);
    match tokio_tungstenite::client_async_with_config(request, socket, Some(config)).await {
        Ok((socket, _)) => Ok(socket),
        Err(Error::Http(response)) if response.status() == StatusCode::UNAUTHORIZED => {
            Err(LinkError::Unauthorized)
        }
        Err(Error::Http(response)) => Err(LinkError::Http {
            status: response.status().as_u16(),
            body: bytes::Bytes::new(),
        }),
        Err(error) => Err(LinkError::Unreachable(error.to_string())),
    }
}

/// Reads and writes until either side ends.
pub(super) async fn run(
    socket: WebSocket,
    queue: Arc<SendQueue>,
    inbox: Arc<dyn LinkInbox>,
    mut closing: watch::Receiver<bool>,
) {
    let (sink, stream) = socket.split();
    let why = tokio::select! {
        why = read(stream, &*inbox) => why,
        written = write(sink, &queue) => match written {
            Ok(()) => LinkError::Closed,
            Err(why) => LinkError::Broken(why.to_string()),
        },
        () = closed(&mut closing) => LinkError::Closed,
    };
    queue.close();
    inbox.closed(why);
}

async fn read(mut stream: SplitStream<WebSocket>, inbox: &dyn LinkInbox) -> LinkError {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(message))) => match unprefixed(message) {
                message if message.is_empty() => {}
                message => drop(inbox.frame(message, None)),
            },
            Some(Ok(Message::Text(_))) => {
                return LinkError::Malformed("the server writes JSON, not proto-mcp".to_owned());
            }
            Some(Ok(Message::Close(_))) | None => {
                return LinkError::Broken("the server closed the connection".to_owned());
            }
            Some(Ok(_)) => {}
            Some(Err(Error::Capacity(_))) => {
                return LinkError::Malformed("a message is longer than the limit".to_owned());
            }
            Some(Err(why)) => return LinkError::Broken(why.to_string()),
        }
    }
}

/// Writes each frame that waits as one message, with its prefix.
async fn write(mut sink: SplitSink<WebSocket, Message>, queue: &SendQueue) -> Result<(), Error> {
    let mut waiting = BytesMut::new();
    while queue::next(queue, &mut waiting).await {
        let mut frames = Frames::new(usize::MAX, std::mem::take(&mut waiting));
        while let Some(Frame::Message(message)) = frames.next_frame() {
            if let Some(frame) = framed(&message) {
                sink.feed(Message::Binary(frame)).await?;
            }
        }
        sink.flush().await?;
    }
    sink.close().await
}
