//! MCPx over WebSocket: `GET /ws?topic=NAME` (MCPx v0.1, section 6.2). The upgrade, and the life of
//! one connection.

mod reader;

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Waker};

use auth::{Participant, Wire};
use axum::extract::Query;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use gateway::{Dispatch, Joining, Link, RoomOutlet, plain_client};
use http::header::{CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use model::{DeliveryMode, Form, LinkId, Refusal, RefusalCode};
use platform::{Share, Taken};
use room::{Close, Socket};
use serde::Deserialize;
use store::audit::RecordedVerdict;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;
use topic::{Cursor, Listener};
use tungstenite::handshake::derive_accept_key;
use wire::mcpx::Envelope;

use super::arrived::ConveyedWire;
use super::authorization::at_token_end;
use super::body::Body;
use super::connection::{Client, Connection};
use super::handover::Watched;
use super::head::bearer;
use super::request::not_allowed;
use super::response::{self, Answered};
use super::secure::{self, Counted, Pump};
use reader::{Departure, Reader, Received};

/// Messages in a row that cannot be read, before the connection is closed.
const MALFORMED_IN_A_ROW_MAX: u32 = 16;
/// Bytes of a client's key (RFC 6455, section 4.1).
const KEY_BYTES: usize = 16;
/// Bytes of an unfinished message from which on they are counted.
const PARTIAL_BYTES_MIN: usize = 4096;
/// Messages that one connection may send before others run.
const MESSAGES_AT_ONCE: u32 = 64;

/// The query of the address (docs/mcpx.md; MCPx v0.1, section 6.3).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    #[serde(default = "main_topic")]
    topic: String,
    /// Without one, the configured mode of the participant.
    mode: Option<Mode>,
    /// Whether it gets its own messages.
    #[serde(default = "yes")]
    echo: bool,
    /// Epoch of an earlier welcome, up to whose offset the client has received messages already.
    epoch: Option<u64>,
    offset: Option<u64>,
    /// Whether envelopes have their places.
    #[serde(default)]
    places: bool,
}

/// The modes as the address names them.
#[derive(Debug, Clone, Copy, Deserialize)]
enum Mode {
    #[serde(rename = "all")]
    All,
    #[serde(rename = "directed")]
    Directed,
    // A plus sign in a query is a space.
    #[serde(rename = "directed+proposals", alias = "directed proposals")]
    DirectedAndProposals,
}

fn main_topic() -> String {
    "main".to_owned()
}

fn yes() -> bool {
    true
}

impl From<Mode> for DeliveryMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::All => Self::All,
            Mode::Directed => Self::Directed,
            Mode::DirectedAndProposals => Self::DirectedAndProposals,
        }
    }
}

impl Wanted {
    fn joining(&self, participant: &Participant) -> Joining {
        let since = self
            .epoch
            .zip(self.offset)
            .map(|(epoch, offset)| Cursor { epoch, offset });
        let mode = self.mode.map_or(participant.mode, DeliveryMode::from);
        let listener = Some(Listener {
            mode,
            echo: self.echo,
        });
        Joining {
            listener,
            since,
            ..Joining::default()
        }
    }
}

/// A participant that may enter the topic, before the upgrade.
struct Accepted {
    connection: Arc<Connection>,
    dispatch: Arc<Dispatch>,
    participant: Arc<Participant>,
    /// Connections are numbered in the order in which they were accepted.
    link: LinkId,
    joining: Joining,
    /// Whether its envelopes have their places.
    places: bool,
}

