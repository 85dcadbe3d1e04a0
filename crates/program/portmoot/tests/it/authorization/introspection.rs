//! Opaque tokens: the gateway asks the provider about each (RFC 7662), once, and blames no client
//! for a provider that is down.

use serde_json::json;

use super::provider::Provider;
use super::{challenge, initialize, refused_sign_ins, resource};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Gateway, until};
use crate::ws::Socket;

const ABOUT: &str = "/token/introspection";

/// A gateway that asks the provider about tokens, as its client `gateway`.
fn start(provider: &Provider, more: &str) -> (Home, Gateway) {
    let home = Home::new().env("IDP_SECRET", "gateway-secret");
    let issuer = format!("issuer = \"{}\"\n", provider.issuer());
    let asks = format!(
        "{issuer}tokens = \"introspect\"\nclient_id = \"gateway\"\nclient_secret_env = \"IDP_SECRET\"\n\
         name = \"{{client_id}}\"\n{more}"
    );
    let config = super::config(provider, "").replace(&issuer, &asks);
    // What it answers has no groups: everyone is a machine.
    let config = config.replace(
        "when = { groups = \"machines\" }",
        "when = { client_id = \"machine\" }",
    );
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    (home, gateway)
}

/// A fresh opaque token of a machine for an endpoint.
fn opaque(provider: &Provider, client: &str, endpoint: &str) -> String {
    let token = provider.machine(client, &format!("{}?opaque", resource(endpoint)), "");
    assert!(!token.contains('.'), "{token}");
    token
}

fn code(reply: &Reply) -> String {
    reply.json()["error"]["data"]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn the_provider_is_asked_once_about_an_opaque_token() {
    let provider = Provider::start(600);
    let (home, gateway) = start(&provider, "");
    let token = opaque(&provider, "machine", "/mcp");
    let ask = |token: &str| initialize(&gateway, "/mcp", Some(token));
    // Twenty connections at once, then twenty more.
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..20).map(|_| scope.spawn(|| ask(&token))).collect();
            for reply in asked.into_iter().map(|one| one.join().unwrap()) {
                assert_eq!(reply.status, 200, "{reply:?}");
            }
        });
        assert_eq!(provider.asked(ABOUT), 1);
    }
    let people = gateway.get("/api/v1/servers", Some(&token));
    assert_eq!(people.status, 200, "on the other wires too: {people:?}");
    // Not active: never given, and revoked before it was seen. Asked once, then refused for a
    // while.
    let revoked = opaque(&provider, "machine", "/mcp");
    provider.revoke("machine", &revoked);
    for (token, asked) in [("no-token-at-all", 2), (&revoked, 3)] {
        for _ in 0..3 {
            let refused = ask(token);
            assert_eq!(
                (refused.status, code(&refused).as_str()),
                (401, "unauthenticated"),
                "{refused:?}"
            );
            assert!(
                challenge(&refused).contains("error=\"invalid_token\""),
                "{refused:?}"
            );
        }
        assert_eq!(provider.asked(ABOUT), asked);
    }
    // A JWT of the same issuer is not what it was configured for, and is not asked about.
    let jwt = provider.machine("machine", &resource("/mcp"), "");
    assert_eq!(ask(&jwt).status, 401);
    assert_eq!(provider.asked(ABOUT), 3);
    // The audit log has each refusal, also those of which the provider was not asked again.
    until("all are recorded", || {
        (refused_sign_ins(&home).len() == 7).then_some(())
    });
    assert_eq!(ask(&token).status, 200);
}

