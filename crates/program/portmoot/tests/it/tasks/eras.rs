//! Tasks between eras: callers of 2025-11-25 with modern servers, and modern callers with servers
//! of 2025-11-25.

use harness::Running;
use serde_json::{Value, json};

use super::jobs::server;
use super::{ADA, BOB, RELATED, about, begin, client, id_of, is_unknown, people, setup};
use crate::support::{Client, Gateway, fixture, modern, modern_stream, until};

/// Longest time for which the gateway keeps a result that no server has.
const RESULT_KEPT_MS_MAX: u64 = 600_000;

fn declared(mut params: Value) -> Value {
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = able;
    params
}

/// The answer to a modern caller that knows tasks.
#[track_caller]
fn ask(gateway: &Gateway, token: &str, method: &str, params: Value) -> Value {
    modern(gateway, Some(token), method, declared(params)).json()
}

#[track_caller]
fn call(gateway: &Gateway, tool: &str) -> Value {
    ask(
        gateway,
        ADA,
        "tools/call",
        json!({ "name": tool, "arguments": {} }),
    )
}

#[track_caller]
fn get(gateway: &Gateway, id: &str) -> Value {
    let answer = ask(gateway, ADA, "tasks/get", json!({ "taskId": id }));
    let task = answer["result"].clone();
    assert_eq!(
        (&task["resultType"], &task["taskId"]),
        (&json!("complete"), &json!(id)),
        "{answer}"
    );
    is_modern(&answer);
    task
}

/// Checks that nothing of a task has the form of 2025-11-25.
#[track_caller]
pub(super) fn is_modern(message: &Value) {
    let text = message.to_string();
    for name in ["\"ttl\":", "\"pollInterval\":", "\"task\":{", RELATED] {
        assert!(!text.contains(name), "{name}: {text}");
    }
}

/// Checks that nothing of a task has the form of the extension.
#[track_caller]
pub(super) fn is_legacy(message: &Value) {
    let text = message.to_string();
    for name in [
        "\"ttlMs\":",
        "\"pollIntervalMs\":",
        "resultType",
        "inputRequests",
    ] {
        assert!(!text.contains(name), "{name}: {text}");
    }
}

#[track_caller]
fn finish(bob: &Client, task: &str, how: &str) {
    bob.call("a_finish", json!({ "task": task, "how": how }));
}

#[test]
fn modern_callers_have_tasks_of_servers_of_2025() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let bob = client(&gateway, BOB);
    for (number, tool) in [(1, "a_job"), (2, "a_must")] {
        let made = call(&gateway, tool);
        assert_eq!(
            (&made["result"]["resultType"], &made["result"]["ttlMs"]),
            (&json!("task"), &json!(60_000))
        );
        is_modern(&made);
        let id = id_of(&made);
        let task = get(&gateway, &id);
        assert_eq!(
            (&task["status"], &task["result"]),
            (&json!("working"), &Value::Null),
            "{task}"
        );
        finish(&bob, &format!("task-{number}"), "");
        let task = get(&gateway, &id);
        assert_eq!(
            (&task["status"], &task["result"]["resultType"]),
            (&json!("completed"), &json!("complete"))
        );
        assert_eq!(
            task["result"]["content"][0]["text"],
            format!("task-{number} is done")
        );
        // No other participant has it.
        for method in ["tasks/get", "tasks/cancel", "tasks/update"] {
            let params = json!({ "taskId": id, "inputResponses": {} });
            let refused = ask(&gateway, BOB, method, params);
            assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
        }
        is_unknown(&about(&bob, "tasks/get", &id), &bob);
    }
    let plain = call(&gateway, "a_plain");
    assert_eq!(
        (&plain["result"]["resultType"], &plain["result"]["task"]),
        (&json!("complete"), &Value::Null)
    );
    let asked = one
        .received()
        .iter()
        .filter(|line| line.contains("\"task\":{}"))
        .count();
    assert_eq!(asked, 2, "only tools that support tasks are asked for them");
}

