//! The workflows of MCPx v0.1, section 9: agents on the SDK, servers from public registries, people
//! at the command line.

use std::path::Path;

use harness::deps;
use participant::{CallError, CallMode, Event, Events, Participant, ParticipantSpec};
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::home::Home;
use crate::http::TIMEOUT;
use crate::listed_server::ListedServer;
use crate::participants::receive;
use crate::program::{Program, example};
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{Socket, people, token};

const WRITE: &str = "mcp/proposal:tools/call:write_file";

/// A gateway with npm's file server as `files`, the fixture as `tools`, and these participants.
fn start(all: &[(&str, &[&str])], folder: &Path, more: &str) -> (Home, Gateway) {
    let (home, config) = people(all);
    let words = deps().server_filesystem(folder);
    let files = format!(
        "[servers.files]\ncommand = {:?}\nargs = {:?}\n",
        words[0],
        &words[1..]
    );
    let gateway = Gateway::start(&home, &(files + &fixture("tools", &[]) + &config + more));
    ["files", "tools"]
        .iter()
        .for_each(|name| gateway.ready(name));
    (home, gateway)
}

/// Runs `portmoot ...` as this participant; returns its output.
#[track_caller]
fn cli(home: &Home, gateway: &Gateway, who: &str, words: &[&str]) -> String {
    let (url, token) = (gateway.url(), token(who));
    home.run(&[words, &["--url", &url, "--token", &token]].concat())
        .expect(0)
        .stdout
}

async fn join(gateway: &Gateway, who: &str) -> (Participant, Events) {
    let spec = ParticipantSpec::new(&gateway.url(), Some(&token(who)), "main");
    let participant = Participant::connect(ParticipantSpec {
        request_timeout: TIMEOUT,
        ..spec
    })
    .await
    .unwrap();
    let events = participant.events();
    (participant, events)
}

/// Section 9.1: an agent that may only propose, a real server, and a person at the command line.
#[test]
fn a_real_server_executes_a_proposal_after_a_person_approves() {
    let folder = tempfile::tempdir().unwrap();
    let (home, gateway) = start(
        &[
            ("newcomer", &["mcp/proposal:*", "mcp/response:*", "chat"]),
            ("human", &["mcp/*", "chat"]),
            ("bystander", &["chat"]),
        ],
        folder.path(),
        "",
    );
    let mut human = Socket::enter(&gateway, "human", "?echo=false");
    let mut bystander = Socket::enter(&gateway, "bystander", "");
    let path = folder.path().join("note.txt").display().to_string();
    let arguments = json!({ "path": path, "content": "written with leave" });
    // Its call is refused; then it proposes.
    {
        let mut newcomer = Socket::enter(&gateway, "newcomer", "?echo=false&mode=directed");
        newcomer.call("try", &["files"], "write_file", arguments.clone());
        let notice = newcomer.refused("try", "capability_violation");
        assert_eq!(
            notice["payload"]["attempted_kind"],
            "mcp/request:tools/call:write_file"
        );
        newcomer.leave();
    }
    let words = ["files", "write_file", &arguments.to_string()];
    let mut agent = Program::start(example("untrusted_agent", &gateway, "newcomer", &words));
    agent.wait_for_line("proposed as ");
    // All participants receive the proposal.
    for socket in [&mut human, &mut bystander] {
        let seen = socket.receive_until(|received| received["kind"] == WRITE);
        assert_eq!(seen["payload"]["params"]["arguments"], arguments, "{seen}");
    }
    let proposal = gateway.pending(&home, &token("human"));
    assert_eq!(
        (&proposal["by"], &proposal["to"]),
        (&json!("newcomer"), &json!(["files"]))
    );
    assert!(!folder.path().join("note.txt").exists());
    let id = proposal["id"].as_str().unwrap();
    cli(
        &home,
        &gateway,
        "human",
        &["proposals", "approve", id, "--yes", "--no-wait"],
    );
    // Both receive the result, and the file exists.
    let (code, printed) = agent.wait_for_exit();
    assert!(
        code == 0 && printed.contains("Successfully wrote"),
        "{code} {printed}"
    );
    assert_eq!(
        std::fs::read_to_string(folder.path().join("note.txt")).unwrap(),
        "written with leave"
    );
    let request =
        bystander.receive_until(|received| received["kind"] == "mcp/request:tools/call:write_file");
    assert_eq!(
        (&request["from"], &request["correlation_id"]),
        (&json!("human"), &proposal["envelope"])
    );
    let answer =
        human.receive_until(|received| received["kind"] == "mcp/response:tools/call:write_file");
    assert_eq!(
        (&answer["from"], &answer["to"]),
        (&json!("files"), &json!(["human", "newcomer"]))
    );
    assert_eq!(answer["correlation_id"], request["id"]);
    // The answer is sent before the end of the proposal is on disk.
    let shown = until("the proposal is completed", || {
        let shown = cli(&home, &gateway, "human", &["proposals", "show", id]);
        (!shown.contains("  running by human")).then_some(shown)
    });
    assert!(
        shown.contains("  completed by human") && shown.contains("Successfully wrote"),
        "{shown}"
    );
    let audit_log = AuditLog(&home);
    audit_log.has(
        "newcomer",
        "mcp/request:tools/call:write_file",
        "refused",
        "not_admitted",
    );
    for (who, verdict) in [
        ("newcomer", "held"),
        ("human", "approved"),
        ("newcomer", "completed"),
    ] {
        assert_eq!(
            audit_log.has(who, WRITE, verdict, "")["operation"],
            proposal["id"],
            "{verdict}"
        );
    }
}

