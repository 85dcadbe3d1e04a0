//! Tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28).

use std::sync::Mutex;

use harness::Running;
use serde_json::{Value, json};

use super::{ADA, BOB, id_of, people, setup};
use crate::peer::{Peer, answer};
use crate::support::{Gateway, fixture, modern, modern_stream, until};
use crate::ws::{self, Socket};

fn with_tasks(mut params: Value) -> Value {
    let able = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    params
}

#[track_caller]
fn ask(gateway: &Gateway, token: &str, method: &str, params: Value) -> Value {
    modern(gateway, Some(token), method, with_tasks(params)).json()
}

#[track_caller]
fn begin(gateway: &Gateway, token: &str, tool: &str) -> String {
    let answer = ask(
        gateway,
        token,
        "tools/call",
        json!({ "name": tool, "arguments": {} }),
    );
    assert_eq!(answer["result"]["resultType"], "task", "{answer}");
    id_of(&answer)
}

fn get(gateway: &Gateway, token: &str, id: &str) -> Value {
    ask(gateway, token, "tasks/get", json!({ "taskId": id }))
}

#[track_caller]
fn reaches(gateway: &Gateway, id: &str, status: &str) -> Value {
    until(&format!("the task is {status}"), || {
        let answer = get(gateway, ADA, id);
        // While its server is ending, it cannot be asked.
        let gone = answer["error"]["data"]["code"]
            .as_str()
            .is_some_and(|code| code.starts_with("upstream_"));
        let task = answer["result"].clone();
        assert!(gone || task["taskId"] == json!(id), "{answer}");
        (task["status"] == status).then_some(task)
    })
}

#[test]
fn a_modern_task_is_visible_only_to_its_caller() {
    let home = setup();
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &fixture("a", &[]) + &fixture("b", &[])),
    );
    let (id, other) = (
        begin(&gateway, ADA, "a_confirm_delete"),
        begin(&gateway, ADA, "b_slow_compute"),
    );
    let asked = reaches(&gateway, &id, "input_required");
    assert_eq!(
        asked["inputRequests"]["confirm"]["method"], "elicitation/create",
        "{asked}"
    );
    let nothing = get(&gateway, BOB, "there-is-no-such-task");
    assert_eq!(nothing["error"]["code"], -32602);
    let responses = json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
    let update = json!({ "taskId": id, "inputResponses": responses });
    for (method, params) in [
        ("tasks/get", json!({ "taskId": id })),
        ("tasks/cancel", json!({ "taskId": id })),
        ("tasks/update", update.clone()),
    ] {
        assert_eq!(
            ask(&gateway, BOB, method, params)["error"],
            nothing["error"],
            "{method}"
        );
    }
    let bare = modern(&gateway, Some(ADA), "tasks/get", json!({ "taskId": id }));
    assert_eq!(
        (bare.status, &bare.json()["error"]["code"]),
        (400, &json!(-32021))
    );
    assert_eq!(
        ask(&gateway, ADA, "tasks/update", update)["result"]["resultType"],
        "complete"
    );
    let end = reaches(&gateway, &id, "completed");
    assert_eq!(
        end["result"]["content"][0]["text"], "file.txt: confirmed = true",
        "{end}"
    );
    assert_eq!(
        ask(&gateway, ADA, "tasks/cancel", json!({ "taskId": other }))["result"]["resultType"],
        "complete"
    );
    reaches(&gateway, &other, "cancelled");
}

