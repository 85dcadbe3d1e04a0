//! Tasks with third-party programs: npm's server-everything, and the Python SDK as a client.

use harness::{deps, promoted_client};
use serde_json::{Value, json};

use super::{ADA, RELATED, about, client, id_of, people, setup};
use crate::socket::stdio_server;
use crate::support::{Client, Gateway, fixture, until};

const TOOL: &str = "everything_simulate-research-query";

fn everything() -> String {
    let words = deps().server_everything("stdio");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    stdio_server("everything", "everything", words[0], &words[1..])
}

/// The Python SDK's report about a call made in this way.
#[track_caller]
fn python(gateway: &Gateway, way: &str, tool: &str, arguments: &Value) -> Value {
    let (url, arguments) = (format!("{}/mcp", gateway.url()), arguments.to_string());
    let run = promoted_client(&[url.as_str(), "--token", ADA, "--way", way, tool, &arguments])
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&run.stdout).unwrap_or_default();
    assert!(
        run.status.success(),
        "{report:#}\n{}",
        String::from_utf8_lossy(&run.stderr)
    );
    report
}

#[test]
fn the_research_task_of_server_everything_asks_its_question() {
    let home = setup();
    let gateway = Gateway::start(&home, &(people(&home) + &everything()));
    gateway.ready("everything");
    let ada = Client::open(&gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
    let arguments = json!({ "topic": "python", "ambiguous": true });
    let call = json!({ "name": TOOL, "arguments": arguments, "task": { "ttl": 60_000 } });
    let id = id_of(&ada.ask("tools/call", call));
    until("it asks", || {
        (about(&ada, "tasks/get", &id)["result"]["status"] == "input_required").then_some(())
    });
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    let question = waits.next_of("elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], json!(id));
    let meta = json!({ RELATED: { "taskId": id } });
    ada.answer(
        &question,
        json!({ "action": "accept", "content": { "interpretation": "snake" }, "_meta": meta }),
    );
    let end = until("its result", || {
        Some(waits.next()).filter(|message| message.get("result").is_some())
    });
    assert!(
        end["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .contains("python (snake)"),
        "{end}"
    );
    assert_eq!(end["result"]["_meta"][RELATED]["taskId"], json!(id));
    assert_eq!(
        about(&ada, "tasks/get", &id)["result"]["status"],
        "completed"
    );
    let listed = client(&gateway, ADA).ask("tasks/list", json!({}))["result"]["tasks"].clone();
    assert_eq!(listed[0]["taskId"], json!(id), "{listed}");
}

#[test]
fn the_python_sdk_follows_tasks_of_both_eras() {
    let home = setup();
    let gateway = Gateway::start(&home, &(people(&home) + &everything() + &fixture("a", &[])));
    ["everything", "a"]
        .iter()
        .for_each(|name| gateway.ready(name));
    let legacy = python(&gateway, "task", TOOL, &json!({ "topic": "tasks" }));
    assert_eq!(
        (
            &legacy["protocol"],
            &legacy["listed"]["execution"]["taskSupport"]
        ),
        (&json!("2025-11-25"), &json!("required"))
    );
    assert_eq!(legacy["related"], legacy["first"]["task"]["taskId"]);
    assert!(
        legacy["end"]["text"]
            .as_str()
            .unwrap()
            .starts_with("# Research Report: tasks"),
        "{legacy:#}"
    );
    let modern = python(
        &gateway,
        "tasks",
        "a_slow_compute",
        &json!({ "seconds": 0.3 }),
    );
    assert_eq!(
        (&modern["protocol"], &modern["status"]),
        (&json!("2026-07-28"), &json!("completed"))
    );
    assert_eq!(
        modern["end"],
        json!({ "text": "computed in 0.3 s", "error": false })
    );
}
