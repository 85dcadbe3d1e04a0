//! Proposals over real sockets: a reviewer approves a call of another participant, and it runs
//! once, by the server's own count.

use serde_json::{Value, json};

use crate::stage::{ECHO, FULFIL, Stage, echoes, ended, fails, fulfilment, names, says, state};
use crate::support::{Gateway, until};
use crate::ws::Socket;

#[test]
fn a_refused_call_runs_once_after_approval_over_the_api() {
    let mut stage = Stage::new();
    let before = stage.executed();
    stage
        .agent
        .call("r1", &["tools"], "echo", json!({ "text": "please" }));
    stage.agent.refused("r1", "capability_violation");
    let proposal = stage.propose("p1", "please");
    assert_eq!(
        (&proposal["state"], &proposal["by"], &proposal["to"]),
        (&json!("pending"), &json!("agent"), &json!(["tools"]))
    );
    assert_eq!(stage.executed(), before, "a proposal runs nothing");
    let reply = stage.approve("boss", &proposal);
    assert_eq!(reply.status, 200, "{reply:?}");
    let end = ended(&mut stage.agent, "p1", &["running", "completed"]);
    let running = &end.states[0]["payload"];
    assert_eq!(
        (&running["by"], &running["operation"]),
        (&json!("boss"), &proposal["id"])
    );
    says(&end.answer, "please");
    let received = stage
        .boss
        .receive_until(|received| received["from"] == "tools");
    says(&received, "please");
    assert_eq!(received["to"], json!(["boss", "agent"]));
    assert_eq!(stage.executed(), before + 1);
    let shown = stage.shown("p1");
    assert_eq!(
        (&shown["state"], &shown["decided_by"], &shown["edited"]),
        (&json!("completed"), &json!("boss"), &json!(null))
    );
}

#[test]
fn a_request_that_names_the_proposal_approves_it_once() {
    let mut stage = Stage::new();
    let before = stage.executed();
    stage.propose("p1", "please");
    for _ in 0..3 {
        // The envelope names the server twice, and is sent again.
        stage.boss.send(
            FULFIL,
            "f1",
            &["tools", "tools"],
            names("p1"),
            &fulfilment("please"),
        );
    }
    let end = ended(&mut stage.agent, "p1", &["running", "completed"]);
    says(&end.answer, "please");
    // Of three equal requests one runs, and two are answered that the proposal is decided.
    let answers: Vec<_> = (0..3)
        .map(|_| {
            stage
                .boss
                .receive_until(|received| received["correlation_id"] == "f1")
        })
        .collect();
    let (ran, refused): (Vec<_>, Vec<_>) = answers
        .iter()
        .partition(|answer| answer["payload"]["result"].is_object());
    assert!(
        refused
            .iter()
            .all(|answer| answer["payload"]["error"]["data"]["code"] == "conflict"),
        "{refused:?}"
    );
    let [received] = ran[..] else {
        panic!("{answers:?}")
    };
    says(received, "please");
    assert_eq!(received["to"], json!(["boss", "agent"]));
    // Later approvals by envelopes and over the API are refused.
    stage
        .boss
        .send(FULFIL, "f2", &["tools"], names("p1"), &fulfilment("please"));
    fails(
        &stage
            .boss
            .receive_until(|received| received["from"] == "tools"),
        "f2",
    );
    let mut chief = Socket::enter(&stage.gateway, "chief", "?mode=directed&echo=false");
    chief.send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("please"));
    fails(
        &chief.receive_until(|received| received["from"] == "tools"),
        "f1",
    );
    let shown = stage.shown("p1");
    for what in ["approve", "reject", "withdraw"] {
        let body = if what == "approve" {
            json!({ "digest": shown["digest"] })
        } else {
            json!({})
        };
        let reply = stage.decide("chief", &shown, what, &body);
        assert!((400..500).contains(&reply.status), "{what}: {reply:?}");
    }
    assert_eq!(stage.executed(), before + 1);
    assert_eq!(stage.shown("p1")["state"], "completed");
    // The proposal stays decided after a restart.
    stage.gateway.signal("TERM");
    stage.gateway.wait();
    stage.gateway = Gateway::start(&stage.home, &stage.config);
    stage.gateway.ready("tools");
    stage.gateway.ready("more");
    stage.boss = Socket::enter(&stage.gateway, "boss", "?mode=directed&echo=false");
    stage.asked = 0;
    let before = stage.executed();
    stage
        .boss
        .send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("please"));
    fails(
        &stage
            .boss
            .receive_until(|received| received["from"] == "tools"),
        "f1",
    );
    assert_eq!(stage.executed(), before);
    let audit_log = stage.audit_log();
    let id = shown["id"].as_str().unwrap();
    audit_log.has("boss", ECHO, "approved", "proposed by agent");
    // By the same envelope twice and after the restart, by another, by another participant, and
    // over the API.
    until("it is recorded", || {
        (audit_log.count("boss", ECHO, "refused", "decided") == 4).then_some(())
    });
    audit_log.comes_to(3, "chief", ECHO, "refused", "decided");
    // Only the proposer can withdraw it.
    audit_log.comes_to(1, "chief", ECHO, "refused", "not_admitted");
    let all = audit_log.entries(&["--operation", id]);
    assert_eq!(
        all.iter()
            .filter(|entry| entry["verdict"] == "approved")
            .count(),
        1,
        "{all:?}"
    );
    assert_eq!(
        all.iter()
            .filter(|entry| entry["verdict"] == "completed")
            .count(),
        1,
        "{all:?}"
    );
    audit_log.is_whole();
}