#[test]
fn an_answer_without_audience_counts_only_where_the_operator_says_so() {
    let provider = Provider::start(600);
    for (more, status) in [
        ("", 401),
        ("audience_from = \"client\"\n", 401),
        (
            "audience_from = \"client\"\naudiences = [\"machine\"]\n",
            200,
        ),
    ] {
        let (_home, gateway) = start(&provider, more);
        let reply = initialize(
            &gateway,
            "/mcp",
            Some(&provider.without_audience("machine")),
        );
        assert_eq!(reply.status, status, "{more}: {reply:?}");
        if status == 401 {
            assert_eq!(code(&reply), "token_foreign", "{more}");
        }
        // For another endpoint, and of a client that no rule gives a place.
        let ops = initialize(
            &gateway,
            "/mcp",
            Some(&opaque(&provider, "machine", "/mcp/ops")),
        );
        assert_eq!(
            (ops.status, code(&ops).as_str()),
            (401, "token_foreign"),
            "{ops:?}"
        );
        let stranger = initialize(
            &gateway,
            "/mcp",
            Some(&opaque(&provider, "stranger", "/mcp")),
        );
        assert_eq!(
            (stranger.status, challenge(&stranger)),
            (403, ""),
            "{stranger:?}"
        );
    }
}

#[test]
fn a_provider_that_cannot_be_asked_may_know_what_another_does_not() {
    let provider = Provider::start(600);
    let away = "[issuers.away]\nissuer = \"http://127.0.0.1:1\"\ntokens = \"introspect\"\n\
        client_id = \"gateway\"\nclient_secret_env = \"IDP_SECRET\"\nname = \"{client_id}\"\n\
        [[issuers.away.map]]\nwhen = { client_id = \"machine\" }\nprofile = \"machines\"\n";
    let (home, gateway) = start(&provider, "");
    gateway.stop().expect(0);
    let config = std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap();
    let gateway = Gateway::start(
        &home,
        &config.replacen("[issuers.corp]", &format!("{away}[issuers.corp]"), 1),
    );
    for _ in 0..2 {
        let reply = initialize(&gateway, "/mcp", Some("of-whom-is-this"));
        assert_eq!(
            (reply.status, code(&reply).as_str()),
            (503, "issuer_unreachable"),
            "{reply:?}"
        );
    }
    let known = opaque(&provider, "machine", "/mcp");
    assert_eq!(initialize(&gateway, "/mcp", Some(&known)).status, 200);
    // Unless it is known how the other's tokens begin: it sees no others, and says nothing about
    // them.
    gateway.stop().expect(0);
    let away = away.replacen("tokens =", "token_prefix = \"away_\"\ntokens =", 1);
    let gateway = Gateway::start(
        &home,
        &config.replacen("[issuers.corp]", &format!("{away}[issuers.corp]"), 1),
    );
    for (token, status) in [
        ("of-whom-is-this", 401),
        ("away_1", 503),
        (known.as_str(), 200),
    ] {
        let reply = initialize(&gateway, "/mcp", Some(token));
        assert_eq!(reply.status, status, "{token}: {reply:?}");
    }
}

