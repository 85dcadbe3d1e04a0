//! Coding agents of other companies behind eleven servers from npm and PyPI. What each agent sends
//! until its first call was recorded by `bench/clients/run`, which runs the agents themselves; here
//! a stand-in sends the same bytes.

use std::path::Path;
use std::time::{Duration, Instant};

use harness::repository;
use serde_json::{Value, json};

use crate::http::{Connection, Events, Reply};
use crate::support::{Gateway, below, until};
use crate::twelve;

const AGENTS: [&str; 4] = ["claude-code", "claude-code-2.1.197", "codex", "gemini-cli"];

/// The least patient agent leaves a list after 5 s.
const PATIENCE: Duration = Duration::from_secs(3);

/// A stand-in for an agent.
struct Agent<'g> {
    gateway: &'g Gateway,
    sends: Vec<Value>,
    session: Option<String>,
    /// Streams that stay open: that of a legacy session, or the answer to `subscriptions/listen`.
    streams: Vec<Events>,
    tools: Vec<String>,
}

impl<'g> Agent<'g> {
    /// Sends what this agent sends, up to its first call.
    fn open(gateway: &'g Gateway, name: &str) -> Agent<'g> {
        let file = repository().join(format!("tests/third-party/declared/{name}.json"));
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let sends = recorded["sends"].as_array().unwrap().clone();
        let mut agent = Agent {
            gateway,
            sends: sends.clone(),
            session: None,
            streams: Vec::new(),
            tools: Vec::new(),
        };
        for sent in &sends {
            let method = sent["message"]["method"].as_str().unwrap_or("");
            if sent["http"] == "GET" || method == "subscriptions/listen" {
                agent.streams.push(agent.stream(sent));
            } else if method != "tools/call" {
                agent.send(sent);
            }
        }
        agent
    }

    fn headers(&self, sent: &Value) -> Vec<(String, String)> {
        let recorded = sent["headers"].as_object().unwrap().iter();
        let recorded =
            recorded.map(|(name, value)| (name.clone(), value.as_str().unwrap().to_owned()));
        recorded
            .chain(
                self.session
                    .iter()
                    .map(|id| ("mcp-session-id".to_owned(), id.clone())),
            )
            .collect()
    }

    fn stream(&self, sent: &Value) -> Events {
        let headers = self.headers(sent);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let body = if sent["message"].is_null() {
            String::new()
        } else {
            sent["message"].to_string()
        };
        let http = sent["http"].as_str().unwrap();
        Connection::open(self.gateway.address()).stream(http, "/mcp", &headers, &body)
    }

    /// Sends one of its messages, and waits for the answer no longer than it.
    #[track_caller]
    fn send(&mut self, sent: &Value) -> Reply {
        let headers = self.headers(sent);
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let began = Instant::now();
        let mut connection = Connection::open(self.gateway.address());
        let reply = connection.exchange("POST", "/mcp", &headers, &sent["message"].to_string());
        let (method, took) = (&sent["message"]["method"], began.elapsed());
        assert!(took < PATIENCE, "{method} was answered after {took:?}");
        assert!([200, 202].contains(&reply.status), "{method}: {reply:?}");
        match method.as_str() {
            Some("initialize") => {
                self.session = Some(reply.header("mcp-session-id").unwrap().to_owned())
            }
            Some("tools/list") => {
                let answer = reply.json();
                let tools = answer["result"]["tools"]
                    .as_array()
                    .unwrap_or_else(|| panic!("{answer}"));
                self.tools = tools
                    .iter()
                    .map(|tool| tool["name"].as_str().unwrap().to_owned())
                    .collect();
            }
            _ => {}
        }
        reply
    }

    /// Lists the tools again, as it did.
    #[track_caller]
    fn list(&mut self) -> &[String] {
        let list = self
            .sends
            .iter()
            .find(|sent| sent["message"]["method"] == "tools/list")
            .unwrap()
            .clone();
        self.send(&list);
        &self.tools
    }

    /// What it declares.
    fn declares(&self, capability: &str) -> bool {
        let params = &self.sends[0]["message"]["params"];
        let legacy = params["capabilities"].get(capability);
        let modern = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get(capability);
        legacy.or(modern).is_some()
    }

    /// Calls a tool as it does, answers what is asked, and returns the result as text.
    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> String {
        let mut sent = self
            .sends
            .iter()
            .find(|sent| sent["message"]["method"] == "tools/call")
            .unwrap()
            .clone();
        if sent["headers"].get("mcp-name").is_some() {
            sent["headers"]["mcp-name"] = json!(tool);
        }
        sent["message"]["params"]["name"] = json!(tool);
        sent["message"]["params"]["arguments"] = arguments.clone();
        loop {
            let called = self.stream(&sent);
            let answer = self.answered(&sent, &called);
            if answer["result"]["resultType"] != "input_required" {
                return answer["result"].to_string();
            }
            // An agent of the modern era comes back with what was asked for.
            let asked = answer["result"]["inputRequests"].as_object().unwrap();
            let answers = asked
                .iter()
                .map(|(id, question)| (id.clone(), answer_to(&question["method"])));
            sent["message"]["params"]["inputResponses"] = answers.collect();
            sent["message"]["params"]["requestState"] = answer["result"]["requestState"].clone();
        }
    }

    /// The answer to a call; questions of the legacy era are answered before it, on whichever
    /// stream they come.
    #[track_caller]
    fn answered(&self, sent: &Value, called: &Events) -> Value {
        until("an answer", || {
            let mut messages = called.so_far();
            messages.extend(self.streams.iter().flat_map(Events::so_far));
            for question in messages
                .iter()
                .filter(|message| message["method"].is_string() && !message["id"].is_null())
            {
                let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": answer_to(&question["method"]) });
                let reply = self.stream(
                    &json!({ "http": "POST", "headers": sent["headers"], "message": answer }),
                );
                assert_eq!(reply.head().status, 202);
            }
            messages.into_iter().find(|message| {
                message["id"] == sent["message"]["id"] && message["method"].is_null()
            })
        })
    }
}

/// What the user of an agent answers to a question with this method.
fn answer_to(method: &Value) -> Value {
    match method.as_str().unwrap() {
        "elicitation/create" => json!({ "action": "accept", "content": { "name": "Ada" } }),
        "roots/list" => json!({ "roots": [{ "uri": "file:///work/of-the-agent" }] }),
        _ => json!({}),
    }
}

/// The servers that have no tool in a list.
fn missing<'n>(tools: &[String], names: &'n [String]) -> Vec<&'n String> {
    names
        .iter()
        .filter(|name| {
            !tools
                .iter()
                .any(|tool| tool.starts_with(&format!("{name}_")))
        })
        .collect()
}