#[test]
fn a_participant_that_is_not_a_server_can_fulfil_a_proposal() {
    let mut stage = Stage::new();
    let mut worker = Socket::enter(&stage.gateway, "worker", "?mode=directed&echo=false");
    for (number, to) in [&["boss"][..], &["boss", "agent"]].iter().enumerate() {
        let (proposal, request, answer) = (
            format!("p{number}"),
            format!("f{number}"),
            format!("a{number}"),
        );
        let asks = json!({ "method": "tools/call", "params": { "name": "dig", "arguments": {} } });
        let kind = "tools/call:dig";
        stage.agent.send(
            &format!("mcp/proposal:{kind}"),
            &proposal,
            &["worker"],
            json!({}),
            &asks,
        );
        state(&mut stage.agent, &proposal, "pending");
        assert_eq!(worker.receive_message()["id"], proposal);
        let mut payload = asks;
        payload["jsonrpc"] = json!("2.0");
        payload["id"] = json!(3);
        stage.boss.send(
            &format!("mcp/request:{kind}"),
            &request,
            &["worker"],
            names(&proposal),
            &payload,
        );
        // It answers immediately, perhaps before the approval is on disk.
        assert_eq!(worker.expect(&request)["correlation_id"], proposal);
        let result = json!({ "jsonrpc": "2.0", "id": 3, "result": { "content": [{ "type": "text", "text": "dug" }] } });
        worker.send(
            &format!("mcp/response:{kind}"),
            &answer,
            to,
            names(&request),
            &result,
        );
        // In the second round it names the agent itself: then the answer may arrive before the
        // notice that the call runs.
        let (mut received, mut notice) = (None, Vec::new());
        while received.is_none() || notice.len() < 2 {
            let next = stage.agent.receive();
            if next["kind"] == "portmoot/proposal" {
                assert_eq!(next["payload"]["proposal"], proposal, "{next}");
                notice.push(next["payload"]["state"].as_str().unwrap().to_owned());
            } else if next["kind"].as_str().unwrap().starts_with("mcp/response") {
                assert!(received.replace(next).is_none(), "two answers");
            }
        }
        assert_eq!(notice, ["running", "completed"], "round {number}");
        let received = received.unwrap();
        says(&received, "dug");
        assert_eq!(
            received["from"],
            if to.len() == 1 { "portmoot" } else { "worker" },
            "{received}"
        );
        assert_eq!(received["correlation_id"], request, "{received}");
        stage
            .boss
            .receive_until(|received| received["id"] == answer);
        assert_eq!(stage.shown(&proposal)["answer"]["result"], result["result"]);
    }
}

