//! Participants on the SDK with a real gateway: chats, tools, proposals, reconnects.

use model::ProposalState;
use participant::{
    CallError, CallMode, ConnectError, Event, Events, Mode, Participant, ParticipantSpec, Tools,
};
use serde_json::{Value, json};

use crate::home::Home;
use crate::http::TIMEOUT;
use crate::support::Gateway;
use crate::ws::{Socket, config_of, home_of, token};

/// The participants.
const PEOPLE: &[(&str, &[&str])] = &[
    ("boss", &["mcp/*", "chat", "game/*"]),
    ("worker", &["mcp/response:*", "chat"]),
    (
        "mallory",
        &["mcp/response:*", "mcp/request:tools/call:echo", "chat"],
    ),
    (
        "scout",
        &["mcp/proposal:tools/call", "mcp/response:*", "chat"],
    ),
    ("mute", &["mcp/response:*"]),
];

pub(crate) fn home() -> Home {
    home_of(PEOPLE)
}

pub(crate) fn config(home: &Home) -> String {
    config_of(home, PEOPLE)
}

pub(crate) fn spec(gateway: &Gateway, name: &str) -> ParticipantSpec {
    let spec = ParticipantSpec::new(&gateway.url(), Some(&token(name)), "main");
    ParticipantSpec {
        request_timeout: TIMEOUT,
        ..spec
    }
}

pub(crate) async fn join(gateway: &Gateway, name: &str) -> (Participant, Events) {
    enter(spec(gateway, name)).await
}

pub(crate) async fn enter(spec: ParticipantSpec) -> (Participant, Events) {
    let participant = Participant::connect(spec).await.unwrap();
    let events = participant.events();
    (participant, events)
}

/// The first event for which `pick` returns a value.
pub(crate) async fn receive<T>(
    events: &mut Events,
    what: &str,
    mut pick: impl FnMut(Event) -> Option<T>,
) -> T {
    let wait = async {
        loop {
            let event = events
                .next()
                .await
                .unwrap_or_else(|| panic!("the end, but not {what}"));
            if let Some(found) = pick(event) {
                return found;
            }
        }
    };
    tokio::time::timeout(TIMEOUT, wait)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"))
}

async fn misbehaved(events: &mut Events) -> String {
    receive(events, "a violation", |event| match event {
        Event::Violation { from, .. } => Some(from),
        _ => None,
    })
    .await
}

pub(crate) fn tools() -> Tools {
    Tools::new("worker", "1").tool(
        "echo",
        "Says it again",
        json!({ "type": "object" }),
        |arguments| async move {
            arguments
                .get("text")
                .cloned()
                .ok_or_else(|| "`text` is missing".to_owned())
        },
    )
}

pub(crate) fn echo(text: &str) -> Value {
    json!({ "name": "echo", "arguments": { "text": text } })
}

