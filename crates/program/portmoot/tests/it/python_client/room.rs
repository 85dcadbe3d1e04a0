//! Python participants beside the SDK for Rust and plain MCP clients in one topic: chat, calls,
//! serving, proposals.

use model::ProposalState;
use participant::{CallError, Event, Mode, Participant, ParticipantSpec, Tools};
use serde_json::{Value, json};

use super::{Agent, python_as};
use crate::home::Home;
use crate::http::TIMEOUT;
use crate::participants::{echo, read, receive};
use crate::program::Program;
use crate::support::{Client, Gateway, fixture, until};
use crate::ws::{people, token};

fn start() -> (Home, Gateway) {
    let (home, config) = people(&[
        ("pilot", &["mcp/*", "chat"]),
        ("scout", &["mcp/proposal:*", "mcp/response:*", "chat"]),
        (
            "echo-server",
            &["mcp/response:*", "mcp/request:notifications/*", "chat"],
        ),
        ("rusty", &["mcp/*", "chat"]),
        ("rusty-scout", &["mcp/proposal:*", "chat"]),
        ("ann", &["mcp/*", "chat", "portmoot/servers"]),
        ("guest", &["mcp/proposal:*"]),
    ]);
    let config = config.replace(
        "[participants.echo-server]\n",
        "[participants.echo-server]\nserves = true\n",
    );
    let gateway = Gateway::start(&home, &(fixture("tools", &[]) + &config));
    gateway.ready("tools");
    (home, gateway)
}

async fn join(gateway: &Gateway, who: &str) -> Participant {
    let spec = ParticipantSpec::new(&gateway.url(), Some(&token(who)), "main").receiving(Mode::All);
    let tools = Tools::new(who, "1").tool_with_request(
        "echo",
        "Says it again",
        json!({}),
        |arguments, request| async move {
            Ok(json!(format!(
                "{} for {}",
                arguments["text"].as_str().unwrap_or_default(),
                request.from
            )))
        },
    );
    Participant::connect(ParticipantSpec {
        request_timeout: TIMEOUT,
        ..spec.serving(tools)
    })
    .await
    .unwrap()
}

