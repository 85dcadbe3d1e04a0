//! Tasks of 2025-11-25.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::jobs::server;
use super::{ADA, BOB, RELATED, about, begin, client, id_of, is_unknown, people, setup};
use crate::peer::{Peer, answer, small};
use crate::support::{Client, Gateway, fixture, modern, signal, until};

/// The limits of the gateway.
const PARTICIPANT_TASKS_MAX: usize = 256;
const TASK_ID_BYTES_MAX: usize = 512;

#[track_caller]
fn finish(client: &Client, server: &str, task: &str) {
    client.call(&format!("{server}_finish"), json!({ "task": task }));
}

/// The ids in a participant's list, over all pages.
#[track_caller]
fn listed(client: &Client) -> Vec<String> {
    let (mut ids, mut params) = (Vec::new(), json!({}));
    loop {
        let answer = client.ask("tasks/list", params);
        let tasks = answer["result"]["tasks"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        ids.extend(
            tasks
                .iter()
                .map(|task| task["taskId"].as_str().unwrap().to_owned()),
        );
        let Some(cursor) = answer["result"]["nextCursor"].as_str() else {
            return ids;
        };
        params = json!({ "cursor": cursor });
    }
}

fn heard_of(peer: &Peer, method: &str) -> Vec<Value> {
    let all = peer
        .received()
        .into_iter()
        .map(|line| serde_json::from_str::<Value>(&line).unwrap());
    all.filter(|message| message["method"] == method)
        .map(|message| message["params"]["taskId"].clone())
        .collect()
}

#[test]
fn a_task_is_visible_only_to_its_caller() {
    let (home, one, two) = (setup(), server(), server());
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &one.child("a", "a") + &two.child("b", "b")),
    );
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    assert!(
        ada.ask("tools/list", json!({}))
            .to_string()
            .contains(r#""execution":{"taskSupport":"optional"}"#)
    );
    let (first, second, his) = (
        begin(&ada, "a_job"),
        begin(&ada, "b_job"),
        begin(&bob, "a_job"),
    );
    assert_eq!(BTreeSet::from([&first, &second, &his]).len(), 3);

    let task = about(&ada, "tasks/get", &first)["result"].clone();
    assert_eq!(
        (&task["taskId"], &task["status"], &task["ttl"]),
        (&json!(first), &json!("working"), &json!(60_000))
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        is_unknown(&about(&bob, method, &first), &bob);
        is_unknown(&about(&ada, method, "task-1"), &ada);
    }
    assert_eq!(listed(&ada), [first.clone(), second.clone()]);
    assert_eq!(listed(&bob), [his]);

    // Another session of the same participant has the task too.
    let again = client(&gateway, ADA);
    finish(&again, "a", "task-1");
    let result = about(&again, "tasks/result", &first)["result"].clone();
    assert_eq!(result["content"][0]["text"], "task-1 is done");
    assert_eq!(result["_meta"][RELATED]["taskId"], json!(first));
    assert_eq!(about(&ada, "tasks/cancel", &first)["error"]["code"], -32602);
    let cancelled = about(&ada, "tasks/cancel", &second)["result"].clone();
    assert_eq!(
        (&cancelled["taskId"], &cancelled["status"]),
        (&json!(second), &json!("cancelled"))
    );
    assert_eq!(heard_of(&two, "tasks/cancel"), ["task-1"]);
    let seen: BTreeSet<String> = heard_of(&one, "tasks/get")
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(
        seen.iter()
            .all(|id| id == "\"task-1\"" || id == "\"task-2\""),
        "{seen:?}"
    );
}