#[test]
fn task_input_requests_are_not_mirrored() {
    for mcp_calls in ["kinds", "full"] {
        let (home, config) = ws::people(&[("ada", &["mcp/*"]), ("watch", &["mcp/*", "chat"])]);
        let topic = format!("[topics.main]\nmcp_calls = {mcp_calls:?}\n");
        let gateway = Gateway::start(&home, &(config + &topic + &fixture("a", &[])));
        let ada = ws::token("ada");
        let id = begin(&gateway, &ada, "a_confirm_delete");
        let asked = until("it asks", || {
            let asked = get(&gateway, &ada, &id)["result"].clone();
            (asked["status"] == "input_required").then_some(asked)
        });
        let question = asked["inputRequests"]["confirm"]["params"]["message"]
            .as_str()
            .unwrap();
        // A late joiner does not receive earlier questions.
        let mut watch = Socket::enter(&gateway, "watch", "");
        get(&gateway, &ada, &id);
        let responses =
            json!({ "confirm": { "action": "accept", "content": { "confirm": true } } });
        ask(
            &gateway,
            &ada,
            "tasks/update",
            json!({ "taskId": id, "inputResponses": responses }),
        );
        let seen: Vec<Value> = (0..4).map(|_| watch.receive_message()).collect();
        let of = |kind: &str| seen.iter().find(|one| one["kind"] == kind).unwrap();
        let shown = of("mcp/response:tasks/get");
        let end = &shown["payload"]["result"]["_meta"]["portmoot/verdict"];
        assert_eq!(end, "input_required", "{shown}");
        of("mcp/request:tasks/update");
        let text = json!(seen).to_string();
        assert!(
            !text.contains(question) && !text.contains("inputRe"),
            "{text}"
        );
    }
}

#[test]
fn a_task_of_a_server_over_http_outlives_the_gateway() {
    let (home, server) = (setup(), Running::fixture(&["--era", "modern"]));
    let config = people(&home) + &format!("[servers.a]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &config);
    let id = begin(&gateway, ADA, "a_confirm_delete");
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    reaches(&gateway, &id, "input_required");
    assert_eq!(get(&gateway, BOB, &id)["error"]["code"], -32602);
    drop(gateway);
    // With the server down the error says so; without the server in the configuration the task is
    // unknown.
    let gateway = Gateway::start(&home, &people(&home));
    assert_eq!(get(&gateway, ADA, &id)["error"]["code"], -32602);
}

#[test]
fn a_task_of_a_child_ends_with_it() {
    let home = setup();
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &fixture("a", &["--era", "modern"])),
    );
    let id = begin(&gateway, ADA, "a_confirm_delete");
    let pid = gateway.get("/api/v1/servers/a", Some(ADA)).json()["pid"]
        .as_u64()
        .unwrap();
    crate::support::signal(u32::try_from(pid).unwrap(), "KILL");
    let failed = reaches(&gateway, &id, "failed");
    assert!(
        failed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("has ended"),
        "{failed}"
    );
    drop(gateway);
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &fixture("a", &["--era", "modern"])),
    );
    let failed = reaches(&gateway, &id, "failed");
    assert!(
        failed["error"]["message"]
            .as_str()
            .unwrap()
            .contains("has ended"),
        "{failed}"
    );
    assert_eq!(get(&gateway, BOB, &id)["error"]["code"], -32602);
}

