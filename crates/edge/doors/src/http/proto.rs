//! proto-mcp over WebSocket: `GET /proto` (proto-mcp v1.0, "WebSocket"). The upgrade, and the life
//! of one connection.

use std::sync::Arc;
use std::time::Duration;

use auth::{Wire, check_proto_listen};
use bytes::Bytes;
use config::{Config, GatewayLimits};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, HOST, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use room::Close;
use telemetry::trace::CallerTrace;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::CapacityError;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};
use wire::proto::frame::{PREFIX, unprefixed};
use wire::proto::{MESSAGE_BYTES_HEADER, SUBPROTOCOL};

use super::authorization::token_end;
use super::body::Body;
use super::connection::Connection;
use super::head::Head;
use super::request::not_allowed;
use super::response::{self, Answered};
use super::ws::{accept, refused};
use crate::duplex;
use crate::outlet::Visitor;
use crate::proto::{ProtoArrival, Session};
use crate::stream::{Lifetime, Reader, Stream};
use crate::unread::place_of;

/// Longest time in which what is queued is written when the connection ends.
const LINGER: Duration = Duration::from_secs(3);
/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1024;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// A client whose WebSocket is accepted, before it joins.
struct Arrival {
    visitor: Visitor,
    /// The gateway as the client names it.
    host: Option<Arc<str>>,
    /// The trace that the headers of the upgrade name, if they name one.
    trace: Option<Box<CallerTrace>>,
}

/// Accepts a WebSocket to this topic.
pub(crate) fn serve(
    connection: Arc<Connection>,
    config: &Config,
    topic: &str,
    mut request: Request<Incoming>,
) -> Response<Body> {
    if request.method() != Method::GET {
        return not_allowed("GET", request.method());
    }
    if let Err(refusal) = check_proto_listen(config.doors.listen, config.doors.tls.is_some()) {
        return refused(&refusal);
    }
    let head = Head::read(request.headers());
    let presented = connection.presented(head.bearer());
    let registry = &connection.links.registry;
    let entered = registry.visitor(
        presented,
        topic,
        Wire::Proto,
        None,
        &connection.client.guests,
    );
    let entered = entered.and_then(|(dispatch, participant)| {
        connection.belongs_to(&participant.id).map(|()| Visitor {
            dispatch,
            participant,
        })
    });
    let visitor = match entered {
        Ok(visitor) => visitor,
        Err(refusal) => return refused(&refusal),
    };
    let accepted =
        accept(request.headers()).and_then(|key| Ok((key, subprotocol(request.headers())?)));
    let (key, subprotocol) = match accepted {
        Ok(accepted) => accepted,
        Err(refused) => return *refused,
    };
    let trace = head.trace(request.headers());
    let host = request
        .headers()
        .get(HOST)
        .and_then(|host| Some(host.to_str().ok()?.into()));
    let upgrade = hyper::upgrade::on(&mut request);
    let bytes_max = connection.links.registry.limits().body_bytes_max;
    let arrival = Arrival {
        visitor,
        host,
        trace,
    };
    tokio::spawn(begin(upgrade, connection, arrival));
    let mut response = response::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, key);
    headers.insert(MESSAGE_BYTES_HEADER, HeaderValue::from(bytes_max));
    if let Some(subprotocol) = subprotocol {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, subprotocol);
    }
    response
}

/// The subprotocol of the answer: that of the request, which may have none.
fn subprotocol(headers: &HeaderMap) -> Answered<Option<HeaderValue>> {
    let mut offered = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter().peekable();
    if offered.peek().is_none() {
        return Ok(None);
    }
    let mut texts = offered
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','));
    if texts.any(|text| text.trim() == SUBPROTOCOL) {
        return Ok(Some(HeaderValue::from_static(SUBPROTOCOL)));
    }
    let why = format!("the subprotocol of this path is `{SUBPROTOCOL}`; MCP in JSON is at /mcp\n");
    Err(Box::new(response::plain(StatusCode::BAD_REQUEST, &why)))
}

