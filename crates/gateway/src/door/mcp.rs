//! The MCP endpoint over Streamable HTTP, both eras.
//!
//! Owns what HTTP adds: content types, session and version headers, JSON or SSE by the first thing there is to send,
//! resumption, status codes (MCP 2025-11-25 and 2026-07-28, "Transports"). What messages mean is not known here.

use std::sync::Arc;
use std::time::Duration;

use auth::Participant;
use bytes::Bytes;
use http::header::{AsHeaderName, CONNECTION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use model::{Era, Refusal, RefusalCode};
use wire::mcp::header::{self, Opening};
use wire::mcp::{Params, Version, refusal};
use wire::rpc::{self, Message, Shape, code};

use super::answer::{self, Answer};
use super::body::Body;
use super::events::{Events, event_id, parse_event_id};
use super::head::{Field, Head};
use super::held::Handover;
use super::request::{accepts, accepts_answers, not_allowed, read_body};
use super::ws::Place;
use crate::caller::Open;
use crate::gate::Gate;
use crate::pump::Pump;
use crate::sessions::Session;
use crate::stream::{Item, Lifetime, Reader, Stream};
use crate::{greeting, legacy, modern};

/// An answer that takes longer than this goes out as an event stream, so that nothing between us and the client gives up.
pub const QUIET_SECS: u64 = 15;
const SSE: &str = "text/event-stream";
static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Serves one request to the endpoint of a topic.
pub async fn serve(
    gate: &Arc<Gate>,
    topic: &str,
    place: &Place,
    parts: &Parts,
    head: &Head<'_>,
    body: Incoming,
) -> Response<Body> {
    let session = match head.session {
        Field::Text(id) => Some(id),
        Field::Missing | Field::Unclear => None,
    };
    let entered = gate.visitor(head.bearer(), topic, session, &place.guests);
    let (pump, who) = match entered {
        Ok(entered) => entered,
        Err(refusal) => return refused(&refusal),
    };
    // Before 1.1 there are no chunks: the end of the connection is the end of the body.
    let handover = Some(&place.handover).filter(|_| parts.version == http::Version::HTTP_11);
    let visit = Visit { gate, pump: &pump, who: &who, head, headers: &parts.headers, handover };
    let answered = match parts.method {
        Method::POST => visit.post(body).await,
        Method::GET => visit.get(),
        Method::DELETE => visit.delete(),
        ref other => Ok(not_allowed("POST, GET, DELETE", other)),
    };
    answered.unwrap_or_else(|refused| *refused)
}

/// A refusal before any message was read.
pub fn refused(refusal: &Refusal) -> Response<Body> {
    let spelled = refusal::spell(refusal, Era::Modern, "", None);
    let status = StatusCode::from_u16(spelled.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = answer::json(status, spelled.answer(None));
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// One HTTP request of somebody who may enter.
struct Visit<'v> {
    gate: &'v Arc<Gate>,
    pump: &'v Arc<Pump>,
    who: &'v Arc<Participant>,
    head: &'v Head<'v>,
    headers: &'v HeaderMap,
    handover: Option<&'v Arc<Handover>>,
}

impl Visit<'_> {
    async fn post(&self, body: Incoming) -> Answer<Response<Body>> {
        if !self.head.is_json() {
            let why = "the body must be application/json";
            return Err(error(StatusCode::UNSUPPORTED_MEDIA_TYPE, code::INVALID_REQUEST, why));
        }
        if !accepts_answers(self.headers) {
            let why = "Accept must list application/json and text/event-stream";
            return Err(error(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, why));
        }
        let body = read_body(self.gate, body).await?;
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return self.batch(&body).await;
        }
        let message = Message::read(body).map_err(|malformed| bad(malformed.answer()))?;
        let params = Params::read(&message);
        let opening = match &params {
            Ok(params) => header::classify(|name| self.header(name), params),
            Err(_) if self.head.version.text().is_some_and(Version::claims_modern) => Opening::Modern,
            Err(_) => Opening::Legacy,
        };
        let params = params.map_err(|malformed| match opening {
            Opening::Modern => bad(malformed.answer()),
            // To a legacy client the HTTP exchange went well: only the message is wrong.
            Opening::LegacyInitialize | Opening::Legacy => {
                Box::new(answer::json(StatusCode::OK, malformed.answer()))
            }
        })?;
        match opening {
            Opening::Modern => {
                let version = header::check(|name| self.header(name), &params);
                version.map_err(|error| header_error(&error, &message))?;
                self.modern(&params, &message).await
            }
            Opening::LegacyInitialize => self.initialize(&message).await,
            Opening::Legacy => self.legacy(&params).await,
        }
    }

    /// The value of a header by any name.
    fn header(&self, name: &str) -> Option<&str> {
        match name {
            header::PROTOCOL_VERSION => self.head.version.text(),
            name => self.value(name),
        }
    }

    /// The value of a header, if it is text.
    fn value(&self, name: impl AsHeaderName) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?.to_str().unwrap_or("\u{fffd}");
        // A repeated header has no one value that could agree with the body.
        Some(if values.next().is_some() { "\u{fffd}" } else { first })
    }

    async fn modern(&self, params: &Params<'_>, message: &Message) -> Answer<Response<Body>> {
        let caller = self.gate.modern(self.pump, self.who).map_err(|refusal| Box::new(refused(&refusal)))?;
        self.pump.wait_for_target(&caller, params).await;
        let mirrored = modern::mirrored(self.pump, &caller, params);
        header::check_params(|name| self.header(name), params, &mirrored)
            .map_err(|error| header_error(&error, message))?;
        let hello = modern::hello(params);
        let answers = u32::from(message.shape() == Shape::Request);
        let out = Stream::new(0, Lifetime::Reader, answers, caller.bounds());
        let reader = out.read(None);
        let open = modern::receive(self.pump, &caller, params, hello, &out);
        if answers == 0 {
            return Ok(answer::empty(StatusCode::ACCEPTED));
        }
        let Some(reader) = reader else { return Ok(answer::empty(StatusCode::ACCEPTED)) };
        let response = respond(reader, open, Sending { ids: false, prime: false, modern: true }).await;
        Ok(if message.method() == "subscriptions/listen" { self.held(response) } else { response })
    }

    async fn initialize(&self, message: &Message) -> Answer<Response<Body>> {
        if self.head.session != Field::Missing {
            let body = rpc::error(message.id(), code::INVALID_REQUEST, "already initialized", None);
            return Err(bad(body));
        }
        let Some(id) = message.id() else { return Ok(answer::empty(StatusCode::ACCEPTED)) };
        let welcome =
            legacy::welcome(message).map_err(|body| Box::new(answer::json(StatusCode::OK, body)))?;
        // What is listed by then is no change to the one who comes.
        self.pump.wait_for_servers().await;
        let session = self.gate.open_session(self.pump, self.who, welcome.hello);
        let session_id = session.map_err(|refusal| Box::new(refused(&refusal)))?;
        let result = greeting::initialize(self.pump, welcome.version);
        let mut response = answer::json(StatusCode::OK, rpc::result(id, &result));
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(session_id)) {
            response.headers_mut().insert(SESSION_ID.clone(), value);
        }
        Ok(response)
    }

    async fn legacy(&self, params: &Params<'_>) -> Answer<Response<Body>> {
        let session = self.session()?;
        if params.message().shape() != Shape::Request {
            // Nothing is answered to these: a stream without answers takes nothing.
            let out = Stream::new(0, Lifetime::Reader, 0, session.caller().bounds());
            legacy::receive(self.pump, session.caller(), params, &out);
            return Ok(answer::empty(StatusCode::ACCEPTED));
        }
        self.pump.wait_for_target(session.caller(), params).await;
        let (out, reader) = self.open_stream(&session, 1)?;
        legacy::receive(self.pump, session.caller(), params, &out);
        Ok(self.respond_in(&session, &out, reader).await)
    }

    async fn batch(&self, body: &Bytes) -> Answer<Response<Body>> {
        let session = self.session()?;
        if !session.caller().hello().version.batches() {
            let why = "batches exist only in sessions of 2025-03-26; send one message per POST";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        }
        let messages = rpc::read_batch(body, self.gate.limits().batch_len_max);
        let messages = messages.map_err(|malformed| bad(malformed.answer()))?;
        let is_answered =
            |message: &Result<Message, _>| message.as_ref().map_or(true, |m| m.shape() == Shape::Request);
        let answers =
            u32::try_from(messages.iter().filter(|message| is_answered(message)).count()).unwrap_or(u32::MAX);
        let (out, reader) = self.open_stream(&session, answers.max(1))?;
        for message in messages {
            match message {
                Ok(message) if message.method() == "initialize" => {
                    let why = "initialize must not be part of a batch";
                    out.answer(rpc::error(message.id(), code::INVALID_REQUEST, why, None));
                }
                Ok(message) => legacy::read(self.pump, session.caller(), &message, &out),
                Err(malformed) => out.answer(malformed.answer()),
            }
        }
        if answers == 0 {
            session.close_stream(out.id());
            return Ok(answer::empty(StatusCode::ACCEPTED));
        }
        Ok(answer::events(Events::new(reader, true, None)))
    }

    fn open_stream(&self, session: &Arc<Session>, answers: u32) -> Answer<(Arc<Stream>, Reader)> {
        let out = session.open_stream(answers, self.gate.ground().now_ms());
        let reader = out.as_ref().and_then(|out| out.read(None));
        out.zip(reader).ok_or_else(|| {
            Box::new(refused(&Refusal::new(
                RefusalCode::Overloaded,
                "too many requests are open in this session",
            )))
        })
    }

    async fn respond_in(&self, session: &Arc<Session>, out: &Arc<Stream>, reader: Reader) -> Response<Body> {
        let prime = session.caller().hello().version >= Version::V2025_11_25;
        let response = respond(reader, None, Sending { ids: true, prime, modern: false }).await;
        if matches!(response.body(), Body::Full(_)) {
            session.close_stream(out.id());
        }
        response
    }

    /// The session that the request names.
    fn session(&self) -> Answer<Arc<Session>> {
        let bad_request = |why: &str| error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why);
        let modern =
            |version: &str| Version::parse(version).is_none_or(|version| version.era() == Era::Modern);
        if self.head.version.text().is_some_and(modern) {
            return Err(bad_request("this MCP-Protocol-Version is not supported in a session"));
        }
        let id = self
            .head
            .session
            .text()
            .ok_or_else(|| bad_request("Mcp-Session-Id is missing; initialize first"))?;
        self.gate
            .find_session(self.pump, self.who, id)
            .ok_or_else(|| error(StatusCode::NOT_FOUND, UNKNOWN_SESSION, "no such session; initialize again"))
    }

    fn get(&self) -> Answer<Response<Body>> {
        if self.head.session == Field::Missing {
            return Ok(not_allowed("POST", &Method::GET));
        }
        if !accepts(self.headers, SSE) {
            let why = "Accept must list text/event-stream";
            return Err(error(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, why));
        }
        let session = self.session()?;
        let reader = match self.value(&LAST_EVENT_ID) {
            None => session.caller().home_or_open().read(None),
            Some(id) => {
                parse_event_id(id).and_then(|(stream, number)| session.stream(stream)?.read(Some(number)))
            }
        };
        let Some(reader) = reader else {
            let why = "this Last-Event-ID is not known any more; open the stream without it";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        };
        let mut events = Events::new(reader, true, None);
        // Says that the stream is open before there is anything to say on it.
        events.open_with(Bytes::from_static(b": \n\n"));
        Ok(self.held(answer::events(events)))
    }

    /// What is held open for long, mostly silent, need not keep all that HTTP has for a connection.
    fn held(&self, response: Response<Body>) -> Response<Body> {
        let Some(handover) = self.handover else { return response };
        let mut response = response.map(|body| body.held(handover));
        if matches!(response.body(), Body::Held(..)) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    fn delete(&self) -> Answer<Response<Body>> {
        if self.head.session == Field::Missing {
            return Ok(not_allowed("POST", &Method::DELETE));
        }
        let session = self.session()?;
        self.gate.close_session(&session);
        Ok(answer::empty(StatusCode::NO_CONTENT))
    }
}

