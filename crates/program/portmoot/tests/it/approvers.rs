//! The right to approve calls without the right to make them (`mcp/approve`).

use serde_json::{Value, json};

use crate::builtin_proposals::{data, no};
use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

const APPROVES: &str = "mcp/approve:tools/call:*";

/// A gateway with the fixture as `tools`; a `scout` that may only propose; a `reviewer` that may
/// approve, and no more; and `both`, that may propose and approve.
fn stage() -> (Home, Gateway) {
    let (home, config) = people(&[
        ("scout", &["mcp/proposal:*"]),
        (
            "reviewer",
            &[APPROVES, "portmoot/reject", "portmoot/grants"],
        ),
        ("adder", &["mcp/approve:tools/call:tools_add"]),
        ("both", &[APPROVES, "mcp/proposal:*", "portmoot/grants"]),
    ]);
    let limits = "[server.limits]\nhold = \"500ms\"\n[topics.main]\nbuiltin = [\"proposals\"]\n";
    let gateway = Gateway::start(&home, &(config + limits + &fixture("tools", &[])));
    gateway.ready("tools");
    (home, gateway)
}

fn client(gateway: &Gateway, who: &str) -> Client {
    Client::of(gateway, &token(who))
}

#[track_caller]
fn api(gateway: &Gateway, who: &str, method: &str, path: &str, body: &Value) -> Reply {
    let bearer = format!("Bearer {}", token(who));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let path = format!("/api/v1/{path}");
    Connection::open(gateway.address()).exchange(method, &path, &headers, &body.to_string())
}

