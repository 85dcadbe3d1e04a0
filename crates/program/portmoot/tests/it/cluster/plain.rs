//! Plain calls: the node that gets them makes them, and no other one needs to know of them.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use harness::{Link, Running};
use serde_json::{Value, json};

use crate::socket;
use crate::support::{Client, fixture, modern, until};
use crate::ws::{Socket, config_of, home_of, token};

use super::attempt::{answer, modern as attempt, send};
use super::nodes::{LONG, Nodes, PEOPLE, SHORT};

/// A server that each node calls, as it keeps nothing between two calls.
pub(super) const PLAIN: &str = "[servers.p]\ntype = \"demo\"\n";
/// A call that is held is answered for now soon.
const HOLD: &str = "[server.limits]\nhold = \"200ms\"\n";
const CALL: &str = "mcp/request:tools/call:";

/// The calls that a node has recorded.
#[track_caller]
fn recorded(nodes: &Nodes, node: usize) -> Vec<Value> {
    let data = format!("n{node}");
    let query = ["audit", "query", "--json", "--data-dir", &data];
    let answer = nodes.folder.run(&query).expect(0).stdout;
    let answer: Value = serde_json::from_str(&answer).unwrap();
    let entries = answer["entries"].as_array().unwrap().iter();
    let calls = entries.filter(|entry| entry["kind"].as_str().unwrap().starts_with(CALL));
    calls.cloned().collect()
}

/// The node that makes a call.
#[track_caller]
fn made_at(nodes: &Nodes, call: impl FnOnce()) -> usize {
    let counts = || -> Vec<usize> {
        let all = 0..nodes.count();
        all.map(|node| recorded(nodes, node).len()).collect()
    };
    // The calls before it are recorded.
    let before = until("what was called is recorded", || {
        let before = counts();
        (before == counts()).then_some(before)
    });
    call();
    until("the call is recorded", || {
        let more: Vec<usize> = (0..)
            .zip(counts().iter().zip(&before))
            .filter(|(_, (now, was))| now > was)
            .map(|(node, _)| node)
            .collect();
        assert!(more.len() < 2, "two nodes have recorded one call");
        more.first().copied()
    })
}

fn echo(text: &str) -> Value {
    json!({ "name": "p_echo", "arguments": { "text": text } })
}

