//! Streams: batches, resumption, cancellation. The SDKs do not cover these.

use harness::Running;
use serde_json::{Value, json};

use crate::front::{over_http, over_stdio};
use crate::home::Home;
use crate::program::Program;
use crate::socket::{Gateway, modern_body, modern_headers, until};

fn request(id: u64, method: &str, params: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn slow(id: u64, ms: u64, meta: &Value) -> String {
    request(
        id,
        "tools/call",
        &json!({ "name": "slow", "arguments": { "ms": ms }, "_meta": meta }),
    )
}

#[test]
fn batches_belong_to_one_revision() {
    let gateway = Gateway::serve(&over_stdio("", &[]));
    let call = json!({ "name": "echo", "arguments": { "text": "in a batch" } });
    let unknown = request(3, "tools/call", &json!({ "name": "nobody_has_it" }));
    let parts = [
        request(1, "ping", &json!({})),
        request(2, "tools/call", &call),
        "{}".to_owned(),
        unknown,
    ];
    let batch = format!(
        "[{},{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}]",
        parts.join(",")
    );

    let session = gateway.session_as(&[], "2025-03-26", "{}");
    let mut answers = session.begin(&batch).rest();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let [bad, pong, echo, unknown] = answers.as_slice() else {
        panic!("{answers:?}")
    };
    assert_eq!(bad["error"]["code"], -32600);
    assert_eq!(pong["result"], json!({}));
    assert_eq!(echo["result"]["content"][0]["text"], "in a batch");
    assert!(unknown["error"]["code"].is_i64(), "{unknown}");
    let silent = "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]";
    assert_eq!(session.post(silent).status, 202);

    for other in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        assert_eq!(
            gateway.session_as(&[], other, "{}").post(&batch).status,
            400,
            "{other}"
        );
    }
}

/// Streams that one session may have open (`STREAMS_MAX`).
const STREAMS_MAX: u64 = 1024;

#[test]
fn a_request_without_room_for_its_stream_is_refused() {
    let limits = "[server.limits]\nparticipant_calls_max = 3000\nupstream_calls_max = 3000\nparticipant_upstream_calls_max = 3000\n";
    let gateway = Gateway::serve(&format!("{}{limits}", over_stdio("", &[])));
    let session = gateway.session_as(&[], "2025-03-26", "{}");
    for id in 0..STREAMS_MAX {
        // A client that leaves keeps its stream: it may come back for the answer.
        assert_eq!(
            session
                .begin(format!("[{}]", slow(id, 60_000, &json!({}))))
                .status,
            200,
            "{id}"
        );
    }
    let refused = |body: &str| {
        let reply = session.post(body);
        assert!(
            reply
                .text()
                .contains("too many requests are open in this session"),
            "{reply:?}"
        );
        (reply.status, reply.json()["id"].as_u64())
    };
    let notified = slow(9001, 2_000, &json!({ "progressToken": 1 }));
    assert_eq!(
        refused(&notified),
        (200, Some(9001)),
        "progress comes before the answer"
    );
    assert_eq!(refused(&format!("[{notified}]")), (503, None));
    let silent = "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}]";
    assert_eq!(
        session.post(silent).status,
        202,
        "nothing is to be answered"
    );
    let answered = request(
        9002,
        "tools/call",
        &json!({ "name": "echo", "arguments": { "text": "a" } }),
    );
    assert_eq!(
        session.post(answered).json()["result"]["content"][0]["text"],
        "a",
        "it needs no stream"
    );
}

#[test]
fn a_lost_answer_is_resumed() {
    let fixture = Running::fixture(&[]);
    let gateway = Gateway::serve(&over_http(&fixture, ""));
    let session = gateway.session();
    let mut first = session.begin(slow(7, 1000, &json!({ "progressToken": "mine" })));
    let (id, progress) = first.message().unwrap();
    assert_eq!(progress["params"]["progress"], 1.0);
    assert_eq!(progress["params"]["progressToken"], "mine");
    drop(first);

    let rest = session.listen(Some(&id)).rest();
    let steps: Vec<u64> = rest
        .iter()
        .filter_map(|message| message["params"]["progress"].as_f64())
        .map(|step| step as u64)
        .collect();
    assert_eq!(steps, [2, 3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(rest.last().unwrap()["id"], 7);
    assert_eq!(
        rest.last().unwrap()["result"]["content"][0]["text"],
        "1000 ms later"
    );
    // Resumed once more, after its end.
    assert_eq!(session.listen(Some(&id)).rest(), rest);
    assert_eq!(gateway.session().listen(Some(&id)).status, 400);
}

#[test]
fn a_lost_get_stream_is_resumed_without_gaps() {
    let fixture = Running::fixture(&["--era", "legacy"]);
    let gateway = Gateway::serve(&over_http(&fixture, ""));
    let session = gateway.session();
    let mut stream = session.listen(None);
    session.call("toggle_tool", &json!({}));
    let (id, first) = stream.message().unwrap();
    assert_eq!(first["method"], "notifications/tools/list_changed");
    drop(stream);

    session.call("test_trigger_prompt_change", &json!({}));
    let mut again = session.listen(Some(&id));
    let (next, second) = again.message().unwrap();
    assert_eq!(second["method"], "notifications/prompts/list_changed");
    assert_ne!(id, next);
    let mut replayed = session.listen(Some(&id));
    assert_eq!(replayed.message().unwrap(), (next, second));
}

#[test]
fn a_cancelled_call_is_cancelled_at_the_server() {
    let fixture = Running::fixture(&[]);
    for config in [over_http(&fixture, ""), over_stdio("", &[])] {
        let gateway = Gateway::serve(&config);
        let count = |answer: &Value| {
            answer["result"]["structuredContent"]["cancelled"]
                .as_u64()
                .unwrap()
        };

        // Legacy: by a notification.
        let session = gateway.session();
        let before = count(&session.call("record", &json!({})));
        let mut open = session.begin(slow(7, 5000, &json!({ "progressToken": 1 })));
        open.message().unwrap();
        let params = json!({ "requestId": 7, "reason": "changed my mind" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        assert_eq!(session.post(cancel.to_string()).status, 202);
        until("the legacy call is cancelled", || {
            count(&session.call("record", &json!({}))) == before + 1
        });

        // Modern: by closing the stream.
        let named =
            |tool, arguments: Value| format!("\"name\":\"{tool}\",\"arguments\":{arguments}");
        let record = named("record", json!({}));
        let counted = || count(&gateway.modern("tools/call", Some("record"), &record).json());
        let before = counted();
        let slow = modern_body("tools/call", &named("slow", json!({ "ms": 5000 })));
        let slow = slow.replace("\"_meta\":{", "\"_meta\":{\"progressToken\":1,");
        let mut open = gateway.begin_post(&modern_headers("tools/call", Some("slow")), slow);
        open.message().unwrap();
        drop(open);
        until("the modern call is cancelled", || counted() == before + 1);
    }
}

#[test]
fn a_listen_request_on_a_pipe_ends_when_it_is_cancelled() {
    let home = Home::new();
    let mut client = Program::start(home.command(&["stdio"]));
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    });
    let params = json!({ "notifications": { "toolsListChanged": true }, "_meta": meta });
    client.type_line(&request(1, "subscriptions/listen", &params));
    client.wait_for_line("notifications/subscriptions/acknowledged");
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    client.type_line(&cancelled.to_string());
    let answer: Value = serde_json::from_str(&client.wait_for_line("\"id\":1,")).unwrap();
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(client.wait_for_exit().0, 0);
}