#[test]
fn calls_that_cannot_become_tasks_are_refused_or_run_without_one() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let ada = client(&gateway, ADA);
    let asks = |tool: &str, task: Value| {
        ada.ask(
            "tools/call",
            json!({ "name": tool, "arguments": {}, "task": task }),
        )
    };
    let refused = asks("a_plain", json!({}));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(refused["error"]["data"]["hint"], "call it without `task`");
    // This client knows tasks: its server refuses a call that had to ask for one.
    let refused = ada.ask("tools/call", json!({ "name": "a_must", "arguments": {} }));
    assert_eq!(refused["error"]["code"], -32601, "{refused}");
    assert_eq!(
        asks("a_job", json!({ "ttl": "long" }))["error"]["code"],
        -32602
    );
    assert_eq!(one.calls("job") + one.calls("plain"), 0);
    assert_eq!(ada.call("a_job", json!({}))["content"][0]["text"], "plain");
    // A modern `task` has no meaning, and a legacy server must not receive it.
    let params = json!({ "name": "a_job", "arguments": {}, "task": { "ttl": 1 } });
    let answer = modern(&gateway, Some(ADA), "tools/call", params).json();
    assert_eq!(answer["result"]["content"][0]["text"], "plain", "{answer}");
    assert_eq!(
        one.received()
            .iter()
            .filter(|line| line.contains("\"task\":{"))
            .count(),
        0
    );
}

#[test]
fn task_status_is_sent_only_to_the_caller() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let (hers, his) = (begin(&ada, "a_job"), begin(&bob, "a_job"));
    let (to_ada, to_bob) = (ada.listen(), bob.listen());
    finish(&bob, "a", "task-1");
    let notice = to_ada.next_of("notifications/tasks/status");
    assert_eq!(
        (&notice["params"]["taskId"], &notice["params"]["status"]),
        (&json!(hers), &json!("completed"))
    );
    finish(&ada, "a", "task-2");
    let notice = to_bob.next_of("notifications/tasks/status");
    assert_eq!(
        notice["params"]["taskId"],
        json!(his),
        "the first that he hears is of his own"
    );
    assert!(
        to_ada
            .so_far()
            .iter()
            .all(|message| !message.to_string().contains(&his))
    );
}

#[test]
fn questions_of_a_task_arrive_on_the_stream_that_awaits_its_result() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let ada = Client::open(&gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
    let bob = Client::open(&gateway, Some(BOB), "/mcp", json!({ "elicitation": {} }));
    let (id, to_bob) = (begin(&ada, "a_job"), bob.listen());
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    until("the server has it", || {
        (!heard_of(&one, "tasks/result").is_empty()).then_some(())
    });
    // The call ends at once with a task; the question outlives it.
    ada.call("a_question", json!({}));
    let question = waits.next_of("elicitation/create");
    assert_eq!(question["params"]["_meta"][RELATED]["taskId"], json!(id));
    let meta = json!({ RELATED: { "taskId": id } });
    ada.answer(
        &question,
        json!({ "action": "accept", "content": { "x": "y" }, "_meta": meta }),
    );
    let end = waits.next();
    assert_eq!(
        end["result"]["content"][0]["text"], "task-1 is done",
        "{end}"
    );
    assert_eq!(end["result"]["_meta"][RELATED]["taskId"], json!(id));
    let answered = one
        .received()
        .into_iter()
        .find(|line| line.contains("\"action\":\"accept\""))
        .unwrap();
    assert!(
        answered.contains(r#"{"taskId":"task-1"}"#) && !answered.contains(&id),
        "{answered}"
    );
    assert!(
        to_bob
            .so_far()
            .iter()
            .all(|message| message["method"] != "elicitation/create")
    );
}

#[test]
fn progress_continues_after_a_call_becomes_a_task() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let begin = |client: &Client| {
        let params = json!({ "name": "a_job", "task": {}, "_meta": { "progressToken": "mine" } });
        id_of(&client.ask("tools/call", params))
    };
    let (id, _) = (begin(&ada), begin(&bob));
    let (home_stream, to_bob) = (ada.listen(), bob.listen());
    bob.call("a_progress", json!({}));
    let notice = home_stream.next_of("notifications/progress");
    assert_eq!(
        (
            &notice["params"]["progressToken"],
            &notice["params"]["progress"]
        ),
        (&json!("mine"), &json!(1))
    );
    assert_eq!(notice["params"]["_meta"][RELATED]["taskId"], json!(id));
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    until("the server has it", || {
        (!heard_of(&one, "tasks/result").is_empty()).then_some(())
    });
    bob.call("a_progress", json!({}));
    assert_eq!(
        waits.next_of("notifications/progress")["params"]["progressToken"],
        "mine"
    );
    finish(&bob, "a", "task-1");
    assert_eq!(
        waits.next()["result"]["content"][0]["text"],
        "task-1 is done"
    );
    assert!(
        to_bob
            .so_far()
            .iter()
            .all(|message| message["method"] != "notifications/progress")
    );
}