#[test]
fn agents_get_every_tool_at_once_call_and_answer_forms() {
    let (home, names) = twelve::eleven();
    let gateway = Gateway::start_with(
        &home,
        &["-v", "--data-dir", "state", "--mcp-config", "mcp.json"],
    );
    let known = |name: &String| {
        gateway.server(name)["tools"]
            .as_u64()
            .is_some_and(|tools| tools > 0)
    };
    until("all servers are listed", || {
        names.iter().all(known).then_some(())
    });
    for name in AGENTS {
        let before = below(gateway.pid(), "/.deps/");
        // The server that the agents before it used is warmed for it.
        let is_new =
            |pid: &u64| !before.contains(pid) && !below(gateway.pid(), "everything").contains(pid);
        let mut agent = Agent::open(&gateway, name);
        assert_eq!(missing(&agent.tools, &names), [""; 0], "{name}");
        let started = below(gateway.pid(), "/.deps/")
            .iter()
            .filter(|pid| is_new(pid))
            .count();
        assert_eq!(started, 0, "{name} has started servers by its lists");
        assert!(
            agent
                .call("everything_echo", &json!({ "message": "hi" }))
                .contains("Echo: hi")
        );
        for (capability, tool, words) in [
            (
                "elicitation",
                "everything_trigger-elicitation-request",
                "Name: Ada",
            ),
            (
                "roots",
                "everything_get-roots-list",
                "file:///work/of-the-agent",
            ),
        ] {
            if agent.declares(capability) {
                // The server lists this tool only for those that can be asked: from the first use
                // on.
                until(tool, || {
                    agent.list().contains(&tool.to_owned()).then_some(())
                });
                let said = agent.call(tool, &json!({}));
                assert!(said.contains(words), "{name}: {said}");
            } else {
                assert!(
                    !agent.list().contains(&tool.to_owned()),
                    "{name} cannot be asked"
                );
            }
        }
    }
}

