//! Failures of the other side: none delays a proposal, and each is counted.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::{Stage, first, program, receiver, route};
use crate::approver_outside::pdp::{Pdp, Said, raw};
use crate::support::until;

/// Answers the first request with this status, and all others with 200.
fn fails_first(status: u16) -> Pdp {
    let count = AtomicUsize::new(0);
    Pdp::start(move |_, _| {
        let is_first = count.fetch_add(1, Ordering::Relaxed) == 0;
        raw(if is_first { status } else { 200 }, "")
    })
}

#[test]
fn what_fails_for_now_is_sent_again_with_the_same_id() {
    let receiver = fails_first(500);
    let stage = Stage::new(&route("hook", &receiver, ""));
    stage.propose("scout", "p1");
    stage.comes_to("hook", "sent", 1);
    let all = receiver.received("/hook");
    assert_eq!(all.len(), 2);
    assert_eq!(all[0].header("webhook-id"), all[1].header("webhook-id"));
    assert_eq!(all[0].text, all[1].text);
}

#[test]
fn what_is_decided_before_it_arrives_is_not_sent_again() {
    let receiver = Pdp::start(|_, _| raw(503, ""));
    let stage = Stage::new(&route("hook", &receiver, ""));
    let id = stage.propose("scout", "p1");
    first(&receiver, "/hook");
    stage.reject(&id);
    stage.comes_to("hook", "over", 1);
    assert_eq!(stage.count("hook", "sent"), 0);
}

#[test]
fn a_refusal_and_a_redirect_end_a_notification() {
    let receiver = Pdp::start(|received, base| match received.path.as_str() {
        "/moved" => Said {
            head: format!("location: {base}/elsewhere\r\n"),
            ..raw(307, "")
        },
        _ => raw(403, ""),
    });
    let stage = Stage::new(&(route("moved", &receiver, "") + &route("refused", &receiver, "")));
    stage.propose("scout", "p1");
    stage.comes_to("moved", "failed", 1);
    stage.comes_to("refused", "failed", 1);
    assert!(receiver.received("/elsewhere").is_empty());
    let log = stage.gateway.log();
    assert!(
        log.contains("which is not followed") && log.contains("the answer has the status 403"),
        "{log}"
    );
}

#[test]
fn a_private_address_is_dialed_only_if_that_is_configured() {
    let receiver = receiver();
    let port = receiver.base().rsplit_once(':').unwrap().1.to_owned();
    // The unspecified address leads to this machine.
    let routes = format!(
        "[notifications.closed]\nwebhook = \"http://0.0.0.0:{port}/closed\"\n\
         [notifications.open]\nwebhook = \"http://0.0.0.0:{port}/open\"\nallow_private = [\"0.0.0.0/32\"]\n"
    );
    let stage = Stage::new(&routes);
    let id = stage.propose("scout", "p1");
    assert_eq!(first(&receiver, "/open").body()["proposal"], json!(id));
    stage.comes_to("closed", "failed", 1);
    assert!(receiver.received("/closed").is_empty());
    let log = stage.gateway.log();
    assert!(
        log.contains("may not be dialed: 0.0.0.0 is a special-purpose address"),
        "{log}"
    );
}

#[test]
fn a_program_that_hangs_delays_neither_proposals_nor_other_notifications() {
    let receiver = receiver();
    let routes =
        "[notifications.hangs]\nexec = [\"./hangs\"]\n".to_owned() + &route("hook", &receiver, "");
    let stage = Stage::at(&routes, |home| {
        program(
            home,
            "hangs",
            "echo $$ >> pids; trap '' TERM; while true; do sleep 1000; done",
        );
    });
    let pids = stage.home.path().join("pids");
    let started = |count: usize| {
        until("the program runs", || {
            let all = std::fs::read_to_string(&pids).ok()?;
            (all.lines().count() == count).then_some(())
        });
    };
    let id = stage.propose("scout", "p1");
    started(1);
    stage.reject(&id);
    // Another proposer has a place of its own.
    stage.propose("other", "p2");
    started(2);
    until("both notifications", || {
        (receiver.received("/hook").len() == 2).then_some(())
    });
    stage.comes_to("hangs", "failed", 2);
    let log = stage.gateway.log();
    assert!(
        log.contains("the program `./hangs` did not end within 10 s"),
        "{log}"
    );
    for pid in std::fs::read_to_string(&pids).unwrap().lines() {
        let pid = pid.parse().unwrap();
        until("its end", || (!crate::support::is_alive(pid)).then_some(()));
    }
}