#[test]
fn own_proposals_cannot_be_approved() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let proposal = stage.propose("p1", "please");
    let reply = stage.approve("agent", &proposal);
    assert!((400..500).contains(&reply.status), "{reply:?}");
    stage
        .agent
        .send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("please"));
    stage.agent.refused("f1", "capability_violation");
    assert_eq!(
        (stage.executed(), &stage.shown("p1")["state"]),
        (before, &json!("pending"))
    );
    // The call of a participant with the capability is not an approval: it takes the place of the
    // proposal.
    stage
        .boss
        .send(ECHO, "p2", &["tools"], json!({}), &echoes("mine"));
    state(&mut stage.boss, "p2", "pending");
    let own = stage.shown("p2");
    let reply = stage.approve("boss", &own);
    assert!((400..500).contains(&reply.status), "{reply:?}");
    assert_eq!(stage.executed(), before);
    stage
        .boss
        .send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("mine"));
    says(
        &stage
            .boss
            .receive_until(|received| received["correlation_id"] == "f2"),
        "mine",
    );
    assert_eq!(
        (stage.executed(), &stage.shown("p2")["state"]),
        (before + 1, &json!("withdrawn"))
    );
    let audit_log = stage.audit_log();
    for (who, proposal) in [("agent", &proposal), ("boss", &own)] {
        let entry = audit_log.has(who, ECHO, "refused", "own");
        assert_eq!(
            (&entry["operation"], &entry["digest"]),
            (&proposal["id"], &proposal["digest"]),
            "{entry}"
        );
    }
    audit_log.has("agent", FULFIL, "refused", "not_admitted");
    audit_log.has("boss", FULFIL, "admitted", "mcp/*");
    assert_eq!(
        audit_log.entries(&["--verdict", "approved"]),
        Vec::<Value>::new()
    );
}

#[test]
fn approvals_need_the_shown_digest() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let proposal = stage.propose("p1", "please");
    let other = stage.propose("p2", "something else");
    assert_ne!(proposal["digest"], other["digest"]);
    for digest in [
        other["digest"].clone(),
        json!("0".repeat(64)),
        json!(""),
        json!("x"),
    ] {
        let reply = stage.decide("boss", &proposal, "approve", &json!({ "digest": digest }));
        assert!((400..500).contains(&reply.status), "{digest}: {reply:?}");
    }
    for body in [
        json!({}),
        json!({ "digest": proposal["digest"], "arguments": 1 }),
        json!({ "digest": proposal["digest"], "x": 1 }),
    ] {
        let reply = stage.decide("boss", &proposal, "approve", &body);
        assert!((400..500).contains(&reply.status), "{body}: {reply:?}");
    }
    let add = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "add", "arguments": { "a": 1, "b": 2 } } });
    let prompt =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": { "name": "echo" } });
    let rows: [(&str, &str, &[&str], Value); 5] = [
        (
            "another tool",
            "mcp/request:tools/call:add",
            &["tools"],
            add.clone(),
        ),
        (
            "another method",
            "mcp/request:prompts/get:echo",
            &["tools"],
            prompt,
        ),
        ("another server", FULFIL, &["more"], fulfilment("please")),
        (
            "another server too",
            FULFIL,
            &["tools", "more"],
            fulfilment("please"),
        ),
        ("another kind", FULFIL, &["tools"], add),
    ];
    for (id, kind, to, payload) in rows {
        stage.boss.send(kind, id, to, names("p1"), &payload);
        for _ in to {
            fails(
                &stage
                    .boss
                    .receive_until(|received| received["payload"]["jsonrpc"] == "2.0"),
                id,
            );
        }
        assert_eq!(stage.executed(), before, "{id}");
        assert_eq!(stage.shown("p1")["state"], "pending", "{id}");
    }
    stage.boss.send(
        FULFIL,
        "without addressees",
        &[],
        names("p1"),
        &fulfilment("please"),
    );
    let notice = stage
        .boss
        .receive_until(|received| received["kind"] == "system/error");
    assert_eq!(
        (&notice["correlation_id"], &notice["payload"]["error"]),
        (&json!("without addressees"), &json!("conflict"))
    );
    let message = notice["payload"]["message"].as_str().unwrap();
    assert!(
        message.contains("in `to` the participants that the proposal names"),
        "{message}"
    );
    assert_eq!(stage.executed(), before);
    assert_eq!(stage.shown("p1")["state"], "pending");
    // After these, a valid approval still works.
    assert_eq!(stage.approve("boss", &proposal).status, 200);
    let end = ended(&mut stage.agent, "p1", &["running", "completed"]);
    says(&end.answer, "please");
    assert_eq!(stage.executed(), before + 1);
    let audit_log = stage.audit_log();
    audit_log.has("boss", ECHO, "approved", "proposed by agent");
    // Two approvals have other digests, and the arguments of one are not an object.
    audit_log.comes_to(2, "boss", ECHO, "refused", "differs");
    audit_log.comes_to(1, "boss", ECHO, "refused", "malformed");
    let other = audit_log.entries(&[
        "--participant",
        "boss",
        "--verdict",
        "refused",
        "mcp/proposal",
    ]);
    let conflicts = other
        .iter()
        .filter(|entry| entry["why"] == "conflict: this is not what was proposed");
    assert_eq!(conflicts.count(), 5, "{other:?}");
    audit_log.has("boss", FULFIL, "refused", "mismatch: ");
    assert_eq!(audit_log.entries(&["--verdict", "approved"]).len(), 1);
}

