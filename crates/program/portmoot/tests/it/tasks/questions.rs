//! Questions inside tasks between eras: asked of the caller in its client's form, and answered in
//! its server's.

use std::sync::Mutex;

use harness::Running;
use serde_json::{Value, json};

use super::eras::{is_legacy, is_modern};
use super::followed::{knows_no_task, sent};
use super::jobs::server;
use super::{ADA, BOB, RELATED, about, client, id_of, is_unknown, people, setup};
use crate::http::Events;
use crate::peer::{Peer, answer};
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};

/// Questions of one task that a caller is asked while it waits.
const TASK_QUESTIONS_MAX: usize = 64;

/// Params of a modern caller that can be asked, and knows tasks or not.
fn able(mut params: Value, knows_tasks: bool) -> Value {
    let mut able = json!({ "elicitation": {} });
    if knows_tasks {
        able["extensions"] = json!({ "io.modelcontextprotocol/tasks": {} });
    }
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able;
    params
}

#[track_caller]
fn ask(gateway: &Gateway, token: &str, method: &str, params: Value) -> Value {
    modern(gateway, Some(token), method, able(params, true)).json()
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": {} })
}

#[track_caller]
fn get(gateway: &Gateway, id: &str) -> Value {
    let answer = ask(gateway, ADA, "tasks/get", json!({ "taskId": id }));
    assert!(answer["result"].is_object(), "{answer}");
    is_modern(&answer);
    answer["result"].clone()
}

/// A legacy caller that can show forms.
fn old(gateway: &Gateway) -> Client {
    Client::open(gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }))
}

fn text(message: &Value) -> &Value {
    &message["result"]["content"][0]["text"]
}

fn accepted(content: &Value) -> Value {
    json!({ "action": "accept", "content": content })
}

#[test]
fn a_modern_caller_answers_questions_of_a_task_of_2025() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let id = id_of(&ask(&gateway, ADA, "tools/call", call("a_job")));
    let filter = able(json!({ "notifications": { "taskIds": [id] } }), true);
    let listens = modern_stream(&gateway, Some(ADA), "subscriptions/listen", filter);
    listens.next_of("notifications/subscriptions/acknowledged");
    let asks = ask(&gateway, ADA, "tools/call", call("a_question"));
    assert_eq!(
        text(&asks),
        "plain",
        "the question is about the task, not about this call"
    );
    let notice = listens.next_of("notifications/tasks");
    is_modern(&notice);
    let task = until("the question is known", || {
        let task = get(&gateway, &id);
        (task["status"] == "input_required").then_some(task)
    });
    assert_eq!(notice["params"]["inputRequests"], task["inputRequests"]);
    let asked = task["inputRequests"].as_object().unwrap();
    let (key, question) = asked.iter().next().unwrap();
    assert_eq!(
        (asked.len(), &question["method"]),
        (1, &json!("elicitation/create"))
    );
    assert_eq!(
        (
            &question["params"]["message"],
            question["params"].get("_meta")
        ),
        (&json!("which?"), None),
        "{question}"
    );
    // The caller sees the same question until it is answered.
    assert_eq!(get(&gateway, &id)["inputRequests"], task["inputRequests"]);
    let update =
        |key: &str, given: Value| json!({ "taskId": id, "inputResponses": { key: given } });
    let right = || update(key, accepted(&json!({ "x": "y" })));
    let nothing = ask(
        &gateway,
        BOB,
        "tasks/get",
        json!({ "taskId": "there-is-no-such-task" }),
    );
    assert_eq!(
        ask(&gateway, BOB, "tasks/update", right())["error"],
        nothing["error"]
    );
    let wrong = ask(&gateway, ADA, "tasks/update", update(key, json!(7)));
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    let acknowledged = json!({ "resultType": "complete" });
    let other = update("another", accepted(&json!({ "x": "z" })));
    assert_eq!(
        ask(&gateway, ADA, "tasks/update", other)["result"],
        acknowledged
    );
    assert_eq!(get(&gateway, &id)["status"], "input_required");
    assert_eq!(
        ask(&gateway, ADA, "tasks/update", right())["result"],
        acknowledged
    );
    let end = until("the task ends", || {
        let task = get(&gateway, &id);
        (task["status"] == "completed").then_some(task)
    });
    assert_eq!(
        end["result"]["content"][0]["text"], "task-1 is done",
        "{end}"
    );
    assert_eq!(end.get("inputRequests"), None);
    let given = one
        .received()
        .into_iter()
        .find(|line| line.contains("\"accept\""))
        .unwrap();
    let given: Value = serde_json::from_str(&given).unwrap();
    let expected = json!({ "action": "accept", "content": { "x": "y" }, "_meta": { RELATED: { "taskId": "task-1" } } });
    assert_eq!((&given["id"], &given["result"]), (&json!("q1"), &expected));
    assert_eq!(sent(&one, "tasks/cancel"), 0);
}

