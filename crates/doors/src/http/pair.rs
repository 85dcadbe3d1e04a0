//! The two endpoints of 2024-11-05: `GET /sse` for everything that the client reads, `POST /messages` for what it sends.
//!
//! Off unless configured. A session lasts as long as its event stream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::Participant;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway::{Dispatch, Link};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::{Mutex, random};
use wire::rpc::{self, Message, Shape, code};

use super::body::Body;
use super::endpoint::refused;
use super::events::{Events, OnLeave};
use super::head::{Head, bearer};
use super::request::{not_allowed, read_body};
use super::response::{self, Answered};
use crate::legacy;
use crate::links::ClientLinks;
use crate::outlet::Visitor;
use crate::stream::{Lifetime, Stream};

/// Sessions of this transport open at once.
const PAIRS_MAX: usize = 1024;

/// One client: its participant, and the stream that it reads.
struct Pair {
    participant: ParticipantId,
    dispatch: Arc<Dispatch>,
    out: Arc<Stream>,
    /// Whether `initialize` was accepted, and its link joins or has joined.
    begun: AtomicBool,
    link: OnceLock<Arc<Link>>,
}

/// All clients of this transport.
#[derive(Default)]
pub(crate) struct Pairs(Mutex<HashMap<String, Arc<Pair>>>);

impl Pairs {
    fn find(&self, id: &str, participant: &ParticipantId) -> Option<Arc<Pair>> {
        let pairs = self.0.lock();
        pairs.get(id).filter(|pair| pair.participant == *participant).cloned()
    }

    /// Ends a session with its event stream.
    fn end(&self, id: &str) {
        let gone = self.0.lock().remove(id);
        if let Some((pair, link)) = gone.as_ref().and_then(|pair| Some((pair, pair.link.get()?))) {
            pair.dispatch.leave(link);
        }
    }

    /// Enters the link of a session. If the event stream has ended meanwhile, the link leaves.
    fn enter(&self, id: &str, pair: &Pair, link: Arc<Link>) {
        // It is set once, by the request that has begun.
        let link = pair.link.get_or_init(|| link);
        // After that, so that one of the two sees the other: `end` or this.
        if !self.0.lock().contains_key(id) {
            pair.dispatch.leave(link);
        }
    }
}

/// Serves one request to either endpoint.
pub(crate) async fn serve(
    links: &Arc<ClientLinks>,
    pairs: &Arc<Pairs>,
    request: Request<Incoming>,
) -> Response<Body> {
    let answered = match (request.uri().path(), request.method()) {
        ("/sse", &Method::GET) => open(links, pairs, &request),
        ("/messages", &Method::POST) => message(links, pairs, request).await,
        ("/sse", other) => Ok(not_allowed("GET", other)),
        (_, other) => Ok(not_allowed("POST", other)),
    };
    answered.unwrap_or_else(|refused| *refused)
}

fn open(
    links: &Arc<ClientLinks>,
    pairs: &Arc<Pairs>,
    request: &Request<Incoming>,
) -> Answered<Response<Body>> {
    let registry = &links.registry;
    let entered = registry.member(bearer(request.headers()), "main");
    let (dispatch, participant) = entered.map_err(|refusal| Box::new(refused(&refusal)))?;
    let id = URL_SAFE_NO_PAD.encode(random::<24>());
    let out = Stream::new(0, Lifetime::Reader, 0, &registry.bounds());
    let full =
        || Box::new(refused(&Refusal::new(RefusalCode::Overloaded, "too many event streams are open")));
    let reader = out.read(None).ok_or_else(full)?;
    {
        let mut open = pairs.0.lock();
        if open.len() >= PAIRS_MAX {
            return Err(full());
        }
        let participant = participant.id.clone();
        let (begun, link) = (AtomicBool::new(false), OnceLock::new());
        open.insert(id.clone(), Arc::new(Pair { participant, dispatch, out, begun, link }));
    }
    let endpoint = format!("/messages?sessionId={id}");
    let pairs = Arc::clone(pairs);
    let on_leave: OnLeave = Box::new(move |_| pairs.end(&id));
    let mut events = Events::new(reader, false, Some(on_leave));
    let event = wire::sse::Event {
        event: Some("endpoint"),
        data: endpoint.as_bytes(),
        ..wire::sse::Event::default()
    };
    events.open_with(event.encode());
    Ok(response::events(events))
}

