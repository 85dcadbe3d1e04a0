//! Built-in room tools: `say`, `read_messages`, `list_participants` with a plain MCP client.

use serde_json::{Value, json};

use crate::builtin_proposals::{data, no};
use crate::home::Home;
use crate::support::{Client, Gateway, modern};
use crate::ws::{Socket, people, token};

/// Number of messages kept for readers.
const KEPT: usize = 1000;

fn stage(more: &str) -> (Home, Gateway) {
    let (home, config) = people(&[
        ("ann", &["chat", "acme/*", "mcp/*"]),
        ("bob", &["chat", "acme/*"]),
        ("cid", &["chat"]),
        ("mute", &["mcp/request:tools/call:x"]),
    ]);
    let gateway = Gateway::start(
        &home,
        &(config + "[topics.main]\nbuiltin = [\"room\"]\n" + more),
    );
    (home, gateway)
}

fn client(gateway: &Gateway, who: &str) -> Client {
    Client::of(gateway, &token(who))
}

/// The texts of a page of messages, and the page.
#[track_caller]
fn read(client: &Client, arguments: Value) -> (Vec<String>, Value) {
    let page = data(client, "read_messages", arguments);
    let messages = page["messages"].as_array().unwrap();
    (
        messages
            .iter()
            .map(|one| one["payload"]["text"].as_str().unwrap_or("?").to_owned())
            .collect(),
        page,
    )
}

#[test]
fn messages_are_sent_under_the_callers_name() {
    let (_home, gateway) = stage("");
    let ann = client(&gateway, "ann");
    let mut bob = Socket::enter(&gateway, "bob", "?mode=directed&echo=false");
    let mut cid = Socket::enter(&gateway, "cid", "?mode=directed&echo=false");
    let said = data(&ann, "say", json!({ "text": "hello\nall" }));
    assert_eq!(
        (&said["kind"], &said["absent"]),
        (&json!("chat"), &json!([]))
    );
    for socket in [&mut bob, &mut cid] {
        let received = socket.receive_message();
        assert_eq!(
            (&received["from"], &received["kind"], &received["id"]),
            (&json!("ann"), &json!("chat"), &said["id"])
        );
        assert_eq!(
            received["payload"],
            json!({ "text": "hello\nall", "format": "plain" })
        );
        assert!(
            received.get("to").is_none() && received["ts"].as_str().unwrap().ends_with('Z'),
            "{received}"
        );
    }
    let arguments = json!({ "kind": "acme/build", "payload": { "n": 1.0 }, "to": ["bob", "eve"], "correlation_id": "earlier" });
    let said = data(&ann, "say", arguments);
    assert_eq!(said["absent"], json!(["eve"]));
    let received = bob.receive_message();
    assert_eq!(
        (&received["kind"], &received["payload"]),
        (&json!("acme/build"), &json!({ "n": 1.0 }))
    );
    assert_eq!(
        (&received["to"], &received["correlation_id"]),
        (&json!(["bob", "eve"]), &json!("earlier"))
    );
    // A modern client can send too. Other participants did not receive the message for bob.
    let arguments = json!({ "text": "modern" });
    let reply = modern(
        &gateway,
        Some(&token("ann")),
        "tools/call",
        json!({ "name": "say", "arguments": arguments }),
    );
    assert_eq!(reply.json()["result"]["isError"], false, "{reply:?}");
    for socket in [&mut bob, &mut cid] {
        assert_eq!(socket.receive_message()["payload"]["text"], "modern");
    }
}