#[test]
fn failures_of_tasks_of_2025_have_their_modern_status() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let bob = client(&gateway, BOB);
    let [tool, protocol, cancelled] = [(); 3].map(|()| id_of(&call(&gateway, "a_job")));
    finish(&bob, "task-1", "tool");
    let task = get(&gateway, &tool);
    assert_eq!(
        (&task["status"], &task["result"]["isError"]),
        (&json!("completed"), &json!(true)),
        "{task}"
    );
    finish(&bob, "task-2", "protocol");
    let task = get(&gateway, &protocol);
    assert_eq!(
        (&task["status"], &task["error"]["code"]),
        (&json!("failed"), &json!(-32050)),
        "{task}"
    );
    let cancel =
        |id: &str| ask(&gateway, ADA, "tasks/cancel", json!({ "taskId": id }))["result"].clone();
    assert_eq!(cancel(&cancelled), json!({ "resultType": "complete" }));
    assert_eq!(get(&gateway, &cancelled)["status"], "cancelled");
    // The extension acknowledges that too.
    assert_eq!(cancel(&tool), json!({ "resultType": "complete" }));
}

#[test]
fn states_of_tasks_of_2025_reach_listen_streams() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let bob = client(&gateway, BOB);
    let id = id_of(&call(&gateway, "a_job"));
    let filter = || declared(json!({ "notifications": { "taskIds": [id] } }));
    let listen = |token| modern_stream(&gateway, Some(token), "subscriptions/listen", filter());
    let (to_ada, to_bob) = (listen(ADA), listen(BOB));
    for (events, agreed) in [(&to_ada, json!({ "taskIds": [id] })), (&to_bob, json!({}))] {
        let first = events.next_of("notifications/subscriptions/acknowledged");
        assert_eq!(first["params"]["notifications"], agreed);
    }
    finish(&bob, "task-1", "tool");
    let notice = to_ada.next_of("notifications/tasks");
    let params = &notice["params"];
    assert_eq!(
        (&params["taskId"], &params["status"]),
        (&json!(id), &json!("completed")),
        "{notice}"
    );
    assert_eq!(params["result"]["isError"], true);
    is_modern(&notice);
    for events in [to_ada, to_bob] {
        assert!(
            events
                .so_far()
                .iter()
                .all(|one| one["method"] != "notifications/tasks/status")
        );
    }
}

/// A legacy caller with a modern fixture as the server `m`.
fn with_modern(test: impl Fn(&Gateway, &Client, bool)) {
    let (home, running) = (setup(), Running::fixture(&["--era", "modern"]));
    for (over_http, table) in [
        (false, fixture("m", &["--era", "modern"])),
        (true, format!("[servers.m]\nurl = {:?}\n", running.url())),
    ] {
        let gateway = Gateway::start(&home, &(people(&home) + &table));
        test(&gateway, &client(&gateway, ADA), over_http);
    }
}

#[track_caller]
fn begin_with(client: &Client, tool: &str, arguments: &Value) -> Value {
    let answer = client.ask(
        "tools/call",
        json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } }),
    );
    is_legacy(&answer);
    answer
}

