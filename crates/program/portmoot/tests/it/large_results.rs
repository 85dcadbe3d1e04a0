//! Results of tools that are too large for their callers: the first page, the rest as a resource,
//! on every wire.

use harness::proto_client;
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::ended_grants::api;
use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::proto_clients::websocket;
use crate::support::{Client, Gateway, fixture, modern, until};
use crate::ws::{Socket, people, token};

const URI: &str = "portmoot://results/";
const LIMIT: usize = 16 << 10;
const KEY: &str = "result_bytes_max = \"16KiB\"\n";

fn rows() -> String {
    (1..=4_000)
        .map(|number| format!("row {number} of \"all\" rows\n"))
        .collect()
}

fn structured() -> Value {
    json!({ "rows": (0..5_000).collect::<Vec<_>>() })
}

/// A server whose tools have large results. `held` is answered when `go` is called.
fn serving() -> Peer {
    let typed = r#"{"name":"typed","inputSchema":{"type":"object"},"outputSchema":{"type":"object","required":["rows"]}}"#;
    let plain = ["rows", "sized", "image", "fails", "held", "go"]
        .map(tool)
        .join(",");
    let tools = format!("[{plain},{typed}]");
    let held = std::sync::Mutex::new(Vec::<Value>::new());
    Peer::stdio(move |message| {
        if message["method"] != "tools/call" {
            return small(message, &tools)
                .into_iter()
                .map(String::into_bytes)
                .collect();
        }
        let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }] });
        let result = match message["params"]["name"].as_str().unwrap() {
            "rows" => text(&rows()),
            "sized" => {
                text(&"x".repeat(message["params"]["arguments"]["n"].as_u64().unwrap() as usize))
            }
            "image" => {
                json!({ "content": [{ "type": "image", "data": "QUJD".repeat(9_000), "mimeType": "image/png" }] })
            }
            "fails" => json!({ "content": text(&rows())["content"], "isError": true }),
            "typed" => json!({ "content": [], "structuredContent": structured() }),
            "held" => {
                held.lock().unwrap().push(message.clone());
                return Vec::new();
            }
            _ => {
                let late = std::mem::take(&mut *held.lock().unwrap());
                let late = late
                    .iter()
                    .map(|call| answer(call, &text(&rows()).to_string()));
                let now = answer(message, &text("gone").to_string());
                return late.chain([now]).map(String::into_bytes).collect();
            }
        };
        vec![answer(message, &result.to_string()).into_bytes()]
    })
}

/// The topic's limit for all but `bob`.
fn stage(peer: &Peer) -> (Home, Gateway) {
    let (home, config) = people(&[
        ("ann", &["mcp/*", "portmoot/*"]),
        ("bob", &["mcp/*"]),
        ("eve", &["mcp/request:tools/call:s_*"]),
    ]);
    let bob = "[participants.bob]\n";
    let config = config.replace(bob, &format!("{bob}result_bytes_max = 0\n"));
    let topic = format!("[topics.main]\nbuiltin = [\"proxy\"]\n{KEY}");
    let gateway = Gateway::start(&home, &(config + &topic + &peer.child("s", "s")));
    gateway.ready("s");
    (home, gateway)
}

/// The URI in the words about a result that was cut.
#[track_caller]
fn uri_in(result: &Value) -> String {
    let text = result.to_string();
    let (_, rest) = text.split_once(URI).unwrap_or_else(|| panic!("{text}"));
    format!(
        "{URI}{}",
        rest.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap()
    )
}

