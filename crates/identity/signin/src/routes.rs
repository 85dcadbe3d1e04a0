//! Routes of the authorization server, and the headers of its answers.

use std::sync::Arc;

use auth::Peer;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use html::Browser;
use platform::random;
use serde_json::{Value, json};

use crate::grants::TokenError;
use crate::metadata;
use crate::params::PARAMS_BYTES_MAX;
use crate::registration;
use crate::service::{Now, SignIn};

/// Time that a client may keep the document, in seconds.
const DOCUMENT_SECS: u32 = 300;

/// The routes. While signing in is disabled, all answer as absent ones do.
pub fn router(sign_in: Arc<SignIn>) -> Router {
    let documents = ["oauth-authorization-server", "openid-configuration"];
    let documents = documents.into_iter().fold(Router::new(), |router, name| {
        router
            .route(&format!("/.well-known/{name}"), any(document))
            .route(&format!("/.well-known/{name}/{{*path}}"), any(document))
    });
    documents
        .route("/oauth/authorize", get(authorize).post(sign_in_form))
        .route("/oauth/consent", post(consent))
        .route("/oauth/token", any(token))
        .route("/oauth/register", any(register))
        .route("/oauth/revoke", any(revoke))
        .with_state(sign_in)
}

/// The answer of a path that does not exist.
pub(crate) fn absent() -> Response {
    (
        StatusCode::NOT_FOUND,
        axum::Json(json!({ "code": "unknown_target", "message": "no such page" })),
    )
        .into_response()
}

/// The parts of a request, with a body within bounds.
pub(crate) struct RequestParts {
    pub(crate) browser: Browser,
    pub(crate) query: Vec<u8>,
    authorization: bool,
    content_type: String,
    body: Bytes,
}

impl RequestParts {
    pub(crate) async fn read(request: Request) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        let browser = Browser::read(&parts);
        let content_type = parts
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let content_type = content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .to_ascii_lowercase();
        let body = axum::body::to_bytes(body, PARAMS_BYTES_MAX).await;
        let body = body.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE.into_response())?;
        Ok(Self {
            browser,
            query: parts.uri.query().unwrap_or_default().as_bytes().to_vec(),
            authorization: parts.headers.contains_key(header::AUTHORIZATION),
            content_type,
            body,
        })
    }

    fn is_form(&self) -> bool {
        self.content_type == "application/x-www-form-urlencoded"
    }
}

/// Headers for scripts of other sites: these answers have no cookies and depend on none.
pub(crate) fn open_to_scripts(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_ORIGIN,
        HeaderValue::from_static("*"),
    );
    response
}

pub(crate) fn preflight(methods: &'static str) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, methods),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "content-type, authorization, mcp-protocol-version",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "3600"),
    ] {
        response
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    open_to_scripts(response)
}

pub(crate) fn not_allowed(allowed: &'static str) -> Response {
    let mut response = StatusCode::METHOD_NOT_ALLOWED.into_response();
    response
        .headers_mut()
        .insert(header::ALLOW, HeaderValue::from_static(allowed));
    open_to_scripts(response)
}

/// An answer in JSON that is not kept anywhere.
fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::PRAGMA, HeaderValue::from_static("no-cache"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    open_to_scripts(response)
}

fn error(error: &TokenError) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::BAD_REQUEST);
    let mut response = answer(status, &error.json());
    let wait = error
        .retry_after_secs
        .and_then(|secs| HeaderValue::from_str(&secs.to_string()).ok());
    wait.map(|wait| response.headers_mut().insert(header::RETRY_AFTER, wait));
    response
}

async fn document(State(me): State<Arc<SignIn>>, method: Method, request: Request) -> Response {
    let Some(now) = me.now() else { return absent() };
    // RFC 8414, section 3.1: the path of the issuer follows. The door takes the same path off the
    // front.
    let suffix = request
        .uri()
        .path()
        .strip_prefix("/.well-known/")
        .and_then(|rest| rest.split_once('/'));
    let suffix = suffix.map_or_else(String::new, |(_, suffix)| format!("/{suffix}"));
    if !suffix.is_empty() && suffix != now.public_url.prefix() {
        return open_to_scripts(absent());
    }
    match method {
        Method::OPTIONS => return preflight("GET"),
        Method::GET | Method::HEAD => {}
        _ => return not_allowed("GET, HEAD, OPTIONS"),
    }
    let (scopes, _) = now.scopes();
    let document = metadata::document(&now.public_url, &now.login, &scopes);
    let mut response = answer(StatusCode::OK, &document);
    let kept = HeaderValue::from_str(&format!("max-age={DOCUMENT_SECS}"));
    let headers: &mut HeaderMap = response.headers_mut();
    headers.remove(header::PRAGMA);
    kept.map(|kept| headers.insert(header::CACHE_CONTROL, kept))
        .ok();
    response
}

