//! Decisions that come while the approver outside is asked.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use serde_json::json;

use super::pdp::{Pdp, Received, Said, decision, requestable, said, task};
use super::{KIND, MAY_APPROVE_ECHO, Stage, proposal_of};
use crate::support::until;
use crate::ws::token;

/// A service at which every request waits.
fn waiting() -> Pdp {
    Pdp::start(|received, base| match received.path.as_str() {
        "/evaluate" => requestable(),
        "/requests" => Said {
            head: "retry-after: 60\r\n".to_owned(),
            ..said(202, &task(base, "t1", "pending"))
        },
        path if path.ends_with("/cancel") => said(200, &task(base, "t1", "cancelled")),
        _ => said(200, &task(base, "t1", "pending")),
    })
}

#[test]
fn a_person_may_be_faster_than_the_approver_outside() {
    let pdp = waiting();
    let stage = Stage::new(&pdp);
    let id = stage.held("one");
    until("the request", || {
        (!pdp.received("/requests").is_empty()).then_some(())
    });
    stage.approve(&id);
    assert_eq!(stage.outcome(&id), "one");
    assert_eq!(stage.shown(&id)["decided_by"], "ann");
    // The service learns that no one needs its answer any more.
    let cancelled = until("the end of the request", || {
        pdp.received("/requests/t1/cancel").into_iter().next()
    });
    assert_eq!(cancelled.body(), json!({ "reason": "decided_elsewhere" }));
}

#[test]
fn an_answer_that_comes_after_a_lost_right_decides_nothing() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let pdp = Pdp::start(move |_, _| {
        let _ = wait.lock().unwrap().recv();
        decision(true)
    });
    let stage = Stage::new(&pdp);
    let id = proposal_of(&stage.call("late"));
    until("the question", || {
        (!pdp.received("/").is_empty()).then_some(())
    });
    let url = stage.gateway.url();
    let revoke = [
        "participants",
        "revoke",
        "desk",
        MAY_APPROVE_ECHO[0],
        "--url",
        &url,
        "--token",
        &token("ann"),
    ];
    stage.home.run(&revoke).expect(0);
    go.send(()).unwrap();
    let audit = stage.audit();
    audit.has("desk", KIND, "admitted", "127.0.0.1: permitted");
    // On record as a decision that does not count, as a person's is.
    audit.has(
        "desk",
        "mcp/proposal:tools/call:echo",
        "refused",
        "unknown_target",
    );
    assert_eq!(stage.shown(&id)["state"], "pending");
}

/// Waits until the journal has this text.
fn on_disk(stage: &Stage, text: &str) {
    until(text, || {
        let journal = stage.home.path().join("data/journal.jsonl");
        let written = std::fs::read_to_string(journal).unwrap_or_default();
        written.contains(text).then_some(())
    });
}

/// The requests for access that a service has received.
fn requests(pdp: &Pdp) -> Vec<Received> {
    let all = pdp.received("/requests").into_iter();
    all.filter(|one| one.path == "/requests").collect()
}

#[test]
fn an_access_request_goes_on_with_its_task_after_a_crash() {
    let is_approved = Arc::new(AtomicBool::new(false));
    let approved = Arc::clone(&is_approved);
    let pdp = Pdp::start(move |received, base| match received.path.as_str() {
        "/evaluate" if received.text.contains("approved_until") => decision(true),
        "/evaluate" => requestable(),
        "/requests" => Said {
            head: "retry-after: 60\r\n".to_owned(),
            ..said(202, &task(base, "t1", "pending"))
        },
        _ if approved.load(Ordering::SeqCst) => {
            let approval = json!({ "id": "a", "approved_until": "2999-01-01T00:00:00Z" });
            let mut done = task(base, "t1", "approved");
            done["result"] = json!({ "mode": "reevaluate", "approval": approval });
            said(200, &done)
        }
        _ => said(200, &task(base, "t1", "pending")),
    });
    let mut stage = Stage::new(&pdp);
    let id = stage.held("later");
    // Its task is written down right after the answer, and nothing waits for that.
    on_disk(&stage, "/requests/t1");
    is_approved.store(true, Ordering::SeqCst);
    stage.restart();
    assert_eq!(stage.outcome(&id), "later");
    assert_eq!(stage.shown(&id)["decided_by"], "desk");
    assert_eq!(requests(&pdp).len(), 1);
}

