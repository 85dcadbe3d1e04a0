//! Collectors that fail: calls go on, what does not arrive is counted, and the log says it once.

use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use super::collector::Collector;
use super::{OFTEN, Stage, calls_in, values_of};
use crate::approver_outside::pdp::{Said, raw};
use crate::support::until;

const NO_ARRIVAL: &str = "telemetry does not arrive at the collector";
const AGAIN: &str = "telemetry arrives at the collector again";

/// The number of lines with this text that are about metrics.
fn of_metrics(log: &str, text: &str) -> usize {
    let lines = log.lines().filter(|line| line.contains(text));
    lines
        .filter(|line| line.contains("signal=\"metrics\""))
        .count()
}

#[test]
fn each_failure_of_the_collector_is_counted_and_the_log_says_it_once() {
    let status = Arc::new(AtomicU16::new(500));
    let now = Arc::clone(&status);
    let collector = Collector::answering(move |_| raw(now.load(Ordering::Relaxed), ""));
    let stage = Stage::new(&collector.table(OFTEN));
    let failures = [
        (500, "failed"),
        (400, "refused"),
        (413, "too_large"),
        (429, "throttled"),
    ];
    for (code, outcome) in failures {
        status.store(code, Ordering::Relaxed);
        until(outcome, || (stage.exports(outcome) >= 2.0).then_some(()));
        stage.call();
    }
    status.store(200, Ordering::Relaxed);
    stage.gateway.receive(AGAIN);
    // Nothing was lost: the values are sums.
    until("all calls", || {
        (calls_in(&values_of(&collector.latest())) == Some(4.0)).then_some(())
    });
    let log = stage.gateway.stop().expect(0).stderr;
    assert_eq!(of_metrics(&log, NO_ARRIVAL), 1, "{log}");
    assert_eq!(of_metrics(&log, AGAIN), 1, "{log}");
    assert!(log.contains("the answer has the status 500"), "{log}");
}

#[test]
fn a_collector_that_asks_to_wait_is_left_alone() {
    let collector = Collector::answering(|_| Said {
        head: "retry-after: 3000\r\n".to_owned(),
        ..raw(429, "")
    });
    let stage = Stage::new(&collector.table(OFTEN));
    until("the first message", || {
        (stage.exports("throttled") >= 1.0).then_some(())
    });
    stage.call();
    // Another gateway with the same interval says when it would have sent more.
    let patient = Collector::new();
    let other = Stage::new(&patient.table(OFTEN));
    until("messages of the other gateway", || {
        (patient.requests().len() > 8).then_some(())
    });
    assert_eq!(collector.requests().len(), 1);
    stage.gateway.stop().expect(0);
    other.gateway.stop().expect(0);
}

#[test]
fn a_part_that_is_not_taken_is_counted_with_the_collectors_reason() {
    // `partial_success { rejected_data_points: 3, error_message: "too old" }`
    let answer = "\n\x0b\x08\x03\x12\x07too old";
    let collector = Collector::answering(move |_| raw(200, answer));
    let stage = Stage::new(&collector.table(OFTEN));
    let line = stage.gateway.receive("takes only a part of the telemetry");
    assert!(line.contains("3 values were not taken: too old"), "{line}");
    assert!(stage.exports("partial") >= 1.0);
    assert!(stage.exports("sent") < 1.0);
    stage.gateway.stop().expect(0);
}

#[test]
fn a_collector_that_is_away_costs_no_call() {
    let stage = Stage::new("[telemetry]\notlp = \"http://127.0.0.1:9\"\ninterval = \"100ms\"\n");
    until("a failure", || {
        (stage.exports("failed") >= 2.0).then_some(())
    });
    stage.call();
    let log = stage.gateway.stop().expect(0).stderr;
    assert_eq!(of_metrics(&log, NO_ARRIVAL), 1, "{log}");
}

#[test]
fn calls_and_the_end_do_not_wait_for_a_collector_that_does_not_answer() {
    let (end, ended) = channel::<()>();
    let ended = Mutex::new(ended);
    let collector = Collector::answering(move |_| {
        // It answers once the gateway has ended.
        let _ = ended.lock().unwrap().recv();
        raw(200, "")
    });
    let stage = Stage::new(&collector.table(OFTEN));
    until("the message that is not answered", || {
        collector.requests().pop()
    });
    for _ in 0..3 {
        stage.call();
    }
    stage.gateway.stop().expect(0);
    // The message that waits, and the last one.
    assert_eq!(collector.requests().len(), 2);
    drop(end);
}
