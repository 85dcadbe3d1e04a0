//! Sets of tools.

use super::*;

#[test]
fn topics_capabilities_and_searches_take_sets() {
    let (home, of_people) = people(&[
        ("ann", &["mcp/*"]),
        (
            "bob",
            &["mcp/request:tools/call:@read", "mcp/request:*/list"],
        ),
    ]);
    let listed = ListedServer::new(
        &home,
        "s",
        &[
            ("get_a", "gets a"),
            ("get_b", "gets b"),
            ("put_a", "puts a"),
            ("drop", "drops a"),
        ],
    );
    let given = "[servers.s.tool.drop]\nname = \"get_z\"\n";
    let sets = "[sets.read]\ntools = [\"s_get_*\"]\n[sets.one]\ntools = [\"s_get_a\"]\n";
    let topics = "[topics.main]\nbuiltin = [\"search_tools\"]\n[topics.readers]\ntools = [\"@read\"]\nhide = [\"@one\"]\n";
    let of_ann = "[participants.ann]\ntopics = [\"main\", \"readers\"]";
    let of_people = of_people.replace("[participants.ann]", of_ann);
    let config = of_people + &listed.table() + given + sets + topics;
    let gateway = Gateway::start(&home, &config);
    gateway.ready("s");
    let (ann, bob) = (
        Client::of(&gateway, &token("ann")),
        Client::of(&gateway, &token("bob")),
    );
    let unknown = |answer: Value| {
        assert_eq!(
            answer["error"]["data"]["code"], "unknown_target",
            "{answer}"
        )
    };

    // A capability: by the server's own names, whatever name a tool is given.
    assert_eq!(bob.names("tools"), ["search_tools", "s_get_a", "s_get_b"]);
    assert_eq!(
        bob.call("s_get_a", json!({}))["content"][0]["text"],
        "get_a of the server"
    );
    for name in ["s_get_z", "s_put_a"] {
        unknown(bob.ask("tools/call", json!({ "name": name, "arguments": {} })));
    }
    assert_eq!(
        ann.call("s_get_z", json!({}))["content"][0]["text"],
        "drop of the server"
    );

    // A search.
    let found = |set: Option<&str>| -> Vec<String> {
        let mut asked = json!({ "query": "a gets puts drops" });
        asked["set"] = json!(set);
        let found = ann.call("search_tools", asked)["structuredContent"]["tools"].clone();
        let mut names: Vec<String> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect();
        names.sort();
        names
    };
    assert_eq!(found(None), ["s_get_a", "s_get_b", "s_get_z", "s_put_a"]);
    assert_eq!(found(Some("read")), ["s_get_a", "s_get_b"]);
    let params = json!({ "name": "search_tools", "arguments": { "query": "gets", "set": "raed" } });
    let refused = ann.ask("tools/call", params).to_string();
    assert!(refused.contains("there is no set `raed`"), "{refused}");

    // A topic: lists, calls, the API and the room.
    let reader = Client::open(&gateway, Some(&token("ann")), "/mcp/readers", json!({}));
    assert_eq!(reader.names("tools"), ["s_get_b"]);
    assert_eq!(
        reader.call("s_get_b", json!({}))["content"][0]["text"],
        "get_b of the server"
    );
    for name in ["s_get_a", "s_put_a", "s_get_z"] {
        unknown(reader.ask("tools/call", json!({ "name": name, "arguments": {} })));
    }
    let over_api = gateway
        .get("/api/v1/tools?topic=readers", Some(&token("ann")))
        .json();
    let over_api: Vec<&Value> = over_api["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(over_api, ["s_get_b"]);
    let (mut room, _) = Socket::welcomed(&gateway, "ann", "?echo=false&topic=readers");
    let asks = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    room.send("mcp/request:tools/list", "l1", &["s"], json!({}), &asks);
    let list =
        room.receive_until(|envelope| envelope["correlation_id"] == "l1")["payload"]["result"]
            .clone();
    let names: Vec<&Value> = list["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["get_b"]);
    room.call("c1", &["s"], "get_b", json!({}));
    let done = room.receive_until(|envelope| envelope["correlation_id"] == "c1");
    assert_eq!(
        done["payload"]["result"]["content"][0]["text"], "get_b of the server",
        "{done}"
    );
    room.call("c2", &["s"], "put_a", json!({}));
    unknown(room.receive_until(|envelope| envelope["correlation_id"] == "c2")["payload"].clone());
    let payload = json!({ "method": "tools/call", "params": { "name": "put_a", "arguments": {} } });
    room.send(
        "mcp/proposal:tools/call:put_a",
        "p1",
        &["s"],
        json!({}),
        &payload,
    );
    let state = room.receive_until(|envelope| envelope["correlation_id"] == "p1");
    assert_eq!(state["payload"]["state"], "rejected", "{state}");
    assert!(!listed.calls().contains("put_a"), "{}", listed.calls());
}
