//! Reading what an HTTP request says of itself: its body within bounds, its token, its media types.
//!
//! Must not know what is asked for.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::answer::{self, Answer};
use super::body::Body;
use crate::bounds::Share;
use crate::gate::Gate;

/// Seconds a client may take to send its body.
pub const BODY_READ_SECS: u64 = 60;

/// Reads a body within the configured bound.
///
/// # Errors
/// The answer to give: 413 when it is too long, 408 when it takes too long, 400 when the connection broke,
/// 503 when too much is being held already.
pub async fn read_body(gate: &Gate, body: Incoming) -> Answer<Bytes> {
    let limit = gate.limits().body_bytes_max;
    if body.size_hint().lower() > limit as u64 {
        return Err(Box::new(too_large(limit)));
    }
    let mut whole = pin!(collect(body, limit, Share::new(gate.held())));
    // A body that is there already needs no clock.
    if let Poll::Ready(body) = poll_fn(|cx| Poll::Ready(whole.as_mut().poll(cx))).await {
        return body;
    }
    match tokio::time::timeout(Duration::from_secs(BODY_READ_SECS), whole).await {
        Ok(body) => body,
        Err(_) => Err(Box::new(answer::plain(StatusCode::REQUEST_TIMEOUT, "the body took too long\n"))),
    }
}

async fn collect(mut body: Incoming, limit: usize, mut share: Share) -> Answer<Bytes> {
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken = |_| Box::new(answer::plain(StatusCode::BAD_REQUEST, "the body broke off\n"));
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if whole.len().saturating_add(data.len()) > limit {
            return Err(Box::new(too_large(limit)));
        }
        if !share.grow(data.len()) {
            let why = "too much is being read; try again later\n";
            return Err(Box::new(answer::plain(StatusCode::SERVICE_UNAVAILABLE, why)));
        }
        if whole.is_empty() && body.is_end_stream() {
            return Ok(data);
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn too_large(limit: usize) -> Response<Body> {
    answer::plain(StatusCode::PAYLOAD_TOO_LARGE, &format!("the body is longer than {limit} bytes\n"))
}

/// Whether a header lists this media type, or a range that holds it.
pub fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let main = media.split('/').next().unwrap_or_default();
    let mut values = headers.get_all(http::header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    values.any(|value| {
        value.split(',').any(|part| {
            let part = part.split(';').next().unwrap_or_default().trim();
            part.eq_ignore_ascii_case(media) || part == "*/*" || part.strip_suffix("/*") == Some(main)
        })
    })
}

/// Whether a header lists both of what a POST may be answered with: JSON and an event stream.
pub fn accepts_answers(headers: &HeaderMap) -> bool {
    // As nearly all clients write it.
    headers.get(http::header::ACCEPT).is_some_and(|value| value == "application/json, text/event-stream")
        || (accepts(headers, "application/json") && accepts(headers, "text/event-stream"))
}

/// The methods that are answered with 405 here.
pub fn not_allowed(allowed: &'static str, method: &Method) -> Response<Body> {
    let mut response =
        answer::plain(StatusCode::METHOD_NOT_ALLOWED, &format!("{method} is not served here\n"));
    response.headers_mut().insert(http::header::ALLOW, http::HeaderValue::from_static(allowed));
    response
}
