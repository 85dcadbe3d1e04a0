//! Capabilities on each wire: public names over MCP and for decisions, servers' own names in rooms;
//! wires closed to a participant.

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Connection;
use crate::peer::{Peer, answer, small, tool};
use crate::stage::{api, names};
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, answer as upgrade, people, token};

const TABLES: &str = "[topics.main]\nbuiltin = [\"proposals\"]\n";

/// `ci` may call `gh_*`, which is meant for the server `gh`; the server `other` has a tool that it
/// names `gh_wipe`.
fn setup() -> (Home, String, [Peer; 2]) {
    let (home, config) = people(&[
        ("agent", &["mcp/proposal:*", "chat"]),
        ("boss", &["mcp/*", "chat", "portmoot/*"]),
        ("ci", &["mcp/request:tools/call:gh_*", "chat"]),
    ]);
    let peers = ["read", "gh_wipe"].map(|name| {
        Peer::stdio(move |message| {
            let said = match message["method"].as_str() {
                Some("tools/call") => Some(answer(
                    message,
                    r#"{"content":[{"type":"text","text":"done"}]}"#,
                )),
                _ => small(message, &format!("[{}]", tool(name))),
            };
            said.into_iter().map(String::into_bytes).collect()
        })
    });
    let [gh, other] = &peers;
    let config = config + &gh.child("gh", "gh") + &other.child("other", "other") + TABLES;
    (home, config, peers)
}

fn start(home: &Home, config: &str) -> Gateway {
    let gateway = Gateway::start(home, config);
    ["gh", "other"].iter().for_each(|name| gateway.ready(name));
    gateway
}

/// The agent proposes to call a tool of a server by envelope; returns the proposal as the boss sees
/// it.
#[track_caller]
fn propose(
    gateway: &Gateway,
    agent: &mut Socket,
    envelope: &str,
    (server, tool): (&str, &str),
) -> Value {
    let call = json!({ "method": "tools/call", "params": { "name": tool, "arguments": {} } });
    agent.send(
        &format!("mcp/proposal:tools/call:{tool}"),
        envelope,
        &[server],
        json!({}),
        &call,
    );
    agent.receive_until(|received| received["kind"] == "portmoot/proposal");
    let all = api(gateway.address(), "boss", "GET", "", &Value::Null).json();
    let mut all = all["proposals"].as_array().unwrap().iter();
    all.find(|one| one["envelope"] == envelope).unwrap().clone()
}

#[test]
fn a_decision_without_an_envelope_means_public_names() {
    let (home, config, [gh, other]) = setup();
    let gateway = start(&home, &config);
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let wipe = propose(&gateway, &mut agent, "p1", ("other", "gh_wipe"));
    let id = wipe["id"].as_str().unwrap();
    let digest = json!({ "digest": wipe["digest"] });
    // By the API, the command line and a tool `gh_*` means what MCP clients call so.
    for (what, body) in [("approve", &digest), ("reject", &json!({}))] {
        let reply = api(
            gateway.address(),
            "ci",
            "POST",
            &format!("/{id}/{what}"),
            body,
        );
        assert_eq!(reply.json()["code"], "unknown_target", "{what}: {reply:?}");
    }
    let url = gateway.url();
    let decide = [
        "proposals",
        "approve",
        id,
        "--yes",
        "--no-wait",
        "--url",
        &url,
        "--token",
        &token("ci"),
    ];
    home.run(&decide).expect(5);
    let client = Client::of(&gateway, &token("ci"));
    let arguments = json!({ "id": id, "digest": wipe["digest"] });
    let refused = client.ask(
        "tools/call",
        json!({ "name": "approve_proposal", "arguments": arguments }),
    );
    assert!(
        refused["error"].is_object() || refused["result"]["isError"] == true,
        "{refused}"
    );
    let shown = client.call("show_proposal", json!({ "id": id }));
    assert_eq!(shown["structuredContent"]["may_decide"], false, "{shown}");
    assert_eq!(
        client
            .names("tools")
            .iter()
            .filter(|name| name.contains("wipe"))
            .count(),
        0
    );
    assert_eq!(other.calls("gh_wipe"), 0);
    // What it may call, it may also approve.
    let read = propose(&gateway, &mut agent, "p2", ("gh", "read"));
    let path = format!("/{}/approve", read["id"].as_str().unwrap());
    let approved = api(
        gateway.address(),
        "ci",
        "POST",
        &path,
        &json!({ "digest": read["digest"] }),
    );
    assert_eq!(approved.status, 200, "{approved:?}");
    until("it ran", || (gh.calls("read") == 1).then_some(()));
    // By envelope it means the server's own name, as the kind is sent.
    let (mut ci, _) = Socket::welcomed(&gateway, "ci", "?mode=directed&echo=false");
    let mut call = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call" });
    call["params"] = json!({ "name": "gh_wipe", "arguments": {} });
    ci.send(
        "mcp/request:tools/call:gh_wipe",
        "f1",
        &["other"],
        names("p1"),
        &call,
    );
    until("it ran", || (other.calls("gh_wipe") == 1).then_some(()));
}