async fn begin(upgrade: OnUpgrade, connection: Arc<Connection>, arrival: Arrival) {
    let Arrival {
        visitor,
        host,
        trace,
    } = arrival;
    let upgraded = match upgrade.await {
        Ok(upgraded) => TokioIo::new(upgraded),
        Err(error) => return tracing::debug!(%error, "an upgrade failed"),
    };
    let links = &connection.links;
    let limits = links.registry.limits();
    let bytes_max = limits.body_bytes_max;
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(bytes_max.saturating_add(PREFIX)))
        .max_frame_size(Some(bytes_max.saturating_add(PREFIX)));
    let (sink, mut stream) = Socket::from_raw_socket(upgraded, Role::Server, Some(config))
        .await
        .split();
    let out = Stream::new(
        0,
        Lifetime::Reader,
        0,
        &links.registry.bounds(&visitor.participant.id),
    );
    let Some(reader) = out.read(None) else { return };
    let mut writer = tokio::spawn(write(reader, sink));
    let abort = writer.abort_handle();
    let mut written = None;
    let bearer = Arc::clone(&visitor.participant);
    let arrival = ProtoArrival {
        visitor,
        host,
        address: connection.peer,
        trace,
    };
    let close = match Session::begin(links, arrival, &out).await {
        Some(mut session) => {
            let close = tokio::select! {
                close = read(&mut stream, &mut session, &out, &limits) => close,
                () = connection.stopping() => close(CloseCode::Away, "the gateway stops"),
                () = token_end(&bearer) => {
                    close(Close::TokenEnded.code().into(), Close::TokenEnded.reason())
                }
                // The client gets nothing any more: it was revoked, is too slow, or is gone.
                end = &mut writer => {
                    written = Some(end);
                    close(CloseCode::Policy, "the connection has ended")
                }
            };
            session.end().await;
            close
        }
        None => close(CloseCode::Policy, "the topic rejects you"),
    };
    out.end();
    let closed = timeout(LINGER, async {
        let written = match written {
            Some(written) => written,
            None => writer.await,
        };
        let Ok(Ok(mut sink)) = written else { return };
        let is_too_long = close.code == CloseCode::Size;
        drop(sink.send(Message::Close(Some(close))).await);
        if let Ok(mut socket) = sink.reunite(stream)
            && is_too_long
        {
            let socket = socket.get_mut();
            drop(socket.shutdown().await);
            duplex::linger(socket).await;
        }
    });
    if closed.await.is_err() {
        abort.abort();
    }
}

fn close(code: CloseCode, why: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: why.into(),
    }
}

/// Takes what the client sends, until one of the two has enough. Returns with which words the
/// connection is closed.
async fn read(
    stream: &mut SplitStream<Socket>,
    session: &mut Session,
    out: &Stream,
    limits: &GatewayLimits,
) -> CloseFrame {
    let bytes_max = limits.body_bytes_max;
    let mut silent = false;
    loop {
        let message = match timeout(limits.topics.keep_alive, stream.next()).await {
            Err(_) if silent || out.has_ended() => {
                return close(CloseCode::Away, "the client is silent");
            }
            Err(_) => {
                silent = true;
                // An empty message keeps the connection alive; what the client has to say to it is
                // nothing.
                out.answer(Bytes::new());
                continue;
            }
            Ok(None | Some(Ok(Message::Close(_)))) => return close(CloseCode::Normal, ""),
            Ok(Some(message)) => message,
        };
        silent = false;
        match message {
            Ok(Message::Binary(message)) => {
                let message = unprefixed(message);
                if message.len() > bytes_max {
                    session.refuse_long(message.len() as u64);
                    return close(CloseCode::Size, "the message is too long");
                }
                if !message.is_empty() {
                    session.take(&message).await;
                }
            }
            Ok(Message::Text(_)) => {
                return close(
                    CloseCode::Unsupported,
                    "proto-mcp is binary; JSON-RPC is at /mcp",
                );
            }
            Ok(_) => {}
            Err(Error::Capacity(CapacityError::MessageTooLong { size, .. })) => {
                session.refuse_long(size as u64);
                return close(CloseCode::Size, "the message is too long");
            }
            Err(error) => {
                tracing::debug!(%error, "a WebSocket ended");
                return close(CloseCode::Protocol, "the protocol was broken");
            }
        }
        if out.has_ended() {
            return close(CloseCode::Policy, "the connection has ended");
        }
    }
}

/// Writes each frame that waits as one message, with its prefix; nothing is a ping. Returns the
/// sink once the stream has ended.
async fn write(
    mut reader: Reader,
    mut sink: SplitSink<Socket, Message>,
) -> Result<SplitSink<Socket, Message>, Error> {
    while let Some(item) = reader.next().await {
        let mut next = Some(item);
        while let Some(item) = next {
            let place = place_of(item.frame.len(), &reader.stream.bounds.held);
            let message = if item.frame.is_empty() {
                Message::Ping(Bytes::new())
            } else {
                Message::Binary(item.frame)
            };
            sink.feed(message).await?;
            if place.is_some() {
                // The sink has a copy until then.
                sink.flush().await?;
            }
            next = reader.try_next();
        }
        sink.flush().await?;
    }
    Ok(sink)
}
