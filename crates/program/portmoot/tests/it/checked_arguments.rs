//! Servers with `validate = true`: what does not fit a tool's input schema is answered by the
//! gateway, and no server sees it.

use std::sync::{Arc, Mutex};

use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::front::pipe;
use crate::home::Home;
use crate::listed_server::ListedServer;
use crate::peer::{Peer, answer, small};
use crate::proto_clients::websocket;
use crate::support::{Client, Gateway, modern, until};
use crate::ws::{Socket, people, token};

const KEY: &str = "validate = true\n";
const WHY: &str = "the arguments do not fit the input schema of the tool, so it was not called:\n";
const KIND: &str = "mcp/request:tools/call:s_strict";

/// A tool that only takes a short `text`, and perhaps a number, with a rule that protobuf has no
/// words for.
fn strict() -> Value {
    let properties = json!({ "text": { "type": "string", "not": { "const": "bad" } }, "n": { "type": "number", "maximum": 3 } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["text"], "additionalProperties": false });
    json!({ "name": "strict", "inputSchema": schema })
}

/// A server with these tools. A call of `change` announces that they have changed.
fn serving(tools: Vec<Value>) -> (Peer, Arc<Mutex<Vec<Value>>>) {
    let tools = Arc::new(Mutex::new(tools));
    let kept = Arc::clone(&tools);
    let peer = Peer::stdio(move |message| {
        let mut said = Vec::new();
        if message["method"] == "tools/call" {
            said.push(answer(
                message,
                r#"{"content":[{"type":"text","text":"done"}]}"#,
            ));
            if message["params"]["name"] == "change" {
                said.push(
                    r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned(),
                );
            }
        } else {
            let tools = Value::from(kept.lock().unwrap().clone()).to_string();
            said.extend(small(message, &tools));
        }
        said.into_iter().map(String::into_bytes).collect()
    });
    (peer, tools)
}

#[track_caller]
fn is_unfit(result: &Value, violations: &[&str]) {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let lines: Vec<&str> = text
        .strip_prefix(WHY)
        .unwrap_or_else(|| panic!("{text}"))
        .lines()
        .collect();
    assert_eq!(lines.len(), violations.len(), "{text}");
    for (line, violation) in lines.iter().zip(violations) {
        assert!(line.starts_with(violation), "{text}");
    }
}

#[track_caller]
fn is_done(result: &Value) {
    assert_eq!(result["content"][0]["text"], "done", "{result}");
}

const MISSING: &str = "- the arguments: \"text\" is a required property";
const TOO_MUCH: &str = "- /n: this is greater than the maximum of 3";
const BOTH: &[&str] = &[TOO_MUCH, MISSING];

fn wrong() -> Value {
    json!({ "n": 4 })
}