#[test]
fn tasks_of_all_servers_are_listed_together_page_by_page() {
    let (home, one, two) = (setup(), server(), server());
    let gateway = Gateway::start(
        &home,
        &(people(&home) + &one.child("a", "a") + &two.child("b", "b")),
    );
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let made: BTreeSet<String> = (0..70)
        .map(|number| begin(&ada, if number % 2 == 0 { "a_job" } else { "b_job" }))
        .collect();
    let page = ada.ask("tasks/list", json!({}))["result"].clone();
    assert_eq!(page["tasks"].as_array().map(Vec::len), Some(64));
    let all = listed(&ada);
    assert_eq!(
        (all.len(), all.into_iter().collect::<BTreeSet<_>>()),
        (70, made)
    );
    finish(&bob, "a", "task-1");
    let first = || ada.ask("tasks/list", json!({}))["result"]["tasks"][0].clone();
    until("the first stands as it does at its server", || {
        (first()["status"] == "completed").then_some(())
    });
    for (client, cursor) in [(&bob, page["nextCursor"].clone()), (&ada, json!("AAAA"))] {
        let refused = client.ask("tasks/list", json!({ "cursor": cursor }));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(listed(&bob).is_empty());
}

#[test]
fn a_task_outlives_its_callers_session_and_fails_with_its_servers() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    // A client with its own session at the server.
    let ada = Client::open(&gateway, Some(ADA), "/mcp", json!({ "elicitation": {} }));
    let id = begin(&ada, "a_job");
    assert_eq!(ada.delete(), 204);
    let again = client(&gateway, ADA);
    assert_eq!(
        about(&again, "tasks/get", &id)["result"]["status"],
        "working"
    );

    let (shared, to_ada) = (begin(&again, "a_job"), again.listen());
    let pid = gateway.get("/api/v1/servers/a", Some(ADA)).json()["pid"]
        .as_u64()
        .unwrap();
    signal(u32::try_from(pid).unwrap(), "KILL");
    let notice = to_ada.next_of("notifications/tasks/status");
    assert_eq!(
        (&notice["params"]["taskId"], &notice["params"]["status"]),
        (&json!(shared), &json!("failed"))
    );
    let task = about(&again, "tasks/get", &shared)["result"].clone();
    assert_eq!(
        (&task["taskId"], &task["status"]),
        (&json!(shared), &json!("failed")),
        "{task}"
    );
    assert!(
        task["statusMessage"]
            .as_str()
            .unwrap()
            .contains("has ended")
    );
    let result = about(&again, "tasks/result", &shared);
    assert_eq!(result["error"]["data"]["code"], "upstream_down", "{result}");
    assert_eq!(
        about(&again, "tasks/cancel", &shared)["error"]["code"],
        -32602
    );
    assert_eq!(listed(&again), [id.clone(), shared]);
    assert_eq!(
        about(&again, "tasks/get", &id)["result"]["status"],
        "working",
        "the other session lives"
    );
    drop(gateway);

    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let late = client(&gateway, ADA);
    // The task ended with the child: its id says so, and to no other participant.
    let task = about(&late, "tasks/get", &id)["result"].clone();
    assert_eq!(
        (&task["taskId"], &task["status"]),
        (&json!(id), &json!("failed"))
    );
    assert!(
        task["statusMessage"]
            .as_str()
            .unwrap()
            .contains("has ended"),
        "{task}"
    );
    assert_eq!(
        about(&late, "tasks/result", &id)["error"]["data"]["code"],
        "upstream_down"
    );
    let bob = client(&gateway, BOB);
    is_unknown(&about(&bob, "tasks/get", &id), &bob);
    assert!(listed(&late).is_empty());
}