#[test]
fn callers_of_2025_have_tasks_of_modern_servers() {
    with_modern(|gateway, ada, _| {
        let made = begin_with(ada, "m_slow_compute", &json!({ "seconds": 1 }));
        let task = &made["result"]["task"];
        assert_eq!(task["status"], "working", "{made}");
        assert!(
            task["pollInterval"].is_number() && task.get("ttl").is_some(),
            "{made}"
        );
        let id = id_of(&made);
        let shown = about(ada, "tasks/get", &id);
        assert_eq!(
            (&shown["result"]["taskId"], &shown["result"]["status"]),
            (&json!(id), &json!("working"))
        );
        is_legacy(&shown);
        // The result is awaited, and has the id of its task.
        let result = about(ada, "tasks/result", &id);
        assert_eq!(
            result["result"]["content"][0]["text"], "computed in 1 s",
            "{result}"
        );
        assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(id));
        is_legacy(&result);
        assert_eq!(
            about(ada, "tasks/get", &id)["result"]["status"],
            "completed"
        );
        assert_eq!(about(ada, "tasks/cancel", &id)["error"]["code"], -32602);
        let bob = client(gateway, BOB);
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            is_unknown(&about(&bob, method, &id), &bob);
        }

        let failed = id_of(&begin_with(ada, "m_failing_job", &json!({})));
        let result = about(ada, "tasks/result", &failed);
        assert_eq!(result["result"]["isError"], true, "{result}");
        assert_eq!(
            about(ada, "tasks/get", &failed)["result"]["status"],
            "failed"
        );
        let broken = id_of(&begin_with(ada, "m_protocol_error_job", &json!({})));
        let result = about(ada, "tasks/result", &broken);
        assert_eq!(
            result["error"]["message"], "this job fails on purpose",
            "{result}"
        );

        let stopped = id_of(&begin_with(
            ada,
            "m_slow_compute",
            &json!({ "seconds": 60 }),
        ));
        let cancelled = about(ada, "tasks/cancel", &stopped)["result"].clone();
        assert_eq!(
            (&cancelled["taskId"], &cancelled["status"]),
            (&json!(stopped), &json!("cancelled"))
        );
        assert_eq!(
            about(ada, "tasks/get", &stopped)["result"]["status"],
            "cancelled"
        );
        assert_eq!(
            about(ada, "tasks/cancel", &stopped)["error"]["code"],
            -32602
        );
        let listed = ada.ask("tasks/list", json!({}));
        is_legacy(&listed);
        let status = |task: &Value| (task["taskId"].clone(), task["status"].clone());
        let listed: Vec<_> = listed["result"]["tasks"]
            .as_array()
            .unwrap()
            .iter()
            .map(status)
            .collect();
        let all = [
            (id, "completed"),
            (failed, "failed"),
            (broken, "failed"),
            (stopped, "cancelled"),
        ];
        assert_eq!(listed, all.map(|(id, status)| (json!(id), json!(status))));
        assert_eq!(
            client(gateway, BOB).ask("tasks/list", json!({}))["result"]["tasks"],
            json!([])
        );
    });
}

#[test]
fn a_call_that_is_answered_at_once_is_a_task_that_is_completed() {
    with_modern(|gateway, ada, _| {
        let made = begin_with(ada, "m_greet", &json!({ "name": "Ada" }));
        assert_eq!(made["result"]["task"]["status"], "completed", "{made}");
        assert_eq!(made["result"]["task"]["ttl"], 60_000);
        let id = id_of(&made);
        let result = about(ada, "tasks/result", &id);
        assert_eq!(
            result["result"]["content"][0]["text"], "Hello, Ada!",
            "{result}"
        );
        assert_eq!(result["result"]["_meta"][RELATED]["taskId"], json!(id));
        is_legacy(&result);
        assert_eq!(
            about(ada, "tasks/get", &id)["result"]["status"],
            "completed"
        );
        assert_eq!(about(ada, "tasks/cancel", &id)["error"]["code"], -32602);
        assert_eq!(
            get(gateway, &id)["result"]["content"][0]["text"],
            "Hello, Ada!"
        );
        assert_eq!(
            ada.ask("tasks/list", json!({}))["result"]["tasks"][0]["taskId"],
            json!(id)
        );
        let bob = client(gateway, BOB);
        is_unknown(&about(&bob, "tasks/result", &id), &bob);
        let params = json!({ "name": "m_greet", "task": { "ttl": RESULT_KEPT_MS_MAX + 1 } });
        assert_eq!(
            ada.ask("tools/call", params)["result"]["task"]["ttl"],
            RESULT_KEPT_MS_MAX
        );
        // An error is none.
        let wrong = ada.ask(
            "tools/call",
            json!({ "name": "m_nothing", "arguments": {}, "task": {} }),
        );
        assert!(wrong["error"].is_object(), "{wrong}");
    });
}

