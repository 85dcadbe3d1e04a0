//! What is proposed to a participant that serves: whoever approves it and how, it is asked once.

use super::*;

/// Waits until a proposal is in this state.
#[track_caller]
fn wait_for_proposal(house: &House, id: &str, state: &str) {
    until(&format!("{id} is {state}"), || {
        let shown: Value = serde_json::from_str(&house.proposals(&["show", id, "--json"])).unwrap();
        (shown["state"] == state).then_some(())
    });
}

#[test]
fn a_call_that_may_only_be_proposed_runs_once_when_it_is_approved() {
    let house = start("", "[topics.main]\nmcp_calls = \"full\"\n");
    let mut boss = Socket::enter(&house.gateway, "ann", "?echo=false");
    // It hears everything, and all the same it is asked once.
    let mut worker = Worker(Socket::enter(&house.gateway, "worker", "?echo=false"));
    worker.greet(&[schema("one")]);
    house.wait_listed(&["one"]);
    let scout = house.client("scout");
    let call = begin(&scout, "worker_one", json!({ "n": 1 }));
    house.proposals(&["approve", &house.waiting(), "--yes"]);
    let asked = worker.next_request();
    assert_eq!(asked["from"], "scout", "{asked}");
    worker.answer_text(&asked, "first");
    assert_eq!(*text(&call.next()), "first");

    // Approved by an envelope that names the server: it runs once all the same.
    let call = begin(&scout, "worker_one", json!({ "n": 2 }));
    let proposal = loop {
        let heard = boss.hear_said();
        if heard["kind"] == "mcp/proposal:tools/call:one" && heard["payload"]["params"]["arguments"]["n"] == 2
        {
            break heard;
        }
    };
    let params = &proposal["payload"]["params"];
    let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let about = json!({ "correlation_id": proposal["id"] });
    boss.say("mcp/request:tools/call:one", "yes", &["worker"], about, &payload);
    let asked = worker.next_request();
    assert_eq!((&asked["from"], &asked["payload"]["params"]["arguments"]["n"]), (&json!("scout"), &json!(2)));
    worker.answer_text(&asked, "second");
    assert_eq!(*text(&call.next()), "second");
    // Nothing else has reached it: the next thing that it hears is this.
    boss.chat("the end");
    loop {
        let heard = worker.0.hear_said();
        if heard["id"] == "the end" {
            return;
        }
        assert!(!heard["kind"].as_str().unwrap().starts_with("mcp/request"), "{heard}");
    }
}

#[test]
fn what_is_approved_after_its_caller_was_answered_runs_once() {
    for shown in ["none", "full"] {
        let more = format!("[topics.main]\nmcp_calls = {shown:?}\n[server.limits]\nhold = \"200ms\"\n");
        let house = start("", &more);
        let mut boss = Socket::enter(&house.gateway, "ann", "?echo=false");
        let mut worker = Worker(Socket::enter(&house.gateway, "worker", "?echo=false"));
        worker.greet(&[schema("one")]);
        house.wait_listed(&["one"]);
        let scout = house.client("scout");
        for by_envelope in [false, true] {
            let told = scout.ask("tools/call", json!({ "name": "worker_one", "arguments": {} }));
            assert!(text(&told).as_str().unwrap().contains("wait_for_proposal"), "{told}");
            let id = house.waiting();
            let proposal: Value = serde_json::from_str(&house.proposals(&["show", &id, "--json"])).unwrap();
            let from = if by_envelope {
                let payload = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": proposal["params"] });
                let about = json!({ "correlation_id": proposal["envelope"] });
                boss.say("mcp/request:tools/call:one", "yes", &["worker"], about, &payload);
                "ann"
            } else {
                house.proposals(&["approve", &id, "--yes"]);
                "portmoot"
            };
            let asked = worker.next_request();
            assert_eq!(asked["from"], from, "{shown}: {asked}");
            worker.answer_text(&asked, "done");
            wait_for_proposal(&house, &id, "completed");
        }
        boss.chat("the end");
        loop {
            let heard = worker.0.hear_said();
            if heard["id"] == "the end" {
                break;
            }
            assert!(!heard["kind"].as_str().unwrap().starts_with("mcp/request"), "{shown}: {heard}");
        }
    }
}

#[test]
fn what_is_said_to_it_in_the_room_is_its_own_affair() {
    let house = start("", "");
    let mut boss = Socket::enter(&house.gateway, "ann", "?echo=false");
    let mut worker = Worker::serving(&house, &["one"]);
    // A request in the room: it answers for itself, and everybody hears it.
    boss.call("direct", &["worker"], "one", json!({}));
    let asked = worker.next_request();
    assert_eq!((&asked["id"], &asked["from"]), (&json!("direct"), &json!("ann")));
    worker.answer_text(&asked, "to the room");
    let heard = boss.hear_said();
    assert_eq!((&heard["from"], &heard["correlation_id"]), (&json!("worker"), &json!("direct")), "{heard}");
    // A proposal that is approved by the API: the approver's request is what it hears.
    let mut mallory = Socket::enter(&house.gateway, "mallory", "?echo=false&mode=directed");
    let payload = json!({ "method": "tools/call", "params": { "name": "one", "arguments": {} } });
    mallory.say("mcp/proposal:tools/call:one", "please", &["worker"], json!({}), &payload);
    let id = house.waiting();
    house.proposals(&["approve", &id, "--yes"]);
    let asked = worker.next_request();
    assert_eq!((&asked["from"], &asked["correlation_id"]), (&json!("ann"), &json!("please")), "{asked}");
    worker.answer_text(&asked, "done");
    wait_for_proposal(&house, &id, "completed");
    boss.chat("the end");
    assert_eq!(worker.0.hear_said()["id"], "the end", "it was asked once");
}
