//! Errors of the REST API: each has a JSON body with a stable code, wherever it arises.

use serde_json::Value;

use crate::http::{Connection, Reply};
use crate::support::{Gateway, fixture};
use crate::ws::{people, token};

const METHODS: [&str; 6] = ["GET", "POST", "PUT", "DELETE", "PATCH", "TRACE"];

#[track_caller]
fn has_code(reply: &Reply, status: u16, code: &str, of: &str) {
    assert_eq!(reply.status, status, "{of}: {reply:?}");
    let problem: Value = serde_json::from_str(&reply.body)
        .unwrap_or_else(|error| panic!("{of}: {error}: {reply:?}"));
    assert_eq!(problem["code"], code, "{of}: {reply:?}");
    assert!(
        problem["message"].as_str().is_some_and(|it| !it.is_empty()),
        "{of}: {reply:?}"
    );
    assert_eq!(
        reply.header("content-type"),
        Some("application/json"),
        "{of}"
    );
}

#[test]
fn every_error_of_the_api_has_a_code() {
    let (home, config) = people(&[("ann", &["mcp/*", "portmoot/*"])]);
    let limits = "[server.limits]\nbody_bytes_max = \"8KiB\"\n";
    let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config + limits));
    let bearer = format!("Bearer {}", token("ann"));
    let ask_at = |host: &str, method: &str, path: &str, more: (&str, &str), body: &str| {
        let json = ("content-type", "application/json");
        let headers = [("authorization", bearer.as_str()), json, more];
        let mut connection = Connection::open(gateway.address());
        connection.exchange_at(host, method, path, &headers, body)
    };
    let ask = |method: &str, path: &str, body: &str| {
        ask_at("localhost", method, path, ("x-more", "1"), body)
    };
    // Methods that a path does not have.
    let document = gateway.get("/api/v1/openapi.json", Some(&token("ann")));
    let mut undeclared = 0;
    for (path, declared) in document.json()["paths"].as_object().unwrap() {
        for method in METHODS {
            if declared.get(method.to_lowercase()).is_some() {
                continue;
            }
            let of = format!("{method} {path}");
            let reply = ask(method, &path.replace(['{', '}'], ""), "");
            has_code(&reply, 405, "unsupported", &of);
            assert!(reply.header("allow").is_some(), "{of}: {reply:?}");
            let hint = reply.json()["hint"].clone();
            assert!(hint.as_str().unwrap().starts_with("it has "), "{hint}");
            undeclared += 1;
        }
    }
    assert!(undeclared > 100, "{undeclared}");
    let call = "/api/v1/tools/tools_echo/call";
    let (none, plain) = (("x-more", "1"), "{}");
    for (reply, status, code, of) in [
        (ask("GET", "/api/v1/tools/%ff", ""), 400, "malformed", "%ff"),
        (
            ask("GET", "/api/v1/none", ""),
            404,
            "unknown_target",
            "path",
        ),
        (
            ask("POST", call, &"x".repeat(9_000)),
            413,
            "too_large",
            "body",
        ),
        (
            ask_at("evil.example", "POST", call, none, plain),
            403,
            "forbidden",
            "host",
        ),
        (
            ask_at(
                "localhost",
                "POST",
                call,
                ("origin", "http://evil.example"),
                plain,
            ),
            403,
            "forbidden",
            "origin",
        ),
        (
            gateway.get("/api/v1/servers", Some("no-token-of-anyone")),
            401,
            "unauthenticated",
            "token",
        ),
    ] {
        has_code(&reply, status, code, of);
    }
}
