//! Errors of the API that its door, or the router, answers before a page does: with the JSON body and
//! the stable code that all its errors have.

use http::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use model::{Refusal, RefusalCode};

use store::recorder::SHUT;

use super::body::Body;

/// Pages beside the API whose errors are as the API's.
const MONITORING: [&str; 3] = ["/healthz", "/readyz", "/metrics"];
const PLAIN: &str = "text/plain";

/// Whether the errors of a path are those of the API. The public address may have a path of its own
/// before it.
pub(super) fn is_api(path: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    path.contains("/api/v1/")
        || path.ends_with("/api/v1")
        || path.contains("/admin/")
        || MONITORING.iter().any(|page| path.ends_with(page))
}

/// A response of the API: an error without a body, or in words alone, gets the JSON body that has
/// its code. What a page answers itself stays as it is.
pub(super) fn coded(response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let kind = response.headers().get(CONTENT_TYPE);
    let is_plain = kind.is_none_or(|kind| kind.as_bytes().starts_with(PLAIN.as_bytes()));
    if !is_error || !is_plain {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Body::Full(words) = body else {
        return Response::from_parts(parts, body);
    };
    let refusal = parts.extensions.get::<Refusal>();
    let code = refusal.map_or_else(|| code_of(status), |refusal| refusal.code);
    let words = String::from_utf8_lossy(words.as_deref().unwrap_or_default());
    let hint = match (refusal, status) {
        (Some(refusal), _) => refusal.hint.as_ref().map(ToString::to_string),
        (None, StatusCode::METHOD_NOT_ALLOWED) => parts
            .headers
            .get(ALLOW)
            .and_then(|allowed| Some(format!("it has {}", allowed.to_str().ok()?))),
        (None, _) => None,
    };
    let message: &str = match refusal {
        Some(refusal) => &refusal.message,
        None if status == StatusCode::METHOD_NOT_ALLOWED => "this path has no such method",
        None if words.trim().is_empty() => status.canonical_reason().unwrap_or("refused"),
        None => words.trim(),
    };
    let problem = json::object(|problem| {
        problem.text("code", code.as_str()).text("message", message);
        if let Some(hint) = &hint {
            problem.text("hint", hint);
        }
    });
    let headers = &mut parts.headers;
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::full(problem))
}

/// The response of a node that is the home of its cluster no more: its connections end in a moment.
pub(super) fn moved() -> Response<Body> {
    let mut response = Response::new(Body::full(SHUT));
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PLAIN));
    headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The code of an error that has a status alone.
fn code_of(status: StatusCode) -> RefusalCode {
    match status {
        StatusCode::UNAUTHORIZED => RefusalCode::Unauthenticated,
        StatusCode::FORBIDDEN => RefusalCode::Forbidden,
        StatusCode::NOT_FOUND => RefusalCode::UnknownTarget,
        StatusCode::METHOD_NOT_ALLOWED => RefusalCode::Unsupported,
        StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::URI_TOO_LONG
        | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => RefusalCode::TooLarge,
        StatusCode::TOO_MANY_REQUESTS => RefusalCode::RateLimited,
        StatusCode::SERVICE_UNAVAILABLE => RefusalCode::Overloaded,
        status if status.is_server_error() => RefusalCode::Internal,
        _ => RefusalCode::Malformed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{response, ws};

    fn body_of(response: Response<Body>) -> String {
        match response.into_body() {
            Body::Full(bytes) => String::from_utf8(bytes.unwrap_or_default().into()).unwrap(),
            _ => panic!("it is no whole body"),
        }
    }

    #[test]
    fn only_errors_in_words_get_another_body() {
        let refused = coded(response::plain(StatusCode::FORBIDDEN, "not here\n"));
        assert_eq!(refused.headers()[CONTENT_TYPE], "application/json");
        assert_eq!(
            body_of(refused),
            r#"{"code":"forbidden","message":"not here"}"#
        );
        let mut no_method = response::empty(StatusCode::METHOD_NOT_ALLOWED);
        let allowed = HeaderValue::from_static("GET,HEAD");
        no_method.headers_mut().insert(ALLOW, allowed);
        no_method
            .headers_mut()
            .insert(CONTENT_LENGTH, HeaderValue::from(0));
        let no_method = coded(no_method);
        assert!(no_method.headers().get(CONTENT_LENGTH).is_none());
        assert_eq!(
            body_of(no_method),
            r#"{"code":"unsupported","message":"this path has no such method","hint":"it has GET,HEAD"}"#
        );
        let overloaded = Refusal::new(RefusalCode::Overloaded, "too much").hint("wait");
        assert_eq!(
            body_of(coded(ws::refused(&overloaded))),
            r#"{"code":"overloaded","message":"too much","hint":"wait"}"#
        );
        for (answer, body) in [
            (response::plain(StatusCode::OK, "fine\n"), "fine\n"),
            (response::json(StatusCode::FORBIDDEN, "{}"), "{}"),
        ] {
            assert_eq!(body_of(coded(answer)), body);
        }
    }

    #[test]
    fn the_paths_of_the_api_are_known_behind_a_proxy_too() {
        for (path, expected) in [
            ("/api/v1/tools", true),
            ("/gate/api/v1/tools", true),
            ("/api/v1/", true),
            ("/metrics", true),
            ("/mcp", false),
            ("/oauth/token", false),
            ("/ws", false),
        ] {
            assert_eq!(is_api(path), expected, "{path}");
        }
    }
}
