//! One POST outside of any link: a connection of its own, no redirects, bounds on size and time.

use std::time::Duration;

use bytes::Bytes;
use http::header::HOST;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use tls::ClientTls;
use tokio::time::timeout;

use super::{connect::Connector, endpoint};
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

/// An answer, with any status. A redirect is an answer like any other: credentials go nowhere else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posted {
    /// The status.
    pub status: StatusCode,
    /// The body.
    pub body: Bytes,
}

/// Sends one POST, over TLS as `tls` has it.
///
/// # Errors
/// Why there is no answer; [`LinkError::TooLarge`] if it is longer than allowed.
pub async fn post(request: Post, tls: ClientTls) -> Result<Posted, LinkError> {
    let limit = request.limit;
    timeout(limit, exchange(request, &tls))
        .await
        .unwrap_or(Err(LinkError::Timeout))
}

async fn exchange(post: Post, tls: &ClientTls) -> Result<Posted, LinkError> {
    let unusable = |why: &str| LinkError::Unreachable(why.to_owned());
    let url = endpoint::parse(&post.url).map_err(unusable)?;
    let host = url
        .authority()
        .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let mut request = Request::new(Full::new(post.body));
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
    let broken = |error: hyper::Error| LinkError::Broken(error.to_string());
    let socket = Connector::new(url, tls, post.limit).connect().await?;
    let (mut sender, connection) = http1::handshake(socket).await.map_err(broken)?;
    let exchange = async {
        let (head, body) = sender
            .send_request(request)
            .await
            .map_err(broken)?
            .into_parts();
        let body = Limited::new(body, post.bytes_max)
            .collect()
            .await
            .map_err(|error| {
                if error.is::<LengthLimitError>() {
                    LinkError::TooLarge
                } else {
                    LinkError::Broken(error.to_string())
                }
            })?;
        Ok(Posted {
            status: head.status,
            body: body.to_bytes(),
        })
    };
    // The connection runs beside the exchange, and ends with it.
    let (mut exchange, mut connection) = (std::pin::pin!(exchange), std::pin::pin!(connection));
    tokio::select! {
        biased;
        posted = &mut exchange => posted,
        _ = &mut connection => exchange.await,
    }
}
