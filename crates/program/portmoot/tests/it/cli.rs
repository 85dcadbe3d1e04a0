//! Command line tests: usage, completions, requests to a fake gateway.

use serde_json::Value;

use crate::fake_gateway::{Seen, gateway};
use crate::home::Home;

const JSON: &str = "application/json";

#[test]
fn usage_help_and_scripts() {
    let home = Home::new();
    home.run(&[]).expect(2);
    home.run(&["no-such-command"]).expect(2);
    home.run(&["tools", "call"]).expect(2);
    let version = home.run(&["--version"]).expect(0).stdout;
    assert!(version.starts_with("portmoot 0."), "{version}");
    let long = home.run(&["version"]).expect(0).stdout;
    assert!(
        long.starts_with(&version) && long.contains("2024-11-05") && long.contains("2026-07-28"),
        "{long}"
    );
    let json: Value =
        serde_json::from_str(&home.run(&["version", "--json"]).expect(0).stdout).unwrap();
    assert_eq!(
        format!("portmoot {}\n", json["version"].as_str().unwrap()),
        version
    );
    assert_eq!(json["mcp"].as_array().unwrap().len(), 5);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(
            home.run(&["completions", shell])
                .expect(0)
                .stdout
                .contains("portmoot"),
            "{shell}"
        );
    }
    assert!(home.run(&["man"]).expect(0).stdout.starts_with(".ie"));
    home.run(&["man", "--dir", "pages"]).expect(0);
    assert!(home.path().join("pages/portmoot-tools-call.1").exists());
}

#[test]
fn lists_are_tables_or_json_with_hidden_characters_shown() {
    let body = r#"{"servers":[{"name":"files","state":"ready","transport":"stdio","era":"legacy","tools":11,"sessions":3,"processes":4,"memory_bytes":20971521,"users":["ann","b\u001b"]},
        {"name":"new","state":"ready","transport":"http","era":"legacy+modern","version":"2026-07-28","tools":2},
        {"name":"odd\u001b[2J","state":"down","reason":"exited"}]}"#;
    let (url, seen) = gateway(move |_| (200, JSON, body.into()));
    let home = Home::new().env("PORTMOOT_TOKEN", "pm_secret");
    let ran = home.run(&["servers", "ls", "--url", &url]).expect(0);
    assert_eq!(
        ran.stdout,
        "NAME          STATE  TRANSPORT  PROTOCOL    TOOLS  SESSIONS  PROCESSES  MEMORY  USED BY       REASON\n\
         files         ready  stdio      legacy      11     3         4          21 MiB  ann, b\\u{1b}  -\n\
         new           ready  http       2026-07-28  2      -         -          -       -             -\n\
         odd\\u{1b}[2J  down   -          -           -      -         -          -       -             exited\n"
    );
    let request = seen.recv().unwrap();
    assert_eq!(request.line, "GET /api/v1/servers HTTP/1.1");
    assert!(
        request.headers.contains("authorization: bearer pm_secret"),
        "{}",
        request.headers
    );
    let json = home
        .run(&["servers", "ls", "--json", "--url", &url])
        .expect(0)
        .stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap()["servers"][0]["tools"],
        11
    );
}

#[test]
fn refusals_have_their_exit_codes() {
    let home = Home::new();
    for (status, code) in [(403, 3), (404, 5), (429, 3), (500, 1)] {
        let body = r#"{"code":"some_code","message":"from the gateway","hint":"do this"}"#;
        let (url, _seen) = gateway(move |_| (status, JSON, body.into()));
        let ran = home
            .run(&["tools", "show", "a/b", "--url", &url])
            .expect(code);
        assert_eq!(
            ran.stderr,
            "error: from the gateway [some_code]\nhint: do this\n"
        );
        let ran = home
            .run(&["tools", "show", "a/b", "--json", "--url", &url])
            .expect(code);
        assert_eq!(
            serde_json::from_str::<Value>(&ran.stderr).unwrap()["code"],
            "some_code"
        );
    }
    let (url, _seen) = gateway(|_| {
        (
            401,
            JSON,
            r#"{"code":"unauthenticated","message":"a token is needed"}"#.into(),
        )
    });
    let ran = home.run(&["tools", "ls", "--url", &url]).expect(4);
    assert!(
        ran.stderr
            .contains("hint: pass a token with --token TOKEN or PORTMOOT_TOKEN"),
        "{}",
        ran.stderr
    );
    home.run(&["tools", "ls", "--url", "http://127.0.0.1:1"])
        .expect(1);
    home.run(&["tools", "ls", "--url", "nonsense"]).expect(2);
}

