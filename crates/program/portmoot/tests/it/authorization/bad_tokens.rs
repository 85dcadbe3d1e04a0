//! Tokens that are no good, and what their senders learn.

use serde_json::{Value, json};

use super::provider::{Provider, claims};
use super::{challenge, initialize, refused_sign_ins, resource, start};
use crate::support::until;

#[test]
fn a_machine_of_the_provider_comes_in_with_its_token() {
    let provider = Provider::start(600);
    let (home, gateway) = start(&provider, "");
    let token = provider.machine("machine", &resource("/mcp"), "mcp:read");
    assert_eq!(claims(&token)["aud"], resource("/mcp"));
    let reply = initialize(&gateway, "/mcp", Some(&token));
    assert_eq!(reply.status, 200, "{reply:?}");
    let check = |token: &str, code: i32| {
        let mut command = home.command(&["auth", "check", "--json"]);
        let mut child = command
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), token.as_bytes()).unwrap();
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(code), "{out:?}");
        serde_json::from_slice::<Value>(&out.stdout).unwrap()
    };
    home.write("portmoot.toml", &super::config(&provider, ""));
    let shown = check(&token, 0);
    assert_eq!(shown["participant"]["id"], "corp:machine");
    assert_eq!(
        shown["participant"]["capabilities"][0],
        "mcp/request:tools/call:a_e*"
    );
    let refused = check(&provider.forged(json!({}), json!({"aud": "x"}), "a"), 4);
    let last = refused["steps"].as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["what"], &last["ok"]),
        (&json!("it is for this gateway"), &json!(false)),
        "{refused}"
    );
    // Signed in, and no rule gives a place: no challenge, so that no client asks for another token.
    let stranger = provider.machine("stranger", &resource("/mcp"), "");
    let reply = initialize(&gateway, "/mcp", Some(&stranger));
    assert_eq!((reply.status, challenge(&reply)), (403, ""));
    assert_eq!(reply.json()["error"]["data"]["code"], "no_place");
}

#[test]
fn twelve_bad_tokens_are_refused_and_no_foreign_issuer_is_asked() {
    let provider = Provider::start(600);
    let other = Provider::start(600);
    let (home, gateway) = start(&provider, "");
    let good = provider.forged(json!({}), json!({}), "a");
    assert_eq!(initialize(&gateway, "/mcp", Some(&good)).status, 200);
    let mut causes = Vec::new();
    let before = provider.asked("/jwks");
    for (what, header, changes, key, code) in [
        (
            "expired",
            json!({}),
            json!({"exp": 1_000_000}),
            "a",
            "token_expired",
        ),
        (
            "not yet",
            json!({}),
            json!({"nbf": 9_999_999_999_u64}),
            "a",
            "unauthenticated",
        ),
        (
            "wrong aud",
            json!({}),
            json!({"aud": "https://elsewhere.example/mcp"}),
            "a",
            "token_foreign",
        ),
        (
            "no aud",
            json!({}),
            json!({"aud": null}),
            "a",
            "token_foreign",
        ),
        (
            "foreign iss",
            json!({}),
            json!({"iss": other.issuer()}),
            "a",
            "issuer_unknown",
        ),
        (
            "unknown kid",
            json!({"kid": "zz"}),
            json!({}),
            "a",
            "token_unknown_key",
        ),
        (
            "alg none",
            json!({"alg": "none"}),
            json!({}),
            "none",
            "unauthenticated",
        ),
        (
            "HS256",
            json!({"alg": "HS256"}),
            json!({}),
            "hmac",
            "unauthenticated",
        ),
        (
            "ID token",
            json!({"typ": "JWT"}),
            json!({"nonce": "n"}),
            "a",
            "unauthenticated",
        ),
        (
            "wrong typ",
            json!({"typ": "logout+jwt"}),
            json!({}),
            "a",
            "unauthenticated",
        ),
        (
            "ID-JAG",
            json!({"typ": "oauth-id-jag+jwt"}),
            json!({}),
            "a",
            "unauthenticated",
        ),
        (
            "oversized",
            json!({}),
            json!({"pad": "x".repeat(8192)}),
            "a",
            "unauthenticated",
        ),
        (
            "another key",
            json!({}),
            json!({}),
            "foreign",
            "unauthenticated",
        ),
    ] {
        let token = provider.forged(header, changes, key);
        let reply = initialize(&gateway, "/mcp", Some(&token));
        assert_eq!(reply.status, 401, "{what}: {reply:?}");
        let challenge = challenge(&reply);
        assert!(
            challenge.starts_with("Bearer error=\"invalid_token\", error_description=\""),
            "{what}: {challenge}"
        );
        assert!(
            challenge.contains("/.well-known/oauth-protected-resource/gw/mcp\""),
            "{what}: {challenge}"
        );
        assert_eq!(reply.json()["error"]["data"]["code"], code, "{what}");
        assert!(!gateway.log().contains(&token), "{what}");
        causes.push(format!("{code}: "));
    }
    // Each is an entry, with its code and from where it came.
    let entries = until("all refusals are recorded", || {
        Some(refused_sign_ins(&home)).filter(|entries| entries.len() == causes.len())
    });
    for (entry, cause) in entries.iter().zip(&causes) {
        assert_eq!(entry["address"], "127.0.0.1", "{entry}");
        let why = entry["why"].as_str().unwrap();
        assert!(
            why.starts_with(cause.as_str()) && why.len() > cause.len(),
            "{cause}: {entry}"
        );
    }
    assert_eq!(
        other.asked("/.well-known/oauth-authorization-server") + other.asked("/jwks"),
        0
    );
    assert!(
        provider.asked("/jwks") <= before + 1,
        "one look for an unknown key"
    );
    assert_eq!(initialize(&gateway, "/mcp", Some(&good)).status, 200);
}

