//! Rooms over real sockets: joins, delivery by mode, order, bytes unchanged.

mod specification;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{GOOD, Socket, answer, envelope, people, token};

const FULL: &[&str] = &["mcp/*", "chat", "acme/*"];
const NOTHING: &[&str] = &["acme/nothing"];

#[test]
fn refused_upgrades_have_their_status() {
    let (home, mut config) = people(&[("insider", FULL), ("outsider", FULL)]);
    config = config.replace(
        "[participants.outsider]\n",
        "[participants.outsider]\ntopics = [\"other\"]\n",
    );
    let gateway = Gateway::start(&home, &(config + "[topics.main]\n[topics.other]\n"));
    let (inside, outside) = (
        format!("Bearer {}", token("insider")),
        format!("Bearer {}", token("outsider")),
    );
    let with = |path: &str, authorization: Option<&str>, change: &[(&str, &str)]| {
        let mut headers: Vec<_> = GOOD
            .iter()
            .copied()
            .filter(|(name, _)| !change.iter().any(|(other, _)| other == name))
            .collect();
        headers.extend(change.iter().filter(|(_, value)| !value.is_empty()));
        headers.extend(authorization.map(|bearer| ("authorization", bearer)));
        answer(&gateway, path, &headers)
    };
    let unknown = with("/ws", Some("Bearer token-that-is-not-issued"), &[]);
    assert_eq!(
        (unknown.status, unknown.header("www-authenticate")),
        (401, Some("Bearer"))
    );
    assert_eq!(with("/ws", None, &[]).status, 401);
    assert_eq!(with("/ws", Some("Basic aW5zaWRlcjp4"), &[]).status, 401);
    // The token of another topic, a topic of others, and an unknown topic, which looks the same.
    assert_eq!(with("/ws", Some(&outside), &[]).status, 403);
    assert_eq!(with("/ws?topic=main", Some(&outside), &[]).status, 403);
    let other = with("/ws?topic=other", Some(&inside), &[]);
    let nowhere = with("/ws?topic=nowhere", Some(&inside), &[]);
    assert_eq!((other.status, nowhere.status), (403, 403));
    assert_eq!(with("/ws?topic=other", Some(&outside), &[]).status, 101);
    // Requests that are not WebSocket upgrades.
    for change in [
        &[("upgrade", ""), ("connection", "")][..],
        &[("upgrade", "h2c")],
        &[("connection", "keep-alive")],
        &[("sec-websocket-version", "8")],
        &[("sec-websocket-version", "")],
    ] {
        let reply = with("/ws", Some(&inside), change);
        assert_eq!(reply.status, 426, "{change:?}");
        let says = if change[0].0.starts_with("sec") {
            "sec-websocket-version"
        } else {
            "upgrade"
        };
        assert!(reply.header(says).is_some(), "{reply:?}");
    }
    for key in [
        "",
        "short",
        "!!!!!!!!!!!!!!!!!!!!!!!!",
        "dGhlIHNhbXBsZSBub25jZQAA",
    ] {
        assert_eq!(
            with("/ws", Some(&inside), &[("sec-websocket-key", key)]).status,
            400,
            "{key}"
        );
    }
    for query in [
        "mode=some",
        "mode=",
        "echo=perhaps",
        "topics=main",
        "epoch=x&offset=1",
        "offset=-1",
    ] {
        assert_eq!(
            with(&format!("/ws?{query}"), Some(&inside), &[]).status,
            400,
            "{query}"
        );
    }
    // None of these joined or was announced.
    let (_, welcome) = Socket::welcomed(&gateway, "insider", "");
    assert_eq!(
        welcome["payload"]["participants"].as_array().unwrap().len(),
        1,
        "{welcome}"
    );
}

