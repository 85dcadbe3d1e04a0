//! OAuth at the HTTP doors: metadata about the gateway's endpoints (RFC 9728), challenges (RFC
//! 6750, section 3), tokens that must be checked first.

use std::sync::Arc;
use std::time::Duration;

use auth::{Participant, PublicUrl};
use config::Config;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, CACHE_CONTROL, RETRY_AFTER, WWW_AUTHENTICATE,
};
use http::{HeaderValue, Method, Response, StatusCode};
use identity::issuers::{endpoint, metadata_url};
use model::{Refusal, RefusalCode, TopicName};
use platform::unix_ms;

use super::body::Body;
use super::connection::Connection;
use super::head::{Head, HeaderField};
use super::paths::topic_of;
use super::request::not_allowed;
use super::response;

const METADATA: &str = "/.well-known/oauth-protected-resource";
/// The longest description of an error in a header, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;

/// The metadata that a path names, or a preflight for it; `None` if it is the address of no
/// metadata. It is public: neither `Host` nor `Origin` matters, and every topic has it, whether it
/// exists or not.
pub(super) fn metadata(config: &Config, method: &Method, path: &str) -> Option<Response<Body>> {
    let url = config.identity.public_url.as_ref()?;
    if config.identity.authorization_servers().is_empty() {
        return None;
    }
    let resource = resource_of(url, path, config.doors.legacy_sse)?;
    let mut response = match *method {
        Method::GET | Method::HEAD => {
            let body = json::object(|document| {
                document.text("resource", &url.at(&resource));
                document.array("authorization_servers", |all| {
                    for server in config.identity.authorization_servers() {
                        all.text(server);
                    }
                });
                let baseline: Vec<&str> = config.identity.baseline_scopes().collect();
                if !baseline.is_empty() {
                    document.array("scopes_supported", |all| {
                        for scope in &baseline {
                            all.text(scope);
                        }
                    });
                }
                document.array("bearer_methods_supported", |all| {
                    all.text("header");
                });
                document.text("resource_name", "Portmoot");
            });
            response::json(StatusCode::OK, body)
        }
        Method::OPTIONS => response::empty(StatusCode::NO_CONTENT),
        ref other => not_allowed("GET, HEAD, OPTIONS", other),
    };
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, HEAD, OPTIONS"),
    );
    let asked =
        HeaderValue::from_static("Accept, Authorization, Content-Type, MCP-Protocol-Version");
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    Some(response)
}

/// The endpoint about which a path has metadata: under the root with the prefix after the
/// well-known part, or, as a proxy may pass it on, below the prefix.
fn resource_of(url: &PublicUrl, path: &str, legacy_sse: bool) -> Option<String> {
    let rest = url.within(path).strip_prefix(METADATA)?;
    let rest = if rest == url.prefix() {
        ""
    } else {
        url.within(rest)
    };
    match rest {
        "" | "/" => Some(endpoint("main")),
        "/sse" if legacy_sse => Some("/sse".to_owned()),
        rest => {
            let topic = topic_of(rest, "/mcp")?;
            TopicName::new(topic)
                .ok()
                .map(|topic| endpoint(topic.as_str()))
        }
    }
}

/// Whether a path is one of the gateway's own authorization server, of its connect pages or of its
/// console, where senders are not known yet: the pages check who sent a form, and from where.
pub(super) fn is_sign_in(config: &Config, path: &str) -> bool {
    const DOCUMENTS: [&str; 2] = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    const ENDPOINTS: [&str; 5] = [
        "/oauth/authorize",
        "/oauth/consent",
        "/oauth/token",
        "/oauth/register",
        "/oauth/revoke",
    ];
    if path == "/console" || path.starts_with("/console/") {
        return true;
    }
    if path.starts_with("/connect/") || path == "/oauth/callback" || is_own_client(path) {
        return true;
    }
    if config.identity.login.is_none() {
        return false;
    }
    let is_document = DOCUMENTS.iter().any(|document| {
        // The path of the issuer may follow (RFC 8414, section 3.1).
        path.strip_prefix(document)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    });
    is_document || ENDPOINTS.contains(&path)
}

/// Whether a path has a document that describes the gateway as a client of authorization servers.
fn is_own_client(path: &str) -> bool {
    path == "/oauth/client.json" || path == "/oauth/jwks.json" || path.starts_with("/oauth/client/")
}

