//! Proposal timing: immediate, simultaneous and missing decisions.

use serde_json::{Value, json};

use crate::stage::{
    ECHO, FULFIL, Stage, api, echoes, ended, fails, fulfilment, names, says, state,
};
use crate::ws::Socket;

/// A reviewer may decide before the proposal is on disk.
#[test]
fn an_immediate_decision_counts() {
    let mut stage = Stage::new();
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    let mut chief = Socket::enter(
        &stage.gateway,
        "chief",
        "?mode=directed%2Bproposals&echo=false",
    );
    let before = stage.executed();
    for round in 0..20 {
        let (proposal, request) = (format!("p{round}"), format!("f{round}"));
        stage
            .agent
            .send(ECHO, &proposal, &["tools"], json!({}), &echoes("quick"));
        chief.expect(&proposal);
        chief.send(
            FULFIL,
            &request,
            &["tools"],
            names(&proposal),
            &fulfilment("quick"),
        );
        says(
            &chief.receive_until(|received| received["correlation_id"] == request),
            "quick",
        );
        let states = ["pending", "running", "completed"];
        let end = ended(&mut stage.agent, &proposal, &states);
        says(&end.answer, "quick");
        // The same with a participant that is not a server, and answers immediately.
        let (proposal, request) = (format!("q{round}"), format!("g{round}"));
        stage
            .agent
            .send(ECHO, &proposal, &["worker"], json!({}), &echoes("quick"));
        chief.expect(&proposal);
        chief.send(
            FULFIL,
            &request,
            &["worker"],
            names(&proposal),
            &fulfilment("quick"),
        );
        worker.receive_until(|received| received["id"] == request);
        let result = json!({ "jsonrpc": "2.0", "id": 7, "result": { "content": [{ "type": "text", "text": "dug" }] } });
        worker.send(
            "mcp/response:tools/call:echo",
            &format!("a{round}"),
            &["chief"],
            names(&request),
            &result,
        );
        chief.receive_until(|received| received["correlation_id"] == request);
        let ends: Vec<Value> = std::iter::repeat_with(|| {
            stage
                .agent
                .receive_until(|received| received["kind"] != "chat")
        })
        .take(4)
        .collect();
        let states: Vec<&Value> = ends
            .iter()
            .map(|received| &received["payload"]["state"])
            .filter(|state| state.is_string())
            .collect();
        assert_eq!(states, ["pending", "running", "completed"], "{ends:?}");
        assert!(
            ends.iter()
                .any(|received| received["payload"]["result"].is_object()),
            "{ends:?}"
        );
        // An immediate rejection counts too.
        let proposal = format!("r{round}");
        stage
            .agent
            .send(ECHO, &proposal, &["tools"], json!({}), &echoes("quick"));
        chief.expect(&proposal);
        let id = format!("no {round}");
        let arguments = json!({ "proposal": proposal, "reason": "no" });
        chief.call(&id, &["portmoot"], "reject_proposal", arguments);
        let notice = chief.receive_until(|received| received["correlation_id"] == id);
        assert_eq!(notice["payload"]["result"]["isError"], false, "{notice}");
        state(&mut stage.agent, &proposal, "pending");
        state(&mut stage.agent, &proposal, "rejected");
    }
    assert_eq!(stage.executed(), before + 20);
}

#[test]
fn simultaneous_approvals_count_once() {
    let mut stage = Stage::new();
    let mut chief = Socket::enter(&stage.gateway, "chief", "?mode=directed&echo=false");
    let before = stage.executed();
    for round in 0..5 {
        let (id, text) = (format!("p{round}"), format!("round {round}"));
        let proposal = stage.propose(&id, &text);
        let gateway = stage.gateway.address();
        let path = format!("/{}/approve", proposal["id"].as_str().unwrap());
        let body = json!({ "digest": proposal["digest"] });
        let start = std::sync::Barrier::new(4);
        let approved = std::thread::scope(|scope| {
            let all = ["boss", "chief", "boss", "chief"].map(|who| {
                let (start, path, body) = (&start, &path, &body);
                scope.spawn(move || {
                    start.wait();
                    api(gateway, who, "POST", path, body).status
                })
            });
            all.map(|one| one.join().unwrap())
        });
        assert_eq!(
            approved.iter().filter(|status| **status == 200).count(),
            1,
            "{approved:?}"
        );
        let end = ended(&mut stage.agent, &id, &["running", "completed"]);
        says(&end.answer, &text);
        assert_eq!(stage.executed(), before + 2 * round + 1);
        // The same by envelopes.
        let id = format!("q{round}");
        stage.propose(&id, &text);
        let (one, two) = (format!("b{round}"), format!("c{round}"));
        stage
            .boss
            .send(FULFIL, &one, &["tools"], names(&id), &fulfilment(&text));
        chief.send(FULFIL, &two, &["tools"], names(&id), &fulfilment(&text));
        let one = stage
            .boss
            .receive_until(|received| received["correlation_id"] == one);
        let two = chief.receive_until(|received| received["correlation_id"] == two);
        let ran = [&one, &two]
            .iter()
            .filter(|received| received["payload"]["result"].is_object())
            .count();
        assert_eq!(ran, 1, "{one} {two}");
        ended(&mut stage.agent, &id, &["running", "completed"]);
        assert_eq!(stage.executed(), before + 2 * round + 2);
    }
}

