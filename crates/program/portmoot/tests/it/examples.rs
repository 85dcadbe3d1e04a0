//! The example programs of the SDK with a real gateway: their output and effects.

use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::program::{Program, example};
use crate::support::Gateway;
use crate::tls::TlsProxy;
use crate::ws::{Socket, people, token};

fn start(more: &[(&str, &[&str])]) -> (Home, Gateway) {
    let all = [
        &[
            ("echo-server", &["mcp/response:*"][..]),
            (
                "untrusted-1",
                &["mcp/proposal:tools/call", "mcp/response:*"],
            ),
            (
                "trusted",
                &[
                    "mcp/request:tools/call",
                    "mcp/proposal:tools/call",
                    "mcp/response:*",
                ],
            ),
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
    assert_eq!(server.wait_for_line("serving"), "serving as echo-server");
    server
}

fn agent(gateway: &Gateway, who: &str, tool: &str, arguments: &str) -> Program {
    Program::start(example(
        "untrusted_agent",
        gateway,
        who,
        &["echo-server", tool, arguments],
    ))
}

/// The last result that an agent printed.
#[track_caller]
fn result(agent: Program) -> Value {
    let (code, printed) = agent.wait_for_exit();
    assert_eq!(code, 0, "{printed}");
    serde_json::from_str(printed.lines().last().unwrap()).unwrap_or_else(|_| panic!("{printed}"))
}

#[test]
fn the_echo_server_serves_and_rejects_envelopes_whose_kind_and_payload_disagree() {
    let (_home, gateway) = start(&[]);
    let mut server = echo_server(&gateway);
    let mut person = Socket::enter(&gateway, "person", "?mode=directed&echo=false");
    let rows = [
        ("echo", json!({ "text": "hello" }), json!("hello"), false),
        (
            "add",
            json!({ "a": 2, "b": 0.5 }),
            json!("{\"sum\":2.5}"),
            false,
        ),
        (
            "add",
            json!({ "a": 2 }),
            json!("`b` must be a number"),
            true,
        ),
    ];
    for (number, (tool, arguments, said, is_error)) in rows.into_iter().enumerate() {
        let id = format!("call {number}");
        person.call(&id, &["echo-server"], tool, arguments);
        let answer = person.receive_message();
        assert_eq!(
            (&answer["correlation_id"], &answer["from"]),
            (&json!(id), &json!("echo-server"))
        );
        let result = &answer["payload"]["result"];
        assert_eq!(result["content"][0]["text"], said, "{answer}");
        assert_eq!(result["isError"] == true, is_error, "{answer}");
    }
    let forged = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "add", "arguments": {} } });
    person.send(
        "mcp/request:tools/call:echo",
        "forged",
        &["echo-server"],
        json!({}),
        &forged,
    );
    let line = server.wait_for_line("ignored an envelope");
    assert!(
        line.starts_with("ignored an envelope of person: "),
        "{line}"
    );
    assert_eq!(person.receive_message()["payload"]["error"]["code"], -32600);
    // It reconnects by itself.
    gateway.signal("STOP");
    gateway.signal("CONT");
    person.call(
        "again",
        &["echo-server"],
        "echo",
        json!({ "text": "still here" }),
    );
    assert_eq!(
        person.receive_message()["payload"]["result"]["content"][0]["text"],
        "still here"
    );
}

