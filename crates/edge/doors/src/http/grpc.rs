//! gRPC and gRPC-Web: proto-mcp's service, health and reflection (proto-mcp v1.0, "gRPC
//! Transport").
//!
//! Calls have no session: each names its participant by its token, and all calls of a participant
//! share a link.

mod kept;
mod looks;
mod reflect;
mod rpc;
mod status;

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;

use auth::Wire;
use bytes::Bytes;
use config::Config;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use model::{Refusal, RefusalCode};
use platform::Taken;
use tonic::Status;
use tower::{Layer as _, ServiceExt as _, service_fn};
use wire::proto::PayloadKind;
use wire::proto::grpc::{Raw, SERVICE, request_of};

use super::body::Body;
use super::connection::{Connection, Visit};
use super::head::{Head, HeaderField};
use super::metered::Questions;
use super::request::{not_allowed, read_body};
use crate::links::ClientLinks;
use kept::CountedBody;
use rpc::Rpc;

/// The header that names a topic other than `main`.
const TOPIC: &str = "mcp-topic";
/// The header with which a call says that its client reads schemas by reference: `true`.
const REFERENCES: &str = "mcp-supports-bsr-refs";
/// Bytes that frame a message: before it, and in gRPC-Web after it.
const FRAMING_BYTES: usize = 64;

/// Whether a request is gRPC or gRPC-Web.
pub(super) fn is_grpc(head: &Head<'_>) -> bool {
    matches!(head.content_type, HeaderField::Text(value) if value.starts_with("application/grpc"))
}

/// A body that is short, or has its own place on an account.
fn whole(body: axum::body::Body) -> Body {
    Body::Page(body, None)
}

/// The response to a request from elsewhere.
pub(super) fn refused(why: &str) -> Response<Body> {
    Status::permission_denied(why)
        .into_http::<axum::body::Body>()
        .map(whole)
}

/// The response to a request whose token is refused.
pub(super) fn refusal(refusal: &Refusal) -> Response<Body> {
    status::of_refusal(refusal, "")
        .into_http::<axum::body::Body>()
        .map(whole)
}

/// The response to one question too many of an address.
fn refused_for_now() -> Response<Body> {
    let status = Status::resource_exhausted("too many requests of your address wait");
    status.into_http::<axum::body::Body>().map(whole)
}

/// Serves one request.
pub(super) async fn serve(
    connection: &Arc<Connection>,
    config: &Config,
    (parts, body): (Parts, Incoming),
) -> Response<Body> {
    if parts.method != Method::POST {
        return not_allowed("POST", &parts.method);
    }
    if let Err(refusal) = auth::check_proto_listen(config.doors.listen, config.doors.tls.is_some())
    {
        return status::of_refusal(&refusal, "")
            .into_http::<axum::body::Body>()
            .map(whole);
    }
    let Some(method) = parts.uri.path().strip_prefix(SERVICE) else {
        let Some(place) = connection.place() else {
            return refused_for_now();
        };
        let request = Request::from_parts(parts, Questions::new(body, connection));
        return looks::serve(request, place).await;
    };
    let bytes_max = config.limits.body_bytes_max;
    let asked = match request_of(method) {
        Some(kind) => asked(connection, config, &parts, body)
            .await
            .map(|asked| (kind, asked)),
        None => {
            let refusal = Refusal::new(RefusalCode::Unsupported, "the service has no such method");
            Err(status::of_refusal(&refusal, ""))
        }
    };
    let (message, asked) = match asked {
        Ok((kind, (visit, message))) => (message, Ok((kind, visit))),
        Err(status) => (Bytes::new(), Err(status)),
    };
    let links = Arc::clone(&connection.links);
    let address = connection.peer;
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    let host: Option<Arc<str>> = Head::read(&parts.headers)
        .host
        .text()
        .or(authority)
        .map(Into::into);
    // Inside of gRPC-Web, so that each protocol has its own way to say a status.
    let service = service_fn(move |request: Request<tonic::body::Body>| {
        let links = Arc::clone(&links);
        let host = host.clone();
        let asked = asked.clone();
        let place = CallPlace {
            links,
            host,
            address,
        };
        async move { Ok::<_, Infallible>(answered(place, asked, bytes_max, request).await) }
    });
    let request = Request::from_parts(parts, Full::new(message));
    match tonic_web::GrpcWebLayer::new()
        .layer(service)
        .oneshot(request)
        .await
    {
        Ok(mut response) => {
            let taken = response.extensions_mut().remove::<Arc<Taken>>();
            response.map(|body| whole(axum::body::Body::new(CountedBody { body, taken })))
        }
        Err(never) => match never {},
    }
}

