//! Servers that speak proto-mcp, written with Google's protobuf runtime, for clients of JSON-RPC.

use std::process::Command;

use harness::{Running, deps, proto_client, proto_relay, repository};
use serde_json::{Value, json};

use crate::home::Home;
use crate::proto_between::got;
use crate::proto_clients::{TOO_BIG, check as check_client, websocket};
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::ws::{Socket, people, token};

/// Versions of a server with which nothing can be done, and why.
const OTHER_VERSIONS: [(&str, &str); 2] = [
    ("2.0.0", "proto-mcp `2.0.0`"),
    ("refused", "unsupported protocol version"),
];

/// The words that start the server.
fn words(way: &str, more: &[&str]) -> Vec<String> {
    let script = repository().join("tests/third-party/proto_server.py");
    let contract = repository().join("crates/protocol/wire/proto");
    let words = [
        script.display().to_string(),
        contract.display().to_string(),
        way.to_owned(),
    ];
    words
        .into_iter()
        .chain(more.iter().map(|word| (*word).to_owned()))
        .collect()
}

/// The table of a child that speaks proto-mcp.
pub(crate) fn child(name: &str, more: &[&str]) -> String {
    let python = deps().python();
    format!(
        "[servers.{name}]\ntype = \"proto\"\ncommand = {python:?}\nargs = {:?}\n",
        words("stdio", more)
    )
}

pub(crate) fn listening(way: &str, more: &[&str]) -> Running {
    let mut command = Command::new(deps().python());
    command.args(words(way, more));
    Running::start(command, "at ")
}

/// Checks what clients of both eras have of the server `p`.
fn check(gateway: &Gateway) {
    gateway.ready("p");
    let client = Client::plain(gateway);
    let tools = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let find = |name: &str| {
        tools
            .as_array()
            .unwrap()
            .iter()
            .find(|tool| tool["name"] == name)
            .cloned()
    };
    let echo = find("p_echo").unwrap();
    assert_eq!(
        (&echo["title"], &echo["description"], &echo["inputSchema"]),
        (
            &json!("Echo"),
            &json!("The tool echo"),
            &json!({ "type": "object" })
        )
    );
    // The last one is on the third page.
    assert!(find("p_die").is_some(), "{tools}");

    let arguments = json!({ "q": 1.5, "of": [true, null, { "a": "b" }], "x": 2.5 });
    let said = client.call("p_echo", arguments.clone());
    assert_eq!(said["structuredContent"], arguments);
    let text: Value = serde_json::from_str(said["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, arguments);
    assert_eq!(
        client.call("p_echo", json!({}))["structuredContent"],
        json!({})
    );
    check_messages(&client, &find);
    let picture = client.call("p_picture", json!({}));
    assert_eq!(
        picture["content"],
        json!([{ "type": "image", "data": "iVBORwD/", "mimeType": "image/png" }])
    );
    let failed = client.call("p_fail", json!({}));
    assert_eq!(
        (&failed["isError"], &failed["content"][0]["text"]),
        (&json!(true), &json!("the tool broke"))
    );
    for (tool, code, why) in [
        ("p_refuse", -32602, "these arguments do not fit"),
        ("p_rule", -33001, "a rule is broken"),
    ] {
        let error =
            client.ask("tools/call", json!({ "name": tool, "arguments": {} }))["error"].clone();
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(code), &json!(why)),
            "{tool}"
        );
    }
    let resources = client.ask("resources/list", json!({}))["result"]["resources"].clone();
    assert_eq!(resources.as_array().map(Vec::len), Some(2), "{resources}");
    let read = |uri: &str| {
        client.ask("resources/read", json!({ "uri": uri }))["result"]["contents"][0].clone()
    };
    assert_eq!(read("file:///hello")["text"], "hello, reader");
    assert_eq!(read("file:///blob")["blob"], "AP8B");

    let said = modern(
        gateway,
        None,
        "tools/call",
        json!({ "name": "p_echo", "arguments": { "q": "m" } }),
    )
    .json();
    assert_eq!(
        said["result"]["structuredContent"],
        json!({ "q": "m" }),
        "{said}"
    );
    let find = json!({ "name": "p_find", "arguments": { "query": "ab", "tags": ["a"] } });
    let of_modern = modern(gateway, None, "tools/call", find.clone()).json()["result"].clone();
    let of_legacy = client.ask("tools/call", find)["result"].clone();
    assert_eq!(
        of_legacy["structuredContent"],
        json!({ "query": "ab", "count": 0, "tags": ["a"], "filter": {} })
    );
    for part in ["content", "structuredContent", "isError"] {
        assert_eq!(of_modern[part], of_legacy[part], "{of_modern}");
    }
    let listed = modern(gateway, None, "tools/list", json!({})).json()["result"]["tools"].clone();
    let listed = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "p_find")
        .cloned()
        .unwrap();
    assert_eq!(
        listed["inputSchema"]["properties"]["limit"]["maximum"], 50,
        "{listed}"
    );
    let refused = modern(
        gateway,
        None,
        "tools/call",
        json!({ "name": "p_refuse", "arguments": {} }),
    )
    .json();
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

