//! Peer of both HTTP transports: its configuration and limits, connections to the server, headers
//! of every request, reading of responses.
//!
//! A request carries the configured headers and the protocol's own, never a header of the gateway's
//! clients.

use std::sync::atomic::{AtomicU64, Ordering};
use std::{error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Body, Incoming};
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use platform::Mutex;
use tls::ClientTls;
use tokio::time::timeout;

use super::api_message::{ApiAnswer, ApiRequest};
use super::{connect::Connector, endpoint};
use crate::authorize::{Authorization, Authorize, Challenge};
use crate::error::LinkError;

/// The header with the session of the legacy era.
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header with the protocol version.
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that resumes a stream.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: &str = "text/event-stream";
const JSON_OR_STREAM: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Redirects on the same origin that are followed; some servers answer `/mcp` with 307 to `/mcp/`.
const REDIRECTS_MAX: usize = 2;
/// Number of times that one request is sent again with another token.
const AUTHORIZATIONS_MAX: usize = 2;
/// An idle connection is not used again after this long: common servers close theirs after 5 s, and
/// a request that meets a closing connection could not be repeated safely.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// An HTTP server.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: Arc<str>,
    pub(crate) limits: HttpLimits,
    /// As configured.
    url: Uri,
    /// Whether the target of a request is the whole URL, as a proxy needs it that passes requests
    /// on (RFC 9112, 3.2.2).
    names_server: bool,
    client: Client<Connector, Full<Bytes>>,
    /// What the next request is made of: answers change it.
    next: Mutex<RequestTemplate>,
    authorize: Option<Arc<dyn Authorize>>,
    /// Whether the configured headers authorize the requests.
    has_own_header: bool,
    /// The stamp of the header that `next` has; 0 before the first.
    stamp: AtomicU64,
}

/// The headers and target of the next request.
#[derive(Debug)]
struct RequestTemplate {
    /// The headers of a POST, with session and version as negotiated by now.
    headers: HeaderMap,
    /// The endpoint of a POST: the configured URL, or where the server has led from it.
    endpoint: Arc<Uri>,
    /// This endpoint as a request names it.
    uri: Uri,
}

/// A response whose body is not read yet.
pub(crate) struct HttpReply {
    pub(crate) body: Incoming,
    /// Address that replied: the endpoint of the request, or where redirects have led from it.
    pub(crate) at: Arc<Uri>,
    status: StatusCode,
    headers: HeaderMap,
    /// The session that the request named.
    session: Option<HeaderValue>,
}

impl HttpReply {
    /// Whether the body is an event stream.
    pub(crate) fn is_stream(&self) -> bool {
        let Some(media) = self.headers.get(CONTENT_TYPE) else {
            return false;
        };
        let Some((media, rest)) = media.as_bytes().split_at_checked(EVENT_STREAM.len()) else {
            return false;
        };
        media.eq_ignore_ascii_case(EVENT_STREAM.as_bytes())
            && matches!(rest, [] | [b';' | b' ' | b'\t', ..])
    }

    /// Address on the same origin to which it leads; with `reads` also by a status that may change
    /// the method to GET.
    fn redirect(&self, reads: bool) -> Option<Uri> {
        let leads_on = match self.status {
            StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT => true,
            StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER => reads,
            _ => false,
        };
        if !leads_on {
            return None;
        }
        endpoint::join(&self.at, self.headers.get(LOCATION)?.to_str().ok()?)
    }
}

/// How often one request was sent again.
#[derive(Default)]
struct Repeats {
    /// Because of redirects.
    redirects: usize,
    /// Because the server refused its header.
    refusals: usize,
}

impl Repeats {
    /// Where to send the request again, unless it was redirected too often.
    fn redirected_to(&mut self, endpoint: Option<Uri>) -> Option<Uri> {
        if self.redirects == REDIRECTS_MAX {
            return None;
        }
        let endpoint = endpoint?;
        self.redirects += 1;
        Some(endpoint)
    }
}

