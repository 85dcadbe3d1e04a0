//! Abilities of reviewers beside deciding: notes with approvals, claims.

use participant::{CallError, Event, Events, Note, Participant, ParticipantSpec, ProposalState};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::audit_log::AuditLog;
use crate::builtin_proposals::data;
use crate::listed_server::ListedServer;
use crate::participants::receive;
use crate::quorum::Stage;
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, people, token};

/// The kind of the audit entries about what is proposed here.
const PROPOSED: &str = "mcp/proposal:tools/call:echo";

/// The notes that an answer to the proposer has with it.
fn notes_with(result: &Value) -> &Value {
    &result["_meta"]["portmoot/approval"]["notes"]
}

#[test]
fn a_note_with_an_approval_reaches_the_proposer_and_outlasts_a_kill() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "two" }));
    let mut room = Socket::enter(&stage.gateway, "eve", "?mode=all");
    let noted = ["proposals", "approve", &id, "--yes", "--note", "only today"];
    stage.run("ann", &noted, 0);
    let of_ann = json!({ "by": "ann", "note": "only today" });
    let state = room.receive_until(|one| one["kind"] == "portmoot/proposal");
    assert_eq!(state["payload"]["notes"], json!([of_ann]), "{state}");
    stage.restart("KILL");
    assert_eq!(stage.shown(&id)["notes"], json!([of_ann]));
    let card = stage.run("dee", &["proposals", "show", &id], 0);
    assert!(card.contains("note by ann: only today"), "{card}");
    let digest = stage.shown(&id)["digest"].clone();
    // Both kinds of words have one limit.
    let long = "y".repeat(4096);
    for (verb, member) in [("approve", "note"), ("reject", "reason")] {
        let mut words = json!({ member: format!("{long}y") });
        if verb == "approve" {
            words["digest"] = digest.clone();
        }
        let reply = stage.api("dee", "POST", &format!("{id}/{verb}"), &words);
        assert_eq!(reply.status, 413, "{reply:?}");
    }
    let approval = json!({ "id": id, "digest": digest, "note": long });
    data(&stage.client("dee"), "approve_proposal", approval);
    assert_eq!(stage.outcome(&id), "two");
    let both = json!([of_ann, { "by": "dee", "note": long }]);
    let scout = stage.client("scout");
    let waited = scout.call("wait_for_proposal", json!({ "id": id }));
    assert_eq!(notes_with(&waited), &both, "{waited}");
    let at_once = json!({ "id": id, "wait": false });
    let report = scout.call("wait_for_proposal", at_once);
    assert_eq!(report["structuredContent"]["notes"], both, "{report}");
    stage.restart("TERM");
    assert_eq!(stage.shown(&id)["notes"], both);
    stage.gateway.signal("TERM");
    let last = "proposed by scout; before: approved by ann, 1 of 2; note: yyy";
    AuditLog(&stage.home).has("dee", PROPOSED, "approved", last);
}

#[test]
fn a_note_by_envelope_goes_with_the_answer_to_the_call_that_waits() {
    let stage = Stage::with("", "30s");
    let scout = stage.client("scout");
    let mut ann = Socket::enter(&stage.gateway, "ann", "?mode=all");
    std::thread::scope(|scope| {
        let held = scope.spawn(move || scout.call("tools_echo", json!({ "text": "x" })));
        let proposal = ann.receive_until(|one| one["kind"] == "mcp/proposal:tools/call:echo");
        for (id, note) in [("f0", json!(1)), ("f1", json!("as ever"))] {
            let meta = json!({ "portmoot/note": note });
            let params = json!({ "name": "echo", "arguments": { "text": "x" }, "_meta": meta });
            let call =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            let about = json!({ "correlation_id": proposal["id"] });
            ann.send("mcp/request:tools/call:echo", id, &["tools"], about, &call);
        }
        let refused = ann.receive_until(|one| one["kind"] == "system/error");
        assert_eq!(refused["correlation_id"], "f0", "{refused}");
        let bearer = token("ann");
        let shown: Value = until("ann has approved", || {
            let all = stage.gateway.get("/api/v1/proposals", Some(&bearer)).json();
            let first = all["proposals"][0].clone();
            (first["approved_by"] == json!(["ann"])).then_some(first)
        });
        let note = json!({ "by": "ann", "note": "as ever" });
        // The params are the proposed ones all the same.
        assert_eq!(
            (&shown["notes"], &shown["amended"]),
            (&json!([note]), &json!(false))
        );
        let id = shown["id"].as_str().unwrap();
        assert_eq!(stage.approve("dee", id).status, 200);
        let result = held.join().unwrap();
        assert_eq!(result["content"][0]["text"], "x", "{result}");
        assert_eq!(notes_with(&result), &json!([note]), "{result}");
    });
    stage.gateway.signal("TERM");
    let first = "proposed by scout; approved by ann, 1 of 2; note: as ever";
    AuditLog(&stage.home).has("ann", PROPOSED, "approved", first);
}

