//! The API's own handlers, called in this process with the token of a session.

use auth::ClientCertificate;
use axum::Router;
use axum::body::Body;
use axum::http::{Extensions, HeaderValue, Method, Request, StatusCode, header};
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use tower::ServiceExt as _;

use crate::home::ConsoleHome;
use crate::kept::{Kept, look_at};
use crate::session::Session;

/// All but the unreserved characters (RFC 3986 section 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 32 << 20;

/// A text as one segment of a path, or as a value of a query.
pub(crate) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// A refusal of the API, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Problem {
    /// A refusal of the console itself.
    pub(crate) fn new(status: StatusCode, message: &str) -> Self {
        Self {
            status,
            message: message.to_owned(),
            hint: None,
        }
    }

    /// Whether the session's token is good no more.
    pub(crate) fn ends_session(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}

#[derive(Deserialize)]
struct Refused {
    message: String,
    #[serde(default)]
    hint: Option<String>,
}

/// The API for one request of a browser.
#[derive(Clone)]
pub(crate) struct ApiClient {
    home: Arc<dyn ConsoleHome>,
    router: Router,
    session: Arc<Session>,
    /// Notes of the door about the connection, which calls need.
    extensions: Extensions,
}

impl ApiClient {
    /// The API with the token of a session. `extensions` are those of the browser's request.
    pub(crate) fn new(
        home: Arc<dyn ConsoleHome>,
        router: Router,
        session: Arc<Session>,
        mut extensions: Extensions,
    ) -> Self {
        // Who asks is who signed in, whatever certificate the browser shows.
        extensions.remove::<Arc<ClientCertificate>>();
        Self {
            home,
            router,
            session,
            extensions,
        }
    }

    /// The answer to `GET path`. `path` begins with `/`, its segments are [`encoded`].
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Problem> {
        self.read(Method::GET, path, String::new()).await
    }

    /// The answer to `POST path` with this JSON text.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: String,
    ) -> Result<T, Problem> {
        self.read(Method::POST, path, body).await
    }

    /// The body of `GET path` as it is.
    pub(crate) async fn text(&self, path: &str) -> Result<String, Problem> {
        self.ask(Method::GET, path, String::new()).await
    }

    /// The body of the answer to `DELETE path`, which may be empty.
    pub(crate) async fn delete(&self, path: &str) -> Result<String, Problem> {
        self.ask(Method::DELETE, path, String::new()).await
    }

    async fn read<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: String,
    ) -> Result<T, Problem> {
        let text = self.ask(method, path, body).await?;
        serde_json::from_str(&text).map_err(|_| unreadable())
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Result<String, Problem> {
        let body = Bytes::from(body);
        let answer = self.send(method.clone(), path, body.clone()).await;
        // What the gateway knew of the token can have run out since the request of the browser began:
        // the token's issuer is asked, and the API once more.
        match answer {
            Err(refused)
                if refused.ends_session()
                    && look_at(&*self.home, &self.session).await == Kept::Good =>
            {
                self.send(method, path, body).await
            }
            answer => answer,
        }
    }

    async fn send(&self, method: Method, path: &str, body: Bytes) -> Result<String, Problem> {
        let mut request = Request::new(Body::from(body));
        *request.method_mut() = method;
        *request.uri_mut() = path.parse().map_err(|_| unreadable())?;
        *request.extensions_mut() = self.extensions.clone();
        let json = HeaderValue::from_static("application/json");
        request.headers_mut().insert(header::CONTENT_TYPE, json);
        // As it is now: a stream outlives the token with which it began.
        if let Some(bearer) = self.session.bearer() {
            let value = format!("Bearer {bearer}");
            let value = HeaderValue::try_from(value).map_err(|_| unreadable())?;
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
        let response = match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), ANSWER_BYTES_MAX).await;
        let body = body.map_err(|_| too_long())?;
        if !status.is_success() {
            return Err(refused(status, &body));
        }
        String::from_utf8(body.into()).map_err(|_| unreadable())
    }
}

fn refused(status: StatusCode, body: &[u8]) -> Problem {
    match serde_json::from_slice::<Refused>(body) {
        Ok(refused) => Problem {
            status,
            message: refused.message,
            hint: refused.hint,
        },
        Err(_) => Problem::new(status, "the gateway refused this"),
    }
}

/// The problem of an answer that no page can show.
pub(crate) fn too_long() -> Problem {
    Problem {
        status: StatusCode::BAD_GATEWAY,
        message: "The gateway's answer is too long for a page.".to_owned(),
        hint: Some("At a terminal: portmoot proposals ls. A participant that proposes too much can be paused: portmoot participants pause.".to_owned()),
    }
}

fn unreadable() -> Problem {
    Problem::new(
        StatusCode::BAD_GATEWAY,
        "the gateway's answer cannot be read",
    )
}
