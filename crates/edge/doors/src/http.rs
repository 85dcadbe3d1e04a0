//! HTTP listener: connections, limits, and the endpoint of each request.

mod arrived;
mod authorization;
mod body;
mod connection;
mod cors;
mod elsewhere;
mod endpoint;
mod events;
mod framed;
mod grpc;
mod h2;
mod handover;
mod head;
mod metered;
mod opening;
mod origin;
mod pages;
mod pair;
mod paths;
mod places;
mod problem;
mod progress;
mod proto;
mod relay;
mod request;
mod respond;
mod response;
mod secure;
mod timer;
mod unfinished;
mod ws;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use auth::{Peer, PublicUrl, Wire};
use axum::Router;
use bytes::Bytes;
use config::Config;
use futures_util::FutureExt as _;
use http::header::ORIGIN;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use model::{Refusal, TopicName};
use tls::ServerTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

use crate::links::ClientLinks;
use crate::nodes::{OtherNodes, PassedEnds};
pub(crate) use arrived::SocketEnds;
use arrived::{Arrived, ConveyedWire};
use body::Body;
use connection::Connection;
pub(crate) use connection::ConnectionEnds;
use cors::Page;
use handover::{HeldEvents, Watched};
use head::{Head, HeaderField};
use origin::{Foreign, Hosts, OtherPage};
use pair::Pairs;
use paths::topic_of;
use places::{Place, Places, Standing};
#[cfg(test)]
pub(crate) use progress::WRITE_STALLED_MAX;
use relay::Relay;
use request::after_body;
use timer::{Alarm, Deadline, HeadTimer};

/// Seconds a client may take to send its headers.
const HEADER_READ_SECS: u64 = 30;
/// The smallest buffer with which hyper reads heads, in bytes.
const HEAD_BUFFER_BYTES_MIN: usize = 8192;
/// Connections that may wait until they are accepted: a whole topic may come back at once.
const BACKLOG_LEN_MAX: u32 = 4096;
/// Seconds that open connections have to finish when the gateway closes them.
const DRAIN_SECS: u64 = 3;

/// Parts of the gateway that all connections share.
pub(crate) struct Endpoints {
    links: Arc<ClientLinks>,
    pairs: Arc<Pairs>,
    pages: Router,
    /// Places of connections, those that other nodes convey too.
    places: Arc<Places>,
    /// The other nodes of the cluster, if this is one.
    nodes: Option<Arc<dyn OtherNodes>>,
}

impl Endpoints {
    /// The endpoints of a gateway, with these pages beside MCP.
    pub(crate) fn new(
        links: Arc<ClientLinks>,
        pages: Router,
        nodes: Option<Arc<dyn OtherNodes>>,
    ) -> Arc<Self> {
        let limits = links.registry.limits();
        let places = Places::new(limits.connections_max, limits.participant_connections_max);
        Arc::new(Self {
            links,
            pairs: Arc::default(),
            pages,
            places,
            nodes,
        })
    }

    /// The ways of a client's connection to other nodes.
    fn relay(&self, ends: SocketEnds) -> Option<Arc<Relay>> {
        let nodes = self.nodes.as_ref()?;
        let passed = PassedEnds {
            client: ends.peer,
            at: ends.at,
        };
        let is_branch = self.links.registry.is_branch();
        Some(Arc::new(Relay::new(nodes, passed, is_branch)))
    }
}

/// Listens on an address.
///
/// # Errors
/// Errors of the socket.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    // On Windows the option lets another process take the address.
    socket.set_reuseaddr(cfg!(unix))?;
    socket.bind(address)?;
    socket.listen(BACKLOG_LEN_MAX)
}

