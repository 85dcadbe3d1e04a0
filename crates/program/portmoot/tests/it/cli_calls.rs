//! Calls, resources and prompts from the command line, through a running gateway.

use serde_json::{Value, json};

use crate::home::Home;
use crate::peer::{Peer, answer, small};
use crate::pty::run_at_terminal;
use crate::support::{Gateway, below, fixture, until};
use crate::ws::{people, token};

#[test]
fn a_call_without_a_person_shares_the_gateways_session_with_a_server() {
    let home = Home::new();
    let config = fixture("a", &["--era", "legacy"]);
    let gateway = Gateway::start(&home, &config);
    gateway.ready("a");
    let call = |more: &[&'static str]| [&["tools", "call", "a_record", "--json"], more].concat();
    let pid = |stdout: &str| -> Value { serde_json::from_str(stdout).unwrap() };
    let shared = gateway.server("a")["pid"].clone();
    for args in [call(&[]), call(&["--no-input"])] {
        let called = pid(&home.run(&args).expect(0).stdout);
        assert_eq!(called["structuredContent"]["pid"], shared, "{called}");
    }
    let called = pid(&run_at_terminal(&home, &call(&["--no-input"]), &[])
        .expect(0)
        .stdout);
    assert_eq!(called["structuredContent"]["pid"], shared);
    assert_eq!(below(gateway.pid(), "fixture").len(), 1);
    // With a person at the terminal the server may ask, so the session has a process of its own.
    let called = pid(&run_at_terminal(&home, &call(&[]), &[]).expect(0).stdout);
    assert_ne!(called["structuredContent"]["pid"], shared);
}

/// A server of 2025-11-25 whose one tool must run as a task.
fn worker() -> Peer {
    Peer::stdio(|message| {
        let task = |status: &str| {
            json!({ "taskId": "job-1", "status": status, "createdAt": "2026-01-01T00:00:00Z",
                "lastUpdatedAt": "2026-01-01T00:00:00Z", "ttl": 60_000, "pollInterval": 50 })
        };
        let params = &message["params"];
        let tools = r#"[{"name":"job","inputSchema":{"type":"object","properties":{"count":{"type":"integer"}}},"execution":{"taskSupport":"required"}}]"#;
        let said = match message["method"].as_str() {
            Some("initialize") => {
                let tasks =
                    json!({ "requests": { "tools": { "call": {} } }, "list": {}, "cancel": {} });
                let result = json!({ "protocolVersion": "2025-11-25", "serverInfo": { "name": "w", "version": "1" },
                    "capabilities": { "tools": {}, "tasks": tasks } });
                Some(answer(message, &result.to_string()))
            }
            Some("tools/call") if params["task"].is_object() => Some(answer(
                message,
                &json!({ "task": task("working") }).to_string(),
            )),
            Some("tools/call") => {
                let content = json!([{ "type": "text", "text": "needs a task" }]);
                Some(answer(
                    message,
                    &json!({ "isError": true, "content": content }).to_string(),
                ))
            }
            Some("tasks/get") => Some(answer(message, &task("completed").to_string())),
            Some("tasks/result") => {
                let content = json!([{ "type": "text", "text": "the job is done" }]);
                Some(answer(message, &json!({ "content": content }).to_string()))
            }
            _ => small(message, tools),
        };
        said.into_iter().map(String::into_bytes).collect()
    })
}

#[test]
fn a_tool_that_requires_a_task_is_called_as_one() {
    let home = Home::new();
    let server = worker();
    let gateway = Gateway::start(&home, &server.child("w", "w"));
    gateway.ready("w");
    let ran = home.run(&["tools", "call", "w_job", "count=3"]).expect(0);
    assert_eq!(ran.stdout, "the job is done\n", "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the server runs this call as a task"),
        "{}",
        ran.stderr
    );
    let sent = server.received().join("\n");
    assert!(
        sent.contains(r#""count":3"#) && sent.contains(r#""task":{"#),
        "{sent}"
    );
    assert_eq!(
        home.run(&["tools", "call", "w_job", "--quiet"])
            .expect(0)
            .stderr,
        ""
    );
}

#[test]
fn a_call_that_needs_approval_says_so_at_once() {
    let (home, config) = people(&[
        ("agent", &["mcp/proposal:*"]),
        ("boss", &["mcp/*", "portmoot/*"]),
    ]);
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    gateway.ready("a");
    let (url, agent, boss) = (gateway.url(), token("agent"), token("boss"));
    let call = [
        "tools", "call", "a_echo", "text=hi", "--url", &url, "--token", &agent,
    ];
    let waiting = home
        .command(&call)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    let waiting = waiting.unwrap();
    let pending = gateway.pending(&home, &boss);
    let id = pending["id"].as_str().unwrap();
    home.run(&[
        "proposals",
        "approve",
        id,
        "--yes",
        "--no-wait",
        "--url",
        &url,
        "--token",
        &boss,
    ])
    .expect(0);
    let ran = crate::home::Ran::from(waiting.wait_with_output().unwrap()).expect(0);
    assert_eq!(ran.stdout, "hi\n", "{}", ran.stderr);
    let shown =
        format!("it is proposed as {id} (portmoot proposals show {id}); waiting for a decision");
    assert!(ran.stderr.contains(&shown), "{}", ran.stderr);
}

#[test]
fn resources_and_prompts_are_listed_read_and_got() {
    let home = Home::new();
    let gateway = Gateway::start(&home, &fixture("a", &[]));
    gateway.ready("a");
    let run = |args: &[&str]| home.run(args).expect(0).stdout;
    let listed = run(&["resources", "ls"]);
    assert!(
        listed.starts_with("URI ") && listed.contains("test://static-text"),
        "{listed}"
    );
    let some = run(&["resources", "ls", "*static-text*"]);
    assert_eq!(some.lines().count(), 2, "{some}");
    let json: Value = serde_json::from_str(&run(&["resources", "ls", "--json"])).unwrap();
    assert!(json["resources"].as_array().unwrap().len() > 2, "{json}");
    let text = run(&["resources", "read", "test://static-text"]);
    assert!(!text.is_empty());
    let read: Value =
        serde_json::from_str(&run(&["resources", "read", "test://static-text", "--json"])).unwrap();
    assert_eq!(read["contents"][0]["text"], text.as_str());
    // Bytes are written as they are.
    let bytes = home
        .command(&["resources", "read", "test://static-binary"])
        .output()
        .unwrap()
        .stdout;
    assert!(bytes.starts_with(b"\x89PNG"), "{bytes:?}");
    home.run(&["resources", "read", "test://absent"]).expect(5);
    let prompts = run(&["prompts", "ls"]);
    assert!(
        prompts.starts_with("NAME ") && prompts.contains("a_test_simple_prompt"),
        "{prompts}"
    );
    assert!(prompts.contains("arg1"), "{prompts}");
    let got = run(&[
        "prompts",
        "get",
        "a_test_prompt_with_arguments",
        "arg1=one",
        "arg2=two",
    ]);
    assert!(got.starts_with("user: ") && got.contains("one"), "{got}");
    home.run(&["prompts", "get", "a_test_prompt_with_arguments", "arg1"])
        .expect(2);
    home.run(&["prompts", "get", "absent"]).expect(5);
}

#[test]
fn a_token_is_rotated_without_a_gap() {
    let (home, config) = people(&[
        ("boss", &["mcp/*", "chat", "portmoot/*"]),
        ("clerk", &["portmoot/tokens"]),
    ]);
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    gateway.ready("a");
    let (url, boss) = (gateway.url(), token("boss"));
    let run = |args: &[&str]| home.run(&[args, &["--url", &url, "--token", &boss]].concat());
    let first = run(&[
        "token",
        "new",
        "ci",
        "--capability",
        "mcp/request:tools/call:a_echo",
    ])
    .expect(0)
    .stdout;
    let rotate = |overlap: &str| run(&["token", "rotate", "ci", "--overlap", overlap]).expect(0);
    let status = |token: &str| gateway.get("/api/v1/tools", Some(token.trim())).status;
    let second = rotate("1h").stdout;
    assert_eq!([status(&first), status(&second)], [200, 200]);
    let third = rotate("1s");
    assert!(
        third.stderr.contains("another 1s at most"),
        "{}",
        third.stderr
    );
    assert_eq!(
        [status(&first), status(&third.stdout)],
        [401, 200],
        "two are valid at most"
    );
    until("the second one has ended", || {
        (status(&second) == 401).then_some(())
    });
    assert_eq!(status(&third.stdout), 200);
    run(&["token", "rotate", "absent"]).expect(5);
    // As new tokens: not by a participant that holds less.
    let clerk = token("clerk");
    home.run(&["token", "rotate", "ci", "--url", &url, "--token", &clerk])
        .expect(3);
    gateway.stop().expect(0);
    // On the data directory, without a gateway.
    home.run(&[
        "token",
        "rotate",
        "ci",
        "--data-dir",
        "data",
        "--config",
        "portmoot.toml",
    ])
    .expect(0);
}

/// A server whose tool has members, blanks and escapes as no program orders them, and arguments
/// from the last letter to the first.
fn unordered() -> (Peer, String) {
    let tool = r#"{"inputSchema": {"type":"object", "required":["text"],"properties":{"text":{"type":"string"},"mid":{"type":["integer","null"]},"altitude":{}}},"description":"Says it. \u00e9nd more.",  "name":"say"}"#;
    let listed = format!("[{tool}]");
    let peer = Peer::stdio(move |message| {
        small(message, &listed)
            .map(String::into_bytes)
            .into_iter()
            .collect::<Vec<_>>()
    });
    (peer, tool.to_owned())
}

#[test]
fn tokens_are_counted_of_the_bytes_as_they_are_and_of_arguments_in_their_order() {
    let (home, (peer, tool)) = (Home::new(), unordered());
    let gateway = Gateway::start(&home, &(peer.child("u", "") + "[topics.main]\n"));
    gateway.ready("u");
    let listed = crate::support::Client::plain(&gateway);
    let listed = listed.post(&listed.request("tools/list", json!({}))).body;
    let begin = listed.find('[').unwrap();
    let tools = &listed[begin..=listed.rfind(']').unwrap()];
    assert!(
        tools.contains(tool.split_once("\"name\"").unwrap().0),
        "the gateway lists it as it is: {tools}"
    );
    let counted: Value =
        serde_json::from_str(&home.run(&["tokens", "--json"]).expect(0).stdout).unwrap();
    let form = |name: &str| {
        let forms = counted["forms"].as_array().unwrap();
        forms
            .iter()
            .find(|form| form["form"] == name)
            .unwrap_or_else(|| panic!("{counted}"))
            .clone()
    };
    let tokens = |text: &str| {
        tiktoken_rs::cl100k_base()
            .unwrap()
            .encode_ordinary(text)
            .len()
    };
    let schema = tool
        .split_once("\"inputSchema\": ")
        .unwrap()
        .1
        .split_once(",\"description\"")
        .unwrap()
        .0;
    for (name, text) in [
        (
            "JSON-RPC, as tools/list has it",
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":{tools}}}}}"#),
        ),
        (
            "name, description, schema as JSON",
            format!(
                r#"[{{"name":"say","description":"Says it. \u00e9nd more.","inputSchema":{schema}}}]"#
            ),
        ),
        (
            "signatures",
            "say(text: string, mid?: integer|null, altitude?: any)".to_owned(),
        ),
        ("names", "say".to_owned()),
    ] {
        let form = form(name);
        assert_eq!(
            (&form["bytes"], &form["tokens"]),
            (&json!(text.len()), &json!(tokens(&text))),
            "{name}"
        );
    }
    let sorted = "say(altitude?: any, mid?: integer|null, text: string)";
    assert_ne!(
        form("signatures")["tokens"],
        json!(tokens(sorted)),
        "the order of another program"
    );
}

#[test]
fn a_token_in_the_environment_is_not_in_the_list_of_processes() {
    let secret = token("boss");
    let (home, config) = people(&[("boss", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(config + &fixture("a", &[])));
    let with_token = Home::beside(&home).env("PORTMOOT_TOKEN", &secret);
    let mut relay = crate::socket::Piped::with(with_token, &["stdio", "--url", &gateway.url()]);
    relay.send(
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25",
            "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } } })
        .to_string(),
    );
    assert!(relay.json()["result"].is_object());
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", relay.pid())).unwrap();
    assert!(
        line.contains("--url") && !line.contains(&secret),
        "{line:?}"
    );
    // And the flag says what it costs, wherever it is.
    for command in [&["stdio", "--help"][..], &["tools", "ls", "--help"]] {
        let help = home
            .run(command)
            .expect(0)
            .stdout
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        assert!(
            help.contains("Other users of the machine see it in the list of processes"),
            "{help}"
        );
    }
}