async fn join(stage: &Stage, who: &str) -> (Participant, Events) {
    let spec = ParticipantSpec::new(&stage.gateway.url(), Some(&token(who)), "main");
    let participant = Participant::connect(spec).await.unwrap();
    let events = participant.events();
    (participant, events)
}

/// One of two approvals by a tool of the gateway, the other one by an envelope.
#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_claims_and_gives_notes_by_tool_and_by_envelope() {
    let stage = Stage::new();
    let (ann, mut seen_by_ann) = join(&stage, "ann").await;
    let (eve, mut seen_by_eve) = join(&stage, "eve").await;
    let id = stage.held("tools_echo", json!({ "text": "one" }));
    ann.claim(&id).await.unwrap();
    let claims = receive(&mut seen_by_ann, "a claim", |event| match event {
        Event::ProposalState { claims, .. } => (!claims.is_empty()).then_some(claims),
        _ => None,
    });
    let claims = claims.await;
    assert_eq!(claims[0].by, "ann", "{claims:?}");
    let shown = ann.show(&id).await.unwrap();
    assert_eq!(shown.claims, claims);
    let state = ann.approve_with_note(&shown, None, "by tool").await;
    assert_eq!(state, Ok(ProposalState::Pending));
    let proposal = receive(&mut seen_by_eve, "the proposal", |event| match event {
        Event::Proposal(proposal) => Some(proposal),
        _ => None,
    });
    let proposal = proposal.await;
    let result = eve.fulfil_with_note(&proposal, None, "by envelope").await;
    assert!(result.unwrap().get().contains("one"));
    let notes = receive(&mut seen_by_ann, "both notes", |event| match event {
        Event::ProposalState { notes, .. } => (notes.len() > 1).then_some(notes),
        _ => None,
    });
    let expect = [("ann", "by tool"), ("eve", "by envelope")].map(|(by, note)| Note {
        by: by.to_owned(),
        note: note.to_owned(),
    });
    assert_eq!(notes.await, expect);
    let shown = ann.show(&id).await.unwrap();
    assert_eq!(
        (shown.notes, shown.envelope.is_empty()),
        (expect.to_vec(), false)
    );
    let over = ann.claim(&shown.envelope).await;
    assert!(matches!(over, Err(CallError::ToolFailed(_))), "{over:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sdk_amends_its_own_proposals_and_extends_those_of_others() {
    let stage = Stage::new();
    let (scout, _) = join(&stage, "scout").await;
    let (ann, _) = join(&stage, "ann").await;
    let id = stage.held("tools_echo", json!({ "text": "first" }));
    let other = |text: &str| to_raw_value(&json!({ "text": text })).unwrap();
    scout.amend(&id, &other("second")).await.unwrap();
    let shown = ann.show(&id).await.unwrap();
    let params = shown.params.unwrap();
    assert!(params.get().contains("second"), "{params}");
    ann.extend(&shown.envelope).await.unwrap();
    let later = ann.show(&id).await.unwrap();
    assert!(later.expires > shown.expires, "{later:?}");
    let by_another = ann.amend(&id, &other("third")).await;
    assert!(
        matches!(by_another, Err(CallError::ToolFailed(_))),
        "{by_another:?}"
    );
    let by_itself = scout.extend(&id).await;
    assert!(
        matches!(by_itself, Err(CallError::Refused(_))),
        "{by_itself:?}"
    );
}