#[test]
fn the_configured_mode_counts_unless_the_address_has_one() {
    let (home, mut config) = people(&[("sender", FULL), ("shy", FULL), ("judge", FULL)]);
    for (name, mode) in [("shy", "directed"), ("judge", "directed+proposals")] {
        let table = format!("[participants.{name}]\n");
        config = config.replace(&table, &format!("{table}mode = {mode:?}\n"));
    }
    let gateway = Gateway::start(&home, &config);
    let mut sender = Socket::enter(&gateway, "sender", "?echo=false");
    let mut received = |name: &str, query: &str| {
        let mut socket = Socket::enter(&gateway, name, query);
        let proposal = "mcp/proposal:tools/call:x";
        for (number, kind, to) in [
            ("1", "chat", "absent"),
            ("2", proposal, "absent"),
            ("3", "chat", name),
        ] {
            // An id names one proposal.
            let id = format!("{number} for {name}{query}");
            sender.send(kind, &id, &[to], json!({}), &json!({}));
        }
        std::iter::from_fn(|| {
            let id = socket.receive_message()["id"].as_str().unwrap().to_owned();
            Some(id.split(' ').next().unwrap().to_owned())
        })
        .take_while(|number| number != "3")
        .collect::<String>()
    };
    for (name, query, expected) in [
        ("shy", "", ""),
        ("shy", "?mode=all", "12"),
        ("shy", "?mode=directed+proposals", "2"),
        ("judge", "", "2"),
        ("judge", "?mode=directed", ""),
    ] {
        assert_eq!(received(name, query), expected, "{name} {query}");
    }
}

#[test]
fn participants_receive_the_envelopes_of_their_mode() {
    let (home, config) = people(&[
        ("sender", FULL),
        ("all", FULL),
        ("directed", FULL),
        ("reviewer", FULL),
        ("encoded", FULL),
    ]);
    let gateway = Gateway::start(&home, &config);
    let mut sender = Socket::enter(&gateway, "sender", "?echo=false");
    let mut hearers = [
        ("all", "?topic=main&mode=all"),
        ("directed", "?mode=directed"),
        ("reviewer", "?mode=directed+proposals"),
        ("encoded", "?mode=directed%2Bproposals"),
    ]
    .map(|(name, query)| Socket::enter(&gateway, name, query));
    let proposal = "mcp/proposal:tools/call:x";
    let said: [(&str, &str, &[&str], &str); 7] = [
        ("1", "chat", &[], "adre"),
        ("2", "chat", &["directed"], "ad"),
        ("3", "chat", &["all", "reviewer"], "ar"),
        ("4", proposal, &["sender"], "are"),
        ("5", proposal, &[], "adre"),
        ("6", "chat", &["absent", "sender"], "a"),
        ("7", "acme/status", &["encoded", "encoded"], "ae"),
    ];
    for (id, kind, to, _) in said {
        sender.send(kind, id, to, json!({}), &json!({}));
    }
    sender.chat("end");
    for hearer in &mut hearers {
        let letter = hearer.id.chars().next().unwrap();
        for (id, _, _, who) in said {
            if who.contains(letter) {
                hearer.expect(id);
            }
        }
        hearer.expect("end");
    }
    // Without echo it still receives the envelopes of others.
    hearers[0].chat("other");
    sender.expect("other");
}