#[test]
fn an_access_request_without_an_answer_is_sent_again_under_its_key_after_a_crash() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let pdp = Pdp::start(move |received, base| match received.path.as_str() {
        "/evaluate" => requestable(),
        _ => {
            // The first one has no answer before the gateway is gone.
            let _ = wait.lock().unwrap().recv();
            said(201, &task(base, "t1", "denied"))
        }
    });
    let mut stage = Stage::new(&pdp);
    let id = stage.held("later");
    until("the request", || requests(&pdp).pop());
    stage.restart();
    let again = until("the request again", || requests(&pdp).into_iter().nth(1));
    let [first, ..] = &*requests(&pdp) else {
        panic!("there was one");
    };
    assert_eq!(
        first.header("idempotency-key"),
        again.header("idempotency-key")
    );
    assert_eq!(first.text, again.text);
    drop(go);
    assert!(stage.outcome(&id).contains("rejected"));
}

#[test]
fn a_topic_without_its_approver_any_more_asks_and_waits_no_more() {
    let pdp = waiting();
    let mut stage = Stage::new(&pdp);
    let id = stage.held("one");
    until("the request", || {
        (!pdp.received("/requests").is_empty()).then_some(())
    });
    let (before, rest) = stage.config.split_once("[topics.main.approver]").unwrap();
    let after = rest.split_once("[servers.tools]").unwrap().1;
    stage.config = format!("{before}[servers.tools]{after}");
    stage.home.write("portmoot.toml", &stage.config);
    stage.gateway.signal("HUP");
    until("the end of the request", || {
        pdp.received("/requests/t1/cancel").into_iter().next()
    });
    let evaluated = pdp.received("/evaluate").len();
    stage.approve(&id);
    assert_eq!(stage.outcome(&id), "one");
    let other = stage.held("two");
    assert_eq!(stage.shown(&other)["state"], "pending");
    assert_eq!(pdp.received("/evaluate").len(), evaluated);
}

#[test]
fn what_is_amended_is_asked_about_anew_and_the_answer_before_is_void() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let pdp = Pdp::start(move |received, _| {
        if received.word() == "first" {
            let _ = wait.lock().unwrap().recv();
        }
        decision(received.word() != "second")
    });
    let decides = "arguments = [\"/text\"]\ndecides = \"approve\"\n";
    let stage = Stage::with(&pdp, MAY_APPROVE_ECHO, decides, "");
    let id = stage.held("first");
    let amended = |text: &str| {
        let body = json!({ "arguments": { "text": text } });
        let reply = stage.api_as("scout", "POST", &format!("{id}/amend"), &body);
        assert_eq!(reply.status, 200, "{reply:?}");
    };
    amended("second");
    stage
        .audit()
        .has("desk", KIND, "admitted", "127.0.0.1: denied");
    go.send(()).unwrap();
    assert_eq!(stage.shown(&id)["state"], "pending");
    amended("third");
    assert_eq!(stage.outcome(&id), "third");
    let asked = pdp.received("/");
    let asked: Vec<String> = asked.iter().map(Received::word).collect();
    assert_eq!(asked, ["first", "second", "third"]);
}

/// A service that gives each request a task of its own, and approves the second one when the test says so.
fn with_a_second_task(is_approved: &Arc<AtomicBool>) -> Pdp {
    let approved = Arc::clone(is_approved);
    let tasks = AtomicUsize::new(0);
    Pdp::start(move |received, base| match received.path.as_str() {
        "/evaluate" if received.text.contains("approved_until") => decision(true),
        "/evaluate" => requestable(),
        "/requests" => {
            let count = tasks.fetch_add(1, Ordering::SeqCst) + 1;
            Said {
                head: "retry-after: 60\r\n".to_owned(),
                ..said(202, &task(base, &format!("t{count}"), "pending"))
            }
        }
        "/requests/t2" if approved.load(Ordering::SeqCst) => {
            let approval = json!({ "id": "a", "approved_until": "2999-01-01T00:00:00Z" });
            let mut done = task(base, "t2", "approved");
            done["result"] = json!({ "mode": "reevaluate", "approval": approval });
            said(200, &done)
        }
        path => {
            let id = path.split('/').nth(2).unwrap_or_default();
            let status = if path.ends_with("/cancel") {
                "cancelled"
            } else {
                "pending"
            };
            said(200, &task(base, id, status))
        }
    })
}