/// Checks the tools that have messages of their own.
fn check_messages(client: &Client, listed: &dyn Fn(&str) -> Option<Value>) {
    let find = listed("p_find").unwrap();
    let (input, output) = (&find["inputSchema"], &find["outputSchema"]);
    assert_eq!(
        input["properties"]["query"],
        json!({ "type": "string", "minLength": 2 })
    );
    assert_eq!(
        input["properties"]["limit"],
        json!({ "type": "integer", "minimum": 1, "maximum": 50 })
    );
    let since = &input["properties"]["filter"]["properties"]["since"];
    assert_eq!(since["type"], "integer", "{input}");
    assert_eq!(input["additionalProperties"], false);
    assert_eq!(output["properties"]["count"]["type"], "integer", "{output}");
    assert_eq!(
        listed("p_raw").unwrap()["outputSchema"],
        Value::Null,
        "nothing says that it is the result"
    );
    // A schema that cannot be read, and one that is not here.
    for other in ["p_broken", "p_distant"] {
        assert_eq!(
            listed(other).unwrap()["inputSchema"],
            json!({ "type": "object" }),
            "{other}"
        );
        assert_eq!(
            client.call(other, json!({ "q": 1 }))["isError"],
            Value::Null,
            "{other}"
        );
    }
    let big = 9_007_199_254_740_993_i64;
    let arguments =
        json!({ "query": "grüße", "limit": 7, "tags": ["a", "b"], "filter": { "since": big } });
    let said = client.call("p_find", arguments);
    let found =
        json!({ "query": "grüße", "count": 7, "tags": ["a", "b"], "filter": { "since": big } });
    assert_eq!(said["structuredContent"], found);
    assert_eq!(
        said["content"],
        json!([{ "type": "text", "text": "found grüße" }])
    );
    assert_eq!(said["_meta"], json!({ "took": "1ms" }));
    for (arguments, field) in [
        (json!({ "query": "ab", "other": 1 }), "other"),
        (json!({ "query": 5 }), "query"),
        (
            json!({ "query": "ab", "filter": { "owner": "x", "since": 1 } }),
            "filter.since",
        ),
    ] {
        let error = client.ask(
            "tools/call",
            json!({ "name": "p_find", "arguments": arguments }),
        )["error"]
            .clone();
        assert_eq!(error["code"], -32602, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(field),
            "{error}"
        );
    }
}

#[test]
fn a_child_is_a_server_like_any_other() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &child("p", &[]));
    check(&gateway);
    // Changed lists are announced.
    let client = Client::plain(&gateway);
    client.call("p_grow", json!({}));
    until("the new tool", || {
        client
            .names("tools")
            .contains(&"p_grown".to_owned())
            .then_some(())
    });
    // A call that ends the server fails, and the next one has another process.
    let lost = client.ask("tools/call", json!({ "name": "p_die", "arguments": {} }));
    assert!(
        lost["error"].is_object() || lost["result"]["isError"] == true,
        "{lost}"
    );
    until("another process", || {
        let said = client.ask(
            "tools/call",
            json!({ "name": "p_echo", "arguments": { "q": 1 } }),
        );
        (said["result"]["structuredContent"] == json!({ "q": 1 })).then_some(())
    });
}