#[test]
fn a_second_connection_replaces_the_first() {
    let (home, config) = people(&[("agent", FULL), ("watcher", FULL)]);
    let gateway = Gateway::start(&home, &config);
    let mut watcher = Socket::enter(&gateway, "watcher", "");
    let mut connections = Vec::new();
    for round in 0..4 {
        let (mut socket, welcome) = Socket::welcomed(&gateway, "agent", "?mode=directed");
        assert_eq!(
            welcome["payload"]["participants"].as_array().unwrap().len(),
            2,
            "{welcome}"
        );
        assert_eq!(socket.receive()["payload"]["event"], "join");
        if let Some(mut old) = connections.pop() {
            let old: &mut Socket = &mut old;
            // Envelopes on the old connection are not delivered.
            old.chat("from the old one");
            assert_eq!(old.closed(), 4001);
            let gone = watcher.receive();
            assert_eq!(
                gone["payload"],
                json!({ "event": "leave", "participant": { "id": "agent" } })
            );
        }
        assert_eq!(watcher.receive()["payload"]["event"], "join");
        // The end of the first connection does not affect the second.
        socket.chat(&format!("round {round}"));
        socket.expect(&format!("round {round}"));
        watcher.expect(&format!("round {round}"));
        watcher.send("chat", "back", &["agent"], json!({}), &json!({}));
        socket.expect("back");
        watcher.expect("back");
        connections.push(socket);
    }
    connections.pop().unwrap().leave();
    assert_eq!(watcher.receive()["payload"]["event"], "leave");
    let (_, welcome) = Socket::welcomed(&gateway, "agent", "");
    assert_eq!(
        welcome["payload"]["participants"].as_array().unwrap().len(),
        2
    );
    let audit_log = AuditLog(&home);
    let connection = "portmoot/connection";
    audit_log.has("agent", connection, "completed", "left");
    until("all are recorded", || {
        let taken_over = audit_log.count(
            "agent",
            connection,
            "completed",
            "closed 4001: another connection",
        );
        (taken_over == 3).then_some(())
    });
    assert!(audit_log.count("agent", connection, "admitted", "opened") >= 4);
    let said = audit_log.entries(&["--participant", "agent", "chat"]);
    let (admitted, refused): (Vec<_>, Vec<_>) = said
        .iter()
        .partition(|entry| entry["verdict"] == "admitted");
    // The old ones said nothing: what was read from them at all is refused.
    assert_eq!(
        admitted
            .iter()
            .filter(|entry| entry["from"] == "agent")
            .count(),
        4,
        "{said:?}"
    );
    assert!(
        refused
            .iter()
            .all(|entry| entry["verdict"] == "refused" && entry["why"] == "moot"),
        "{said:?}"
    );
}

