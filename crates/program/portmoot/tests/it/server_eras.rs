//! Servers of both eras: their legacy clients have the legacy side, whatever revisions they list.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use harness::Running;
use serde_json::json;

use crate::home::Home;
use crate::peer::{Peer, answer};
use crate::socket::stdio_server;
use crate::support::{Client, Gateway, fixture, modern};

#[test]
fn a_legacy_client_has_the_legacy_side_of_a_server_that_lists_only_the_modern_revision() {
    let home = Home::new();
    let flags = ["--era", "both", "--lists-modern"];
    let running = Running::fixture(&flags);
    let config =
        fixture("pipe", &flags) + &format!("[servers.http]\nurl = \"{}\"\n", running.url());
    let gateway = Gateway::start(&home, &config);
    for server in ["pipe", "http"] {
        let version = |record: &serde_json::Value| record["protocolVersion"].clone();
        let asked = modern(
            &gateway,
            None,
            "tools/call",
            json!({ "name": format!("{server}_record") }),
        )
        .json();
        assert_eq!(version(&asked["result"]["structuredContent"]), "2026-07-28");
        let client = Client::open(&gateway, None, "/mcp", json!({ "sampling": {} }));
        assert_eq!(version(&client.record(server)), "2025-11-25", "{server}");
        // It is asked, and gets log messages at its level.
        let call = client.begin_call(&format!("{server}_test_sampling"), json!({ "prompt": "?" }));
        let question = call.next_of("sampling/createMessage");
        let content = json!({ "type": "text", "text": "yes" });
        client.answer(
            &question,
            json!({ "role": "assistant", "content": content, "model": "m" }),
        );
        assert_eq!(
            call.next()["result"]["content"][0]["text"],
            "LLM response: yes"
        );
        for (level, lines) in [("error", 0), ("info", 3)] {
            client.ask("logging/setLevel", json!({ "level": level }));
            let received = client
                .begin_call(&format!("{server}_test_tool_with_logging"), json!({}))
                .rest();
            let logged = received
                .iter()
                .filter(|message| message["method"] == "notifications/message");
            assert_eq!(logged.count(), lines, "{server}, {level}: {received:?}");
        }
    }
}

#[test]
fn a_modern_server_that_rejects_its_first_request_is_asked_again() {
    for era in ["auto", "modern"] {
        let rejected = AtomicBool::new(false);
        let peer = Peer::http(move |message| {
            let of = |result: &str| answer(message, result);
            let (status, body) = match message["method"].as_str().unwrap_or_default() {
                "server/discover" if !rejected.swap(true, Relaxed) => {
                    let data = json!({ "supported": ["2026-07-28"], "requested": "2026-07-28" });
                    let error = json!({ "code": -32022, "message": "Unsupported protocol version", "data": data });
                    (
                        "400 Bad Request",
                        json!({ "jsonrpc": "2.0", "id": message["id"], "error": error })
                            .to_string(),
                    )
                }
                "server/discover" => (
                    "200 OK",
                    of(
                        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}"#,
                    ),
                ),
                "tools/list" => (
                    "200 OK",
                    of(
                        r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"go","inputSchema":{"type":"object"}}]}"#,
                    ),
                ),
                _ => ("202 Accepted", String::new()),
            };
            let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n");
            vec![format!("{head}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()]
        });
        let config = format!(
            "[topics.main]\nbuiltin = []\n[servers.peer]\nurl = {:?}\nera = {era:?}\n",
            peer.url()
        );
        let gateway = Gateway::start(&Home::new(), &config);
        gateway.ready("peer");
        let tools =
            modern(&gateway, None, "tools/list", json!({})).json()["result"]["tools"].clone();
        assert_eq!(tools[0]["name"], "peer_go", "{era}: {tools}");
    }
}

/// A modern server that reads nothing before the gateway asks it in the other era too, and ends at
/// that, as the official SDK for Rust does.
#[test]
fn a_modern_child_that_starts_slowly_is_asked_again_in_its_own_era() {
    let script = "[ -e \"$0\" ] && exec \"$@\"; IFS= read -r a; IFS= read -r b; : > \"$0\"; exec 3<&0; \
                  exec \"$@\" < <(printf '%s\\n' \"$a\" \"$b\"; exec cat <&3)";
    let home = Home::new();
    let (seen, server) = (home.path().join("seen"), harness::fixture_binary());
    let args = [
        "-c",
        script,
        seen.to_str().unwrap(),
        server.to_str().unwrap(),
        "--stdio",
        "--era",
        "modern",
    ];
    let gateway = Gateway::start(&home, &stdio_server("slow", "slow", "bash", &args));
    gateway.ready("slow");
    let asked = std::fs::read_to_string(&seen).is_ok();
    let tools =
        modern(&gateway, None, "tools/list", json!({})).json()["result"]["tools"].to_string();
    assert!(asked && tools.contains("slow_echo"), "{tools}");
}
