//! Proposals to a dial-in server: each approved call reaches it once.

use super::*;

/// Waits until a proposal is in this state.
#[track_caller]
fn wait_for_proposal(setup: &Started, id: &str, state: &str) {
    until(&format!("{id} is {state}"), || {
        let shown: Value = serde_json::from_str(&setup.proposals(&["show", id, "--json"])).unwrap();
        (shown["state"] == state).then_some(())
    });
}

#[test]
fn a_proposed_call_runs_once_after_approval() {
    let setup = start("", "[topics.main]\nmcp_calls = \"full\"\n");
    let mut boss = Socket::enter(&setup.gateway, "ann", "?echo=false");
    // It receives all envelopes, but the call only once.
    let mut worker = Worker(Socket::enter(&setup.gateway, "worker", "?echo=false"));
    worker.greet(&[schema("one")]);
    setup.wait_listed(&["one"]);
    let scout = setup.client("scout");
    let call = begin(&scout, "worker_one", json!({ "n": 1 }));
    setup.proposals(&["approve", &setup.waiting(), "--yes", "--no-wait"]);
    let asked = worker.next_request();
    assert_eq!(asked["from"], "scout", "{asked}");
    worker.answer_text(&asked, "first");
    assert_eq!(*text(&call.next()), "first");

    // Approved by an envelope that names the server: it runs once too.
    let call = begin(&scout, "worker_one", json!({ "n": 2 }));
    let proposal = loop {
        let received = boss.receive_message();
        if received["kind"] == "mcp/proposal:tools/call:one"
            && received["payload"]["params"]["arguments"]["n"] == 2
        {
            break received;
        }
    };
    let params = &proposal["payload"]["params"];
    let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let about = json!({ "correlation_id": proposal["id"] });
    boss.send(
        "mcp/request:tools/call:one",
        "yes",
        &["worker"],
        about,
        &payload,
    );
    let asked = worker.next_request();
    assert_eq!(
        (
            &asked["from"],
            &asked["payload"]["params"]["arguments"]["n"]
        ),
        (&json!("scout"), &json!(2))
    );
    worker.answer_text(&asked, "second");
    assert_eq!(*text(&call.next()), "second");
    // It received nothing else: the next envelope is this chat.
    boss.chat("the end");
    loop {
        let received = worker.0.receive_message();
        if received["id"] == "the end" {
            return;
        }
        assert!(
            !received["kind"]
                .as_str()
                .unwrap()
                .starts_with("mcp/request"),
            "{received}"
        );
    }
}

#[test]
fn a_call_approved_after_its_caller_was_answered_runs_once() {
    for shown in ["none", "full"] {
        let more =
            format!("[topics.main]\nmcp_calls = {shown:?}\n[server.limits]\nhold = \"200ms\"\n");
        let setup = start("", &more);
        let mut boss = Socket::enter(&setup.gateway, "ann", "?echo=false");
        let mut worker = Worker(Socket::enter(&setup.gateway, "worker", "?echo=false"));
        worker.greet(&[schema("one")]);
        setup.wait_listed(&["one"]);
        let scout = setup.client("scout");
        for by_envelope in [false, true] {
            let notice = scout.ask(
                "tools/call",
                json!({ "name": "worker_one", "arguments": {} }),
            );
            assert!(
                text(&notice)
                    .as_str()
                    .unwrap()
                    .contains("wait_for_proposal"),
                "{notice}"
            );
            let id = setup.waiting();
            let proposal: Value =
                serde_json::from_str(&setup.proposals(&["show", &id, "--json"])).unwrap();
            if by_envelope {
                let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": proposal["params"] });
                let about = json!({ "correlation_id": proposal["envelope"] });
                boss.send(
                    "mcp/request:tools/call:one",
                    "yes",
                    &["worker"],
                    about,
                    &payload,
                );
            } else {
                setup.proposals(&["approve", &id, "--yes", "--no-wait"]);
            }
            // It runs as the proposer's call, on the reviewer's authority.
            let asked = worker.next_request();
            assert_eq!(asked["from"], "scout", "{shown}: {asked}");
            worker.answer_text(&asked, "done");
            wait_for_proposal(&setup, &id, "completed");
        }
        boss.chat("the end");
        loop {
            let received = worker.0.receive_message();
            if received["id"] == "the end" {
                break;
            }
            assert!(
                !received["kind"]
                    .as_str()
                    .unwrap()
                    .starts_with("mcp/request"),
                "{shown}: {received}"
            );
        }
    }
}

#[test]
fn requests_in_the_room_are_answered_by_the_participant_itself() {
    let setup = start("", "");
    let mut boss = Socket::enter(&setup.gateway, "ann", "?echo=false");
    let mut worker = Worker::serving(&setup, &["one"]);
    // A request in the room: the participant answers itself, and all receive the answer.
    boss.call("direct", &["worker"], "one", json!({}));
    let asked = worker.next_request();
    assert_eq!(
        (&asked["id"], &asked["from"]),
        (&json!("direct"), &json!("ann"))
    );
    worker.answer_text(&asked, "to the room");
    let received = boss.receive_message();
    assert_eq!(
        (&received["from"], &received["correlation_id"]),
        (&json!("worker"), &json!("direct")),
        "{received}"
    );
    // A proposal that is approved over the API: it receives the approver's request.
    let mut mallory = Socket::enter(&setup.gateway, "mallory", "?echo=false&mode=directed");
    let payload = json!({ "method": "tools/call", "params": { "name": "one", "arguments": {} } });
    mallory.send(
        "mcp/proposal:tools/call:one",
        "please",
        &["worker"],
        json!({}),
        &payload,
    );
    let id = setup.waiting();
    setup.proposals(&["approve", &id, "--yes", "--no-wait"]);
    let asked = worker.next_request();
    assert_eq!(
        (&asked["from"], &asked["correlation_id"]),
        (&json!("ann"), &json!("please")),
        "{asked}"
    );
    worker.answer_text(&asked, "done");
    wait_for_proposal(&setup, &id, "completed");
    boss.chat("the end");
    assert_eq!(
        worker.0.receive_message()["id"],
        "the end",
        "it was asked once"
    );
}
