//! Option `--watch` of listings.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::fake_gateway::gateway;
use crate::home::Home;

const JSON: &str = "application/json";

#[test]
fn a_listing_is_printed_again_when_it_changes() {
    let asked = AtomicUsize::new(0);
    let (url, _seen) = gateway(move |_| match asked.fetch_add(1, Ordering::Relaxed) {
        0..=2 => (
            200,
            JSON,
            r#"{"servers":[{"name":"a","state":"starting"}]}"#.to_owned(),
        ),
        3..=4 => (
            500,
            JSON,
            r#"{"code":"internal","message":"not now"}"#.to_owned(),
        ),
        _ => (
            200,
            JSON,
            r#"{"servers":[{"name":"a","state":"ready"}]}"#.to_owned(),
        ),
    });
    let home = Home::new();
    let mut command = home.command(&["servers", "ls", "--watch=200ms", "--url", &url]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap);
    let mut states = Vec::new();
    for line in lines.filter(|line| !line.starts_with("NAME")) {
        states.push(
            line.split_whitespace()
                .take(2)
                .collect::<Vec<_>>()
                .join(" "),
        );
        if line.contains("ready") {
            break;
        }
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(states, ["a starting", "not now", "a ready"]);
}

#[test]
fn every_listing_can_be_watched() {
    let home = Home::new();
    for listing in [
        &["servers", "ls"][..],
        &["tools", "ls"],
        &["resources", "ls"],
        &["prompts", "ls"],
        &["participants", "ls"],
        &["status"],
    ] {
        // Without a gateway, none is started again and again.
        let ran = home.run(&[listing, &["--watch"]].concat()).expect(1);
        assert!(
            ran.stderr.contains("[gateway_unreachable]"),
            "{listing:?}: {}",
            ran.stderr
        );
        let ran = home.run(&[listing, &["--watch=soon"]].concat()).expect(2);
        assert!(
            ran.stderr.contains("--watch must be a duration"),
            "{listing:?}: {}",
            ran.stderr
        );
    }
    // This one is sent each change as it happens: it has no interval.
    let ran = home.run(&["proposals", "ls", "--watch"]).expect(1);
    assert!(
        ran.stderr.contains("[gateway_unreachable]"),
        "{}",
        ran.stderr
    );
    // These read the data directory too.
    for listing in [["token", "ls"], ["audit", "query"]] {
        home.run(&[&listing[..], &["--watch=soon"]].concat())
            .expect(2);
    }
}