#[test]
fn a_server_behind_a_socket_is_a_server_like_any_other() {
    for (way, kind) in [("tcp", "proto"), ("ws", "proto"), ("grpc", "grpc")] {
        let running = listening(way, &[]);
        let config = format!(
            "[servers.p]\ntype = \"{kind}\"\nurl = {:?}\n",
            running.address()
        );
        let gateway = Gateway::start(&Home::new(), &config);
        check(&gateway);
        drop(running);
        let client = Client::plain(&gateway);
        let lost = client.ask("tools/call", json!({ "name": "p_echo", "arguments": {} }));
        assert!(
            lost["error"].is_object() || lost["result"]["isError"] == true,
            "{way}: {lost}"
        );
        gateway.wait_for("p", "down");
    }
}

#[test]
fn a_server_of_another_version_is_down_and_says_why() {
    for (version, why) in OTHER_VERSIONS {
        let running = listening("tcp", &["--version", version]);
        let socket = format!(
            "[servers.p]\ntype = \"proto\"\nurl = {:?}\n",
            running.address()
        );
        // Neither has JSON-RPC to offer.
        for table in [child("p", &["--version", version]), socket] {
            let gateway = Gateway::start(&Home::new(), &table);
            let down = gateway.wait_for("p", "down").to_string();
            assert!(down.contains(why) && down.contains("-33002"), "{down}");
        }
    }
}

#[test]
fn a_child_of_another_version_is_started_again_as_json_where_that_is_allowed() {
    let fixture = harness::fixture_binary().display().to_string();
    for (version, why) in OTHER_VERSIONS {
        let home = Home::new();
        let record = home.path().join("record").display().to_string();
        let words = [
            "--version",
            version,
            "--record",
            &record,
            "--json",
            &fixture,
            "--stdio",
        ];
        let gateway = Gateway::start(&home, &child("p", &words));
        gateway.ready("p");
        let client = Client::plain(&gateway);
        assert_eq!(client.record("p")["protocolVersion"], "2025-11-25");
        assert_eq!(
            client.call("p_echo", json!({ "text": "hello" }))["content"][0]["text"],
            "hello"
        );
        // It was asked in protobuf first, once.
        assert_eq!(std::fs::read_to_string(&record).unwrap().lines().count(), 1);
        drop(gateway);
        let gateway = Gateway::start(&Home::new(), &(child("p", &words) + "fallback = false\n"));
        let down = gateway.wait_for("p", "down").to_string();
        assert!(down.contains(why) && down.contains("-33002"), "{down}");
    }
}

#[test]
fn a_child_that_speaks_json_is_started_again_where_that_is_allowed() {
    let table = fixture("p", &[]).replacen('\n', "\ntype = \"proto\"\nstart_timeout = \"3s\"\n", 1);
    let gateway = Gateway::start(&Home::new(), &table);
    gateway.ready("p");
    assert_eq!(
        Client::plain(&gateway).record("p")["protocolVersion"],
        "2025-11-25"
    );
    check_client(
        &proto_client(&["--prefix", "p_", "--ws", &websocket(&gateway)]),
        "p_",
        &json!(TOO_BIG),
    );
    let gateway = Gateway::start(&Home::new(), &(table + "fallback = false\n"));
    gateway.wait_for("p", "down");
}

