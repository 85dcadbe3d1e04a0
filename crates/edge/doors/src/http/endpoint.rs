//! MCP endpoint over Streamable HTTP, both eras: content types, session and version headers,
//! resumption, status codes (MCP 2025-11-25 and 2026-07-28, "Transports").

use std::sync::Arc;
use std::time::Duration;

use auth::Participant;
use bytes::Bytes;
use config::Config;
use gateway::{Dispatch, Requester, Tag, handshake, manifests};
use http::header::{AsHeaderName, CONNECTION};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use model::{Refusal, Target};
use tokio::time::timeout;
use wire::mcp::header::{self, HeaderParam, Opening};
use wire::mcp::{Era, Params, Rejection, Version, refusal};
use wire::rpc::{self, Id, Message, MessageKind, code};

use super::authorization::{add_challenge, at_token_end};
use super::body::Body;
use super::connection::{Connection, Visit};
use super::elsewhere;
use super::events::{COMMENT, Events, parse_event_id};
use super::handover::Handover;
use super::head::{Head, HeaderField};
use super::relay::Relay;
use super::request::{accepts, accepts_answers, not_allowed, read_body};
use super::respond::{Sending, respond};
use super::response::{self, Answered};
use crate::listening::ListenReply;
use crate::nodes::PassedTo;
use crate::reply::{SinkReply, no_stream};
use crate::sessions::Session;
use crate::slot::{Opener, Slot};
use crate::{legacy, modern};

/// The longest wait until the end of a session is in the journal, and in force at all nodes.
const ENDED_WAIT: Duration = Duration::from_secs(2);
/// The home, once there is one.
const HOME: PassedTo = PassedTo::Home { waits: true };
const SSE: &str = "text/event-stream";
/// The code of an error about a session that is not known, as SDKs write it. The status says it
/// too.
const UNKNOWN_SESSION: i64 = -32001;
/// A value that agrees with nothing, in place of a header that has no one value that is a text.
const NO_VALUE: &str = "\u{fffd}";
static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Serves one request to the endpoint of a topic.
pub(crate) async fn serve(
    connection: &Connection,
    config: &Config,
    visit: &Visit,
    parts: &Parts,
    head: &Head<'_>,
    body: Incoming,
) -> Response<Body> {
    // Before 1.1 there are no chunks: the end of the connection is the end of the body. In 2 the
    // connection is not this stream's alone.
    let handover = if parts.version == http::Version::HTTP_11 {
        Some(&connection.handover)
    } else {
        None
    };
    let exchange = Exchange {
        connection,
        config,
        visit,
        head,
        parts,
        headers: &parts.headers,
        handover,
    };
    let answered = match parts.method {
        Method::POST => exchange.post(body).await,
        Method::GET => exchange.get().await,
        Method::DELETE => exchange.delete().await,
        ref other => Ok(not_allowed("POST, GET, DELETE", other)),
    };
    answered.unwrap_or_else(|refused| *refused)
}

/// A refusal before any message was read.
pub(crate) fn refused(refusal: &Refusal) -> Response<Body> {
    response::refusing(
        *rejected(&refusal::encode(refusal, Era::Modern, "", None), None),
        refusal,
    )
}

/// One HTTP request of a participant that may enter the topic.
struct Exchange<'e> {
    connection: &'e Connection,
    config: &'e Config,
    visit: &'e Visit,
    head: &'e Head<'e>,
    parts: &'e Parts,
    headers: &'e HeaderMap,
    handover: Option<&'e Arc<Handover>>,
}

