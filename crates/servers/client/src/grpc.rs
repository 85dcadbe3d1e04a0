//! Link to a proto-mcp server over gRPC: each message of the link becomes a call of the service,
//! its answer a message again.

use std::collections::HashMap;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use foldhash::fast::RandomState;
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use platform::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Code, Status};
use tower::Service;
use wire::proto::grpc::{Raw, SERVICE, error_of, method_of};
use wire::proto::{Content, PayloadKind, ProtoEnvelope, message};

use crate::error::{LinkError, SendError};
use crate::http::{HttpSpec, connect::Connector, endpoint};
use crate::queue::{closed, take};
use crate::transport::{Closing, LinkInbox, LinkTransport, SendMeta};

/// Time between two pings on the connection, and the time that the server has to answer one.
const PING: Duration = Duration::from_secs(30);
/// Method that a sign of life calls; a server without it says so, which is one too.
const HEALTH: &str = "/grpc.health.v1.Health/Check";
/// Bytes of requests that may be open: what waits in the connection is not bounded otherwise.
const OPEN_BYTES_MAX: usize = 16 << 20;

/// A link over one connection of HTTP/2. Dropping it closes the connection.
pub(crate) struct GrpcLink {
    calls: Arc<Calls>,
    close: watch::Sender<bool>,
    ended: watch::Receiver<bool>,
}

/// State that the calls of a link share.
struct Calls {
    service: Http2,
    origin: Uri,
    headers: HeaderMap,
    inbox: Arc<dyn LinkInbox>,
    requests_max: usize,
    answer_bytes_max: usize,
    open: Mutex<Open>,
}

/// Calls that wait for their answers.
#[derive(Default)]
struct Open {
    /// By number, with the bytes of the request; none has an answer yet.
    calls: HashMap<u64, (AbortHandle, usize), RandomState>,
    bytes: usize,
    closed: bool,
}

impl GrpcLink {
    /// Connects to the origin of a URL.
    pub(crate) async fn connect(
        spec: &HttpSpec,
        inbox: Arc<dyn LinkInbox>,
    ) -> Result<Self, LinkError> {
        let url =
            endpoint::parse(&spec.url).map_err(|why| LinkError::Unreachable(why.to_owned()))?;
        let socket =
            Connector::new(url.clone(), &spec.tls, spec.limits.connect).through_proxy(false);
        let socket = socket.http2().connect().await?;
        let limits = &spec.limits;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(PING)
            .keep_alive_timeout(PING)
            .keep_alive_while_idle(true)
            .handshake(socket)
            .await
            .map_err(|error| LinkError::Unreachable(error.to_string()))?;
        let calls = Arc::new(Calls {
            service: Http2(sender),
            origin: url,
            headers: spec.headers.clone(),
            inbox,
            requests_max: limits.requests_max,
            answer_bytes_max: limits.frame_bytes_max,
            open: Mutex::default(),
        });
        let (close, mut closing) = watch::channel(false);
        let (done, ended) = watch::channel(false);
        let of_connection = Arc::clone(&calls);
        tokio::spawn(async move {
            let why = tokio::select! {
                end = connection => match end {
                    Ok(()) => LinkError::Broken("the server closed the connection".to_owned()),
                    Err(error) => LinkError::Broken(error.to_string()),
                },
                () = closed(&mut closing) => LinkError::Closed,
            };
            of_connection.end();
            of_connection.inbox.closed(why);
            let _ = done.send(true);
        });
        Ok(Self {
            calls,
            close,
            ended,
        })
    }
}

impl LinkTransport for GrpcLink {
    fn send(&self, frame: Bytes, meta: SendMeta) -> Result<(), SendError> {
        let Some(number) = meta.request else {
            // A call has an answer.
            return Ok(());
        };
        let len = frame.len();
        let mut open = self.calls.open.lock();
        if open.closed {
            return Err(SendError::Closed);
        }
        if len >= OPEN_BYTES_MAX {
            return Err(SendError::TooLarge);
        }
        if open.calls.len() >= self.calls.requests_max || open.bytes + len >= OPEN_BYTES_MAX {
            return Err(SendError::Busy);
        }
        let taken = meta
            .unsent
            .as_ref()
            .map(|share| take(share, len))
            .transpose()?;
        let calls = Arc::clone(&self.calls);
        // It takes the lock before it ends, so that it finds itself among the open ones.
        let call = tokio::spawn(async move {
            calls.run(number, &frame).await;
            drop(taken);
        });
        open.bytes += len;
        open.calls.insert(number, (call.abort_handle(), len));
        Ok(())
    }