#[test]
fn revoking_a_tool_hides_its_tasks() {
    let (home, one) = (setup(), server());
    let config = people(&home) + &one.child("a", "a") + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let ask = |method: &str, mut params: Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": extension });
        modern(&gateway, Some(ADA), method, params).json()
    };
    let modern_id = id_of(&ask(
        "tools/call",
        json!({ "name": "m_confirm_delete", "arguments": {} }),
    ));
    let (id, his, to_ada) = (begin(&ada, "a_job"), begin(&bob, "a_job"), ada.listen());
    let waits = ada.begin(&ada.request("tasks/result", json!({ "taskId": id })));
    until("the server has it", || {
        (!heard_of(&one, "tasks/result").is_empty()).then_some(())
    });

    let less = "[\"mcp/request:tools/call:a_progress\", \"mcp/request:tools/call:m_greet\"";
    home.write(
        "portmoot.toml",
        &config.replacen("[\"mcp/request:*\"", less, 1),
    );
    gateway.signal("HUP");
    until("it is withdrawn", || {
        (ada.names("tools") == ["a_progress", "m_greet"]).then_some(())
    });
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        is_unknown(&about(&ada, method, &id), &ada);
    }
    assert!(listed(&ada).is_empty());
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let refused = ask(method, json!({ "taskId": modern_id, "inputResponses": {} }));
        assert_eq!(refused["error"]["code"], -32602, "{method}: {refused}");
    }
    // Later messages of the task do not reach her, nor does the result that she awaited.
    finish(&bob, "a", "task-1");
    is_unknown(&waits.next(), &ada);
    assert!(
        to_ada
            .so_far()
            .iter()
            .all(|message| message["method"] != "notifications/tasks/status")
    );
    assert_eq!(listed(&bob), [his]);
    assert!(heard_of(&one, "tasks/cancel").is_empty());
}

#[test]
fn tasks_of_a_revoked_participant_are_cancelled_at_their_servers() {
    let (home, one) = (setup(), server());
    let start = people(&home) + &one.child("a", "a");
    let gateway = Gateway::start(&home, &start);
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let (hers, done, his) = (
        begin(&ada, "a_job"),
        begin(&ada, "a_job"),
        begin(&bob, "a_job"),
    );
    finish(&bob, "a", "task-2");
    until("the gateway knows", || {
        (about(&ada, "tasks/get", &done)["result"]["status"] == "completed").then_some(())
    });
    assert_eq!(
        about(&ada, "tasks/get", &hers)["result"]["status"],
        "working"
    );

    let without_ada = start.replace("[participants.ada]", "[participants.eve]");
    home.write("portmoot.toml", &without_ada);
    gateway.signal("HUP");
    until("her task is cancelled", || {
        (!heard_of(&one, "tasks/cancel").is_empty()).then_some(())
    });
    assert_eq!(
        about(&bob, "tasks/get", &his)["result"]["status"],
        "working"
    );
    assert_eq!(heard_of(&one, "tasks/cancel"), ["task-1"]);
}

#[test]
fn tasks_of_a_participant_that_has_left_are_cancelled_once_it_is_no_more() {
    let (home, one) = (setup(), server());
    let start = people(&home) + &one.child("a", "a");
    let gateway = Gateway::start(&home, &start);
    let (ada, bob) = (client(&gateway, ADA), client(&gateway, BOB));
    let (hers, his) = (begin(&ada, "a_job"), begin(&bob, "a_job"));
    assert_eq!(
        about(&ada, "tasks/get", &hers)["result"]["status"],
        "working"
    );
    ada.delete();
    let without_ada = start.replace("[participants.ada]", "[participants.eve]");
    home.write("portmoot.toml", &without_ada);
    gateway.signal("HUP");
    until("her task is cancelled", || {
        (heard_of(&one, "tasks/cancel") == ["task-1"]).then_some(())
    });
    assert_eq!(
        about(&bob, "tasks/get", &his)["result"]["status"],
        "working"
    );
}

