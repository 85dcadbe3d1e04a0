//! Curation of tools: chosen and hidden ones, other names and texts, presets and hidden arguments,
//! on every wire.

mod commands;
mod reload;
mod sets;
mod spellings;

use std::slice;

use harness::{grpc_client, proto_client};
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::Connection;
use crate::listed_server::ListedServer;
use crate::peer::{Peer, answer, small};
use crate::proto_clients::websocket;
use crate::proto_servers::child;
use crate::stage::api;
use crate::support::{Client, Gateway, modern, until};
use crate::ws::{Socket, people, token};

/// The tables that follow the one of the server `s`.
const TABLES: &str = r#"hide = ["secret_*"]
[servers.s.tool.search]
name = "find"
title = "Find"
description = "Finds what Acme has."
annotations = { readOnlyHint = true }
preset = { owner = "acme" }
hide_arguments = ["force"]
"#;
const WHY: &str = "so it was not called: the configuration of the gateway sets or hides it";

fn tools() -> Value {
    let text = json!({ "type": "string" });
    let properties = json!({ "owner": text, "q": text, "force": { "type": "boolean" } });
    let schema = json!({ "type": "object", "properties": properties, "required": ["owner", "q"] });
    let search = json!({ "name": "search", "description": "Searches.", "annotations": { "title": "S" }, "inputSchema": schema });
    let plain = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    json!([search, plain("echo"), plain("secret_wipe")])
}

/// The schema of `search` that callers see.
fn shown_schema() -> Value {
    json!({ "type": "object", "properties": { "q": { "type": "string" } }, "required": ["q"] })
}