/// Checks that a result is the first page of [`rows`] with words about the rest; returns its URI.
#[track_caller]
fn is_cut(result: &Value) -> String {
    assert!(
        result.to_string().len() <= LIMIT,
        "{}",
        result.to_string().len()
    );
    let head = result["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("{result}"));
    assert!(
        rows().starts_with(head) && head.len() > LIMIT / 2 && head.ends_with('\n'),
        "{result}"
    );
    let uri = uri_in(result);
    let words = result["content"][1]["text"].as_str().unwrap();
    assert!(
        words.contains(&format!("{uri}?page=2")) && words.contains("page 1 of "),
        "{words}"
    );
    uri
}

/// The text of all pages, as `read` gives their contents.
#[track_caller]
fn all_pages(uri: &str, read: impl Fn(&str) -> Value) -> String {
    let (mut text, mut next) = (String::new(), uri.to_owned());
    loop {
        let page = read(&next);
        assert!(
            page.to_string().len() <= LIMIT,
            "{}",
            page.to_string().len()
        );
        text += page["contents"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{next}: {page}"));
        match page["contents"][1]["uri"].as_str() {
            Some(uri) => next = uri.to_owned(),
            None => return text,
        }
    }
}

#[test]
fn a_large_result_is_its_first_page_and_a_resource_on_every_wire() {
    let peer = serving();
    let (home, gateway) = stage(&peer);
    let ann = token("ann");
    let client = Client::of(&gateway, &ann);
    let call = json!({ "name": "s_rows", "arguments": {} });

    // MCP of both eras.
    let cut = client.call("s_rows", json!({}));
    let uri = is_cut(&cut);
    let link = &cut["content"][2];
    assert_eq!(
        (&link["type"], &link["uri"]),
        (&json!("resource_link"), &json!(uri)),
        "{cut}"
    );
    let read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }))["result"].clone();
    assert_eq!(all_pages(&uri, read), rows());
    let found = read(&format!("{uri}?search=ROW%203999%20of"));
    let found = found["contents"][0]["text"].as_str().unwrap();
    assert!(
        found.starts_with("1 place with") && found.contains("\nline 3999, page "),
        "{found}"
    );
    let newer = modern(&gateway, Some(&ann), "tools/call", call.clone()).json()["result"].clone();
    assert_eq!(newer["resultType"], "complete", "{newer}");
    let read = |uri: &str| {
        let read = modern(
            &gateway,
            Some(&ann),
            "resources/read",
            json!({ "uri": uri }),
        )
        .json();
        let result = read["result"].clone();
        assert_eq!(
            (&result["ttlMs"], &result["cacheScope"]),
            (&json!(0), &json!("private")),
            "{read}"
        );
        result
    };
    assert_eq!(all_pages(&is_cut(&newer), read), rows());
    // The revisions before 2025-06-18 have no links.
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18"] {
        let older = Client::of_revision(&gateway, &ann, revision).call("s_rows", json!({}));
        is_cut(&older);
        let blocks = older["content"].as_array().unwrap().len();
        assert_eq!(
            blocks,
            if revision == "2025-06-18" { 3 } else { 2 },
            "{revision}: {older}"
        );
    }

    // The tool `proxy` calls and reads.
    let by_proxy = |kind: &str, path: &str| {
        client.call(
            "proxy",
            json!({ "action": "call", "type": kind, "path": path, "args": {} }),
        )
    };
    let proxied = by_proxy("tool", "s_rows");
    let uri = uri_in(&proxied);
    assert!(
        proxied.to_string().len() <= LIMIT && proxied.to_string().contains("row 1 of"),
        "{proxied}"
    );
    let second = by_proxy("resource", &format!("{uri}?page=2"));
    let known = read(&format!("{uri}?page=2"))["contents"][0]["text"].clone();
    let (begins, _) = known.as_str().unwrap().split_once('"').unwrap();
    assert!(
        begins.starts_with("row ") && second.to_string().contains(begins),
        "{begins}: {second}"
    );

    // A room: the result for its sender, who reads the rest from the gateway.
    let (mut room, _) = Socket::welcomed(&gateway, "ann", "?echo=false");
    room.call("c1", &["s"], "rows", json!({}));
    let in_room = room.receive_until(|envelope| envelope["correlation_id"] == "c1");
    let uri = is_cut(&in_room["payload"]["result"]);
    let second = format!("{uri}?page=2");
    let asks = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/read", "params": { "uri": second } });
    room.send(
        &format!("mcp/request:resources/read:{second}"),
        "r1",
        &["portmoot"],
        json!({}),
        &asks,
    );
    let answer = room.receive_until(|envelope| envelope["correlation_id"] == "r1");
    assert_eq!(
        answer["payload"]["result"]["contents"][0]["uri"], second,
        "{answer}"
    );

    // REST and the command line.
    let over_api = api(&gateway, &ann, "POST", "tools/s_rows/call", &json!({})).json();
    let id = is_cut(&over_api).strip_prefix(URI).unwrap().to_owned();
    let read = |uri: &str| {
        let rest = uri.strip_prefix(URI).unwrap();
        api(
            &gateway,
            &ann,
            "GET",
            &format!("results/{rest}"),
            &Value::Null,
        )
        .json()
    };
    assert_eq!(all_pages(&format!("{URI}{id}"), read), rows());
    let sought = api(
        &gateway,
        &ann,
        "GET",
        &format!("results/{id}?search=3999+of"),
        &Value::Null,
    )
    .json();
    assert!(
        sought["contents"][0]["text"]
            .as_str()
            .unwrap()
            .starts_with("1 place with"),
        "{sought}"
    );
    let at = ["--url", &gateway.url(), "--token", &ann];
    let said = home
        .run(&[&["tools", "call", "s_rows"], &at[..]].concat())
        .expect(0)
        .stdout;
    let uri = uri_in(&json!(said));
    let second = format!("{uri}?page=2");
    let said = home
        .run(&[&["resources", "read", &second], &at[..]].concat())
        .expect(0)
        .stdout;
    assert!(said.contains(" of \"all\" rows\n"), "{said}");

    // What the audit log says of readings names neither the result nor what is sought. An
    // envelope's kind is its sender's.
    let log = AuditLog(&home);
    let kind = "mcp/request:resources/read:portmoot://results";
    let entry = log.has("ann", kind, "admitted", "");
    assert_eq!(entry["to"], json!(["portmoot"]), "{entry}");
    let all = log.entries(&["--participant", "ann"]);
    let kinds = all.iter().filter_map(|entry| entry["kind"].as_str());
    assert_eq!(
        kinds
            .filter(|kind| kind.contains("portmoot://results/"))
            .count(),
        1,
        "{all:?}"
    );
}