/// The two ends of a call.
struct CallPlace {
    links: Arc<ClientLinks>,
    /// The gateway as the caller names it.
    host: Option<Arc<str>>,
    /// The caller's address.
    address: Option<IpAddr>,
}

/// The response to a request as gRPC has it.
async fn answered(
    place: CallPlace,
    asked: Result<(PayloadKind, Arc<Visit>), Status>,
    bytes_max: usize,
    request: Request<tonic::body::Body>,
) -> Response<tonic::body::Body> {
    let (kind, visit) = match asked {
        Ok(asked) => asked,
        Err(status) => return status.into_http(),
    };
    let headers = request.headers();
    let timeout = rpc::timeout(headers);
    let trace = Head::read(headers).trace(headers);
    let CallPlace {
        links,
        host,
        address,
    } = place;
    let references = host.is_some() && headers.get(REFERENCES).is_some_and(|value| value == "true");
    let rpc = Arc::new(Rpc {
        links,
        visit,
        host,
        references,
        kind,
        trace,
        address,
        timeout,
        bytes_max,
    });
    let call = service_fn(move |request: tonic::Request<Bytes>| {
        let rpc = Arc::clone(&rpc);
        async move { rpc.call(request.into_inner()).await }
    });
    // The whole body is bounded, and the call says so in the contract's words.
    let server = tonic::server::Grpc::new(Raw).max_decoding_message_size(usize::MAX);
    server
        .max_encoding_message_size(usize::MAX)
        .unary(call, request)
        .await
}

/// The participant that asks, and the whole body of its request.
async fn asked(
    connection: &Connection,
    config: &Config,
    parts: &Parts,
    body: Incoming,
) -> Result<(Arc<Visit>, Bytes), Status> {
    let refused = |refusal: Refusal| status::of_refusal(&refusal, "");
    let topic = topic_of(&parts.headers)?;
    let visit = connection
        .visit(&Head::read(&parts.headers), topic, Wire::Proto)
        .map_err(refused)?;
    let limit = config.limits.body_bytes_max.saturating_add(FRAMING_BYTES);
    let body = read_body(limit, &visit.held, body)
        .await
        .map_err(|refused| match refused.status() {
            StatusCode::PAYLOAD_TOO_LARGE => status::of_refusal(
                &Refusal::new(RefusalCode::TooLarge, "the message is too long"),
                "",
            ),
            StatusCode::REQUEST_TIMEOUT => Status::deadline_exceeded("the message took too long"),
            StatusCode::BAD_REQUEST => Status::cancelled("the message broke off"),
            _ => status::of_refusal(
                &Refusal::new(RefusalCode::Overloaded, "too many bytes wait already"),
                "",
            ),
        })?;
    Ok((visit, body))
}

/// The topic that a request names.
fn topic_of(headers: &HeaderMap) -> Result<&str, Status> {
    let mut named = headers.get_all(TOPIC).iter();
    match (named.next(), named.next()) {
        (None, _) => Ok("main"),
        (Some(one), None) => one
            .to_str()
            .map_err(|_| Status::invalid_argument("mcp-topic is no text")),
        (Some(_), Some(_)) => Err(Status::invalid_argument("mcp-topic has two values")),
    }
}
