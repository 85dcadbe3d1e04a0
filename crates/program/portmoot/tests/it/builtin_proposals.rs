//! Built-in proposal tools, called by MCP clients of both eras and by envelopes.

mod envelopes;

use serde_json::{Value, json};

use crate::home::Home;
use crate::http::{Connection, Reply};
use crate::listed_server::ListedServer;
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::ws::{Socket, people, token};

const BOSS: &[&str] = &["mcp/*", "chat", "portmoot/grants"];
const DECIDING: [&str; 4] = [
    "approve_proposal",
    "reject_proposal",
    "claim_proposal",
    "extend_proposal",
];

/// A gateway with the fixture as `tools`; a `scout` that may only propose, a `boss` with full
/// access, a `clerk` that may only add, and a `guest` that may only chat. Calls are held for a
/// short time.
fn stage(more: &str) -> (Home, Gateway) {
    let (home, config) = people(&[
        ("scout", &["mcp/proposal:*"]),
        ("boss", BOSS),
        ("clerk", &["mcp/request:tools/call:tools_add"]),
        ("guest", &["chat"]),
    ]);
    let limits = "[server.limits]\nhold = \"500ms\"\n";
    let gateway = Gateway::start(&home, &(config + limits + &fixture("tools", &[]) + more));
    gateway.ready("tools");
    (home, gateway)
}

const LISTED: &str = "[topics.main]\nbuiltin = [\"proposals\"]\n";

fn client(gateway: &Gateway, who: &str) -> Client {
    Client::of(gateway, &token(who))
}

/// The structured content of a tool's result. It equals the text and matches the tool's output
/// schema.
#[track_caller]
pub(crate) fn data(client: &Client, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments);
    assert_eq!(result["isError"], false, "{tool}: {result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{tool}");
    let listed = client.ask("tools/list", json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap();
    let schema = &listed.iter().find(|one| one["name"] == tool).unwrap()["outputSchema"];
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(&text)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{tool}: {errors:?} {text}");
    text
}

