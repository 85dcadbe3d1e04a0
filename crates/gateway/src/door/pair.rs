//! The two endpoints of 2024-11-05: `GET /sse` for all that is said, `POST /messages` for all that is heard.
//!
//! Off unless configured. One session lives as long as its event stream. Must not know what messages mean.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use model::{Refusal, RefusalCode};
use platform::{Mutex, random};
use wire::rpc::{self, Message, Shape, code};

use super::answer::{self, Answer};
use super::body::Body;
use super::events::Events;
use super::head::{Head, bearer};
use super::mcp::refused;
use super::request::{not_allowed, read_body};
use crate::caller::{Caller, Open};
use crate::gate::Gate;
use crate::pump::Pump;
use crate::stream::{Lifetime, Stream};
use crate::{greeting, legacy};

/// Sessions of this transport open at once.
pub const PAIRS_MAX: usize = 1024;

/// One client: who it is, and the stream that it reads.
struct Pair {
    participant: String,
    pump: Arc<Pump>,
    out: Arc<Stream>,
    caller: OnceLock<Arc<Caller>>,
}

/// All clients of this transport.
#[derive(Default)]
pub struct Pairs(Mutex<HashMap<String, Arc<Pair>>>);

impl Pairs {
    fn find(&self, id: &str, participant: &str) -> Option<Arc<Pair>> {
        let pairs = self.0.lock();
        pairs.get(id).filter(|pair| pair.participant == participant).cloned()
    }
}

/// Ends the session with its event stream.
struct Ending {
    gate: Arc<Gate>,
    pairs: Arc<Pairs>,
    id: String,
}

impl Open for Ending {
    fn cancel(&self) {
        let gone = self.pairs.0.lock().remove(&self.id);
        if let Some(caller) = gone.as_ref().and_then(|pair| pair.caller.get()) {
            self.gate.leave(caller);
        }
    }

    fn refuse(&self, _refusal: &Refusal) {
        self.cancel();
    }

    fn take_back(&self) {}
}

/// Serves one request to either endpoint.
pub async fn serve(gate: &Arc<Gate>, pairs: &Arc<Pairs>, request: Request<Incoming>) -> Response<Body> {
    let answered = match (request.uri().path(), request.method()) {
        ("/sse", &Method::GET) => open(gate, pairs, &request),
        ("/messages", &Method::POST) => message(gate, pairs, request).await,
        ("/sse", other) => Ok(not_allowed("GET", other)),
        (_, other) => Ok(not_allowed("POST", other)),
    };
    answered.unwrap_or_else(|refused| *refused)
}

fn open(gate: &Arc<Gate>, pairs: &Arc<Pairs>, request: &Request<Incoming>) -> Answer<Response<Body>> {
    let entered = gate.member(bearer(request.headers()), "main");
    let (pump, who) = entered.map_err(|refusal| Box::new(refused(&refusal)))?;
    let id = URL_SAFE_NO_PAD.encode(random::<24>());
    let out = Stream::new(0, Lifetime::Reader, 0, &gate.bounds());
    let full =
        || Box::new(refused(&Refusal::new(RefusalCode::Overloaded, "too many event streams are open")));
    let reader = out.read(None).ok_or_else(full)?;
    let participant = who.id.to_string();
    {
        let mut open = pairs.0.lock();
        if open.len() >= PAIRS_MAX {
            return Err(full());
        }
        open.insert(id.clone(), Arc::new(Pair { participant, pump, out, caller: OnceLock::new() }));
    }
    let endpoint = format!("/messages?sessionId={id}");
    let ending = Arc::new(Ending { gate: Arc::clone(gate), pairs: Arc::clone(pairs), id });
    let mut events = Events::new(reader, false, Some(ending));
    let event = wire::sse::Event {
        event: Some("endpoint"),
        data: endpoint.as_bytes(),
        ..wire::sse::Event::default()
    };
    events.open_with(event.encode());
    Ok(answer::events(events))
}

async fn message(gate: &Arc<Gate>, pairs: &Arc<Pairs>, request: Request<Incoming>) -> Answer<Response<Body>> {
    let (head, body) = request.into_parts();
    let said = Head::read(&head.headers);
    let who = gate.asker(said.bearer(), "for an open event stream");
    let who = who.map_err(|refusal| Box::new(refused(&refusal)))?;
    let query = head.uri.query().unwrap_or_default();
    let id = query.split('&').find_map(|part| part.strip_prefix("sessionId=")).unwrap_or_default();
    let pair = pairs.find(id, who.id.as_str());
    let pair = pair.ok_or_else(|| {
        Box::new(answer::plain(StatusCode::NOT_FOUND, "no such session; open /sse again\n"))
    })?;
    if !said.is_json() {
        return Err(Box::new(answer::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json\n",
        )));
    }
    let body = read_body(gate, body).await?;
    let message = Message::read(body);
    let message = message.map_err(|bad| Box::new(answer::json(StatusCode::BAD_REQUEST, bad.answer())))?;
    match pair.caller.get() {
        Some(caller) => legacy::read(&pair.pump, caller, &message, &pair.out),
        None => begin(gate, &pair, &who, &message).await,
    }
    Ok(answer::plain(StatusCode::ACCEPTED, "Accepted"))
}

async fn begin(gate: &Arc<Gate>, pair: &Pair, who: &Arc<auth::Participant>, message: &Message) {
    let (Shape::Request, Some(id)) = (message.shape(), message.id()) else { return };
    match message.method() {
        "ping" => return pair.out.answer(rpc::result(id, b"{}")),
        "initialize" => {}
        _ => return pair.out.answer(rpc::error(Some(id), code::INVALID_REQUEST, "initialize first", None)),
    }
    let welcome = match legacy::welcome(message) {
        Ok(welcome) => welcome,
        Err(error) => return pair.out.answer(error),
    };
    pair.pump.wait_for_servers().await;
    match gate.legacy(&pair.pump, who, welcome.hello, Some(Arc::clone(&pair.out))) {
        Ok(caller) => {
            if let Err(second) = pair.caller.set(caller) {
                gate.leave(&second);
                return pair.out.answer(rpc::error(
                    Some(id),
                    code::INVALID_REQUEST,
                    "already initialized",
                    None,
                ));
            }
            pair.out.answer(rpc::result(id, &greeting::initialize(&pair.pump, welcome.version)));
        }
        Err(refusal) => pair
            .out
            .answer(wire::mcp::refusal::spell(&refusal, model::Era::Legacy, "", None).answer(Some(id))),
    }
}
