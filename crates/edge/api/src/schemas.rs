//! Schema registry: `/buf.registry...` and `/buf.reflect...`, which the `buf` CLI calls. A
//! participant sees the modules of the servers and tools that its lists show.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use control::modules::modules_of;
use model::RefusalCode;
use platform::unix_ms;
use registry::connect::PROTO;
use registry::{Code, ConnectError, Viewer};
use tokio::task::spawn_blocking;

use crate::state::{Api, presented};

/// Answers one RPC.
pub(crate) async fn answer(State(api): State<Api>, parts: Parts, body: Bytes) -> Response {
    let is_proto = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|media| media == PROTO);
    if !is_proto {
        return (StatusCode::UNSUPPORTED_MEDIA_TYPE, [("accept-post", PROTO)]).into_response();
    }
    match bytes_of(&api, &parts, body).await {
        Ok(answer) => ([(header::CONTENT_TYPE, PROTO)], answer).into_response(),
        Err(error) => refused(&error),
    }
}

fn refused(error: &ConnectError) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (error.code.status(), json, error.body()).into_response();
    if error.code == Code::Unauthenticated {
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

async fn bytes_of(api: &Api, parts: &Parts, body: Bytes) -> Result<Bytes, ConnectError> {
    let encoding = parts.headers.get(header::CONTENT_ENCODING);
    if encoding.is_some_and(|encoding| encoding != "identity") {
        return Err(ConnectError::new(
            Code::Unimplemented,
            "the registry reads no compressed requests",
        ));
    }
    let caller = api
        .registry
        .asker(presented(parts), "for the schema registry")
        .map_err(|refusal| {
            let code = match refusal.code {
                code if code.is_unauthenticated() => Code::Unauthenticated,
                RefusalCode::RateLimited => Code::ResourceExhausted,
                _ => Code::PermissionDenied,
            };
            ConnectError::new(code, refusal.message)
        })?;
    for (dispatch, _) in api.registry.topics_of(&caller) {
        dispatch.wait_for_servers().await;
    }
    let api = api.clone();
    let path = parts.uri.path().to_owned();
    // It converts and compiles.
    let work = spawn_blocking(move || {
        let modules = modules_of(&api.registry, &caller);
        let viewer = Viewer {
            id: caller.id.as_str(),
            source: &modules,
            now_ms: unix_ms(),
        };
        api.registry.shelf.answer(&path, &body, &viewer)
    });
    work.await.unwrap_or_else(|_| {
        Err(ConnectError::new(
            Code::Internal,
            "the answer was interrupted",
        ))
    })
}
