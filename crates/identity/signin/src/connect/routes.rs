//! Routes of the connect pages, of their callback, and of the documents that describe the gateway
//! as a client.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, header};
use axum::response::Response;
use axum::routing::{any, get};
use oauth::registration::{
    DOCUMENT_PATH, GATEWAY_CALLBACK_PATH, KEY_DOCUMENTS_PATH, KEYS_PATH, document,
};
use serde_json::{Value, json};

use super::Connect;
use crate::routes::{RequestParts, absent, form_of, not_allowed, open_to_scripts, preflight};

/// Time that others may keep a document, in seconds.
const DOCUMENT_SECS: u32 = 300;

/// The routes.
pub fn connect_router(connect: Arc<Connect>) -> Router {
    Router::new()
        .route("/connect/{id}", get(open).post(submit))
        .route(GATEWAY_CALLBACK_PATH, get(callback))
        .route(DOCUMENT_PATH, any(client))
        .route(
            &format!("{KEY_DOCUMENTS_PATH}{{name}}"),
            any(client_with_key),
        )
        .route(KEYS_PATH, any(keys))
        .with_state(connect)
}

async fn open(
    State(me): State<Arc<Connect>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    match RequestParts::read(request).await {
        Ok(asked) => me.open(&id, &asked.browser).await,
        Err(response) => response,
    }
}

async fn submit(
    State(me): State<Arc<Connect>>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    match RequestParts::read(request).await {
        Ok(asked) => me.submit(&id, form_of(&asked), &asked.browser).await,
        Err(response) => response,
    }
}

async fn callback(State(me): State<Arc<Connect>>, method: Method, request: Request) -> Response {
    // Programs that look at a link before a person does ask by HEAD.
    if method != Method::GET {
        return not_allowed("GET");
    }
    match RequestParts::read(request).await {
        Ok(asked) => me.callback(&asked.query, &asked.browser).await,
        Err(response) => response,
    }
}

/// The client id metadata document of the client that signs nothing.
async fn client(State(me): State<Arc<Connect>>, method: Method) -> Response {
    shown(
        &method,
        me.public_url().map(|public_url| document(public_url, None)),
    )
}

/// That of the client that signs with one of the gateway's keys.
async fn client_with_key(
    State(me): State<Arc<Connect>>,
    Path(name): Path<String>,
    method: Method,
) -> Response {
    let keys = me.accounts.keys();
    let key = keys
        .iter()
        .find(|key| name.strip_suffix(".json") == Some(key.kid()));
    shown(
        &method,
        me.public_url()
            .zip(key)
            .map(|(public_url, key)| document(public_url, Some(key.kid()))),
    )
}

/// The public halves of the keys.
async fn keys(State(me): State<Arc<Connect>>, method: Method) -> Response {
    let keys: Vec<Value> = me.accounts.keys().iter().map(|key| key.jwk()).collect();
    shown(&method, (!keys.is_empty()).then(|| json!({ "keys": keys })))
}

/// A document for authorization servers, which scripts of other sites may read too.
fn shown(method: &Method, document: Option<Value>) -> Response {
    let Some(document) = document else {
        return open_to_scripts(absent());
    };
    match *method {
        Method::GET | Method::HEAD => {}
        Method::OPTIONS => return preflight("GET"),
        _ => return not_allowed("GET, HEAD, OPTIONS"),
    }
    let mut response = Response::new(Body::from(document.to_string()));
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(kept) = HeaderValue::from_str(&format!("max-age={DOCUMENT_SECS}")) {
        headers.insert(header::CACHE_CONTROL, kept);
    }
    open_to_scripts(response)
}
