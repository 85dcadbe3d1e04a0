//! Requests that a node of a cluster does not answer itself, on their way to another node: those of a
//! client over one connection to the home, others over one each.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, RETRY_AFTER, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, Version};
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::{self, OnUpgrade};
use hyper_util::rt::TokioIo;
use model::TopicName;
use platform::Mutex;
use tokio::io::copy_bidirectional;
use tokio::time::timeout;

use super::body::Body;
use super::response;
use crate::nodes::{NoNode, OtherNodes, PassedEnds, PassedTo};

/// Headers that are about one connection alone (RFC 9110, section 7.6.1), and those whose part in it
/// each side plays anew.
const OF_CONNECTION: [HeaderName; 6] = [
    CONNECTION,
    TRANSFER_ENCODING,
    TE,
    EXPECT,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];
/// The longest wait until all nodes have taken a notification.
const ALL_WAIT: Duration = Duration::from_secs(1);
/// The node had the request, and has not answered it.
const LOST: &str = r#"{"code":"home_lost","message":"the home of the cluster was lost with this request: it may have been carried out","hint":"look before you make it again"}"#;

/// The body of a request: as it comes, or as it was read.
type PassedBody = Either<Full<Bytes>, Incoming>;
type Sender = http1::SendRequest<PassedBody>;

/// The ways of one client's connection to other nodes.
pub(crate) struct Relay {
    nodes: Arc<dyn OtherNodes>,
    ends: PassedEnds,
    /// Whether this node is not the home.
    pub(crate) is_branch: bool,
    /// The connection to the home, between two requests.
    idle: Mutex<Option<Sender>>,
}

/// A request that has no answer.
enum Unanswered {
    NoNode(NoNode),
    /// It was sent, in part at least.
    Lost,
}

impl Relay {
    /// Ways that are not used yet.
    pub(crate) fn new(nodes: &Arc<dyn OtherNodes>, ends: PassedEnds, is_branch: bool) -> Self {
        Self {
            nodes: Arc::clone(nodes),
            ends,
            is_branch,
            idle: Mutex::default(),
        }
    }

    /// Whether calls of this topic may be made here now.
    pub(super) fn lets_be(&self, topic: &TopicName) -> bool {
        self.nodes.lets_be(topic)
    }

    /// Passes a request on to the home, and its body as it comes. What the client's connection becomes
    /// keeps `client`.
    pub(super) async fn to_home(
        &self,
        client: impl Send + 'static,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        // A balancer that asks for health chooses another node at once.
        let waits = !matches!(parts.uri.path(), "/healthz" | "/readyz");
        let passed = Request::from_parts(passed_head(&parts), Either::Right(body));
        match self.answered(passed, PassedTo::Home { waits }).await {
            Ok(answer) => passed_back(client, &parts, answer),
            Err(unanswered) => unanswered.response(),
        }
    }

    /// Passes a request on whose body was read.
    pub(super) async fn read_to(&self, to: PassedTo, parts: &Parts, body: Bytes) -> Response<Body> {
        let body = Either::Left(Full::new(body));
        let passed = Request::from_parts(read_head(parts), body);
        match self.answered(passed, to).await {
            Ok(answer) => passed_back((), parts, answer),
            Err(unanswered) => unanswered.response(),
        }
    }

    /// Passes a notification on to all other nodes, of which those count that take it in time.
    pub(super) async fn to_all(&self, parts: &Parts, body: &Bytes) {
        let slots = self.nodes.slots().into_iter();
        let all = slots.map(|slot| {
            let body = Either::Left(Full::new(body.clone()));
            let request = Request::from_parts(read_head(parts), body);
            self.answered(request, PassedTo::Slot(slot))
        });
        if timeout(ALL_WAIT, join_all(all)).await.is_err() {
            tracing::debug!("a node does not take a notification");
        }
    }

