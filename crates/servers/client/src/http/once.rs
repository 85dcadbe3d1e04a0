//! Exchanges outside of any link: a connection of its own for each, no redirects, bounds on size and
//! time.

use std::error::Error;
use std::fmt::{self, Debug, Formatter};
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

use super::api_message::{Names, without_query};
use super::{ApiAnswer, connect::Connector, endpoint};
use crate::error::LinkError;

/// A request. Its `Debug` has no query, no value of a header and no body: any of them may be a
/// secret.
#[derive(Clone)]
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

impl Debug for Post {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_struct("Post")
            .field("url", &without_query(&self.url))
            .field("headers", &Names(&self.headers))
            .field("body_bytes", &self.body.len())
            .field("bytes_max", &self.bytes_max)
            .field("limit", &self.limit)
            .finish()
    }
}

/// Opens a connection to the origin of a URL, over TLS as `tls` has it. No proxy of the environment
/// is between. `limit` is the time to connect, TLS included.
///
/// # Errors
/// [`LinkError::Untrusted`] when this machine does not trust the certificate,
/// [`LinkError::NotTls`] when the server speaks no TLS, else [`LinkError::Unreachable`].
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
/// [`LinkError::Broken`]; [`LinkError::Malformed`] if the answer is not HTTP;
/// [`LinkError::TooLarge`] if it is longer than allowed.
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
    let url = endpoint::parse(&post.url).map_err(unusable)?;
    let host = url
        .authority()
        .and_then(|host| HeaderValue::from_str(host.as_str()).ok());
    let Some(host) = host else {
        return Err(unusable("the host is not a valid name"));
    };
    let mut request = Request::new(post.body);
    *request.method_mut() = Method::POST;
    *request.headers_mut() = post.headers;
    request.headers_mut().insert(HOST, host);
    let path = url.path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = path
        .parse()
        .map_err(|_| unusable("the path cannot be read"))?;
    let socket = Connector::new(url, tls, post.limit).connect().await?;
    exchange_on(socket, request, post.bytes_max).await
}

fn unusable(why: &str) -> LinkError {
    LinkError::Unreachable(why.to_owned())
}

async fn exchange_on(
    socket: impl Read + Write + Send + Unpin,
    request: Request<Bytes>,
    bytes_max: usize,
) -> Result<ApiAnswer, LinkError> {
    let (mut sender, connection) = http1::handshake(socket)
        .await
        .map_err(|why| failed(&why, None))?;
    let exchange = async {
        let answer = sender.send_request(request.map(Full::new)).await;
        let (head, body) = answer?.into_parts();
        let body = Limited::new(body, bytes_max).collect().await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(ApiAnswer {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
        })
    };
    // The connection runs beside the exchange, and ends with it.
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    let (answer, ended) = tokio::select! {
        biased;
        answer = &mut exchange => (answer, Ok(())),
        ended = &mut connection => (exchange.await, ended),
    };
    answer.map_err(|error| failed(&*error, ended.err().as_ref()))
}

/// Why an exchange has no answer, with the error that ended its connection, if one did. That one is
/// the cause: the exchange itself may have no more than that the connection broke.
fn failed(error: &(dyn Error + 'static), ended: Option<&hyper::Error>) -> LinkError {
    if error.is::<LengthLimitError>() {
        return LinkError::TooLarge;
    }
    let ended = ended.map(|ended| ended as &(dyn Error + 'static));
    if let Some(reason) = tls::reason_in(error).or_else(|| ended.and_then(tls::reason_in)) {
        return LinkError::Broken(reason);
    }
    let cause = innermost(ended.unwrap_or(error)).to_string();
    match error.downcast_ref::<hyper::Error>() {
        Some(error) if error.is_parse() => LinkError::Malformed(cause),
        Some(_) | None => LinkError::Broken(cause),
    }
}

/// The innermost cause of an error. The errors around it say only which step failed.
fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadBuf};

    use super::*;

    /// A connection that breaks for writes once its answer has begun.
    struct Pulled {
        answer: &'static [u8],
        is_written: bool,
    }

    impl AsyncRead for Pulled {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.is_written || self.answer.is_empty() {
                return Poll::Pending;
            }
            into.put_slice(std::mem::take(&mut self.answer));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Pulled {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            _: &[u8],
        ) -> Poll<io::Result<usize>> {
            if !self.is_written {
                self.is_written = true;
                return Poll::Ready(Ok(1));
            }
            if self.answer.is_empty() {
                return Poll::Ready(Err(io::Error::other("the cable was pulled")));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn what_ended_the_connection_is_the_cause() {
        let pulled = Pulled {
            answer: b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc",
            is_written: false,
        };
        let request = Request::new(Bytes::from(vec![b'x'; 4096]));
        assert_eq!(
            exchange(pulled, request, 100).await,
            Err(LinkError::Broken("the cable was pulled".to_owned()))
        );
    }

    /// What comes of this answer, of at most five bytes.
    async fn outcome(answer: &'static [u8]) -> Result<ApiAnswer, LinkError> {
        let (near, mut far) = tokio::io::duplex(1024);
        let server = async {
            far.read_u8().await.unwrap();
            far.write_all(answer).await.unwrap();
            drop(far);
        };
        tokio::join!(exchange(near, Request::new(Bytes::new()), 5), server).0
    }

    #[tokio::test]
    async fn answers_that_are_too_long_or_cut_or_not_http_are_distinct() {
        let answer = outcome(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde").await;
        assert_eq!(answer.unwrap().body, "abcde");
        assert_eq!(
            outcome(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nabcdef").await,
            Err(LinkError::TooLarge)
        );
        for cut in [&b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabc"[..], b""] {
            let error = outcome(cut).await.unwrap_err();
            assert!(matches!(error, LinkError::Broken(_)), "{error}");
        }
        // An alert of TLS.
        let error = outcome(&[21, 3, 3, 0, 2, 2, 70]).await.unwrap_err();
        assert!(matches!(error, LinkError::Malformed(_)), "{error}");
    }
}