#[test]
fn undecided_proposals_expire() {
    let mut stage = Stage::with("[topics.main]\nproposal_ttl = \"3s\"\n");
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    let before = stage.executed();
    // A decision in time is enough: this call is answered after a later proposal has expired.
    let params = json!({ "name": "dig", "arguments": {} });
    let dig = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params });
    stage.agent.send(
        "mcp/proposal:tools/call:dig",
        "p1",
        &["worker"],
        json!({}),
        &dig,
    );
    state(&mut stage.agent, "p1", "pending");
    stage.boss.send(
        "mcp/request:tools/call:dig",
        "f1",
        &["worker"],
        names("p1"),
        &dig,
    );
    state(&mut stage.agent, "p1", "running");
    let two = stage.propose("p2", "please");
    state(&mut stage.agent, "p2", "expired");
    let result = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
    worker.send(
        "mcp/response:tools/call:dig",
        "a1",
        &["boss"],
        names("f1"),
        &result,
    );
    state(&mut stage.agent, "p1", "completed");
    assert_eq!(stage.approve("boss", &two).status, 409);
    stage
        .boss
        .send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("please"));
    fails(
        &stage
            .boss
            .receive_until(|received| received["correlation_id"] == "f2"),
        "f2",
    );
    assert_eq!(stage.executed(), before);
}

#[test]
fn an_immediate_answer_counts() {
    let mut stage = Stage::new();
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    let rounds: Vec<String> = (0..50).map(|round| format!("p{round}")).collect();
    let call = |id: u64| {
        let params = json!({ "name": "dig", "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let result = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
            for _ in &rounds {
                let asked = worker.receive_until(|received| received["from"] == "boss");
                let about = names(asked["id"].as_str().unwrap());
                let id = format!("answer to {}", asked["id"]);
                worker.send(
                    "mcp/response:tools/call:dig",
                    &id,
                    &["boss"],
                    about,
                    &result,
                );
            }
        });
        for proposal in &rounds {
            stage.agent.send(
                "mcp/proposal:tools/call:dig",
                proposal,
                &["worker"],
                json!({}),
                &call(0),
            );
            state(&mut stage.agent, proposal, "pending");
            let id = format!("f {proposal}");
            stage.boss.send(
                "mcp/request:tools/call:dig",
                &id,
                &["worker"],
                names(proposal),
                &call(3),
            );
            state(&mut stage.agent, proposal, "running");
            state(&mut stage.agent, proposal, "completed");
        }
    });
}

#[test]
fn equal_envelope_ids_of_two_proposers_are_kept_apart() {
    let mut stage = Stage::new();
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    let mut chief = Socket::enter(&stage.gateway, "chief", "?mode=directed&echo=false");
    let dig = |id: u64| {
        let params = json!({ "name": "dig", "arguments": {} });
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
    };
    for proposal in ["p1", "p2"] {
        stage.agent.send(
            "mcp/proposal:tools/call:dig",
            proposal,
            &["worker"],
            json!({}),
            &dig(0),
        );
        state(&mut stage.agent, proposal, "pending");
    }
    let kind = "mcp/request:tools/call:dig";
    stage
        .boss
        .send(kind, "same", &["worker"], names("p1"), &dig(3));
    state(&mut stage.agent, "p1", "running");
    chief.send(kind, "same", &["worker"], names("p2"), &dig(3));
    state(&mut stage.agent, "p2", "running");
    let result = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
    // An ambiguous outcome settles neither proposal.
    worker.send(
        "mcp/response:tools/call:dig",
        "a0",
        &[],
        names("same"),
        &result,
    );
    worker.send(
        "mcp/response:tools/call:other",
        "a1",
        &["chief"],
        names("same"),
        &result,
    );
    worker.send(
        "mcp/response:tools/call:dig",
        "a2",
        &["chief"],
        names("same"),
        &result,
    );
    state(&mut stage.agent, "p2", "completed");
    assert_eq!(stage.shown("p1")["state"], "running");
    worker.send(
        "mcp/response:tools/call",
        "a3",
        &["boss"],
        names("same"),
        &result,
    );
    state(&mut stage.agent, "p1", "completed");
}