    /// The answer of a node. A request that an idle connection did not take is sent on another.
    async fn answered(
        &self,
        mut request: Request<PassedBody>,
        to: PassedTo,
    ) -> Result<Response<Incoming>, Unanswered> {
        let is_home = matches!(to, PassedTo::Home { .. });
        let idle = if is_home {
            self.idle.lock().take()
        } else {
            None
        };
        if let Some(mut sender) = idle
            && sender.ready().await.is_ok()
        {
            match sender.try_send_request(request).await {
                Ok(answer) => return Ok(self.keep(sender, answer)),
                Err(mut failed) => {
                    let unsent = failed.take_message();
                    request = unsent.ok_or(Unanswered::Lost)?;
                }
            }
        }
        let mut sender = self.connect(to).await?;
        match sender.try_send_request(request).await {
            Ok(answer) if is_home => Ok(self.keep(sender, answer)),
            Ok(answer) => Ok(answer),
            Err(failed) => {
                tracing::debug!(error = %failed.error(), "a request was lost with its node");
                Err(Unanswered::Lost)
            }
        }
    }

    fn keep(&self, sender: Sender, answer: Response<Incoming>) -> Response<Incoming> {
        *self.idle.lock() = Some(sender);
        answer
    }

    async fn connect(&self, to: PassedTo) -> Result<Sender, Unanswered> {
        let wire = self.nodes.reach(to, self.ends).await;
        let wire = TokioIo::new(wire.map_err(Unanswered::NoNode)?);
        let (sender, connection) = http1::handshake(wire).await.map_err(|_| Unanswered::Lost)?;
        // It ends with the sender and the last answer, or with the node.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::trace!(%error, "a connection to another node ended");
            }
        });
        Ok(sender)
    }
}

impl Unanswered {
    fn response(self) -> Response<Body> {
        let (status, body) = match self {
            Self::NoNode(NoNode(body)) => (StatusCode::SERVICE_UNAVAILABLE, body),
            Self::Lost => (StatusCode::BAD_GATEWAY, LOST),
        };
        let mut response = response::json(status, body);
        let headers = response.headers_mut();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        response
    }
}

/// The head of a request on its way to another node.
fn passed_head(parts: &Parts) -> Parts {
    let (mut passed, ()) = Request::new(()).into_parts();
    passed.method = parts.method.clone();
    passed.uri = parts.uri.clone();
    passed.version = Version::HTTP_11;
    passed.headers = passed_headers(&parts.headers);
    if let Some(to) = parts.headers.get(UPGRADE) {
        passed.headers.insert(UPGRADE, to.clone());
        let upgrade = HeaderValue::from_static("upgrade");
        passed.headers.insert(CONNECTION, upgrade);
    }
    passed
}

fn passed_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers.clone();
    for value in headers.get_all(CONNECTION) {
        let names = value.to_str().unwrap_or_default().split(',');
        for name in names {
            passed.remove(name.trim());
        }
    }
    for name in &OF_CONNECTION {
        passed.remove(name);
    }
    passed
}

/// The head of a request whose body was read, which may have another length than its client wrote.
fn read_head(parts: &Parts) -> Parts {
    let mut passed = passed_head(parts);
    passed.headers.remove(CONTENT_LENGTH);
    passed
}

/// A node's answer on its way to the client.
fn passed_back(
    client: impl Send + 'static,
    parts: &Parts,
    mut answer: Response<Incoming>,
) -> Response<Body> {
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS
        && let Some(of_client) = parts.extensions.get::<OnUpgrade>().cloned()
    {
        let of_node = upgrade::on(&mut answer);
        tokio::spawn(carry(client, of_client, of_node));
        return answer.map(|_| Body::empty());
    }
    let end = answer.headers().get(CONNECTION).cloned();
    let (mut head, body) = answer.into_parts();
    head.headers = passed_headers(&head.headers);
    if let Some(end) = end.filter(|value| value.as_bytes().eq_ignore_ascii_case(b"close")) {
        head.headers.insert(CONNECTION, end);
    }
    Response::from_parts(head, Body::Page(axum::body::Body::new(body), None))
}

/// Carries the bytes of a connection that is HTTP no more, until one side ends.
async fn carry(client: impl Send, of_client: OnUpgrade, of_node: OnUpgrade) {
    let (Ok(near), Ok(far)) = tokio::join!(of_client, of_node) else {
        return;
    };
    let (mut near, mut far) = (TokioIo::new(near), TokioIo::new(far));
    let carried = copy_bidirectional(&mut near, &mut far).await;
    tracing::trace!(?carried, "a connection that was passed on ended");
    // Its place is free from now on.
    drop(client);
}