impl Peer {
    /// Connects to nothing yet.
    pub(crate) fn new(spec: &HttpSpec) -> Result<Self, LinkError> {
        let url =
            endpoint::parse(&spec.url).map_err(|why| LinkError::Unreachable(why.to_owned()))?;
        let host = url
            .authority()
            .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        let Some(host) = host else {
            let why = "the host is not a valid name".to_owned();
            return Err(LinkError::Unreachable(why));
        };
        let mut headers = spec.headers.clone();
        headers.insert(HOST, host);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(ACCEPT, JSON_OR_STREAM);
        let connector =
            Connector::new(url.clone(), &spec.tls, spec.limits.connect).through_proxy(true);
        let names_server = connector.is_passed_on();
        if let Some(authorization) = connector.proxy_authorization() {
            headers.insert(PROXY_AUTHORIZATION, authorization);
        }
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_MAX)
            .pool_max_idle_per_host(spec.limits.idle_connections_max)
            .set_host(false)
            .build(connector);
        let uri = if names_server {
            url.clone()
        } else {
            endpoint::request_uri(url.clone())
        };
        let next = Mutex::new(RequestTemplate {
            headers,
            endpoint: Arc::new(url.clone()),
            uri,
        });
        Ok(Self {
            name: Arc::clone(&spec.name),
            limits: spec.limits,
            url,
            names_server,
            client,
            next,
            authorize: spec.authorize.clone(),
            has_own_header: spec.headers.contains_key(AUTHORIZATION),
            stamp: AtomicU64::new(0),
        })
    }

    /// Sets the version that later requests name.
    pub(crate) fn set_version(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            self.next.lock().headers.insert(VERSION, version);
        }
    }

    /// Forgets session and version, as before the handshake.
    pub(crate) fn forget_session(&self) {
        let mut next = self.next.lock();
        next.headers.remove(SESSION);
        next.headers.remove(VERSION);
    }

    pub(crate) fn has_session(&self) -> bool {
        self.next.lock().headers.contains_key(SESSION)
    }

    /// Sends later messages to this reference, relative to `base`; false when it leads to another
    /// origin.
    pub(crate) fn redirect(&self, base: &Uri, reference: &str) -> bool {
        let Some(endpoint) = endpoint::join(base, reference) else {
            return false;
        };
        self.send_to(endpoint);
        true
    }

    /// Sends later messages to the configured URL.
    pub(crate) fn redirect_to_configured(&self) {
        self.send_to(self.url.clone());
    }

    fn send_to(&self, endpoint: Uri) {
        let uri = self.uri_of(&endpoint);
        let mut next = self.next.lock();
        next.endpoint = Arc::new(endpoint);
        next.uri = uri;
    }

    /// An endpoint as a request names it.
    fn uri_of(&self, endpoint: &Uri) -> Uri {
        if self.names_server {
            endpoint.clone()
        } else {
            endpoint::request_uri(endpoint.clone())
        }
    }

    /// POSTs one message; a status that is no success is an error. It waits for as long as the
    /// server takes: how long an answer may take is for the session to say.
    pub(crate) async fn post(
        &self,
        frame: Bytes,
        headers: Option<&HeaderMap>,
    ) -> Result<HttpReply, LinkError> {
        let mut repeats = Repeats::default();
        loop {
            let stamp = self.authorized().await?;
            let mut request = self.request(Method::POST, frame.clone());
            for (name, value) in headers.into_iter().flatten() {
                request.headers_mut().insert(name, value.clone());
            }
            let reply = self.send(request).await?;
            if let Some(endpoint) = repeats.redirected_to(redirected(&reply)) {
                // Later messages go there too.
                self.send_to(endpoint);
                continue;
            }
            if !self.renew_if_refused(stamp, &mut repeats, &reply).await? {
                return self.success(reply).await;
            }
        }
    }

    /// Sends one request to the origin of the configured URL, and returns its answer whatever the
    /// status. Redirects are followed on that origin, where the status keeps the method or the
    /// request only reads.
    pub(crate) async fn ask(
        &self,
        request: &ApiRequest,
        bytes_max: usize,
    ) -> Result<ApiAnswer, LinkError> {
        let Some(url) = self.on_origin(&request.target) else {
            return Err(LinkError::Unreachable("the path cannot be read".to_owned()));
        };
        let mut at = Arc::new(url);
        let mut repeats = Repeats::default();
        loop {
            let stamp = self.authorized().await?;
            let mut outgoing = self.request(request.method.clone(), request.body.clone());
            *outgoing.uri_mut() = self.uri_of(&at);
            let headers = outgoing.headers_mut();
            headers.remove(CONTENT_TYPE);
            headers.remove(ACCEPT);
            headers.extend(request.headers.clone());
            let response = self
                .client
                .request(outgoing)
                .await
                .map_err(|error| link_error(&error))?;
            let (head, body) = response.into_parts();
            let status = head.status;
            let headers = head.headers;
            let reply = HttpReply {
                body,
                at: Arc::clone(&at),
                status,
                headers,
                session: None,
            };
            let endpoint = reply.redirect(request.method.is_safe());
            if let Some(endpoint) = repeats.redirected_to(endpoint) {
                // Only of this request: others have paths of their own.
                at = Arc::new(endpoint);
                continue;
            }
            if self.renew_if_refused(stamp, &mut repeats, &reply).await? {
                continue;
            }
            let body = collected(reply.body, bytes_max).await?;
            return Ok(ApiAnswer {
                status: reply.status,
                headers: reply.headers,
                body,
            });
        }
    }

    /// The URL of a path and query on the origin of the configured one.
    fn on_origin(&self, target: &str) -> Option<Uri> {
        let mut parts = self.url.clone().into_parts();
        parts.path_and_query = Some(target.parse().ok()?);
        Uri::from_parts(parts).ok()
    }

    /// Has the next requests carry the header of the moment, and returns its stamp.
    async fn authorized(&self) -> Result<u64, LinkError> {
        let Some(authorize) = &self.authorize else {
            return Ok(0);
        };
        let last = self.stamp.load(Ordering::Acquire);
        // Of a sign-in that was replaced this link keeps the last header: that of the next sign-in
        // is for another session.
        if last != 0 && (authorize.stamp() == last || authorize.is_void()) {
            return Ok(last);
        }
        Ok(self.carry(authorize.grant().await?))
    }

    /// Has the next requests carry this header, and returns its stamp.
    fn carry(&self, grant: Authorization) -> u64 {
        let mut next = self.next.lock();
        match grant.header {
            Some(header) => drop(next.headers.insert(AUTHORIZATION, header)),
            None if self.has_own_header => {}
            None => drop(next.headers.remove(AUTHORIZATION)),
        }
        self.stamp.store(grant.stamp, Ordering::Release);
        grant.stamp
    }

    /// Whether the sign-in for which it authorizes itself has ended or was replaced.
    pub(crate) fn is_void(&self) -> bool {
        self.authorize
            .as_ref()
            .is_some_and(|authorize| authorize.is_void())
    }

    /// Has the account get another token if a reply refuses the one with this stamp, and returns
    /// whether the request is to be sent again. A server that refuses a request by its status has
    /// not run it.
    async fn renew_if_refused(
        &self,
        stamp: u64,
        repeats: &mut Repeats,
        reply: &HttpReply,
    ) -> Result<bool, LinkError> {
        let Some(authorize) = &self.authorize else {
            return Ok(false);
        };
        let Some(challenge) = Challenge::of(reply.status, &reply.headers) else {
            return Ok(false);
        };
        authorize
            .refused(stamp, repeats.refusals, challenge)
            .await?;
        repeats.refusals += 1;
        Ok(repeats.refusals <= AUTHORIZATIONS_MAX)
    }

    /// Opens an event stream, after `last_event_id` if one is given. A reply that is none is
    /// [`LinkError::Malformed`].
    pub(crate) async fn open_stream(
        &self,
        last_event_id: Option<&str>,
    ) -> Result<HttpReply, LinkError> {
        let mut repeats = Repeats::default();
        // Messages are sent where they were: a page for people may be where the stream is not.
        let mut at: Option<Arc<Uri>> = None;
        let reply = loop {
            let stamp = self.authorized().await?;
            let mut request = self.request(Method::GET, Bytes::new());
            if let Some(at) = &at {
                *request.uri_mut() = self.uri_of(at);
            }
            let headers = request.headers_mut();
            headers.remove(CONTENT_TYPE);
            headers.insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
            if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
                headers.insert(LAST_EVENT_ID, id);
            }
            let mut reply = timeout(self.limits.head, self.send(request))
                .await
                .map_err(|_| LinkError::Timeout)??;
            if let Some(at) = &at {
                reply.at = Arc::clone(at);
            }
            if let Some(endpoint) = repeats.redirected_to(redirected(&reply)) {
                at = Some(Arc::new(endpoint));
                continue;
            }
            if !self.renew_if_refused(stamp, &mut repeats, &reply).await? {
                break self.success(reply).await?;
            }
        };
        if reply.is_stream() {
            Ok(reply)
        } else {
            Err(LinkError::Malformed("no event stream".to_owned()))
        }
    }

    /// Ends the session, with the newest header that there is. None is asked for: the gateway may
    /// be about to stop, and a renewal that it does not live to see costs the whole sign-in.
    pub(crate) async fn delete(&self) -> Result<HttpReply, LinkError> {
        if let Some(grant) = self
            .authorize
            .as_ref()
            .and_then(|authorize| authorize.at_hand())
        {
            self.carry(grant);
        }
        let mut request = self.request(Method::DELETE, Bytes::new());
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().remove(ACCEPT);
        self.send(request).await
    }

    /// A request with the headers of a POST.
    fn request(&self, method: Method, body: Bytes) -> Request<Full<Bytes>> {
        let next = self.next.lock();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = next.uri.clone();
        *request.headers_mut() = next.headers.clone();
        request
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<HttpReply, LinkError> {
        let named = request.headers().get(SESSION).cloned();
        let at = Arc::clone(&self.next.lock().endpoint);
        let response = self
            .client
            .request(request)
            .await
            .map_err(|error| link_error(&error))?;
        let (head, body) = response.into_parts();
        if named.is_none()
            && head.status.is_success()
            && let Some(session) = head.headers.get(SESSION)
        {
            self.next
                .lock()
                .headers
                .entry(SESSION)
                .or_insert_with(|| session.clone());
        }
        Ok(HttpReply {
            body,
            at,
            status: head.status,
            headers: head.headers,
            session: named,
        })
    }

    /// Returns a reply whose status is a success; any other becomes an error with its body.
    async fn success(&self, reply: HttpReply) -> Result<HttpReply, LinkError> {
        match reply.status {
            status if status.is_success() => Ok(reply),
            StatusCode::UNAUTHORIZED => Err(LinkError::Unauthorized),
            StatusCode::NOT_FOUND if reply.session.is_some() => {
                // Another request may have opened a new session since this one was sent.
                let is_current = self.next.lock().headers.get(SESSION) == reply.session.as_ref();
                Err(if is_current {
                    LinkError::SessionGone
                } else {
                    LinkError::SessionReplaced
                })
            }
            status => {
                let body = Box::pin(self.collect(reply.body)).await.unwrap_or_default();
                Err(LinkError::Http {
                    status: status.as_u16(),
                    body,
                })
            }
        }
    }

    /// Reads a whole body. One that is one chunk, as most are, is not copied.
    pub(crate) async fn collect(&self, body: Incoming) -> Result<Bytes, LinkError> {
        collected(body, self.limits.frame_bytes_max).await
    }
}