#[test]
fn forbidden_messages_are_refused_with_a_reason() {
    let (_home, gateway) = stage("[server.limits]\nenvelope_bytes_max = \"2KiB\"\n");
    let mut bob = Socket::enter(&gateway, "bob", "?echo=false");
    let (ann, cid, mute) = (
        client(&gateway, "ann"),
        client(&gateway, "cid"),
        client(&gateway, "mute"),
    );
    let long = "x".repeat(2048);
    for (who, arguments, code) in [
        (
            &cid,
            json!({ "kind": "acme/build", "payload": {} }),
            "capability_violation",
        ),
        (
            &cid,
            json!({ "kind": "mcp/proposal:tools/call:x", "payload": {} }),
            "capability_violation",
        ),
        (
            &ann,
            json!({ "kind": "system/error", "payload": {} }),
            "capability_violation",
        ),
        (
            &ann,
            json!({ "kind": "mcp/request:tools/call:x", "payload": {} }),
            "malformed",
        ),
        (
            &ann,
            json!({ "kind": "mcp/response:tools/call:x", "payload": {} }),
            "malformed",
        ),
        (
            &ann,
            json!({ "kind": "acme/*", "payload": {} }),
            "malformed",
        ),
        (&ann, json!({ "kind": "", "payload": {} }), "malformed"),
        (&ann, json!({ "kind": "chat", "payload": [] }), "malformed"),
        (&ann, json!({ "text": "a", "kind": "chat" }), "malformed"),
        (&ann, json!({ "text": "a", "from": "bob" }), "malformed"),
        (
            &ann,
            json!({ "text": "a", "to": vec!["bob"; 65] }),
            "malformed",
        ),
        (&ann, json!({}), "malformed"),
        (&ann, json!({ "text": long }), "too_large"),
    ] {
        let said = no(who, "say", arguments.clone());
        assert!(said.starts_with(code), "{arguments}: {said}");
    }
    let names = mute.names("tools");
    assert_eq!(names, ["read_messages", "list_participants"]);
    let refused = mute.ask(
        "tools/call",
        json!({ "name": "say", "arguments": { "text": "a" } }),
    );
    assert_eq!(
        refused["error"]["data"]["code"], "unknown_target",
        "{refused}"
    );
    data(&ann, "say", json!({ "text": "end" }));
    assert_eq!(
        bob.receive_message()["payload"]["text"],
        "end",
        "no other message was received"
    );
}

#[test]
fn messages_are_read_page_by_page() {
    let (_home, gateway) = stage("");
    let mut bob = Socket::enter(&gateway, "bob", "?mode=directed");
    bob.chat("before");
    bob.expect("before");
    let (ann, cid) = (client(&gateway, "ann"), client(&gateway, "cid"));
    assert_eq!(
        read(&ann, json!({})).0,
        [""; 0],
        "what was said before it came is not its own"
    );
    let send = |socket: &mut Socket, id: &str, to: &[&str]| {
        let text = json!({ "text": id });
        socket.send("chat", id, to, json!({}), &text);
        // A reader receives its own messages.
        if to.is_empty() {
            socket.expect(id);
        }
    };
    send(&mut bob, "1", &[]);
    send(&mut bob, "2", &["ann"]);
    send(&mut bob, "3", &["cid", "ann"]);
    send(&mut bob, "4", &["cid"]);
    send(&mut bob, "5", &[]);
    let (texts, first) = read(&ann, json!({ "limit": 2 }));
    assert_eq!(
        (texts, &first["more"], &first["gap"]),
        (vec!["1".into(), "2".into()], &json!(true), &json!(false))
    );
    let message = &first["messages"][1];
    assert_eq!(
        (&message["id"], &message["from"], &message["to"]),
        (&json!("2"), &json!("bob"), &json!(["ann"]))
    );
    let (texts, next) = read(&ann, json!({ "cursor": first["cursor"] }));
    assert_eq!(
        (texts, &next["more"]),
        (vec!["3".into(), "5".into()], &json!(false)),
        "4 is for cid"
    );
    assert_eq!(read(&cid, json!({})).0, ["1", "3", "4", "5"]);
    assert!(read(&ann, json!({ "cursor": next["cursor"] })).0.is_empty());
    // The same cursor returns the same page.
    assert_eq!(
        read(&ann, json!({ "cursor": first["cursor"] })).0,
        ["3", "5"]
    );
    // The reader's own message is included, with hidden characters made visible.
    data(
        &ann,
        "say",
        json!({ "text": "a\u{202e}b\u{1b}", "to": ["bob"] }),
    );
    assert_eq!(
        read(&ann, json!({ "cursor": next["cursor"] })).0,
        ["a\\u{202e}b\\u{1b}"]
    );
    assert!(
        read(&cid, json!({ "cursor": read(&cid, json!({})).1["cursor"] }))
            .0
            .is_empty()
    );
    assert_eq!(bob.receive_message()["payload"]["text"], "a\u{202e}b\u{1b}");
    bob.send("acme/x", "6", &[], json!({}), &json!({ "text": "6" }));
    bob.expect("6");
    assert_eq!(read(&ann, json!({ "kind": "acme/*" })).0, ["6"]);
    assert_eq!(read(&ann, json!({ "kind": "mcp/proposal" })).0, [""; 0]);
    // A cursor is valid only for its participant.
    for (who, cursor) in [
        (&cid, first["cursor"].clone()),
        (&ann, json!("7.0")),
        (&ann, json!("")),
    ] {
        let said = no(who, "read_messages", json!({ "cursor": cursor }));
        assert!(said.contains("cursor is not known"), "{said}");
    }
}

