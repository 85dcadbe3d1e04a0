//! Calls of proto-mcp clients that become tasks at their servers: the contract has no message for
//! tasks, so the gateway waits.

use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use super::followed::{knows_no_task, sent};
use super::jobs::server;
use crate::home::Home;
use crate::peer::{Peer, answer};
use crate::support::{Client, Gateway, until};

/// The tools of [`insisting`], each with the end of its task.
const ENDS: [(&str, &str); 4] = [
    (
        "good",
        r#""status":"completed","result":{"content":[{"type":"text","text":"good is done"}]}"#,
    ),
    (
        "bad",
        r#""status":"completed","result":{"content":[{"type":"text","text":"bad is done"}],"isError":true}"#,
    ),
    (
        "broken",
        r#""status":"failed","error":{"code":-32603,"message":"the job broke"}"#,
    ),
    ("gone", r#""status":"cancelled""#),
];

/// A modern server whose tools insist on a task, which ends after a look at it.
fn insisting() -> Peer {
    let looks = std::sync::Mutex::new(0_usize);
    Peer::stdio(move |message| {
        const EXTENSION: &str = "io.modelcontextprotocol/tasks";
        let at = r#""createdAt":"2026-11-22T05:00:00Z","lastUpdatedAt":"2026-11-22T05:00:00Z","ttlMs":null,"pollIntervalMs":1"#;
        let params = &message["params"];
        let able =
            &params["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"][EXTENSION];
        let said = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": {}, "extensions": { EXTENSION: {} } },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "t", "version": "1" } },
            })
            .to_string(),
            "tools/list" => {
                let tools = ENDS.map(|(tool, _)| json!({ "name": tool, "inputSchema": { "type": "object" } }));
                json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private", "tools": tools }).to_string()
            }
            "tools/call" if able.is_null() => {
                let needed = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
                let error = json!({ "code": -32021, "message": "this takes a task", "data": needed });
                let refused = json!({ "jsonrpc": "2.0", "id": message["id"], "error": error });
                return vec![refused.to_string().into_bytes()];
            }
            "tools/call" => {
                let id = params["name"].as_str().unwrap();
                format!(r#"{{"resultType":"task","taskId":"{id}","status":"working",{at}}}"#)
            }
            "tasks/get" => {
                let id = params["taskId"].as_str().unwrap();
                let (_, end) = ENDS.iter().find(|(tool, _)| *tool == id).unwrap();
                let mut looks = looks.lock().unwrap();
                *looks += 1;
                let state = if looks.is_multiple_of(2) { end } else { r#""status":"working""# };
                format!(r#"{{"resultType":"complete","taskId":"{id}",{state},{at}}}"#)
            }
            _ => return Vec::new(),
        };
        vec![answer(message, &said).into_bytes()]
    })
}

#[test]
fn a_grpc_client_gets_the_end_of_the_task_of_its_call() {
    let peer = insisting();
    let table = peer.child("m", "m").replace("\"legacy\"", "\"modern\"");
    let home = Home::new();
    let gateway = Gateway::start(&home, &table);
    gateway.ready("m");
    for (tool, expected) in [
        ("m_good", json!(["good is done"])),
        ("m_bad", json!({ "is_error": ["bad is done"] })),
        ("m_broken", json!({ "error": [-32603, "the job broke"] })),
        (
            "m_gone",
            json!(["INTERNAL", -31006, { "code": "upstream_failed" }]),
        ),
    ] {
        let report = grpc_client(&[gateway.address(), "", "--call", tool, "words"]);
        assert_eq!(report["answers"][0], expected, "{tool}: {report}");
        knows_no_task(&report);
    }
    assert_eq!(sent(&peer, "tasks/get"), 2 * ENDS.len());
}

#[test]
fn a_client_over_tcp_gets_the_end_of_the_task_of_its_call() {
    let (home, one) = (Home::new(), server());
    let gateway = Gateway::start(&home, &one.child("a", "a"));
    gateway.ready("a");
    let other = Client::plain(&gateway);
    for (number, how, expected) in [
        (1, "", json!(["task-1 is done"])),
        (2, "tool", json!({ "is_error": ["task-2 is done"] })),
        (3, "protocol", json!({ "error": [-32050, "the job broke"] })),
    ] {
        let words = [
            "--call",
            "a_must",
            "words",
            "--tcp",
            gateway.address(),
            "--times",
            "1",
        ]
        .map(str::to_owned);
        let client = std::thread::spawn(move || proto_client(&words));
        until("the result is awaited", || {
            (sent(&one, "tasks/result") == number).then_some(())
        });
        other.call(
            "a_finish",
            json!({ "task": format!("task-{number}"), "how": how }),
        );
        let report: Value = client.join().unwrap();
        assert_eq!(report["answers"][0], expected, "{how}: {report}");
        knows_no_task(&report);
    }
}