/// A call of a participant's that waits for a decision; returns the id of its proposal.
#[track_caller]
fn held(client: &Client, text: &str) -> String {
    let result = client.call("tools_echo", json!({ "text": text }));
    let id = result["_meta"]["portmoot/proposal"].as_str();
    id.unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[track_caller]
fn shown(gateway: &Gateway, who: &str, id: &str) -> Value {
    let reply = api(gateway, who, "GET", &format!("proposals/{id}"), &json!({}));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[track_caller]
fn outcome(client: &Client, id: &str) -> String {
    // The server may start up for it.
    until("its outcome", || {
        let waited = client.call("wait_for_proposal", json!({ "id": id }));
        let text = waited["content"][0]["text"].as_str().unwrap().to_owned();
        Some(text).filter(|text| !text.starts_with("Not done yet"))
    })
}

#[test]
fn who_may_approve_decides_and_calls_nothing() {
    let (home, gateway) = stage();
    let (scout, reviewer) = (client(&gateway, "scout"), client(&gateway, "reviewer"));
    let deciding = [
        "list_proposals",
        "show_proposal",
        "approve_proposal",
        "reject_proposal",
        "claim_proposal",
        "extend_proposal",
    ];
    assert_eq!(reviewer.names("tools"), deciding);
    let asked = reviewer.ask("tools/call", json!({ "name": "tools_echo" }));
    let absent = reviewer.ask("tools/call", json!({ "name": "no_such" }));
    assert_eq!(
        asked["error"].to_string().replace("tools_echo", "no_such"),
        absent["error"].to_string()
    );
    let called = api(
        &gateway,
        "reviewer",
        "POST",
        "tools/tools_echo/call",
        &json!({}),
    );
    assert_eq!(called.status, 404, "{called:?}");
    // By the API, by a tool, by the command line.
    let id = held(&scout, "one");
    let digest = shown(&gateway, "reviewer", &id)["digest"].clone();
    let path = format!("proposals/{id}/approve");
    let reply = api(
        &gateway,
        "reviewer",
        "POST",
        &path,
        &json!({ "digest": digest }),
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(outcome(&scout, &id), "one");
    assert_eq!(shown(&gateway, "reviewer", &id)["decided_by"], "reviewer");
    let id = held(&scout, "two");
    let one = data(&reviewer, "show_proposal", json!({ "id": id }));
    assert_eq!(one["may_decide"], true, "{one}");
    let approval = json!({ "id": id, "digest": one["digest"], "arguments": { "text": "2" } });
    data(&reviewer, "approve_proposal", approval);
    assert_eq!(outcome(&scout, &id), "2");
    let id = held(&scout, "three");
    let url = gateway.url();
    let as_reviewer = ["--url", &url, "--token", &token("reviewer")];
    let approve = ["proposals", "approve", &id, "--yes", "--no-wait"];
    home.run(&[&approve[..], &as_reviewer].concat()).expect(0);
    assert_eq!(outcome(&scout, &id), "three");
    let id = held(&scout, "four");
    data(&reviewer, "reject_proposal", json!({ "id": id }));
    let can = home.run(&[&["participants", "can", "reviewer"][..], &as_reviewer].concat());
    let listed = can.expect(0).stdout;
    assert!(
        listed.contains(&format!("may approve: {APPROVES}")),
        "{listed}"
    );
    let echo = ["participants", "can", "reviewer", "tools_echo"];
    home.run(&[&echo[..], &as_reviewer].concat()).expect(3);
    gateway.stop().expect(0);
}

#[test]
fn the_right_to_approve_covers_what_it_names_and_nothing_of_ones_own() {
    let (_home, gateway) = stage();
    let (scout, both) = (client(&gateway, "scout"), client(&gateway, "both"));
    let id = held(&scout, "one");
    let adder = client(&gateway, "adder");
    let none = json!({ "proposals": [], "more": false });
    assert_eq!(data(&adder, "list_proposals", json!({})), none);
    let digest = shown(&gateway, "reviewer", &id)["digest"].clone();
    let approval = json!({ "id": id, "digest": digest });
    assert!(no(&adder, "approve_proposal", approval).contains("no such proposal"));
    let own = held(&both, "mine");
    let digest = shown(&gateway, "both", &own)["digest"].clone();
    let approval = json!({ "id": own, "digest": digest });
    no(&both, "approve_proposal", approval);
    no(&both, "reject_proposal", json!({ "id": own }));
    assert_eq!(shown(&gateway, "both", &own)["state"], "pending");
    gateway.stop().expect(0);
}

#[test]
fn an_envelope_of_who_may_approve_rejects_and_fulfils_nothing() {
    let (_home, gateway) = stage();
    let scout = client(&gateway, "scout");
    let id = held(&scout, "one");
    let mut reviewer = Socket::enter(&gateway, "reviewer", "?mode=all");
    let envelope = shown(&gateway, "reviewer", &id)["envelope"].clone();
    let about = || json!({ "correlation_id": envelope });
    let params = json!({ "name": "echo", "arguments": { "text": "one" } });
    let payload = json!({ "method": "tools/call", "params": params });
    // The envelope is the request itself.
    reviewer.send(
        "mcp/request:tools/call:echo",
        "f1",
        &["tools"],
        about(),
        &payload,
    );
    reviewer.refused("f1", "capability_violation");
    // The right is no kind of an envelope.
    reviewer.send(
        "mcp/approve:tools/call:echo",
        "f2",
        &["tools"],
        about(),
        &payload,
    );
    reviewer.refused("f2", "capability_violation");
    reviewer.send(
        "portmoot/reject",
        "r1",
        &[],
        about(),
        &json!({ "reason": "no" }),
    );
    until("it is rejected", || {
        (shown(&gateway, "reviewer", &id)["state"] == "rejected").then_some(())
    });
    gateway.stop().expect(0);
}

#[test]
fn an_approval_for_an_hour_is_given_by_who_may_approve() {
    let (_home, gateway) = stage();
    let scout = client(&gateway, "scout");
    let grant = |by: &str, whom: &str, seconds: Value| {
        let add = ["mcp/request:tools/call:tools_echo"];
        let body = json!({ "add": add, "expires_in_seconds": seconds });
        let path = format!("participants/{whom}/grants?topic=main");
        api(&gateway, by, "POST", &path, &body).status
    };
    // Not for longer, not for ever, not to itself, and to none that may not propose it.
    assert_eq!(grant("reviewer", "scout", json!(3_601)), 403);
    assert_eq!(grant("reviewer", "scout", Value::Null), 403);
    assert_eq!(grant("both", "both", json!(60)), 403);
    assert_eq!(grant("reviewer", "adder", json!(60)), 403);
    assert_eq!(grant("reviewer", "scout", json!(3_600)), 200);
    assert_eq!(
        scout.call("tools_echo", json!({ "text": "direct" }))["content"][0]["text"],
        "direct"
    );
    gateway.stop().expect(0);
}