/// A call of the worker's own tool.
fn dig(id: u64) -> Value {
    let params = json!({ "name": "dig", "arguments": {} });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

const DIG: &str = "mcp/request:tools/call:dig";

/// The agent proposes to `worker`, and the boss fulfils the proposal by an envelope.
fn fulfilled(stage: &mut Stage, proposal: &str, fulfilment: &str) -> Value {
    stage.agent.send(
        "mcp/proposal:tools/call:dig",
        proposal,
        &["worker"],
        json!({}),
        &dig(0),
    );
    let pending = state(&mut stage.agent, proposal, "pending");
    stage
        .boss
        .send(DIG, fulfilment, &["worker"], names(proposal), &dig(3));
    state(&mut stage.agent, proposal, "running");
    pending["payload"]["absent"].clone()
}

#[test]
fn a_proposal_for_an_absent_participant_fails_at_once_for_proposer_and_fulfiller() {
    // No proposal waits for participants that were here, or could have been before the gateway
    // started.
    let mut stage = Stage::with("[server.limits]\naway = \"1ms\"\n");
    // The proposer learns that the worker is not there when it proposes, and what became of the
    // proposal once it is approved.
    let absent = fulfilled(&mut stage, "p1", "f1");
    let why = "worker is not in the topic: it was not carried out";
    assert_eq!(
        state(&mut stage.agent, "p1", "failed")["payload"]["reason"],
        why
    );
    assert_eq!(
        stage.boss.refused("f1", "upstream_failed")["payload"]["message"],
        why
    );
    assert_eq!(absent, json!(["worker"]));
    assert_eq!(
        (&stage.shown("p1")["state"], &stage.shown("p1")["reason"]),
        (&json!("failed"), &json!(why))
    );
    // It never runs: another approval does not even reach the worker.
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    stage
        .boss
        .send(DIG, "f2", &["worker"], names("p1"), &dig(3));
    stage.boss.refused("f2", "conflict");
    stage.boss.send(DIG, "r1", &["worker"], json!({}), &dig(3));
    assert_eq!(
        worker.receive_until(|received| received["kind"] == DIG)["id"],
        "r1"
    );
    worker.leave();
    // Over the API the same.
    stage.agent.send(
        "mcp/proposal:tools/call:dig",
        "p2",
        &["worker"],
        json!({}),
        &dig(0),
    );
    state(&mut stage.agent, "p2", "pending");
    assert_eq!(stage.approve("boss", &stage.shown("p2")).status, 200);
    state(&mut stage.agent, "p2", "running");
    assert_eq!(
        state(&mut stage.agent, "p2", "failed")["payload"]["reason"],
        why
    );
}

#[test]
fn a_participant_that_leaves_fails_what_it_was_asked_for_proposer_and_fulfiller() {
    let mut stage = Stage::new();
    let why =
        "worker is not in the topic any more and has not answered: it may have carried it out";
    for (number, how) in ["closes", "breaks", "is revoked"].iter().enumerate() {
        let (proposal, fulfilment) = (format!("p{number}"), format!("f{number}"));
        let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
        assert_eq!(fulfilled(&mut stage, &proposal, &fulfilment), Value::Null);
        worker.receive_until(|received| received["id"] == fulfilment);
        match *how {
            "closes" => worker.leave(),
            "breaks" => drop(worker),
            _ => {
                let config = stage
                    .config
                    .replace("[participants.worker]", "[participants.other]");
                stage.home.write("portmoot.toml", &config);
                assert_eq!(worker.closed(), 4002);
            }
        }
        assert_eq!(
            state(&mut stage.agent, &proposal, "failed")["payload"]["reason"],
            why,
            "{how}"
        );
        assert_eq!(
            stage.boss.refused(&fulfilment, "upstream_failed")["payload"]["message"],
            why,
            "{how}"
        );
    }
}

#[test]
fn a_participant_that_reconnects_in_time_still_answers() {
    let mut stage = Stage::new();
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    fulfilled(&mut stage, "p1", "f1");
    worker.receive_until(|received| received["id"] == "f1");
    // A newer socket replaces the older one, so that the participant does not leave in between.
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    let result = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [] } });
    worker.send(
        "mcp/response:tools/call:dig",
        "a1",
        &["boss", "agent"],
        names("f1"),
        &result,
    );
    ended(&mut stage.agent, "p1", &["completed"]);
}

/// A reload brings other settings of a topic into force while it stays open.
#[test]
fn a_reload_changes_how_long_proposals_wait_and_what_late_joiners_get() {
    let mut stage = Stage::new();
    stage.propose("p1", "please");
    let (_, before) = Socket::welcomed(&stage.gateway, "chief", "");
    assert_eq!(before["payload"]["history"], Value::Null, "{before}");
    let settings = "[topics.main]\nproposal_ttl = \"1s\"\nhistory = 5\n";
    stage
        .home
        .write("portmoot.toml", &(stage.config.clone() + settings));
    stage.gateway.signal("HUP");
    stage
        .gateway
        .receive("the configuration has changed: reloaded");
    stage.propose("p2", "please");
    state(&mut stage.agent, "p2", "expired");
    // One that was open has the end that its reviewers were shown.
    assert_eq!(stage.shown("p1")["state"], "pending");
    let (_, after) = Socket::welcomed(&stage.gateway, "clerk", "");
    let history = after["payload"]["history"]["envelopes"].as_array();
    assert!(history.is_some_and(|kept| !kept.is_empty()), "{after}");
}
