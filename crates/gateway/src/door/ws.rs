//! MCPx over WebSocket: `GET /ws?topic=NAME` (MCPx v0.1, section 6.2).
//!
//! Owns the upgrade, who comes in by it, and the life of one connection. What is said goes to the pump; what is heard is
//! written by the room. Must not know payloads.

mod read;

use std::borrow::Cow;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Waker};

use auth::Participant;
use axum::extract::Query;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY};
use http::header::{SEC_WEBSOCKET_VERSION, UPGRADE, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use model::{LinkId, Refusal, RefusalCode};
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, watch};
use topic::Ear;
use tungstenite::handshake::derive_accept_key;
use wire::mcpx::Envelope;

use super::answer;
use super::body::Body;
use super::head::bearer;
use super::held::{Handover, Watched};
use super::request::not_allowed;
use crate::caller::Caller;
use crate::gate::Gate;
use crate::guests::Guests;
use crate::pump::{Hearing, Pump};
use read::{Gone, Heard, Reader};
use room::{Close, Socket};

/// Messages in a row that cannot be read before the connection is closed.
pub const MALFORMED_IN_A_ROW_MAX: u32 = 16;
/// Bytes of a client's key (RFC 6455, section 4.1).
const KEY_BYTES: usize = 16;
/// Messages that one connection may say before others run.
const MESSAGES_AT_ONCE: u32 = 64;

/// What the address says (design, section 6; MCPx v0.1, section 6.3).
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wish {
    #[serde(default = "main_topic")]
    topic: String,
    #[serde(default)]
    mode: Mode,
    /// Whether it hears what it says itself.
    #[serde(default = "yes")]
    echo: bool,
    /// What it has heard already: epoch and offset of an earlier welcome.
    epoch: Option<u64>,
    offset: Option<u64>,
}

#[derive(Debug, Default, Clone, Copy, Deserialize)]
enum Mode {
    #[default]
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

/// What a connection needs besides its request.
pub struct Place {
    /// The gateway.
    pub gate: Arc<Gate>,
    /// Its place among the connections, kept until it ends.
    pub _slot: Option<OwnedSemaphorePermit>,
    /// Who it is without a token.
    pub guests: Guests,
    /// Where a held event stream leaves HTTP.
    pub handover: Arc<Handover>,
    /// The gateway stops.
    pub stop: watch::Receiver<bool>,
}

/// Somebody who is let in, before the upgrade.
struct Visit {
    place: Arc<Place>,
    pump: Arc<Pump>,
    who: Arc<Participant>,
    /// Its number: connections count in the order in which they were accepted.
    link: LinkId,
    wish: Wish,
}

/// Serves one request for a WebSocket.
pub fn serve(place: Arc<Place>, mut request: Request<Incoming>) -> Response<Body> {
    if request.method() != Method::GET {
        return not_allowed("GET", request.method());
    }
    let wish = match Query::<Wish>::try_from_uri(request.uri()) {
        Ok(Query(wish)) => wish,
        Err(wrong) => return answer::plain(StatusCode::BAD_REQUEST, &format!("{}\n", wrong.body_text())),
    };
    let gate = &place.gate;
    let entered = gate.visitor(bearer(request.headers()), &wish.topic, None, &place.guests);
    let (pump, who) = match entered {
        Ok(entered) => entered,
        Err(refusal) => return refused(&refusal),
    };
    let accept = match accept(request.headers()) {
        Ok(accept) => accept,
        Err(refused) => return *refused,
    };
    let link = gate.ground().link();
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(begin(upgrade, Visit { place, pump, who, link, wish }));
    let mut response = answer::empty(StatusCode::SWITCHING_PROTOCOLS);
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    response
}

fn refused(refusal: &Refusal) -> Response<Body> {
    let status = match refusal.code {
        RefusalCode::Unauthenticated => StatusCode::UNAUTHORIZED,
        _ => StatusCode::FORBIDDEN,
    };
    let mut response = answer::plain(status, &format!("{refusal}\n"));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// The answer to the client's key (RFC 6455, section 4.2).
fn accept(headers: &HeaderMap) -> answer::Answer<HeaderValue> {
    let has = |name: HeaderName, token: &str| {
        let values = headers.get_all(name);
        let mut texts = values.iter().filter_map(|value| value.to_str().ok());
        texts.any(|text| text.split(',').any(|part| part.trim().eq_ignore_ascii_case(token)))
    };
    if !has(CONNECTION, "upgrade") || !has(UPGRADE, "websocket") {
        let mut response =
            answer::plain(StatusCode::UPGRADE_REQUIRED, "this is a WebSocket; connect with one\n");
        response.headers_mut().insert(UPGRADE, HeaderValue::from_static("websocket"));
        return Err(Box::new(response));
    }
    if !has(SEC_WEBSOCKET_VERSION, "13") {
        let mut response =
            answer::plain(StatusCode::UPGRADE_REQUIRED, "WebSocket version 13 is spoken here\n");
        response.headers_mut().insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return Err(Box::new(response));
    }
    let key = headers.get(SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes).unwrap_or_default();
    let wrong =
        || Box::new(answer::plain(StatusCode::BAD_REQUEST, "Sec-WebSocket-Key is missing or wrong\n"));
    if !STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == KEY_BYTES) {
        return Err(wrong());
    }
    HeaderValue::from_str(&derive_accept_key(key)).map_err(|_| wrong())
}

async fn begin(upgrade: OnUpgrade, visit: Visit) {
    match upgrade.await.map(Upgraded::downcast::<TokioIo<Watched<TcpStream>>>) {
        Ok(Ok(parts)) => enter(parts.io.into_inner().into_inner(), parts.read_buf, visit),
        Ok(Err(_)) => tracing::warn!("a WebSocket needs a TCP connection of its own"),
        Err(error) => tracing::debug!(%error, "an upgrade failed"),
    }
}

/// Lets a connection live, in a task that has no place for its beginning: most of the time most connections are silent.
fn enter(stream: TcpStream, lead: Bytes, visit: Visit) {
    let Visit { place, pump, who, link, wish } = visit;
    forget_waker(&stream);
    let socket = Socket::new(stream, place.gate.ground().now_ms());
    let ear = match wish.mode {
        Mode::All => Ear::All,
        Mode::Directed => Ear::Directed,
        Mode::DirectedAndProposals => Ear::DirectedAndProposals,
    };
    let since = wish.epoch.zip(wish.offset);
    let hearing = Hearing { ear, echo: wish.echo, since, socket: Arc::clone(&socket) };
    let caller = match place.gate.hearer(&pump, &who, link, hearing) {
        Ok(caller) => caller,
        Err(refusal) => {
            pump.record_kept_out(who.id.as_str(), &refusal);
            // A newer connection of the same participant may have been faster.
            let replaced = refusal.code == RefusalCode::Conflict;
            socket.close(if replaced { Close::Replaced } else { Close::Rejected });
            tokio::spawn(async move { socket.linger().await });
            return;
        }
    };
    pump.record_came(&caller);
    // Who comes while the gateway stops is told so like those who were there.
    if *place.stop.borrow() {
        pump.cut(caller.link(), Close::GoingAway);
    }
    let reader = Reader::new(lead, place.gate.limits().envelope_bytes_max);
    let mut connection = Connection { place, pump, caller, socket, reader, malformed: 0 };
    tokio::spawn(async move { connection.live().await });
}

/// A stream keeps the waker of the task that last waited for it, and with it the memory of that task, long ended.
fn forget_waker(stream: &TcpStream) {
    let mut nobody = Context::from_waker(Waker::noop());
    // Whether it is ready is asked again by whoever reads or writes.
    let _ = stream.poll_read_ready(&mut nobody);
    let _ = stream.poll_write_ready(&mut nobody);
}

/// One connection.
struct Connection {
    place: Arc<Place>,
    pump: Arc<Pump>,
    caller: Arc<Caller>,
    socket: Arc<Socket>,
    reader: Reader,
    /// Messages in a row that could not be read.
    malformed: u32,
}

impl Connection {
    async fn live(&mut self) {
        let socket = Arc::clone(&self.socket);
        let mut gone = Gone::Lost;
        tokio::select! {
            () = socket.closed() => {}
            how = self.read() => gone = how,
        }
        self.pump.leave(&self.caller);
        self.record_went(gone);
        // Boxed: it has its place only when it is needed.
        Box::pin(socket.linger()).await;
    }

