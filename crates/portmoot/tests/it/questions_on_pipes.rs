//! Modern clients on pipes (`portmoot stdio`) that are asked by legacy servers: in results, answered by retries.

use serde_json::{Value, json};

use crate::home::Home;
use crate::questions_between_eras::{able, back, questions, text};
use crate::socket::Piped;
use crate::support::{Gateway, fixture};

const ABLE: &str = "io.modelcontextprotocol/clientCapabilities";
const VERSION: &str = "io.modelcontextprotocol/protocolVersion";

fn send(client: &mut Piped, id: u64, name: &str, arguments: &Value, more: Value) {
    let mut params = json!({ "name": name, "arguments": arguments });
    params["_meta"] = json!({ ABLE: able(), VERSION: "2026-07-28" });
    params.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    client.send(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string());
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
    assert_eq!(text(&call(client, 2, "old_echo", &json!({ "text": "x" }), json!({}))), "x");
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    let (other, second) = questions(&call(client, 3, name, &json!({ "message": "And?" }), json!({})));
    let bad = call(client, 4, name, &who, back(&asked[0].0, given.clone(), &second));
    assert_eq!(bad["error"]["code"], -32602, "{bad}");
    let answer = call(client, 5, name, &who, back(&asked[0].0, given.clone(), &state));
    assert!(text(&answer).contains("action=accept"), "{answer}");
    let again = call(client, 6, name, &who, back(&asked[0].0, given.clone(), &state));
    assert_eq!(again["error"]["code"], -32602, "{again}");
    let answer = call(client, 7, name, &json!({ "message": "And?" }), back(&other[0].0, given, &second));
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
    let (asked, state) = questions(&call(&mut client, 20, "old_ask_roots", &json!({}), json!({})));
    let huge = format!("{state}{}", "A".repeat(10_000_000));
    let more = back(&asked[0].0, json!({ "roots": [] }), &huge);
    let answer = call(&mut client, 21, "old_ask_roots", &json!({}), more);
    assert_eq!(answer["error"]["code"], -32602, "{}", &answer.to_string()[..200]);
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
