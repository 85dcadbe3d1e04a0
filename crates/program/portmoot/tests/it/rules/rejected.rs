//! Rejections by envelopes and with codes: what the proposer, the room, the API and the journal have
//! of them.

use std::fs;

use serde_json::{Value, json};

use super::bank::{Bank, result_of};
use crate::audit_log::AuditLog;
use crate::ws::Socket;

/// Sends a rejection of the proposal of an envelope.
fn rejects(socket: &mut Socket, id: &str, about: &Value, payload: &Value) {
    let about = json!({ "correlation_id": about });
    socket.send("portmoot/reject", id, &[], about, payload);
}

#[test]
fn a_reviewer_rejects_a_held_call_by_an_envelope_with_a_code_and_a_reason() {
    let mut bank = Bank::new();
    let mut boss = Socket::enter(&bank.gateway, "boss", "?echo=true");
    let call = bank.propose(41);
    let proposed = boss.receive_until(|one| one["kind"] == "mcp/proposal:tools/call:pay");
    let payload = json!({ "code": "context", "reason": "not on a Saturday" });
    rejects(&mut boss, "r1", &proposed["id"], &payload);
    // The room has the envelope, and then the state.
    let shown = boss.receive_until(|one| one["id"] == "r1");
    assert_eq!(
        (&shown["from"], &shown["payload"]),
        (&json!("boss"), &payload)
    );
    let state = boss.receive_until(|one| one["kind"] == "portmoot/proposal");
    let state = &state["payload"];
    let said = [
        &state["state"],
        &state["by"],
        &state["code"],
        &state["reason"],
    ];
    assert_eq!(said, ["rejected", "boss", "context", "not on a Saturday"]);
    let answered = result_of(&call);
    let words = answered["content"][0]["text"].as_str().unwrap();
    assert!(
        words.contains("rejected by boss for the moment or the context")
            && words.contains("not on a Saturday"),
        "{words}"
    );
    // By the API and the command line, and after a restart.
    let call = bank.propose(42);
    let waits = bank.pending();
    let id = waits["id"].as_str().unwrap();
    bank.portmoot(
        &[
            "proposals",
            "reject",
            id,
            "--code",
            "arguments",
            "--reason",
            "too much",
        ],
        0,
    );
    call.rest();
    // Before the crash, which may cost the log its last moments.
    let log = AuditLog(&bank.home);
    log.has("boss", "portmoot/reject", "admitted", "portmoot/*");
    log.has(
        "boss",
        "mcp/proposal:tools/call:pay",
        "rejected",
        "context: not on a Saturday",
    );
    log.is_whole();
    bank.restart("KILL");
    for (amount, code) in [(41, "context"), (42, "arguments")] {
        let decided = bank.proposal_of(amount);
        assert_eq!(
            (&decided["state"], &decided["code"]),
            (&json!("rejected"), &json!(code)),
            "{decided}"
        );
    }
    let journal = fs::read_to_string(bank.home.path().join("data/journal.jsonl")).unwrap();
    for verdict in ["rejected:context", "rejected:arguments"] {
        assert!(journal.contains(verdict), "evidence has no {verdict}");
    }
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn rejections_that_do_not_count_are_answered_and_not_published() {
    let mut bank = Bank::new();
    let before = "[participants.payer]\ntoken_env = \"TOKEN_PAYER\"\ncapabilities = [";
    bank.config = bank
        .config
        .replacen(before, &format!("{before}\"portmoot/reject\", "), 1);
    bank.restart("TERM");
    let mut boss = Socket::enter(&bank.gateway, "boss", "");
    let mut payer = Socket::enter(&bank.gateway, "payer", "?echo=false");
    let mut ann = Socket::enter(&bank.gateway, "ann", "?echo=false");
    let call = bank.begins("dave", "bank_pay", 43);
    let about = payer.receive_until(|one| one["kind"] == "mcp/proposal:tools/call:pay");
    let about = about["id"].clone();
    let refused = |socket: &mut Socket, id: &str, about: &Value, payload: Value, code: &str| {
        rejects(socket, id, about, &payload);
        let answer = socket.receive_until(|one| one["correlation_id"] == id);
        assert_eq!(answer["kind"], "system/error", "{answer}");
        assert_eq!(answer["payload"]["error"], code, "{answer}");
        answer["payload"]["message"].as_str().unwrap().to_owned()
    };
    let malformed = "malformed_envelope";
    let words = refused(
        &mut payer,
        "x1",
        &about,
        json!({ "code": "unsafe" }),
        malformed,
    );
    assert!(words.contains("`arguments` or `context`"), "{words}");
    refused(&mut payer, "x2", &about, json!({ "code": 1 }), malformed);
    refused(
        &mut payer,
        "x3",
        &about,
        json!({ "reason": ["a"] }),
        malformed,
    );
    refused(
        &mut payer,
        "x4",
        &json!("unknown"),
        json!({}),
        "unknown_target",
    );
    // Without the capability for the kind.
    refused(&mut ann, "x5", &about, json!({}), "capability_violation");
    // Its own proposal.
    let mut own = bank.proposes("payer", "own", &["bank"], "pay");
    own.receive_until(|one| one["payload"]["state"] == "pending");
    refused(&mut own, "x6", &json!("own"), json!({}), "conflict");
    // Kinds beside it are the gateway's own.
    own.send("portmoot/proposal", "x7", &[], json!({}), &json!({}));
    let answer = own.receive_until(|one| one["correlation_id"] == "x7");
    assert_eq!(answer["payload"]["error"], "capability_violation");
    // None of these was published, and the first rejection that counts is the only one.
    rejects(&mut own, "good", &about, &json!({}));
    let shown = boss.receive_until(|one| one["kind"] == "portmoot/reject");
    assert_eq!(shown["id"], "good", "{shown}");
    refused(&mut own, "late", &about, json!({}), "conflict");
    call.rest();
    assert_eq!(bank.proposal_of(43)["decided_by"], "payer");
    assert_eq!(bank.server.calls("pay"), 0);
}

#[test]
fn unknown_codes_are_refused_by_every_way() {
    let bank = Bank::new();
    let call = bank.propose(44);
    let waits = bank.pending();
    let id = waits["id"].as_str().unwrap();
    let path = format!("proposals/{id}/reject");
    let (status, answer) = bank.posts("boss", &path, &json!({ "code": "policy" }));
    assert_eq!(status, 400, "{answer}");
    assert!(
        answer.to_string().contains("`arguments` or `context`"),
        "{answer}"
    );
    bank.portmoot(&["proposals", "reject", id, "--code", "policy"], 2);
    assert_eq!(bank.pending()["id"], waits["id"], "it is open");
    bank.reject(&waits);
    call.rest();
}
