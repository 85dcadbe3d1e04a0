//! Audience of tokens: the topics and endpoints for which one is good, and its scopes.

use serde_json::json;

use super::{Site, config, free_port, serve};
use crate::home::Home;
use crate::http::Reply;
use crate::support::until;
use crate::ws::Socket;

const SCOPES: &str = "[scopes.read]\nbaseline = true\ncapabilities = [\"mcp/request:tools/call:a_echo\"]\n\
    [scopes.all]\ncapabilities = [\"mcp/*\"]";

impl Site {
    fn api(&self, token: &str, method: &str, path: &str, body: &serde_json::Value) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers = [
            ("authorization", bearer.as_str()),
            ("content-type", "application/json"),
        ];
        self.request(
            method,
            &format!("/api/v1/{path}"),
            &headers,
            &body.to_string(),
        )
    }
}

/// A gateway whose topic `ops` only `ann`, who may do everything in both topics, may know.
fn with_private_topic() -> Site {
    let (home, port) = (Home::new(), free_port());
    let text = config(port, "", "")
        .replace(
            "[\"mcp/*\", \"chat\"]",
            "[\"mcp/*\", \"chat\", \"portmoot/*\"]",
        )
        .replace("[topics.ops]", "[topics.ops]\naccess = \"private\"");
    home.write("portmoot.toml", &text);
    let gateway = serve(&home, port);
    gateway.ready("a");
    Site {
        home,
        gateway,
        port,
        front: None,
    }
}

#[test]
fn a_token_for_one_endpoint_neither_sees_nor_acts_in_another_topic_by_the_api() {
    let site = with_private_topic();
    let issued = [
        "token",
        "new",
        "agent",
        "--capability",
        "mcp/proposal:*",
        "--topic",
        "ops",
    ];
    let agent = site.home.run(&issued).expect(0).stdout.trim().to_owned();
    let mut agent = Socket::open_with(
        &site.gateway,
        "agent",
        "?topic=ops",
        &format!("Bearer {agent}"),
    );
    let payload = json!({ "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "x" } } });
    agent.send(
        "mcp/proposal:tools/call:echo",
        "p",
        &["a"],
        json!({}),
        &payload,
    );
    // The operator sees it.
    let proposal = until("the proposal", || {
        let listed = site
            .home
            .run(&["proposals", "ls", "--json"])
            .expect(0)
            .stdout;
        let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
        listed["proposals"].get(0).cloned()
    });
    assert_eq!(proposal["topic"], "ops");
    let (_, tokens) = site.signed_in("ann", &[]);
    let ask = |method: &str, path: &str, body: serde_json::Value| {
        site.api(&tokens.access, method, path, &body)
    };
    let none = json!({});
    for path in [
        "proposals?all=true",
        "participants",
        "participants/ann/can",
        "tools",
        "tokens",
        "servers",
    ] {
        let reply = ask("GET", path, none.clone());
        assert_eq!(reply.status, 200, "{path} {reply:?}");
        let seen = reply.body.replace("/mcp/ops", "");
        assert!(
            !seen.contains("\"ops\"") && !seen.contains("agent\",\"topic"),
            "{path} {seen}"
        );
    }
    assert!(
        !site
            .api(&tokens.access, "GET", "metrics", &none)
            .body
            .contains("\"ops\"")
    );
    let id = proposal["id"].as_str().unwrap();
    let decided = ask(
        "POST",
        &format!("proposals/{id}/approve"),
        json!({ "digest": proposal["digest"] }),
    );
    assert_eq!(decided.status, 404, "{decided:?}");
    for (method, path, body) in [
        ("GET", "participants?topic=ops", none.clone()),
        ("GET", "participants/ann/can?topic=ops", none.clone()),
        ("GET", "tools?topic=ops", none.clone()),
        (
            "DELETE",
            "participants/agent/grants?topic=ops",
            none.clone(),
        ),
        (
            "POST",
            "participants/ann/grants?topic=ops",
            json!({ "add": ["chat"] }),
        ),
        (
            "POST",
            "participants/ann/grants",
            json!({ "add": ["chat"] }),
        ),
        (
            "POST",
            "tokens",
            json!({ "name": "ann", "topics": ["ops"] }),
        ),
        (
            "POST",
            "tokens",
            json!({ "name": "friend", "capabilities": ["chat"], "topics": ["ops"] }),
        ),
        ("POST", "logins", json!({ "name": "ann" })),
        ("POST", "connect-code", none.clone()),
    ] {
        let reply = ask(method, path, body.clone());
        assert!(
            [400, 401, 403, 404].contains(&reply.status),
            "{method} {path} {body} {reply:?}"
        );
    }
    let still = site.home.run(&["proposals", "ls"]).expect(0).stdout;
    assert!(still.contains(id.get(..8).unwrap_or(id)), "{still}");
    // In its own topic the token is as good as ever.
    let granted = ask(
        "POST",
        "participants/bob/grants?topic=main",
        json!({ "add": ["chat"], "expires_in_seconds": 60 }),
    );
    assert_eq!(granted.status, 200, "{granted:?}");
}

#[test]
fn a_token_of_few_scopes_gets_no_code_and_ends_no_sign_in_of_its_participant() {
    let site = Site::start("", SCOPES);
    let (_, wide) = site.signed_in("bob", &[("scope", "all")]);
    let (_, narrow) = site.signed_in("bob", &[("scope", "read")]);
    let none = json!({});
    let clients = site.api(&narrow.access, "GET", "clients", &none).json();
    let ids: Vec<&str> = clients["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["client"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), 2);
    for (method, path) in [
        ("POST", "connect-code".to_owned()),
        ("DELETE", format!("clients/{}", ids[0])),
        ("DELETE", format!("clients/{}", ids[1])),
        ("DELETE", format!("consents/{}", ids[0])),
        ("DELETE", format!("consents/{}", ids[1])),
    ] {
        let reply = site.api(&narrow.access, method, &path, &none);
        assert_eq!(reply.status, 403, "{method} {path} {reply:?}");
    }
    assert_eq!(site.initialize("/mcp", &wide.access), 200);
    assert_eq!(
        site.api(&wide.access, "POST", "connect-code", &none).status,
        201
    );
    let ended = site.api(
        &wide.access,
        "DELETE",
        &format!("clients/{}", ids[0]),
        &none,
    );
    assert_eq!(ended.status, 200, "{ended:?}");
}