#[test]
fn a_late_reader_receives_a_gap_notice() {
    let (_home, gateway) = stage("");
    let ann = client(&gateway, "ann");
    let mut bob = Socket::enter(&gateway, "bob", "?echo=true");
    let begin = read(&ann, json!({})).1["cursor"].clone();
    for number in 0..=KEPT {
        bob.chat(&number.to_string());
        bob.expect(&number.to_string());
    }
    for arguments in [
        json!({ "cursor": begin, "limit": 200 }),
        json!({ "limit": 200 }),
    ] {
        let (_, mut page) = read(&ann, arguments);
        assert_eq!(
            (&page["gap"], &page["messages"][0]["id"]),
            (&json!(true), &json!("1"))
        );
        let mut ids = Vec::new();
        loop {
            let all = page["messages"].as_array().unwrap();
            ids.extend(
                all.iter()
                    .map(|one| one["id"].as_str().unwrap().parse::<usize>().unwrap()),
            );
            if page["more"] == false {
                break;
            }
            page = read(&ann, json!({ "cursor": page["cursor"], "limit": 200 })).1;
            assert_eq!(page["gap"], false);
        }
        assert_eq!(ids, (1..=KEPT).collect::<Vec<_>>());
    }
    // A long message is cut.
    let text = "x".repeat(100_000);
    bob.send("chat", "long", &[], json!({}), &json!({ "text": text }));
    bob.expect("long");
    let page = read(
        &ann,
        json!({ "kind": "chat", "limit": 200, "cursor": read(&ann, json!({})).1["cursor"] }),
    )
    .1;
    assert!(page["messages"].as_array().unwrap().len() > 100, "{page}");
    let cut = last(&ann);
    assert_eq!(
        (&cut["id"], &cut["cut"]["bytes"]),
        (&json!("long"), &json!(text.len() + 11))
    );
    assert!(
        cut["cut"]["begins"]
            .as_str()
            .unwrap()
            .starts_with("{\"text\":\"xxx"),
        "{cut}"
    );
}

/// The latest message.
#[track_caller]
fn last(client: &Client) -> Value {
    let mut page = read(client, json!({ "limit": 200 })).1;
    while page["more"] == true {
        page = read(client, json!({ "limit": 200, "cursor": page["cursor"] })).1;
    }
    page["messages"].as_array().unwrap().last().unwrap().clone()
}

#[test]
fn read_messages_can_wait() {
    let (_home, gateway) = stage("");
    let (ann, cid) = (client(&gateway, "ann"), client(&gateway, "cid"));
    let params = json!({ "name": "read_messages", "arguments": { "wait_seconds": 30 } });
    let waiting = ann.begin(&ann.request("tools/call", params));
    let mut bob = Socket::enter(&gateway, "bob", "");
    data(&cid, "say", json!({ "text": "not for ann", "to": ["bob"] }));
    bob.receive_message();
    data(&cid, "say", json!({ "text": "for ann", "to": ["ann"] }));
    let answer = waiting.next();
    let messages = &answer["result"]["structuredContent"]["messages"];
    assert_eq!(
        (&messages[0]["payload"]["text"], &messages[1]),
        (&json!("for ann"), &Value::Null),
        "{answer}"
    );
    // The wait ends after the requested time.
    assert!(
        read(&ann, json!({ "kind": "acme/*", "wait_seconds": 1 }))
            .0
            .is_empty()
    );
}

#[test]
fn all_participants_are_listed() {
    let (_home, gateway) = stage("");
    let ann = client(&gateway, "ann");
    let _bob = Socket::enter(&gateway, "bob", "");
    let page = data(&ann, "list_participants", json!({}));
    let rows: Vec<(&str, &str, bool)> = page["participants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            (
                one["id"].as_str().unwrap(),
                one["role"].as_str().unwrap(),
                one["you"] == true,
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("ann", "caller", true),
            ("bob", "caller", false),
            ("portmoot", "server", false)
        ]
    );
    assert_eq!(
        page["participants"][1]["capabilities"],
        json!(["chat", "acme/*"])
    );
    let page = data(
        &ann,
        "list_participants",
        json!({ "limit": 1, "after": "ann" }),
    );
    assert_eq!(
        (&page["participants"][0]["id"], &page["next"]),
        (&json!("bob"), &json!("bob"))
    );
}

#[test]
fn messages_are_kept_only_in_topics_with_the_room_tools() {
    let (_home, config) = people(&[("ann", &["chat", "mcp/*"])]);
    let gateway = Gateway::start(&_home, &config);
    let ann = client(&gateway, "ann");
    assert!(ann.names("tools").is_empty());
    for tool in ["say", "read_messages", "list_participants"] {
        let refused = ann.ask("tools/call", json!({ "name": tool, "arguments": {} }));
        assert_eq!(
            refused["error"]["data"]["code"], "unknown_target",
            "{refused}"
        );
    }
}
