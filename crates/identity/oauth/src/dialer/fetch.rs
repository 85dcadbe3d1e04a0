//! One request and its answer over a connection to a checked address.

use bytes::Bytes;
use client::LinkError;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::{Host, Position, Url};

use super::target::{BODY_BYTES_MAX, DialError, host_of, parse_url};

/// Redirects that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// None: tokens, registrations, keys and documents of clients are where they are said to be.
    None,
    /// [`super::REDIRECTS_MAX`] within one origin, each checked like the first address: metadata.
    SameOrigin,
}

/// A request to make.
#[derive(Clone)]
pub struct FetchRequest {
    pub(super) url: Url,
    pub(super) redirects: Redirects,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
    bytes_max: usize,
}

impl FetchRequest {
    /// `GET` for JSON; no redirects.
    ///
    /// # Errors
    /// [`DialError::Url`], as [`parse_url`].
    pub fn get(url: &str) -> Result<Self, DialError> {
        Ok(Self::new(Method::GET, parse_url(url)?, Bytes::new()))
    }

    /// `POST` of this body, for JSON; never redirected.
    ///
    /// # Errors
    /// [`DialError::Url`], as [`parse_url`].
    pub fn post(url: &str, content_type: &'static str, body: Bytes) -> Result<Self, DialError> {
        let mut fetch = Self::new(Method::POST, parse_url(url)?, body);
        fetch
            .headers
            .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        Ok(fetch)
    }

    fn new(method: Method, url: Url, body: Bytes) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let agent = concat!("portmoot/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        Self {
            url,
            redirects: Redirects::None,
            method,
            headers,
            body,
            bytes_max: BODY_BYTES_MAX,
        }
    }

    /// The fetch, following redirects of one origin. A `POST` follows none.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        if self.method == Method::GET {
            self.redirects = redirects;
        }
        self
    }

    /// The fetch with one more header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The fetch, for an answer of at most this many bytes.
    #[must_use]
    pub fn bytes_max(mut self, bytes: usize) -> Self {
        self.bytes_max = bytes;
        self
    }

    fn request(&self) -> Result<Request<Bytes>, http::Error> {
        let mut request = Request::new(self.body.clone());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url[Position::BeforePath..Position::AfterQuery]
            .parse()
            .map_err(http::Error::from)?;
        let authority = &self.url[Position::BeforeHost..Position::AfterPort];
        *request.headers_mut() = self.headers.clone();
        request
            .headers_mut()
            .insert(HOST, HeaderValue::from_str(authority)?);
        Ok(request)
    }
}

/// An answer.
#[derive(Clone)]
pub struct Fetched {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, whole.
    pub body: Bytes,
}

impl Fetched {
    /// Address to which the answer points, if it is a redirect.
    pub(super) fn redirect(&self) -> Option<&str> {
        // 304 is no redirect: it answers `If-None-Match`.
        let redirects = matches!(self.status.as_u16(), 301 | 302 | 303 | 307 | 308);
        let to = self
            .headers
            .get(LOCATION)
            .map(|to| to.to_str().unwrap_or_default());
        redirects.then(|| to.unwrap_or_default())
    }
}

/// Sends the request and reads the answer.
pub(super) async fn exchange(
    stream: TcpStream,
    fetch: &FetchRequest,
    tls: &ClientTls,
) -> Result<Fetched, DialError> {
    if fetch.url.scheme() == "http" {
        return over(stream, fetch).await;
    }
    let name = match fetch.url.host() {
        Some(Host::Ipv6(address)) => address.to_string(),
        Some(Host::Ipv4(_) | Host::Domain(_)) | None => host_of(&fetch.url),
    };
    let stream = tls
        .connect(&name, stream)
        .await
        .map_err(|error| unreachable(fetch, &error))?;
    over(stream, fetch).await
}

async fn over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin,
    fetch: &FetchRequest,
) -> Result<Fetched, DialError> {
    let request = fetch
        .request()
        .map_err(|error| unreachable(fetch, &error))?;
    let host = host_of(&fetch.url);
    let max = fetch.bytes_max;
    match client::exchange(stream, request, max).await {
        Ok(answer) => Ok(Fetched {
            status: answer.status,
            headers: answer.headers,
            body: answer.body,
        }),
        Err(LinkError::TooLarge) => Err(DialError::TooLong { host, max }),
        Err(LinkError::Broken(why)) => Err(DialError::Unreachable { host, why }),
        Err(other) => Err(unreachable(fetch, &other)),
    }
}

/// The innermost cause of a failure: the errors around it say only which step failed.
fn unreachable(fetch: &FetchRequest, error: &(dyn std::error::Error + 'static)) -> DialError {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    DialError::Unreachable {
        host: host_of(&fetch.url),
        why: cause.to_string(),
    }
}