/// A call that a modern client makes at a node.
#[track_caller]
fn calls(nodes: &Nodes, node: usize, who: &str) -> Value {
    let reply = modern(nodes.node(node), Some(&token(who)), "tools/call", echo("x"));
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

/// Waits until a node makes calls itself.
#[track_caller]
fn wait_until_made_at(nodes: &Nodes, node: usize) {
    until(&format!("node {node} makes calls"), || {
        let made = made_at(nodes, || drop(calls(nodes, node, "ann")));
        (made == node).then_some(())
    });
}

#[test]
fn plain_calls_cross_no_node() {
    let nodes = Nodes::start(
        2,
        1,
        &(HOLD.to_owned() + &fixture("a", &["--era", "legacy"]) + PLAIN),
    );
    let (home, other) = (nodes.home().node, nodes.other());
    wait_until_made_at(&nodes, other);
    for node in [home, other] {
        assert_eq!(made_at(&nodes, || drop(calls(&nodes, node, "ann"))), node);
    }
    let session = Client::of(nodes.node(other), &token("ann"));
    let said = |at: &Client| at.call("p_echo", json!({ "text": "y" }));
    until("its session is known at the server", || {
        let made = made_at(&nodes, || {
            assert_eq!(said(&session)["content"][0]["text"], "y")
        });
        (made == other).then_some(())
    });
    // The same session at the home, and what is no plain call.
    let at_home = Client::resume(
        nodes.node(home),
        Some(&token("ann")),
        "/mcp",
        &session.session,
    );
    assert_eq!(made_at(&nodes, || drop(said(&at_home))), home);
    let add = || session.call("a_add", json!({ "a": 1, "b": 2 }));
    assert_eq!(
        made_at(&nodes, || drop(add())),
        home,
        "a process is the home's"
    );
    let able = json!({ "sampling": {} });
    let asked = Client::open(nodes.node(other), Some(&token("ann")), "/mcp", able.clone());
    until("its session is known at the server", || {
        (made_at(&nodes, || drop(said(&asked))) == other).then_some(())
    });
    let held = || {
        assert_eq!(
            calls(&nodes, other, "agent")["result"]["resultType"],
            "input_required"
        )
    };
    assert_eq!(made_at(&nodes, held), home, "it may only be proposed");
    goes_on_without_contact(&nodes, other);
}

/// Calls of a node go on while it reaches no other one, until it may not know what was revoked.
#[track_caller]
fn goes_on_without_contact(nodes: &Nodes, node: usize) {
    let address = nodes.node(node).address();
    let status = || {
        attempt(address, SHORT, &token("ann"), "tools/call", echo("z")).map(|reply| reply.status)
    };
    for node in 0..nodes.count() {
        nodes.link(node, Link::Stalled);
    }
    for _ in 0..20 {
        assert_eq!(status(), Some(200));
    }
    until("it is cut off", || (status() != Some(200)).then_some(()));
    for node in 0..nodes.count() {
        nodes.link(node, Link::Whole);
    }
    until("it is back", || (status() == Some(200)).then_some(()));
}

#[track_caller]
fn changes(nodes: &Nodes, line: &str, body: Value) {
    let done = nodes.api(nodes.home().node, "boss", line, &body);
    assert!((200..300).contains(&done.status), "{line}: {done:?}");
}

/// Each thing of which the home must know makes a call its own at once.
#[test]
fn calls_that_someone_decides_about_or_sees_are_the_homes() {
    let nodes = Nodes::start(2, 1, &(HOLD.to_owned() + PLAIN));
    let (home, other) = (nodes.home().node, nodes.other());
    wait_until_made_at(&nodes, other);
    let (mut boss, _) = Socket::welcomed(nodes.node(other), "boss", "");
    until("calls are shown", || {
        let made = made_at(&nodes, || drop(calls(&nodes, other, "ann")));
        (made == home).then_some(())
    });
    let shown = boss.receive_until(|seen| {
        seen["kind"]
            .as_str()
            .is_some_and(|kind| kind.starts_with(CALL))
    });
    assert_eq!(shown["from"], "ann");
    boss.leave();
    wait_until_made_at(&nodes, other);
    let pause = |what: &str| {
        changes(
            &nodes,
            &format!("POST /api/v1/topics/main/participants/ann/{what}"),
            json!({}),
        )
    };
    for _ in 0..3 {
        pause("pause");
        assert_eq!(
            calls(&nodes, other, "ann")["result"]["resultType"],
            "input_required"
        );
        pause("resume");
        assert_eq!(
            calls(&nodes, other, "ann")["result"]["content"][0]["text"],
            "x"
        );
    }
    changes(&nodes, "POST /api/v1/servers/p/disable", json!({}));
    let address = nodes.node(other).address();
    let serves = || {
        let reply = attempt(address, LONG, &token("ann"), "tools/call", echo("x"));
        reply.is_some_and(|reply| reply.status == 200)
    };
    until("it is disabled everywhere", || (!serves()).then_some(()));
    changes(&nodes, "POST /api/v1/servers/p/enable", json!({}));
    until("it is enabled", || serves().then_some(()));
    wait_until_made_at(&nodes, other);
}

/// The line of a node's log when it begins to make calls.
const MAKES_CALLS: &str = "this node makes plain calls itself";

#[test]
fn a_rule_that_asks_is_asked_at_the_home() {
    let folder = home_of(PEOPLE);
    folder.write(
        "rules.toml",
        "[[rule]]\nid = \"r\"\nauthor = \"boss\"\ndecision = \"ask\"\n\
         kind = \"mcp/request:tools/call:echo\"\nproposers = [\"*\"]\n",
    );
    let tables = config_of(&folder, PEOPLE);
    let (tables, _) = tables.split_once("[server]").unwrap();
    let topic = "[topics.main]\nrules = \"rules.toml\"\n";
    let nodes = Nodes::of(folder, 2, 1, format!("{HOLD}{PLAIN}{topic}{tables}"));
    let (home, other) = (nodes.home().node, nodes.other());
    nodes.node(other).receive(MAKES_CALLS);
    for _ in 0..3 {
        let held = || {
            let answer = calls(&nodes, other, "ann");
            assert_eq!(answer["result"]["resultType"], "input_required", "{answer}");
        };
        assert_eq!(made_at(&nodes, held), home);
    }
}

/// A node that is not the home serves HTTP/1 alone: what comes in HTTP/2 would pass it by.
#[test]
fn no_other_protocol_begins_on_a_connection_to_a_branch() {
    let nodes = Nodes::start(2, 1, PLAIN);
    let other = nodes.other();
    wait_until_made_at(&nodes, other);
    let address = nodes.node(other).address();
    let mut connection = TcpStream::connect(address).unwrap();
    let mut seen = Vec::new();
    write!(
        connection,
        "GET /metrics HTTP/1.1\r\nhost: {address}\r\n\r\n"
    )
    .unwrap();
    let mut part = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains("\r\n\r\n") {
        let length = connection.read(&mut part).unwrap();
        seen.extend_from_slice(&part[..length]);
    }
    seen.clear();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    connection
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    connection.write_all(&settings).unwrap();
    let _closed_or_reset = connection.read_to_end(&mut seen);
    let answers = seen
        .windows(5)
        .any(|part| part[2] < 100 && part[..2] == [0, 0] && part[3] == 4);
    assert!(!answers, "{seen:?}");
    // What is passed on may be longer than its message.
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", &format!("Bearer {}", token("ann"))),
        (
            "mcp-session-id",
            &Client::of(nodes.node(other), &token("ann")).session,
        ),
        ("connection", "x-gone"),
        ("x-gone", "1"),
    ];
    let ping = "\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":null}\n\n";
    let sent = send(address, SHORT, "POST /mcp", &headers, ping).unwrap();
    assert_eq!(answer(sent, SHORT).unwrap().status, 200);
}