    /// Records how it ended.
    fn record_went(&self, gone: Gone) {
        let (is_well, why) = match (self.socket.close_reason(), gone) {
            (Some(close), _) | (None, Gone::Cut(close)) => {
                (close.is_blameless(), Cow::Owned(format!("closed {}: {}", close.code(), close.reason())))
            }
            (None, Gone::Left) => (true, Cow::Borrowed("left")),
            (None, Gone::Lost) => (true, Cow::Borrowed("lost")),
            (None, Gone::Broke(code)) => {
                (false, Cow::Owned(format!("closed {code}: the protocol was broken")))
            }
        };
        self.pump.record_went(&self.caller, is_well, &why);
    }

    async fn read(&mut self) -> Gone {
        let mut said = 0;
        loop {
            match self.reader.next(self.socket.stream()) {
                Heard::Nothing => {
                    if poll_fn(|cx| self.socket.stream().poll_read_ready(cx)).await.is_err() {
                        self.socket.end(Bytes::new());
                        return Gone::Lost;
                    }
                    self.socket.record_activity(self.place.gate.ground().now_ms());
                }
                Heard::Text(text) => {
                    self.text(text);
                    said += 1;
                }
                Heard::Answer(frame) => self.pump.whisper_frame(self.caller.link(), frame),
                Heard::Wrong(why) => {
                    self.malformed += 1;
                    self.pump.tell_error(&self.caller, "malformed_envelope", why);
                }
                Heard::TooLong => {
                    let bytes_max = self.place.gate.limits().envelope_bytes_max;
                    let why = format!("a message has at most {bytes_max} bytes");
                    self.pump.tell_error(&self.caller, "message_too_large", &why);
                    return self.cut(Close::TooBig);
                }
                Heard::End(last, gone) => {
                    self.socket.end(last);
                    return gone;
                }
            }
            if self.malformed >= MALFORMED_IN_A_ROW_MAX {
                return self.cut(Close::Policy);
            }
            if said >= MESSAGES_AT_ONCE {
                said = 0;
                tokio::task::yield_now().await;
            }
            if self.pump.room().is_full() {
                Box::pin(self.pump.room().wait_for_space()).await;
            }
        }
    }

    /// The room says the last word, after everything that was said before.
    fn cut(&self, close: Close) -> Gone {
        self.pump.cut(self.caller.link(), close);
        Gone::Cut(close)
    }

    fn text(&mut self, text: Bytes) {
        match Envelope::read(text) {
            Ok(envelope) => {
                self.malformed = 0;
                self.pump.say(&self.caller, &envelope);
            }
            Err(breach) => {
                self.malformed += 1;
                self.pump.tell_breach(&self.caller, &breach);
            }
        }
    }
}