impl Exchange<'_> {
    async fn post(&self, body: Incoming) -> Answered<Response<Body>> {
        if !self.head.is_json() {
            let why = "the body must be application/json";
            return Err(error(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                code::INVALID_REQUEST,
                why,
            ));
        }
        if !accepts_answers(self.headers) {
            let why = "Accept must list application/json and text/event-stream";
            return Err(error(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                why,
            ));
        }
        let body = read_body(self.config.limits.body_bytes_max, &self.visit.held, body).await?;
        if body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            return match &self.connection.relay {
                Some(relay) if relay.is_branch => Ok(self.passed(relay, HOME, body).await),
                Some(_) | None => self.batch(&body),
            };
        }
        let message = Message::read(body).map_err(|malformed| bad(malformed.answer()))?;
        let params = Params::read(&message);
        let opening = match &params {
            Ok(params) => header::classify(|name| self.header(name), params),
            Err(_) if self.head.version.text().is_some_and(Version::claims_modern) => {
                Opening::Modern
            }
            Err(_) => Opening::Legacy,
        };
        let params = params.map_err(|malformed| match opening {
            Opening::Modern => bad(malformed.answer()),
            // For a legacy client the HTTP exchange succeeded: only the message is wrong.
            Opening::LegacyInitialize | Opening::Legacy => {
                Box::new(response::json(StatusCode::OK, malformed.answer()))
            }
        })?;
        if let Some(relay) = &self.connection.relay
            && let Some(to) = self.elsewhere(relay, &params).await
        {
            return Ok(self.passed(relay, to, message.frame().clone()).await);
        }
        match opening {
            Opening::Modern => {
                let version = header::check(|name| self.header(name), &params);
                version.map_err(|error| rejected(&error, message.id()))?;
                self.modern(&params).await
            }
            Opening::LegacyInitialize => self.initialize(&message).await,
            Opening::Legacy => self.legacy(&params).await,
        }
    }

    /// The value of a header by any name.
    fn header(&self, name: &str) -> Option<&str> {
        match name {
            header::PROTOCOL_VERSION => self.head.version.text(),
            header::METHOD => self.head.method.ascii(),
            header::NAME => self.head.name.ascii(),
            name => self.value(name),
        }
    }

    /// The value of a header. It agrees with nothing in the body if the header is repeated, or no
    /// text.
    fn value(&self, name: impl AsHeaderName) -> Option<&str> {
        let mut values = self.headers.get_all(name).iter();
        let first = values.next()?;
        if values.next().is_some() {
            return Some(NO_VALUE);
        }
        Some(first.to_str().unwrap_or(NO_VALUE))
    }

    async fn modern(&self, params: &Params<'_>) -> Answered<Response<Body>> {
        let link = self.connection.modern(self.visit);
        let modern = link.map_err(|refusal| Box::new(refused(&refusal)))?;
        let dispatch = &modern.dispatch;
        let link = &modern.link;
        if params.message().shape() != MessageKind::Request {
            modern::take(dispatch, link, params);
            return Ok(response::empty(StatusCode::ACCEPTED));
        }
        let mut incoming =
            modern::request(params).map_err(|error| rejected(&error, params.message().id()))?;
        incoming.trace = self.head.trace(self.headers);
        let by = link.requester(self.caller()).at(self.connection.peer);
        // Before its headers are checked: which arguments they mirror stands in the tool's listing.
        if let Some(passed) = self
            .passed_unless_own(dispatch, by, &incoming, params)
            .await
        {
            return Ok(passed);
        }
        if params.method() == "tools/call"
            && let Some(Target::Tool(name)) = &incoming.request.target
        {
            let mirrored: Vec<HeaderParam> = manifests::mirrored_params(dispatch, link, name);
            header::check_params(|name| self.header(name), params, &mirrored)
                .map_err(|error| rejected(&error, params.message().id()))?;
        }
        let slot = Slot::new(Opener::Modern(modern.home.bounds.clone()));
        let sending = Sending {
            ids: false,
            prime: false,
            era: Era::Modern,
        };
        if params.method() == modern::LISTEN {
            let reply = Arc::new(ListenReply::new(slot));
            let call = dispatch.request(by, incoming, Arc::<ListenReply<Slot>>::clone(&reply));
            let of_call = Arc::clone(dispatch);
            let open = Arc::clone(&call);
            at_token_end(self.caller(), move || of_call.abandon(&open));
            let call = Some((Arc::clone(dispatch), call));
            return Ok(self.held(respond(self.connection, &reply.sink, call, sending).await));
        }
        let reply = Arc::new(SinkReply(slot));
        let call = dispatch.request(by, incoming, Arc::<SinkReply<Slot>>::clone(&reply));
        let call = Some((Arc::clone(dispatch), call));
        let mut response = respond(self.connection, &reply.0, call, sending).await;
        self.step_up(dispatch, &reply.0, &mut response);
        Ok(response)
    }

    async fn initialize(&self, message: &Message) -> Answered<Response<Body>> {
        if self.head.session != HeaderField::Missing {
            let body = rpc::error(
                message.id(),
                code::INVALID_REQUEST,
                "already initialized",
                None,
            );
            return Err(bad(body));
        }
        let Some(id) = message.id() else {
            return Ok(response::empty(StatusCode::ACCEPTED));
        };
        let client = legacy::initialize(message)
            .map_err(|body| Box::new(response::json(StatusCode::OK, body)))?;
        let visitor = &self.visit.visitor;
        let version = client.version;
        // Before it joins: from then on it is notified of each server that begins to list.
        visitor.dispatch.wait_for_servers_before(&client).await;
        let session_id = self.connection.links.open_session(visitor, client);
        let session_id = session_id.map_err(|refusal| Box::new(refused(&refusal)))?;
        let result = handshake::initialize(&visitor.dispatch, version);
        let mut response = response::json(StatusCode::OK, rpc::result(id, &result));
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::from(session_id)) {
            response.headers_mut().insert(SESSION_ID.clone(), value);
        }
        Ok(response)
    }

    async fn legacy(&self, params: &Params<'_>) -> Answered<Response<Body>> {
        let session = match (self.session(), self.branch()) {
            // The home says what is wrong with it.
            (Err(_), Some(relay)) => {
                let body = params.message().frame().clone();
                return Ok(self.passed(relay, HOME, body).await);
            }
            (session, _) => session?,
        };
        let dispatch = &session.joined.dispatch;
        let link = &session.joined.link;
        if params.message().shape() != MessageKind::Request {
            legacy::take(dispatch, link, params);
            return Ok(response::empty(StatusCode::ACCEPTED));
        }
        let incoming = legacy::request(params);
        let mut incoming =
            incoming.map_err(|answer| Box::new(response::json(StatusCode::OK, answer)))?;
        incoming.trace = self.head.trace(self.headers);
        let by = link.requester(self.caller()).at(self.connection.peer);
        if let Some(passed) = self
            .passed_unless_own(dispatch, by, &incoming, params)
            .await
        {
            return Ok(passed);
        }
        // The session was seen just now, with this request: that is the time of the stream.
        let opener = Opener::Session(
            Arc::clone(&session),
            session.joined.home.liveness.last_seen_ms(),
        );
        let reply = Arc::new(SinkReply(Slot::new(opener)));
        // A client that leaves does not cancel its request: it may fetch the answer later.
        dispatch.request(by, incoming, Arc::<SinkReply<Slot>>::clone(&reply));
        let prime = link.client.version >= Version::V2025_11_25;
        let sending = Sending {
            ids: true,
            prime,
            era: Era::Legacy,
        };
        let mut response = respond(self.connection, &reply.0, None, sending).await;
        self.step_up(dispatch, &reply.0, &mut response);
        Ok(response)
    }

    fn batch(&self, body: &Bytes) -> Answered<Response<Body>> {
        let session = self.session()?;
        let dispatch = &session.joined.dispatch;
        let link = &session.joined.link;
        if !link.client.version.batches() {
            let why = "batches exist only in sessions of 2025-03-26; send one message per POST";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        }
        let messages = rpc::read_batch(body, self.config.limits.batch_len_max);
        let messages = messages.map_err(|malformed| bad(malformed.answer()))?;
        let mut answers = 0_u32;
        for message in &messages {
            match message {
                Ok(message) if message.shape() != MessageKind::Request => {}
                // One that cannot be read is answered with its error.
                Ok(_) | Err(_) => answers = answers.saturating_add(1),
            }
        }
        if answers == 0 {
            for message in messages.iter().flatten() {
                if message.method() != "initialize"
                    && let Ok(params) = Params::read(message)
                {
                    legacy::take(dispatch, link, &params);
                }
            }
            return Ok(response::empty(StatusCode::ACCEPTED));
        }
        let out = session.open_stream(answers, session.joined.home.liveness.last_seen_ms());
        let Some(out) = out else {
            return Err(Box::new(refused(&no_stream())));
        };
        let Some(reader) = out.read(None) else {
            return Err(Box::new(refused(&no_stream())));
        };
        let by = link.requester(self.caller()).at(self.connection.peer);
        let trace = self.head.trace(self.headers);
        for message in messages {
            match message {
                Ok(message) if message.method() == "initialize" => {
                    let why = "initialize must not be part of a batch";
                    out.answer(rpc::error(message.id(), code::INVALID_REQUEST, why, None));
                }
                Ok(message) => legacy::receive(dispatch, by, &message, trace.as_deref(), &out),
                Err(malformed) => out.answer(malformed.answer()),
            }
        }
        Ok(response::events(Events::new(
            reader,
            true,
            None,
            &self.connection.links.keep_alive,
        )))
    }

    /// The ways to other nodes, if this one is not the home.
    fn branch(&self) -> Option<&Relay> {
        let relay = self.connection.relay.as_deref();
        relay.filter(|relay| relay.is_branch)
    }

    /// The node that a message is for, if that is known and it is another one.
    async fn elsewhere(&self, relay: &Relay, params: &Params<'_>) -> Option<PassedTo> {
        let own = elsewhere::slot(self.connection);
        match elsewhere::answer_slot(params) {
            Some(slot) if slot == own => None,
            // The home knows all others.
            Some(_) if relay.is_branch => Some(HOME),
            Some(slot) => Some(PassedTo::Slot(slot)),
            None if params.method() == legacy::CANCELLED => {
                Box::pin(self.cancelled_elsewhere(relay, params)).await
            }
            None => (relay.is_branch && !elsewhere::is_call(params)).then_some(HOME),
        }
    }

    /// The node that has a notification of a call which is not open here. The home passes it on to all,
    /// if it is of a session.
    async fn cancelled_elsewhere(&self, relay: &Relay, params: &Params<'_>) -> Option<PassedTo> {
        let links = &self.connection.links;
        let id = self.head.session_id();
        let session = id.and_then(|id| links.sessions.find(id, &self.caller().id, links.now_ms()));
        let tag = params.request_id().map(Tag::of_client);
        let is_open_here = session.as_ref().zip(tag).is_some_and(|(session, tag)| {
            let link = session.joined.link.id;
            let dispatch = &session.joined.dispatch;
            dispatch.with(|topic| topic.is_tagged(link, &tag))
        });
        if is_open_here {
            return None;
        }
        if relay.is_branch {
            return Some(HOME);
        }
        if session.is_some() {
            relay.to_all(self.parts, params.message().frame()).await;
        }
        None
    }

    /// The home's answer to a request that is not this node's own; `None` once it is to be made here:
    /// the servers that may have its target have started.
    async fn passed_unless_own(
        &self,
        dispatch: &Arc<Dispatch>,
        by: Requester<'_>,
        incoming: &gateway::Incoming,
        params: &Params<'_>,
    ) -> Option<Response<Body>> {
        let Some(relay) = self.branch() else {
            dispatch.wait_for_target(by, &incoming.request).await;
            return None;
        };
        // A branch knows the server of a call that is its own.
        if dispatch.is_plain(by, incoming) {
            return None;
        }
        let body = params.message().frame().clone();
        Some(self.passed(relay, HOME, body).await)
    }

    /// Passes the request on to another node, with this body.
    async fn passed(&self, relay: &Relay, to: PassedTo, body: Bytes) -> Response<Body> {
        // Its memory is on the heap: plain calls do not need it.
        Box::pin(relay.read_to(to, self.parts, body)).await
    }

    /// Its participant, with what its token adds.
    fn caller(&self) -> &Arc<Participant> {
        &self.visit.visitor.participant
    }

    /// Gives the response to a request that was refused because its token has too little scope the
    /// status and challenge by which a client gets one with more: "step-up authorization" (MCP
    /// 2025-11-25, "Authorization").
    fn step_up(&self, dispatch: &Dispatch, slot: &Slot, response: &mut Response<Body>) {
        let Some(refusal) = slot.lacking() else {
            return;
        };
        *response.status_mut() = StatusCode::FORBIDDEN;
        let endpoint = identity::issuers::endpoint(dispatch.name().as_str());
        add_challenge(self.config, &endpoint, true, refusal, response);
    }

    /// The session that the request names.
    fn session(&self) -> Answered<Arc<Session>> {
        if let Some(version) = self.head.version.text()
            && Version::parse(version).is_none_or(|version| version.era() == Era::Modern)
        {
            let why = "this MCP-Protocol-Version is not supported in a session";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        }
        let Some(id) = self.head.session.text() else {
            let why = "Mcp-Session-Id is missing; initialize first";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        };
        self.connection.session(self.visit, id).ok_or_else(|| {
            error(
                StatusCode::NOT_FOUND,
                UNKNOWN_SESSION,
                "no such session; initialize again",
            )
        })
    }

    async fn get(&self) -> Answered<Response<Body>> {
        if self.head.session == HeaderField::Missing {
            return Ok(not_allowed("POST", &Method::GET));
        }
        if !accepts(self.headers, SSE) {
            let why = "Accept must list text/event-stream";
            return Err(error(
                StatusCode::NOT_ACCEPTABLE,
                code::INVALID_REQUEST,
                why,
            ));
        }
        if let Some(relay) = &self.connection.relay
            && let Some(slot) = elsewhere::event_slot(self.parts)
            && slot != elsewhere::slot(self.connection)
        {
            // A branch has passed it on already, unless it is its own.
            return Ok(self.passed(relay, PassedTo::Slot(slot), Bytes::new()).await);
        }
        let session = self.session()?;
        let reader = match self.value(&LAST_EVENT_ID) {
            None => session.joined.home.stream().read(None),
            Some(id) => parse_event_id(id)
                .and_then(|(stream, number)| session.stream(stream)?.read(Some(number))),
        };
        let Some(reader) = reader else {
            let why = "this Last-Event-ID is not known any more; open the stream without it";
            return Err(error(StatusCode::BAD_REQUEST, code::INVALID_REQUEST, why));
        };
        // A stream ends with the token with which it was opened.
        let leave = reader.leaving();
        at_token_end(self.caller(), leave);
        let mut events = Events::new(reader, true, None, &self.connection.links.keep_alive);
        // Shows that the stream is open before there is an event.
        events.open_with(COMMENT);
        Ok(self.held(response::events(events)))
    }

    /// A stream that is open for long, mostly silent, need not keep everything that HTTP has for a
    /// connection.
    fn held(&self, response: Response<Body>) -> Response<Body> {
        let Some(handover) = self.handover else {
            return response;
        };
        let mut response = response.map(|body| body.held(handover));
        if matches!(response.body(), Body::Held(..)) {
            response
                .headers_mut()
                .insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn delete(&self) -> Answered<Response<Body>> {
        if self.head.session == HeaderField::Missing {
            return Ok(not_allowed("POST", &Method::DELETE));
        }
        let session = self.session()?;
        let written = self.connection.links.close_session(&session);
        // Without a journal, or a place in it, the sender was dropped. A node that does not answer keeps
        // no client that leaves.
        let _ = timeout(ENDED_WAIT, written).await;
        Ok(response::empty(StatusCode::NO_CONTENT))
    }
}

fn bad(body: Bytes) -> Box<Response<Body>> {
    Box::new(response::json(StatusCode::BAD_REQUEST, body))
}

fn error(status: StatusCode, code: i64, message: &str) -> Box<Response<Body>> {
    Box::new(response::json(
        status,
        rpc::error(None, code, message, None),
    ))
}

fn rejected(error: &Rejection, id: Option<&Id>) -> Box<Response<Body>> {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    Box::new(response::json(status, error.answer(id)))
}