#[test]
fn the_untrusted_agent_proposes_and_a_trusted_one_calls() {
    let (home, gateway) = start(&[]);
    let _server = echo_server(&gateway);
    let called = result(agent(&gateway, "trusted", "echo", r#"{"text":"mine"}"#));
    assert_eq!(called["content"][0]["text"], "mine");
    let mut proposing = agent(&gateway, "untrusted-1", "echo", r#"{"text":"please"}"#);
    let line = proposing.wait_for_line("proposed as ");
    assert!(line.ends_with("; waiting for a reviewer"), "{line}");
    let (url, person) = (gateway.url(), token("person"));
    let cli = |words: &[&str]| {
        let words = [&["proposals"], words, &["--url", &url, "--token", &person]].concat();
        home.run(&words).expect(0).stdout
    };
    let pending = || {
        gateway.pending(&home, &person)["id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    cli(&["approve", &pending(), "--yes"]);
    assert_eq!(result(proposing)["content"][0]["text"], "please");
    // The same by one call of the SDK, as each may.
    let caller = |who| Program::start(example("caller", &gateway, who, &[]));
    assert_eq!(
        result(caller("trusted"))["content"][0]["text"],
        "{\"sum\":3.0}"
    );
    let proposing = caller("untrusted-1");
    cli(&["approve", &pending(), "--yes"]);
    assert_eq!(result(proposing)["content"][0]["text"], "{\"sum\":3.0}");
    // After a rejection it exits with an error and prints the reason.
    let mut proposing = agent(&gateway, "untrusted-1", "echo", r#"{"text":"again"}"#);
    proposing.wait_for_line("proposed as ");
    cli(&["reject", &pending(), "--reason", "once is enough"]);
    let (code, printed) = proposing.wait_for_exit();
    assert!(
        code == 1 && printed.contains("once is enough"),
        "{code} {printed}"
    );
}

#[test]
fn the_reviewer_shows_the_whole_proposal_and_carries_out_the_decision() {
    let (home, gateway) = start(&[]);
    let _server = echo_server(&gateway);
    let mut reviewer = Program::start(example("reviewer", &gateway, "person", &[]));
    assert_eq!(reviewer.wait_for_line("reviewing"), "reviewing as person");
    let text = "{\"text\":\"a\u{202e}b\\u001b[2J\"}";
    let mut proposing = agent(&gateway, "untrusted-1", "echo", text);
    reviewer.wait_for_line("proposal ");
    for line in [
        "  by      untrusted-1",
        "  at      echo-server",
        "  method  tools/call",
        "  target  echo",
    ] {
        assert_eq!(reviewer.wait_for_line(line), line);
    }
    let shown = reviewer.wait_for_line("  params");
    assert!(
        shown.contains(r"a\u{202e}b\u001b[2J")
            && !shown.chars().any(participant::visible::is_hidden),
        "{shown}"
    );
    reviewer.type_line("y");
    reviewer.wait_for_line(r"a\u{202e}b");
    proposing.wait_for_line(r"a\u{202e}b\u001b[2J");
    assert_eq!(proposing.wait_for_exit().0, 0);
    let mut proposing = agent(&gateway, "untrusted-1", "add", r#"{"a":1,"b":2}"#);
    reviewer.wait_for_line("  target  add");
    reviewer.type_line("no");
    reviewer.wait_for_line("rejected");
    proposing.wait_for_line("the reviewer said no");
    assert_eq!(proposing.wait_for_exit().0, 1);
    let audit_log = AuditLog(&home);
    audit_log.has(
        "person",
        "mcp/proposal:tools/call:echo",
        "approved",
        "proposed by untrusted-1",
    );
    audit_log.has(
        "person",
        "mcp/proposal:tools/call:add",
        "rejected",
        "the reviewer said no",
    );
}

/// The examples and the command line over `wss://`, with a trusted and an untrusted certificate.
#[test]
fn participants_connect_over_tls() {
    let (home, gateway) = start(&[]);
    let front = TlsProxy::of(gateway.address());
    let other = TlsProxy::of(gateway.address());
    let trusted = home.write("trusted.pem", &front.pem);
    let secure = |scheme: &str, name: &str, who: &str, args: &[&str], port: u16| {
        let mut command = example(name, &gateway, who, args);
        command.env("PORTMOOT_URL", format!("{scheme}://localhost:{port}"));
        command.env("SSL_CERT_FILE", &trusted);
        Program::start(command)
    };
    let mut server = secure("wss", "echo_server", "echo-server", &[], front.port);
    server.wait_for_line("serving as echo-server");
    let call = ["echo-server", "echo", r#"{"text":"over TLS"}"#];
    let called = result(secure(
        "https",
        "untrusted_agent",
        "trusted",
        &call,
        front.port,
    ));
    assert_eq!(called["content"][0]["text"], "over TLS");
    let url = format!("wss://localhost:{}", front.port);
    let mut chat = home.command(&["chat", "--url", &url, "--token", &token("person")]);
    chat.env("SSL_CERT_FILE", &trusted);
    let mut chat = Program::start(chat);
    chat.type_line(r#"/call echo-server echo {"text":"typed over TLS"}"#);
    chat.wait_for_line("= typed over TLS");
    assert_eq!(chat.wait_for_exit().0, 0);
    // Another certificate for the same name, and the trusted one under another name.
    let (code, printed) =
        secure("wss", "untrusted_agent", "trusted", &call, other.port).wait_for_exit();
    assert!(
        code == 1 && printed.contains("certificate"),
        "{code} {printed}"
    );
    let mut elsewhere = example("untrusted_agent", &gateway, "trusted", &call);
    elsewhere
        .env("PORTMOOT_URL", format!("wss://127.0.0.1:{}", front.port))
        .env("SSL_CERT_FILE", &trusted);
    let (code, printed) = Program::start(elsewhere).wait_for_exit();
    assert!(
        code == 1 && printed.contains("certificate"),
        "{code} {printed}"
    );
}