#[test]
fn persons_without_sub_are_participants_by_their_usernames() {
    let provider = Provider::start(600);
    let (home, gateway) = start(&provider, "unknown = \"ops\"\n");
    gateway.stop().expect(0);
    let config = std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap();
    let config = config.replacen(
        "name = \"{client_id}\"",
        "name = \"{preferred_username}\"",
        1,
    );
    let gateway = Gateway::start(&home, &config);
    let answers = |about: serde_json::Value| {
        let mut answer = json!({ "active": true, "client_id": "app", "aud": resource("/mcp") });
        answer
            .as_object_mut()
            .unwrap()
            .extend(about.as_object().unwrap().clone());
        let body = answer.to_string();
        provider.control(
            &json!({"op": "fault", "path": ABOUT, "kind": "answer", "status": 200, "body": body}),
        );
    };
    let who = |token: &str| {
        assert_eq!(
            initialize(&gateway, "/mcp", Some(token)).status,
            200,
            "{token}"
        );
        let mut socket = Socket::open_with(&gateway, token, "", &format!("Bearer {token}"));
        socket.receive()["payload"]["you"]["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    answers(json!({ "username": "ann" }));
    assert_eq!(who("token-of-ann"), "corp:ann");
    answers(json!({ "username": "bob" }));
    assert_eq!(
        (who("token-of-bob"), who("token-of-ann")),
        ("corp:bob".to_owned(), "corp:ann".to_owned())
    );
    answers(json!({}));
    assert_eq!(who("token-of-app"), "corp:app");
    // A person whose username is the id of that client is another subject, and does not get its
    // name.
    answers(json!({ "username": "app" }));
    assert_eq!(
        code(&initialize(&gateway, "/mcp", Some("token-of-another"))),
        "no_place"
    );
    for about in [
        json!({ "email": "eve@example.com" }),
        json!({ "username": "" }),
    ] {
        answers(about.clone());
        let reply = initialize(
            &gateway,
            "/mcp",
            Some(&format!("token-of-{}", about.to_string().len())),
        );
        assert_eq!(
            (reply.status, code(&reply).as_str()),
            (401, "unauthenticated"),
            "{about}: {reply:?}"
        );
    }
}

#[test]
fn a_provider_that_cannot_be_asked_is_no_reason_to_sign_in_again() {
    let provider = Provider::start(600);
    let (_home, gateway) = start(&provider, "");
    let known = opaque(&provider, "machine", "/mcp");
    assert_eq!(initialize(&gateway, "/mcp", Some(&known)).status, 200);
    for mode in ["down", "lying", "silent"] {
        let fresh = opaque(&provider, "machine", "/mcp");
        provider.control(&json!({"op": "mode", "mode": mode}));
        let reply = initialize(&gateway, "/mcp", Some(&fresh));
        assert_eq!(
            (reply.status, code(&reply).as_str()),
            (503, "issuer_unreachable"),
            "{mode}: {reply:?}"
        );
        assert!(
            reply.header("retry-after").is_some() && challenge(&reply).is_empty(),
            "{mode}: {reply:?}"
        );
        assert_eq!(
            initialize(&gateway, "/mcp", Some(&known)).status,
            200,
            "{mode}"
        );
        provider.control(&json!({"op": "mode", "mode": "up"}));
        let reply = initialize(&gateway, "/mcp", Some(&fresh));
        assert_eq!(
            reply.status, 200,
            "at once, when it is there again: {mode}: {reply:?}"
        );
    }
}

/// A session of the console asks about its token again when the answer counts no more, as every door does.
#[test]
fn a_console_session_of_an_opaque_token_ends_with_the_token_and_not_with_an_answer() {
    let provider = Provider::start(600);
    let (home, gateway) = start(&provider, "");
    let config = std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap();
    let config = format!("[console]\nenabled = true\n{config}");
    // With another configuration no answer of before counts.
    let reloads = |skew: u32| {
        let count = || gateway.log().matches("changed: reloaded").count();
        let before = count();
        let skew = format!("[issuers.corp]\nskew = \"{skew}s\"");
        home.write("portmoot.toml", &config.replace("[issuers.corp]", &skew));
        until("it is reloaded", || (count() > before).then_some(()));
    };
    reloads(1);
    let (host, origin) = ("mcp.example.com", "https://mcp.example.com");
    let ask = |method: &str, path: &str, cookie: &str, form: &str| {
        let headers = [
            ("origin", origin),
            ("cookie", cookie),
            ("content-type", "application/x-www-form-urlencoded"),
        ];
        Connection::open(gateway.address()).exchange_at(host, method, path, &headers, form)
    };
    let token = opaque(&provider, "machine", "/mcp");
    // Of a token that no door has seen yet, too.
    let entered = ask("POST", "/console/login", "", &format!("code={token}"));
    assert_eq!(entered.status, 303, "{entered:?}");
    let cookie = entered
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap();
    let page = || ask("GET", "/console/past", cookie, "").body;
    assert!(page().contains("Sign out"));
    let asked = provider.asked(ABOUT);
    reloads(2);
    until("the provider is asked again", || {
        assert!(page().contains("Sign out"), "{}", page());
        (provider.asked(ABOUT) > asked).then_some(())
    });
    provider.control(&json!({ "op": "mode", "mode": "down" }));
    reloads(3);
    until("it is not known", || {
        (ask("GET", "/console/past", cookie, "").status == 503).then_some(())
    });
    provider.control(&json!({ "op": "mode", "mode": "up" }));
    assert!(page().contains("Sign out"));
    provider.revoke("machine", &token);
    reloads(4);
    until("it has ended", || {
        page().contains("session has ended").then_some(())
    });
}
