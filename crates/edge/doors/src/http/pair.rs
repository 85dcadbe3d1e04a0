//! The two endpoints of 2024-11-05: `GET /sse` for everything that the client reads,
//! `POST /messages` for what it sends.
//!
//! Off unless configured. A session lasts as long as its event stream.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use auth::{Participant, Wire};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use gateway::{Dispatch, Link};
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use model::{ParticipantId, Refusal, RefusalCode};
use platform::{Full, Mutex, SHARE_OF_POOL, Shares, Taken, random};
use wire::rpc::{self, Message, MessageKind, code};

use super::authorization::at_token_end;
use super::body::Body;
use super::connection::Connection;
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
pub const PAIRS_MAX: usize = 1024;
/// The share of one participant.
pub const PARTICIPANT_PAIRS_MAX: usize = PAIRS_MAX / SHARE_OF_POOL;

/// One client: its participant, and the stream that it reads.
struct Pair {
    participant: ParticipantId,
    dispatch: Arc<Dispatch>,
    out: Arc<Stream>,
    /// Whether `initialize` was accepted, and its link joins or has joined.
    begun: AtomicBool,
    link: OnceLock<Arc<Link>>,
    _place: Taken,
}

/// All clients of this transport.
pub(crate) struct Pairs {
    open: Mutex<HashMap<String, Arc<Pair>>>,
    places: Arc<Shares>,
}

impl Default for Pairs {
    fn default() -> Self {
        Self {
            open: Mutex::default(),
            places: Shares::new(PAIRS_MAX, PARTICIPANT_PAIRS_MAX),
        }
    }
}

impl Pairs {
    fn find(&self, id: &str, participant: &ParticipantId) -> Option<Arc<Pair>> {
        let pairs = self.open.lock();
        pairs
            .get(id)
            .filter(|pair| pair.participant == *participant)
            .cloned()
    }

    /// Ends a session with its event stream.
    fn end(&self, id: &str) {
        let gone = self.open.lock().remove(id);
        if let Some((pair, link)) = gone
            .as_ref()
            .and_then(|pair| Some((pair, pair.link.get()?)))
        {
            pair.dispatch.leave(link);
        }
    }

    /// Enters the link of a session. If the event stream has ended meanwhile, the link leaves.
    fn enter(&self, id: &str, pair: &Pair, link: Arc<Link>) {
        // It is set once, by the request that has begun.
        let link = pair.link.get_or_init(|| link);
        // After that, so that one of the two sees the other: `end` or this.
        if !self.open.lock().contains_key(id) {
            pair.dispatch.leave(link);
        }
    }
}

/// Serves one request to either endpoint.
pub(crate) async fn serve(
    connection: &Connection,
    pairs: &Arc<Pairs>,
    request: Request<Incoming>,
) -> Response<Body> {
    let answered = match (request.uri().path(), request.method()) {
        ("/sse", &Method::GET) => open(connection, pairs, &request),
        ("/messages", &Method::POST) => message(connection, pairs, request).await,
        ("/sse", other) => Ok(not_allowed("GET", other)),
        (_, other) => Ok(not_allowed("POST", other)),
    };
    answered.unwrap_or_else(|refused| *refused)
}

fn open(
    connection: &Connection,
    pairs: &Arc<Pairs>,
    request: &Request<Incoming>,
) -> Answered<Response<Body>> {
    let links = &connection.links;
    let registry = &links.registry;
    let presented = connection.presented(bearer(request.headers()));
    let entered = registry.member(presented, "main", Some(Wire::Mcp));
    let (dispatch, participant) = entered.map_err(|refusal| Box::new(refused(&refusal)))?;
    let id = URL_SAFE_NO_PAD.encode(random::<24>());
    let out = Stream::new(0, Lifetime::Reader, 0, &registry.bounds(&participant.id));
    let full = |full: Full| {
        let why = match full {
            Full::Share => "you have too many event streams open",
            Full::Pool => "too many event streams are open",
        };
        Box::new(refused(&Refusal::new(RefusalCode::Overloaded, why)))
    };
    let reader = out.read(None).ok_or_else(|| full(Full::Pool))?;
    let place = pairs
        .places
        .of(participant.id.account())
        .take(1)
        .map_err(full)?;
    let entered = Arc::clone(&participant);
    let participant = participant.id.clone();
    let begun = AtomicBool::new(false);
    let link = OnceLock::new();
    let pair = Arc::new(Pair {
        participant,
        dispatch,
        out,
        begun,
        link,
        _place: place,
    });
    pairs.open.lock().insert(id.clone(), pair);
    let endpoint = format!("/messages?sessionId={id}");
    at_token_end(&entered, reader.leaving());
    let pairs = Arc::clone(pairs);
    let on_leave: OnLeave = Box::new(move |_| pairs.end(&id));
    let mut events = Events::new(reader, false, Some(on_leave), &links.keep_alive);
    let event = wire::sse::Event {
        event: Some("endpoint"),
        data: endpoint.as_bytes(),
        ..wire::sse::Event::default()
    };
    events.open_with(event.encode());
    Ok(response::events(events))
}

