//! Dialing: TCP, TLS for `https`, one time limit for both, the proxies of the environment, and the
//! socket that hyper reads and writes.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::sync::{Arc, LazyLock};
use std::task::{Context, Poll};
use std::{error::Error, pin::Pin, time::Duration};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsError, InvalidMessage};
use tower::{Service, ServiceExt};

use crate::error::LinkError;

#[cfg(test)]
mod tests;

/// The proxies of `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY`, in either case of
/// letters, as they were at the start.
static PROXIES: LazyLock<Matcher> = LazyLock::new(Matcher::from_env);

/// The proxy between this machine and a server.
#[derive(Debug, Clone)]
struct Proxy {
    uri: Uri,
    authorization: Option<HeaderValue>,
    /// Whether it passes bytes on (`CONNECT`), or the requests that name their server.
    is_tunnel: bool,
}

impl Proxy {
    /// The proxy that the environment names for a URL; none for this machine's own addresses.
    fn of(url: &Uri) -> Option<Intercept> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_local = host.eq_ignore_ascii_case("localhost")
            || host
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if is_local {
            return None;
        }
        PROXIES.intercept(url)
    }
}

/// Opens connections to one origin.
///
/// TLS offers HTTP/1.1 alone. With HTTP/2 all requests of a link would share one connection, and a
/// server bounds the requests that are open on it: the answer to a server's question, or a
/// cancellation, would wait behind the very calls that wait for it. A server that closes the
/// connection in order would also fail calls that it never ran. gRPC asks for HTTP/2.
#[derive(Debug, Clone)]
pub(crate) struct Connector(Arc<Target>);

#[derive(Debug)]
struct Target {
    url: Uri,
    tls: ClientTls,
    limit: Duration,
    http2: bool,
    proxy: Option<Proxy>,
}

impl Connector {
    /// A connector to the origin of this URL. `limit` is the time to connect, TLS included.
    pub(crate) fn new(url: Uri, tls: &ClientTls, limit: Duration) -> Self {
        Self(Arc::new(Target {
            url,
            tls: tls.clone(),
            limit,
            http2: false,
            proxy: None,
        }))
    }

    /// A connector through the proxy that the environment names for the URL, if it names one. With
    /// `names_server` the proxy passes requests without TLS on: then each names its server.
    pub(crate) fn through_proxy(self, names_server: bool) -> Self {
        let Target {
            url,
            tls,
            limit,
            http2,
            ..
        } = &*self.0;
        let is_tunnel = !names_server || url.scheme() == Some(&Scheme::HTTPS);
        let proxy = Proxy::of(url).map(|found| Proxy {
            uri: found.uri().clone(),
            authorization: found.basic_auth().cloned(),
            is_tunnel,
        });
        Self(Arc::new(Target {
            url: url.clone(),
            tls: tls.clone(),
            limit: *limit,
            http2: *http2,
            proxy,
        }))
    }

    /// Whether a proxy reads the requests and passes them on, so that each must name its server.
    pub(crate) fn is_passed_on(&self) -> bool {
        self.0.proxy.as_ref().is_some_and(|proxy| !proxy.is_tunnel)
    }

    /// The credentials that each request has for a proxy that passes it on.
    pub(crate) fn proxy_authorization(&self) -> Option<HeaderValue> {
        let proxy = self.0.proxy.as_ref().filter(|proxy| !proxy.is_tunnel)?;
        let mut authorization = proxy.authorization.clone()?;
        authorization.set_sensitive(true);
        Some(authorization)
    }

    /// The target for HTTP/2 alone.
    pub(crate) fn http2(self) -> Self {
        let Target {
            url,
            tls,
            limit,
            proxy,
            ..
        } = &*self.0;
        let url = url.clone();
        let tls = tls.clone();
        let limit = *limit;
        let proxy = proxy.clone();
        Self(Arc::new(Target {
            url,
            tls,
            limit,
            http2: true,
            proxy,
        }))
    }