/// The example that serves, and a wait until MCP clients see its tools.
fn serve(gateway: &Gateway) -> Program {
    let mut server = Program::start(python_as(
        "examples/echo_server.py",
        &gateway.url(),
        "echo-server",
        &[],
    ));
    server.wait_for_line("serving as echo-server");
    until("its tools are listed", || {
        let listed = gateway.get("/api/v1/tools", Some(&token("ann"))).body;
        listed.contains("echo-server_whoami").then_some(())
    });
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn python_rust_and_plain_clients_share_a_topic_under_asyncio() {
    share_a_topic("asyncio").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn python_rust_and_plain_clients_share_a_topic_under_trio() {
    share_a_topic("trio").await;
}

async fn share_a_topic(backend: &str) {
    let (_home, gateway) = start();
    let _server = serve(&gateway);
    let rusty = join(&gateway, "rusty").await;
    let mut pilot = Agent::enter(&gateway, "pilot", backend, "all");

    // A plain MCP client uses what Python serves, and the server learns its name.
    let ann = Client::of(&gateway, &token("ann"));
    let said = |answer: Value| {
        answer["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(said(ann.call("echo-server_whoami", json!({}))), "ann");
    assert_eq!(
        ann.call("echo-server_add", json!({ "a": 1, "b": 2.5 }))["structuredContent"],
        json!({ "sum": 3.5 })
    );
    let wrong = ann.call("echo-server_add", json!({ "a": 1, "b": 2, "c": 3 }));
    assert!(
        wrong.to_string().contains('c') && wrong["isError"] == true,
        "{wrong}"
    );
    assert!(
        ann.names("prompts")
            .contains(&"echo-server_summary".to_owned())
    );
    let prompt = ann.ask(
        "prompts/get",
        json!({ "name": "echo-server_summary", "arguments": { "topic": "tea" } }),
    );
    assert_eq!(
        prompt["result"]["messages"][0]["content"]["text"],
        "Summarize what was said about tea."
    );
    let note = ann.ask("resources/read", json!({ "uri": "note://monday" }));
    assert_eq!(
        note["result"]["contents"][0]["text"], "Nothing happened on monday.",
        "{note}"
    );

    // Calls between Python, Rust and a configured server.
    let served = rusty
        .request("echo-server", "tools/call", &echo("from Rust"))
        .await
        .unwrap();
    assert_eq!(said(read(&served)), "from Rust");
    let arguments = json!({ "text": "hi" });
    for (to, expect) in [
        ("rusty", "hi for pilot"),
        ("echo-server", "hi"),
        ("tools", "hi"),
    ] {
        let call = json!({ "to": to, "tool": "echo", "arguments": arguments });
        assert_eq!(pilot.run("call", call), Ok(json!(expect)));
    }
    let greeting = json!({ "name": "greet", "arguments": { "name": "Rust" } });
    let greeting = rusty.request("pilot", "tools/call", &greeting);
    assert_eq!(
        said(read(&greeting.await.unwrap())),
        "hello Rust, says pilot to rusty"
    );
    let listed = pilot
        .run(
            "request",
            json!({ "to": "rusty", "method": "tools/list", "params": {} }),
        )
        .unwrap();
    assert_eq!(listed["tools"][0]["name"], "echo");
    let unknown = json!({ "to": "nowhere", "tool": "echo", "arguments": {} });
    assert_eq!(pilot.run("call", unknown).unwrap_err().0, "Refused");

    // Chat, both ways.
    let mut events = rusty.events();
    pilot.run("chat", json!({ "text": "hello, Rust" })).unwrap();
    let chatted = |event| match event {
        Event::Chat { from, text, .. } => Some((from, text)),
        _ => None,
    };
    assert_eq!(
        receive(&mut events, "a chat", chatted).await,
        ("pilot".into(), "hello, Rust".into())
    );
    rusty.chat("hello, Python").unwrap();
    let chat = pilot.event("chat");
    assert_eq!(
        (&chat["from"], &chat["text"]),
        (&json!("rusty"), &json!("hello, Python"))
    );

    // A kind that differs from its payload is refused and counted.
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wipe" } });
    rusty
        .send("mcp/request:tools/call:greet", &["pilot"], None, &call)
        .unwrap();
    let violation = pilot.event("violation");
    assert_eq!(
        violation["why"],
        "the kind says `greet`, the payload names `wipe`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn proposals_pass_between_python_rust_and_plain_clients() {
    let (home, gateway) = start();
    let _server = serve(&gateway);
    let rusty = join(&gateway, "rusty").await;
    let mut seen = rusty.events();
    let mut scout = Agent::enter(&gateway, "scout", "asyncio", "directed+proposals");
    let mut pilot = Agent::enter(&gateway, "pilot", "trio", "directed+proposals");
    let proposed = |event| match event {
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    };

    // Python proposes, Rust decides: in three ways.
    let id = scout.propose("echo-server", "one");
    let proposal = receive(&mut seen, "a proposal", proposed).await;
    assert_eq!((proposal.id(), proposal.from()), (id.as_str(), "scout"));
    rusty.fulfil(&proposal, None).await.unwrap();
    assert_eq!(scout.run("outcome", json!({ "id": id })), Ok(json!("one")));
    let id = scout.propose("echo-server", "two");
    receive(&mut seen, "a proposal", proposed).await;
    rusty.reject(&id, "not today").await.unwrap();
    let (error, why) = scout.run("outcome", json!({ "id": id })).unwrap_err();
    assert_eq!(
        (error.as_str(), why.as_str()),
        ("Ended", "the proposal is rejected: not today")
    );
    let id = scout.propose("echo-server", "three");
    let waiting = loop {
        // The list has a proposal once it is on disk.
        if let Some(one) = rusty.waiting(false).await.unwrap().pop() {
            break one;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(
        (waiting.proposer.as_str(), waiting.target.as_deref()),
        ("scout", Some("echo"))
    );
    let other = serde_json::value::to_raw_value(&json!({ "text": "edited" })).unwrap();
    assert_eq!(
        rusty.approve(&waiting, Some(&other)).await,
        Ok(ProposalState::Running)
    );
    assert_eq!(
        scout.run("outcome", json!({ "id": id })),
        Ok(json!("edited"))
    );
    match rusty.approve(&waiting, None).await {
        Err(CallError::ToolFailed(why)) => assert!(why.contains("conflict"), "{why}"),
        other => panic!("{other:?}"),
    }

    // Withdrawn by its Python proposer, and by its Rust one.
    let id = scout.propose("echo-server", "four");
    assert_eq!(scout.run("withdraw", json!({ "id": id })), Ok(Value::Null));
    assert_eq!(
        scout.run("outcome", json!({ "id": id })).unwrap_err().0,
        "Ended"
    );
    assert_eq!(
        scout.run("withdraw", json!({ "id": id })).unwrap_err().0,
        "ToolFailed"
    );
    let proposer = join(&gateway, "rusty-scout").await;
    let mut mine = proposer
        .propose(&["echo-server"], "tools/call", &echo("five"))
        .unwrap();
    proposer
        .withdraw(mine.id(), "changed my mind")
        .await
        .unwrap();
    match mine.outcome(TIMEOUT).await {
        Err(CallError::Ended {
            state: ProposalState::Withdrawn,
            reason,
        }) => {
            assert_eq!(reason.as_deref(), Some("changed my mind"));
        }
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        proposer.withdraw(mine.id(), "").await,
        Err(CallError::ToolFailed(_))
    ));

    // Rust proposes, Python decides: as written, with other arguments, and no.
    for (text, decision, expect) in [
        ("six", json!({ "do": "fulfil" }), Ok("six")),
        (
            "se\u{202e}ven",
            json!({ "do": "approve" }),
            Ok("se\u{202e}ven"),
        ),
        (
            "eight",
            json!({ "do": "approve", "arguments": { "text": "8" } }),
            Ok("8"),
        ),
        (
            "nine",
            json!({ "do": "reject", "reason": "no nines" }),
            Err("no nines"),
        ),
    ] {
        let mut mine = proposer
            .propose(&["echo-server"], "tools/call", &echo(text))
            .unwrap();
        let id = mine.id().to_owned();
        pilot.line("the proposal", |line| {
            (line["id"] == id.as_str()).then_some(())
        });
        let mut arguments = decision.clone();
        arguments["id"] = json!(id);
        pilot
            .run(decision["do"].as_str().unwrap(), arguments)
            .unwrap();
        match (mine.outcome(TIMEOUT).await, expect) {
            (Ok(result), Ok(text)) => assert_eq!(read(&result)["content"][0]["text"], text),
            (Err(CallError::Ended { reason, .. }), Err(why)) => {
                assert_eq!(reason.as_deref(), Some(why))
            }
            other => panic!("{other:?}"),
        }
    }

    // A plain MCP client may only propose; Python finds its call in the list of what waits.
    let guest = Client::of(&gateway, &token("guest"));
    let arguments = json!({ "name": "echo-server_echo", "arguments": { "text": "ten" } });
    let held = guest.begin(&guest.request("tools/call", arguments));
    gateway.pending(&home, &token("pilot"));
    let waiting = pilot.run("waiting", json!({})).unwrap();
    assert_eq!(
        (&waiting[0][1], &waiting[0][2]),
        (&json!("guest"), &json!("echo")),
        "{waiting}"
    );
    assert_eq!(
        pilot.run("approve_waiting", json!({})),
        Ok(json!(["running"]))
    );
    assert_eq!(held.next()["result"]["content"][0]["text"], "ten");
}