/// Answers of a gateway to a tool call during which the server requests input.
fn conversation(seen: &Seen) -> (u16, &'static str, String) {
    let message: Value = serde_json::from_str(&seen.body).unwrap_or_default();
    let result = match message["method"].as_str() {
        Some("initialize") => {
            r#"{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}"#
        }
        Some("tools/call") => {
            let ask = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}"#;
            let result = r#"{"content":[{"type":"text","text":"done"}],"isError":false,"n":12345678901234567890}"#;
            let events = format!(
                "id: 1\ndata:\n\ndata: {ask}\n\ndata: {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{result}}}\n\n"
            );
            return (200, "text/event-stream", events);
        }
        _ => return (202, JSON, String::new()),
    };
    (
        200,
        JSON,
        format!(
            r#"{{"jsonrpc":"2.0","id":{},"result":{result}}}"#,
            message["id"]
        ),
    )
}

#[test]
fn a_tool_is_called_and_questions_are_declined_without_a_terminal() {
    let home = Home::new();
    let (url, seen) = gateway(conversation);
    let args = [
        "tools",
        "call",
        "files_read",
        "path=/tmp",
        "n:=12345678901234567890",
        "--url",
        &url,
    ];
    let ran = home.run(&args).expect(0);
    assert_eq!(ran.stdout, "done\n");
    assert!(ran.stderr.contains("declined"), "{}", ran.stderr);
    let requests: Vec<Seen> = seen.try_iter().collect();
    let sent = |part: &str| {
        requests
            .iter()
            .find(|seen| seen.line.starts_with("POST") && seen.body.contains(part))
    };
    sent("\"initialize\"").unwrap();
    let initialized = sent("notifications/initialized").unwrap();
    assert!(
        initialized.headers.contains("mcp-session-id: s1"),
        "{initialized:?}"
    );
    let call = sent("tools/call").unwrap();
    assert!(
        call.body
            .contains(r#""arguments":{"path":"/tmp","n":12345678901234567890}"#),
        "{call:?}"
    );
    assert!(call.headers.contains("mcp-session-id: s1"), "{call:?}");
    let answer: Value = serde_json::from_str(&sent("\"action\"").unwrap().body).unwrap();
    assert_eq!(
        (answer["id"].as_str(), answer["result"]["action"].as_str()),
        (Some("q"), Some("decline"))
    );
    let json = home
        .run(&["tools", "call", "x", "--json", "--url", &url])
        .expect(0)
        .stdout;
    assert!(json.contains(r#""n":12345678901234567890"#), "{json}");
}

#[test]
fn failing_and_unknown_tools_have_exit_codes() {
    let home = Home::new();
    let ran = home
        .run(&["tools", "call", "x", "--url", "http://127.0.0.1:1"])
        .expect(1);
    assert!(
        ran.stderr
            .contains("cannot connect to a gateway at 127.0.0.1:1"),
        "{}",
        ran.stderr
    );
    let (url, _seen) = gateway(|_| (401, JSON, String::new()));
    let ran = home.run(&["tools", "call", "x", "--url", &url]).expect(4);
    assert!(
        ran.stderr
            .contains("hint: pass a token with --token TOKEN or PORTMOOT_TOKEN"),
        "{}",
        ran.stderr
    );
    let (url, _seen) = gateway(|_| (500, JSON, String::new()));
    let ran = home.run(&["tools", "call", "x", "--url", &url]).expect(1);
    assert!(ran.stderr.contains("[gateway_broken]"), "{}", ran.stderr);
    home.run(&["tools", "call", "demo_echo", "--topic", "nope"])
        .expect(5);
    let failing = |seen: &Seen| {
        match seen.body.contains("tools/call") {
        true => (
            200,
            JSON,
            r#"{"jsonrpc":"2.0","id":2,"result":{"isError":true,"content":[{"type":"text","text":"no"}]}}"#
                .into(),
        ),
        false => conversation(seen),
    }
    };
    let (url, _seen) = gateway(failing);
    assert_eq!(
        home.run(&["tools", "call", "x", "--url", &url])
            .expect(1)
            .stdout,
        "no\n"
    );
    let unknown = |seen: &Seen| {
        match seen.body.contains("tools/call") {
        true => (200, JSON, r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"unknown tool","data":{"code":"unknown_target"}}}"#.into()),
        false => conversation(seen),
    }
    };
    let (url, _seen) = gateway(unknown);
    let ran = home.run(&["tools", "call", "x", "--url", &url]).expect(5);
    assert!(
        ran.stderr
            .starts_with("error: there is no tool `x` [unknown_target]\nhint: list"),
        "{}",
        ran.stderr
    );
}