#[test]
fn a_modern_caller_that_looks_first_is_asked_too() {
    // The server waits with its question until the result is awaited.
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let params = json!({ "name": "a_job", "arguments": { "asks": true } });
    let id = id_of(&ask(&gateway, ADA, "tools/call", params));
    assert_eq!(
        get(&gateway, &id)["status"],
        "working",
        "its question is not known yet"
    );
    let task = until("the question is known", || {
        let task = get(&gateway, &id);
        (task["status"] == "input_required").then_some(task)
    });
    let key = task["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let update = json!({ "taskId": id, "inputResponses": { key: { "action": "decline" } } });
    ask(&gateway, ADA, "tasks/update", update);
    until("the task ends", || {
        (get(&gateway, &id)["status"] == "completed").then_some(())
    });
    assert_eq!(
        sent(&one, "tasks/result"),
        2,
        "one for the question, one for the result"
    );
}

/// A legacy caller that can show forms, with a modern fixture as the server `m`.
fn with_modern(test: impl Fn(&Gateway, &Client)) {
    let (home, running) = (setup(), Running::fixture(&["--era", "modern"]));
    let over_http = format!("[servers.m]\nurl = {:?}\n", running.url());
    for table in [fixture("m", &["--era", "modern"]), over_http] {
        let gateway = Gateway::start(&home, &(people(&home) + &table));
        test(&gateway, &old(&gateway));
    }
}

#[track_caller]
fn begin(client: &Client, tool: &str) -> String {
    let made = client.ask(
        "tools/call",
        json!({ "name": tool, "arguments": {}, "task": {} }),
    );
    is_legacy(&made);
    id_of(&made)
}

/// Awaits the result of a task; its answer is a stream.
fn await_end(client: &Client, id: &str) -> Events {
    client.begin(&client.request("tasks/result", json!({ "taskId": id })))
}

#[test]
fn a_caller_of_2025_is_asked_where_it_awaits_the_result_of_a_modern_task() {
    with_modern(|gateway, ada| {
        let id = begin(ada, "m_confirm_delete");
        // A request for the result that was given up leaves the question to the next one.
        let first = await_end(ada, &id);
        let unanswered = first.next_of("elicitation/create");
        drop(first);
        let waits = await_end(ada, &id);
        let question = waits.next_of("elicitation/create");
        assert_ne!(question["id"], unanswered["id"]);
        is_legacy(&question);
        assert_eq!(
            question["params"]["_meta"][RELATED]["taskId"],
            json!(id),
            "{question}"
        );
        assert_eq!(
            about(ada, "tasks/get", &id)["result"]["status"],
            "input_required"
        );
        let mut given = accepted(&json!({ "confirm": true }));
        given["_meta"] = json!({ RELATED: { "taskId": id } });
        ada.answer(&question, given);
        let end = waits.next();
        assert_eq!(text(&end), "file.txt: confirmed = true", "{end}");
        assert_eq!(end["result"]["_meta"][RELATED]["taskId"], json!(id));

        let both = begin(ada, "m_multi_input");
        let waits = await_end(ada, &both);
        for _ in 0..2 {
            let question = waits.next_of("elicitation/create");
            let value = question["params"]["message"]
                .as_str()
                .unwrap()
                .replace("Value ", "is ");
            ada.answer(&question, accepted(&json!({ "value": value })));
        }
        assert_eq!(text(&waits.next()), "a = is A, b = is B");

        // A client's error is a cancelled elicitation.
        let refused = begin(ada, "m_confirm_delete");
        let waits = await_end(ada, &refused);
        let question = waits.next_of("elicitation/create");
        let error = json!({ "code": -1, "message": "no" });
        ada.post(&json!({ "jsonrpc": "2.0", "id": question["id"], "error": error }));
        assert_eq!(text(&waits.next()), "file.txt: confirmed = false");
        is_unknown(
            &about(&client(gateway, BOB), "tasks/result", &id),
            &client(gateway, BOB),
        );
    });
}

#[test]
fn a_modern_task_that_asks_what_its_caller_cannot_be_asked_is_cancelled() {
    with_modern(|gateway, _| {
        let ada = client(gateway, ADA);
        let id = begin(&ada, "m_confirm_delete");
        let refused = about(&ada, "tasks/result", &id);
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("`elicitation/create`, which this client does not support"),
            "{refused}"
        );
        assert_eq!(
            about(&ada, "tasks/get", &id)["result"]["status"],
            "cancelled"
        );
        let shown = until("its server has cancelled it", || {
            let task = get(gateway, &id);
            (task["status"] == "cancelled").then_some(task)
        });
        assert_eq!(shown.get("inputRequests"), None);
    });
}