/// The code that SDKs use for it; the status says it already.
const UNKNOWN_SESSION: i64 = -32001;

/// How a stream is written.
struct Sending {
    ids: bool,
    /// Begin with an event that has an id and no data, so that the client can resume from the start (2025-11-25).
    prime: bool,
    modern: bool,
}

/// JSON if the answer is the first thing there is to send, else an event stream.
async fn respond(mut reader: Reader, open: Option<Arc<dyn Open>>, sending: Sending) -> Response<Body> {
    let mut guard = Leaving(open);
    // What was answered on the spot needs no clock.
    let first = match reader.try_next() {
        Some(item) => Ok(Some(item)),
        None => tokio::time::timeout(Duration::from_secs(QUIET_SECS), reader.next()).await,
    };
    let open = guard.0.take();
    match first {
        Ok(Some(Item { frame, last: true, error, .. })) => {
            let status =
                error.filter(|_| sending.modern).map_or(200, |code| refusal::status(code, Era::Modern));
            answer::json(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), frame)
        }
        Ok(None) => answer::empty(StatusCode::ACCEPTED),
        Ok(Some(item)) => {
            let mut events = begin(reader, open, &sending);
            events.begin_with(&item);
            answer::events(events)
        }
        Err(_) => {
            let mut events = begin(reader, open, &sending);
            events.open_with(Bytes::from_static(b": \n\n"));
            answer::events(events)
        }
    }
}

fn begin(reader: Reader, open: Option<Arc<dyn Open>>, sending: &Sending) -> Events {
    let id = event_id(reader.stream().id(), 0);
    let mut events = Events::new(reader, sending.ids, open);
    if sending.prime {
        events
            .open_with(wire::sse::Event { id: Some(&id), data: b"", ..wire::sse::Event::default() }.encode());
    }
    events
}

/// Cancels what was asked if the client leaves before there was anything to send.
struct Leaving(Option<Arc<dyn Open>>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some(open) = self.0.take() {
            open.cancel();
        }
    }
}

fn bad(body: Bytes) -> Box<Response<Body>> {
    Box::new(answer::json(StatusCode::BAD_REQUEST, body))
}

fn error(status: StatusCode, code: i64, message: &str) -> Box<Response<Body>> {
    Box::new(answer::json(status, rpc::error(None, code, message, None)))
}

fn header_error(error: &header::HeaderError, message: &Message) -> Box<Response<Body>> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    Box::new(answer::json(status, error.answer(message.id())))
}