/// Accepts a WebSocket.
pub(crate) fn serve(connection: Arc<Connection>, mut request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::GET {
        return not_allowed("GET", request.method());
    }
    let wanted = match Query::<Wanted>::try_from_uri(request.uri()) {
        Ok(Query(wanted)) => wanted,
        Err(wrong) => {
            return response::plain(StatusCode::BAD_REQUEST, &format!("{}\n", wrong.body_text()));
        }
    };
    let registry = &connection.links.registry;
    let presented = connection.presented(bearer(request.headers()));
    let entered = registry.visitor(
        presented,
        &wanted.topic,
        Wire::Ws,
        None,
        &connection.client.guests,
    );
    let (dispatch, participant) = match entered {
        Ok(entered) => entered,
        Err(refusal) => return refused(&refusal),
    };
    if let Err(refusal) = connection.belongs_to(&participant.id) {
        return refused(&refusal);
    }
    let accept = match accept(request.headers()) {
        Ok(accept) => accept,
        Err(refused) => return *refused,
    };
    let link = registry.context.link();
    let joining = wanted.joining(&participant);
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(begin(
        upgrade,
        Accepted {
            connection,
            dispatch,
            participant,
            link,
            joining,
            places: wanted.places,
        },
    ));
    let mut response = response::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

/// The answer to a client that may not enter.
pub(super) fn refused(refusal: &Refusal) -> Response<Body> {
    let status = match refusal.code {
        code if code.is_unauthenticated() => StatusCode::UNAUTHORIZED,
        RefusalCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        RefusalCode::Overloaded | RefusalCode::IssuerUnreachable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::FORBIDDEN,
    };
    response::refusing(response::plain(status, &format!("{refusal}\n")), refusal)
}

/// The answer to the client's key (RFC 6455, section 4.2).
pub(super) fn accept(headers: &HeaderMap) -> Answered<HeaderValue> {
    if !has_token(headers, CONNECTION, "upgrade") || !has_token(headers, UPGRADE, "websocket") {
        let why = "this is a WebSocket; connect with one\n";
        return Err(upgrade_required(why, UPGRADE, "websocket"));
    }
    if !has_token(headers, SEC_WEBSOCKET_VERSION, "13") {
        let why = "WebSocket version 13 is spoken here\n";
        return Err(upgrade_required(why, SEC_WEBSOCKET_VERSION, "13"));
    }
    let key = headers
        .get(SEC_WEBSOCKET_KEY)
        .map(HeaderValue::as_bytes)
        .unwrap_or_default();
    let is_key = STANDARD
        .decode(key)
        .is_ok_and(|bytes| bytes.len() == KEY_BYTES);
    if is_key && let Ok(answer) = HeaderValue::from_str(&derive_accept_key(key)) {
        return Ok(answer);
    }
    Err(Box::new(response::plain(
        StatusCode::BAD_REQUEST,
        "Sec-WebSocket-Key is missing or wrong\n",
    )))
}

/// Whether a header lists a token, in any case.
fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name);
    let mut texts = values.iter().filter_map(|value| value.to_str().ok());
    texts.any(|text| {
        text.split(',')
            .any(|part| part.trim().eq_ignore_ascii_case(token))
    })
}

/// The answer to a request that would have to be an upgrade with this header.
fn upgrade_required(why: &str, name: HeaderName, value: &'static str) -> Box<Response<Body>> {
    let mut response = response::plain(StatusCode::UPGRADE_REQUIRED, why);
    response
        .headers_mut()
        .insert(name, HeaderValue::from_static(value));
    Box::new(response)
}

async fn begin(upgrade: OnUpgrade, accepted: Accepted) {
    let upgraded = match upgrade
        .await
        .map(Upgraded::downcast::<TokioIo<Watched<TcpStream>>>)
    {
        Ok(Ok(parts)) => {
            return enter(
                parts.io.into_inner().into_inner(),
                None,
                parts.read_buf,
                accepted,
            );
        }
        Ok(Err(upgraded)) => upgraded,
        Err(error) => return tracing::debug!(%error, "an upgrade failed"),
    };
    let upgraded = match upgraded.downcast::<TokioIo<Watched<TlsStream<Counted>>>>() {
        Ok(parts) => {
            let io = parts.io.into_inner().into_inner();
            return enter_pumped(io, parts.read_buf, accepted);
        }
        Err(upgraded) => upgraded,
    };
    match upgraded.downcast::<TokioIo<Watched<ConveyedWire>>>() {
        Ok(parts) => {
            let io = parts.io.into_inner().into_inner();
            enter_pumped(io, parts.read_buf, accepted);
        }
        Err(_) => tracing::warn!("a WebSocket needs a connection of its own"),
    }
}