fn serving() -> Peer {
    Peer::stdio(|message| {
        let said = match message["method"] == "tools/call" {
            true => Some(answer(
                message,
                r#"{"content":[{"type":"text","text":"done"}]}"#,
            )),
            false => small(message, &tools().to_string()),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

/// The arguments of the calls of a tool that the server has got.
fn got(peer: &Peer, tool: &str) -> Vec<Value> {
    let calls = peer
        .received()
        .into_iter()
        .filter_map(|line| serde_json::from_str::<Value>(&line).ok());
    let calls =
        calls.filter(|call| call["method"] == "tools/call" && call["params"]["name"] == tool);
    calls
        .map(|call| call["params"]["arguments"].clone())
        .collect()
}

#[track_caller]
fn is_done(result: &Value) {
    assert_eq!(result["content"][0]["text"], "done", "{result}");
}

#[track_caller]
fn is_refused(result: &Value) {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    assert!(result["isError"] == true && text.ends_with(WHY), "{result}");
}

#[test]
fn every_wire_adds_the_preset_and_passes_nothing_hidden() {
    let peer = serving();
    let (home, config) = people(&[("ann", &["mcp/*", "portmoot/servers"]), ("eve", &["mcp/*"])]);
    let topic = "[topics.main]\nbuiltin = [\"proxy\", \"search_tools\"]\n";
    let gateway = Gateway::start(&home, &(config + topic + &peer.child("s", "s") + TABLES));
    gateway.ready("s");
    let (url, ann) = (gateway.url(), token("ann"));
    let client = Client::of(&gateway, &ann);
    let (right, wrong) = (json!({ "q": "x" }), json!({ "q": "x", "owner": "acme" }));
    let whole = json!({ "q": "x", "owner": "acme" });

    // Lists of both eras, of the proxy, of a search, of the API and of a room.
    let find = |list: &Value, name: &str| {
        let tools = list["tools"].as_array().unwrap_or_else(|| panic!("{list}"));
        tools.iter().find(|tool| tool["name"] == name).cloned()
    };
    let listed = client.ask("tools/list", json!({}))["result"].clone();
    let newer = modern(&gateway, Some(&ann), "tools/list", json!({})).json()["result"].clone();
    let over_api = gateway.get("/api/v1/tools", Some(&ann)).json();
    let (mut room, _) = Socket::welcomed(&gateway, "ann", "?echo=false");
    let asks = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    room.send("mcp/request:tools/list", "l1", &["s"], json!({}), &asks);
    let in_room =
        room.receive_until(|envelope| envelope["correlation_id"] == "l1")["payload"]["result"]
            .clone();
    let sought =
        client.call("search_tools", json!({ "query": "what Acme has" }))["structuredContent"]
            .clone();
    for (list, name) in [
        (&listed, "s_find"),
        (&newer, "s_find"),
        (&over_api, "s_find"),
        (&sought, "s_find"),
        (&in_room, "search"),
    ] {
        let tool = find(list, name).unwrap_or_else(|| panic!("{name}: {list}"));
        assert_eq!(tool["description"], "Finds what Acme has.", "{tool}");
        assert_eq!(tool["inputSchema"], shown_schema(), "{tool}");
        assert!(!list.to_string().contains("secret_wipe"), "{list}");
    }
    let tool = find(&listed, "s_find").unwrap();
    assert_eq!(
        (&tool["title"], &tool["annotations"]),
        (
            &json!("Find"),
            &json!({ "title": "S", "readOnlyHint": true })
        )
    );
    let info = json!({ "action": "info", "type": "tool", "path": "s_find" });
    assert!(!client.call("proxy", info).to_string().contains("owner"));

    // Calls: what fits has the preset, what is hidden is refused.
    let by_proxy = |arguments: &Value| {
        let call = json!({ "action": "call", "type": "tool", "path": "s_find", "args": arguments });
        client.call("proxy", call)
    };
    let by_modern = |arguments: &Value| {
        let call = json!({ "name": "s_find", "arguments": arguments });
        modern(&gateway, Some(&ann), "tools/call", call).json()["result"].clone()
    };
    for call in [
        &|arguments: &Value| client.call("s_find", arguments.clone()),
        &by_modern,
        &by_proxy,
    ] as [&dyn Fn(&Value) -> Value; 3]
    {
        let before = got(&peer, "search").len();
        is_done(&call(&right));
        assert_eq!(&got(&peer, "search")[before..], slice::from_ref(&whole));
        for wrong in [
            wrong.clone(),
            json!({ "q": "x", "Force": true }),
            json!({ "OWNER": 1 }),
        ] {
            is_refused(&call(&wrong));
        }
        assert_eq!(got(&peer, "search").len(), before + 1);
    }
    let mut asked = 0;
    let mut in_room = |tool: &str, arguments: &Value| {
        asked += 1;
        let id = format!("c{asked}");
        room.call(&id, &["s"], tool, arguments.clone());
        room.receive_until(|envelope| envelope["correlation_id"] == *id)["payload"].clone()
    };
    is_done(&in_room("search", &right)["result"]);
    is_refused(&in_room("search", &wrong)["result"]);
    let hidden = in_room("secret_wipe", &json!({}));
    assert_eq!(
        hidden["error"]["data"]["code"], "unknown_target",
        "{hidden}"
    );
    assert_eq!(got(&peer, "search").last(), Some(&whole));

    // The command line.
    let run = |words: &[&str], code| {
        let words = [words, &["--url", &url, "--token", &ann]].concat();
        let ran = home.run(&words).expect(code);
        ran.stdout + &ran.stderr
    };
    assert!(run(&["tools", "call", "s_find", "q=y"], 0).contains("done"));
    assert_eq!(
        got(&peer, "search").last(),
        Some(&json!({ "q": "y", "owner": "acme" }))
    );
    let calls = got(&peer, "search").len();
    let refused = run(&["tools", "call", "s_find", "q=y", "force=true"], 2);
    assert!(refused.contains("force"), "{refused}");
    let whole = r#"{"q":"y","force":true}"#;
    let refused = run(&["tools", "call", "s_find", "--args", whole], 1);
    assert!(
        refused.contains("this tool takes no argument `force`"),
        "{refused}"
    );
    assert_eq!(got(&peer, "search").len(), calls);

    // Operators see both definitions, others one.
    let show: Value =
        serde_json::from_str(&run(&["tools", "show", "s_find", "--json"], 0)).unwrap();
    assert_eq!(show["inputSchema"], shown_schema(), "{show}");
    assert_eq!(
        show["original"],
        json!({ "definition": tools()[0], "preset": { "owner": "acme" } }),
        "{show}"
    );
    let of_eve = gateway
        .get("/api/v1/tools/s_find", Some(&token("eve")))
        .json();
    assert_eq!(of_eve["original"], Value::Null, "{of_eve}");
    let plain = gateway.get("/api/v1/tools/s_echo", Some(&ann)).json();
    assert!(
        plain["name"] == "s_echo" && plain["original"] == Value::Null,
        "{plain}"
    );
    let server: Value = serde_json::from_str(&run(&["servers", "show", "s", "--json"], 0)).unwrap();
    assert_eq!(
        (&server["hidden_tools"], &server["notes"]),
        (&json!(["secret_wipe"]), &Value::Null),
        "{server}"
    );

    // Names of what is hidden or renamed lead nowhere.
    for name in ["s_secret_wipe", "s_search"] {
        let refused = client.ask("tools/call", json!({ "name": name, "arguments": {} }));
        assert_eq!(
            refused["error"]["data"]["code"], "unknown_target",
            "{refused}"
        );
    }
    is_done(&client.call("s_echo", json!({ "owner": "mine" })));
    assert_eq!(got(&peer, "echo"), [json!({ "owner": "mine" })]);
    assert_eq!(peer.calls("secret_wipe"), 0);
    let log = AuditLog(&home);
    log.comes_to(
        10,
        "ann",
        "mcp/request:tools/call:s_find",
        "refused",
        "unfit",
    );
    let mut admitted = log.entries(&["--participant", "ann", "--verdict", "admitted"]);
    admitted.retain(|entry| entry["kind"] == "mcp/request:tools/call:s_find");
    assert!(
        !admitted.is_empty() && admitted.iter().all(|entry| entry["own"] == "search"),
        "{admitted:?}"
    );
}

#[test]
fn clients_of_proto_mcp_have_the_schema_that_is_left() {
    let peer = serving();
    let home = Home::new();
    let gateway = Gateway::start(&home, &(peer.child("s", "s") + TABLES));
    gateway.ready("s");
    let url = websocket(&gateway);
    let typed =
        |words: &str| proto_client(&["--typed", "s_find", words, "--ws", &url])["answer"].clone();
    assert_eq!(typed(r#"{"q":"x"}"#), json!(["done"]));
    assert_eq!(got(&peer, "search"), [json!({ "q": "x", "owner": "acme" })]);
    // A Struct may name anything: what is hidden does not pass, however it is spelled.
    let plain = |words: &str, way: [&str; 2]| {
        proto_client(&["--plain", "s_find", words, way[0], way[1]])["answer"].clone()
    };
    for way in [["--ws", &*url], ["--tcp", gateway.address()]] {
        assert_eq!(plain(r#"{"q":"x"}"#, way), json!(["done"]));
        let calls = got(&peer, "search").len();
        for wrong in [
            r#"{"q":"x","owner":"acme"}"#,
            r#"{"q":"x","Owner":null}"#,
            r#"{"q":"x","for-ce":true}"#,
        ] {
            let refused = plain(wrong, way);
            assert_eq!(refused[0], -32602, "{wrong}: {refused}");
        }
        assert_eq!(got(&peer, "search").len(), calls);
    }
    let report = grpc_client(&[gateway.address(), "", "--call", "s_find", "y"]);
    assert!(!report.to_string().contains("owner"), "{report}");
    assert!(
        got(&peer, "search")
            .iter()
            .all(|arguments| arguments["owner"] == "acme")
    );
}

#[test]
fn servers_of_proto_mcp_get_the_preset_in_their_message() {
    let home = Home::new();
    let tables = "[servers.p.tool.find]\npreset = { tags = [\"acme\"] }\nhide_arguments = [\"limit\"]\n\
                  [servers.p.tool.echo]\npreset = { owner = \"acme\" }\n";
    let gateway = Gateway::start(&home, &(child("p", &[]) + tables));
    gateway.ready("p");
    let client = Client::plain(&gateway);
    let listed = client.ask("tools/list", json!({}))["result"]["tools"].clone();
    let find = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "p_find")
        .unwrap();
    let shown = &find["inputSchema"]["properties"];
    assert!(
        shown["query"].is_object() && shown["tags"].is_null() && shown["limit"].is_null(),
        "{find}"
    );
    let found = json!({ "query": "ab", "count": 0, "tags": ["acme"], "filter": {} });
    assert_eq!(
        client.call("p_find", json!({ "query": "ab" }))["structuredContent"],
        found
    );
    for wrong in [
        json!({ "query": "ab", "tags": ["x"] }),
        json!({ "query": "ab", "Limit": 5 }),
    ] {
        is_refused(&client.call("p_find", wrong));
    }
    assert_eq!(
        client.call("p_echo", json!({ "q": 1 }))["structuredContent"],
        json!({ "q": 1, "owner": "acme" })
    );
    // A client of proto-mcp has a message of its own for what is left, and its bytes do not pass as
    // they are.
    let url = websocket(&gateway);
    let typed = |tool: &str, words: &str| {
        proto_client(&["--typed", tool, words, "--ws", &url])["answer"].clone()
    };
    assert_eq!(typed("p_find", r#"{"query":"cd"}"#), json!(["found cd"]));
    let named = proto_client(&["--call", "p_echo", "hello", "--ws", &url])["answer"].clone();
    let said: Value = serde_json::from_str(named[0].as_str().unwrap()).unwrap();
    assert_eq!(said, json!({ "text": "hello", "owner": "acme" }), "{named}");
}

#[test]
fn a_reviewer_is_shown_the_preset_and_cannot_change_it() {
    let peer = serving();
    let (home, config) = people(&[("boss", &["mcp/*"]), ("scout", &["mcp/proposal:*"])]);
    let config = config + &peer.child("s", "s") + TABLES;
    let gateway = Gateway::start(&home, &config);
    gateway.ready("s");
    let (scout, boss) = (Client::of(&gateway, &token("scout")), token("boss"));
    let whole = json!({ "q": "x", "owner": "acme" });
    let decide = |proposal: &Value, body: &Value| {
        let path = format!("/{}/approve", proposal["id"].as_str().unwrap());
        api(gateway.address(), "boss", "POST", &path, body)
    };

    // A held call.
    is_refused(&scout.call("s_find", json!({ "q": "x", "owner": "other" })));
    let unknown = scout.ask(
        "tools/call",
        json!({ "name": "s_secret_wipe", "arguments": {} }),
    );
    assert_eq!(
        unknown["error"]["data"]["code"], "unknown_target",
        "{unknown}"
    );
    let open = scout.begin_call("s_find", json!({ "q": "x" }));
    let pending = gateway.pending(&home, &boss);
    assert_eq!(pending["params"]["arguments"], whole, "{pending}");
    assert_eq!(pending["context"], "search", "{pending}");
    let definition: Value = match &pending["tool"] {
        Value::String(text) => serde_json::from_str(text).unwrap(),
        tool => tool.clone(),
    };
    assert_eq!(definition, tools()[0], "the original: {pending}");
    for wrong in [
        json!({ "q": "y", "owner": "other" }),
        json!({ "q": "y", "force": true, "owner": "acme" }),
    ] {
        let refused = decide(
            &pending,
            &json!({ "digest": pending["digest"], "arguments": wrong }),
        );
        assert_eq!(
            refused.json()["code"],
            "schema_violation",
            "{}",
            refused.json()
        );
    }
    assert_eq!(
        decide(&pending, &json!({ "digest": pending["digest"] })).status,
        200
    );
    is_done(&open.rest().last().unwrap()["result"]);
    assert_eq!(got(&peer, "search"), slice::from_ref(&whole));

    // Edits with the preset, and without it.
    for edited in [json!({ "q": "e", "owner": "acme" }), json!({ "q": "e" })] {
        let open = scout.begin_call("s_find", json!({ "q": "z" }));
        let pending = gateway.pending(&home, &boss);
        let approved = decide(
            &pending,
            &json!({ "digest": pending["digest"], "arguments": edited }),
        );
        assert_eq!(approved.status, 200, "{}", approved.json());
        is_done(&open.rest().last().unwrap()["result"]);
        assert_eq!(
            got(&peer, "search").last(),
            Some(&json!({ "q": "e", "owner": "acme" }))
        );
    }

    // Proposals of a room: what a reviewer sends to fulfil one need not repeat the preset.
    let (mut agent, _) = Socket::welcomed(&gateway, "scout", "?echo=false");
    let (mut reviewer, _) = Socket::welcomed(&gateway, "boss", "?echo=false");
    let propose = |agent: &mut Socket, id: &str, arguments: Value| {
        let payload = json!({ "method": "tools/call", "params": { "name": "search", "arguments": arguments } });
        agent.send(
            "mcp/proposal:tools/call:search",
            id,
            &["s"],
            json!({}),
            &payload,
        );
    };
    propose(&mut agent, "wrong", json!({ "q": "r", "owner": "other" }));
    let state = agent.receive_until(|envelope| envelope["correlation_id"] == "wrong");
    assert_eq!(state["payload"]["state"], "rejected", "{state}");
    assert!(
        state["payload"]["reason"]
            .as_str()
            .unwrap()
            .contains("takes no argument `owner`"),
        "{state}"
    );
    let secret =
        json!({ "method": "tools/call", "params": { "name": "secret_wipe", "arguments": {} } });
    agent.send(
        "mcp/proposal:tools/call:secret_wipe",
        "secret",
        &["s"],
        json!({}),
        &secret,
    );
    let state = agent.receive_until(|envelope| envelope["correlation_id"] == "secret");
    assert_eq!(state["payload"]["state"], "rejected", "{state}");
    for (id, words) in [
        ("p1", json!({ "q": "r" })),
        ("p2", json!({ "q": "r", "owner": "acme" })),
    ] {
        propose(&mut agent, id, json!({ "q": "r" }));
        let pending = gateway.pending(&home, &boss);
        assert_eq!(
            pending["params"]["arguments"],
            json!({ "q": "r", "owner": "acme" }),
            "{pending}"
        );
        let fulfils = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "search", "arguments": words } });
        let named = json!({ "correlation_id": id });
        reviewer.send(
            "mcp/request:tools/call:search",
            &format!("f{id}"),
            &["s"],
            named,
            &fulfils,
        );
        // The end of what was decided before may come late.
        let done = agent.receive_until(|envelope| {
            envelope["correlation_id"] == id && envelope["payload"]["state"] == "completed"
        });
        assert_eq!(done["payload"]["edited"], Value::Null, "{done}");
        assert_eq!(
            got(&peer, "search").last(),
            Some(&json!({ "q": "r", "owner": "acme" }))
        );
    }
    propose(&mut agent, "p3", json!({ "q": "r" }));
    let pending = gateway.pending(&home, &boss);
    let fulfils = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": { "name": "search", "arguments": { "q": "r", "owner": "other" } } });
    reviewer.send(
        "mcp/request:tools/call:search",
        "f3",
        &["s"],
        json!({ "correlation_id": "p3" }),
        &fulfils,
    );
    let refused = reviewer.receive_until(|envelope| envelope["correlation_id"] == "f3");
    assert_eq!(refused["payload"]["error"], "schema_violation", "{refused}");

    // Another preset is another call than the one that was shown.
    home.write(
        "portmoot.toml",
        &config.replace("owner = \"acme\"", "owner = \"other\""),
    );
    gateway.signal("HUP");
    let caller = Client::of(&gateway, &boss);
    until("the new preset counts", || {
        // The call that meets the reload may be refused.
        caller.ask(
            "tools/call",
            json!({ "name": "s_find", "arguments": { "q": "probe" } }),
        );
        (got(&peer, "search").last() == Some(&json!({ "q": "probe", "owner": "other" })))
            .then_some(())
    });
    let calls = got(&peer, "search").len();
    assert_eq!(
        decide(&pending, &json!({ "digest": pending["digest"] })).status,
        409
    );
    assert_eq!(got(&peer, "search").len(), calls);
}

#[test]
fn a_tool_whose_name_another_one_has_is_unknown_in_rooms_too() {
    let (home, config) = people(&[("boss", &["mcp/*"])]);
    let listed = ListedServer::new(&home, "s", &[("a", "first"), ("b", "second")]);
    let gateway = Gateway::start(
        &home,
        &(config + &listed.table() + "[servers.s.tool.a]\nname = \"b\"\n"),
    );
    gateway.ready("s");
    let (mut boss, _) = Socket::welcomed(&gateway, "boss", "?echo=false");
    for (id, tool) in [("r1", "b"), ("r2", "a")] {
        let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": {} } });
        boss.send(
            &format!("mcp/request:tools/call:{tool}"),
            id,
            &["s"],
            json!({}),
            &call,
        );
        let answer = boss.receive_until(|envelope| envelope["correlation_id"] == id);
        match tool {
            "b" => assert_eq!(
                answer["payload"]["error"]["data"]["code"], "unknown_target",
                "{answer}"
            ),
            _ => assert_eq!(
                answer["payload"]["result"]["content"][0]["text"], "a of the server",
                "{answer}"
            ),
        }
    }
    assert!(!listed.calls().contains('b'), "{}", listed.calls());
}
