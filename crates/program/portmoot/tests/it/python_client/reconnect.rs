//! Python participants whose connection breaks: what they missed, and what they proposed before.

use serde_json::json;

use super::Agent;
use crate::history::{Line, keeping};
use crate::participants::{echo, enter, receive, spec, tools};

#[tokio::test(flavor = "multi_thread")]
async fn a_python_participant_receives_what_it_missed_and_the_outcome_of_its_proposal() {
    let (_home, gateway) = keeping(20);
    let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
    let (boss, mut asked) = enter(spec(&gateway, "boss")).await;
    boss.chat("before").unwrap();
    let line = Line::to(&gateway).await;
    let mut scout = Agent::at(line.url(), "scout", "asyncio", "all");
    let history = scout.event("history");
    assert_eq!(
        (&history["past"][0]["text"], &history["is_cut"]),
        (&json!("before"), &json!(false)),
        "{history}"
    );
    let id = scout.propose("worker", "please");
    let proposed = |event| match event {
        participant::Event::Proposal(proposed) => Some(proposed),
        _ => None,
    };
    let proposal = receive(&mut asked, "a proposal", proposed).await;

    line.break_off();
    assert_eq!(scout.event("disconnected")["is_final"], false);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "greet", "arguments": {} } });
    boss.send("mcp/request:tools/call:greet", &["scout"], None, &call)
        .unwrap();
    boss.fulfil(&proposal, None).await.unwrap();
    boss.chat("while it was away").unwrap();
    assert_eq!(
        scout
            .run("chat", json!({ "text": "too early" }))
            .unwrap_err()
            .0,
        "NotConnected"
    );
    line.mend();
    let history = scout.event("history");
    let texts: Vec<_> = history["past"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["event"] == "chat")
        .collect();
    assert_eq!(
        (texts.len(), &texts[0]["text"]),
        (1, &json!("while it was away")),
        "{history}"
    );
    assert_eq!(
        scout.run("outcome", json!({ "id": id })),
        Ok(json!("please"))
    );
    // The request from before the connection was not run; a new one is.
    let greeting = json!({ "name": "greet", "arguments": { "name": "boss" } });
    boss.request("scout", "tools/call", &greeting)
        .await
        .unwrap();
    boss.request("worker", "tools/call", &echo("still here"))
        .await
        .unwrap();
}

/// More was missed than the topic keeps.
#[tokio::test(flavor = "multi_thread")]
async fn a_python_participant_learns_that_it_missed_more() {
    let (_home, gateway) = keeping(3);
    let (boss, mut said) = enter(participant::ParticipantSpec {
        echo: true,
        ..spec(&gateway, "boss")
    })
    .await;
    let line = Line::to(&gateway).await;
    let mut scout = Agent::at(line.url(), "scout", "trio", "all");
    line.break_off();
    scout.event("disconnected");
    for number in 0..5 {
        boss.chat(&number.to_string()).unwrap();
    }
    let last =
        |event| matches!(event, participant::Event::Chat { text, .. } if text == "4").then_some(());
    receive(&mut said, "the last", last).await;
    line.mend();
    let history = scout.event("history");
    let texts: Vec<_> = history["past"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["text"].clone())
        .collect();
    assert_eq!(
        (texts, &history["is_cut"]),
        (vec![json!("2"), json!("3"), json!("4")], &json!(true)),
        "{history}"
    );
}

/// A topic without a history: what was decided meanwhile is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn a_python_participant_learns_what_was_decided_while_it_was_away() {
    for backend in ["asyncio", "trio"] {
        let (_home, gateway) = keeping(0);
        let (_worker, _) = enter(spec(&gateway, "worker").serving(tools())).await;
        let (boss, mut asked) = enter(spec(&gateway, "boss")).await;
        let line = Line::to(&gateway).await;
        let mut scout = Agent::at(line.url(), "scout", backend, "directed+proposals");
        let mut proposed = Vec::new();
        for text in ["fulfilled", "approved", "rejected", "left"] {
            let id = scout.propose("worker", text);
            let proposal = |event| match event {
                participant::Event::Proposal(proposed) => Some(proposed),
                _ => None,
            };
            proposed.push((id, receive(&mut asked, "a proposal", proposal).await));
        }
        line.break_off();
        assert_eq!(scout.event("disconnected")["is_final"], false);
        boss.fulfil(&proposed[0].1, None).await.unwrap();
        let shown = boss.show(&proposed[1].0).await.unwrap();
        boss.approve(&shown, None).await.unwrap();
        boss.reject(&proposed[2].0, "not while you are away")
            .await
            .unwrap();
        line.mend();
        let mut outcome = |number: usize| scout.run("outcome", json!({ "id": proposed[number].0 }));
        assert_eq!(outcome(0), Ok(json!("fulfilled")), "{backend}");
        assert_eq!(outcome(1), Ok(json!("approved")), "{backend}");
        let (error, why) = outcome(2).unwrap_err();
        assert_eq!(
            (error.as_str(), why.ends_with("not while you are away")),
            ("Ended", true),
            "{why}"
        );
        // Decided after its return, as ever.
        boss.reject(&proposed[3].0, "now").await.unwrap();
        assert_eq!(outcome(3).unwrap_err().0, "Ended");
    }
}
