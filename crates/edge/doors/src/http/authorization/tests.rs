use std::sync::Arc;

use auth::jwt::{Algorithm, Rules};
use http::HeaderMap;
use http_body_util::BodyExt;
use identity::config::IdentityConfig;
use identity::issuers::{IssuerConfig, ScopeConfig};
use oauth::issuer::TokenCheck;
use serde_json::{Value, json};

use super::*;

fn config(public_url: &str) -> Config {
    let rules = Rules {
        issuer: "https://idp.example/x".into(),
        algorithms: Algorithm::DEFAULT.to_vec(),
        types: vec!["at+jwt".into()],
        skew_secs: 30,
    };
    let issuer = IssuerConfig {
        name: "corp".into(),
        rules,
        source: TokenCheck::Keys(None),
        audiences: Vec::new(),
        audience_of_client: false,
        token_prefix: String::new(),
        allowed: Vec::new(),
        participant: "{sub}".into(),
        groups: "groups".into(),
        map: Vec::new(),
        unknown: None,
        step_up: true,
        console: None,
    };
    let scope = |name: &str, baseline| ScopeConfig {
        name: name.into(),
        baseline,
        implies: vec![name.into()],
        capabilities: Arc::default(),
    };
    let identity = IdentityConfig {
        public_url: Some(PublicUrl::parse(public_url).unwrap()),
        issuers: vec![issuer],
        scopes: vec![scope("mcp:read", true), scope("mcp:write", false)],
        ..IdentityConfig::default()
    };
    Config {
        identity: Arc::new(identity),
        ..Config::default()
    }
}