/// The sessions that a server gives out are the home's, unless an operator says otherwise.
#[test]
fn a_server_that_keeps_something_is_called_by_the_home_unless_that_is_configured() {
    let servers = [
        ("m", "modern", ""),
        ("l", "legacy", ""),
        ("e", "legacy", "placement = \"every\"\n"),
    ];
    let running = servers.map(|(_, era, _)| Running::fixture(&["--era", era]));
    let tables = servers
        .iter()
        .zip(&running)
        .map(|((name, _, more), server)| {
            format!("[servers.{name}]\nurl = {:?}\n{more}", server.url())
        });
    let nodes = Nodes::start(2, 1, &tables.collect::<String>());
    let (home, other) = (nodes.home().node, nodes.other());
    let made = |name: &str| {
        let params = json!({ "name": format!("{name}_add"), "arguments": { "a": 1, "b": 2 } });
        made_at(&nodes, || {
            let reply = modern(nodes.node(other), Some(&token("ann")), "tools/call", params);
            assert_eq!(
                reply.json()["result"]["structuredContent"]["sum"],
                3,
                "{reply:?}"
            );
        })
    };
    for name in ["m", "e"] {
        until(name, || (made(name) == other).then_some(()));
    }
    for _ in 0..3 {
        assert_eq!(made("l"), home);
    }
}

/// The end of a session is in force at each node once it is confirmed.
#[test]
fn a_session_that_ended_makes_no_call_at_any_node() {
    let nodes = Nodes::start(3, 1, PLAIN);
    for node in (0..3).filter(|node| *node != nodes.home().node) {
        wait_until_made_at(&nodes, node);
    }
    for round in 0..6 {
        let session = Client::of(nodes.node(round % 3), &token("ann")).session;
        let at = |node: usize| {
            Client::resume(nodes.node(node % 3), Some(&token("ann")), "/mcp", &session)
        };
        for node in 0..3 {
            assert_eq!(at(node).status("tools/call", echo("x")), 200);
        }
        assert_eq!(at(round + 1).delete(), 204);
        for node in 0..3 {
            assert_eq!(
                at(node).status("tools/call", echo("x")),
                404,
                "{round} {node}"
            );
        }
    }
}