/// As [`enter`], through a pair of sockets.
fn enter_pumped(
    io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    lead: Bytes,
    accepted: Accepted,
) {
    match secure::pump(io) {
        Ok((stream, pump)) => enter(stream, Some(pump), lead, accepted),
        Err(error) => tracing::warn!(%error, "a WebSocket without a socket cannot be served"),
    }
}

/// Joins the topic, and starts the connection in a task without memory of its beginning: most
/// connections are silent most of the time.
fn enter(stream: TcpStream, pump: Option<Pump>, lead: Bytes, accepted: Accepted) {
    let Accepted {
        connection,
        dispatch,
        participant,
        link,
        joining,
        places,
    } = accepted;
    forget_waker(&stream);
    let registry = &connection.links.registry;
    let socket = Socket::new(stream, registry.context.now_ms(), places);
    // What it requests of servers it requests as a legacy client without capabilities.
    let outlet = Arc::new(RoomOutlet(Arc::clone(&socket)));
    connection.links.make_room(&participant.id, &dispatch);
    let link = Link::new(link, participant, Form::ENVELOPE, plain_client(), outlet);
    link.came_from(connection.peer);
    if let Err(refusal) = registry.join(&dispatch, &link, joining) {
        dispatch.record_connection(&link, RecordedVerdict::Refused, refusal.code.as_str());
        // A newer connection of the same participant may have been faster.
        let replaced = refusal.code == RefusalCode::Conflict;
        socket.close(if replaced {
            Close::Replaced
        } else {
            Close::Rejected
        });
        tokio::spawn(async move {
            socket.linger().await;
            drop(pump);
        });
        return;
    }
    dispatch.record_connection(&link, RecordedVerdict::Admitted, "opened");
    let of_link = Arc::downgrade(&dispatch);
    let id = link.id;
    at_token_end(&link.participant, move || {
        if let Some(dispatch) = of_link.upgrade() {
            dispatch.cut(id, Close::TokenEnded);
        }
    });
    // A client that comes while the gateway stops is closed like those that were there.
    if connection.is_stopping() {
        dispatch.cut(link.id, Close::GoingAway);
    }
    let partial = Partial::new(registry.held_of(&link.participant.id));
    let reader = Reader::new(lead, registry.limits().topics.envelope_bytes_max);
    let client = Arc::clone(&connection.client);
    let mut listening = Listening {
        client,
        dispatch,
        link,
        socket,
        reader,
        malformed: 0,
        partial,
        _pump: pump,
    };
    tokio::spawn(async move { listening.run().await });
}

/// A stream keeps the waker of the task that waited for it last, and with it the memory of that
/// task, long ended.
fn forget_waker(stream: &TcpStream) {
    let mut none = Context::from_waker(Waker::noop());
    // The tasks that read and write ask again whether it is ready.
    let _ = stream.poll_read_ready(&mut none);
    let _ = stream.poll_write_ready(&mut none);
}

/// Bytes of a message that has not arrived as a whole. Below [`PARTIAL_BYTES_MIN`] they are not
/// counted: most messages arrive at once.
struct Partial {
    share: Arc<Share>,
    taken: Option<Taken>,
    bytes: usize,
}

impl Partial {
    fn new(share: Arc<Share>) -> Self {
        Self {
            share,
            taken: None,
            bytes: 0,
        }
    }

    /// Counts this many bytes from now on. False if they do not fit into the share.
    fn holds(&mut self, bytes: usize) -> bool {
        if bytes < PARTIAL_BYTES_MIN {
            (self.taken, self.bytes) = (None, 0);
            return true;
        }
        if bytes < self.bytes {
            (self.taken, self.bytes) = (None, 0);
        }
        let more = bytes - self.bytes;
        self.bytes = bytes;
        match &mut self.taken {
            Some(taken) => taken.grow(more).is_ok(),
            None => self
                .share
                .take(more)
                .map(|taken| self.taken = Some(taken))
                .is_ok(),
        }
    }
}

