//! The example programs for Python with a real gateway, beside those for Rust.

use serde_json::{Value, json};

use super::python_as;
use crate::home::Home;
use crate::program::{Program, example};
use crate::support::Gateway;
use crate::tls::TlsProxy;
use crate::ws::{Socket, people, token};

fn start() -> (Home, Gateway) {
    let (home, config) = people(&[
        ("echo-server", &["mcp/response:*"]),
        (
            "untrusted-1",
            &["mcp/proposal:tools/call", "mcp/response:*"],
        ),
        ("trusted", &["mcp/request:tools/call", "mcp/response:*"]),
        ("person", &["mcp/*", "chat"]),
        ("friend", &["chat"]),
    ]);
    let gateway = Gateway::start(&home, &config);
    (home, gateway)
}

fn run(gateway: &Gateway, script: &str, who: &str, args: &[&str]) -> Program {
    Program::start(python_as(script, &gateway.url(), who, args))
}

#[test]
fn the_python_agent_proposes_and_a_trusted_one_calls() {
    let (_home, gateway) = start();
    // Whatever the language of the server.
    for command in [
        python_as(
            "examples/echo_server.py",
            &gateway.url(),
            "echo-server",
            &[],
        ),
        example("echo_server", &gateway, "echo-server", &[]),
    ] {
        let mut server = Program::start(command);
        server.wait_for_line("serving as echo-server");
        let call = ["echo-server", "echo", r#"{"text":"mine"}"#];
        let (code, printed) =
            run(&gateway, "examples/untrusted_agent.py", "trusted", &call).wait_for_exit();
        assert_eq!(code, 0, "{printed}");
        let result: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        assert_eq!(result["content"][0]["text"], "mine");
        let mut reviewer = run(&gateway, "examples/reviewer.py", "person", &["echo"]);
        reviewer.wait_for_line("reviewing as person");
        for (tool, arguments, expect) in [
            ("echo", r#"{"text":"please"}"#, Ok("please")),
            (
                "add",
                r#"{"a":1,"b":2}"#,
                Err("only echo may be called here"),
            ),
        ] {
            let call = ["echo-server", tool, arguments];
            let mut agent = run(
                &gateway,
                "examples/untrusted_agent.py",
                "untrusted-1",
                &call,
            );
            agent.wait_for_line("; waiting for a reviewer");
            reviewer.wait_for_line(&format!("decided about {tool} of untrusted-1"));
            let (code, printed) = agent.wait_for_exit();
            match expect {
                Ok(text) => assert!(code == 0 && printed.contains(text), "{code} {printed}"),
                Err(why) => assert!(code == 1 && printed.contains(why), "{code} {printed}"),
            }
        }
    }
}

#[test]
fn a_python_reviewer_that_comes_late_decides_what_waits() {
    let (home, gateway) = start();
    let mut server = run(&gateway, "examples/echo_server.py", "echo-server", &[]);
    server.wait_for_line("serving");
    let call = ["echo-server", "echo", r#"{"text":"early"}"#];
    let mut agent = run(
        &gateway,
        "examples/untrusted_agent.py",
        "untrusted-1",
        &call,
    );
    agent.wait_for_line("; waiting for a reviewer");
    gateway.pending(&home, &token("person"));
    let mut reviewer = run(&gateway, "examples/reviewer.py", "person", &["echo"]);
    reviewer.wait_for_line("approved echo of untrusted-1, which waited");
    let (code, printed) = agent.wait_for_exit();
    assert!(code == 0 && printed.contains("early"), "{code} {printed}");
}

/// With a trusted certificate, with another one, and with the trusted one under another name.
#[test]
fn python_participants_connect_over_tls() {
    let (home, gateway) = start();
    let front = TlsProxy::of(gateway.address());
    let other = TlsProxy::of(gateway.address());
    let trusted = home.write("trusted.pem", &front.pem);
    let secure = |script: &str, who: &str, args: &[&str], url: &str| {
        let mut command = python_as(script, url, who, args);
        command.env("SSL_CERT_FILE", &trusted);
        Program::start(command)
    };
    let good = format!("wss://localhost:{}", front.port);
    let mut server = secure("examples/echo_server.py", "echo-server", &[], &good);
    server.wait_for_line("serving as echo-server");
    let call = ["echo-server", "echo", r#"{"text":"over TLS"}"#];
    let (code, printed) =
        secure("examples/untrusted_agent.py", "trusted", &call, &good).wait_for_exit();
    assert!(
        code == 0 && printed.contains("over TLS"),
        "{code} {printed}"
    );
    for url in [
        format!("https://localhost:{}", other.port),
        format!("https://127.0.0.1:{}", front.port),
    ] {
        let (code, printed) =
            secure("examples/untrusted_agent.py", "trusted", &call, &url).wait_for_exit();
        assert!(
            code == 1 && printed.contains("certificate"),
            "{url}: {code} {printed}"
        );
    }
}

#[test]
fn both_languages_say_hello() {
    let (_home, gateway) = start();
    // The example may have to be built first; until then no socket is open that answers no ping.
    let programs = [
        (
            python_as("examples/hello.py", &gateway.url(), "person", &[]),
            "hello from Python",
        ),
        (example("hello", &gateway, "person", &[]), "hello from Rust"),
    ];
    let mut friend = Socket::enter(&gateway, "friend", "?echo=false");
    for (program, words) in programs {
        let mut program = Program::start(program);
        let here = program.wait_for_line("here as person, with ");
        assert!(
            here.contains("friend") && here.contains("portmoot"),
            "{here}"
        );
        let said = friend.receive_until(|seen| seen["kind"] == "chat");
        assert_eq!(said["payload"]["text"], words);
        friend.send(
            "chat",
            words,
            &[],
            json!({}),
            &json!({ "text": "welcome\u{1b}[2J" }),
        );
        program.wait_for_line(r"friend: welcome\u{1b}[2J");
        assert_eq!(program.wait_for_exit().0, 0);
    }
}