async fn message(
    connection: &Connection,
    pairs: &Arc<Pairs>,
    request: Request<Incoming>,
) -> Answered<Response<Body>> {
    let (parts, body) = request.into_parts();
    let head = Head::read(&parts.headers);
    let links = &connection.links;
    let registry = &links.registry;
    let participant = registry.asker(
        connection.presented(head.bearer()),
        "for an open event stream",
    );
    let participant = participant.map_err(|refusal| Box::new(refused(&refusal)))?;
    let query = parts.uri.query().unwrap_or_default();
    let id = query
        .split('&')
        .find_map(|part| part.strip_prefix("sessionId="))
        .unwrap_or_default();
    let pair = pairs.find(id, &participant.id);
    let pair = pair.ok_or_else(|| {
        Box::new(response::plain(
            StatusCode::NOT_FOUND,
            "no such session; open /sse again\n",
        ))
    })?;
    if !head.is_json() {
        return Err(Box::new(response::plain(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "the body must be application/json\n",
        )));
    }
    let body = read_body(
        registry.limits().body_bytes_max,
        &registry.held_of(&participant.id),
        body,
    )
    .await?;
    let message = Message::read(body);
    let message =
        message.map_err(|bad| Box::new(response::json(StatusCode::BAD_REQUEST, bad.answer())))?;
    match pair.link.get() {
        Some(link) => {
            let by = link.requester(&participant).at(connection.peer);
            let trace = head.trace(&parts.headers);
            legacy::receive(&pair.dispatch, by, &message, trace.as_deref(), &pair.out);
        }
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
    let (MessageKind::Request, Some(id)) = (message.shape(), message.id()) else {
        return;
    };
    let Some(client) = legacy::first(message, &pair.out, "initialize first") else {
        return;
    };
    // Of two requests that come at once, one begins.
    if pair.begun.swap(true, Ordering::AcqRel) {
        let why = "already initialized";
        return pair
            .out
            .answer(rpc::error(Some(id), code::INVALID_REQUEST, why, None));
    }
    let visitor = Visitor {
        dispatch: Arc::clone(&pair.dispatch),
        participant: Arc::clone(participant),
    };
    match legacy::join(links, &visitor, client, id, &pair.out).await {
        Some(link) => {
            pairs.enter(id_of_pair, pair, Arc::clone(&link));
            pair.out.answer(legacy::welcome(&pair.dispatch, &link, id));
        }
        // The client may try again.
        None => pair.begun.store(false, Ordering::Release),
    }
}

#[cfg(test)]
mod tests {
    use config::GatewayLimits;
    use model::TopicName;

    use super::*;
    use crate::fixture::{registry, user};

    #[tokio::test]
    async fn a_link_that_joins_after_its_event_stream_has_ended_leaves() {
        let registry = registry(GatewayLimits::default());
        let id = "a";
        let links = ClientLinks::start(Arc::clone(&registry)).unwrap();
        let dispatch = registry.topic(&TopicName::new("main").unwrap()).unwrap();
        let user = user(&registry);
        let out = Stream::new(0, Lifetime::Reader, 0, &registry.bounds(&user.id));
        let links_len = || dispatch.with(|topic| topic.links_len());
        let before = links_len();
        for has_ended in [true, false] {
            let participant = user.id.clone();
            let begun = AtomicBool::new(true);
            let link = OnceLock::new();
            let dispatch = Arc::clone(&dispatch);
            let out = Arc::clone(&out);
            let pairs = Pairs::default();
            let place = pairs.places.of("user").take(1).unwrap();
            let pair = Arc::new(Pair {
                participant,
                dispatch,
                out,
                begun,
                link,
                _place: place,
            });
            pairs.open.lock().insert(id.to_owned(), Arc::clone(&pair));
            if has_ended {
                pairs.end(id);
            }
            let dispatch = Arc::clone(&pair.dispatch);
            let participant = Arc::clone(&user);
            let visitor = Visitor {
                dispatch,
                participant,
            };
            let link = links
                .join_on(&pair.out, &visitor, gateway::plain_client())
                .unwrap();
            pairs.enter(id, &pair, link);
            assert_eq!(links_len(), before + usize::from(!has_ended));
        }
    }
}
