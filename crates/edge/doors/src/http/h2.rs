//! Connection of HTTP/2 (RFC 9113): gRPC of proto-mcp, and whatever else is served over HTTP.
//!
//! A connection is HTTP/2 if it begins with the preface: with prior knowledge, or as ALPN chose it
//! below TLS.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Cursor;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use super::body::Body;
use super::connection::Connection;
use super::metered::Metered;
use super::places::Standing;
use super::progress::Progressing;
use super::timer::Alarm;

/// Requests that may be open on one connection.
pub(crate) const STREAMS_MAX: u32 = 100;
/// Bytes of one request that may be on their way.
const STREAM_WINDOW_BYTES: u32 = 256 * 1024;
/// Bytes of all requests of a connection that may be on their way.
const CONNECTION_WINDOW_BYTES: u32 = 1024 * 1024;
/// Bytes of one response that wait to be written.
const SEND_BUFFER_BYTES_MAX: usize = 64 * 1024;
/// Time between two pings to a client that is silent.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Time that a client has to answer a ping.
const PING_WAIT: Duration = Duration::from_secs(20);

/// The router that answers the requests, as over HTTP/1.
pub(super) trait Route: Clone + Send + Sync + 'static {
    /// Answers one request.
    fn route(
        &self,
        connection: Arc<Connection>,
        request: Request<Incoming>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// Serves a connection until it ends. `read` are bytes of it that were read before, the preface
/// first.
pub(super) async fn serve(
    socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    read: Bytes,
    kept: &Arc<Connection>,
    standing: Option<Arc<Standing>>,
    routes: impl Route,
) {
    let (input, output) = tokio::io::split(socket);
    let (input, meter) = Metered::new(Cursor::new(read).chain(input), kept);
    let socket = tokio::io::join(input, Progressing::new(output));
    let of_requests = Arc::clone(kept);
    let service = service_fn(move |request| {
        let connection = of_requests.of_request();
        let routes = routes.clone();
        async move { Ok::<_, Infallible>(timed(&connection, &routes, request).await) }
    });
    let header_bytes_max = kept.links.registry.limits().header_bytes_max;
    let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
        .max_header_list_size(u32::try_from(header_bytes_max).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_WAIT)
        .serve_connection(TokioIo::new(socket), service);
    let mut connection = pin!(connection);
    let mut stop = kept.stop();
    let mut stopping = pin!(async { drop(stop.wait_for(|stop| *stop).await) });
    let mut stopped = false;
    let ended = poll_fn(|cx| {
        if standing
            .as_ref()
            .is_some_and(|standing| standing.poll_evicted(cx).is_ready())
        {
            return Poll::Ready(Ok(()));
        }
        if !stopped && (stopping.as_mut().poll(cx).is_ready() || meter.asks_anew(&kept.client)) {
            stopped = true;
            connection.as_mut().graceful_shutdown();
        }
        connection.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = ended {
        tracing::trace!(%error, "connection ended");
    }
}

/// Answers a request, whose answer has a clock of its own: other than over HTTP/1, requests do not
/// follow each other.
async fn timed(
    connection: &Arc<Connection>,
    routes: &impl Route,
    mut request: Request<Incoming>,
) -> Response<Body> {
    // What HTTP/1 has as a header (RFC 9113, section 8.3.1).
    let authority = request
        .uri()
        .authority()
        .and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(authority) = authority
        && !request.headers().contains_key(HOST)
    {
        request.headers_mut().insert(HOST, authority);
    }
    let mut alarm = Alarm::new(&connection.quiet);
    let mut answer = pin!(routes.route(Arc::clone(connection), request));
    poll_fn(|cx| {
        let mut answered = Pin::new(&mut answer).poll(cx);
        while answered.is_pending() && alarm.poll(cx) {
            answered = Pin::new(&mut answer).poll(cx);
        }
        answered
    })
    .await
}
