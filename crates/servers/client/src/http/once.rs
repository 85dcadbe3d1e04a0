//! Exchanges outside of any link: a connection of its own for each, no redirects, bounds on size and
//! time.

use std::error::Error;
use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use tls::ClientTls;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;

use super::{ApiAnswer, connect::Connector, endpoint};
use crate::error::LinkError;

/// A request.
#[derive(Debug, Clone)]
pub struct Post {
    /// An absolute `http` or `https` URL.
    pub url: String,
    /// Its headers, without `Host`.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
    /// The longest body of an answer, in bytes.
    pub bytes_max: usize,
    /// The time from the first byte to the last.
    pub limit: Duration,
}

/// Opens a connection to the origin of a URL, over TLS as `tls` has it. No proxy of the environment
/// is between. `limit` is the time to connect, TLS included.
///
/// # Errors
/// [`LinkError::Untrusted`] when this machine does not trust the certificate, else
/// [`LinkError::Unreachable`].
pub async fn dial(
    url: &str,
    tls: &ClientTls,
    limit: Duration,
) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, LinkError> {
    let url = endpoint::parse(url).map_err(|why| LinkError::Unreachable(why.to_owned()))?;
    let socket = Connector::new(url, tls, limit).connect().await?;
    Ok(TokioIo::new(socket))
}

/// Sends one request on an open connection, which serves no other one, and reads its answer of at
/// most this many bytes. A redirect is an answer like any other: credentials go nowhere else.
///
/// # Errors
/// [`LinkError::Broken`]; [`LinkError::TooLarge`] if the answer is longer than allowed.
pub async fn exchange(
    connection: impl AsyncRead + AsyncWrite + Send + Unpin,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<ApiAnswer, LinkError> {
    exchange_on(TokioIo::new(connection), request, bytes_max).await
}

/// Sends one POST, over TLS as `tls` has it.
///
/// # Errors
/// Why there is no answer; [`LinkError::TooLarge`] if it is longer than allowed.
pub async fn post(request: Post, tls: ClientTls) -> Result<ApiAnswer, LinkError> {
    let limit = request.limit;
    timeout(limit, post_within(request, &tls))
        .await
        .unwrap_or(Err(LinkError::Timeout))
}

async fn post_within(post: Post, tls: &ClientTls) -> Result<ApiAnswer, LinkError> {
    let unusable = |why: &str| LinkError::Unreachable(why.to_owned());
    let url = endpoint::parse(&post.url).map_err(unusable)?;
    let host = url
        .authority()
        .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let mut request = Request::new(post.body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = post.headers;
    request.headers_mut().insert(
        HOST,
        host.ok_or_else(|| unusable("the host is not a valid name"))?,
    );
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path
        .parse()
        .map_err(|_| unusable("the path cannot be read"))?;
    let socket = Connector::new(url, tls, post.limit).connect().await?;
    exchange_on(socket, request, post.bytes_max).await
}

async fn exchange_on(
    socket: impl Read + Write + Send + Unpin,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<ApiAnswer, LinkError> {
    let (mut sender, connection) = http1::handshake(socket).await.map_err(|why| broken(&why))?;
    let exchange = async {
        let answer = sender.send_request(request.map(Full::new)).await;
        let (head, body) = answer.map_err(|why| broken(&why))?.into_parts();
        let body = Limited::new(body, bytes_max).collect().await;
        let body = body.map_err(|error| {
            if error.is::<LengthLimitError>() {
                LinkError::TooLarge
            } else {
                broken(&*error)
            }
        })?;
        Ok(ApiAnswer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    };
    // The connection runs beside the exchange, and ends with it.
    let (mut exchange, mut connection) = (std::pin::pin!(exchange), std::pin::pin!(connection));
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}

/// The connection broke: what TLS says about it, or the innermost cause. The errors around it say
/// only which step failed.
fn broken(error: &(dyn Error + 'static)) -> LinkError {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    LinkError::Broken(tls::reason_in(error).unwrap_or_else(|| cause.to_string()))
}