#[test]
fn unfit_arguments_do_not_reach_the_server() {
    let (peer, _) = serving(vec![strict()]);
    let (home, config) = people(&[("ann", &["mcp/request:*"]), ("eve", &["chat"])]);
    let topic = "[topics.main]\nbuiltin = [\"proxy\"]\n";
    let gateway = Gateway::start(&home, &(config + topic + &peer.child("s", "s") + KEY));
    gateway.ready("s");
    let client = Client::of(&gateway, &token("ann"));
    let named = |arguments: Value| json!({ "name": "s_strict", "arguments": arguments });

    is_unfit(&client.call("s_strict", wrong()), BOTH);
    is_unfit(
        &client.ask("tools/call", json!({ "name": "s_strict" }))["result"],
        &[MISSING],
    );
    let newer = modern(&gateway, Some(&token("ann")), "tools/call", named(wrong())).json();
    is_unfit(&newer["result"], BOTH);
    assert_eq!(newer["result"]["resultType"], "complete");
    let by_proxy = json!({ "action": "call", "type": "tool", "path": "s_strict", "args": wrong() });
    let by_proxy = client.ask(
        "tools/call",
        json!({ "name": "proxy", "arguments": by_proxy }),
    );
    let text = by_proxy["result"].to_string();
    assert!(
        by_proxy["result"]["isError"] == true && text.contains("greater than"),
        "{by_proxy}"
    );
    // Who asked for a task gets none, and no result in its place.
    let task = json!({ "name": "s_strict", "arguments": wrong(), "task": {} });
    let refused = client.ask("tools/call", task);
    assert_eq!(
        refused["error"]["data"]["code"], "schema_violation",
        "{refused}"
    );
    assert!(
        refused["error"]["message"]
            .as_str()
            .unwrap()
            .contains("/n: "),
        "{refused}"
    );
    // A participant without the permission learns nothing about the schema.
    let stranger = Client::of(&gateway, &token("eve")).ask("tools/call", named(wrong()));
    assert_eq!(
        stranger["error"]["data"]["code"], "unknown_target",
        "{stranger}"
    );
    assert_eq!(peer.calls("strict"), 0);

    // What fits arrives as it was written.
    let written = r#"{"n" : 3.0e0,  "text":"\u00fc ü" }"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"name":"s_strict","arguments":{written}}}}}"#
    );
    is_done(&client.post_text(&call).json()["result"]);
    assert!(
        peer.received()
            .last()
            .unwrap()
            .contains(&format!(r#""arguments":{written}"#)),
        "{:?}",
        peer.received()
    );
    assert_eq!(peer.calls("strict"), 1);

    // In a batch each call is judged on its own.
    let old = Client::of_revision(&gateway, &token("ann"), "2025-03-26");
    let both = [named(wrong()), named(json!({ "text": "fits" }))];
    let both: Vec<Value> = both
        .into_iter()
        .map(|params| old.request("tools/call", params))
        .collect();
    let events = old.begin(&Value::from(both));
    let mut answers = events.rest();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    is_unfit(&answers[0]["result"], BOTH);
    is_done(&answers[1]["result"]);
    assert_eq!(peer.calls("strict"), 2);

    let log = AuditLog(&home);
    log.comes_to(6, "ann", KIND, "refused", "unfit");
    let entry = log.has("ann", KIND, "refused", "unfit");
    assert_eq!(entry["to"], json!(["s"]), "{entry}");
    log.comes_to(1, "eve", KIND, "refused", "not_admitted");
}

#[test]
fn unfit_arguments_open_no_proposal_and_are_not_run_by_one() {
    let (peer, _) = serving(vec![strict()]);
    let (home, config) = people(&[("boss", &["mcp/*"]), ("scout", &["mcp/proposal:*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("s", "s") + KEY));
    gateway.ready("s");
    let scout = Client::of(&gateway, &token("scout"));
    is_unfit(&scout.call("s_strict", wrong()), BOTH);
    let log = AuditLog(&home);
    log.comes_to(1, "scout", KIND, "refused", "unfit");
    let (url, boss) = (gateway.url(), token("boss"));
    let proposals = |words: &[&str]| {
        let words = [&["proposals"], words, &["--url", &url, "--token", &boss]].concat();
        home.run(&words).expect(0).stdout
    };
    let all: Value = serde_json::from_str(&proposals(&["ls", "--all", "--json"])).unwrap();
    assert_eq!(all["proposals"], json!([]), "{all}");

    // One that fits is proposed. A reviewer's edit that does not fit is refused, and it goes on waiting.
    let waits = || {
        let id = gateway.pending(&home, &boss)["id"].clone();
        id.as_str().unwrap().to_owned()
    };
    let edit_is_refused = |id: &str| {
        let edit = ["--yes", "--arguments", r#"{"text":"bad"}"#];
        let who = ["--url", &url, "--token", &boss];
        let words = [&["proposals", "approve", id], &edit[..], &who].concat();
        let said = home.run(&words).expect(1).stderr;
        assert!(said.contains("- /text: "), "{said}");
        assert_eq!(waits(), id, "it waits still");
    };
    let open = scout.begin_call("s_strict", json!({ "text": "fits" }));
    let id = waits();
    edit_is_refused(&id);
    assert_eq!(peer.calls("strict"), 0);
    proposals(&["approve", &id, "--yes"]);
    let last = open.rest();
    assert_ne!(last.last().unwrap()["result"]["isError"], true, "{last:?}");
    // So it is with that of a caller that asked for a task.
    let params = json!({ "name": "s_strict", "arguments": { "text": "fits" }, "task": {} });
    let task = scout.ask("tools/call", params)["result"]["task"]["taskId"].clone();
    let id = waits();
    edit_is_refused(&id);
    proposals(&["approve", &id, "--yes"]);
    let result = scout.ask("tasks/result", json!({ "taskId": task }))["result"].clone();
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(peer.calls("strict"), 2);
}

#[test]
fn unfit_requests_in_a_room_are_answered_for_the_server() {
    let (peer, _) = serving(vec![strict()]);
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("s", "s") + KEY));
    gateway.ready("s");
    let mut ann = Socket::enter(&gateway, "ann", "");
    ann.call("c1", &["s"], "strict", wrong());
    let said = ann.receive_until(|envelope| {
        envelope["correlation_id"] == json!(["c1"]) || envelope["correlation_id"] == "c1"
    });
    assert_eq!(said["from"], "s", "{said}");
    is_unfit(&said["payload"]["result"], BOTH);
    assert_eq!(peer.calls("strict"), 0);
    AuditLog(&home).comes_to(
        1,
        "ann",
        "mcp/request:tools/call:strict",
        "refused",
        "unfit",
    );
}

#[test]
fn clients_of_proto_mcp_are_judged_by_both_gates() {
    let home = Home::new();
    let listed = ListedServer::new(&home, "s", &[]);
    home.write("s", &json!([strict()]).to_string());
    let words = pipe(&home, &(listed.table() + KEY));
    let served = Home::new();
    let data = "[server]\ndata_dir = \"data\"\n";
    let gateway = Gateway::start(&served, &(listed.table() + KEY + data));
    gateway.ready("s");
    let (url, over_pipe) = (websocket(&gateway), words.iter().map(String::as_str));
    let over_pipe: Vec<&str> = ["--pipe"].into_iter().chain(over_pipe).collect();
    let ways = [
        &over_pipe[..],
        &["--ws", &url],
        &["--tcp", gateway.address()],
        &["--grpc"],
    ];
    for (count, way) in ways.into_iter().enumerate() {
        let call = |text: &str| match way {
            ["--grpc"] => {
                let report = grpc_client(&[gateway.address(), "", "--call", "s_strict", text]);
                let answer = &report["answers"][0];
                answer.get("is_error").unwrap_or(answer).clone()
            }
            way => proto_client(&[&["--call", "s_strict", text], way].concat())["answer"].clone(),
        };
        assert_eq!(call("fits"), json!(["strict of the server"]), "{way:?}");
        // Only JSON Schema can say this.
        let answered = call("bad");
        let why = answered[0].as_str().unwrap_or_default();
        assert!(
            why.starts_with(&format!("{WHY}- /text: ")),
            "{way:?}: {answered}"
        );
        assert_eq!(listed.calls(), "strict\n".repeat(count + 1), "{way:?}");
    }
    // A null that the message cannot say is one for the JSON all the same.
    let marked = ["--metadata", r#"{"mcp.null":"[\"/n\"]"}"#];
    let typed = ["--typed", "s_strict", r#"{"text":"fits"}"#, "--ws", &url];
    let answered = proto_client(&[&typed[..], &marked].concat())["answer"].to_string();
    assert!(
        answered.contains("- /n: this is not of type \\\"number"),
        "{answered}"
    );
    AuditLog(&served).comes_to(4, "local", KIND, "refused", "unfit");
}

#[test]
fn unfit_proposals_of_a_room_are_refused_when_they_are_made() {
    let (peer, _) = serving(vec![strict()]);
    let (home, config) = people(&[
        ("boss", &["mcp/*"]),
        ("scout", &["mcp/proposal:*"]),
        ("eve", &["chat"]),
    ]);
    let gateway = Gateway::start(&home, &(config + &peer.child("s", "s") + KEY));
    gateway.ready("s");
    let propose = |socket: &mut Socket, id: &str, arguments: Value| {
        let params = json!({ "name": "strict", "arguments": arguments });
        let payload = json!({ "method": "tools/call", "params": params });
        socket.send(
            "mcp/proposal:tools/call:strict",
            id,
            &["s"],
            json!({}),
            &payload,
        );
    };
    let mut scout = Socket::enter(&gateway, "scout", "?echo=false");
    propose(&mut scout, "wrong", wrong());
    let state = scout.receive_until(|envelope| envelope["correlation_id"] == "wrong");
    assert_eq!(state["payload"]["state"], "rejected", "{state}");
    let reason = state["payload"]["reason"].as_str().unwrap();
    assert!(
        reason.contains(MISSING) && reason.contains(TOO_MUCH),
        "{reason}"
    );
    // A participant without the permission learns nothing about the schema.
    let mut eve = Socket::enter(&gateway, "eve", "?echo=false");
    propose(&mut eve, "theirs", wrong());
    assert!(
        !eve.refused("theirs", "capability_violation")
            .to_string()
            .contains("maximum")
    );
    // One that fits is the only proposal that there is.
    propose(&mut scout, "right", json!({ "text": "fits" }));
    let pending = gateway.pending(&home, &token("boss"));
    assert_eq!(
        pending["params"]["arguments"],
        json!({ "text": "fits" }),
        "{pending}"
    );
    let (url, boss) = (gateway.url(), token("boss"));
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
    let all: Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!(all["proposals"].as_array().unwrap().len(), 1, "{all}");
    let log = AuditLog(&home);
    log.comes_to(
        1,
        "scout",
        "mcp/proposal:tools/call:strict",
        "refused",
        "unfit",
    );
    assert_eq!(peer.calls("strict"), 0);
}

#[test]
fn tools_with_hostile_schemas_are_left_out_and_cost_little() {
    let tool = |name: &str, schema: Value| {
        let mut schema = schema;
        schema["type"] = json!("object");
        json!({ "name": name, "inputSchema": schema })
    };
    let doubling: serde_json::Map<String, Value> = (0..60)
        .map(|at| {
            let next = json!({ "$ref": format!("#/$defs/d{}", (at + 1).min(59)) });
            (
                format!("d{at}"),
                if at == 59 {
                    json!({})
                } else {
                    json!({ "anyOf": [next, next] })
                },
            )
        })
        .collect();
    let tree = json!([{ "properties": { "x": { "$ref": "#" } } }, { "properties": { "x": { "$ref": "#" } } }]);
    let hostile = [
        tool("loop", json!({ "allOf": [{ "$ref": "#" }] })),
        tool(
            "doubling",
            json!({ "$ref": "#/$defs/d0", "$defs": doubling }),
        ),
        tool(
            "far",
            json!({ "properties": { "a": { "$ref": format!("http://127.0.0.1:{}/x", 1) } } }),
        ),
        tool(
            "file",
            json!({ "properties": { "a": { "$ref": "file:///etc/passwd" } } }),
        ),
        tool(
            "pattern",
            json!({ "properties": { "a": { "pattern": "((a{1000}){1000}){1000}" } } }),
        ),
        tool("wide", json!({ "enum": vec![json!({}); 10_001] })),
    ];
    let mut tools = vec![strict(), tool("tree", json!({ "anyOf": tree }))];
    tools.extend(hostile.iter().cloned());
    let (peer, _) = serving(tools);
    let home = Home::new();
    let gateway = Gateway::start(
        &home,
        &(peer.child("s", "s") + KEY + "[topics.main]\nbuiltin = []\n"),
    );
    gateway.ready("s");
    let client = Client::plain(&gateway);
    assert_eq!(client.names("tools"), ["s_strict", "s_tree"]);
    let server = gateway.server("s").to_string();
    for tool in &hostile {
        let name = tool["name"].as_str().unwrap();
        let refused = client.ask(
            "tools/call",
            json!({ "name": format!("s_{name}"), "arguments": {} }),
        );
        assert_eq!(
            refused["error"]["data"]["code"], "unknown_target",
            "{refused}"
        );
        assert!(server.contains(&format!("\"{name}\"")), "{server}");
    }
    assert!(
        server.contains("arguments cannot be checked: its input schema refers to another document"),
        "{server}"
    );
    // The commands of an operator name them too.
    let found = home
        .run(&["doctor", "--config", "portmoot.toml"])
        .expect(0)
        .stdout;
    let shown = home
        .run(&["servers", "show", "s", "--url", &gateway.url()])
        .expect(0)
        .stdout;
    for tool in &hostile {
        let name = tool["name"].as_str().unwrap();
        assert!(found.contains(&format!("{name}: not listed: ")), "{found}");
        assert!(shown.contains(&format!("\"name\": \"{name}\"")), "{shown}");
    }
    assert!(
        found.contains("careful server s") && found.contains("refers to another document"),
        "{found}"
    );
    // What only these arguments make expensive.
    let nested = |depth: usize| (0..depth).fold(json!({}), |inner, _| json!({ "x": inner }));
    is_done(&client.call("s_tree", nested(5)));
    is_unfit(
        &client.call("s_tree", nested(60)),
        &["- they are too large or too deep"],
    );
    is_done(&client.call("s_strict", json!({ "text": "fits" })));

    // Without a prefix the server itself is asked for names that are not listed: not for these.
    let home = Home::new();
    let bare = Gateway::start(&home, &(peer.child("s", "") + KEY));
    bare.ready("s");
    let client = Client::plain(&bare);
    is_unfit(
        &client.call("loop", json!({})),
        &["- arguments cannot be checked: its input schema applies"],
    );
    is_done(&client.call("unknown", json!({})));
    assert_eq!((peer.calls("loop"), peer.calls("unknown")), (0, 1));
}

#[test]
fn a_reload_and_a_new_schema_count_from_then_on() {
    let change = json!({ "name": "change", "inputSchema": { "type": "object" } });
    let (peer, tools) = serving(vec![strict(), change.clone()]);
    let home = Home::new();
    let table = peer.child("s", "s");
    let gateway = Gateway::start(&home, &table);
    gateway.ready("s");
    let client = Client::plain(&gateway);
    is_done(&client.call("s_strict", wrong()));
    // The server starts again with the changed table; its calls may be refused meanwhile.
    let answers = |judged: bool| {
        until("the reload counts", || {
            let answer = client.ask(
                "tools/call",
                json!({ "name": "s_strict", "arguments": wrong() }),
            );
            (answer["result"].is_object() && (answer["result"]["isError"] == true) == judged)
                .then_some(answer)
        })
    };
    home.write("portmoot.toml", &(table.clone() + KEY));
    gateway.signal("HUP");
    is_unfit(&answers(true)["result"], BOTH);

    let mut looser = strict();
    looser["inputSchema"]["required"] = json!([]);
    *tools.lock().unwrap() = vec![looser, change];
    is_done(&client.call("s_change", json!({})));
    until("the new schema counts", || {
        let result = client.call("s_strict", wrong());
        (!result.to_string().contains("required")).then(|| is_unfit(&result, &[TOO_MUCH]))
    });

    home.write("portmoot.toml", &table);
    gateway.signal("HUP");
    is_done(&answers(false)["result"]);
}