#[test]
fn invalid_proposals_are_refused() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let first = stage.propose("p1", "please");
    // An id that is in use, by the same participant and by another.
    stage
        .agent
        .send(ECHO, "p1", &["tools"], json!({}), &echoes("something else"));
    stage.agent.refused("p1", "conflict");
    stage
        .boss
        .send(ECHO, "p1", &["tools"], json!({}), &echoes("something else"));
    stage.boss.refused("p1", "conflict");
    assert_eq!(stage.shown("p1"), first);
    let add = json!({ "method": "tools/call", "params": { "name": "add", "arguments": { "a": 1, "b": 2 } } });
    for (id, kind, payload) in [
        ("another tool", ECHO, add),
        (
            "another method",
            "mcp/proposal:prompts/get:echo",
            echoes("x"),
        ),
        ("nothing", ECHO, json!({})),
    ] {
        stage.agent.send(kind, id, &["tools"], json!({}), &payload);
        let notice = state(&mut stage.agent, id, "rejected");
        assert!(
            notice["payload"]["reason"]
                .as_str()
                .unwrap()
                .contains("kind and payload differ"),
            "{notice}"
        );
    }
    let all = stage.api("boss", "GET", "?all=true", &json!(null)).json();
    assert_eq!(all["proposals"].as_array().unwrap().len(), 1, "{all}");
    assert_eq!(stage.executed(), before);
    let audit_log = stage.audit_log();
    for who in ["agent", "boss"] {
        audit_log.has(
            who,
            ECHO,
            "refused",
            "conflict: this id names another proposal",
        );
    }
    audit_log.comes_to(2, "agent", ECHO, "refused", "mismatch: ");
}