/// One WebSocket that listens to a topic.
struct Listening {
    client: Arc<Client>,
    dispatch: Arc<Dispatch>,
    link: Arc<Link>,
    socket: Arc<Socket>,
    reader: Reader,
    /// Messages in a row that could not be read.
    malformed: u32,
    /// Bytes of a message that has not arrived as a whole, on its participant's account.
    partial: Partial,
    /// The way to the client, if that speaks TLS.
    _pump: Option<Pump>,
}

impl Listening {
    async fn run(&mut self) {
        let socket = Arc::clone(&self.socket);
        let mut departure = Departure::Lost;
        tokio::select! {
            () = socket.closed() => {}
            how = self.read() => departure = how,
        }
        // Before the last bytes are written, which may take long.
        self.dispatch.leave(&self.link);
        self.record(departure);
        // Boxed: its memory is needed only now.
        Box::pin(socket.linger()).await;
    }

    /// Records how it ended.
    fn record(&self, departure: Departure) {
        let (verdict, why) = match (self.socket.close_reason(), departure) {
            (Some(close), _) | (None, Departure::Cut(close)) => {
                let why = format!("closed {}: {}", close.code(), close.reason());
                (
                    if close.is_blameless() {
                        RecordedVerdict::Completed
                    } else {
                        RecordedVerdict::Refused
                    },
                    Cow::Owned(why),
                )
            }
            (None, Departure::Left) => (RecordedVerdict::Completed, Cow::Borrowed("left")),
            (None, Departure::Lost) => (RecordedVerdict::Completed, Cow::Borrowed("lost")),
            (None, Departure::Broke(code)) => (
                RecordedVerdict::Refused,
                Cow::Owned(format!("closed {code}: the protocol was broken")),
            ),
        };
        self.dispatch.record_connection(&self.link, verdict, &why);
    }

    async fn read(&mut self) -> Departure {
        let mut sent = 0;
        loop {
            match self.reader.next(self.socket.stream()) {
                Received::Nothing => {
                    if !self.partial.holds(self.reader.partial_bytes()) {
                        return self.cut(Close::TooMuch);
                    }
                    if poll_fn(|cx| self.socket.stream().poll_read_ready(cx))
                        .await
                        .is_err()
                    {
                        self.socket.end(Bytes::new());
                        return Departure::Lost;
                    }
                    self.socket.record_activity(self.client.links.now_ms());
                }
                Received::Text(text) => {
                    self.take(text);
                    sent += 1;
                }
                Received::Answer(frame) => self.dispatch.whisper_frame(self.link.id, frame),
                Received::Wrong(why) => {
                    self.malformed += 1;
                    self.dispatch
                        .tell_error(&self.link, "malformed_envelope", why);
                }
                Received::TooLong => {
                    let bytes_max = self
                        .client
                        .links
                        .registry
                        .limits()
                        .topics
                        .envelope_bytes_max;
                    let why = format!("a message has at most {bytes_max} bytes");
                    self.dispatch
                        .tell_error(&self.link, "message_too_large", &why);
                    return self.cut(Close::TooBig);
                }
                Received::End(last, departure) => {
                    self.socket.end(last);
                    return departure;
                }
            }
            if self.malformed >= MALFORMED_IN_A_ROW_MAX {
                return self.cut(Close::Policy);
            }
            if sent >= MESSAGES_AT_ONCE {
                sent = 0;
                tokio::task::yield_now().await;
            }
            if self.dispatch.room.is_full(self.link.queued()) {
                Box::pin(self.dispatch.room.wait_for_space(self.link.queued())).await;
            }
        }
    }

    /// The room sends the close frame, after everything that it sent before.
    fn cut(&self, close: Close) -> Departure {
        self.dispatch.cut(self.link.id, close);
        Departure::Cut(close)
    }

    fn take(&mut self, text: Bytes) {
        self.dispatch.room.count(self.link.queued(), text.len());
        match Envelope::read(text) {
            Ok(envelope) => {
                self.malformed = 0;
                self.dispatch.say(&self.link, envelope);
            }
            Err(breach) => {
                self.malformed += 1;
                self.dispatch.tell_breach(&self.link, &breach);
            }
        }
    }
}