#[test]
fn open_calls_that_may_become_tasks_count_against_the_task_limit() {
    let (home, one) = (setup(), server());
    let config = people(&home) + &one.child("a", "a") + &fixture("m", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &config);
    let ada = client(&gateway, ADA);
    let as_task = |tool: &str| ada.request("tools/call", json!({ "name": tool, "task": {} }));
    let all: Vec<_> = (0..PARTICIPANT_TASKS_MAX)
        .map(|_| as_task("a_never"))
        .collect();
    let open: Vec<_> = all.iter().map(|call| ada.begin(call)).collect();
    until("the server has all", || {
        (one.calls("never") == PARTICIPANT_TASKS_MAX).then_some(())
    });
    let refused = || {
        let answer = ada.ask("tools/call", json!({ "name": "a_job", "task": {} }));
        assert_eq!(answer["error"]["data"]["code"], "overloaded", "{answer}");
    };
    refused();
    // The gateway does not offer tasks to the modern server, so the call is answered when it is
    // done.
    let extension = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let compute = || {
        let meta = json!({ "io.modelcontextprotocol/clientCapabilities": extension });
        let params =
            json!({ "name": "m_slow_compute", "arguments": { "seconds": 0 }, "_meta": meta });
        modern(&gateway, Some(ADA), "tools/call", params).json()["result"].clone()
    };
    let whole = compute();
    assert_eq!(whole["content"][0]["text"], "computed in 0 s", "{whole}");
    begin(&client(&gateway, BOB), "a_job");

    ada.notify(
        "notifications/cancelled",
        json!({ "requestId": all[0]["id"] }),
    );
    begin(&ada, "a_job");
    refused();
    let pid = gateway.get("/api/v1/servers/a", Some(ADA)).json()["pid"]
        .as_u64()
        .unwrap();
    signal(u32::try_from(pid).unwrap(), "KILL");
    for call in &open[1..] {
        assert_eq!(call.next()["error"]["data"]["code"], "upstream_failed");
    }
    // The lost task could be dropped for a new one.
    for _ in 0..2 {
        assert_eq!(compute()["resultType"], "task");
    }
}

/// A server that asks for sampling as a task of the client, and for the result of that task.
fn asks_for_a_task() -> Peer {
    let call = std::sync::Mutex::new(Value::Null);
    Peer::stdio(move |message| {
        let request = |id: &str, method: &str, params: Value| {
            json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
        };
        let end = |text: &str| {
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            answer(&json!({ "id": *call.lock().unwrap() }), &result.to_string())
        };
        let said = match (message["method"].as_str(), message["id"].as_str()) {
            (Some("tools/call"), _) => {
                *call.lock().unwrap() = message["id"].clone();
                let ask = json!({ "messages": [], "maxTokens": 1, "task": { "ttl": 60_000 } });
                request("s1", "sampling/createMessage", ask)
            }
            (None, Some("s1")) => {
                let task = &message["result"]["task"]["taskId"];
                request("s2", "tasks/result", json!({ "taskId": task }))
            }
            (None, Some("s2")) => match message["result"]["content"]["text"].as_str() {
                Some(text) => end(text),
                None => end("there is no result"),
            },
            _ => match small(
                message,
                r#"[{"name":"ask","inputSchema":{"type":"object"}}]"#,
            ) {
                Some(said) => said,
                None => return Vec::new(),
            },
        };
        vec![said.into_bytes()]
    })
}

