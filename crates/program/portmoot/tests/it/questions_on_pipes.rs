//! Modern clients on pipes (`portmoot stdio`) that are asked by legacy servers: in results,
//! answered by retries. And legacy servers on pipes that ask while further calls wait for the pipe.

use std::sync::{Mutex, mpsc};

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::{Peer, answer, small, tool};
use crate::questions_between_eras::{able, back, questions, text};
use crate::socket::Piped;
use crate::support::{Gateway, fixture, modern, until};
use crate::ws::{people, token};

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

fn send(client: &mut Piped, id: u64, name: &str, arguments: &Value, more: Value) {
    let mut params = json!({ "name": name, "arguments": arguments });
    params["_meta"] = json!({ ABLE: able(), VERSION: "2026-07-28" });
    params
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().cloned().unwrap_or_default());
    client.send(
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string(),
    );
}

fn call(client: &mut Piped, id: u64, name: &str, arguments: &Value, more: Value) -> Value {
    send(client, id, name, arguments, more);
    let answer = client.json();
    assert_eq!(answer["id"], id, "{answer}");
    answer
}

fn converses(client: &mut Piped) {
    let (name, who) = ("old_test_elicitation", json!({ "message": "Who?" }));
    let given = json!({ "action": "accept", "content": { "username": "ann" } });
    let (asked, state) = questions(&call(client, 1, name, &who, json!({})));
    assert_eq!(asked[0].1["method"], "elicitation/create");
    // Other calls go on, and the request that has its answer can no longer be cancelled.
    assert_eq!(
        text(&call(
            client,
            2,
            "old_echo",
            &json!({ "text": "x" }),
            json!({})
        )),
        "x"
    );
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let (other, second) = questions(&call(
        client,
        3,
        name,
        &json!({ "message": "And?" }),
        json!({}),
    ));
    let bad = call(
        client,
        4,
        name,
        &who,
        back(&asked[0].0, given.clone(), &second),
    );
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    let answer = call(
        client,
        5,
        name,
        &who,
        back(&asked[0].0, given.clone(), &state),
    );
    assert!(text(&answer).contains("action=accept"), "{answer}");
    let again = call(
        client,
        6,
        name,
        &who,
        back(&asked[0].0, given.clone(), &state),
    );
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let answer = call(
        client,
        7,
        name,
        &json!({ "message": "And?" }),
        back(&other[0].0, given, &second),
    );
    assert!(text(&answer).contains("action=accept"), "{answer}");
    // A request that comes back is cancelled by its own id: nothing answers it.
    let sleeps = json!({ "message": "Who?" });
    let (_, state) = questions(&call(client, 8, name, &sleeps, json!({})));
    let again = call(client, 9, name, &sleeps, json!({ "requestState": state }));
    questions(&again);
}

#[test]
fn a_legacy_server_asks_a_modern_client_on_a_pipe() {
    let mut client = Piped::start(&fixture("old", &["--era", "legacy"]));
    converses(&mut client);
    // A line may be longer than a body: a state of 10 MB is read, and refused.
    let (asked, state) = questions(&call(
        &mut client,
        20,
        "old_ask_roots",
        &json!({}),
        json!({}),
    ));
    let huge = format!("{state}{}", "A".repeat(10_000_000));
    let more = back(&asked[0].0, json!({ "roots": [] }), &huge);
    let answer = call(&mut client, 21, "old_ask_roots", &json!({}), more);
    assert_eq!(
        answer["error"]["code"],
        -32602,
        "{}",
        &answer.to_string()[..200]
    );
    let more = back(&asked[0].0, json!({ "roots": [] }), &state);
    text(&call(&mut client, 22, "old_ask_roots", &json!({}), more));
}

#[test]
fn a_legacy_server_asks_a_modern_client_of_a_running_gateway_on_a_pipe() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("old", &["--era", "legacy"]));
    gateway.ready("old");
    converses(&mut Piped::with(home, &["stdio", "--url", &gateway.url()]));
}

#[test]
fn calls_that_wait_for_a_pipe_leave_it_when_its_server_asks() {
    let (go, begun) = mpsc::channel();
    let (begun, waiting) = (Mutex::new(begun), Mutex::new(Value::Null));
    let peer = Peer::stdio(move |message| {
        let named = message["params"]["name"].as_str();
        let line = match (message["method"].as_str(), named) {
            (Some("tools/call"), Some("asks")) => {
                *waiting.lock().unwrap() = message.clone();
                begun.lock().unwrap().recv().unwrap();
                r#"{"jsonrpc":"2.0","id":"q","method":"roots/list"}"#.to_owned()
            }
            (Some("tools/call"), _) => {
                answer(message, r#"{"content":[{"type":"text","text":"plain"}]}"#)
            }
            (None, _) if message["id"] == "q" => answer(
                &waiting.lock().unwrap(),
                r#"{"content":[{"type":"text","text":"asked"}]}"#,
            ),
            _ => {
                small(message, &format!("[{},{}]", tool("asks"), tool("plain"))).unwrap_or_default()
            }
        };
        if line.is_empty() {
            Vec::new()
        } else {
            vec![line.into_bytes()]
        }
    });
    let (home, config) = people(&[("ann", &["mcp/*"]), ("boss", &["portmoot/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("peer", "")));
    gateway.ready("peer");
    let call = |name: &str, more: Value| {
        let mut params = json!({ "name": name, "_meta": { ABLE: able() } });
        params
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().cloned().unwrap_or_default());
        modern(&gateway, Some(&token("ann")), "tools/call", params).json()
    };
    let calls = |number: u64| {
        let server = || {
            gateway
                .get("/api/v1/servers/peer", Some(&token("boss")))
                .json()
        };
        until("calls are open", || {
            (server()["calls"] == number).then_some(())
        });
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| call("asks", json!({})));
        calls(1);
        let others: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| call("plain", json!({}))))
            .collect();
        calls(4);
        assert_eq!(
            peer.calls("plain"),
            0,
            "the calls wait for the one before them"
        );
        go.send(()).unwrap();
        let (asked, state) = questions(&first.join().unwrap());
        for other in others {
            assert_eq!(text(&other.join().unwrap()), "plain");
        }
        let answer = call("asks", back(&asked[0].0, json!({ "roots": [] }), &state));
        assert_eq!(text(&answer), "asked");
    });
    assert_eq!((peer.calls("plain"), peer.calls("asks")), (3, 1));
}