async fn document(config: &Config, path: &str) -> Option<Value> {
    let response = metadata(config, &Method::GET, path)?;
    assert_eq!(response.headers()[ACCESS_CONTROL_ALLOW_ORIGIN], "*");
    assert_eq!(response.headers()[CACHE_CONTROL], "max-age=300");
    let body = response
        .into_body()
        .collect()
        .await
        .ok()
        .unwrap()
        .to_bytes();
    Some(serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn each_endpoint_has_its_document() {
    let root = config("https://gw.example");
    for (path, resource) in [
        (
            "/.well-known/oauth-protected-resource",
            Some("https://gw.example/mcp"),
        ),
        (
            "/.well-known/oauth-protected-resource/",
            Some("https://gw.example/mcp"),
        ),
        (
            "/.well-known/oauth-protected-resource/mcp",
            Some("https://gw.example/mcp"),
        ),
        (
            "/.well-known/oauth-protected-resource/mcp/ops",
            Some("https://gw.example/mcp/ops"),
        ),
        (
            "/.well-known/oauth-protected-resource/mcp/main",
            Some("https://gw.example/mcp"),
        ),
        ("/.well-known/oauth-protected-resource/sse", None),
        ("/.well-known/oauth-protected-resource/mcp/a%20b", None),
        ("/.well-known/oauth-protected-resource/mcp/a/b", None),
        ("/.well-known/oauth-protected-resource/api", None),
        ("/.well-known/oauth-protected-resourcex", None),
        ("/.well-known/oauth-authorization-server", None),
    ] {
        let found = document(&root, path).await;
        assert_eq!(
            found
                .as_ref()
                .map(|found| found["resource"].as_str().unwrap()),
            resource,
            "{path}"
        );
    }
    let found = document(&root, "/.well-known/oauth-protected-resource/mcp")
        .await
        .unwrap();
    let expected = json!({
        "resource": "https://gw.example/mcp",
        "authorization_servers": ["https://idp.example/x"],
        "scopes_supported": ["mcp:read"],
        "bearer_methods_supported": ["header"],
        "resource_name": "Portmoot",
    });
    assert_eq!(found, expected);
    let below = config("https://gw.example/a");
    for path in [
        "/.well-known/oauth-protected-resource/a/mcp/ops",
        "/a/.well-known/oauth-protected-resource/mcp/ops",
        "/.well-known/oauth-protected-resource/mcp/ops",
    ] {
        assert_eq!(
            document(&below, path).await.unwrap()["resource"],
            "https://gw.example/a/mcp/ops",
            "{path}"
        );
    }
    let of_root = document(&below, "/.well-known/oauth-protected-resource/a")
        .await
        .unwrap();
    assert_eq!(of_root["resource"], "https://gw.example/a/mcp");
    let mut with_sse = config("https://gw.example");
    with_sse.doors.legacy_sse = true;
    assert!(
        document(&with_sse, "/.well-known/oauth-protected-resource/sse")
            .await
            .is_some()
    );
    let mut none = config("https://gw.example");
    Arc::make_mut(&mut none.identity).issuers.clear();
    assert!(
        document(&none, "/.well-known/oauth-protected-resource")
            .await
            .is_none()
    );
    let preflight = metadata(
        &root,
        &Method::OPTIONS,
        "/.well-known/oauth-protected-resource",
    )
    .unwrap();
    assert_eq!(preflight.status(), StatusCode::NO_CONTENT);
}

fn challenge_of(
    config: &Config,
    endpoint: &str,
    presented: bool,
    refusal: &Refusal,
) -> Response<Body> {
    challenged(
        config,
        endpoint,
        presented,
        refusal,
        response::empty(StatusCode::UNAUTHORIZED),
    )
}

#[test]
fn challenges_are_written_as_clients_read_them() {
    let config = config("https://gw.example");
    let expired = Refusal::new(RefusalCode::TokenExpired, "the \"token\" has\\ expired\n");
    let scope = Refusal::new(RefusalCode::InsufficientScope, "this call needs mcp:write")
        .scope("mcp:write");
    for (presented, refusal, endpoint, expect) in [
        (
            false,
            &Refusal::new(RefusalCode::Unauthenticated, "a token is needed"),
            "/mcp",
            r#"Bearer resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp", scope="mcp:read""#,
        ),
        (
            true,
            &expired,
            "/mcp/ops",
            r#"Bearer error="invalid_token", error_description="the 'token' has' expired?", resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp/ops", scope="mcp:read""#,
        ),
        (
            true,
            &scope,
            "/mcp",
            r#"Bearer error="insufficient_scope", error_description="this call needs mcp:write", resource_metadata="https://gw.example/.well-known/oauth-protected-resource/mcp", scope="mcp:write""#,
        ),
    ] {
        let response = challenge_of(&config, endpoint, presented, refusal);
        assert_eq!(response.headers()[WWW_AUTHENTICATE], expect);
        assert_eq!(
            response.headers()[ACCESS_CONTROL_EXPOSE_HEADERS],
            "WWW-Authenticate, Mcp-Session-Id"
        );
    }
    let plain = Config::default();
    assert_eq!(
        challenge_of(&plain, "/mcp", true, &expired).headers()[WWW_AUTHENTICATE],
        "Bearer"
    );
    let wait = Refusal::new(RefusalCode::RateLimited, "too many").retry_after_ms(1_500);
    let response = challenge_of(&config, "/mcp", true, &wait);
    assert_eq!(
        (response.status(), &response.headers()[RETRY_AFTER]),
        (
            StatusCode::TOO_MANY_REQUESTS,
            &HeaderValue::from_static("2")
        )
    );
    assert!(!response.headers().contains_key(WWW_AUTHENTICATE));
    let long = Refusal::new(RefusalCode::Unauthenticated, "x".repeat(5_000));
    assert!(challenge_of(&config, "/mcp", true, &long).headers()[WWW_AUTHENTICATE].len() < 1_024);
}

#[test]
fn tokens_in_the_query_or_twice_are_bad_requests() {
    let config = config("https://gw.example");
    let mut twice = HeaderMap::new();
    twice.append("authorization", HeaderValue::from_static("Bearer a"));
    twice.append("authorization", HeaderValue::from_static("Bearer a"));
    let once = HeaderMap::from_iter([(
        http::header::AUTHORIZATION,
        HeaderValue::from_static("Bearer a"),
    )]);
    for (headers, query, refused) in [
        (&twice, None, true),
        (&once, Some("access_token=secret"), true),
        (&once, Some("a=b&access_token=secret"), true),
        (&once, Some("x_access_token=a"), false),
        (&once, None, false),
    ] {
        let found = misplaced(&config, &Head::read(headers), query);
        assert_eq!(found.is_some(), refused, "{headers:?} {query:?}");
        let Some(found) = found else { continue };
        assert_eq!(found.status(), StatusCode::BAD_REQUEST);
        let challenge = found.headers()[WWW_AUTHENTICATE].to_str().unwrap();
        assert!(
            challenge.starts_with("Bearer error=\"invalid_request\"")
                && !challenge.contains("secret")
        );
        assert!(misplaced(&Config::default(), &Head::read(headers), query).is_none());
    }
}