#[test]
fn participants_without_the_capability_neither_see_nor_decide_proposals() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let proposal = stage.propose("p1", "please");
    let unknown = json!({ "id": "0".repeat(32), "digest": proposal["digest"] });
    for who in ["clerk", "worker"] {
        let all = stage.api(who, "GET", "?all=true", &json!(null)).json();
        assert_eq!(all["proposals"], json!([]), "{who}");
        for what in ["", "/approve", "/reject", "/withdraw"] {
            let [real, none] = [&proposal, &unknown].map(|proposal| {
                let path = format!("/{}{what}", proposal["id"].as_str().unwrap());
                let body = if what == "/approve" {
                    json!({ "digest": proposal["digest"] })
                } else {
                    json!({})
                };
                stage.api(
                    who,
                    if what.is_empty() { "GET" } else { "POST" },
                    &path,
                    &body,
                )
            });
            assert_eq!(
                (real.status, &real.body),
                (none.status, &none.body),
                "{who} {what}"
            );
            assert_eq!(real.status, 404, "{who} {what}");
        }
    }
    let mut clerk = Socket::enter(&stage.gateway, "clerk", "?mode=directed&echo=false");
    clerk.send(FULFIL, "f1", &["tools"], names("p1"), &fulfilment("please"));
    clerk.refused("f1", "capability_violation");
    assert_eq!(
        (stage.executed(), &stage.shown("p1")["state"]),
        (before, &json!("pending"))
    );
    let audit_log = stage.audit_log();
    audit_log.has("clerk", FULFIL, "refused", "not_admitted");
    for who in ["clerk", "worker"] {
        audit_log.comes_to(3, who, ECHO, "refused", "unknown_target");
    }
}

#[test]
fn rejections_and_withdrawals_are_announced() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let one = stage.propose("p1", "please");
    assert_eq!(
        stage
            .decide(
                "boss",
                &one,
                "reject",
                &json!({ "reason": "not on a \"Friday\"" })
            )
            .status,
        200
    );
    let notice = state(&mut stage.agent, "p1", "rejected");
    assert_eq!(
        (&notice["payload"]["reason"], &notice["payload"]["by"]),
        (&json!("not on a \"Friday\""), &json!("boss"))
    );
    let two = stage.propose("p2", "please");
    let reply = stage.decide("boss", &two, "withdraw", &json!({}));
    assert!((400..500).contains(&reply.status), "{reply:?}");
    assert_eq!(stage.shown("p2")["state"], "pending");
    let reply = stage.decide("agent", &two, "withdraw", &json!({ "reason": "no need" }));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(
        state(&mut stage.agent, "p2", "withdrawn")["payload"]["reason"],
        "no need"
    );
    for proposal in [&one, &two] {
        let reply = stage.approve("boss", proposal);
        assert_eq!(reply.status, 409, "{reply:?}");
    }
    for (number, id) in ["p1", "p2"].iter().enumerate() {
        let request = format!("f{number}");
        stage.boss.send(
            FULFIL,
            &request,
            &["tools"],
            names(id),
            &fulfilment("please"),
        );
        fails(
            &stage
                .boss
                .receive_until(|received| received["from"] == "tools"),
            &request,
        );
    }
    assert_eq!(stage.executed(), before);
}

#[test]
fn edited_arguments_are_recorded_and_run() {
    let mut stage = Stage::new();
    let before = stage.executed();
    let proposal = stage.propose("p1", "rm -r /");
    let body = json!({ "digest": proposal["digest"], "arguments": { "text": "ls" } });
    assert_eq!(
        stage.decide("boss", &proposal, "approve", &body).status,
        200
    );
    let end = ended(&mut stage.agent, "p1", &["running", "completed"]);
    says(&end.answer, "ls");
    stage.propose("p2", "rm -r /");
    stage
        .boss
        .send(FULFIL, "f2", &["tools"], names("p2"), &fulfilment("ls"));
    let end = ended(&mut stage.agent, "p2", &["running", "completed"]);
    says(&end.answer, "ls");
    for id in ["p1", "p2"] {
        let shown = stage.shown(id);
        assert_eq!(
            shown["edited"]["arguments"],
            json!({ "text": "ls" }),
            "{shown}"
        );
        assert_eq!(
            shown["params"]["arguments"],
            json!({ "text": "rm -r /" }),
            "{shown}"
        );
        assert_eq!(
            shown["answer"]["result"]["content"][0]["text"], "ls",
            "{shown}"
        );
    }
    assert_eq!(stage.executed(), before + 2);
}