#[test]
fn a_call_whose_modern_task_is_followed_asks_its_caller() {
    with_modern(|gateway, ada| {
        let older = Client::open_revision(gateway, ADA, "2025-06-18", json!({ "elicitation": {} }));
        for caller in [ada, &older] {
            let waits = caller.begin(&caller.request("tools/call", call("m_confirm_delete")));
            let question = waits.next_of("elicitation/create");
            knows_no_task(&question);
            caller.answer(&question, accepted(&json!({ "confirm": true })));
            let end = waits.next();
            assert_eq!(text(&end), "file.txt: confirmed = true", "{end}");
            knows_no_task(&end);
        }
    });
}

#[test]
fn a_call_whose_task_of_2025_is_followed_asks_its_modern_caller() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let params = able(
        json!({ "name": "a_must", "arguments": { "asks": true } }),
        false,
    );
    let asked = modern(&gateway, Some(ADA), "tools/call", params.clone()).json();
    knows_no_task(&asked);
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    // Calls of the same session go on meanwhile.
    let plain = modern(
        &gateway,
        Some(ADA),
        "tools/call",
        able(call("a_plain"), false),
    )
    .json();
    assert_eq!(text(&plain), "plain");
    let key = result["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let mut back = params;
    back["inputResponses"] = json!({ key: accepted(&json!({ "x": "y" })) });
    back["requestState"] = result["requestState"].clone();
    let end = modern(&gateway, Some(ADA), "tools/call", back).json();
    assert_eq!(text(&end), "task-1 is done", "{end}");
    knows_no_task(&end);
    let given = one
        .received()
        .into_iter()
        .find(|line| line.contains("\"accept\""))
        .unwrap();
    assert!(given.contains(r#"{"taskId":"task-1"}"#), "{given}");
}

/// A modern server whose task asks one question after the other, under keys that are never used
/// again.
pub(super) fn asking() -> Peer {
    let asked = Mutex::new((0_usize, false));
    Peer::stdio(move |message| {
        let mut asked = asked.lock().unwrap();
        let at = r#""createdAt":"2026-11-22T05:00:00Z","lastUpdatedAt":"2026-11-22T05:00:00Z","ttlMs":null,"pollIntervalMs":1"#;
        let said = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t","version":"1"}}}"#.to_owned(),
            "tools/list" => r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"job","inputSchema":{"type":"object"}}]}"#.to_owned(),
            "tools/call" => format!(r#"{{"resultType":"task","taskId":"t1","status":"working",{at}}}"#),
            "tasks/get" => {
                let (number, cancelled) = &*asked;
                let question = r#"{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
                match cancelled {
                    true => format!(r#"{{"resultType":"complete","taskId":"t1","status":"cancelled",{at}}}"#),
                    false => format!(
                        r#"{{"resultType":"complete","taskId":"t1","status":"input_required","inputRequests":{{"k{number}":{question}}},{at}}}"#
                    ),
                }
            }
            "tasks/update" => {
                asked.0 += 1;
                r#"{"resultType":"complete"}"#.to_owned()
            }
            "tasks/cancel" => {
                asked.1 = true;
                r#"{"resultType":"complete"}"#.to_owned()
            }
            _ => return Vec::new(),
        };
        vec![answer(message, &said).into_bytes()]
    })
}

#[test]
fn a_task_that_asks_again_and_again_ends_at_the_limit() {
    let (home, peer) = (setup(), asking());
    let table = peer.child("m", "m").replace("\"legacy\"", "\"modern\"");
    let gateway = Gateway::start(&home, &(people(&home) + &table));
    let ada = old(&gateway);
    let waits = ada.begin(&ada.request("tools/call", call("m_job")));
    for _ in 0..TASK_QUESTIONS_MAX {
        let question = waits.next_of("elicitation/create");
        ada.answer(&question, json!({ "action": "decline" }));
    }
    let end = waits.next();
    assert!(
        end["error"]["message"]
            .as_str()
            .unwrap()
            .contains("again and again"),
        "{end}"
    );
    until("the task is cancelled", || {
        (sent(&peer, "tasks/cancel") == 1).then_some(())
    });
    assert_eq!(sent(&peer, "tasks/update"), TASK_QUESTIONS_MAX);
}