#[test]
fn only_a_reviewer_gives_a_note_whatever_a_server_writes() {
    let (home, config) = people(&[("scout", &["mcp/proposal:*"]), ("ann", &["mcp/*"])]);
    let forger = ListedServer::new(&home, "forger", &[("forge", "Forges")]).table();
    let gateway = Gateway::start(&home, &(config + &forger));
    gateway.ready("forger");
    let (url, ann, scout) = (gateway.url(), token("ann"), token("scout"));
    let forged = json!({ "notes": [{ "by": "eve", "note": "forged" }] });
    let arguments = json!({ "portmoot/approval": forged, "own": { "kept": 1.0 } });
    // A plain call, which no participant has approved.
    let plain = Client::of(&gateway, &ann).call("forger_forge", arguments.clone());
    assert_eq!(plain["_meta"], json!({ "own": { "kept": 1.0 } }), "{plain}");
    let written = home.write("arguments.json", &arguments.to_string());
    let file = format!("@{}", written.display());
    let call = [
        "tools",
        "call",
        "forger_forge",
        "--args",
        &file,
        "--url",
        &url,
    ];
    let said = home
        .run(&[&call[..], &["--token", &ann]].concat())
        .expect(0);
    let said = said.stdout + &said.stderr;
    assert!(
        said.contains("forge of the server") && !said.contains("note by"),
        "{said}"
    );
    // One that was approved, with a note.
    std::thread::scope(|scope| {
        let held = scope.spawn(|| {
            home.run(&[&call[..], &["--token", &scout]].concat())
                .expect(0)
        });
        let id = gateway.pending(&home, &ann)["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let approve = [
            "proposals",
            "approve",
            &id,
            "--yes",
            "--note",
            "only today",
            "--url",
            &url,
            "--token",
            &ann,
        ];
        home.run(&approve).expect(0);
        let said = held.join().unwrap();
        let said = said.stdout + &said.stderr;
        assert!(said.contains("note by ann: only today"), "{said}");
        assert!(!said.contains("forged"), "{said}");
    });
}

/// The participants that look at a proposal, as one who may decide is shown.
#[track_caller]
fn looks(stage: &Stage, id: &str) -> Vec<String> {
    let shown = stage.shown(id);
    let all = shown["claims"].as_array().unwrap();
    for one in all {
        let since = one["since"].as_str().unwrap();
        assert!(since.starts_with("20") && since.ends_with('Z'), "{one}");
    }
    let by = all.iter().map(|one| one["by"].as_str().unwrap().to_owned());
    by.collect()
}