#[test]
fn rules_of_a_message_hold_for_every_caller() {
    let (home, config) = people(&[
        ("ann", &["mcp/*", "chat"]),
        ("boss", &["mcp/*"]),
        ("scout", &["mcp/proposal:*", "mcp/response:*"]),
    ]);
    let record = home.path().join("record");
    let server = child("p", &["--record", record.to_str().unwrap()]);
    let built_in = "[topics.main]\nbuiltin = [\"proxy\"]\n";
    let gateway = Gateway::start(&home, &[&config, built_in, &server].concat());
    gateway.ready("p");
    #[track_caller]
    fn is_unfit(result: &Value, place: &str) {
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert!(
            lines.len() == 2 && lines[0].ends_with("so it was not called:"),
            "{text}"
        );
        assert!(lines[1].starts_with(place), "{text}");
    }
    let (ann, scout) = (
        Client::of(&gateway, &token("ann")),
        Client::of(&gateway, &token("scout")),
    );
    for (arguments, place) in [
        (json!({ "query": "a" }), "- query: "),
        (json!({}), "- query: "),
        (json!({ "query": "ab", "limit": 51 }), "- limit: "),
    ] {
        is_unfit(&ann.call("p_find", arguments.clone()), place);
        let call = json!({ "name": "p_find", "arguments": arguments });
        is_unfit(
            &modern(&gateway, Some(&token("ann")), "tools/call", call).json()["result"],
            place,
        );
        // Nothing that could not run is proposed.
        is_unfit(&scout.call("p_find", arguments.clone()), place);
        let proxied =
            json!({ "action": "call", "type": "tool", "path": "p_find", "args": arguments });
        let proxied = ann.call("proxy", proxied);
        assert!(proxied.to_string().contains(place), "{proxied}");
    }
    let (url, boss) = (gateway.url(), token("boss"));
    let ran = home.run(&[
        "tools",
        "call",
        "p_find",
        "query=a",
        "--url",
        &url,
        "--token",
        &token("ann"),
    ]);
    assert!(ran.code != 0 && (ran.stdout + &ran.stderr).contains("- query: "));
    let all = home
        .run(&[
            "proposals",
            "ls",
            "--all",
            "--json",
            "--url",
            &url,
            "--token",
            &boss,
        ])
        .expect(0);
    assert_eq!(
        serde_json::from_str::<Value>(&all.stdout).unwrap()["proposals"],
        json!([])
    );

    // In a room: a request, and a proposal.
    let (mut socket, _) = Socket::welcomed(&gateway, "ann", "");
    socket.call("c1", &["p"], "find", json!({ "query": "a" }));
    let said = socket.receive_until(|envelope| envelope["from"] == "p");
    is_unfit(&said["payload"]["result"], "- query: ");
    let (mut proposer, _) = Socket::welcomed(&gateway, "scout", "?echo=false");
    let payload = json!({ "method": "tools/call", "params": { "name": "find", "arguments": { "query": "a" } } });
    proposer.send(
        "mcp/proposal:tools/call:find",
        "wrong",
        &["p"],
        json!({}),
        &payload,
    );
    let state = proposer.receive_until(|envelope| envelope["correlation_id"] == "wrong");
    assert_eq!(state["payload"]["state"], "rejected", "{state}");

    // Arguments that a reviewer has edited.
    let open = scout.begin_call("p_find", json!({ "query": "ab" }));
    let id = gateway.pending(&home, &boss)["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let edited = [
        "--arguments",
        r#"{"query":"a"}"#,
        "--url",
        &url,
        "--token",
        &boss,
    ];
    let approve = ["proposals", "approve", &id, "--yes"];
    let refused = home.run(&[&approve[..], &edited[..]].concat()).expect(1);
    assert!(refused.stderr.contains("- query: "), "{}", refused.stderr);
    home.run(&[&approve[..], &edited[2..]].concat()).expect(0);
    let last = open.rest();
    let result = &last.last().unwrap()["result"];
    assert_ne!(result["isError"], true, "{result}");
    // Callers that write protobuf are refused in their own way.
    let relayed = proto_relay(&["p_", &websocket(&gateway), &token("ann")]);
    assert_eq!(
        relayed["broken_rule"],
        json!([-33001, [["query", "string.min_len"]]])
    );
    let calls = std::fs::read_to_string(&record).unwrap().lines().count();
    is_unfit(&ann.call("p_find", json!({ "query": "a" })), "- query: ");
    assert_eq!(
        std::fs::read_to_string(&record).unwrap().lines().count(),
        calls
    );
    // A field 1 with one letter.
    assert!(
        got(&record, "find")
            .iter()
            .all(|call| !call.contains("0a0161"))
    );
}