/// Configuration and time for this request; `None` while signing in is disabled.
fn now_of(me: &SignIn, request: &Request) -> Option<Now> {
    let peer = request.extensions().get::<Peer>();
    Some(me.now()?.asked_from(peer.map(|peer| peer.0)))
}

async fn authorize(State(me): State<Arc<SignIn>>, request: Request) -> Response {
    let Some(now) = now_of(&me, &request) else {
        return absent();
    };
    match RequestParts::read(request).await {
        Ok(asked) => me.authorize(&now, &asked.query, &asked.browser).await,
        Err(response) => response,
    }
}

async fn sign_in_form(State(me): State<Arc<SignIn>>, request: Request) -> Response {
    let Some(now) = now_of(&me, &request) else {
        return absent();
    };
    match RequestParts::read(request).await {
        Ok(asked) => me.sign_in(&now, form_of(&asked), &asked.browser).await,
        Err(response) => response,
    }
}

async fn consent(State(me): State<Arc<SignIn>>, request: Request) -> Response {
    let Some(now) = now_of(&me, &request) else {
        return absent();
    };
    match RequestParts::read(request).await {
        Ok(asked) => me.consent(&now, form_of(&asked), &asked.browser).await,
        Err(response) => response,
    }
}

/// A body that is no form is an empty one.
pub(crate) fn form_of(asked: &RequestParts) -> &[u8] {
    if asked.is_form() { &asked.body } else { b"" }
}

/// The request to an endpoint for programs, by POST.
async fn posted(
    me: &SignIn,
    method: Method,
    request: Request,
) -> Result<(Now, RequestParts), Response> {
    let Some(now) = now_of(me, &request) else {
        return Err(absent());
    };
    match method {
        Method::POST => Ok((
            now,
            RequestParts::read(request).await.map_err(open_to_scripts)?,
        )),
        Method::OPTIONS => Err(preflight("POST")),
        _ => Err(not_allowed("POST, OPTIONS")),
    }
}

async fn token(State(me): State<Arc<SignIn>>, method: Method, request: Request) -> Response {
    let (now, asked) = match posted(&me, method, request).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let given = me
        .token(
            now,
            form_of(&asked),
            asked.authorization,
            asked.browser.from,
        )
        .await;
    given.map_or_else(
        |why| error(&why),
        |given| answer(StatusCode::OK, &given.json()),
    )
}

async fn revoke(State(me): State<Arc<SignIn>>, method: Method, request: Request) -> Response {
    let (now, asked) = match posted(&me, method, request).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    let revoked = me.revoke(now, form_of(&asked)).await;
    revoked.map_or_else(|why| error(&why), |()| answer(StatusCode::OK, &json!({})))
}

async fn register(State(me): State<Arc<SignIn>>, method: Method, request: Request) -> Response {
    let (now, asked) = match posted(&me, method, request).await {
        Ok(asked) => asked,
        Err(response) => return response,
    };
    if now.login.clients != identity::login::Clients::Any {
        return open_to_scripts(absent());
    }
    if let Err(wait_ms) = me.registrations.act(asked.browser.from, now.ms) {
        return error(&TokenError::busy(wait_ms));
    }
    match registration::read(&asked.body, &now.login.private_redirects) {
        Ok(registration) => {
            let id = me
                .clients
                .seal(&registration.name, &registration.redirect_uris, random());
            let registered =
                serde_json::to_value(registration.answer(&id, now.ms)).unwrap_or_default();
            answer(StatusCode::CREATED, &registered)
        }
        Err(why) => {
            let body = json!({ "error": why.code, "error_description": why.description });
            answer(StatusCode::BAD_REQUEST, &body)
        }
    }
}