#[test]
fn only_complete_results_are_kept() {
    let (home, peer) = (setup(), super::restarts::scripted());
    let config = people(&home) + &format!("[servers.m]\nurl = {:?}\n", peer.url());
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let call = |kind: &str| {
        ada.ask(
            "tools/call",
            json!({ "name": "m_job", "arguments": { "kind": kind }, "task": {} }),
        )
    };
    id_of(&call("complete"));
    let other = call("of_a_later_revision");
    assert!(
        other["error"]["message"]
            .as_str()
            .unwrap()
            .contains("has no form"),
        "{other}"
    );
    assert_eq!(
        ada.ask("tasks/list", json!({}))["result"]["tasks"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn kept_results_are_on_their_participants_account_of_bytes() {
    let home = setup();
    let config = people(&home).replace(
        "[server]",
        "[server]\nlimits.held_bytes_max = \"1MiB\"\nlimits.body_bytes_max = \"100KiB\"",
    );
    let gateway = Gateway::start(&home, &(config + &fixture("m", &["--era", "modern"])));
    let call = |client: &Client, mut params: Value| {
        params["name"] = json!("m_big");
        client.ask("tools/call", params)
    };
    let kept = |kib: u32| json!({ "arguments": { "bytes": kib << 10 }, "task": {} });
    // A quarter of the whole is one participant's share.
    let ada = client(&gateway, ADA);
    let all = [(); 4].map(|()| id_of(&call(&ada, kept(55))));
    let refused = call(&ada, kept(95));
    assert_eq!(refused["error"]["data"]["code"], "overloaded", "{refused}");
    assert_eq!(
        refused["error"]["data"]["hint"],
        "call the tool without `task`"
    );
    let whole = call(&ada, json!({ "arguments": { "bytes": 10 << 10 } }));
    assert!(
        whole["result"]["content"].is_array(),
        "a call without `task` keeps nothing: {whole}"
    );
    id_of(&call(&client(&gateway, BOB), kept(95)));
    // One more of these does not fit: a result that is fetched is not counted a second time.
    for id in all {
        let text = about(&ada, "tasks/result", &id)["result"]["content"][0]["text"].clone();
        assert_eq!(text.as_str().unwrap().len(), 55 << 10);
    }
}

#[test]
fn one_list_has_the_tasks_of_both_eras() {
    let (home, one) = (setup(), server());
    let config = people(&home) + &one.child("a", "a") + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let compute = |client: &Client| {
        id_of(&begin_with(
            client,
            "m_slow_compute",
            &json!({ "seconds": 60 }),
        ))
    };
    let mine = [
        begin(&ada, "a_job"),
        compute(&ada),
        id_of(&call(&gateway, "a_job")),
    ];
    let modern_own = id_of(&call(&gateway, "m_confirm_delete"));
    let listed = ada.ask("tasks/list", json!({}));
    is_legacy(&listed);
    let ids: Vec<_> = listed["result"]["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["taskId"].clone())
        .collect();
    assert_eq!(
        ids,
        [&mine[0], &mine[1], &mine[2], &modern_own].map(|id| json!(id))
    );
    // Each caller sees each task in its own form.
    is_legacy(&about(&ada, "tasks/get", &mine[2]));
    get(&gateway, &mine[0]);
    until("the server asks", || {
        (about(&ada, "tasks/get", &modern_own)["result"]["status"] == "input_required")
            .then_some(())
    });
}

#[test]
fn lists_say_what_may_become_a_task_in_the_callers_form() {
    let (home, one) = (setup(), server());
    let config = people(&home) + &one.child("a", "a") + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let listed = client(&gateway, ADA).ask("tools/list", json!({}));
    let support = |tool: &str| {
        let tools = listed["result"]["tools"].as_array().unwrap();
        tools.iter().find(|one| one["name"] == tool).unwrap()["execution"]["taskSupport"].clone()
    };
    assert_eq!(
        [
            support("a_job"),
            support("a_must"),
            support("a_plain"),
            support("m_greet")
        ],
        [
            json!("optional"),
            json!("required"),
            Value::Null,
            json!("optional")
        ]
    );
    let listed = ask(&gateway, ADA, "tools/list", json!({})).to_string();
    assert!(
        listed.contains("a_must")
            && !listed.contains("taskSupport")
            && !listed.contains("execution")
    );
}
