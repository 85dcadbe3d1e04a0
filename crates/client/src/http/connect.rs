//! Dialing: TCP, TLS for `https`, one time limit for both, and the socket that hyper reads and writes.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::{error::Error, pin::Pin, time::Duration};

use http::{Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};
use tower::{Service, ServiceExt};

use crate::error::LinkError;

/// Opens connections to one origin.
///
/// TLS offers HTTP/1.1 alone. With HTTP/2 all requests of a link would share one connection, and a server bounds the
/// requests that are open on it: the answer to a server's question, or a cancellation, would wait behind the very calls
/// that wait for it. A server that closes the connection in order would also fail calls that it never ran. gRPC asks for HTTP/2.
#[derive(Debug, Clone)]
pub(crate) struct Connector(Arc<Target>);

#[derive(Debug)]
struct Target {
    url: Uri,
    tls: ClientTls,
    limit: Duration,
    http2: bool,
}

impl Connector {
    /// A connector to the origin of this URL. `limit` is the time to connect, TLS included.
    pub(crate) fn new(url: Uri, tls: &ClientTls, limit: Duration) -> Self {
        Self(Arc::new(Target { url, tls: tls.clone(), limit, http2: false }))
    }

    /// The same, for HTTP/2 alone.
    pub(crate) fn http2(self) -> Self {
        let Target { url, tls, limit, .. } = &*self.0;
        Self(Arc::new(Target { url: url.clone(), tls: tls.clone(), limit: *limit, http2: true }))
    }

    /// Opens one connection.
    ///
    /// # Errors
    /// [`LinkError::Untrusted`] when this machine does not trust the certificate, else [`LinkError::Unreachable`].
    pub(crate) async fn connect(self) -> Result<HttpSocket, LinkError> {
        match timeout(self.0.limit, open(&self.0)).await {
            Ok(opened) => opened.map_err(|error| link_error(&*error)),
            Err(_) => Err(LinkError::Unreachable("connecting took too long".to_owned())),
        }
    }
}

/// For hyper's client. The URI of a request does not matter: there is one origin.
impl Service<Uri> for Connector {
    type Response = HttpSocket;
    type Error = LinkError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpSocket, LinkError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), LinkError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        Box::pin(self.clone().connect())
    }
}

async fn open(target: &Target) -> Result<HttpSocket, Box<dyn Error + Send + Sync>> {
    let url = target.url.clone();
    let stream = if url.scheme() == Some(&Scheme::HTTPS) {
        secure(&target.tls, target.http2)?.oneshot(url).await?
    } else {
        MaybeHttpsStream::Http(tcp().oneshot(url).await?)
    };
    Ok(HttpSocket(stream))
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    tcp
}

/// The connector for `https`.
fn secure(tls: &ClientTls, http2: bool) -> Result<HttpsConnector<HttpConnector>, tls::TlsError> {
    let builder = HttpsConnectorBuilder::new().with_tls_config(ClientConfig::clone(&*tls.config()?));
    let builder = builder.https_only();
    Ok(match http2 {
        true => builder.enable_http2().wrap_connector(tcp()),
        false => builder.enable_http1().wrap_connector(tcp()),
    })
}

/// The innermost cause of a failed connection. The errors around it say only which step failed.
fn link_error(error: &(dyn Error + 'static)) -> LinkError {
    let mut cause = error;
    loop {
        if let Some(TlsError::InvalidCertificate(_)) = cause.downcast_ref() {
            return LinkError::Untrusted(cause.to_string());
        }
        // The source of an I/O error is the source of the error inside it.
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        match inner.map(|inner| inner as &(dyn Error + 'static)).or_else(|| cause.source()) {
            Some(next) => cause = next,
            None => return LinkError::Unreachable(cause.to_string()),
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct HttpSocket(MaybeHttpsStream<TokioIo<TcpStream>>);

impl Connection for HttpSocket {
    /// Nothing, where the stream inside would have its addresses copied into the extensions of each response.
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for HttpSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl Write for HttpSocket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, pieces)
    }
}
