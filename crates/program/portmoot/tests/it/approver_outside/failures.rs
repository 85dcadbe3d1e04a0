//! Failures of the approver outside: each leaves the proposal to people.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::pdp::{Pdp, Received, Said, decision, raw, requestable, requestable_with, said, task};
use super::{KIND, MAY_APPROVE_ECHO, Stage};

/// An answer that redirects.
fn redirect(to: &str) -> Said {
    Said {
        head: format!("location: {to}\r\n"),
        ..raw(307, "")
    }
}

/// The result of a task that is approved, with these members in place of its own.
fn approved(base: &str, result: &Value) -> Said {
    let mut done = task(base, "t", "approved");
    done["result"] = result.clone();
    said(201, &done)
}

const APPROVAL: &str = "2999-01-01T00:00:00Z";

/// What the service says to the evaluation of a call with this text, and to a request for it.
fn misbehaving(received: &Received, base: &str) -> Said {
    let word = received.word();
    if word == "yes" {
        return decision(true);
    }
    let approval = json!({ "id": "a", "approved_until": APPROVAL });
    let is_request = received.path == "/requests";
    match (word.as_str(), is_request) {
        ("500", _) => raw(500, "{\"decision\":true}"),
        ("403", _) => raw(403, "{\"decision\":true}"),
        ("201", _) => raw(201, "{\"decision\":true}"),
        ("syntax", _) => raw(200, "{\"decision\":true"),
        ("twice", _) => raw(200, "{\"decision\":true,\"decision\":true}"),
        ("word", _) => raw(200, "{\"decision\":\"true\"}"),
        ("long", _) => raw(
            200,
            &format!("{{\"decision\":true,\"x\":\"{}\"}}", "x".repeat(65_536)),
        ),
        ("form", _) => requestable_with(&json!({ "request_schema_url": format!("{base}/schema") })),
        ("refused", true) => raw(400, "{}"),
        ("status", true) => said(202, &task(base, "t", "APPROVED")),
        ("failed", true) => said(202, &task(base, "t", "failed")),
        ("mode", true) => approved(base, &json!({ "mode": "token", "approval": approval })),
        ("result", true) => approved(base, &Value::Null),
        ("expired", true) => {
            let approval = json!({ "id": "a", "approved_until": "2020-01-01T00:00:00Z" });
            approved(base, &json!({ "mode": "reevaluate", "approval": approval }))
        }
        // Approved each time, and never permitted.
        ("again", true) => approved(base, &json!({ "mode": "reevaluate", "approval": approval })),
        (_, false) => requestable(),
        (other, true) => panic!("{other}"),
    }
}

#[test]
fn every_failure_of_an_approver_outside_leaves_the_proposal_to_people() {
    let pdp = Pdp::start(misbehaving);
    let stage = Stage::new(&pdp);
    let audit = stage.audit();
    let mut last = String::new();
    for (word, verdict, why) in [
        ("500", "failed", "the answer has the status 500"),
        ("403", "failed", "the answer has the status 403"),
        ("201", "failed", "the answer has the status 201"),
        ("syntax", "failed", "the answer is malformed"),
        ("twice", "failed", "the answer is malformed"),
        ("word", "failed", "the answer is malformed"),
        (
            "long",
            "failed",
            "the answer of `127.0.0.1` is longer than 65536 bytes",
        ),
        ("form", "admitted", "its request needs a form"),
        ("refused", "failed", "the answer has the status 400"),
        ("status", "admitted", "its request ended undecided"),
        ("failed", "admitted", "its request ended undecided"),
        ("mode", "admitted", "its request ended undecided"),
        ("result", "failed", "the answer is malformed"),
        ("expired", "admitted", "its approval has expired"),
        ("again", "admitted", "it wants more requests than are made"),
    ] {
        let id = stage.held(word);
        let said = audit.has("desk", KIND, verdict, &format!("127.0.0.1: {why}"));
        assert!(said["why"].as_str().is_some(), "{word}");
        assert_eq!(stage.shown(&id)["state"], "pending", "{word}");
        last = id;
    }
    // Answers are no reason to leave the service alone.
    assert_eq!(stage.decided("yes").outcome, "yes");
    let again = pdp.received("/requests");
    let again = again.iter().filter(|one| one.word() == "again");
    assert_eq!(again.count(), 3);
    stage.approve(&last);
    assert_eq!(stage.outcome(&last), "again");
    assert_eq!(stage.shown(&last)["decided_by"], "ann");
}