#[test]
fn a_server_asks_for_a_task_of_the_client_and_for_its_result_if_it_may() {
    let may = "capabilities = [\"mcp/response:*\", \"mcp/request:sampling/createMessage\", \"mcp/request:tasks/result\"]\n";
    for (rights, expected) in [(may, "hello"), ("", "there is no result")] {
        let (home, one) = (setup(), asks_for_a_task());
        let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a") + rights));
        let able = json!({ "sampling": {}, "tasks": { "requests": { "sampling": { "createMessage": {} } } } });
        let ada = Client::open(&gateway, Some(ADA), "/mcp", able);
        let waits =
            ada.begin(&ada.request("tools/call", json!({ "name": "a_ask", "arguments": {} })));
        let asked = waits.next_of("sampling/createMessage");
        assert_eq!(asked["params"]["task"], json!({ "ttl": 60_000 }), "{asked}");
        let at = "2026-11-22T05:00:00Z";
        let task = json!({ "taskId": "c1", "status": "working", "createdAt": at, "lastUpdatedAt": at, "ttl": null });
        ada.answer(&asked, json!({ "task": task }));
        if !rights.is_empty() {
            let wanted = waits.next_of("tasks/result");
            assert_eq!(wanted["params"], json!({ "taskId": "c1" }));
            let content = json!({ "type": "text", "text": "hello" });
            let meta = json!({ RELATED: { "taskId": "c1" } });
            ada.answer(
                &wanted,
                json!({ "role": "assistant", "content": content, "model": "m", "_meta": meta }),
            );
        }
        assert_eq!(waits.next()["result"]["content"][0]["text"], expected);
        let kept = one
            .received()
            .iter()
            .filter(|line| line.contains(r#""taskId":"c1""#))
            .count();
        assert_eq!(
            kept,
            if rights.is_empty() { 1 } else { 2 },
            "the client's id stays as it is"
        );
    }
}

#[test]
fn states_of_a_clients_tasks_reach_the_server_that_asked() {
    let may = "capabilities = [\"mcp/response:*\", \"mcp/request:sampling/createMessage\", \"mcp/request:tasks/result\"]\n";
    let (home, one, two) = (setup(), asks_for_a_task(), asks_for_a_task());
    let servers = one.child("a", "a") + may + &two.child("b", "b") + may;
    let gateway = Gateway::start(&home, &(people(&home) + &servers));
    let able =
        json!({ "sampling": {}, "tasks": { "requests": { "sampling": { "createMessage": {} } } } });
    let ada = Client::open(&gateway, Some(ADA), "/mcp", able);
    let at = "2026-11-22T05:00:00Z";
    let task = |id: &str, status: &str| json!({ "taskId": id, "status": status, "createdAt": at, "lastUpdatedAt": at, "ttl": null });
    // Each server has made a task of the client.
    for (tool, id) in [("a_ask", "c1"), ("b_ask", "c2")] {
        let waits = ada.begin(&ada.request("tools/call", json!({ "name": tool, "arguments": {} })));
        let asked = waits.next_of("sampling/createMessage");
        ada.answer(&asked, json!({ "task": task(id, "working") }));
        let wanted = waits.next_of("tasks/result");
        for status in ["unknown", id] {
            ada.notify("notifications/tasks/status", task(status, "completed"));
        }
        let content = json!({ "type": "text", "text": "hello" });
        ada.answer(
            &wanted,
            json!({ "role": "assistant", "content": content, "model": "m" }),
        );
        assert_eq!(waits.next()["result"]["content"][0]["text"], "hello");
    }
    let notices = |peer: &Peer| -> Vec<Value> {
        let all = peer
            .received()
            .into_iter()
            .map(|line| serde_json::from_str::<Value>(&line).unwrap());
        all.filter(|one| one["method"] == "notifications/tasks/status")
            .collect()
    };
    for (peer, id) in [(&one, "c1"), (&two, "c2")] {
        let all = until("the notification arrives", || {
            Some(notices(peer)).filter(|all| !all.is_empty())
        });
        let params: Vec<_> = all.iter().map(|one| one["params"].clone()).collect();
        assert_eq!(params, [task(id, "completed")]);
    }
}

#[test]
fn overlong_task_ids_of_servers_are_refused() {
    let (home, one) = (setup(), server());
    let gateway = Gateway::start(&home, &(people(&home) + &one.child("a", "a")));
    let ada = client(&gateway, ADA);
    let named = |bytes: usize| {
        let arguments = json!({ "id": "x".repeat(bytes) });
        ada.ask(
            "tools/call",
            json!({ "name": "a_job", "arguments": arguments, "task": {} }),
        )
    };
    let id = id_of(&named(TASK_ID_BYTES_MAX));
    assert_eq!(about(&ada, "tasks/get", &id)["result"]["status"], "working");
    let refused = named(TASK_ID_BYTES_MAX + 1);
    assert_eq!(
        refused["error"]["data"]["code"], "upstream_failed",
        "{refused}"
    );
    assert!(!refused.to_string().contains("xxx"), "{refused}");
    assert_eq!(listed(&ada), [id]);
}
