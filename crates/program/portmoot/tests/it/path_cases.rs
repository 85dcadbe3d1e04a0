//! Rare ways through the gateway: calls that cannot be proposed, a journal that cannot be written,
//! questions and tasks whose callers stop.

use std::process::Command;

use serde_json::json;

use crate::home::Home;
use crate::http::Connection;
use crate::peer::{Peer, answer, small, tool};
use crate::reviewed::{Reviewed, propose};
use crate::stage::{ECHO, echoes};
use crate::support::{Client, Gateway, modern, modern_stream, until};
use crate::ws::{people, token};

/// The same, but with a member that occurs twice in the arguments.
const TWICE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tools_echo","arguments":{"text":{"a":1,"\u0061":2}}}}"#;

#[test]
fn a_held_call_whose_arguments_are_ambiguous_is_refused() {
    let reviewed = Reviewed::new(&[("scout", &["mcp/proposal:*"])]);
    let scout = Client::of(&reviewed.gateway, &token("scout"));
    let bearer = format!("Bearer {}", token("scout"));
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
        ("mcp-session-id", scout.session.as_str()),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    let mut connection = Connection::open(reviewed.gateway.address());
    let answer = connection.exchange("POST", "/mcp", &headers, TWICE).json();
    assert_eq!(answer["error"]["data"]["code"], "malformed", "{answer}");
    let pending = reviewed.api("boss", "GET", "", &json!(null)).json();
    assert_eq!(pending["proposals"], json!([]));
    assert_eq!(reviewed.executed(), 0);
}

/// Has every write to a file of this process fail from now on. It ignores the signal of that.
pub(crate) fn fill_disk(gateway: &Gateway) {
    let pid = gateway.pid().to_string();
    assert!(
        Command::new("prlimit")
            .args(["--pid", &pid, "--fsize=1"])
            .status()
            .unwrap()
            .success()
    );
}

/// A gateway that ignores the signal of a file that is too long.
pub(crate) fn start(home: &Home) -> Gateway {
    let serve = home.command(&[
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        "portmoot.toml",
    ]);
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
        .arg(serve.get_program())
        .args(serve.get_args());
    command.env_clear().current_dir(home.path());
    command.envs(
        serve
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    Gateway::serve(command)
}

#[test]
fn nothing_follows_from_what_the_journal_cannot_take() {
    let mut reviewed = Reviewed::configured(&[], |config| config + "[audit]\nenabled = false\n");
    reviewed.gateway.signal("TERM");
    reviewed.gateway.wait();
    reviewed.gateway = start(&reviewed.home);
    reviewed.gateway.ready("tools");
    let mut agent = reviewed.enter("agent");
    propose(&mut agent, "p1");
    let proposal = reviewed.shown("p1");
    fill_disk(&reviewed.gateway);
    // A decision does not count, and a proposal does not come to be.
    let reply = reviewed.approve("boss", &proposal);
    assert_eq!(
        (reply.status, &reply.json()["code"]),
        (503, &json!("log_unavailable")),
        "{reply:?}"
    );
    assert_eq!(reviewed.shown("p1")["state"], "pending");
    agent.send(ECHO, "p2", &["tools"], json!({}), &echoes("x"));
    let notice = agent.receive_until(|received| received["payload"]["proposal"] == "p2");
    assert_eq!(notice["payload"]["state"], "rejected", "{notice}");
    assert!(reviewed.fulfil("f1", "p1")["error"].is_object());
    assert_eq!(reviewed.executed(), 0);
    reviewed.restart("TERM");
    let pending = reviewed
        .api("boss", "GET", "?all=true", &json!(null))
        .json();
    assert_eq!(
        pending["proposals"].as_array().map(Vec::len),
        Some(1),
        "{pending}"
    );
    assert_eq!(reviewed.approve("boss", &proposal).status, 200);
    until("it ran", || (reviewed.executed() == 1).then_some(()));
}

/// The caller of a question need not answer it once its call is answered.
#[test]
fn a_question_is_withdrawn_when_its_call_is_answered_without_it() {
    let peer = Peer::stdio(|message| {
        let said = match (message["method"].as_str(), message["params"]["name"].as_str()) {
            (Some("tools/call"), Some("ask")) => vec![
                r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{}}}}"#.to_owned(),
                answer(message, r#"{"content":[]}"#),
            ],
            _ => small(message, &format!("[{}]", tool("ask"))).into_iter().collect(),
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &peer.child("peer", "peer")));
    gateway.ready("peer");
    let ann = Client::open(
        &gateway,
        Some(&token("ann")),
        "/mcp",
        json!({ "elicitation": {} }),
    );
    let call = ann.begin_call("peer_ask", json!({})).rest();
    let methods: Vec<&str> = call
        .iter()
        .filter_map(|message| message["method"].as_str())
        .collect();
    assert_eq!(
        methods,
        ["elicitation/create", "notifications/cancelled"],
        "{call:?}"
    );
    assert!(call.last().unwrap()["result"].is_object(), "{call:?}");
}

