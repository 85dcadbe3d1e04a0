//! Tasks and restarts of the gateway: those of modern servers over HTTP go on, and the others say that they ended.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use harness::Running;
use serde_json::{Value, json};

use super::{ADA, BOB, about, client, id_of, is_unknown, people, setup};
use crate::support::{Client, Gateway, fixture, modern, until};

/// Tasks of each client that are acknowledged before the gateway is killed.
const ACKNOWLEDGED: usize = 8;

fn knows_tasks(mut params: Value) -> Value {
    let able = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    params
}

fn get(gateway: &Gateway, id: &str) -> Value {
    modern(gateway, Some(ADA), "tasks/get", knows_tasks(json!({ "taskId": id }))).json()
}

/// Begins tasks until the gateway is killed, and keeps the ids of those that it acknowledged.
fn begin_all(kept: &Mutex<Vec<String>>, killed: &AtomicBool, begin: impl Fn() -> Value) {
    while !killed.load(Ordering::SeqCst) && kept.lock().unwrap().len() < 100 {
        // The gateway may be killed during the request.
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(&begin));
        if let Ok(made) = made {
            kept.lock().unwrap().push(id_of(&made));
        }
    }
}

#[test]
fn a_killed_gateway_loses_no_acknowledged_task_of_a_modern_server_over_http() {
    let (home, server) = (setup(), Running::fixture(&["--era", "modern"]));
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &config);
    let call = json!({ "name": "m_slow_compute", "arguments": { "seconds": 0.5 } });
    let as_task = json!({ "name": "m_slow_compute", "arguments": { "seconds": 0.5 }, "task": {} });
    let (of_2025, of_2026, killed) = (Mutex::default(), Mutex::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let ada = client(&gateway, ADA);
            begin_all(&of_2025, &killed, || ada.ask("tools/call", as_task.clone()));
        });
        scope.spawn(|| {
            let begin = || modern(&gateway, Some(ADA), "tools/call", knows_tasks(call.clone())).json();
            begin_all(&of_2026, &killed, begin);
        });
        let begun = |kept: &Mutex<Vec<String>>| kept.lock().unwrap().len() >= ACKNOWLEDGED;
        until("tasks are acknowledged", || (begun(&of_2025) && begun(&of_2026)).then_some(()));
        gateway.signal("KILL");
        killed.store(true, Ordering::SeqCst);
    });
    drop(gateway);

    let gateway = Gateway::start(&home, &config);
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let (of_2025, of_2026) = (of_2025.into_inner().unwrap(), of_2026.into_inner().unwrap());
    for id in &of_2025 {
        is_unknown(&about(&bob, "tasks/result", id), &bob);
        let end = about(&ada, "tasks/result", id);
        assert_eq!(end["result"]["content"][0]["text"], "computed in 0.5 s", "{end}");
    }
    for id in &of_2026 {
        let end = until("the task ends", || {
            let task = get(&gateway, id)["result"].clone();
            assert_eq!(task["taskId"], json!(id), "{task}");
            (task["status"] == "completed").then_some(task)
        });
        assert_eq!(end["result"]["content"][0]["text"], "computed in 0.5 s");
    }
    // Each era's caller has the tasks of the other.
    assert_eq!(about(&ada, "tasks/get", &of_2026[0])["result"]["status"], "completed");
    assert_eq!(get(&gateway, &of_2025[0])["result"]["status"], "completed");
}

#[test]
fn questions_of_a_task_are_asked_again_after_a_restart() {
    let (home, server) = (setup(), Running::fixture(&["--era", "modern"]));
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", server.url());
    let gateway = Gateway::start(&home, &config);
    let able = |gateway: &Gateway| Client::open(gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
    let ada = able(&gateway);
    let id =
        id_of(&ada.ask("tools/call", json!({ "name": "m_confirm_delete", "arguments": {}, "task": {} })));
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    waits.next_of("elicitation/create");
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    let ada = able(&gateway);
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    let question = waits.next_of("elicitation/create");
    ada.answer(&question, json!({ "action": "accept", "content": { "confirm": true } }));
    assert_eq!(waits.next()["result"]["content"][0]["text"], "file.txt: confirmed = true");
}

#[test]
fn a_result_that_only_the_gateway_has_ends_with_it() {
    let home = setup();
    let config = people(&home) + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let call = json!({ "name": "m_greet", "arguments": { "name": "Ada" }, "task": {} });
    let id = id_of(&client(&gateway, ADA).ask("tools/call", call));
    // It outlives its server's session.
    let pid = gateway.get("/api/v1/servers/m", Some(ADA)).json()["pid"].as_u64().unwrap();
    crate::support::signal(u32::try_from(pid).unwrap(), "KILL");
    let ada = client(&gateway, ADA);
    assert_eq!(about(&ada, "tasks/result", &id)["result"]["content"][0]["text"], "Hello, Ada!");
    drop(gateway);
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let task = about(&ada, "tasks/get", &id)["result"].clone();
    assert_eq!(task["status"], "failed", "{task}");
    assert!(task["statusMessage"].as_str().unwrap().contains("has ended"), "{task}");
    assert_eq!(get(&gateway, &id)["result"]["status"], "failed");
    assert_eq!(about(&ada, "tasks/result", &id)["error"]["data"]["code"], "upstream_down");
}