#[test]
#[ignore = "installs four coding agents (1.1 GB); by hand: cargo nextest run -p portmoot --run-ignored only coding_agents"]
fn the_agents_themselves_do_so_too() {
    let run = repository().join("bench/clients/run");
    let ran = std::process::Command::new(run)
        .args(["--portmoot", env!("CARGO_BIN_EXE_portmoot")])
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&ran.stdout).into_owned();
    println!("{report}");
    assert!(
        ran.status.success(),
        "{report}{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

#[test]
fn conditional_tools_reach_a_client_after_its_first_use_with_a_notice() {
    let server = harness::deps().server_everything("stdio");
    let file =
        json!({ "mcpServers": { "everything": { "command": server[0], "args": server[1..] } } });
    let home = crate::home::Home::new();
    home.write("mcp.json", &file.to_string());
    let gateway = Gateway::start_with(
        &home,
        &["-v", "--data-dir", "state", "--mcp-config", "mcp.json"],
    );
    let conditional = [
        "get-roots-list",
        "trigger-elicitation-request",
        "trigger-sampling-request",
    ];
    let conditional = conditional.map(|tool| format!("everything_{tool}"));
    let has = |tools: &[String]| {
        conditional
            .iter()
            .filter(|tool| tools.contains(tool))
            .count()
    };
    until("it is listed", || {
        (gateway.server("everything")["tools"].as_u64() > Some(0)).then_some(())
    });
    let able = json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} });

    let client = crate::support::Client::open(&gateway, None, "/mcp", able.clone());
    let stream = client.listen();
    assert_eq!(
        has(&client.names("tools")),
        0,
        "it has not used the server yet"
    );
    client.call("everything_echo", json!({ "message": "hi" }));
    until("they are announced", || {
        stream.next_of("notifications/tools/list_changed");
        (has(&client.names("tools")) == conditional.len()).then_some(())
    });
    let plain = crate::support::Client::plain(&gateway);
    plain.call("everything_echo", json!({ "message": "hi" }));
    assert_eq!(has(&plain.names("tools")), 0, "this client cannot be asked");

    // A modern client, in a gateway that is not used yet.
    let params = |mut params: Value| {
        params["_meta"] = json!({ "io.modelcontextprotocol/clientCapabilities": able });
        params
    };
    let home = crate::home::Home::new();
    home.write("mcp.json", &file.to_string());
    let gateway = Gateway::start_with(
        &home,
        &["-v", "--data-dir", "state", "--mcp-config", "mcp.json"],
    );
    until("it is listed", || {
        (gateway.server("everything")["tools"].as_u64() > Some(0)).then_some(())
    });
    let listed = || {
        let answer = crate::support::modern(&gateway, None, "tools/list", params(json!({}))).json();
        let tools = answer["result"]["tools"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"));
        has(&tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>())
    };
    let wanted = params(json!({ "notifications": { "toolsListChanged": true } }));
    let stream = crate::support::modern_stream(&gateway, None, "subscriptions/listen", wanted);
    stream.next_of("notifications/subscriptions/acknowledged");
    assert_eq!(listed(), 0);
    let call = params(json!({ "name": "everything_echo", "arguments": { "message": "hi" } }));
    let called = crate::support::modern(&gateway, None, "tools/call", call).json();
    assert!(called.to_string().contains("Echo: hi"), "{called}");
    until("they are announced", || {
        stream.next_of("notifications/tools/list_changed");
        (listed() == conditional.len()).then_some(())
    });
}

#[test]
fn what_was_recorded_is_of_the_agents_that_are_installed() {
    let run = std::fs::read_to_string(repository().join("bench/clients/run")).unwrap();
    for name in AGENTS {
        let file = Path::new("tests/third-party/declared").join(format!("{name}.json"));
        let recorded: Value =
            serde_json::from_str(&std::fs::read_to_string(repository().join(file)).unwrap())
                .unwrap();
        let package = recorded["client"].as_str().unwrap();
        assert!(
            run.contains(&format!("{package:?}")),
            "`{package}` was recorded, another version is run: bench/clients/run --declared tests/third-party/declared"
        );
    }
}