#[test]
fn a_changed_approver_asks_anew_under_a_new_key_and_cancels_only_what_was_before() {
    let is_approved = Arc::new(AtomicBool::new(false));
    let pdp = with_a_second_task(&is_approved);
    let mut stage = Stage::new(&pdp);
    let id = stage.held("later");
    on_disk(&stage, "/requests/t1");
    stage.config = stage
        .config
        .replace("as = \"desk\"\n", "as = \"desk\"\nwindow = \"9m\"\n");
    stage.home.write("portmoot.toml", &stage.config);
    stage.gateway.signal("HUP");
    until("the end of the first", || {
        pdp.received("/requests/t1/cancel").into_iter().next()
    });
    on_disk(&stage, "/requests/t2");
    let [first, second] = requests(&pdp).try_into().unwrap();
    assert_ne!(
        first.header("idempotency-key"),
        second.header("idempotency-key")
    );
    // The second is as it was: a crash changes nothing.
    is_approved.store(true, Ordering::SeqCst);
    stage.restart();
    assert_eq!(stage.outcome(&id), "later");
    assert_eq!(stage.shown(&id)["decided_by"], "desk");
    assert_eq!(requests(&pdp).len(), 2);
    assert_eq!(pdp.received("/requests/t2/cancel").len(), 0);
}

#[test]
fn a_request_that_would_have_another_body_after_a_restart_is_made_anew_and_the_one_before_cancelled()
 {
    let is_approved = Arc::new(AtomicBool::new(true));
    let pdp = with_a_second_task(&is_approved);
    let mut stage = Stage::new(&pdp);
    let id = stage.held("later");
    on_disk(&stage, "/requests/t1");
    let all = "arguments = [\"*\"]\n";
    stage.config = stage.config.replace("arguments = [\"/text\"]\n", all);
    stage.home.write("portmoot.toml", &stage.config);
    stage.restart();
    on_disk(&stage, "/requests/t2");
    // It is looked at soon after a start.
    stage.restart();
    assert_eq!(stage.outcome(&id), "later");
    let all = requests(&pdp);
    let keys: BTreeSet<&str> = all
        .iter()
        .map(|one| one.header("idempotency-key"))
        .collect();
    let bodies: BTreeSet<&str> = all.iter().map(|one| one.text.as_str()).collect();
    assert_eq!((keys.len(), bodies.len()), (2, 2));
}

#[test]
fn a_proposal_for_which_there_was_no_place_is_asked_about_when_there_is() {
    let pdp = waiting();
    let stage = Stage::new(&pdp);
    let all: Vec<String> = (1..=9)
        .map(|count| stage.held(&count.to_string()))
        .collect();
    let audit = stage.audit();
    audit.comes_to(8, "desk", KIND, "admitted", "sent to");
    until("the requests", || (requests(&pdp).len() == 8).then_some(()));
    stage.approve(&all[3]);
    audit.comes_to(9, "desk", KIND, "admitted", "sent to");
    assert_eq!(stage.asked().last(), all.last());
}

#[test]
fn a_request_that_ends_with_a_fault_is_cancelled() {
    let pdp = Pdp::start(|received, base| match received.path.as_str() {
        "/evaluate" => requestable(),
        "/requests" => Said {
            head: "retry-after: 1\r\n".to_owned(),
            ..said(202, &task(base, "t1", "pending"))
        },
        path if path.ends_with("/cancel") => said(200, &task(base, "t1", "cancelled")),
        _ => said(404, &json!({})),
    });
    let stage = Stage::new(&pdp);
    let id = stage.held("one");
    until("the end of the request", || {
        pdp.received("/requests/t1/cancel").into_iter().next()
    });
    assert_eq!(stage.shown(&id)["state"], "pending");
}