#[test]
fn a_kept_result_is_its_callers_alone() {
    let peer = serving();
    let (_home, gateway) = stage(&peer);
    let (ann, bob, eve) = (token("ann"), token("bob"), token("eve"));
    let uri = is_cut(&Client::of(&gateway, &ann).call("s_rows", json!({})));
    let read = |token: &str, uri: &str| {
        Client::of(&gateway, token).ask("resources/read", json!({ "uri": uri }))
    };
    let (other, absent) = (
        read(&bob, &uri),
        read(&bob, &format!("{URI}{}", "0".repeat(32))),
    );
    assert_eq!(other["error"]["code"], -32002, "{other}");
    let without = |answer: &Value| answer["error"]["message"].clone();
    assert_eq!(without(&other), without(&absent));
    assert_eq!(
        api(
            &gateway,
            &bob,
            "GET",
            &format!("results/{}", &uri[URI.len()..]),
            &Value::Null
        )
        .status,
        404
    );
    // Another session of the same participant has it, and it needs no capability to read resources.
    assert!(read(&ann, &uri)["result"].is_object());
    let hers = is_cut(&Client::of(&gateway, &eve).call("s_rows", json!({})));
    assert!(read(&eve, &hers)["result"].is_object());
    assert_eq!(read(&eve, &uri)["error"]["code"], -32002);
    for (query, why) in [
        ("?page=999", "there is no page 999"),
        ("?part=1", "the result has no parts"),
        ("?search=", "`search` has no text"),
        ("?x=1", "`x` is unknown"),
    ] {
        let refused = read(&ann, &format!("{uri}{query}"));
        assert!(
            refused["error"]["message"].as_str().unwrap().contains(why),
            "{refused}"
        );
    }
    // The participant with a limit of its own gets all at once, and is promised structured results.
    let of_bob = Client::of(&gateway, &bob);
    assert_eq!(
        of_bob.call("s_rows", json!({}))["content"],
        json!([{ "type": "text", "text": rows() }])
    );
    let promised = |list: &Value| {
        let tools = list["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{list}"));
        tools.iter().find(|tool| tool["name"] == "s_typed").unwrap()["outputSchema"].is_object()
    };
    assert!(promised(&of_bob.ask("tools/list", json!({}))));
    assert!(!promised(
        &Client::of(&gateway, &ann).ask("tools/list", json!({}))
    ));
    assert!(!promised(
        &modern(&gateway, Some(&ann), "tools/list", json!({})).json()
    ));

    // The next bearer of an issued name is another participant.
    let issue = || {
        let asked = json!({ "name": "tmp", "capabilities": ["mcp/*"] });
        let issued = api(&gateway, &ann, "POST", "tokens", &asked).json();
        issued["token"]
            .as_str()
            .unwrap_or_else(|| panic!("{issued}"))
            .to_owned()
    };
    let first = issue();
    let uri = is_cut(&Client::of(&gateway, &first).call("s_rows", json!({})));
    assert!(read(&first, &uri)["result"].is_object());
    assert_eq!(
        api(&gateway, &ann, "DELETE", "tokens/tmp", &Value::Null).status,
        200
    );
    let next = issue();
    assert_eq!(read(&next, &uri)["error"]["code"], -32002);
}

