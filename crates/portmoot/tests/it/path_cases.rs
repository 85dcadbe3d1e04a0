//! Rare ways through the gateway: a call that cannot be proposed, and a journal that cannot be written.

use std::process::Command;

use serde_json::json;

use crate::home::Home;
use crate::http::Connection;
use crate::reviewed::{Reviewed, propose};
use crate::stage::{ECHO, echoes};
use crate::support::{Client, Gateway};
use crate::ws::token;

/// The same, but with a member that occurs twice in the arguments.
const TWICE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tools_echo","arguments":{"text":{"a":1,"\u0061":2}}}}"#;

#[test]
fn a_held_call_whose_arguments_are_ambiguous_is_refused() {
    let reviewed = Reviewed::new(&[("scout", &["mcp/proposal:*"])]);
    let scout = Client::open(&reviewed.gateway, Some(&token("scout")), "/mcp", json!({}));
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
fn fill_disk(gateway: &Gateway) {
    let pid = gateway.pid().to_string();
    assert!(Command::new("prlimit").args(["--pid", &pid, "--fsize=1"]).status().unwrap().success());
}

/// A gateway that ignores the signal of a file that is too long.
fn start(home: &Home) -> Gateway {
    let serve = home.command(&["serve", "--listen", "127.0.0.1:0", "--config", "portmoot.toml"]);
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    command.env_clear().current_dir(home.path());
    command.envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
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
    assert_eq!((reply.status, &reply.json()["code"]), (503, &json!("log_unavailable")), "{reply:?}");
    assert_eq!(reviewed.shown("p1")["state"], "pending");
    agent.send(ECHO, "p2", &["tools"], json!({}), &echoes("x"));
    let told = agent.receive_until(|received| received["payload"]["proposal"] == "p2");
    assert_eq!(told["payload"]["state"], "rejected", "{told}");
    assert!(reviewed.fulfil("f1", "p1")["error"].is_object());
    assert_eq!(reviewed.executed(), 0);
    reviewed.restart("TERM");
    let pending = reviewed.api("boss", "GET", "?all=true", &json!(null)).json();
    assert_eq!(pending["proposals"].as_array().map(Vec::len), Some(1), "{pending}");
    assert_eq!(reviewed.approve("boss", &proposal).status, 200);
    crate::support::until("it ran", || (reviewed.executed() == 1).then_some(()));
}