#[test]
fn an_offer_to_request_access_is_left_to_people_where_no_address_is_configured() {
    let pdp = Pdp::start(|received, _| match received.word().as_str() {
        "yes" => decision(true),
        _ => requestable(),
    });
    let more = "arguments = [\"/text\"]\n";
    let stage = Stage::only_evaluating(&pdp.base(), MAY_APPROVE_ECHO, more, "");
    for count in 1..=6 {
        let id = stage.held(&count.to_string());
        let why = "127.0.0.1: it offers a request, and none is configured";
        stage.audit().comes_to(count, "desk", KIND, "admitted", why);
        assert_eq!(stage.shown(&id)["state"], "pending");
    }
    assert_eq!(stage.decided("yes").outcome, "yes");
    let journal = stage.home.path().join("data/journal.jsonl");
    let journal = std::fs::read_to_string(journal).unwrap();
    assert!(!journal.contains("\"requested\""), "{journal}");
}

#[test]
fn an_approver_outside_cannot_point_elsewhere() {
    let (elsewhere, seen) = elsewhere();
    let pdp = Pdp::start(move |received, base| {
        let is_request = received.path == "/requests";
        let mut pending = task(base, "t", "pending");
        match (received.word().as_str(), is_request) {
            ("evaluation", _) => redirect(&elsewhere),
            ("endpoint", _) => requestable_with(&json!({ "endpoint": elsewhere })),
            ("request", true) => redirect(&elsewhere),
            ("status", true) => {
                pending["task"]["status_endpoint"] = json!(elsewhere);
                said(202, &pending)
            }
            ("cancel", true) => {
                pending["task"]["links"]["cancel"] = json!(elsewhere);
                said(202, &pending)
            }
            ("look", true) => said(202, &task(base, "look", "pending")),
            // A look at the task.
            _ if received.path == "/requests/look" => redirect(&elsewhere),
            _ => requestable(),
        }
    });
    let stage = Stage::new(&pdp);
    let audit = stage.audit();
    for (word, why) in [
        ("evaluation", "`127.0.0.1` redirects to"),
        (
            "endpoint",
            "the answer points to another origin: `access_request.endpoint`",
        ),
        ("request", "`127.0.0.1` redirects to"),
        (
            "status",
            "the answer points to another origin: `task.status_endpoint`",
        ),
        (
            "cancel",
            "the answer points to another origin: `links.cancel`",
        ),
        ("look", "`127.0.0.1` redirects to"),
    ] {
        let id = stage.held(word);
        audit.has("desk", KIND, "failed", &format!("127.0.0.1: {why}"));
        assert_eq!(stage.shown(&id)["state"], "pending", "{word}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

/// Another place on this machine, which counts who connects.
fn elsewhere() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = format!("http://{}/x", listener.local_addr().unwrap());
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    std::thread::spawn(move || {
        for _ in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    (address, seen)
}

#[test]
fn a_service_that_is_down_is_left_alone_and_delays_no_one() {
    // Where no other test listens.
    let listener = TcpListener::bind("127.0.0.9:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let stage = Stage::at(&base, MAY_APPROVE_ECHO, "", "");
    let audit = stage.audit();
    for count in 1..=5 {
        let id = stage.held(&count.to_string());
        audit.comes_to(
            count,
            "desk",
            KIND,
            "failed",
            "127.0.0.9: `127.0.0.9` cannot be reached",
        );
        assert_eq!(stage.shown(&id)["state"], "pending");
    }
    let id = stage.held("six");
    stage.approve(&id);
    assert_eq!(stage.outcome(&id), "six");
    assert_eq!(audit.count("desk", KIND, "admitted", "sent to"), 5);
}
