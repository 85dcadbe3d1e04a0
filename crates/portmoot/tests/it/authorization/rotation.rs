//! Keys that change, providers that fail, and tokens that end.

use serde_json::json;

use super::provider::Provider;
use super::{initialize, initialize_message, resource, start};
use crate::http::Connection;
use crate::support::until;

#[test]
fn keys_rotate_in_three_steps_and_no_good_token_is_refused() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let status = |token: &str| initialize(&gateway, "/mcp", Some(token)).status;
    let old = provider.machine("machine", &resource("/mcp"), "");
    assert_eq!(status(&old), 200);
    provider.control(&json!({"op": "keys", "keys": ["b", "a"]}));
    for _ in 0..20 {
        let new = provider.machine("machine", &resource("/mcp"), "");
        assert_eq!((status(&new), status(&old)), (200, 200));
    }
    // The old key is gone once the keys are looked for again, by a token of another key.
    provider.control(&json!({"op": "keys", "keys": ["b"]}));
    assert!(provider.asked("/jwks") <= 3);
    // An hour without the provider: the keys stay.
    provider.control(&json!({"op": "mode", "mode": "down"}));
    assert_eq!(status(&old), 200);
}

#[test]
fn a_provider_that_is_down_silent_or_lying_is_no_reason_to_sign_in_again() {
    for mode in ["down", "lying", "silent"] {
        let provider = Provider::start(600);
        let token = provider.machine("machine", &resource("/mcp"), "");
        provider.control(&json!({"op": "mode", "mode": mode}));
        let (_home, gateway) = start(&provider, "");
        let reply = initialize(&gateway, "/mcp", Some(&token));
        assert_eq!(reply.status, 503, "{mode}: {reply:?}");
        assert!(
            reply.header("retry-after").is_some() && reply.header("www-authenticate").is_none(),
            "{mode}"
        );
        assert_eq!(reply.json()["error"]["data"]["code"], "issuer_unreachable", "{mode}");
        if mode == "down" {
            provider.control(&json!({"op": "mode", "mode": "up"}));
            until("the provider is asked again", || {
                std::thread::sleep(std::time::Duration::from_millis(500));
                (initialize(&gateway, "/mcp", Some(&token)).status == 200).then_some(())
            });
        }
    }
}

#[test]
fn what_was_opened_with_a_token_ends_with_it_and_the_session_stays() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    // The skew is part of a token's life.
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let short = provider.forged(json!({}), json!({"exp": now - 24, "iat": null}), "a");
    let opened = initialize(&gateway, "/mcp", Some(&short));
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut connection = Connection::open(gateway.address());
    let bearer = format!("Bearer {short}");
    let headers = |bearer: &str| {
        vec![
            ("accept".to_owned(), "application/json, text/event-stream".to_owned()),
            ("mcp-session-id".to_owned(), session.clone()),
            ("authorization".to_owned(), bearer.to_owned()),
            ("mcp-protocol-version".to_owned(), "2025-11-25".to_owned()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ]
    };
    let given = headers(&bearer);
    let given: Vec<(&str, &str)> =
        given.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    // The stream ends by itself: `exchange` reads until then.
    let reply = connection.exchange("GET", "/mcp", &given, "");
    assert_eq!(reply.status, 200);
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    let late = Connection::open(gateway.address()).exchange("POST", "/mcp", &given, &ping);
    assert_eq!((late.status, late.json()["error"]["data"]["code"].as_str()), (401, Some("token_expired")));
    let fresh = headers(&format!("Bearer {}", provider.forged(json!({}), json!({}), "a")));
    let fresh: Vec<(&str, &str)> =
        fresh.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let again = Connection::open(gateway.address()).exchange("POST", "/mcp", &fresh, &ping);
    assert_eq!(again.status, 200, "the session goes on: {again:?}");
    assert_eq!(initialize_message()["method"], "initialize");
}