/// The refusal of a request whose token is where no token may be, or is there twice (RFC 6750,
/// section 3.1).
pub(super) fn misplaced(
    config: &Config,
    head: &Head<'_>,
    query: Option<&str>,
) -> Option<Response<Body>> {
    if config.identity.authorization_servers().is_empty() {
        return None;
    }
    let in_query = query.is_some_and(|query| {
        query
            .split('&')
            .any(|part| part.starts_with("access_token="))
    });
    let why = match (head.authorization, in_query) {
        (_, true) => "a token in the query is not read: send it in the Authorization header",
        (HeaderField::Unclear, false) => {
            "the request has more than one Authorization header, or one that is no text"
        }
        (HeaderField::Missing | HeaderField::Text(_), false) => return None,
    };
    let mut response = response::plain(StatusCode::BAD_REQUEST, &format!("{why}\n"));
    let challenge = format!(
        "Bearer error=\"invalid_request\", error_description=\"{}\"",
        described(why)
    );
    if let Ok(value) = HeaderValue::try_from(challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    Some(response)
}

/// Checks a token that the connection does not know yet, which may take as long as its issuer.
///
/// # Errors
/// The refusal to send.
pub(super) async fn admit(
    connection: &Connection,
    config: &Config,
    head: &Head<'_>,
) -> Result<(), Refusal> {
    let registry = &connection.links.registry;
    match head.bearer() {
        // Few requests wait here, so its memory is on the heap.
        Some(token) if !config.identity.issuers.is_empty() => {
            Box::pin(registry.admit(token, connection.peer)).await
        }
        Some(_) | None => Ok(()),
    }
}

/// A response to a refusal, with how to authenticate, or to get a token that is good for it, at an
/// endpoint.
pub(super) fn challenged(
    config: &Config,
    endpoint: &str,
    presented: bool,
    refusal: &Refusal,
    mut response: Response<Body>,
) -> Response<Body> {
    add_challenge(config, endpoint, presented, refusal, &mut response);
    response
}

/// Adds to a response what [`challenged`] says.
pub(super) fn add_challenge(
    config: &Config,
    endpoint: &str,
    presented: bool,
    refusal: &Refusal,
    response: &mut Response<Body>,
) {
    if refusal.code == RefusalCode::RateLimited
        && response.status() != StatusCode::TOO_MANY_REQUESTS
    {
        *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    }
    let headers = response.headers_mut();
    if let Some(wait_ms) = refusal.retry_after_ms {
        headers.insert(RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1000)));
    }
    if !refusal.code.is_unauthenticated() && refusal.code != RefusalCode::InsufficientScope {
        return;
    }
    let challenge = match &config.identity.public_url {
        Some(url) if !config.identity.authorization_servers().is_empty() => {
            challenge(config, &metadata_url(url, endpoint), presented, refusal)
        }
        Some(_) | None => "Bearer".to_owned(),
    };
    if let Ok(value) = HeaderValue::try_from(challenge) {
        headers.insert(WWW_AUTHENTICATE, value);
        let shown = HeaderValue::from_static("WWW-Authenticate, Mcp-Session-Id");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, shown);
    }
}

fn challenge(config: &Config, metadata: &str, presented: bool, refusal: &Refusal) -> String {
    let mut parts = Vec::new();
    let is_short = refusal.code == RefusalCode::InsufficientScope;
    if presented {
        let error = if is_short {
            "insufficient_scope"
        } else {
            "invalid_token"
        };
        parts.push(format!("error=\"{error}\""));
        parts.push(format!(
            "error_description=\"{}\"",
            described(&refusal.message)
        ));
    }
    parts.push(format!("resource_metadata=\"{metadata}\""));
    let baseline = || {
        config
            .identity
            .baseline_scopes()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let scope = refusal
        .scope
        .as_deref()
        .map_or_else(baseline, str::to_owned);
    if !scope.is_empty() {
        parts.push(format!("scope=\"{scope}\""));
    }
    format!("Bearer {}", parts.join(", "))
}

/// A text within quotes of a header, which clients may read without unescaping.
fn described(text: &str) -> String {
    let plain = |one: char| match one {
        '"' | '\\' | '`' => '\'',
        one if one.is_ascii_graphic() || one == ' ' => one,
        _ => '?',
    };
    text.chars()
        .take(DESCRIPTION_CHARS_MAX)
        .map(plain)
        .collect()
}

/// Waits until what was opened with a participant's access token must end; for ever if it came
/// without one.
pub(crate) async fn token_end(participant: &Participant) {
    let Some(bearer) = &participant.bearer else {
        return std::future::pending().await;
    };
    loop {
        // In steps: the clock of the machine may be set.
        const STEP: Duration = Duration::from_secs(60);
        let left_ms = bearer.ends_ms.saturating_sub(unix_ms());
        if left_ms == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(left_ms).min(STEP)).await;
    }
}

/// Runs `end` when what was opened with a participant's access token must end.
pub(crate) fn at_token_end(participant: &Arc<Participant>, end: impl FnOnce() + Send + 'static) {
    if participant.bearer.is_some() {
        let participant = Arc::clone(participant);
        tokio::spawn(async move {
            token_end(&participant).await;
            end();
        });
    }
}

#[cfg(test)]
mod tests;
