//! Parts of an HTTP request: its body within bounds, its media types, its method.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::CONNECTION;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use platform::{Full, Share, Taken};
use tokio::time::timeout;

use super::body::Body;
use super::metered::place_on;
use super::response::{self, Answered};

/// Seconds a client may take to send its body.
pub(crate) const BODY_READ_SECS: u64 = 60;
/// Seconds anybody may take to send a form of signing in.
pub(crate) const FORM_READ_SECS: u64 = 5;

/// The longest body of a refused request that is read, in bytes, and for how long it is waited for.
pub(crate) const REFUSED_BODY_BYTES_MAX: usize = 64 * 1024;
const REFUSED_BODY_WAIT: Duration = Duration::from_secs(2);

/// Reads a body within the configured bound. Its bytes are on its sender's account as they arrive.
///
/// # Errors
/// The response: 413 if it is too long, 408 if it takes too long, 400 if the connection breaks, 503
/// if too many bytes of its sender, or of all, wait already.
pub(crate) async fn read_body(limit: usize, held: &Arc<Share>, body: Incoming) -> Answered<Bytes> {
    read(limit, (held, true), BODY_READ_SECS, body).await
}

/// Reads a form of an unknown sender. What arrives in pieces is on the account of its address, and
/// must arrive soon; a form in one piece waits for nothing, and takes no place of others.
///
/// # Errors
/// As [`read_body`].
pub(crate) async fn read_form(limit: usize, held: &Arc<Share>, body: Incoming) -> Answered<Bytes> {
    read(limit, (held, false), FORM_READ_SECS, body).await
}

/// Reads a body. `checks` is whether one in a single piece must fit into the account too.
async fn read(
    limit: usize,
    (held, checks): (&Arc<Share>, bool),
    secs: u64,
    body: Incoming,
) -> Answered<Bytes> {
    if body.size_hint().lower() > limit as u64 {
        return Err(Box::new(too_large(limit)));
    }
    let mut whole = pin!(collect(body, limit, (held, checks)));
    // A body that has arrived already needs no clock.
    if let Poll::Ready(body) = poll_fn(|cx| Poll::Ready(whole.as_mut().poll(cx))).await {
        return body;
    }
    let place = if checks {
        None
    } else {
        Some(place_on(held).ok_or_else(|| full(Full::Share))?)
    };
    let waited = timeout(Duration::from_secs(secs), whole).await;
    drop(place);
    match waited {
        Ok(body) => body,
        Err(_) => Err(Box::new(response::plain(
            StatusCode::REQUEST_TIMEOUT,
            "the body took too long\n",
        ))),
    }
}

/// Reads the short body of a refused request and throws it away, so that the connection goes on:
/// clients send what was refused again on it, with a token. After a long body, or a slow one, or
/// without a place to wait for it, the connection ends, and the response says so.
pub(crate) async fn after_body(
    mut body: Incoming,
    mut response: Response<Body>,
    place: Option<Taken>,
) -> Response<Body> {
    let is_short = place.is_some() && body.size_hint().lower() <= REFUSED_BODY_BYTES_MAX as u64;
    let whole = async {
        let mut left = REFUSED_BODY_BYTES_MAX;
        while let Some(frame) = body.frame().await {
            let read = frame.ok()?;
            left = left.checked_sub(read.data_ref().map_or(0, Bytes::len))?;
        }
        Some(())
    };
    let is_over = is_short && matches!(timeout(REFUSED_BODY_WAIT, whole).await, Ok(Some(())));
    if !is_over {
        response
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

async fn collect(
    mut body: Incoming,
    limit: usize,
    (held, checks): (&Arc<Share>, bool),
) -> Answered<Bytes> {
    let mut whole = BytesMut::new();
    let mut taken = None;
    while let Some(frame) = body.frame().await {
        let broken = |_| {
            Box::new(response::plain(
                StatusCode::BAD_REQUEST,
                "the body broke off\n",
            ))
        };
        let Ok(data) = frame.map_err(broken)?.into_data() else {
            continue;
        };
        if whole.len().saturating_add(data.len()) > limit {
            return Err(Box::new(too_large(limit)));
        }
        let is_whole = whole.is_empty() && body.is_end_stream();
        if is_whole {
            // A body in one piece waits for nothing.
            let fits = if checks {
                held.check(data.len())
            } else {
                Ok(())
            };
            return fits.map_err(full).map(|()| data);
        }
        grow(&mut taken, held, data.len()).map_err(full)?;
        whole.extend_from_slice(&data);
    }
    Ok(whole.freeze())
}

fn grow(taken: &mut Option<Taken>, held: &Arc<Share>, more: usize) -> Result<(), Full> {
    match taken {
        Some(taken) => taken.grow(more),
        None => {
            *taken = Some(held.take(more)?);
            Ok(())
        }
    }
}

fn full(full: Full) -> Box<Response<Body>> {
    let why = match full {
        Full::Share => {
            "too many bytes of this sender wait already (`participant_held_bytes_max`); send less at once\n"
        }
        Full::Pool => "too many bytes wait already (`held_bytes_max`); try again later\n",
    };
    Box::new(response::plain(StatusCode::SERVICE_UNAVAILABLE, why))
}

fn too_large(limit: usize) -> Response<Body> {
    response::plain(
        StatusCode::PAYLOAD_TOO_LARGE,
        &format!("the body is longer than {limit} bytes\n"),
    )
}

/// Whether `Accept` lists this media type, or a range that contains it.
pub(crate) fn accepts(headers: &HeaderMap, media: &str) -> bool {
    let main = media.split('/').next().unwrap_or_default();
    let mut values = headers
        .get_all(http::header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.any(|value| {
        value.split(',').any(|part| {
            let part = part.split(';').next().unwrap_or_default().trim();
            part.eq_ignore_ascii_case(media)
                || part == "*/*"
                || part.strip_suffix("/*") == Some(main)
        })
    })
}

/// Whether `Accept` lists both forms of an answer to a POST: JSON and an event stream.
pub(crate) fn accepts_answers(headers: &HeaderMap) -> bool {
    // As nearly all clients write it.
    headers
        .get(http::header::ACCEPT)
        .is_some_and(|value| value == "application/json, text/event-stream")
        || (accepts(headers, "application/json") && accepts(headers, "text/event-stream"))
}

/// The response to a method that an endpoint does not have.
pub(crate) fn not_allowed(allowed: &'static str, method: &Method) -> Response<Body> {
    let mut response = response::plain(
        StatusCode::METHOD_NOT_ALLOWED,
        &format!("{method} is not served here\n"),
    );
    response
        .headers_mut()
        .insert(http::header::ALLOW, http::HeaderValue::from_static(allowed));
    response
}