#[test]
fn all_participants_receive_one_order() {
    const EACH: usize = 300;
    let senders = ["one", "two", "three", "four"];
    let mut all: Vec<(&str, &[&str])> = senders.iter().map(|name| (*name, FULL)).collect();
    all.extend([("left", FULL), ("right", FULL)]);
    let (home, config) = people(&all);
    let gateway = Gateway::start(&home, &config);
    let enter = |name: &&str| Socket::enter(&gateway, name, "");
    let mut quiet: Vec<Socket> = ["left", "right"].iter().map(enter).collect();
    let talkers: Vec<Socket> = senders.iter().map(enter).collect();
    let count = senders.len() * EACH;
    let ids = |socket: &mut Socket| -> Vec<String> {
        (0..count)
            .map(|_| socket.receive_message()["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut orders: Vec<Vec<String>> = std::thread::scope(|scope| {
        let threads: Vec<_> = talkers
            .into_iter()
            .map(|mut socket| {
                scope.spawn(move || {
                    for number in 0..EACH {
                        // Some are long enough to be written separately.
                        let text = "x".repeat(if number % 50 == 7 { 20_000 } else { number });
                        let id = format!("{} {number:03}", socket.id);
                        socket.send("chat", &id, &[], json!({}), &json!({ "text": text }));
                    }
                    ids(&mut socket)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    orders.extend(quiet.iter_mut().map(ids));
    let first = &orders[0];
    assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), count);
    assert!(
        orders.iter().all(|order| order == first),
        "one order for all"
    );
    for name in senders {
        let own: Vec<_> = first
            .iter()
            .filter(|id| id.starts_with(&format!("{name} ")))
            .collect();
        assert!(
            own.is_sorted(),
            "each sender's in the order in which it said them"
        );
    }
}

#[test]
fn envelopes_are_forwarded_byte_for_byte() {
    let (home, config) = people(&[("agent", FULL), ("listener", FULL)]);
    let gateway = Gateway::start(&home, &config);
    let mut listener = Socket::enter(&gateway, "listener", "");
    let mut agent = Socket::enter(&gateway, "agent", "?echo=false");
    listener.receive();
    let plain = envelope("agent", "chat", "plain", &[], json!({}), &json!({}));
    let texts = [
        plain.clone(),
        format!(" \r\n\t{plain}\n\n"),
        // Members in another order, unknown members, numbers and strings in unusual spellings.
        r#"{"payload" :{"a":1.0e0,"a":1E+2, "b":-0,"c":12345678901234567890123,"é":"\u00e9\/"},"kind":"chat" ,
            "x-trace":{"deep":[[[{"kind":"system/error"}]]]},"":null,"from":"agent","id":"odd","ts":17,"protocol":"mcpx/v0.1"}"#
            .replace("17", "\"yesterday\""),
        // Escapes in members that the gateway reads.
        r#"{"\u0070rotocol":"mcpx\/v0.1","id":"\u0041","from":"\u0061gent","to":[],"kind":"ch\u0061t","payload":{}}"#
            .to_owned(),
        format!("{}{}", plain.replace("{}", &format!("{{\"text\":\"{}\"}}", "ü".repeat(30_000))), " "),
        plain.replace("\"plain\"", "\"\u{202e}\u{7}\"").replace('\u{7}', "\\u0007"),
    ];
    for text in &texts {
        agent.text(text);
        assert_eq!(&listener.receive_text(), text);
    }
}

#[test]
fn late_joiners_receive_the_history() {
    let (home, mut config) = people(&[("agent", FULL), ("late", FULL), ("narrow", FULL)]);
    config += "[topics.main]\nhistory = 5\n[topics.quiet]\n";
    let config = config.replace(
        "[participants.late]\n",
        "[participants.late]\ntopics = [\"main\", \"quiet\"]\n",
    );
    let gateway = Gateway::start(&home, &config);
    let mut agent = Socket::enter(&gateway, "agent", "");
    let said = |agent: &mut Socket, id: &str, to: &[&str]| {
        let text = envelope("agent", "chat", id, to, json!({ "x": 1.50 }), &json!({}));
        agent.text(&text);
        agent.expect(id);
    };
    let visit = |name: &str, query: &str| {
        let (socket, mut welcome) = Socket::welcomed(&gateway, name, query);
        socket.leave();
        welcome["payload"]["history"].take()
    };
    let ids = |history: &Value| -> Vec<String> {
        let envelopes = history["envelopes"].as_array().unwrap();
        envelopes
            .iter()
            .map(|envelope| envelope["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let empty = visit("late", "");
    assert_eq!(
        (&empty["offset"], &empty["complete"], ids(&empty).len()),
        (&json!(0), &json!(true), 0)
    );
    let epoch = empty["epoch"].as_u64().unwrap();
    for id in ["0", "1", "2"] {
        said(&mut agent, id, &[]);
    }
    said(&mut agent, "3", &["narrow"]);
    let seen = visit("late", "");
    assert_eq!(
        (&seen["offset"], ids(&seen)),
        (&json!(4), ["0", "1", "2", "3"].map(String::from).to_vec())
    );
    for id in ["4", "5", "6"] {
        said(&mut agent, id, &[]);
    }
    said(&mut agent, "7", &["agent"]);
    for (query, expected, complete) in [
        (
            format!("?epoch={epoch}&offset=4"),
            &["4", "5", "6", "7"][..],
            true,
        ),
        (format!("?epoch={epoch}&offset=8"), &[], true),
        (
            format!("?epoch={epoch}&offset=3"),
            &["3", "4", "5", "6", "7"],
            true,
        ),
        (
            format!("?epoch={epoch}&offset=2"),
            &["3", "4", "5", "6", "7"],
            false,
        ),
        (
            format!("?epoch={}&offset=8", epoch + 1),
            &["3", "4", "5", "6", "7"],
            false,
        ),
        // A place that is still to come is of another gateway's messages.
        (format!("?epoch={epoch}&offset=9"), &[], false),
        (
            format!("?epoch={epoch}&offset=4&mode=directed"),
            &["4", "5", "6"],
            true,
        ),
        (String::new(), &["3", "4", "5", "6", "7"], false),
    ] {
        let history = visit("late", &query);
        assert_eq!(
            (ids(&history), &history["complete"]),
            (
                expected.iter().map(|id| (*id).to_owned()).collect(),
                &json!(complete)
            ),
            "{query}"
        );
        assert_eq!(
            (history["epoch"].as_u64(), &history["offset"]),
            (Some(epoch), &json!(8))
        );
    }
    assert_eq!(
        ids(&visit("narrow", "?mode=directed")),
        ["3", "4", "5", "6"]
    );
    // Without `history`, none is kept.
    assert_eq!(visit("late", "?topic=quiet"), Value::Null);
}

/// The params of an `initialize` that asks for this revision.
fn initialize(revision: &str) -> Value {
    let info = json!({ "name": "a", "version": "1" });
    json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": info })
}

#[test]
fn servers_answer_initialize_with_the_revision_that_was_asked_for() {
    let (home, config) = people(&[("agent", FULL)]);
    let servers = fixture("legacy", &[]) + &fixture("modern", &["--era", "modern"]);
    let gateway = Gateway::start(&home, &(servers + &config));
    ["legacy", "modern"]
        .iter()
        .for_each(|name| gateway.ready(name));
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    for host in ["legacy", "modern", "portmoot"] {
        for (asked, expected) in [
            ("2024-11-05", "2024-11-05"),
            ("2025-03-26", "2025-03-26"),
            ("2025-06-18", "2025-06-18"),
            ("2025-11-25", "2025-11-25"),
            // The newest revision that opens with `initialize`.
            ("2026-07-28", "2025-11-25"),
            ("2030-01-01", "2025-11-25"),
        ] {
            let params = initialize(asked);
            let payload =
                json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params });
            let id = format!("{host} {asked}");
            agent.send("mcp/request:initialize", &id, &[host], json!({}), &payload);
            let result = agent.receive_message()["payload"]["result"].clone();
            assert_eq!(result["protocolVersion"], expected, "{id}: {result}");
            let capabilities = result["capabilities"].as_object().unwrap();
            assert!(capabilities["tools"].is_object(), "{id}: {result}");
            // What no legacy revision has, and what a room does not carry out.
            for absent in ["extensions", "tasks", "logging"] {
                assert!(!capabilities.contains_key(absent), "{id}: {result}");
            }
            assert!(
                asked > "2025" || !capabilities.contains_key("completions"),
                "{id}: {result}"
            );
        }
    }
}

#[test]
fn servers_are_participants_that_answer() {
    let (home, config) = people(&[("agent", FULL)]);
    let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config));
    gateway.ready("tools");
    let (mut agent, welcome) = Socket::welcomed(&gateway, "agent", "?mode=directed&echo=false");
    let others: Vec<_> = welcome["payload"]["participants"]
        .as_array()
        .unwrap()
        .iter()
        .collect();
    let names: Vec<_> = others
        .iter()
        .map(|other| other["id"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["portmoot", "tools"], "{welcome}");
    agent.call("call-1", &["tools"], "echo", json!({ "text": "hi" }));
    let received = agent.receive_message();
    assert_eq!(
        (&received["from"], &received["to"]),
        (&json!("tools"), &json!(["agent"])),
        "{received}"
    );
    assert_eq!(received["kind"], "mcp/response:tools/call:echo");
    assert_eq!(
        (&received["correlation_id"], &received["payload"]["id"]),
        (&json!("call-1"), &json!("call-1"))
    );
    assert_eq!(received["payload"]["result"]["content"][0]["text"], "hi");
    // The short kind is answered with the extended kind.
    for host in ["tools", "portmoot"] {
        for (method, key) in [
            ("initialize", "serverInfo"),
            ("ping", ""),
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
            ("resources/templates/list", "resourceTemplates"),
        ] {
            let params = if method == "initialize" {
                initialize("2025-11-25")
            } else {
                json!({})
            };
            let payload = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
            let id = format!("{host} {method}");
            agent.send(
                &format!("mcp/request:{method}"),
                &id,
                &[host],
                json!({}),
                &payload,
            );
            let received = agent.receive_message();
            assert_eq!(
                received["kind"],
                format!("mcp/response:{method}"),
                "{received}"
            );
            assert_eq!(
                (&received["from"], &received["correlation_id"]),
                (&json!(host), &json!(id)),
                "{received}"
            );
            assert!(
                key.is_empty() || !received["payload"]["result"][key].is_null(),
                "{received}"
            );
        }
    }
}

/// The next envelope as it is written, but for presence.
#[track_caller]
fn next_text(socket: &mut Socket) -> String {
    loop {
        let text = socket.receive_text();
        if !text.contains("system/presence") {
            return text;
        }
    }
}

/// The place of an envelope that is received by one who asks for places.
#[track_caller]
fn place(envelope: &Value) -> (u64, u64, String) {
    let place = &envelope["portmoot/place"];
    let number = |key: &str| place[key].as_u64().unwrap_or_else(|| panic!("{envelope}"));
    let received = place["received"].as_str().unwrap().to_owned();
    (number("epoch"), number("offset"), received)
}

#[test]
fn who_asks_learns_the_place_of_each_envelope_live_and_later() {
    let (home, config) = people(&[("agent", FULL), ("asks", FULL), ("late", FULL)]);
    let config = config + "[topics.main]\nhistory = 9\nbuiltin = [\"room\"]\n";
    let mut gateway = Gateway::start(&home, &config);
    let mut epochs = Vec::new();
    for _ in 0..2 {
        let mut plain = Socket::enter(&gateway, "agent", "");
        let mut asks = Socket::enter(&gateway, "asks", "?places=true");
        // A place that its sender wrote is no place.
        let said = |id: &str, more: &Value| {
            envelope(
                "agent",
                "chat",
                id,
                &[],
                more.clone(),
                &json!({ "x": 1.50 }),
            )
        };
        let forged = json!({ "portmoot/place": { "epoch": 1, "offset": 99 } });
        let texts = [said("a", &json!({})), said("b", &forged)];
        let mut live = Vec::new();
        for text in &texts {
            plain.text(text);
            assert_eq!(&next_text(&mut plain), text, "unchanged");
            live.push(asks.receive_message());
        }
        let [first, second] = [&live[0], &live[1]].map(place);
        assert_eq!((first.1, second.1, first.0), (0, 1, second.0));
        assert!(first.2 <= second.2 && first.2.ends_with('Z'), "{first:?}");
        let mut bare = live[0].clone();
        bare.as_object_mut().unwrap().remove("portmoot/place");
        let sent: Value = serde_json::from_str(&texts[0]).unwrap();
        assert_eq!(bare, sent);
        // The same in the history, and for those who read by tool.
        let (socket, welcome) = Socket::welcomed(&gateway, "late", "?places=true");
        socket.leave();
        let history = &welcome["payload"]["history"];
        assert_eq!(history["envelopes"], json!(live), "{history}");
        assert_eq!(history["epoch"].as_u64(), Some(first.0));
        let (socket, welcome) = Socket::welcomed(&gateway, "late", "");
        socket.leave();
        let envelopes = &welcome["payload"]["history"]["envelopes"];
        assert_eq!(envelopes[0], sent, "who does not ask gets them unchanged");
        let late = Client::of(&gateway, &token("late"));
        let page = late.call("read_messages", json!({}))["structuredContent"].take();
        assert_eq!(page["epoch"].as_u64(), Some(first.0), "{page}");
        for (message, (_, offset, received)) in page["messages"]
            .as_array()
            .unwrap()
            .iter()
            .zip([first.clone(), second])
        {
            assert_eq!(
                (&message["offset"], &message["received"]),
                (&json!(offset), &json!(received))
            );
        }
        epochs.push(first.0);
        gateway.signal("KILL");
        gateway.wait();
        gateway = Gateway::start(&home, &config);
    }
    // A place names one envelope for ever: another run counts under another number.
    assert_ne!(epochs[0], epochs[1]);
}
