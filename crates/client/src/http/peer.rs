//! One HTTP server as both HTTP transports see it: what every request carries, how an answer is judged and read.
//!
//! Only configured headers and the protocol's own are ever sent; nothing that a caller sent to us comes here.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use platform::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::origin::Origin;
use super::pool::{Pool, Sender};
use crate::contract::LinkFailure;

/// The header with the session of the legacy era.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// The header with the protocol version.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The header that resumes a stream.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// Redirects on the same origin that are followed; some servers answer `/mcp` with 307 to `/mcp/`.
const REDIRECTS_MAX: usize = 2;

/// How to reach an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpSpec {
    /// The server's name, for the log.
    pub name: Arc<str>,
    /// The endpoint: an absolute `http` or `https` URL.
    pub url: String,
    /// Headers of every request, credentials among them.
    pub headers: HeaderMap,
    /// Bounds on what it may cost.
    pub limits: HttpLimits,
}

/// Bounds of one HTTP link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HttpLimits {
    /// Length of one message, in a body or an event, in bytes.
    pub frame_bytes_max: usize,
    /// Requests open at one time; notifications and answers on their way have the same bound of their own.
    pub requests_max: usize,
    /// Connections kept open without a request.
    pub idle_connections_max: usize,
    /// Time to connect, TLS included.
    pub connect: Duration,
    /// Time to the head of an answer where the answer needs no work: notifications, streams, DELETE.
    pub head: Duration,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self {
            frame_bytes_max: 16 << 20,
            requests_max: 1024,
            idle_connections_max: 64,
            connect: Duration::from_secs(10),
            head: Duration::from_secs(30),
        }
    }
}

#[derive(Debug)]
struct Negotiated {
    /// What every POST carries, as negotiated by now.
    post: HeaderMap,
    path: Uri,
}

const BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The server, its connections and what was negotiated with it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: Arc<str>,
    pub(crate) origin: Origin,
    pub(crate) limits: HttpLimits,
    pool: Pool,
    negotiated: Mutex<Negotiated>,
}

/// The head of an answer, and the connection on which its body comes.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Incoming,
    pub(crate) sender: Sender,
    /// True when the request named a session.
    pub(crate) in_session: bool,
}

impl Reply {
    /// The media type without its parameters.
    pub(crate) fn is(&self, media: &str) -> bool {
        let value = self.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media)
    }
}

impl Peer {
    /// Reads the spec; connects to nothing yet.
    pub(crate) fn new(spec: &HttpSpec) -> Result<Self, LinkFailure> {
        let origin = Origin::parse(&spec.url).map_err(|why| LinkFailure::Unreachable(why.to_owned()))?;
        let mut headers = spec.headers.clone();
        headers.insert(HOST, origin.authority.clone());
        let mut post = headers.clone();
        post.insert(CONTENT_TYPE, JSON);
        post.insert(ACCEPT, BOTH);
        let path = Uri::try_from(&origin.path);
        let path = path.map_err(|_| LinkFailure::Unreachable("the path cannot be written".to_owned()))?;
        let negotiated = Mutex::new(Negotiated { post, path });
        Ok(Self {
            name: spec.name.clone(),
            pool: Pool::new(origin.clone(), spec.limits.idle_connections_max, spec.limits.connect),
            origin,
            limits: spec.limits,
            negotiated,
        })
    }