#[test]
fn others_see_who_looks_at_a_proposal_and_decide_all_the_same() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "x" }));
    let mut room = Socket::enter(&stage.gateway, "eve", "?mode=all");
    let said = stage.run("ann", &["proposals", "claim", &id], 0);
    assert!(said.contains("looking at it: ann since "), "{said}");
    let state = room.receive_until(|one| one["kind"] == "portmoot/proposal");
    assert_eq!(state["payload"]["claims"][0]["by"], "ann", "{state}");
    assert_eq!(state["payload"]["state"], "pending");
    let claimed = data(&stage.client("dee"), "claim_proposal", json!({ "id": id }));
    assert_eq!(claimed["state"], "pending", "{claimed}");
    assert_eq!(looks(&stage, &id), ["ann", "dee"]);
    let listed = stage.run("dee", &["proposals", "ls"], 0);
    assert!(
        listed.contains("LOOKS") && listed.contains("ann, dee"),
        "{listed}"
    );
    let listed = data(&stage.client("dee"), "list_proposals", json!({}));
    assert_eq!(listed["proposals"][0]["claims"][0]["by"], "ann", "{listed}");
    // Its proposer decides nothing.
    let claim = format!("{id}/claim");
    assert_eq!(stage.api("scout", "POST", &claim, &json!({})).status, 409);
    let unknown = format!("{}/claim", "0".repeat(32));
    assert_eq!(stage.api("ann", "POST", &unknown, &json!({})).status, 404);
    // Of a participant in the room it ends when that leaves.
    assert_eq!(stage.api("eve", "POST", &claim, &json!({})).status, 200);
    assert_eq!(looks(&stage, &id), ["ann", "dee", "eve"]);
    drop(room);
    until("eve has left", || {
        (looks(&stage, &id) == ["ann", "dee"]).then_some(())
    });
    // It ends with a restart, and with the proposal.
    stage.restart("KILL");
    assert!(looks(&stage, &id).is_empty());
    assert_eq!(stage.api("ann", "POST", &claim, &json!({})).status, 200);
    let eve = stage.approve("eve", &id);
    assert_eq!(eve.json()["state"], "pending", "{eve:?}");
    assert_eq!(looks(&stage, &id), ["ann"]);
    let dee = stage.approve("dee", &id);
    assert_eq!(dee.json()["state"], "running", "{dee:?}");
    assert!(looks(&stage, &id).is_empty());
    assert_eq!(stage.api("ann", "POST", &claim, &json!({})).status, 409);
    stage.gateway.stop().expect(0);
}

#[test]
fn ten_minutes_more_are_given_before_the_end_and_outlast_a_kill() {
    let mut stage = Stage::with("proposal_ttl = \"61s\"\n", "500ms");
    let mut room = Socket::enter(&stage.gateway, "eve", "?mode=all");
    let id = stage.held("tools_echo", json!({ "text": "late" }));
    let first = stage.shown(&id)["expires"].clone();
    let warning = room.receive_until(|one| one["payload"]["expiring"] == true);
    assert_eq!(
        (&warning["kind"], &warning["payload"]["expires"]),
        (&json!("portmoot/proposal"), &first),
        "{warning}"
    );
    let said = stage.run("ann", &["proposals", "extend", &id], 0);
    assert!(said.contains("10m") && said.contains("left"), "{said}");
    let state = room.receive_until(|one| one["payload"]["expires"] != first);
    assert!(state["payload"]["expiring"].is_null(), "{state}");
    let until = stage.shown(&id)["expires"].clone();
    assert_eq!(until, state["payload"]["expires"]);
    stage.restart("KILL");
    let shown = stage.shown(&id);
    assert_eq!(
        (&shown["expires"], &shown["extensions"], &shown["state"]),
        (&until, &json!(1), &json!("pending"))
    );
    // Only who may decide gives more time, and not for ever.
    let extend = format!("{id}/extend");
    assert_eq!(stage.api("scout", "POST", &extend, &json!({})).status, 409);
    let dee = stage.client("dee");
    for _ in 1..10 {
        data(&dee, "extend_proposal", json!({ "id": id }));
    }
    assert_eq!(stage.shown(&id)["extensions"], 10);
    let eleventh = stage.api("ann", "POST", &extend, &json!({}));
    assert_eq!(eleventh.status, 409, "{eleventh:?}");
    // Its caller waits as long.
    assert!(stage.waited(&id).starts_with("Not done yet"));
    assert_eq!(stage.approve("ann", &id).status, 200);
    assert_eq!(stage.approve("dee", &id).json()["state"], "running");
    assert_eq!(stage.outcome(&id), "late");
    stage.restart("TERM");
    assert_eq!(stage.shown(&id)["extensions"], 10);
    stage.gateway.signal("TERM");
    AuditLog(&stage.home).comes_to(9, "dee", PROPOSED, "extended", "until 2");
}