/// A modern server that sends notices about its one task when a tool is called. With `slow`, it
/// acknowledges listen requests only when its tool `go` is called.
fn telling(slow: bool) -> Peer {
    let kept = Mutex::new(Vec::new());
    Peer::stdio(move |message| {
        let task = |status: &str| {
            format!(
                r#""taskId":"t1","status":"{status}","createdAt":"2026-11-22T05:00:00Z","lastUpdatedAt":"2026-11-22T05:00:00Z","ttlMs":null"#
            )
        };
        let name = message["params"]["name"].as_str().unwrap_or_default();
        let said = match (message["method"].as_str().unwrap_or_default(), name) {
            ("server/discover", _) => vec![answer(
                message,
                r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t","version":"1"}}}"#,
            )],
            ("tools/list", _) => {
                let tool =
                    |name| format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#);
                let tools = format!(
                    r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{},{},{}]}}"#,
                    tool("job"),
                    tool("tell"),
                    tool("go")
                );
                vec![answer(message, &tools)]
            }
            ("tools/call", "job") => {
                vec![answer(
                    message,
                    &format!(r#"{{"resultType":"task",{}}}"#, task("working")),
                )]
            }
            ("tools/call", "go") => {
                let mut said: Vec<String> = kept.lock().unwrap().drain(..).collect();
                said.push(answer(message, r#"{"resultType":"complete","content":[]}"#));
                said
            }
            ("tools/call", _) => vec![
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/tasks","params":{{{},"result":{{"content":[]}}}}}}"#,
                    task("completed")
                ),
                answer(message, r#"{"resultType":"complete","content":[]}"#),
            ],
            ("subscriptions/listen", _) => {
                let filter = &message["params"]["notifications"];
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                let params = json!({ "notifications": filter, "_meta": meta });
                let method = "notifications/subscriptions/acknowledged";
                let said =
                    json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
                if slow {
                    kept.lock().unwrap().push(said);
                    return Vec::new();
                }
                vec![said]
            }
            _ => Vec::new(),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

#[test]
fn modern_task_notices_reach_the_callers_listen_stream() {
    let (home, server) = (setup(), telling(false));
    let table = server.child("a", "a").replace("\"legacy\"", "\"modern\"");
    let gateway = Gateway::start(&home, &(people(&home) + &table));
    let id = begin(&gateway, ADA, "a_job");
    let filter = || json!({ "notifications": { "taskIds": [id, "unknown"] } });
    let bare = modern(&gateway, Some(ADA), "subscriptions/listen", filter());
    assert_eq!(bare.json()["error"]["code"], -32021);
    let listen = |token| {
        modern_stream(
            &gateway,
            Some(token),
            "subscriptions/listen",
            with_tasks(filter()),
        )
    };
    let (to_ada, to_bob) = (listen(ADA), listen(BOB));
    let agreed = |events: &crate::http::Events| {
        events.next_of("notifications/subscriptions/acknowledged")["params"]["notifications"]
            .clone()
    };
    assert_eq!(
        (agreed(&to_ada), agreed(&to_bob)),
        (json!({ "taskIds": [id] }), json!({}))
    );
    assert!(
        server
            .received()
            .iter()
            .any(|line| line.contains(r#""taskIds":["t1"]"#))
    );
    ask(
        &gateway,
        BOB,
        "tools/call",
        json!({ "name": "a_tell", "arguments": {} }),
    );
    let notice = to_ada.next_of("notifications/tasks");
    assert_eq!(
        (&notice["params"]["taskId"], &notice["params"]["status"]),
        (&json!(id), &json!("completed"))
    );
    assert_eq!(
        notice["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        1
    );
    assert!(
        to_bob
            .so_far()
            .iter()
            .all(|message| message["method"] != "notifications/tasks")
    );
}

#[test]
fn notices_before_the_acknowledgement_of_a_listen_request_follow_it() {
    let (home, quick, slow) = (setup(), telling(false), telling(true));
    let table = |server: &Peer, name| server.child(name, name).replace("\"legacy\"", "\"modern\"");
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &table(&quick, "a") + &table(&slow, "b")),
    );
    let (of_quick, of_slow) = (begin(&gateway, ADA, "a_job"), begin(&gateway, ADA, "b_job"));
    let filter = json!({ "notifications": { "taskIds": [of_quick, of_slow] } });
    let to_ada = modern_stream(
        &gateway,
        Some(ADA),
        "subscriptions/listen",
        with_tasks(filter),
    );
    for server in [&quick, &slow] {
        let asked = || {
            server
                .received()
                .iter()
                .any(|line| line.contains(r#""taskIds":["t1"]"#))
        };
        until("the server is asked", || asked().then_some(()));
    }
    let call = |tool| {
        ask(
            &gateway,
            BOB,
            "tools/call",
            json!({ "name": tool, "arguments": {} }),
        )
    };
    assert!(call("a_tell")["result"].is_object());
    assert!(call("b_go")["result"].is_object());
    let first = to_ada.next();
    assert_eq!(
        first["method"], "notifications/subscriptions/acknowledged",
        "{first}"
    );
    let notice = to_ada.next();
    assert_eq!(
        (&notice["method"], &notice["params"]["taskId"]),
        (&json!("notifications/tasks"), &json!(of_quick))
    );
    assert_eq!(notice["params"]["status"], "completed");
}