    /// Opens one connection.
    ///
    /// # Errors
    /// [`LinkError::Untrusted`] when this machine does not trust the certificate,
    /// [`LinkError::NotTls`] when the server speaks no TLS, else [`LinkError::Unreachable`].
    pub(crate) async fn connect(self) -> Result<HttpSocket, LinkError> {
        match timeout(self.0.limit, open(&self.0)).await {
            Ok(opened) => opened,
            Err(_) => Err(LinkError::Unreachable(
                "connecting took too long".to_owned(),
            )),
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

async fn open(target: &Target) -> Result<HttpSocket, LinkError> {
    let Some(proxy) = &target.proxy else {
        return Ok(HttpSocket {
            stream: reach(target, tcp()).await?,
            is_passed_on: false,
        });
    };
    if proxy.uri.scheme() != Some(&Scheme::HTTP) {
        let why = "the proxy of the environment has no http:// URL";
        return Err(LinkError::Unreachable(why.to_owned()));
    }
    let stream = if proxy.is_tunnel {
        let tunnel = Tunnel::new(proxy.uri.clone(), tcp());
        let tunnel = match proxy.authorization.clone() {
            Some(authorization) => tunnel.with_auth(authorization),
            None => tunnel,
        };
        reach(target, tunnel).await
    } else {
        plain(proxy.uri.clone(), tcp()).await
    };
    Ok(HttpSocket {
        stream: stream.map_err(through_proxy)?,
        is_passed_on: !proxy.is_tunnel,
    })
}

/// The failure of a connection through a proxy. What the server itself said to TLS is no matter of
/// the proxy.
fn through_proxy(failure: LinkError) -> LinkError {
    match failure {
        LinkError::Unreachable(why) => {
            LinkError::Unreachable(format!("through the proxy of the environment: {why}"))
        }
        other => other,
    }
}

/// What carries the bytes of a connection: a socket, with or without TLS.
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// Opens a connection to the target, over TLS where its URL says so.
async fn reach<C>(target: &Target, over: C) -> Result<Stream, LinkError>
where
    C: Service<Uri, Response = TokioIo<TcpStream>>,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
    C::Future: Send + 'static,
{
    let url = target.url.clone();
    if url.scheme() != Some(&Scheme::HTTPS) {
        return plain(url, over).await;
    }
    secure(&target.tls, target.http2, over)
        .map_err(|error| link_error(&error))?
        .oneshot(url)
        .await
        .map_err(|error| link_error(&*error))
}

/// Opens a connection without TLS.
async fn plain<C>(url: Uri, over: C) -> Result<Stream, LinkError>
where
    C: Service<Uri, Response = TokioIo<TcpStream>>,
    C::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match over.oneshot(url).await {
        Ok(stream) => Ok(MaybeHttpsStream::Http(stream)),
        Err(error) => Err(link_error(&*error.into())),
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    tcp
}

/// The connector for `https`.
fn secure<C>(tls: &ClientTls, http2: bool, over: C) -> Result<HttpsConnector<C>, tls::TlsError> {
    let builder =
        HttpsConnectorBuilder::new().with_tls_config(ClientConfig::clone(&*tls.config()?));
    let builder = builder.https_only();
    Ok(if http2 {
        builder.enable_http2().wrap_connector(over)
    } else {
        builder.enable_http1().wrap_connector(over)
    })
}

/// Why a certificate is not trusted.
fn untrusted(why: &CertificateError) -> String {
    let written = why.to_string();
    // The verifier has no name of its own for this one.
    if written.contains("CaUsedAsEndEntity") {
        "it was signed with itself, by no authority that this machine knows".to_owned()
    } else {
        written
    }
}

/// The cause of a failed connection: the innermost, unless one is known. The errors around it say
/// only which step failed.
fn link_error(error: &(dyn Error + 'static)) -> LinkError {
    let mut cause = error;
    loop {
        if let Some(TlsError::InvalidCertificate(why)) = cause.downcast_ref() {
            return LinkError::Untrusted(untrusted(why));
        }
        if let Some(TlsError::InvalidMessage(InvalidMessage::InvalidContentType)) =
            cause.downcast_ref()
        {
            return LinkError::NotTls;
        }
        // The source of an I/O error is the source of the error inside it.
        let inner = cause
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        match inner
            .map(|inner| inner as &(dyn Error + 'static))
            .or_else(|| cause.source())
        {
            Some(next) => cause = next,
            None => return LinkError::Unreachable(cause.to_string()),
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub(crate) struct HttpSocket {
    stream: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether a proxy reads the requests and passes them on.
    is_passed_on: bool,
}

impl Connection for HttpSocket {
    /// Nothing, where the stream inside would have its addresses copied into the extensions of each
    /// response.
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.is_passed_on)
    }
}

impl Read for HttpSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl Write for HttpSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }
}