async fn message(
    links: &Arc<ClientLinks>,
    pairs: &Arc<Pairs>,
    request: Request<Incoming>,
) -> Answered<Response<Body>> {
    let (parts, body) = request.into_parts();
    let head = Head::read(&parts.headers);
    let registry = &links.registry;
    let participant = registry.asker(head.bearer(), "for an open event stream");
    let participant = participant.map_err(|refusal| Box::new(refused(&refusal)))?;
    let query = parts.uri.query().unwrap_or_default();
    let id = query.split('&').find_map(|part| part.strip_prefix("sessionId=")).unwrap_or_default();
    let pair = pairs.find(id, &participant.id);
    let pair = pair.ok_or_else(|| {
        Box::new(response::plain(StatusCode::NOT_FOUND, "no such session; open /sse again\n"))
    })?;
    if !head.is_json() {
        return Err(Box::new(response::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json\n",
        )));
    }
    let body = read_body(registry.limits().body_bytes_max, &registry.held, body).await?;
    let message = Message::read(body);
    let message = message.map_err(|bad| Box::new(response::json(StatusCode::BAD_REQUEST, bad.answer())))?;
    match pair.link.get() {
        Some(link) => legacy::receive(&pair.dispatch, link, &message, &pair.out),
        None => begin(links, (pairs, id), &pair, &participant, &message).await,
    }
    Ok(response::plain(StatusCode::ACCEPTED, "Accepted"))
}

async fn begin(
    links: &ClientLinks,
    (pairs, id_of_pair): (&Pairs, &str),
    pair: &Pair,
    participant: &Arc<Participant>,
    message: &Message,
) {
    let (Shape::Request, Some(id)) = (message.shape(), message.id()) else { return };
    let Some(client) = legacy::first(message, &pair.out, "initialize first") else { return };
    if pair.begun.swap(true, Ordering::AcqRel) {
        let why = "already initialized";
        return pair.out.answer(rpc::error(Some(id), code::INVALID_REQUEST, why, None));
    }
    let (dispatch, participant) = (Arc::clone(&pair.dispatch), Arc::clone(participant));
    match legacy::join(links, &Visitor { dispatch, participant }, client, (id, &pair.out)).await {
        Some(link) => {
            pairs.enter(id_of_pair, pair, Arc::clone(&link));
            pair.out.answer(legacy::welcome(&pair.dispatch, &link, id));
        }
        None => pair.begun.store(false, Ordering::Release),
    }
}

#[cfg(test)]
mod tests {
    use access::config::Limits;
    use model::TopicName;

    use super::*;
    use crate::fixture::{registry, user};

    #[tokio::test]
    async fn a_link_that_joins_after_its_event_stream_has_ended_leaves() {
        let (registry, id) = (registry(Limits::default()), "a");
        let links = ClientLinks::start(Arc::clone(&registry));
        let dispatch = registry.topic(&TopicName::new("main").unwrap()).unwrap();
        let (user, out) = (user(&registry), Stream::new(0, Lifetime::Reader, 0, &registry.bounds()));
        let links_len = || dispatch.with(|topic| topic.links_len());
        let before = links_len();
        for has_ended in [true, false] {
            let (participant, begun, link) = (user.id.clone(), AtomicBool::new(true), OnceLock::new());
            let (dispatch, out) = (Arc::clone(&dispatch), Arc::clone(&out));
            let pair = Arc::new(Pair { participant, dispatch, out, begun, link });
            let pairs = Pairs(Mutex::new(HashMap::from([(id.to_owned(), Arc::clone(&pair))])));
            if has_ended {
                pairs.end(id);
            }
            let (dispatch, participant) = (Arc::clone(&pair.dispatch), Arc::clone(&user));
            let visitor = Visitor { dispatch, participant };
            let link = links.join_on(&pair.out, &visitor, gateway::plain_client()).unwrap();
            pairs.enter(id, &pair, link);
            assert_eq!(links_len(), before + usize::from(!has_ended));
        }
    }
}