#[test]
fn results_are_cut_from_the_limit_on_whatever_they_consist_of() {
    let peer = serving();
    let (_home, gateway) = stage(&peer);
    let ann = token("ann");
    let client = Client::of(&gateway, &ann);
    let around = r#"{"content":[{"text":"","type":"text"}]}"#.len();
    let sized = |n: usize| {
        client.call("s_sized", json!({ "n": n }))["content"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((sized(LIMIT - around), sized(LIMIT - around + 1)), (1, 3));

    let failed = client.call("s_fails", json!({}));
    is_cut(&failed);
    assert_eq!(failed["isError"], true);
    let image = client.call("s_image", json!({}));
    let uri = uri_in(&image);
    let words = image["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains(&format!("image/png, 27000 bytes, resource {uri}?part=1")),
        "{image}"
    );
    assert_eq!(image["content"][1]["mimeType"], "image/png");
    let part = client.ask("resources/read", json!({ "uri": format!("{uri}?part=1") }));
    let part = &part["result"]["contents"][0];
    assert_eq!(
        (&part["mimeType"], &part["blob"]),
        (&json!("image/png"), &json!("QUJD".repeat(9_000)))
    );
    let typed = client.call("s_typed", json!({}));
    assert_eq!(
        typed["structuredContent"],
        Value::Null,
        "it would break the schema"
    );
    assert_eq!(
        typed["content"][2]["mimeType"], "application/json",
        "{typed}"
    );
    let read = |uri: &str| client.ask("resources/read", json!({ "uri": uri }))["result"].clone();
    let whole: Value = serde_json::from_str(&all_pages(&uri_in(&typed), read)).unwrap();
    assert_eq!(whole, structured());

    // The late result of a call that its caller has cancelled is kept for no one, and disturbs
    // nothing.
    let call = client.request("tools/call", json!({ "name": "s_held", "arguments": {} }));
    let events = client.begin(&call);
    until("the server has the call", || {
        (peer.calls("held") == 1).then_some(())
    });
    client.notify(
        "notifications/cancelled",
        json!({ "requestId": call["id"] }),
    );
    until("the server knows", || {
        peer.received()
            .iter()
            .any(|line| line.contains("notifications/cancelled"))
            .then_some(())
    });
    assert_eq!(client.call("s_go", json!({}))["content"][0]["text"], "gone");
    assert!(
        !events
            .so_far()
            .iter()
            .any(|message| message.to_string().contains(URI))
    );
    is_cut(&client.call("s_rows", json!({})));
}

#[test]
fn a_proposals_result_is_cut_for_its_waiting_caller() {
    let peer = serving();
    let (home, config) = people(&[
        ("boss", &["mcp/*", "portmoot/*"]),
        ("ada", &["mcp/proposal:tools/call:s_*"]),
    ]);
    let topic = format!("[topics.main]\nbuiltin = [\"proposals\"]\n{KEY}");
    let gateway = Gateway::start(&home, &(config + &topic + &peer.child("s", "s")));
    gateway.ready("s");
    let approve = || {
        let pending = gateway.pending(&home, &token("boss"));
        let approve = format!("proposals/{}/approve", pending["id"].as_str().unwrap());
        let digest = json!({ "digest": pending["digest"] });
        let approved = api(&gateway, &token("boss"), "POST", &approve, &digest);
        assert_eq!(approved.status, 200, "{approved:?}");
    };
    // A task of 2025-11-25.
    let ada = Client::of(&gateway, &token("ada"));
    let created = ada.ask(
        "tools/call",
        json!({ "name": "s_rows", "arguments": {}, "task": {} }),
    );
    let task = created["result"]["task"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    approve();
    let result = ada.ask("tasks/result", json!({ "taskId": task }))["result"].clone();
    let uri = is_cut(&result);
    assert_eq!(
        result["_meta"][crate::tasks::RELATED]["taskId"],
        json!(task),
        "{result}"
    );
    let read = |uri: &str| ada.ask("resources/read", json!({ "uri": uri }))["result"].clone();
    assert_eq!(all_pages(&uri, read), rows());
    // One of the extension, which has its result in its state.
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    let asked = |method: &str, mut params: Value| {
        params["_meta"] = meta.clone();
        modern(&gateway, Some(&token("ada")), method, params).json()["result"].clone()
    };
    let created = asked("tools/call", json!({ "name": "s_rows", "arguments": {} }));
    let task = created["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{created}"))
        .to_owned();
    approve();
    let state = until("the task is completed", || {
        let state = asked("tasks/get", json!({ "taskId": task }));
        (state["status"] == "completed").then_some(state)
    });
    assert_eq!(state["taskId"], json!(task));
    is_cut(&state["result"]);
}

#[test]
fn clients_of_proto_mcp_get_the_first_page_too() {
    let peer = serving();
    let home = Home::new();
    let gateway = Gateway::start(
        &home,
        &(format!("[topics.main]\n{KEY}") + &peer.child("s", "s")),
    );
    gateway.ready("s");
    let url = websocket(&gateway);
    let said = proto_client(&["--plain", "s_rows", "{}", "--ws", &url])["answer"].clone();
    let head = said[0].as_str().unwrap_or_else(|| panic!("{said}"));
    assert!(rows().starts_with(head) && head.len() > LIMIT / 2, "{said}");
    let second = format!("{}?page=2", uri_in(&said));
    assert!(said[1].as_str().unwrap().contains(&second), "{said}");
    let read = proto_client(&["--read", &second, "-", "--ws", &url])["answer"].clone();
    assert!(rows().contains(read[0].as_str().unwrap()), "{read}");
    assert!(read[1].as_str().unwrap().contains("?page=3"), "{read}");
}

#[test]
fn a_limit_comes_into_force_while_the_gateway_runs_with_a_real_server() {
    for era in ["legacy", "modern"] {
        let home = Home::new();
        let server = fixture("a", &["--era", era]);
        let gateway = Gateway::start(&home, &server);
        gateway.ready("a");
        let client = Client::plain(&gateway);
        let big = json!({ "bytes": 60_000 });
        assert_eq!(
            client.call("a_big", big.clone())["content"][0]["text"]
                .as_str()
                .unwrap()
                .len(),
            60_000
        );
        let events = client.listen();
        home.write("portmoot.toml", &(server + "[topics.main]\n" + KEY));
        gateway.signal("HUP");
        events.next_of("notifications/tools/list_changed");
        let cut = client.call("a_big", big);
        assert!(cut.to_string().len() <= LIMIT, "{era}");
        let read =
            |uri: &str| client.ask("resources/read", json!({ "uri": uri }))["result"].clone();
        assert_eq!(all_pages(&uri_in(&cut), read), "x".repeat(60_000));
        // What is small passes as it is.
        let added = client.call("a_add", json!({ "a": 2, "b": 3 }));
        assert!(added["structuredContent"].is_object(), "{era}: {added}");
        home.run(&["config", "check", "--config", "portmoot.toml"])
            .expect(0);
        home.write(
            "portmoot.toml",
            "[topics.main]\nresult_bytes_max = \"8191B\"\n",
        );
        let refused = home.run(&["config", "check", "--config", "portmoot.toml"]);
        assert_ne!(refused.code, 0);
        let said = refused.stdout + &refused.stderr;
        assert!(
            said.contains("`topics.main.result_bytes_max` is less than 8 KiB"),
            "{said}"
        );
    }
}
