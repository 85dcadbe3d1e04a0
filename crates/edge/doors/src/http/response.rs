//! HTTP responses, by their form.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use model::Refusal;

use super::body::Body;
use super::events::Events;

/// A value, or the response that explains why there is none.
pub(crate) type Answered<T> = Result<T, Box<Response<Body>>>;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const SSE: HeaderValue = HeaderValue::from_static("text/event-stream");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

fn response(status: StatusCode, kind: Option<HeaderValue>, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    if let Some(kind) = kind {
        response.headers_mut().insert(CONTENT_TYPE, kind);
    }
    response
}

/// One JSON text.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response<Body> {
    response(status, Some(JSON), Body::full(body))
}

/// A sentence for a person.
pub(crate) fn plain(status: StatusCode, text: &str) -> Response<Body> {
    response(status, Some(TEXT), Body::full(text.to_owned()))
}

/// A response with the refusal that it sends, for the challenge that may go with it.
pub(crate) fn refusing(mut response: Response<Body>, refusal: &Refusal) -> Response<Body> {
    if response.status() == StatusCode::UNAUTHORIZED {
        response
            .headers_mut()
            .insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response.extensions_mut().insert(refusal.clone());
    response
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response<Body> {
    response(status, None, Body::empty())
}

/// A live event stream.
pub(crate) fn events(events: Events) -> Response<Body> {
    let mut response = response(StatusCode::OK, Some(SSE), Body::Events(Box::new(events)));
    let headers = response.headers_mut();
    headers.insert(
        CACHE_CONTROL,
        HeaderValue::from_static("no-cache, no-transform"),
    );
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
