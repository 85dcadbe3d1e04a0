//! The examples of the SDK as programs, against a real gateway: what they print is what they did.

use serde_json::{Value, json};

use crate::ledger::Ledger;
use crate::program::{Program, example};
use crate::runner::Home;
use crate::support::Gateway;
use crate::tls::Front;
use crate::ws::{Socket, people, token};

fn start(more: &[(&str, &[&str])]) -> (Home, Gateway) {
    let all = [
        &[
            ("echo-server", &["mcp/response:*"][..]),
            ("untrusted-1", &["mcp/proposal:tools/call", "mcp/response:*"]),
            ("trusted", &["mcp/request:tools/call", "mcp/proposal:tools/call", "mcp/response:*"]),
            ("person", &["mcp/*", "chat"]),
        ],
        more,
    ]
    .concat();
    let (home, config) = people(&all);
    let gateway = Gateway::start(&home, &config);
    (home, gateway)
}

fn echo_server(gateway: &Gateway) -> Program {
    let mut server = Program::start(example("echo_server", gateway, "echo-server", &[]));
    assert_eq!(server.sees("serving"), "serving as echo-server");
    server
}

fn agent(gateway: &Gateway, who: &str, tool: &str, arguments: &str) -> Program {
    Program::start(example("untrusted_agent", gateway, who, &["echo-server", tool, arguments]))
}

/// The result that an agent has printed last.
#[track_caller]
fn result(agent: Program) -> Value {
    let (code, printed) = agent.ends();
    assert_eq!(code, 0, "{printed}");
    serde_json::from_str(printed.lines().last().unwrap()).unwrap_or_else(|_| panic!("{printed}"))
}

#[test]
fn the_echo_server_serves_and_refuses_what_is_not_as_it_says() {
    let (_home, gateway) = start(&[]);
    let mut server = echo_server(&gateway);
    let mut person = Socket::enter(&gateway, "person", "?mode=directed&echo=false");
    let rows = [
        ("echo", json!({ "text": "hello" }), json!("hello"), false),
        ("add", json!({ "a": 2, "b": 0.5 }), json!("{\"sum\":2.5}"), false),
        ("add", json!({ "a": 2 }), json!("`b` must be a number"), true),
    ];
    for (number, (tool, arguments, said, is_error)) in rows.into_iter().enumerate() {
        let id = format!("call {number}");
        person.call(&id, &["echo-server"], tool, arguments);
        let answer = person.hear_said();
        assert_eq!((&answer["correlation_id"], &answer["from"]), (&json!(id), &json!("echo-server")));
        let result = &answer["payload"]["result"];
        assert_eq!(result["content"][0]["text"], said, "{answer}");
        assert_eq!(result["isError"] == true, is_error, "{answer}");
    }
    let forged = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "add", "arguments": {} } });
    person.say("mcp/request:tools/call:echo", "forged", &["echo-server"], json!({}), &forged);
    let line = server.sees("ignored an envelope");
    assert!(line.starts_with("ignored an envelope of person: "), "{line}");
    assert_eq!(person.hear_said()["payload"]["error"]["code"], -32600);
    // It comes back by itself.
    gateway.signal("STOP");
    gateway.signal("CONT");
    person.call("again", &["echo-server"], "echo", json!({ "text": "still here" }));
    assert_eq!(person.hear_said()["payload"]["result"]["content"][0]["text"], "still here");
}