    fn negotiated(&self) -> MutexGuard<'_, Negotiated> {
        self.negotiated.lock()
    }

    pub(crate) fn set_version(&self, version: &str) {
        if let Ok(version) = HeaderValue::from_str(version) {
            self.negotiated().post.insert(VERSION, version);
        }
    }

    /// Forgets session and version, as before the handshake.
    pub(crate) fn forget_session(&self) {
        let mut negotiated = self.negotiated();
        negotiated.post.remove(SESSION);
        negotiated.post.remove(VERSION);
    }

    /// Sets where requests go, on the same origin.
    pub(crate) fn set_path(&self, path: Uri) {
        self.negotiated().path = path;
    }

    pub(crate) fn has_session(&self) -> bool {
        self.negotiated().post.contains_key(SESSION)
    }

    /// POSTs one message.
    pub(crate) async fn post(&self, frame: Bytes, headers: Option<&HeaderMap>) -> Result<Reply, LinkFailure> {
        let mut hops = 0;
        loop {
            let mut request = self.request(Method::POST, frame.clone());
            for (name, value) in headers.into_iter().flatten() {
                request.headers_mut().insert(name, value.clone());
            }
            let reply = self.send(request).await?;
            match self.redirect(&reply) {
                Some(path) if hops < REDIRECTS_MAX => {
                    hops += 1;
                    self.set_path(path);
                }
                _ => return Ok(reply),
            }
        }
    }

    /// Opens an event stream, after `last_event_id` if one is given.
    pub(crate) async fn get(&self, last_event_id: Option<&str>) -> Result<Reply, LinkFailure> {
        let mut request = self.request(Method::GET, Bytes::new());
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last_event_id.and_then(|id| HeaderValue::from_str(id).ok()) {
            request.headers_mut().insert(LAST_EVENT_ID, id);
        }
        timeout(self.limits.head, self.send(request)).await.map_err(|_| LinkFailure::Timeout)?
    }

    /// Ends the session.
    pub(crate) async fn delete(&self) -> Result<Reply, LinkFailure> {
        let mut request = self.request(Method::DELETE, Bytes::new());
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().remove(ACCEPT);
        self.send(request).await
    }

    /// A request with the headers of a POST.
    fn request(&self, method: Method, body: Bytes) -> Request<Full<Bytes>> {
        let negotiated = self.negotiated();
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = negotiated.path.clone();
        *request.headers_mut() = negotiated.post.clone();
        request
    }

    async fn send(&self, request: Request<Full<Bytes>>) -> Result<Reply, LinkFailure> {
        let in_session = request.headers().contains_key(SESSION);
        let (response, sender) = self.pool.send(request).await?;
        let (head, body) = response.into_parts();
        if !in_session
            && head.status.is_success()
            && let Some(session) = head.headers.get(SESSION)
        {
            self.negotiated().post.entry(SESSION).or_insert_with(|| session.clone());
        }
        Ok(Reply { status: head.status, headers: head.headers, body, sender, in_session })
    }

    /// The path to repeat a request at: only where method and body are kept, and only on the same origin, because the
    /// configured credentials go with it.
    fn redirect(&self, reply: &Reply) -> Option<Uri> {
        let kept = matches!(reply.status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        let location = reply.headers.get(LOCATION).filter(|_| kept)?;
        self.origin.join(location.to_str().ok()?)
    }

    /// Judges the status: a success comes back, anything else is a failure with its body.
    pub(crate) async fn success(&self, reply: Reply) -> Result<Reply, LinkFailure> {
        match reply.status {
            status if status.is_success() => Ok(reply),
            StatusCode::UNAUTHORIZED => Err(LinkFailure::Unauthorized),
            StatusCode::NOT_FOUND if reply.in_session => Err(LinkFailure::SessionGone),
            status => {
                let body = Box::pin(self.all_of(reply)).await.unwrap_or_default();
                Err(LinkFailure::Http { status: status.as_u16(), body })
            }
        }
    }

    async fn all_of(&self, reply: Reply) -> Result<Bytes, LinkFailure> {
        let (body, sender) = self.collect(reply).await?;
        self.give_back(sender).await;
        Ok(body)
    }

    /// Reads a whole body; the connection comes with it, to be given back when the body is on its way.
    pub(crate) async fn collect(&self, reply: Reply) -> Result<(Bytes, Sender), LinkFailure> {
        let Reply { mut body, sender, .. } = reply;
        let max = self.limits.frame_bytes_max;
        let mut all = BytesMut::new();
        let mut only = Bytes::new();
        if body.size_hint().lower() > max as u64 {
            return Err(LinkFailure::TooLarge);
        }
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| LinkFailure::Broken(error.to_string()))?;
            let Ok(chunk) = frame.into_data() else { continue };
            if all.len() + only.len() + chunk.len() > max {
                return Err(LinkFailure::TooLarge);
            }
            if only.is_empty() && all.is_empty() {
                only = chunk;
            } else {
                all.extend_from_slice(&std::mem::take(&mut only));
                all.extend_from_slice(&chunk);
            }
        }
        Ok((if all.is_empty() { only } else { all.freeze() }, sender))
    }

    pub(crate) async fn give_back(&self, sender: Sender) {
        self.pool.put(sender).await;
    }

    pub(crate) fn disconnect(&self) {
        self.pool.clear();
    }
}