pub(crate) fn read(raw: &serde_json::value::RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn participants_learn_their_id_and_the_roster() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (boss, mut received) = join(&gateway, "boss").await;
    assert_eq!(
        (boss.you().id.as_str(), boss.you().capabilities.len()),
        ("boss", 3)
    );
    let (worker, _) = join(&gateway, "worker").await;
    assert!(worker.others().iter().any(|seen| seen.id == "boss"));
    let came = |event| match event {
        Event::Joined(seen) if seen.id == "worker" => Some(seen.capabilities),
        _ => None,
    };
    assert_eq!(
        receive(&mut received, "the worker comes", came).await,
        ["mcp/response:*", "chat"]
    );
    assert!(boss.others().iter().any(|seen| seen.id == "worker"));
    worker.close().await;
    let went = |event| matches!(event, Event::Left(seen) if seen.id == "worker").then_some(());
    receive(&mut received, "the worker goes", went).await;
    assert!(!boss.others().iter().any(|seen| seen.id == "worker"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_connections_report_the_reason() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let wrong = ParticipantSpec::new(&gateway.url(), Some("a-token-that-is-not-issued"), "main");
    assert!(matches!(
        Participant::connect(wrong).await,
        Err(ConnectError::Unauthenticated(_))
    ));
    let elsewhere = ParticipantSpec {
        topic: "vault".into(),
        ..spec(&gateway, "boss")
    };
    assert!(matches!(
        Participant::connect(elsewhere).await,
        Err(ConnectError::Forbidden(_))
    ));
    let nowhere = ParticipantSpec::new("http://127.0.0.1:1", None, "main");
    assert!(matches!(
        Participant::connect(nowhere).await,
        Err(ConnectError::Unreachable(_))
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn all_participants_receive_the_same_order_in_the_sdk() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let mut all = Vec::new();
    for name in ["boss", "worker", "mallory"] {
        all.push(
            enter(ParticipantSpec {
                echo: true,
                ..spec(&gateway, name)
            })
            .await,
        );
    }
    for number in 0..50 {
        for (participant, _) in &all {
            participant
                .chat(&format!("{number} of {}", participant.you().id))
                .unwrap();
        }
    }
    let mut orders = Vec::new();
    for (_, events) in &mut all {
        let mut order = Vec::new();
        while order.len() < 150 {
            let said = |event| match event {
                Event::Chat { from, text, .. } => Some((from, text)),
                _ => None,
            };
            order.push(receive(events, "150 things are said", said).await);
        }
        orders.push(order);
    }
    assert_eq!(orders[0], orders[1]);
    assert_eq!(orders[0], orders[2]);
    let own: Vec<_> = orders[0]
        .iter()
        .filter(|(from, _)| from == "boss")
        .map(|(_, text)| text.clone())
        .collect();
    assert_eq!(
        own,
        (0..50)
            .map(|number| format!("{number} of boss"))
            .collect::<Vec<_>>()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_participant_calls_a_tool_of_another() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (_worker, _) = enter(
        spec(&gateway, "worker")
            .serving(tools())
            .receiving(Mode::Directed),
    )
    .await;
    let (boss, _) = join(&gateway, "boss").await;
    let greeted = boss
        .request(
            "worker",
            "initialize",
            &json!({ "protocolVersion": "2025-06-18" }),
        )
        .await;
    assert_eq!(read(&greeted.unwrap())["serverInfo"]["name"], "worker");
    boss.notify(&["worker"], "notifications/initialized", &())
        .unwrap();
    let listed = boss.request("worker", "tools/list", &()).await.unwrap();
    assert_eq!(read(&listed)["tools"][0]["name"], "echo");
    assert_eq!(
        boss.call_mode("worker", "tools/call", &echo("")).unwrap(),
        Some(CallMode::Request)
    );
    let calls = (0..20).map(|number| {
        let boss = boss.clone();
        tokio::spawn(async move {
            boss.call("worker", "tools/call", &echo(&number.to_string()))
                .await
        })
    });
    for (number, call) in calls.enumerate().collect::<Vec<_>>() {
        let result = call.await.unwrap().unwrap();
        assert_eq!(read(&result)["content"][0]["text"], number.to_string());
    }
    let unknown = boss
        .request("worker", "tools/call", &json!({ "name": "none" }))
        .await
        .unwrap_err();
    assert!(matches!(unknown, CallError::Answered(error) if error.code == -32602));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_participant_proposes_what_it_could_request() {
    let home = home();
    let mutes = "capabilities = [\"mcp/response:*\"]";
    let config = config(&home).replace(mutes, "capabilities = [\"portmoot/pause\"]");
    let gateway = Gateway::start(&home, &config);
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut events) = join(&gateway, "boss").await;
    let mut mute = Socket::enter(&gateway, "mute", "");
    for (kind, is_paused, call) in [
        ("portmoot/pause", true, CallMode::Propose),
        ("portmoot/resume", false, CallMode::Request),
    ] {
        mute.send(
            kind,
            kind,
            &[],
            json!({}),
            &json!({ "participant": "boss" }),
        );
        receive(&mut events, "a welcome", |event| match event {
            Event::Welcomed { you, .. } => (you.paused == is_paused).then_some(()),
            _ => None,
        })
        .await;
        for (method, expect) in [("tools/call", call), ("tools/list", CallMode::Request)] {
            assert_eq!(
                boss.call_mode("worker", method, &echo("")).unwrap(),
                Some(expect),
                "{kind} {method}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_a_capability_are_not_sent() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (scout, _) = join(&gateway, "scout").await;
    for (participant, method, expect) in [
        (&scout, "tools/call", Some(CallMode::Propose)),
        (&scout, "prompts/list", None),
        (&worker, "ping", None),
    ] {
        let params = json!({ "name": "echo" });
        assert_eq!(
            participant.call_mode("worker", method, &params).unwrap(),
            expect,
            "{method}"
        );
        if expect.is_none() {
            let refused = participant
                .call("worker", method, &params)
                .await
                .unwrap_err();
            assert!(matches!(refused, CallError::NotAllowed { .. }), "{refused}");
        }
    }
    let refused = scout
        .request("worker", "tools/call", &echo("x"))
        .await
        .unwrap_err();
    let CallError::Refused(notice) = refused else {
        panic!("{refused}")
    };
    assert_eq!(notice.error, "capability_violation");
    assert_eq!(
        notice.attempted_kind.as_deref(),
        Some("mcp/request:tools/call:echo")
    );
    let (mute, mut received) = join(&gateway, "mute").await;
    let id = mute.chat("hm").unwrap();
    let about = |event| match event {
        Event::Refused { envelope_id, error } => Some((envelope_id, error.error)),
        _ => None,
    };
    let notice = receive(&mut received, "the refusal of a chat", about).await;
    assert_eq!(notice, (Some(id), "capability_violation".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposal_is_fulfilled_by_another_and_both_get_the_answer() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut received) =
        enter(spec(&gateway, "boss").receiving(Mode::DirectedAndProposals)).await;
    for mode in [Mode::All, Mode::Directed] {
        let (scout, _) = enter(spec(&gateway, "scout").receiving(mode)).await;
        let waiting =
            tokio::spawn(async move { scout.call("worker", "tools/call", &echo("please")).await });
        let proposed = receive(&mut received, "a proposal", |event| match event {
            Event::Proposal(proposed) => Some(proposed),
            _ => None,
        });
        let proposed = proposed.await;
        assert_eq!((proposed.from(), proposed.to()), ("scout", vec!["worker"]));
        let own = read(&boss.fulfil(&proposed, None).await.unwrap());
        assert_eq!(own["content"][0]["text"], "please");
        assert_eq!(read(&waiting.await.unwrap().unwrap()), own, "{mode:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rejection_reaches_the_proposer_with_its_reason() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut received) = join(&gateway, "boss").await;
    let (scout, mut notice) = join(&gateway, "scout").await;
    let mut proposal = scout
        .propose(&["worker"], "tools/call", &echo("please"))
        .unwrap();
    let state = |event| match event {
        Event::ProposalState { state, reason, .. } => Some((state, reason)),
        _ => None,
    };
    assert_eq!(
        receive(&mut notice, "that it waits", state).await.0,
        ProposalState::Pending
    );
    let proposed = receive(&mut received, "a proposal", |event| match event {
        Event::Proposal(proposed) => Some(proposed),
        _ => None,
    });
    let id = proposed.await.id().to_owned();
    let said = read(&boss.reject(&id, "not today").await.unwrap());
    assert_eq!(said["isError"], false, "{said}");
    assert_eq!(
        receive(&mut notice, "the rejection", state).await,
        (ProposalState::Rejected, Some("not today".to_owned()))
    );
    match proposal.outcome(TIMEOUT).await {
        Err(CallError::Ended {
            state: ProposalState::Rejected,
            reason,
        }) => {
            assert_eq!(reason.as_deref(), Some("not today"));
        }
        other => panic!("{other:?}"),
    }
    // The proposal has ended: a second rejection fails, and so does that of an unknown proposal.
    for id in [id.as_str(), "nothing"] {
        assert_eq!(read(&boss.reject(id, "").await.unwrap())["isError"], true);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_from_another_participant_is_ignored_and_counted() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut asked) = join(&gateway, "worker").await;
    let (mallory, mut overheard) = join(&gateway, "mallory").await;
    let (boss, mut received) = join(&gateway, "boss").await;
    // Two participants receive a request for a third one, which does not answer.
    let _mute = Socket::enter(&gateway, "mute", "");
    let calling = boss.clone();
    let call = tokio::spawn(async move { calling.request("mute", "tools/call", &echo("x")).await });
    for (participant, events) in [(&mallory, &mut overheard), (&worker, &mut asked)] {
        let request = receive(events, "the request", |event| match event {
            Event::Other(envelope) if envelope.kind() == "mcp/request:tools/call:echo" => {
                Some(envelope)
            }
            _ => None,
        });
        let request = request.await;
        let payload: Value = serde_json::from_slice(request.payload()).unwrap();
        let forged = json!({ "jsonrpc": "2.0", "id": payload["id"], "result": { "content": [] } });
        participant
            .send(
                "mcp/response:tools/call:echo",
                &["boss"],
                Some(request.id()),
                &forged,
            )
            .unwrap();
        assert_eq!(misbehaved(&mut received).await, participant.you().id);
    }
    assert!(!call.is_finished());
    let counted: Vec<_> = boss.violations().into_iter().collect();
    assert_eq!(
        counted,
        [("mallory".to_owned(), 1), ("worker".to_owned(), 1)]
    );
    call.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_differs_from_its_payload_is_refused_and_counted() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (worker, mut noticed) = enter(spec(&gateway, "worker").serving(tools().tool(
        "wipe",
        "Never to be run",
        json!({}),
        |_| async { panic!("it ran") },
    )))
    .await;
    let (mallory, mut received) = join(&gateway, "mallory").await;
    let call =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "wipe" } });
    // Admitted by its kind; the payload differs.
    let id = mallory
        .send("mcp/request:tools/call:echo", &["worker"], None, &call)
        .unwrap();
    assert_eq!(misbehaved(&mut noticed).await, "mallory");
    let answer = receive(&mut received, "the refusal", |event| match event {
        Event::Other(envelope) if envelope.correlation_id() == Some(&id) => Some(envelope),
        _ => None,
    });
    let payload: Value = serde_json::from_slice(answer.await.payload()).unwrap();
    assert_eq!(payload["error"]["code"], -32600, "{payload}");
    // The same in a proposal, and a request for another participant: nothing runs.
    let (boss, mut seen) = join(&gateway, "boss").await;
    boss.send("mcp/proposal:tools/call:echo", &["worker"], None, &call)
        .unwrap();
    assert_eq!(misbehaved(&mut noticed).await, "boss");
    boss.send("mcp/request:tools/call:wipe", &["mallory"], None, &call)
        .unwrap();
    boss.send("mcp/proposal:tools/call:wipe", &["worker"], None, &call)
        .unwrap();
    let proposed = |event| matches!(event, Event::Proposal(_)).then_some(());
    receive(&mut noticed, "a proposal", proposed).await;
    let honest = boss
        .request("worker", "tools/call", &echo("still here"))
        .await
        .unwrap();
    assert_eq!(read(&honest)["content"][0]["text"], "still here");
    assert_eq!(
        worker.violations().into_iter().collect::<Vec<_>>(),
        [("boss".to_owned(), 1), ("mallory".to_owned(), 1)]
    );
    // Mallory, which serves no tools, answers the request with its own error, not with the worker's
    // result.
    let said = |event| match event {
        Event::Other(envelope) if envelope.from() == "mallory" => Some(envelope),
        _ => None,
    };
    let said = receive(&mut seen, "an answer of mallory", said).await;
    assert!(String::from_utf8_lossy(said.payload()).contains("-32602"));
}

#[tokio::test(flavor = "multi_thread")]
async fn participants_reconnect_after_a_gateway_restart() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let address = gateway.address().to_owned();
    let (worker, mut received) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, _) = join(&gateway, "boss").await;
    let _mute = Socket::enter(&gateway, "mute", "");
    let calling = boss.clone();
    let open = tokio::spawn(async move { calling.request("mute", "ping", &()).await });
    let asked = |event| {
        matches!(event, Event::Other(envelope) if envelope.kind().ends_with("ping")).then_some(())
    };
    receive(&mut received, "the request", asked).await;
    drop(gateway);
    assert_eq!(open.await.unwrap().unwrap_err(), CallError::Lost);
    let away = |event| match event {
        Event::Disconnected { is_final, .. } => Some(is_final),
        _ => None,
    };
    assert!(!receive(&mut received, "the connection is lost", away).await);
    assert_eq!(
        worker.chat("anybody?").unwrap_err(),
        CallError::NotConnected
    );
    let again =
        Gateway::serve(home.command(&["serve", "--config", "portmoot.toml", "--listen", &address]));
    for participant in [&worker, &boss] {
        tokio::time::timeout(TIMEOUT, participant.connected())
            .await
            .unwrap()
            .unwrap();
    }
    let result = boss
        .call("worker", "tools/call", &echo("again"))
        .await
        .unwrap();
    assert_eq!(read(&result)["content"][0]["text"], "again");
    drop(again);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_connection_replaces_the_first_for_good() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (first, mut received) = join(&gateway, "boss").await;
    let (second, _) = join(&gateway, "boss").await;
    let away = |event| match event {
        Event::Disconnected { is_final, why } => Some((is_final, why)),
        _ => None,
    };
    let (is_final, why) = receive(&mut received, "the first is replaced", away).await;
    assert!(is_final, "{why}");
    assert_eq!(first.connected().await, Err(ConnectError::Replaced));
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    second.request("worker", "ping", &()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proposer_can_stop_waiting_and_resume() {
    let home = home();
    let gateway = Gateway::start(&home, &config(&home));
    let (scout, _) = join(&gateway, "scout").await;
    let mut proposal = scout
        .propose(&["worker"], "tools/call", &json!({ "name": "echo" }))
        .unwrap();
    let waited = proposal.outcome(std::time::Duration::from_millis(1)).await;
    assert_eq!(waited.unwrap_err(), CallError::Timeout);
    let (boss, mut received) = join(&gateway, "boss").await;
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let again = scout
        .propose(&["worker"], "tools/call", &echo("second"))
        .unwrap();
    // The first one may have come after the boss did.
    let proposed = receive(&mut received, "the second proposal", |event| match event {
        Event::Proposal(proposed) => Some(proposed).filter(|proposed| proposed.id() == again.id()),
        _ => None,
    });
    let proposed = proposed.await;
    boss.fulfil(&proposed, None).await.unwrap();
    let (mut again, waited) = (
        again,
        proposal.outcome(std::time::Duration::from_millis(1)).await,
    );
    assert_eq!(
        waited.unwrap_err(),
        CallError::Timeout,
        "the answer to another is none for this one"
    );
    assert_eq!(
        read(&again.outcome(TIMEOUT).await.unwrap())["content"][0]["text"],
        "second"
    );
}
