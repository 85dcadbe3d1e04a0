//! Connections to one origin, kept alive between requests.
//!
//! Owns dialling. Speaks hyper's http1 directly: a connection is one task and one `SendRequest`.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use platform::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls::Error as TlsError;

use super::origin::Origin;
use super::tls;
use crate::contract::LinkFailure;

/// An idle connection is not used again after this long: common servers close theirs after 5 s, and a request that
/// meets a closing connection could not be repeated safely.
const IDLE_MAX: Duration = Duration::from_secs(4);

/// The sending half of one connection.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// The connections to one origin.
#[derive(Debug)]
pub(super) struct Pool {
    origin: Origin,
    idle: Mutex<Vec<(Sender, Instant)>>,
    idle_max: usize,
    connect: Duration,
}

impl Pool {
    pub(super) fn new(origin: Origin, idle_max: usize, connect: Duration) -> Self {
        Self { origin, idle: Mutex::default(), idle_max, connect }
    }

    /// Sends one request. The sender comes back with the answer; give it to [`Pool::put`] once the body was read.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Sender), LinkFailure> {
        while let Some(mut sender) = self.take() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                // Given back unsent: the connection had been closed. Try the next one.
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(LinkFailure::Broken(error.into_error().to_string())),
                },
            }
        }
        // Seldom needed, and large: it must not make every request's task larger.
        let mut sender = Box::pin(self.dial()).await?;
        let response =
            sender.send_request(request).await.map_err(|error| LinkFailure::Broken(error.to_string()))?;
        Ok((response, sender))
    }

    fn take(&self) -> Option<Sender> {
        let mut idle = self.idle.lock();
        while let Some((sender, since)) = idle.pop() {
            if since.elapsed() > IDLE_MAX {
                // The last in is the first out, so all that remain are older.
                idle.clear();
                return None;
            }
            if sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    /// Takes back a connection whose answer was read to its end.
    pub(super) async fn put(&self, mut sender: Sender) {
        if sender.ready().await.is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < self.idle_max {
                idle.push((sender, Instant::now()));
            }
        }
    }

    /// Closes what is idle.
    pub(super) fn clear(&self) {
        self.idle.lock().clear();
    }

    async fn dial(&self) -> Result<Sender, LinkFailure> {
        let dialled = timeout(self.connect, async {
            let tcp = TcpStream::connect((self.origin.host.as_str(), self.origin.port)).await?;
            tcp.set_nodelay(true)?;
            match &self.origin.tls {
                None => start(tcp).await,
                Some(name) => start(tls::connector()?.connect(name.clone(), tcp).await?).await,
            }
        });
        match dialled.await {
            Ok(Ok(sender)) => Ok(sender),
            Ok(Err(error)) if is_distrust(&error) => Err(LinkFailure::Untrusted(error.to_string())),
            Ok(Err(error)) => Err(LinkFailure::Unreachable(error.to_string())),
            Err(_) => Err(LinkFailure::Unreachable("connecting took too long".to_owned())),
        }
    }
}

/// Whether a connection failed because its certificate was not accepted.
fn is_distrust(error: &io::Error) -> bool {
    let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>());
    matches!(tls, Some(TlsError::InvalidCertificate(_)))
}

async fn start(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<Sender> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection to an upstream ended");
        }
    });
    Ok(sender)
}