#[test]
fn wires_close_the_other_ways_in() {
    let (home, config, [_, other]) = setup();
    let limited = |wires: &str| {
        config.replace(
            "[participants.ci]\n",
            &format!("[participants.ci]\nwires = [{wires}]\n"),
        )
    };
    let gateway = start(&home, &limited("\"mcp\""));
    let open = |name: &str| {
        let bearer = format!("Bearer {}", token(name));
        // Not an upgrade that the gateway accepts: who may come in is decided before.
        let reply = upgrade(&gateway, "/ws?topic=main", &[("authorization", &bearer)]);
        reply.status
    };
    let client = Client::of(&gateway, &token("ci"));
    assert_eq!(
        client.call("gh_read", json!({}))["content"][0]["text"],
        "done"
    );
    assert_eq!((open("ci"), open("boss")), (403, 426));
    assert_eq!(
        gateway.get("/api/v1/tools", Some(&token("ci"))).status,
        200,
        "the API is open on all wires"
    );
    assert_eq!(other.calls("gh_wipe"), 0);
    // A reload ends what came in on a wire that is closed now, and opens the other one.
    home.write("portmoot.toml", &limited("\"ws\""));
    gateway.signal("HUP");
    until("the session has ended", || {
        let status = client.status("tools/list", json!({}));
        [401, 403, 404].contains(&status).then_some(())
    });
    until("the other wire is open", || {
        (open("ci") != 403).then_some(())
    });
    // Its session may not have left the topic yet: then this is no join.
    let (mut socket, _) = Socket::welcomed(&gateway, "ci", "");
    home.write("portmoot.toml", &limited("\"mcp\", \"proto\""));
    gateway.signal("HUP");
    assert_eq!(socket.closed(), 4002);
    assert_eq!(open("ci"), 403);
    // An issuer with one wire opens no other wire to a new name.
    home.write(
        "portmoot.toml",
        &limited("\"mcp\"").replace("\"chat\"]\n", "\"chat\", \"portmoot/tokens\"]\n"),
    );
    gateway.signal("HUP");
    let new = |extra: &[&str]| {
        let (url, bearer) = (gateway.url(), token("ci"));
        let args = [
            "token",
            "new",
            "x",
            "--capability",
            "chat",
            "--url",
            &url,
            "--token",
            &bearer,
        ];
        home.run(&[&args[..], extra].concat())
    };
    let refused = until("it may issue tokens", || {
        Some(new(&[])).filter(|ran| ran.stderr.contains("wires"))
    });
    assert_eq!(refused.code, 3, "{}", refused.stderr);
}

#[test]
fn the_rights_of_a_participant_are_shown_for_each_wire() {
    let (home, config, _peers) = setup();
    let gateway = start(
        &home,
        &config.replace(
            "[participants.agent]\n",
            "[participants.agent]\nwires = [\"ws\"]\n",
        ),
    );
    let url = gateway.url();
    let can = |who: &str, args: &[&str]| {
        let bearer = token(who);
        home.run(
            &[
                &["participants", "can"],
                args,
                &["--url", &url, "--token", &bearer],
            ]
            .concat(),
        )
    };
    let shown = can("boss", &["ci"]).expect(0);
    let lines: Vec<String> = shown
        .stdout
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        lines[1..],
        [
            "main gh_read may: mcp/request:tools/call:gh_* read of gh -",
            "main other_gh_wipe - gh_wipe of other may: mcp/request:tools/call:gh_*",
        ]
    );
    assert!(
        shown.stderr.contains("`ci` may come in over: mcp, ws"),
        "{}",
        shown.stderr
    );
    // The agent comes in over WebSocket only, and may only propose.
    let agent: Value =
        serde_json::from_str(&can("boss", &["agent", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(
        (&agent["wires"], agent["entries"].as_array().unwrap().len()),
        (&json!(["ws"]), 2)
    );
    for entry in agent["entries"].as_array().unwrap() {
        assert_eq!(
            (&entry["mcp"], &entry["ws"]["verdict"]),
            (&Value::Null, &json!("may propose")),
            "{entry}"
        );
    }
    for (act, code) in [
        ("gh_read", 0),
        ("read", 0),
        ("gh_wipe", 0),
        ("mcp/request:tools/call:gh_read", 0),
        ("mcp/request:prompts/get:gh_read", 3),
        ("absent", 3),
        ("chat", 0),
        ("portmoot/tokens", 3),
    ] {
        can("boss", &["ci", act]).expect(code);
    }
    // A participant may look at itself, and at others only with `portmoot/grants`.
    can("ci", &["ci"]).expect(0);
    can("ci", &["boss"]).expect(5);
    can("boss", &["absent"]).expect(5);
    // What is shown is what happens.
    let bearer = format!("Bearer {}", token("ci"));
    let headers = [("authorization", bearer.as_str())];
    let tools = Connection::open(gateway.address())
        .exchange("GET", "/api/v1/tools", &headers, "")
        .json();
    let named: Vec<_> = tools["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].clone())
        .collect();
    assert!(
        named.contains(&json!("gh_read")) && !named.contains(&json!("other_gh_wipe")),
        "{named:?}"
    );
}