/// The text of a tool's error.
#[track_caller]
pub(crate) fn no(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments);
    assert_eq!(result["isError"], true, "{tool}: {result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The scout calls a tool, which is held; returns the id of the proposal.
#[track_caller]
fn held(scout: &Client, tool: &str, arguments: Value) -> String {
    let result = scout.call(tool, arguments);
    result["_meta"]["portmoot/proposal"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"))
        .to_owned()
}

#[track_caller]
fn is_unknown(client: &Client, tool: &str) {
    let ask = |name: &str| {
        client.ask("tools/call", json!({ "name": name, "arguments": {} }))["error"].clone()
    };
    let (refused, absent) = (ask(tool), ask("no_such_tool"));
    assert!(refused.is_object(), "{tool}");
    assert_eq!(
        refused.to_string().replace(tool, "no_such_tool"),
        absent.to_string()
    );
}

#[test]
fn a_reviewing_client_approves_with_other_arguments() {
    let (_home, gateway) = stage(LISTED);
    let (scout, boss) = (client(&gateway, "scout"), client(&gateway, "boss"));
    assert_eq!(
        data(&boss, "list_proposals", json!({})),
        json!({ "proposals": [], "more": false })
    );
    let id = held(&scout, "tools_echo", json!({ "text": "rm\u{202e} -r /" }));
    let page = data(&boss, "list_proposals", json!({}));
    let one = &page["proposals"][0];
    for (key, value) in [
        ("id", json!(id)),
        ("state", json!("pending")),
        ("by", json!("scout")),
        ("to", json!(["tools"])),
        ("method", json!("tools/call")),
        ("target", json!("echo")),
        ("own", json!(false)),
        ("may_decide", json!(true)),
        ("in_full", json!(true)),
        (
            "params",
            json!({ "name": "echo", "arguments": { "text": "rm\\u{202e} -r /" } }),
        ),
    ] {
        assert_eq!(one[key], value, "{key}: {one}");
    }
    assert_eq!(one["tool"]["name"], "echo");
    let mine = data(&scout, "list_proposals", json!({}));
    let mine = &mine["proposals"][0];
    assert_eq!(
        (&mine["own"], &mine["may_decide"]),
        (&json!(true), &json!(false))
    );

    let digest = one["digest"].as_str().unwrap();
    let approved = data(
        &boss,
        "approve_proposal",
        json!({ "id": id, "digest": digest, "arguments": { "text": "ls" } }),
    );
    assert_eq!(approved["id"], id);
    let waited = scout.call("wait_for_proposal", json!({ "id": id }));
    assert_eq!(waited["content"][0]["text"], "ls", "{waited}");
    let shown = until("its end", || {
        let shown = data(&boss, "show_proposal", json!({ "id": id }));
        (shown["state"] == "completed").then_some(shown)
    });
    assert_eq!(
        (&shown["decided_by"], &shown["digest"]),
        (&json!("boss"), &json!(digest))
    );
    assert_eq!(shown["edited"]["arguments"], json!({ "text": "ls" }));
    assert_eq!(shown["answer"]["result"]["content"][0]["text"], "ls");
    assert_eq!(
        data(&boss, "list_proposals", json!({}))["proposals"],
        json!([])
    );
    assert_eq!(
        data(&boss, "list_proposals", json!({ "all": true }))["proposals"][0]["id"],
        id
    );
    // A second approval is refused.
    let again = no(
        &boss,
        "approve_proposal",
        json!({ "id": id, "digest": digest }),
    );
    assert!(again.starts_with("conflict: "), "{again}");
}

#[test]
fn approvals_need_the_shown_digest_and_rejections_carry_a_reason() {
    let (_home, gateway) = stage(LISTED);
    let (scout, boss) = (client(&gateway, "scout"), client(&gateway, "boss"));
    let (one, other) = (
        held(&scout, "tools_echo", json!({ "text": "1" })),
        held(&scout, "tools_echo", json!({ "text": "2" })),
    );
    let digest = |id: &str| data(&boss, "show_proposal", json!({ "id": id }))["digest"].clone();
    for (wrong, code) in [
        (digest(&other), "conflict"),
        (json!("0".repeat(64)), "conflict"),
        (json!("x"), "malformed"),
    ] {
        let said = no(
            &boss,
            "approve_proposal",
            json!({ "id": one, "digest": wrong }),
        );
        assert!(said.starts_with(code), "{said}");
    }
    for (tool, arguments) in [
        ("approve_proposal", json!({ "id": one })),
        (
            "approve_proposal",
            json!({ "id": one, "digest": digest(&one), "yes": true }),
        ),
        (
            "approve_proposal",
            json!({ "id": one, "digest": digest(&one), "arguments": [] }),
        ),
        ("reject_proposal", json!({})),
        ("list_proposals", json!({ "limit": "many" })),
    ] {
        let said = no(&boss, tool, arguments);
        assert!(said.starts_with("malformed: "), "{tool}: {said}");
    }
    for id in ["", "00", &"f".repeat(32)] {
        let said = no(&boss, "reject_proposal", json!({ "id": id }));
        assert!(said.starts_with("unknown_target: "), "{said}");
    }
    let said = no(&scout, "show_proposal", json!({ "id": "no such" }));
    assert!(said.starts_with("unknown_target: "), "{said}");

    let rejected = data(
        &boss,
        "reject_proposal",
        json!({ "id": one, "reason": "not before Monday" }),
    );
    assert_eq!(rejected["state"], "rejected");
    let waited = scout.call("wait_for_proposal", json!({ "id": one }));
    let words = waited["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("rejected by boss") && words.contains("not before Monday"),
        "{words}"
    );
    scout.call("withdraw_proposal", json!({ "id": other }));
    let all = data(&boss, "list_proposals", json!({ "all": true }));
    let states: Vec<&Value> = all["proposals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["state"])
        .collect();
    assert_eq!(states, ["rejected", "withdrawn"]);
    assert_eq!(boss.record("tools")["calls"], 1, "nothing ran but this");
}

#[test]
fn own_and_unpermitted_proposals_cannot_be_decided() {
    let (_home, gateway) = stage(LISTED);
    let (scout, boss, clerk) = (
        client(&gateway, "scout"),
        client(&gateway, "boss"),
        client(&gateway, "clerk"),
    );
    // The proposal is already in the topic.
    let (mut agent, _) = Socket::welcomed(&gateway, "boss", "?mode=directed&echo=false");
    let params = json!({ "name": "echo", "arguments": { "text": "mine" } });
    agent.send(
        "mcp/proposal:tools/call:echo",
        "p1",
        &["tools"],
        json!({}),
        &json!({ "method": "tools/call", "params": params }),
    );
    until("it is announced", || {
        (agent.receive()["payload"]["state"] == "pending").then_some(())
    });
    let own = data(&boss, "show_proposal", json!({ "id": "p1" }));
    assert_eq!(
        (&own["own"], &own["may_decide"]),
        (&json!(true), &json!(false))
    );
    for (tool, arguments) in [
        (
            "approve_proposal",
            json!({ "id": "p1", "digest": own["digest"] }),
        ),
        ("reject_proposal", json!({ "id": "p1" })),
    ] {
        let said = no(&boss, tool, arguments);
        assert!(said.starts_with("conflict: "), "{said}");
    }
    // The clerk may call `add`: it sees and decides only those proposals.
    let sum = held(&scout, "tools_add", json!({ "a": 1, "b": 2 }));
    let seen = data(&clerk, "list_proposals", json!({}));
    assert_eq!(seen["proposals"].as_array().unwrap().len(), 1, "{seen}");
    let seen = &seen["proposals"][0];
    assert_eq!(
        (&seen["id"], &seen["may_decide"]),
        (&json!(sum), &json!(true))
    );
    let said = no(
        &clerk,
        "approve_proposal",
        json!({ "id": own["id"], "digest": own["digest"] }),
    );
    assert!(said.starts_with("unknown_target: "), "{said}");
    data(
        &clerk,
        "approve_proposal",
        json!({ "id": sum, "digest": seen["digest"] }),
    );
    let waited = scout.call("wait_for_proposal", json!({ "id": sum }));
    assert_eq!(waited["structuredContent"]["sum"], 3, "{waited}");
    // Proposals of others cannot be waited for or withdrawn.
    for tool in ["wait_for_proposal", "withdraw_proposal"] {
        assert!(
            scout.ask(
                "tools/call",
                json!({ "name": tool, "arguments": { "id": own["id"] } })
            )["error"]
                .is_object()
        );
    }
}

#[test]
fn lists_show_usable_tools_and_others_look_unknown() {
    let (home, gateway) = stage(LISTED);
    let own = |client: &Client| -> Vec<String> {
        client
            .names("tools")
            .into_iter()
            .filter(|name| !name.starts_with("tools_"))
            .collect()
    };
    let (looking, mine) = (
        ["list_proposals", "show_proposal"],
        [
            "amend_proposal",
            "propose_plan",
            "withdraw_proposal",
            "wait_for_proposal",
        ],
    );
    let all = [&looking[..], &DECIDING, &mine].concat();
    assert_eq!(own(&client(&gateway, "boss")), all);
    assert_eq!(
        own(&client(&gateway, "clerk")),
        [&looking[..], &DECIDING].concat()
    );
    let (scout, guest) = (client(&gateway, "scout"), client(&gateway, "guest"));
    assert_eq!(own(&scout), [&looking[..], &mine].concat());
    assert!(own(&guest).is_empty());
    DECIDING.iter().for_each(|tool| is_unknown(&scout, tool));
    looking
        .iter()
        .chain(&DECIDING)
        .for_each(|tool| is_unknown(&guest, tool));
    let described = scout.ask("tools/list", json!({}));
    for tool in described["result"]["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        // Built-in tools are never held.
        let name = tool["name"].as_str().unwrap();
        assert!(
            name.starts_with("tools_") || tool.get("execution").is_none(),
            "{tool}"
        );
    }

    // Changed capabilities are announced and take effect at once.
    let changes = scout.listen();
    let bearer = format!("Bearer {}", token("boss"));
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = json!({ "add": ["mcp/request:tools/call:tools_echo"] }).to_string();
    let reply: Reply = Connection::open(gateway.address()).exchange(
        "POST",
        "/api/v1/participants/scout/grants",
        &headers,
        &body,
    );
    assert_eq!(reply.status, 200, "{reply:?}");
    changes.next_of("notifications/tools/list_changed");
    assert_eq!(own(&scout), all);
    assert_eq!(
        data(&scout, "list_proposals", json!({}))["proposals"],
        json!([])
    );

    // So does a changed configuration.
    let config = std::fs::read_to_string(home.path().join("portmoot.toml")).unwrap();
    home.write("portmoot.toml", &config.replace(LISTED, "[topics.main]\n"));
    changes.next_of("notifications/tools/list_changed");
    assert!(own(&scout).is_empty());
    is_unknown(&scout, "list_proposals");
    // `wait_for_proposal` works unlisted too.
    let refused = scout.ask(
        "tools/call",
        json!({ "name": "wait_for_proposal", "arguments": { "id": "x" } }),
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("proposal"),
        "{refused}"
    );
}

#[test]
fn modern_clients_have_the_same_tools() {
    let (_home, gateway) = stage(LISTED);
    let boss = token("boss");
    let id = held(
        &client(&gateway, "scout"),
        "tools_echo",
        json!({ "text": "please" }),
    );
    let ask = |tool: &str, arguments: Value| {
        let reply = modern(
            &gateway,
            Some(&boss),
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        let result = reply.json()["result"].clone();
        assert_eq!(result["resultType"], "complete", "{reply:?}");
        result
    };
    let listed = modern(&gateway, Some(&boss), "tools/list", json!({})).json();
    assert!(
        listed["result"]["tools"]
            .to_string()
            .contains("approve_proposal"),
        "{listed}"
    );
    let page = ask("list_proposals", json!({ "limit": 1 }));
    let one = &page["structuredContent"]["proposals"][0];
    assert_eq!(one["id"], id);
    let refused = ask("approve_proposal", json!({ "id": id, "digest": "00" }));
    assert_eq!(refused["isError"], true, "{refused}");
    let approved = ask(
        "approve_proposal",
        json!({ "id": id, "digest": one["digest"] }),
    );
    assert_eq!(approved["isError"], false, "{approved}");
}

#[test]
fn proposals_are_paged_and_long_ones_are_shown_separately() {
    let (_home, gateway) = stage(LISTED);
    let boss = client(&gateway, "boss");
    let mut agent = Socket::enter(&gateway, "scout", "?mode=directed&echo=false");
    for number in 0..5 {
        let text = if number == 2 {
            "x".repeat(20_000)
        } else {
            number.to_string()
        };
        let params = json!({ "name": "echo", "arguments": { "text": text } });
        let payload = json!({ "method": "tools/call", "params": params });
        let id = format!("p{number}");
        agent.send(
            "mcp/proposal:tools/call:echo",
            &id,
            &["tools"],
            json!({}),
            &payload,
        );
        until("it is announced", || {
            (agent.receive()["payload"]["state"] == "pending").then_some(())
        });
    }
    let (mut seen, mut after) = (Vec::new(), Value::Null);
    loop {
        let page = data(
            &boss,
            "list_proposals",
            json!({ "limit": 2, "after": after }),
        );
        seen.extend(page["proposals"].as_array().unwrap().clone());
        after = page["next"].clone();
        assert_eq!(page["more"], !after.is_null());
        if after.is_null() {
            break;
        }
        // Proposals that ended meanwhile leave no gap.
        data(&boss, "reject_proposal", json!({ "id": after }));
    }
    assert_eq!(seen.len(), 5);
    for (number, one) in seen.iter().enumerate() {
        let short = number != 2;
        assert_eq!(
            (one["in_full"] == true, one["digest"].is_string()),
            (short, short),
            "{number}"
        );
        assert_eq!(one["params"].is_object(), short, "{number}");
    }
    let whole = data(&boss, "show_proposal", json!({ "id": seen[2]["id"] }));
    assert_eq!(
        whole["params"]["arguments"]["text"].as_str().unwrap().len(),
        20_000
    );
    data(
        &boss,
        "approve_proposal",
        json!({ "id": whole["id"], "digest": whole["digest"] }),
    );
}

#[test]
fn listed_builtin_tools_take_precedence_over_server_tools() {
    let home = Home::new();
    let names = ["list_proposals", "say", "wait_for_proposal", "other"];
    let server =
        ListedServer::new(&home, "a", &names.map(|name| (name, ""))).table() + "prefix = \"\"\n";
    let gateway = Gateway::start(&home, &(server.clone() + "[topics.main]\nbuiltin = []\n"));
    gateway.wait_for("a", "ready");
    let client = Client::plain(&gateway);
    assert_eq!(client.names("tools"), names);
    for name in names {
        assert_eq!(
            client.call(name, json!({}))["content"][0]["text"],
            format!("{name} of the server")
        );
    }
    // Tools behind a built-in name stay callable, and unlisted built-in names are free for servers.
    assert_eq!(
        client.call("read_messages", json!({}))["content"][0]["text"],
        "read_messages of the server"
    );
    drop(gateway);

    let gateway = Gateway::start(
        &home,
        &(server + "[topics.main]\nbuiltin = [\"proposals\"]\n"),
    );
    gateway.wait_for("a", "ready");
    let client = Client::plain(&gateway);
    let names = client.names("tools");
    assert_eq!(names[10..], ["say", "other"], "{names:?}");
    assert_eq!(
        names
            .iter()
            .filter(|name| *name == "list_proposals")
            .count(),
        1
    );
    assert_eq!(
        data(&client, "list_proposals", json!({}))["proposals"],
        json!([])
    );
    assert_eq!(
        client.call("say", json!({}))["content"][0]["text"],
        "say of the server"
    );
    let refused = client.ask(
        "tools/call",
        json!({ "name": "wait_for_proposal", "arguments": {} }),
    );
    assert!(refused["error"].is_object(), "{refused}");
}