#[test]
fn id_tokens_are_refused_also_where_their_type_and_audience_are_taken() {
    let provider = Provider::start(600);
    let home = crate::home::Home::new();
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let keys = "types = [\"at+jwt\", \"JWT\"]\naudiences = [\"client-1\"]\n";
    let config = super::config(&provider, "").replace(&issuer, &format!("{issuer}{keys}"));
    let gateway = crate::support::Gateway::start(&home, &config);
    gateway.ready("a");
    let of = |more: Value| {
        let mut claims = json!({ "aud": "client-1" });
        claims
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        provider.forged(json!({ "typ": "JWT" }), claims, "a")
    };
    for (what, more, status) in [
        ("without a claim of its own", json!({}), 401),
        (
            "for the client to which it was given",
            json!({ "azp": "client-1" }),
            401,
        ),
        (
            "with a nonce",
            json!({ "nonce": "n", "scope": "read" }),
            401,
        ),
        (
            "with the hash of an access token",
            json!({ "at_hash": "h", "scope": "read" }),
            401,
        ),
        (
            "with the hash of a code",
            json!({ "c_hash": "h", "scope": "read" }),
            401,
        ),
        (
            "by its use",
            json!({ "token_use": "id", "scope": "read" }),
            401,
        ),
        (
            "by its own type",
            json!({ "typ": "ID", "scope": "read" }),
            401,
        ),
        (
            "an access token with scopes",
            json!({ "scope": "read" }),
            200,
        ),
        (
            "an access token of Entra",
            json!({ "scp": "read", "azp": "client-1" }),
            200,
        ),
        (
            "an access token of a named client",
            json!({ "client_id": "client-1" }),
            200,
        ),
        (
            "an access token for an address",
            json!({ "aud": resource("/mcp") }),
            200,
        ),
    ] {
        let token = of(more);
        let reply = initialize(&gateway, "/mcp", Some(&token));
        assert_eq!(reply.status, status, "{what}: {reply:?}");
        if status == 401 {
            assert_eq!(
                reply.json()["error"]["data"]["code"],
                "unauthenticated",
                "{what}"
            );
        }
    }
}