/// Reads a whole body of at most this many bytes.
async fn collected(body: Incoming, max: usize) -> Result<Bytes, LinkError> {
    // Before a byte of it is in memory.
    if body.size_hint().lower() > max as u64 {
        return Err(LinkError::TooLarge);
    }
    let collected = Limited::new(body, max).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            LinkError::TooLarge
        } else {
            LinkError::Broken(error.to_string())
        }
    })?;
    Ok(collected.to_bytes())
}

/// Address at which a request is to be repeated: only if the status keeps method and body, and only
/// on the same origin, because the configured credentials go with it.
fn redirected(reply: &HttpReply) -> Option<Uri> {
    reply.redirect(false)
}

/// Why a request got no response: the connector's reason, or the connection's. hyper's client adds
/// only its own step.
fn link_error(error: &ClientError) -> LinkError {
    let Some(cause) = error.source() else {
        return LinkError::Broken(error.to_string());
    };
    match cause.downcast_ref::<LinkError>() {
        Some(error) => error.clone(),
        None => LinkError::Broken(tls::reason_in(cause).unwrap_or_else(|| cause.to_string())),
    }
}

/// The configuration of a link to an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The server's name, for the log.
    pub name: Arc<str>,
    /// The endpoint: an absolute `http` or `https` URL.
    pub url: String,
    /// Headers of every request, credentials among them.
    pub headers: HeaderMap,
    /// Authorities that are trusted, and the certificate that is shown, if the URL begins with
    /// `https`.
    pub tls: ClientTls,
    /// Authorization of the requests, in addition to the headers.
    pub authorize: Option<Arc<dyn Authorize>>,
    /// Limits of the link.
    pub limits: HttpLimits,
}

/// Limits of one HTTP link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Length of one message, in a body or an event, in bytes.
    pub frame_bytes_max: usize,
    /// Requests open at one time. Notifications and answers on their way have the same limit of
    /// their own.
    pub requests_max: usize,
    /// Connections kept open without a request, for 4 s each.
    pub idle_connections_max: usize,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// Time to the head of an answer that needs no work: to notifications, GET and DELETE.
    pub head: Duration,
    /// The part of it for which a new session waits for its GET stream. Some servers send the head
    /// with the first event only.
    pub listen: Duration,
}

impl Default for HttpLimits {
    /// Messages of 16 MiB, 1024 requests, 64 idle connections, 10 s to connect, 30 s to a head, 250
    /// ms for a new stream.
    fn default() -> Self {
        Self {
            frame_bytes_max: 16 << 20,
            requests_max: 1024,
            idle_connections_max: 64,
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
            listen: Duration::from_millis(250),
        }
    }
}