const DISCOVERED: &str = r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{"subscribe":true},"extensions":{"io.modelcontextprotocol/tasks":{}}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"t","version":"1"}}}"#;
const RESOURCES: &str = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","resources":[{"uri":"test://a","name":"a"}]}"#;
const TEMPLATES: &str =
    r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","resourceTemplates":[]}"#;
const JOB: &str = r#"{"resultType":"task","taskId":"t1","status":"working","createdAt":"2026-11-22T05:00:00Z","lastUpdatedAt":"2026-11-22T05:00:00Z","ttlMs":null}"#;

#[test]
fn a_closed_listen_stream_ends_what_it_followed_at_the_server() {
    let peer = Peer::stdio(|message| {
        let said = match message["method"].as_str().unwrap_or_default() {
            "server/discover" => Some(answer(message, DISCOVERED)),
            "tools/list" => {
                let tools = format!(
                    r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{}]}}"#,
                    tool("job")
                );
                Some(answer(message, &tools))
            }
            "resources/list" => Some(answer(message, RESOURCES)),
            "resources/templates/list" => Some(answer(message, TEMPLATES)),
            "tools/call" => Some(answer(message, JOB)),
            "subscriptions/listen" => {
                let meta = json!({ "io.modelcontextprotocol/subscriptionId": message["id"] });
                let params =
                    json!({ "notifications": message["params"]["notifications"], "_meta": meta });
                let method = "notifications/subscriptions/acknowledged";
                Some(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string())
            }
            _ => None,
        };
        said.into_iter().map(String::into_bytes).collect()
    });
    let (home, config) = people(&[("ann", &["mcp/*"])]);
    let table = peer
        .child("peer", "peer")
        .replace("\"legacy\"", "\"modern\"");
    let gateway = Gateway::start(&home, &(config + &table));
    gateway.ready("peer");
    let bearer = token("ann");
    let able = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": able });
    let params = json!({ "name": "peer_job", "arguments": {}, "_meta": meta });
    let begun = modern(&gateway, Some(&bearer), "tools/call", params).json();
    let id = begun["result"]["taskId"]
        .as_str()
        .unwrap_or_else(|| panic!("{begun}"));
    let filter = json!({ "resourceSubscriptions": ["test://a"], "taskIds": [id] });
    let params = json!({ "notifications": filter, "_meta": meta });
    let listening = modern_stream(&gateway, Some(&bearer), "subscriptions/listen", params);
    let agreed = listening.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(agreed["params"]["notifications"], filter, "{agreed}");
    drop(listening);
    let ended = || {
        peer.received()
            .iter()
            .any(|line| line.contains("notifications/cancelled"))
    };
    until("the server hears of it", || ended().then_some(()));
    assert_eq!(gateway.stop().code, 0);
}
