//! Relay for clients of proto-mcp on a pipe to the WebSocket of a running gateway. Messages pass
//! unchanged.

use std::collections::HashSet;
use std::future::pending;
use std::io;

use bytes::{Bytes, BytesMut};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::StatusCode;
use http::header::{AUTHORIZATION, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use platform::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use wire::proto::contract::ErrorResponse;
use wire::proto::frame::{FRAME_BYTES_MAX, Frame, Frames, PREFIX, framed, of_field, unprefixed};
use wire::proto::{MESSAGE_BYTES_HEADER, PayloadKind, ProtoEnvelope, SUBPROTOCOL};
use wire::rpc::code;

use super::{DRAIN_TIMEOUT, NEEDS_TOKEN};
use crate::remote::endpoint::{Endpoint as _, GatewayConnection, Remote, broken_pipe};
use terminal::exit::Exit;
use terminal::failure::Failure;

type Socket = WebSocketStream<GatewayConnection>;

/// End of the relay.
enum End {
    /// The client closed its side.
    Closed,
    /// A message was too long to be sent.
    TooLong,
}

/// Requests that wait for their answers.
#[derive(Default)]
struct Open {
    ids: Mutex<HashSet<u64>>,
    /// Notified when one is answered.
    answered: Notify,
}

impl Remote {
    /// Relays until the client closes its side. `read` are bytes of it that were read before.
    ///
    /// # Errors
    /// When the gateway cannot be reached, or refuses the client, or either side breaks.
    pub(super) async fn relay_frames(
        &self,
        topic: &str,
        read: BytesMut,
        mut input: impl AsyncRead + Unpin,
        output: impl AsyncWrite + Unpin,
    ) -> Result<(), Failure> {
        let (socket, bytes_max) = self.websocket(topic).await?;
        let (sink, stream) = socket.split();
        let open = Open::default();
        let too_long = Notify::new();
        let reads = async {
            let ended = read_frames(Frames::new(bytes_max, read), &mut input, sink, &open).await;
            if let Ok(true) = ended {
                too_long.notify_one();
                // What it writes after that cannot be read; the answer ends the relay.
                return pending().await;
            }
            ended.map(|_| End::Closed)
        };
        let ended = tokio::select! {
            ended = reads => ended,
            ended = write_frames(stream, output, &open, &too_long, bytes_max) => ended,
        };
        if let Ok(End::TooLong) = ended {
            // A client that is still writing reads its answer afterwards.
            doors::linger(&mut input).await;
        }
        ended.map(drop)
    }

    /// A WebSocket to the gateway, and how long a message there may be, in bytes.
    async fn websocket(&self, topic: &str) -> Result<(Socket, usize), Failure> {
        let connection = self.connect().await?;
        let url = format!(
            "{}://{}/proto/{topic}",
            self.scheme().replacen("http", "ws", 1),
            self.authority()
        );
        let mut request = url
            .into_client_request()
            .map_err(|error| unreachable(error.to_string()))?;
        let headers = request.headers_mut();
        headers.insert(
            SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static(SUBPROTOCOL),
        );
        if let Some(token) = self.token() {
            let bearer = HeaderValue::from_str(&format!("Bearer {token}"))
                .map_err(|_| unreachable("the token is no header value".to_owned()))?;
            headers.insert(AUTHORIZATION, bearer);
        }
        let longest = Some(FRAME_BYTES_MAX + PREFIX);
        let config = WebSocketConfig::default()
            .max_message_size(longest)
            .max_frame_size(longest);
        match tokio_tungstenite::client_async_with_config(request, connection, Some(config)).await {
            Ok((socket, response)) => {
                let bytes_max = response
                    .headers()
                    .get(MESSAGE_BYTES_HEADER)
                    .and_then(|text| text.to_str().ok()?.parse().ok())
                    .unwrap_or(FRAME_BYTES_MAX);
                Ok((socket, bytes_max))
            }
            Err(Error::Http(response)) if response.status() == StatusCode::UNAUTHORIZED => {
                Err(Failure::new(
                    Exit::Unauthenticated,
                    "unauthenticated",
                    NEEDS_TOKEN.to_owned(),
                ))
            }
            Err(Error::Http(response)) => {
                let text = response
                    .body()
                    .as_deref()
                    .map(String::from_utf8_lossy)
                    .unwrap_or_default();
                let why = format!(
                    "the gateway answered {}: {}",
                    response.status(),
                    text.trim()
                );
                Err(Failure::new(Exit::Failed, "gateway_broken", why))
            }
            Err(error) => Err(unreachable(format!(
                "the gateway does not speak proto-mcp: {error}"
            ))),
        }
    }
}

fn unreachable(why: String) -> Failure {
    Failure::new(Exit::Failed, "gateway_unreachable", why)
}

/// Sends each message of the client until it closes its side and has its answers. Returns whether a
/// message is too long to be sent.
async fn read_frames(
    mut frames: Frames,
    input: &mut (impl AsyncRead + Unpin),
    mut sink: SplitSink<Socket, Message>,
    open: &Open,
) -> Result<bool, Failure> {
    loop {
        while let Some(frame) = frames.next_frame() {
            let message = match frame {
                Frame::KeepAlive => Message::Ping(Bytes::new()),
                Frame::TooLong(_) => return Ok(true),
                Frame::Message(message) => {
                    if let Ok(ProtoEnvelope { id, .. }) = ProtoEnvelope::read(&message) {
                        open.ids.lock().insert(id);
                    }
                    Message::Binary(message)
                }
            };
            sink.feed(message).await.map_err(|error| broken(&error))?;
        }
        sink.flush().await.map_err(|error| broken(&error))?;
        if input.read_buf(frames.buffer()).await.map_err(broken_pipe)? == 0 {
            break;
        }
    }
    let answered = async {
        while !open.ids.lock().is_empty() {
            open.answered.notified().await;
        }
    };
    // Open requests are still answered, for a bounded time.
    let _ = timeout(DRAIN_TIMEOUT, answered).await;
    let _ = sink.close().await;
    Ok(false)
}

/// Writes each message of the gateway until it closes its side.
async fn write_frames(
    mut stream: SplitStream<Socket>,
    mut output: impl AsyncWrite + Unpin,
    open: &Open,
    too_long: &Notify,
    bytes_max: usize,
) -> Result<End, Failure> {
    loop {
        let message = tokio::select! {
            message = stream.next() => message,
            () = too_long.notified() => {
                let written = output.write_all(&refusal(bytes_max)).await.and(output.shutdown().await);
                return written.map(|()| End::TooLong).map_err(broken_pipe);
            }
        };
        let message = match message {
            Some(Ok(Message::Binary(message))) => unprefixed(message),
            Some(Ok(Message::Close(frame))) => {
                let why = frame
                    .map(|frame| frame.reason.to_string())
                    .unwrap_or_default();
                let why = format!("the gateway closed the connection: {why}");
                return Err(Failure::new(Exit::Failed, "gateway_broken", why));
            }
            Some(Ok(_)) => continue,
            Some(Err(error)) => return Err(broken(&error)),
            None => return Err(broken(&Error::ConnectionClosed)),
        };
        if let Some(frame) = framed(&message) {
            let written: io::Result<()> = async {
                output.write_all(&frame).await?;
                output.flush().await
            }
            .await;
            written.map_err(broken_pipe)?;
        }
        if let Ok(ProtoEnvelope { id, .. }) = ProtoEnvelope::read(&message)
            && open.ids.lock().remove(&id)
        {
            open.answered.notify_one();
        }
    }
}

/// Answer to a client whose message is too long to be sent.
fn refusal(bytes_max: usize) -> Bytes {
    let code = i32::try_from(code::INVALID_REQUEST).unwrap_or_default();
    let message = format!("the message has more than {bytes_max} bytes");
    of_field(
        0,
        &PayloadKind::ErrorResponse.field_of(&ErrorResponse {
            code,
            message,
            data: None,
        }),
    )
    .unwrap_or_default()
}

fn broken(error: &Error) -> Failure {
    Failure::new(
        Exit::Failed,
        "gateway_broken",
        format!("the connection to the gateway broke: {error}"),
    )
}