#[test]
fn its_proposer_amends_a_proposal_and_what_was_approved_is_void() {
    let mut stage = Stage::new();
    let id = stage.held("tools_echo", json!({ "text": "first" }));
    let mut room = Socket::enter(&stage.gateway, "eve", "?mode=all");
    assert_eq!(stage.approve("ann", &id).status, 200);
    let before = stage.shown(&id);
    let amend = format!("{id}/amend");
    let second = json!({ "arguments": { "text": "second" } });
    let by_another = stage.api("dee", "POST", &amend, &second);
    assert_eq!(by_another.status, 404, "{by_another:?}");
    for wrong in [
        json!({ "arguments": [] }),
        json!({ "arguments": { "text": "first" } }),
    ] {
        let refused = stage.api("scout", "POST", &amend, &wrong);
        assert!([400, 409].contains(&refused.status), "{refused:?}");
    }
    let amended = stage.api("scout", "POST", &amend, &second);
    assert_eq!(amended.status, 200, "{amended:?}");
    let state = room.receive_until(|one| one["payload"]["amendments"] == 1);
    assert_eq!(
        state["payload"]["params"]["arguments"]["text"], "second",
        "{state}"
    );
    let shown = stage.shown(&id);
    assert_eq!(
        (
            &shown["approved_by"],
            &shown["amendments"],
            &shown["amended"]
        ),
        (&json!([]), &json!(1), &json!(false)),
        "{shown}"
    );
    // What was seen of it before is void, over a restart too.
    stage.restart("KILL");
    let seen = json!({ "digest": before["digest"] });
    let approve = format!("{id}/approve");
    assert_eq!(stage.api("dee", "POST", &approve, &seen).status, 409);
    let scout = stage.client("scout");
    let third = json!({ "id": id, "arguments": { "text": "third" } });
    let said = data(&scout, "amend_proposal", third);
    assert_eq!(said["state"], "pending", "{said}");
    let fourth = stage.run(
        "scout",
        &["proposals", "amend", &id, r#"{"text":"4th"}"#],
        0,
    );
    assert!(fourth.contains("amended 3 times"), "{fourth}");
    assert_eq!(stage.shown(&id)["amendments"], 3);
    assert_eq!(stage.approve("ann", &id).status, 200);
    assert_eq!(stage.approve("dee", &id).json()["state"], "running");
    assert_eq!(stage.outcome(&id), "4th");
    let late = stage.api("scout", "POST", &amend, &second);
    assert_eq!(late.status, 409, "{late:?}");
    stage.gateway.signal("TERM");
    let log = AuditLog(&stage.home);
    log.has("scout", PROPOSED, "amended", "version 4");
    log.has("dee", PROPOSED, "approved", "proposed by scout; before");
}

#[test]
fn a_held_call_runs_with_the_arguments_that_its_proposer_amended() {
    let stage = Stage::with("", "30s");
    let scout = stage.client("scout");
    let mut ann = Socket::enter(&stage.gateway, "ann", "?mode=all");
    std::thread::scope(|scope| {
        let held = scope.spawn(move || scout.call("tools_echo", json!({ "text": "x" })));
        let proposal = ann.receive_until(|one| one["kind"] == "mcp/proposal:tools/call:echo");
        let bearer = token("ann");
        let all = stage.gateway.get("/api/v1/proposals", Some(&bearer)).json();
        let id = all["proposals"][0]["id"].as_str().unwrap().to_owned();
        let amended = json!({ "arguments": { "text": "y" } });
        let reply = stage.api("scout", "POST", &format!("{id}/amend"), &amended);
        assert_eq!(reply.status, 200, "{reply:?}");
        // A reviewer in the room that has seen the former arguments alone fulfils nothing.
        let params = json!({ "name": "echo", "arguments": { "text": "x" } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let about = json!({ "correlation_id": proposal["id"] });
        ann.send(
            "mcp/request:tools/call:echo",
            "f0",
            &["tools"],
            about,
            &call,
        );
        let refused = ann.receive_until(|one| one["kind"] == "system/error");
        assert_eq!(refused["correlation_id"], "f0", "{refused}");
        assert!(refused.to_string().contains("has amended it"), "{refused}");
        assert_eq!(stage.approve("ann", &id).status, 200);
        assert_eq!(stage.approve("dee", &id).status, 200);
        let result = held.join().unwrap();
        assert_eq!(result["content"][0]["text"], "y", "{result}");
    });
}
