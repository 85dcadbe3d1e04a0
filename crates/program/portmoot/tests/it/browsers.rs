//! Clients in browsers: the preflight of an accepted origin is answered, and its page may read the
//! answers.

use serde_json::json;

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway};

const PAGE: &str = "http://localhost:6274";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
/// A gateway at which every caller needs a token.
const CLOSED: &str = "[servers.d]\ntype = \"demo\"\n[participants.ann]\ntoken_env = \"ANN\"\n";

fn gateway() -> (Home, Gateway) {
    let home = Home::new().env("ANN", "a-token-of-ann-0123456789");
    let gateway = Gateway::start(&home, CLOSED);
    (home, gateway)
}

fn preflight(gateway: &Gateway, path: &str, origin: &str, headers: &str) -> Reply {
    let sent = [
        ("origin", origin),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", headers),
    ];
    Connection::open(gateway.address()).exchange("OPTIONS", path, &sent, "")
}

#[test]
fn an_accepted_origin_is_answered_before_it_has_a_token() {
    let (_home, gateway) = gateway();
    let asked = "authorization, content-type, mcp-protocol-version, mcp-session-id, Mcp-Param-Region, last-event-id, x-other";
    for path in ["/mcp", "/mcp/", "/mcp/main"] {
        let reply = preflight(&gateway, path, PAGE, asked);
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin")),
            (204, Some(PAGE)),
            "{path}"
        );
        let allowed = reply.header("access-control-allow-headers").unwrap();
        assert_eq!(
            allowed,
            "authorization, content-type, last-event-id, mcp-param-region, mcp-protocol-version, mcp-session-id"
        );
        assert_eq!(
            reply.header("access-control-allow-methods"),
            Some("POST, GET, DELETE")
        );
        assert_eq!(reply.header("vary"), Some("Origin"));
    }
}

#[test]
fn a_page_reads_answers_challenges_and_its_session() {
    let (_home, gateway) = gateway();
    let post = |more: &[(&str, &str)]| {
        let mut headers = vec![
            ("origin", PAGE),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        headers.extend(more);
        Connection::open(gateway.address()).exchange("POST", "/mcp", &headers, INITIALIZE)
    };
    let refused = post(&[]);
    assert_eq!(
        (
            refused.status,
            refused.header("access-control-allow-origin")
        ),
        (401, Some(PAGE))
    );
    let exposed = refused.header("access-control-expose-headers").unwrap();
    assert!(
        exposed.contains("WWW-Authenticate") && exposed.contains("Mcp-Session-Id"),
        "{exposed}"
    );
    let opened = post(&[("authorization", "Bearer a-token-of-ann-0123456789")]);
    assert_eq!(
        (opened.status, opened.header("access-control-allow-origin")),
        (200, Some(PAGE))
    );
    assert!(opened.header("mcp-session-id").is_some());
}

#[test]
fn other_origins_and_other_paths_are_not_opened() {
    let (_home, gateway) = gateway();
    let reply = preflight(&gateway, "/mcp", "https://evil.example", "content-type");
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (403, None)
    );
    for path in ["/api/v1/servers", "/metrics", "/ws", "/"] {
        let reply = preflight(&gateway, path, PAGE, "authorization");
        assert_eq!(
            reply.header("access-control-allow-origin"),
            None,
            "{path} {reply:?}"
        );
    }
    // Who is no page gets no such header.
    let ann = Client::of(&gateway, "a-token-of-ann-0123456789");
    let reply = ann.post(&ann.request("ping", json!({})));
    assert_eq!(
        (reply.status, reply.header("access-control-allow-origin")),
        (200, None)
    );
}