/// Section 9.2: a connected agent gains capabilities, and loses them.
#[tokio::test(flavor = "multi_thread")]
async fn a_connected_agent_gains_and_loses_capabilities() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "to be read").unwrap();
    let (home, gateway) = start(
        &[
            ("agent", &["mcp/proposal:*", "mcp/response:*"]),
            ("admin", &["mcp/*", "chat", "portmoot/grants"]),
        ],
        folder.path(),
        "",
    );
    let (agent, mut received) = join(&gateway, "agent").await;
    let path = folder.path().join("a.txt").display().to_string();
    let read = json!({ "name": "read_text_file", "arguments": { "path": path } });
    let write = json!({ "name": "write_file", "arguments": { "path": path, "content": "" } });
    let ways = |agent: &Participant| {
        [&read, &write].map(|call| agent.call_mode("files", "tools/call", call).unwrap())
    };
    assert_eq!(ways(&agent), [Some(CallMode::Propose); 2]);
    let refused = agent
        .request("files", "tools/call", &read)
        .await
        .unwrap_err();
    assert!(
        matches!(refused, CallError::Refused(notice) if notice.error == "capability_violation")
    );
    // It proposes, and the proposal succeeds.
    let calling = agent.clone();
    let call = read.clone();
    let proposed = tokio::spawn(async move { calling.call("files", "tools/call", &call).await });
    let id = tokio::task::block_in_place(|| {
        gateway.pending(&home, &token("admin"))["id"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    tokio::task::block_in_place(|| {
        cli(
            &home,
            &gateway,
            "admin",
            &["proposals", "approve", &id, "--yes", "--no-wait"],
        )
    });
    assert!(
        proposed
            .await
            .unwrap()
            .unwrap()
            .get()
            .contains("to be read")
    );
    // The administrator grants more: the agent receives a welcome, and calls directly.
    let reading = "mcp/request:tools/call:read_*";
    tokio::task::block_in_place(|| {
        cli(
            &home,
            &gateway,
            "admin",
            &["participants", "grant", "agent", reading],
        )
    });
    let renewed = |wanted: bool| {
        move |event| match event {
            Event::Welcomed { you, .. } => {
                (you.capabilities.iter().any(|one| one == reading) == wanted).then_some(())
            }
            _ => None,
        }
    };
    receive(&mut received, "the renewed welcome", renewed(true)).await;
    assert_eq!(
        ways(&agent),
        [Some(CallMode::Request), Some(CallMode::Propose)]
    );
    let result = agent.call("files", "tools/call", &read).await.unwrap();
    assert!(result.get().contains("to be read"), "{result}");
    let refused = agent
        .request("files", "tools/call", &write)
        .await
        .unwrap_err();
    assert!(matches!(refused, CallError::Refused(_)), "{refused}");
    // The administrator revokes the grant.
    tokio::task::block_in_place(|| {
        cli(
            &home,
            &gateway,
            "admin",
            &["participants", "revoke", "agent", reading],
        )
    });
    receive(&mut received, "the welcome with less", renewed(false)).await;
    assert_eq!(ways(&agent), [Some(CallMode::Propose); 2]);
    let refused = agent
        .request("files", "tools/call", &read)
        .await
        .unwrap_err();
    assert!(matches!(refused, CallError::Refused(_)), "{refused}");
    assert_eq!(
        std::fs::read_to_string(folder.path().join("a.txt")).unwrap(),
        "to be read"
    );
    let audit_log = AuditLog(&home);
    audit_log.has(
        "admin",
        "portmoot/grants",
        "admitted",
        "adds [mcp/request:tools/call:read_*]",
    );
    audit_log.has(
        "admin",
        "portmoot/grants",
        "admitted",
        "adds [], removes [mcp/request:tools/call:read_*]",
    );
}

/// Section 9.3: participants with different capabilities in one topic.
#[test]
fn participants_with_different_profiles_share_a_topic() {
    let folder = tempfile::tempdir().unwrap();
    let (_home, gateway) = start(
        &[
            ("administrator", &["mcp/*"]),
            ("service", &["mcp/response:*"]),
            ("newcomer", &["mcp/proposal:*"]),
            ("monitor", &["mcp/request:*/list"]),
        ],
        folder.path(),
        "",
    );
    let kinds = [
        "mcp/request:tools/call:echo",
        "mcp/response:tools/call:echo",
        "mcp/proposal:tools/call:echo",
        "mcp/request:tools/list",
    ];
    for (who, may) in [
        ("administrator", [true, true, true, true]),
        ("service", [false, true, false, false]),
        ("newcomer", [false, false, true, false]),
        ("monitor", [false, false, false, true]),
    ] {
        let mut socket = Socket::enter(&gateway, who, "?mode=directed");
        for (kind, may) in kinds.into_iter().zip(may) {
            let more = if kind.starts_with("mcp/response") {
                json!({ "correlation_id": "x" })
            } else {
                json!({})
            };
            // An id names one proposal.
            let id = format!("{kind} of {who}");
            socket.send(kind, &id, &[who], more, &json!({}));
            if may {
                socket.expect(&id)
            } else {
                socket.refused(&id, "capability_violation")
            };
        }
        if who == "monitor" {
            let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
            socket.send(
                "mcp/request:tools/list",
                "list",
                &["files"],
                json!({}),
                &list,
            );
            let received = socket.receive_until(|received| received["from"] == "files");
            assert!(
                received.to_string().contains("read_text_file"),
                "{received}"
            );
        }
        socket.leave();
    }
}

/// A file with one rule, which approves one call of `echo` in which `text` is `covered`.
fn rule([definition, server]: [&str; 2]) -> String {
    format!(
        "[[rule]]\nid = \"e\"\nauthor = \"human\"\ndecision = \"approve\"\n\
         kind = \"mcp/request:tools/call:echo\"\nto = \"worker\"\nproposers = [\"proposer\"]\n\
         definition = \"{definition}\"\nserver = \"{server}\"\n\
         expires = 2999-01-01T00:00:00Z\nuses = 1\n[rule.when]\n\"/text\" = {{ equals = \"covered\" }}\n"
    )
}

/// Section 9.4: a person, an orchestrator, and a dialed-in worker.
#[test]
fn an_orchestrator_fulfils_proposals_by_rules_and_leaves_others_to_a_reviewer() {
    let (home, config) = people(&[
        ("proposer", &["mcp/proposal:*", "mcp/response:*"]),
        ("orchestrator", &["mcp/request:*", "mcp/response:*"]),
        ("worker", &["mcp/response:*"]),
        ("human", &["mcp/*", "chat"]),
    ]);
    let gateway = Gateway::start(&home, &config);
    let mut worker = Program::start(example("echo_server", &gateway, "worker", &[]));
    worker.wait_for_line("serving as worker");
    let rules = home.path().join("orchestrator.toml");
    let run = |digests: [&str; 2]| {
        home.write("orchestrator.toml", &rule(digests));
        let file = rules.display().to_string();
        let command = example("orchestrator", &gateway, "orchestrator", &[&file]);
        let mut program = Program::start(command);
        assert_eq!(program.wait_for_line("rules"), "1 rules, as orchestrator");
        program
    };
    let propose = |tool: &str, arguments: &str| {
        let words = ["worker", tool, arguments];
        Program::start(example("untrusted_agent", &gateway, "proposer", &words))
    };
    let decide = |verb: &str| {
        let id = gateway.pending(&home, &token("human"))["id"].clone();
        let how: &[&str] = match verb {
            "approve" => &["--yes", "--no-wait"],
            _ => &["--reason", "not now"],
        };
        let words = [&["proposals", verb, id.as_str().unwrap()], how].concat();
        cli(&home, &gateway, "human", &words);
    };
    // The digests that a rule for the call names are those that it prints.
    let unknown = "0".repeat(64);
    let mut orchestrator = run([&unknown; 2]);
    let waits = propose("echo", r#"{"text":"covered"}"#);
    orchestrator.wait_for_line("mcp/request:tools/call:echo by proposer: left to people");
    let mut printed = |key: &str| {
        let line = orchestrator.wait_for_line(&format!("{key} = "));
        line.split('"').nth(1).unwrap().to_owned()
    };
    let digests = [printed("definition"), printed("server")];
    orchestrator.wait_for_line("e.1 does not decide it (it would approve)");
    orchestrator.wait_for_line("failed   the definition is the one that was accepted");
    decide("reject");
    assert_eq!(waits.wait_for_exit().0, 1);
    drop(orchestrator);
    let mut orchestrator = run([&digests[0], &digests[1]]);
    let mut human = Socket::enter(&gateway, "human", "?echo=false");
    let (code, printed) = propose("echo", r#"{"text":"covered"}"#).wait_for_exit();
    assert!(code == 0 && printed.contains("covered"), "{code} {printed}");
    orchestrator.wait_for_line("mcp/request:tools/call:echo by proposer: by e.1: done");
    let answer = human.receive_until(|received| received["kind"] == "mcp/response:tools/call:echo");
    assert_eq!(
        (&answer["from"], &answer["to"][0]),
        (&json!("worker"), &json!("orchestrator"))
    );
    let shown = |state: &str| {
        let all: Value = serde_json::from_str(&cli(
            &home,
            &gateway,
            "human",
            &["proposals", "ls", "--all", "--json"],
        ))
        .unwrap();
        all["proposals"]
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["state"] == state)
            .cloned()
    };
    let done = until("it is completed", || shown("completed"));
    assert_eq!(
        (&done["by"], &done["decided_by"]),
        (&json!("proposer"), &json!("orchestrator"))
    );
    // The budget is spent, and proposals that no rule covers wait for a person.
    let waits = propose("echo", r#"{"text":"covered"}"#);
    orchestrator.wait_for_line("failed   used less than 1 times: used 1 times");
    decide("reject");
    assert_eq!(waits.wait_for_exit().0, 1);
    let waits = propose("echo", r#"{"text":"other"}"#);
    orchestrator.wait_for_line(r#"failed   text is "covered": text is "other""#);
    decide("reject");
    assert_eq!(waits.wait_for_exit().0, 1);
    let waits = propose("add", r#"{"a":20,"b":22}"#);
    orchestrator.wait_for_line("mcp/request:tools/call:add by proposer: left to people");
    decide("approve");
    let (code, printed) = waits.wait_for_exit();
    assert!(code == 0 && printed.contains("42"), "{code} {printed}");
    let audit_log = AuditLog(&home);
    audit_log.has(
        "orchestrator",
        "mcp/proposal:tools/call:echo",
        "approved",
        "proposed by proposer",
    );
    audit_log.has(
        "human",
        "mcp/proposal:tools/call:add",
        "approved",
        "proposed by proposer",
    );
}

/// Calls of every kind are held, not only those of tools.
#[test]
fn prompts_and_resources_are_held_for_approval_too() {
    let (home, config) = people(&[("scout", &["mcp/proposal:*"]), ("boss", &["mcp/*"])]);
    let gateway = Gateway::start(&home, &(fixture("a", &[]) + &config));
    gateway.ready("a");
    let scout = Client::of(&gateway, &token("scout"));
    let prompt = "a_test_prompt_with_arguments";
    assert!(scout.names("prompts").contains(&prompt.to_owned()));
    assert!(
        scout
            .names("resources")
            .contains(&"test://static-text".to_owned())
    );
    let calls = [
        (
            "prompts/get",
            json!({ "name": prompt, "arguments": { "arg1": "one", "arg2": "two" } }),
            "test_prompt_with_arguments",
            "/result/messages/0/content/text",
            "arg1='one', arg2='two'",
        ),
        (
            "resources/read",
            json!({ "uri": "test://static-text" }),
            "test://static-text",
            "/result/contents/0/text",
            "static text",
        ),
    ];
    for (method, params, context, at, said) in calls {
        for verb in ["approve", "reject"] {
            let events = scout.begin(&scout.request(method, params.clone()));
            let proposal = gateway.pending(&home, &token("boss"));
            assert_eq!(
                (&proposal["method"], &proposal["context"]),
                (&json!(method), &json!(context)),
                "{proposal}"
            );
            let id = proposal["id"].as_str().unwrap();
            let more: &[&str] = if verb == "approve" {
                &["--yes", "--no-wait"]
            } else {
                &["--reason", "not now"]
            };
            cli(
                &home,
                &gateway,
                "boss",
                &[&["proposals", verb, id], more].concat(),
            );
            let answer = events.next();
            if verb == "approve" {
                let text = answer
                    .pointer(at)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                assert!(text.contains(said), "{method}: {answer}");
            } else {
                let text = answer["error"]["message"].as_str().unwrap_or_default();
                assert!(
                    text.contains("not now") && text.contains("rejected by boss"),
                    "{method}: {answer}"
                );
            }
        }
        let kind = format!("mcp/proposal:{method}:{context}");
        AuditLog(&home).has("boss", &kind, "approved", "proposed by scout");
        AuditLog(&home).has("boss", &kind, "rejected", "not now");
    }
}

/// A tool whose description changed after the proposal was shown.
#[test]
fn a_changed_tool_does_not_run_for_a_fulfilment_either() {
    let (home, config) = people(&[("agent", &["mcp/proposal:*"]), ("boss", &["mcp/*"])]);
    let tools = |words| [("act", words), ("change", "")];
    let server = ListedServer::new(&home, "b", &tools("described as one"));
    let gateway = Gateway::start(&home, &(server.table() + &config));
    gateway.ready("b");
    let mut agent = Socket::enter(&gateway, "agent", "?mode=directed&echo=false");
    let mut boss = Socket::enter(&gateway, "boss", "?mode=directed&echo=false");
    let asks = json!({ "method": "tools/call", "params": { "name": "act", "arguments": {} } });
    let mut call = asks.clone();
    call["jsonrpc"] = json!("2.0");
    call["id"] = json!(1);
    let act = "mcp/request:tools/call:act";
    agent.send(
        "mcp/proposal:tools/call:act",
        "p1",
        &["b"],
        json!({}),
        &asks,
    );
    agent.receive_until(|received| received["payload"]["state"] == "pending");
    let shown = gateway.pending(&home, &token("boss"));
    assert!(
        shown["tool"].to_string().contains("described as one"),
        "{shown}"
    );
    server.list(&tools("described as two"));
    boss.call("change", &["b"], "change", json!({}));
    boss.receive_until(|received| received["correlation_id"] == "change");
    until("it is described otherwise", || {
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        boss.send(
            "mcp/request:tools/list",
            &format!("list {:?}", std::time::Instant::now()),
            &["b"],
            json!({}),
            &list,
        );
        let received = boss.receive_until(|received| received["kind"] == "mcp/response:tools/list");
        received
            .to_string()
            .contains("described as two")
            .then_some(())
    });
    boss.send(act, "f1", &["b"], json!({ "correlation_id": "p1" }), &call);
    let answer = boss.receive_until(|received| received["correlation_id"] == "f1");
    let why = answer["payload"]["error"]["message"]
        .as_str()
        .unwrap_or_default();
    assert!(why.contains("describes the tool otherwise"), "{answer}");
    assert_eq!(server.calls(), "", "it ran");
    let id = shown["id"].as_str().unwrap();
    let state = || -> Value {
        serde_json::from_str(&cli(
            &home,
            &gateway,
            "boss",
            &["proposals", "show", id, "--json"],
        ))
        .unwrap()
    };
    assert_eq!(state()["state"], "pending");
    let audit_log = AuditLog(&home);
    let entry = audit_log.has("boss", "mcp/proposal:tools/call:act", "refused", "conflict");
    assert_eq!(entry["operation"], shown["id"], "{entry}");
    // With its original description the approval is valid again.
    server.list(&tools("described as one"));
    boss.call("back", &["b"], "change", json!({}));
    boss.receive_until(|received| received["correlation_id"] == "back");
    until("it runs", || {
        let name = format!("f {:?}", std::time::Instant::now());
        boss.send(act, &name, &["b"], json!({ "correlation_id": "p1" }), &call);
        let answer = boss.receive_until(|received| received["correlation_id"] == name);
        answer["payload"]["result"].is_object().then_some(())
    });
    agent.receive_until(|received| received["payload"]["state"] == "completed");
    assert_eq!(server.calls(), "act\n", "once");
    audit_log.comes_to(1, "boss", "mcp/proposal:tools/call:act", "approved", "");
}
