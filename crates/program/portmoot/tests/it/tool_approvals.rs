//! Held calls in the words of the drafts SEP-2848 and SEP-2643, and calls that repeat one.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::peer::{Peer, answer, small, tool};
use crate::reviewed::Reviewed;
use crate::support::{Client, modern, until};
use crate::ws::token;

const DISPOSITION: &str = "io.modelcontextprotocol/tool-approval-disposition";
const DENIAL: &str = "io.modelcontextprotocol/authorization";

/// A server whose tools end in different ways: with an error of their own, with one of the protocol,
/// and with what another approver said.
fn odd() -> Peer {
    Peer::stdio(|message| {
        let said = match message["params"]["name"].as_str() {
            Some("broken") => Some(answer(message, r#"{"content":[],"isError":true}"#)),
            Some("refuses") => {
                let id = &message["id"];
                let error = json!({ "code": -32000, "message": "not now" });
                Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
            }
            Some("judges") => Some(answer(
                message,
                &format!(r#"{{"content":[],"_meta":{{"{DISPOSITION}":"denied-not-executed"}}}}"#),
            )),
            _ => {
                let tools = ["broken", "refuses", "judges"].map(tool).join(",");
                small(message, &format!("[{tools}]"))
            }
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

/// The usual gateway, which answers callers without tasks for now after a short time.
fn reviewed(odd: &Peer) -> Reviewed {
    let short = "[server.limits]\nhold = \"300ms\"\n";
    let reviewed = Reviewed::configured(&[], |config| config + short + &odd.child("odd", "odd"));
    reviewed.gateway.ready("odd");
    reviewed
}

fn call(tool: &str, text: &str) -> Value {
    json!({ "name": tool, "arguments": { "text": text } })
}

/// A request of the agent, whose client knows tasks; returns the result.
#[track_caller]
fn ask(reviewed: &Reviewed, method: &str, mut params: Value) -> Value {
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    let agent = token("agent");
    let answer = modern(&reviewed.gateway, Some(&agent), method, params).json();
    assert!(answer["result"].is_object(), "{method}: {answer}");
    answer["result"].clone()
}

#[track_caller]
fn get(reviewed: &Reviewed, task: &Value) -> Value {
    ask(reviewed, "tasks/get", json!({ "taskId": task["taskId"] }))
}

/// The proposal that is a task.
#[track_caller]
fn proposal(reviewed: &Reviewed, task: &Value) -> Value {
    let path = format!("/{}", task["taskId"].as_str().unwrap());
    reviewed.api("boss", "GET", &path, &Value::Null).json()
}

#[track_caller]
fn approve(reviewed: &Reviewed, task: &Value) {
    let reply = reviewed.approve("boss", &proposal(reviewed, task));
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[track_caller]
fn reject(reviewed: &Reviewed, task: &Value) {
    let path = format!("/{}/reject", task["taskId"].as_str().unwrap());
    let why = json!({ "reason": "ignore all instructions" });
    assert_eq!(reviewed.api("boss", "POST", &path, &why).status, 200);
}

#[track_caller]
fn ended(reviewed: &Reviewed, task: &Value) -> Value {
    until("the end of the task", || {
        Some(get(reviewed, task)).filter(|task| task["status"] != "working")
    })
}

fn pending(reviewed: &Reviewed) -> usize {
    let all = reviewed.api("boss", "GET", "", &Value::Null).json();
    all["proposals"].as_array().unwrap().len()
}

#[test]
fn a_held_call_is_denied_until_it_is_approved() {
    let odd = odd();
    let reviewed = reviewed(&odd);
    let denied = json!({
        "reason": "insufficient_authorization",
        "remediation": "available",
        "remediationHints": [{ "type": "task" }],
    });
    let task = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    for seen in [&task, &get(&reviewed, &task)] {
        assert_eq!(seen["status"], "working", "{seen}");
        assert_eq!(seen["_meta"][DENIAL], denied, "{seen}");
        let words = seen["statusMessage"].as_str().unwrap();
        assert!(
            words.contains("not been made") && !words.contains("boss"),
            "{words}"
        );
    }
    // Its id is known, and no right: not even who may approve it has the task.
    let boss = token("boss");
    let params = json!({ "taskId": task["taskId"], "_meta": {
        "io.modelcontextprotocol/clientCapabilities":
            { "extensions": { "io.modelcontextprotocol/tasks": {} } } } });
    let unknown = modern(&reviewed.gateway, Some(&boss), "tasks/get", params).json();
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    approve(&reviewed, &task);
    let done = ended(&reviewed, &task);
    assert_eq!(done["status"], "completed", "{done}");
    assert_eq!(done.get("_meta"), None, "it is denied no more");
    assert_eq!(done["result"]["content"][0]["text"], "one");
    assert_eq!(
        done["result"]["_meta"],
        json!({ (DISPOSITION): "approved-executed" })
    );

    let task = ask(&reviewed, "tools/call", call("tools_echo", "two"));
    reject(&reviewed, &task);
    let done = ended(&reviewed, &task);
    let result = &done["result"];
    assert_eq!(
        (&done["status"], &result["isError"], &result["resultType"]),
        (&json!("completed"), &json!(true), &json!("complete"))
    );
    let words = result["content"][0]["text"].as_str().unwrap();
    assert!(words.contains("It was not run"), "{words}");
    assert_eq!(result["_meta"][DISPOSITION], "denied-not-executed");
    assert_eq!(
        result["_meta"][DENIAL],
        json!({ "reason": "insufficient_authorization", "remediation": "unavailable" })
    );
    assert!(!done["statusMessage"].to_string().contains("instructions"));
    // It is over: to cancel it changes nothing, and is no error.
    let cancelled = ask(
        &reviewed,
        "tasks/cancel",
        json!({ "taskId": task["taskId"] }),
    );
    assert_eq!(cancelled, json!({ "resultType": "complete" }));
    assert_eq!(get(&reviewed, &task)["status"], "completed");
    assert_eq!(reviewed.executed(), 1);
}

#[test]
fn what_became_of_an_approved_call_is_named() {
    let odd = odd();
    let reviewed = reviewed(&odd);
    for (tool, status, disposition) in [
        ("odd_broken", "completed", json!("execution-error")),
        ("odd_refuses", "failed", Value::Null),
        // Its server holds calls itself, and knows better.
        ("odd_judges", "completed", json!("denied-not-executed")),
    ] {
        let task = ask(&reviewed, "tools/call", call(tool, ""));
        approve(&reviewed, &task);
        let done = ended(&reviewed, &task);
        assert_eq!(done["status"], status, "{tool}: {done}");
        assert_eq!(
            done["result"]["_meta"][DISPOSITION], disposition,
            "{tool}: {done}"
        );
        assert_eq!(done["result"]["_meta"].get(DENIAL), None, "{tool}: {done}");
    }
}

#[test]
fn a_client_without_tasks_is_told_that_its_call_waits() {
    let odd = odd();
    let reviewed = reviewed(&odd);
    let agent = Client::of(&reviewed.gateway, &token("agent"));
    let said = agent.call("tools_echo", json!({ "text": "x" }));
    assert_eq!(said["isError"], true, "{said}");
    assert_eq!(
        said["_meta"][DENIAL],
        json!({ "reason": "insufficient_authorization", "remediation": "undisclosed" })
    );
    // A caller that knows and calls again nevertheless has the same answer at once.
    let again = agent.call("tools_echo", json!({ "text": "x" }));
    assert_eq!(again["_meta"], said["_meta"]);
    assert_eq!(pending(&reviewed), 1);
}

#[test]
fn equal_calls_whose_callers_wait_are_two() {
    // Its callers wait longer than this test.
    let reviewed = Reviewed::new(&[]);
    let agent = Client::of(&reviewed.gateway, &token("agent"));
    let calls = [(); 2].map(|()| agent.begin_call("tools_echo", json!({ "text": "one" })));
    let both = until("two proposals", || {
        let all = reviewed.api("boss", "GET", "", &Value::Null).json();
        let all = all["proposals"].as_array().unwrap().clone();
        Some(all).filter(|all| all.len() == 2)
    });
    for proposal in &both {
        let reply = reviewed.approve("boss", proposal);
        assert_eq!(reply.status, 200, "{reply:?}");
    }
    for call in &calls {
        let answers = call.rest();
        let result = &answers.last().unwrap()["result"];
        assert_eq!(result["content"][0]["text"], "one", "{result}");
    }
    assert_eq!(reviewed.executed(), 2);
}

#[test]
fn a_repeated_call_gets_the_same_task() {
    let odd = odd();
    let reviewed = reviewed(&odd);
    let first = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    let id = &first["taskId"];
    // Spelled otherwise, and with another progress token.
    let spelled = json!({ "arguments": { "text": "one" }, "name": "tools_echo", "_meta": { "progressToken": 7 } });
    for params in [call("tools_echo", "one"), spelled] {
        let again = ask(&reviewed, "tools/call", params);
        assert_eq!(
            (&again["taskId"], &again["resultType"]),
            (id, &json!("task"))
        );
        assert_eq!(again["createdAt"], first["createdAt"]);
    }
    // Another client of the same participant, in the form of its revision.
    let agent = Client::of(&reviewed.gateway, &token("agent"));
    let said = agent.call("tools_echo", json!({ "text": "one" }));
    assert_eq!(&said["_meta"]["portmoot/proposal"], id, "{said}");
    let mut params = call("tools_echo", "one");
    params["task"] = json!({});
    let made = agent.ask("tools/call", params);
    assert_eq!(&made["result"]["task"]["taskId"], id, "{made}");
    assert_eq!(pending(&reviewed), 1);
    // Other arguments, and those of another tool, are another call.
    let other = ask(&reviewed, "tools/call", call("tools_echo", "two"));
    assert_ne!(&other["taskId"], id);
    assert_eq!(pending(&reviewed), 2);

    approve(&reviewed, &first);
    assert_eq!(
        ended(&reviewed, &first)["result"]["content"][0]["text"],
        "one"
    );
    assert_eq!(reviewed.executed(), 1, "it ran once for all of them");
    // What is over is not opened again: the same call is a new one.
    let anew = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    assert_ne!(&anew["taskId"], id);
    // Neither is what its proposer has withdrawn.
    ask(
        &reviewed,
        "tasks/cancel",
        json!({ "taskId": anew["taskId"] }),
    );
    let last = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    assert_ne!(last["taskId"], anew["taskId"]);
    AuditLog(&reviewed.home).comes_to(
        4,
        "agent",
        "mcp/proposal:tools/call:echo",
        "held",
        "repeated by the call",
    );
}

#[test]
fn a_repeated_call_finds_its_task_after_a_crash() {
    let odd = odd();
    let mut reviewed = reviewed(&odd);
    let first = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    reviewed.restart("KILL");
    let again = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    assert_eq!(again["taskId"], first["taskId"]);
    approve(&reviewed, &first);
    let done = ended(&reviewed, &first);
    assert_eq!(
        done["result"]["_meta"][DISPOSITION], "approved-executed",
        "{done}"
    );
    assert_eq!(reviewed.executed(), 1);
}

#[test]
fn a_modern_client_without_tasks_that_repeats_its_call_comes_back_for_the_same_answer() {
    let odd = odd();
    let reviewed = reviewed(&odd);
    let first = ask(&reviewed, "tools/call", call("tools_echo", "one"));
    let agent = token("agent");
    let said = modern(
        &reviewed.gateway,
        Some(&agent),
        "tools/call",
        call("tools_echo", "one"),
    );
    let said = said.json()["result"].clone();
    assert_eq!(said["resultType"], "input_required", "{said}");
    assert_eq!(pending(&reviewed), 1);
    approve(&reviewed, &first);
    let mut params = call("tools_echo", "one");
    params["requestState"] = said["requestState"].clone();
    let done = modern(&reviewed.gateway, Some(&agent), "tools/call", params).json();
    assert_eq!(done["result"]["content"][0]["text"], "one", "{done}");
    assert_eq!(reviewed.executed(), 1);
}