/// Serves `listener` until `stop` is true, then lets open requests finish until `closing` is, and
/// for a bounded time after that.
pub(crate) async fn serve(
    listener: TcpListener,
    endpoints: Arc<Endpoints>,
    mut stop: watch::Receiver<bool>,
    mut closing: watch::Receiver<bool>,
) {
    // More connections wait in the kernel's queue.
    let places = Arc::clone(&endpoints.places);
    loop {
        let Some(free) = places.one_free().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = async { drop(stop.wait_for(|stop| *stop).await) } => break,
        };
        match accepted {
            Ok((socket, peer)) => {
                // Small messages must not wait for each other.
                if let Err(error) = socket.set_nodelay(true) {
                    tracing::debug!(%error, "TCP_NODELAY refused");
                }
                let endpoints = Arc::clone(&endpoints);
                let stop = stop.clone();
                let place = places.enter(peer.ip(), free);
                // As it is in force now: a reload changes it for the connections that follow.
                let tls = endpoints.links.registry.config().doors.tls.clone();
                let ends = SocketEnds {
                    peer: peer.ip(),
                    at: socket.local_addr().ok(),
                };
                let relay = endpoints.relay(ends);
                let arrived = Arrived {
                    socket,
                    ends,
                    relay,
                };
                tokio::spawn(serve_socket(arrived, tls, endpoints, stop, place));
            }
            Err(error) => {
                // Mostly the process is out of descriptors: only a short wait helps.
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    // From here on nothing new comes, while open requests finish.
    drop(listener);
    let _ = closing.wait_for(|closing| *closing).await;
    let drained = tokio::time::timeout(Duration::from_secs(DRAIN_SECS), places.all_free()).await;
    if drained.is_err() {
        tracing::info!("some connections were still open and are closed now");
    }
}

/// Serves a connection that another node conveys, once there is a place for it.
///
/// # Errors
/// Errors of the pair of sockets through which it goes, if its client speaks TLS to this gateway.
pub(crate) async fn serve_conveyed(
    wire: ConveyedWire,
    ends: SocketEnds,
    endpoints: Arc<Endpoints>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let places = Arc::clone(&endpoints.places);
    let Some(free) = places.one_free().await else {
        return Ok(());
    };
    let place = places.enter(ends.peer, free);
    // One that is for a branch is passed on no more.
    let relay = endpoints.relay(ends).filter(|relay| !relay.is_branch);
    let tls = endpoints.links.registry.config().doors.tls.clone();
    let Some(tls) = tls else {
        let shown = ConnectionEnds::plain(ends, relay);
        connection(wire, endpoints, stop, Some(place), shown).await;
        return Ok(());
    };
    let (socket, pump) = secure::pump(wire)?;
    // It ends with the connection.
    pump.detach();
    let arrived = Arrived {
        socket,
        ends,
        relay,
    };
    Box::pin(secure_connection(arrived, tls, endpoints, stop, place)).await;
    Ok(())
}

/// Serves a connection that a node which is not the home has accepted, once there is a place for it.
pub(crate) async fn serve_accepted(
    socket: TcpStream,
    ends: SocketEnds,
    endpoints: Arc<Endpoints>,
    stop: watch::Receiver<bool>,
) {
    let places = Arc::clone(&endpoints.places);
    let Some(free) = places.one_free().await else {
        return;
    };
    let place = places.enter(ends.peer, free);
    let relay = endpoints.relay(ends);
    let arrived = Arrived {
        socket,
        ends,
        relay,
    };
    serve_socket(arrived, None, endpoints, stop, place).await;
}

/// Serves one connection. Its task lives until it is known what the connection becomes, so what few
/// connections need is in a box: a task of HTTP/1 without TLS must not be as large as one with it.
async fn serve_socket(
    arrived: Arrived,
    tls: Option<ServerTls>,
    endpoints: Arc<Endpoints>,
    stop: watch::Receiver<bool>,
    place: (Place, Arc<Standing>),
) {
    if let Some(tls) = tls {
        return Box::pin(secure_connection(arrived, tls, endpoints, stop, place)).await;
    }
    let Arrived {
        socket,
        ends,
        relay,
    } = arrived;
    let shown = ConnectionEnds::plain(ends, relay);
    connection(socket, endpoints, stop, Some(place), shown).await;
}

/// Serves one connection over TLS.
async fn secure_connection(
    arrived: Arrived,
    tls: ServerTls,
    endpoints: Arc<Endpoints>,
    mut stop: watch::Receiver<bool>,
    place: (Place, Arc<Standing>),
) {
    let account = metered::account_of(&endpoints.links.registry, Some(arrived.ends.peer));
    let accepted = secure::accept(arrived, account, tls, &place.1, &mut stop).await;
    let Some((socket, shown)) = accepted else {
        return;
    };
    if socket.get_ref().1.alpn_protocol() == Some(tls::HTTP_2) {
        let (place, standing) = place;
        let kept = Connection::new(&endpoints.links, Some(place), shown, stop);
        return Box::pin(h2::serve(
            socket,
            Bytes::new(),
            &kept,
            Some(standing),
            endpoints,
        ))
        .await;
    }
    connection(socket, endpoints, stop, Some(place), shown).await;
}

/// Serves one connection until it ends as HTTP: it closes, or what it becomes (a WebSocket, an open
/// stream) goes on in a task of its own, which keeps `place`.
///
/// The choice of HTTP/1 or HTTP/2 is not `hyper_util::server::conn::auto`'s: that connection does
/// not give its socket and unread bytes back (`into_parts`), from which an idle stream goes on
/// without HTTP, frames of proto-mcp and HTTP/2 begin, and TLS on a plain port is recognized. It
/// also waits for the first bytes without the time limit of a head, and its state has room for
/// both protocols, where a task of HTTP/1 must be small.
pub(crate) async fn connection(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    endpoints: Arc<Endpoints>,
    mut stop: watch::Receiver<bool>,
    place: Option<(Place, Arc<Standing>)>,
    shown: ConnectionEnds,
) {
    let (place, standing) = place.unzip();
    let header_bytes_max = endpoints.links.registry.limits().header_bytes_max;
    let kept = Connection::new(&endpoints.links, place, shown, stop.clone());
    let handover = Arc::clone(&kept.handover);
    let socket = Watched::new(socket, Arc::<Connection>::clone(&kept));
    let of_requests = Arc::clone(&kept);
    let endpoints_of = Arc::clone(&endpoints);
    let service = service_fn(move |request| {
        let endpoints = Arc::clone(&endpoints_of);
        let connection = Arc::clone(&of_requests);
        async move {
            // The head is whole by now, and the next one begins after the answer.
            connection.unfinished.end();
            let response = route(&endpoints, Arc::clone(&connection), request).await;
            connection.unfinished.begin();
            Ok::<_, Infallible>(response)
        }
    });
    let head_due = Arc::<Deadline>::default();
    let mut head_alarm = Alarm::new(&head_due);
    let mut quiet_alarm = Alarm::new(&kept.quiet);
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(HeadTimer(head_due))
        .header_read_timeout(Duration::from_secs(HEADER_READ_SECS))
        .max_buf_size(header_bytes_max.max(HEAD_BUFFER_BYTES_MIN))
        .serve_connection(TokioIo::new(socket), service)
        .with_upgrades();
    let mut stopping = pin!(async { drop(stop.wait_for(|stop| *stop).await) });
    let mut stopped = false;
    let mut left = None;
    // Until the connection ends, or a held stream is to go on without HTTP.
    let ended = poll_fn(|cx| {
        if standing
            .as_ref()
            .is_some_and(|standing| standing.poll_evicted(cx).is_ready())
        {
            return Poll::Ready(Ok(()));
        }
        if !stopped && stopping.as_mut().poll(cx).is_ready() {
            stopped = true;
            Pin::new(&mut connection).graceful_shutdown();
        }
        let mut ended = Pin::new(&mut connection).poll(cx);
        // `|`, not `||`: both are polled, so that either wakes this task.
        while ended.is_pending() && (head_alarm.poll(cx) | quiet_alarm.poll(cx)) {
            ended = Pin::new(&mut connection).poll(cx);
        }
        left = handover.take();
        if left.is_some() {
            Poll::Ready(Ok(()))
        } else {
            ended
        }
    })
    .await;
    let is_h2 = ended.as_ref().is_err_and(hyper::Error::is_parse_version_h2);
    let parts = connection.into_parts();
    if let (Err(error), false) = (ended, is_h2) {
        tracing::trace!(%error, "connection ended");
        if parts
            .as_ref()
            .is_some_and(|parts| parts.read_buf.first() == Some(&secure::HANDSHAKE_RECORD))
        {
            secure::report(
                "the client speaks TLS to a port that does not: it needs a URL with http://",
            );
        }
    }
    let Some(parts) = parts else { return };
    let (socket, frames) = parts.io.into_inner().into_parts();
    if let Some(read) = frames {
        Box::pin(framed::serve(socket, read, &kept, standing)).await;
    } else if let Some(events) = left {
        tokio::spawn(HeldEvents::new(socket, *events, Arc::clone(&kept.client)));
    } else if is_h2 && !kept.is_of_branch() {
        // A task that is HTTP/1 must not be as large as one that is HTTP/2.
        Box::pin(h2::serve(
            socket,
            parts.read_buf,
            &kept,
            standing,
            endpoints,
        ))
        .await;
    }
}

impl h2::Route for Arc<Endpoints> {
    async fn route(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> Response<Body> {
        route(self, connection, request).await
    }
}

/// Answers a request of a page of another origin that may speak to the gateway: from here on it is
/// a request as any other, except that a page of another program is noted. Few clients are in
/// browsers, so the memory of this is on the heap.
fn for_page<'a>(
    page: Page,
    is_other: bool,
    endpoints: &'a Endpoints,
    connection: Arc<Connection>,
    mut request: Request<Incoming>,
) -> Pin<Box<dyn Future<Output = Response<Body>> + Send + 'a>> {
    request.headers_mut().remove(ORIGIN);
    if is_other {
        request.extensions_mut().insert(OtherPage);
    }
    Box::pin(async move {
        match page.preflight(&request) {
            Some(response) => response,
            None => page.shown(route(endpoints, connection, request).await),
        }
    })
}

/// Answers a request. Errors on paths of the API have the form of the API's, wherever they arise.
fn route(
    endpoints: &Endpoints,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> impl Future<Output = Response<Body>> + Send {
    let is_api = problem::is_api(request.uri().path());
    answered(endpoints, connection, request).map(move |response| {
        if is_api {
            problem::coded(response)
        } else {
            response
        }
    })
}

async fn answered(
    endpoints: &Endpoints,
    connection: Arc<Connection>,
    request: Request<Incoming>,
) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let head = Head::read(&parts.headers);
    let branch = connection.relay.as_ref().filter(|relay| relay.is_branch);
    if let Some(relay) = branch {
        // It asks whether this node may act, too.
        if !elsewhere::may_be_own(relay, &connection, &parts, &head) {
            let request = Request::from_parts(parts, body);
            let client = Arc::clone(&connection.client);
            // Its memory is on the heap: no other gateway needs it.
            return Box::pin(relay.to_home(client, request)).await;
        }
    } else if !endpoints.links.registry.audit.may_act() {
        return problem::moved();
    }
    if let Some(uri) = without_slash(&parts.uri) {
        parts.uri = uri;
    }
    if head.origin != HeaderField::Missing {
        let config = endpoints.links.registry.config();
        if let Some(page) = Page::of(&parts, &head, &config) {
            let is_other = is_of_other_page(&connection, &config, &head);
            let request = Request::from_parts(parts, body);
            return for_page(page, is_other, endpoints, connection, request).await;
        }
    }
    let is_grpc = grpc::is_grpc(&head);
    let (mut config, mut visit) = connection.known(&head, named_topic(&parts.uri));
    let public_url = config.identity.public_url.as_ref();
    if let Some(uri) = public_url.and_then(|url| below(url, &parts.uri)) {
        parts.uri = uri;
        // The path may name a topic only now.
        (config, visit) = connection.known(&head, named_topic(&parts.uri));
    }
    if let Some(answer) = answered_at_once(&connection, &config, &parts, &head) {
        return answer;
    }
    let path = parts.uri.path();
    let topic = topic_of(path, "/mcp");
    let admitted = match &visit {
        Some(_) => Ok(()),
        None => authorization::admit(&connection, &config, &head).await,
    };
    let presented = head.bearer().is_some();
    if let Some(topic) = topic {
        let visited = admitted
            .and_then(|()| visit.map_or_else(|| connection.visit(&head, topic, Wire::Mcp), Ok));
        let visit = match visited {
            Ok(visit) => visit,
            Err(refusal) => {
                let refused = endpoint::refused(&refusal);
                let endpoint = endpoint_of(topic);
                let refused =
                    authorization::challenged(&config, &endpoint, presented, &refusal, refused);
                let place = connection.place();
                // Its memory is on the heap: few requests are refused.
                return Box::pin(after_body(body, refused, place)).await;
            }
        };
        if acts(&parts) && parts.extensions.get::<OtherPage>().is_some() {
            return refused_as(Foreign::Unnamed, false);
        }
        return endpoint::serve(&connection, &config, &visit, &parts, &head, body).await;
    }
    if let Err(refusal) = admitted {
        if is_grpc {
            return grpc::refusal(&refusal);
        }
        return authorization::challenged(
            &config,
            &endpoint_at(&parts.uri),
            presented,
            &refusal,
            ws::refused(&refusal),
        );
    }
    if is_grpc {
        return grpc::serve(&connection, &config, (parts, body)).await;
    }
    let proto_topic = topic_of(path, "/proto").map(str::to_owned);
    let is_ws = path == "/ws";
    let is_pair = path == "/sse" || path == "/messages";
    let sender = endpoints
        .links
        .registry
        .sender(connection.presented(head.bearer()));
    if let Some(Err(refusal)) = sender
        .as_ref()
        .map(|sender| connection.belongs_to(&sender.id))
    {
        return endpoint::refused(&refusal);
    }
    if acts(&parts) && parts.extensions.get::<OtherPage>().is_some() {
        return refused_as(Foreign::Unnamed, is_grpc);
    }
    note_ends(&connection, &mut parts);
    let request = Request::from_parts(parts, body);
    let endpoint = endpoint_at(request.uri());
    let mut response = if is_ws {
        ws::serve(connection, request)
    } else if let Some(topic) = proto_topic {
        proto::serve(connection, &config, &topic, request)
    } else if config.doors.legacy_sse && is_pair {
        pair::serve(&connection, &endpoints.pairs, request).await
    } else {
        endpoints
            .page(&connection, request, sender.as_deref())
            .await
    };
    match response.extensions_mut().remove::<Refusal>() {
        Some(refusal) => {
            authorization::challenged(&config, &endpoint, presented, &refusal, response)
        }
        None => response,
    }
}

/// The topic whose endpoint of MCP an address is; an empty name if it is none.
fn named_topic(uri: &Uri) -> &str {
    topic_of(uri.path(), "/mcp").unwrap_or_default()
}

/// The answer to a request if its sender makes no difference: what is public, and what is refused to
/// everyone.
fn answered_at_once(
    connection: &Connection,
    config: &Config,
    parts: &Parts,
    head: &Head<'_>,
) -> Option<Response<Body>> {
    let target = parts.uri.path_and_query();
    let target_bytes = target.map_or(0, |target| target.as_str().len());
    // The reader's own bound is only as exact as its buffer.
    if target_bytes + head.bytes > config.limits.header_bytes_max {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        return Some(response::plain(status, "the headers are too long\n"));
    }
    let path = parts.uri.path();
    if let Some(metadata) = authorization::metadata(config, &parts.method, path) {
        return Some(metadata);
    }
    match foreign(connection, config, parts, head) {
        Some(foreign) => Some(refused_as(foreign, grpc::is_grpc(head))),
        None => authorization::misplaced(config, head, parts.uri.query()),
    }
}

/// What of a request is from elsewhere, if that is a reason to refuse it.
fn foreign(
    connection: &Connection,
    config: &Config,
    parts: &Parts,
    head: &Head<'_>,
) -> Option<Foreign> {
    let path = parts.uri.path();
    let hosts = Hosts::new(&config.doors.hosts, config.doors.listen.ip());
    match hosts.check(head) {
        Ok(()) => {}
        // Who signs in comes from wherever its client is: other checks are made there, and no
        // cookie is sent along by a script.
        Err(Foreign::Origin) if authorization::is_sign_in(config, path) => {}
        Err(foreign) => return Some(foreign),
    }
    let is_socket = path == "/ws" || topic_of(path, "/proto").is_some();
    let is_refused = (is_socket || acts(parts))
        && is_of_other_page(connection, config, head)
        // Its pages check the origin of a form themselves.
        && !authorization::is_sign_in(config, path);
    is_refused.then_some(Foreign::Unnamed)
}

/// Whether a request may change something.
fn acts(parts: &Parts) -> bool {
    !matches!(parts.method, Method::GET | Method::HEAD | Method::OPTIONS)
}

/// Whether a request is of a page that is not the gateway's own, and has no credential.
fn is_of_other_page(connection: &Connection, config: &Config, head: &Head<'_>) -> bool {
    head.origin != HeaderField::Missing
        && !Hosts::new(&config.doors.hosts, config.doors.listen.ip()).may_act(head)
        && head.bearer().is_none()
        && connection.certificate.is_none()
}

/// The refusal of a request from elsewhere.
fn refused_as(foreign: Foreign, is_grpc: bool) -> Response<Body> {
    let why = match foreign {
        Foreign::Host => "this Host is not served here; add it to `[server] hosts`\n",
        Foreign::Origin => {
            "this Origin may not speak to this gateway; add its host to `[server] hosts`\n"
        }
        Foreign::Unnamed => {
            "a page of another program changes nothing here without a token; send one, or add the page's HOST:PORT to `[server] hosts`\n"
        }
    };
    if is_grpc {
        return grpc::refused(why.trim_end());
    }
    response::plain(StatusCode::FORBIDDEN, why)
}

/// Notes in a request who is at the other end of its connection: pages know requests alone.
fn note_ends(connection: &Connection, parts: &mut Parts) {
    if let Some(certificate) = &connection.certificate {
        parts.extensions.insert(Arc::clone(certificate));
    }
    if let Some(peer) = connection.peer {
        parts.extensions.insert(Peer(peer));
    }
}

/// The path of the endpoint of a well-formed topic name, else of the main one.
fn endpoint_of(topic: &str) -> String {
    identity::issuers::endpoint(
        TopicName::new(topic)
            .as_ref()
            .map_or("main", |topic| topic.as_str()),
    )
}

/// The endpoint whose metadata a request to another path is pointed to: that of the topic which it
/// names.
fn endpoint_at(uri: &Uri) -> String {
    if uri.path() == "/sse" || uri.path() == "/messages" {
        return "/sse".to_owned();
    }
    let named = uri.query().and_then(|query| {
        query
            .split('&')
            .find_map(|part| part.strip_prefix("topic="))
    });
    endpoint_of(topic_of(uri.path(), "/proto").or(named).unwrap_or("main"))
}

/// A request's address without the prefix of the public URL, if a proxy has left it there.
fn below(url: &PublicUrl, uri: &Uri) -> Option<Uri> {
    let path = url.within(uri.path());
    if path == uri.path() {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    let target = uri
        .query()
        .map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

/// The endpoint that a path with one slash at its end means, as people type it.
fn without_slash(uri: &Uri) -> Option<Uri> {
    let path = uri
        .path()
        .strip_suffix('/')
        .filter(|path| !path.is_empty() && !path.ends_with('/'))?;
    let mut parts = uri.clone().into_parts();
    let target = uri
        .query()
        .map_or_else(|| path.to_owned(), |query| format!("{path}?{query}"));
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the future that a function returns.
    fn size<A, B, C, D, E, F>(_: impl Fn(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_connection_without_tls_pays_for_none() {
        let plain = size(|socket: TcpStream, endpoints, stop, place, shown| {
            connection(socket, endpoints, stop, place, shown)
        });
        // Tasks of connections that have become WebSockets leave their room in the heap: each byte
        // counts a thousand times.
        assert!(plain <= 2_048, "{plain}");
        assert!(
            size(serve_socket) <= plain + 256,
            "{} for {plain}",
            size(serve_socket)
        );
    }
}