#[test]
fn the_untrusted_agent_proposes_and_a_trusted_one_calls() {
    let (home, gateway) = start(&[]);
    let _server = echo_server(&gateway);
    let called = result(agent(&gateway, "trusted", "echo", r#"{"text":"mine"}"#));
    assert_eq!(called["content"][0]["text"], "mine");
    let mut proposing = agent(&gateway, "untrusted-1", "echo", r#"{"text":"please"}"#);
    let line = proposing.sees("proposed as ");
    assert!(line.ends_with("; waiting for a reviewer"), "{line}");
    let (url, person) = (gateway.url(), token("person"));
    let cli = |words: &[&str]| {
        let words = [&["proposals"], words, &["--url", &url, "--token", &person]].concat();
        home.run(&words).expect(0).stdout
    };
    let pending = || gateway.pending(&home, &person)["id"].as_str().unwrap().to_owned();
    cli(&["approve", &pending(), "--yes"]);
    assert_eq!(result(proposing)["content"][0]["text"], "please");
    // Rejected, it ends with an error and says why.
    let mut proposing = agent(&gateway, "untrusted-1", "echo", r#"{"text":"again"}"#);
    proposing.sees("proposed as ");
    cli(&["reject", &pending(), "--reason", "once is enough"]);
    let (code, printed) = proposing.ends();
    assert!(code == 1 && printed.contains("once is enough"), "{code} {printed}");
}

#[test]
fn the_reviewer_shows_all_of_a_proposal_and_does_as_it_is_told() {
    let (home, gateway) = start(&[]);
    let _server = echo_server(&gateway);
    let mut reviewer = Program::start(example("reviewer", &gateway, "person", &[]));
    assert_eq!(reviewer.sees("reviewing"), "reviewing as person");
    let text = "{\"text\":\"a\u{202e}b\\u001b[2J\"}";
    let mut proposing = agent(&gateway, "untrusted-1", "echo", text);
    reviewer.sees("proposal ");
    for line in ["  by      untrusted-1", "  at      echo-server", "  method  tools/call", "  target  echo"] {
        assert_eq!(reviewer.sees(line), line);
    }
    let shown = reviewer.sees("  params");
    assert!(
        shown.contains(r"a\u{202e}b\u001b[2J") && !shown.chars().any(client::visible::is_hidden),
        "{shown}"
    );
    reviewer.types("y");
    reviewer.sees(r"a\u{202e}b");
    proposing.sees(r"a\u{202e}b\u001b[2J");
    assert_eq!(proposing.ends().0, 0);
    let mut proposing = agent(&gateway, "untrusted-1", "add", r#"{"a":1,"b":2}"#);
    reviewer.sees("  target  add");
    reviewer.types("no");
    reviewer.sees("rejected");
    proposing.sees("the reviewer said no");
    assert_eq!(proposing.ends().0, 1);
    let ledger = Ledger(&home);
    ledger.has("person", "mcp/proposal:tools/call:echo", "approved", "proposed by untrusted-1");
    ledger.has("person", "mcp/proposal:tools/call:add", "rejected", "the reviewer said no");
}

/// The examples over `wss://`, where the machine trusts the certificate and where it does not; and the command line.
#[test]
fn participants_come_in_over_tls() {
    let (home, gateway) = start(&[]);
    let front = Front::of(gateway.address());
    let other = Front::of(gateway.address());
    let trusted = home.write("trusted.pem", &front.pem);
    let secure = |scheme: &str, name: &str, who: &str, args: &[&str], port: u16| {
        let mut command = example(name, &gateway, who, args);
        command.env("PORTMOOT_URL", format!("{scheme}://localhost:{port}"));
        command.env("SSL_CERT_FILE", &trusted);
        Program::start(command)
    };
    let mut server = secure("wss", "echo_server", "echo-server", &[], front.port);
    server.sees("serving as echo-server");
    let call = ["echo-server", "echo", r#"{"text":"over TLS"}"#];
    let called = result(secure("https", "untrusted_agent", "trusted", &call, front.port));
    assert_eq!(called["content"][0]["text"], "over TLS");
    let url = format!("wss://localhost:{}", front.port);
    let mut chat = home.command(&["chat", "--url", &url, "--token", &token("person")]);
    chat.env("SSL_CERT_FILE", &trusted);
    let mut chat = Program::start(chat);
    chat.types(r#"/call echo-server echo {"text":"typed over TLS"}"#);
    chat.sees("= typed over TLS");
    assert_eq!(chat.ends().0, 0);
    // Another certificate for the same name, and the right one under another name.
    let (code, printed) = secure("wss", "untrusted_agent", "trusted", &call, other.port).ends();
    assert!(code == 1 && printed.contains("certificate"), "{code} {printed}");
    let mut elsewhere = example("untrusted_agent", &gateway, "trusted", &call);
    elsewhere.env("PORTMOOT_URL", format!("wss://127.0.0.1:{}", front.port)).env("SSL_CERT_FILE", &trusted);
    let (code, printed) = Program::start(elsewhere).ends();
    assert!(code == 1 && printed.contains("certificate"), "{code} {printed}");
}