/// A branch goes on while there is no home, and its node may be the next one.
#[test]
fn plain_calls_go_on_while_the_home_is_lost() {
    let mut nodes = Nodes::start(3, 1, PLAIN);
    let home = nodes.home();
    let other = nodes.other();
    wait_until_made_at(&nodes, other);
    let address = nodes.node(other).address().to_owned();
    nodes.kill(home.node);
    let made = |within: Duration| {
        let reply = attempt(&address, within, &token("ann"), "tools/call", echo("x"));
        assert_eq!(reply.map(|reply| reply.status), Some(200));
    };
    until("the next home", || {
        made(LONG);
        nodes.latest_home().filter(|next| next.epoch > home.epoch)
    });
    for _ in 0..20 {
        made(LONG);
    }
}

/// The answer to a question, a cancellation and the rest of a stream find the node that makes the call.
#[test]
fn what_belongs_to_a_plain_call_finds_its_node() {
    let server = Running::fixture(&["--era", "modern"]);
    let nodes = Nodes::start(3, 1, &format!("[servers.m]\nurl = {:?}\n", server.url()));
    let home = nodes.home().node;
    let [at, third] =
        <[usize; 2]>::try_from((0..3).filter(|node| *node != home).collect::<Vec<_>>()).unwrap();
    let able = json!({ "sampling": {} });
    let caller = Client::open(nodes.node(at), Some(&token("ann")), "/mcp", able);
    until("the node makes its calls", || {
        let add = || drop(caller.call("m_add", json!({ "a": 1, "b": 2 })));
        (made_at(&nodes, add) == at).then_some(())
    });
    for other in [home, third, at] {
        let call = caller.begin_call("m_test_sampling", json!({ "prompt": "?" }));
        answer_at(&nodes, other, &caller.session, &call.next_of(ASKED));
        assert_eq!(said(&call.next()), "from afar");
        // Its stream breaks off, and goes on through another node.
        let (id, question) = breaks_off(&nodes, at, &caller.session);
        answer_at(&nodes, other, &caller.session, &question);
        let mut rest = stream(&nodes, other, &caller.session, "GET /mcp", Some(&id), "");
        let (_, result) = rest.message().unwrap();
        assert_eq!(said(&result), "from afar");
        // It is cancelled at another node.
        let call = caller.begin(&sampling(CANCELLED));
        call.next_of(ASKED);
        let elsewhere = resumed(&nodes, other, &caller.session);
        elsewhere.notify("notifications/cancelled", json!({ "requestId": CANCELLED }));
        let rest = call.rest();
        assert!(
            rest.iter().all(|message| message["id"] != CANCELLED),
            "{rest:?}"
        );
    }
}

const ASKED: &str = "sampling/createMessage";
/// The id of the call that is cancelled.
const CANCELLED: u64 = 77_001;

fn sampling(id: u64) -> Value {
    let params = json!({ "name": "m_test_sampling", "arguments": { "prompt": "?" } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn resumed(nodes: &Nodes, node: usize, session: &str) -> Client {
    Client::resume(nodes.node(node), Some(&token("ann")), "/mcp", session)
}

#[track_caller]
fn answer_at(nodes: &Nodes, node: usize, session: &str, question: &Value) {
    let text = json!({ "type": "text", "text": "from afar" });
    let answer = json!({ "role": "assistant", "content": text, "model": "m" });
    resumed(nodes, node, session).answer(question, answer);
}

fn said(result: &Value) -> &str {
    let text = result["result"]["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{result}"));
    text.strip_prefix("LLM response: ").unwrap()
}

/// The stream of the answer to a request in a session.
#[track_caller]
fn stream(
    nodes: &Nodes,
    node: usize,
    session: &str,
    line: &str,
    after: Option<&str>,
    body: &str,
) -> socket::Events {
    let bearer = format!("Bearer {}", token("ann"));
    let mut headers = vec![
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
        ("mcp-session-id", session),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    headers.extend(after.map(|id| ("last-event-id", id)));
    let stream = send(nodes.node(node).address(), LONG, line, &headers, body).unwrap();
    socket::Events::new(stream)
}

/// A call whose stream breaks off after a question: the id of that event, and the question.
#[track_caller]
fn breaks_off(nodes: &Nodes, node: usize, session: &str) -> (String, Value) {
    let body = sampling(77_000).to_string();
    let mut stream = stream(nodes, node, session, "POST /mcp", None, &body);
    loop {
        let (id, message) = stream.message().unwrap();
        if message["method"] == ASKED {
            return (id, message);
        }
    }
}