    fn cancel(&self, request: u64) {
        if let Some(call) = self.calls.open.lock().settle(request) {
            call.abort();
        }
    }

    fn close(&self) -> Closing<'_> {
        let _ = self.close.send(true);
        let mut ended = self.ended.clone();
        Box::pin(async move {
            let _ = ended.wait_for(|ended| *ended).await;
        })
    }
}

fn unsendable() -> LinkError {
    LinkError::Malformed("the service has no method for this message".to_owned())
}

impl Open {
    fn settle(&mut self, number: u64) -> Option<AbortHandle> {
        let (call, len) = self.calls.remove(&number)?;
        self.bytes -= len;
        Some(call)
    }
}

impl Calls {
    /// Makes one call, and hands its answer to the inbox.
    async fn run(&self, number: u64, frame: &Bytes) {
        let answer = self.answer(frame).await;
        if self.open.lock().settle(number).is_none() {
            // It was cancelled, or the link has ended.
            return;
        }
        match answer {
            Ok(field) => drop(self.inbox.frame(message(number, &field), None)),
            Err(error) => self.inbox.failed(number, error),
        }
    }

    /// The payload field that answers a message; empty for a sign of life.
    async fn answer(&self, frame: &Bytes) -> Result<Bytes, LinkError> {
        let Ok(ProtoEnvelope { content, .. }) = ProtoEnvelope::read(frame) else {
            return Err(unsendable());
        };
        let Content::Payload(_, field) = content else {
            return match self.call(HEALTH, Bytes::new()).await {
                Ok(_) => Ok(Bytes::new()),
                Err(status) => self.failed(&status).map(|_| Bytes::new()),
            };
        };
        let Some((kind, asked)) = PayloadKind::split(&field) else {
            return Err(unsendable());
        };
        let Some((method, answer)) = method_of(kind) else {
            return Err(unsendable());
        };
        match self.call(&format!("{SERVICE}{method}"), asked).await {
            Ok(message) => Ok(answer.field(&message)),
            Err(status) => self.failed(&status),
        }
    }

    async fn call(&self, path: &str, message: Bytes) -> Result<Bytes, Status> {
        let path: PathAndQuery = path.parse().map_err(|_| Status::internal("no path"))?;
        let grpc = Grpc::with_origin(self.service.clone(), self.origin.clone());
        let mut grpc = grpc.max_decoding_message_size(self.answer_bytes_max);
        let mut request = tonic::Request::new(message);
        *request.metadata_mut() = MetadataMap::from_headers(self.headers.clone());
        Ok(grpc.unary(request, path, Raw).await?.into_inner())
    }

    /// End of a call with this status: the server's own error, or that there is no answer.
    fn failed(&self, status: &Status) -> Result<Bytes, LinkError> {
        let is_broken = std::error::Error::source(status).is_some();
        match status.code() {
            _ if is_broken => Err(LinkError::Broken(status.message().to_owned())),
            Code::Unauthenticated => Err(LinkError::Unauthorized),
            _ => Ok(PayloadKind::ErrorResponse.field_of(&error_of(status))),
        }
    }

    /// Ends all calls. The inbox learns of it from the end of the link.
    fn end(&self) {
        let mut open = self.open.lock();
        open.closed = true;
        open.calls.drain().for_each(|(_, (call, _))| call.abort());
    }
}

/// A connection of HTTP/2 as a service: requests wait in it until the server takes more.
#[derive(Clone)]
struct Http2(SendRequest<tonic::body::Body>);

impl Service<Request<tonic::body::Body>> for Http2 {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<tonic::body::Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
