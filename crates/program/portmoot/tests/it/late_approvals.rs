//! Late approvals: a reviewer who approves what runs already is not confirmed, however the approval
//! meets the end of the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::peer::{Peer, answer, small, tool};
use crate::reviewed::propose;
use crate::stage::api;
use crate::support::{Client, Gateway, until};
use crate::ws::{Socket, people, token};

const ROUNDS: usize = 20;
/// Tools of a server whose lists keep the topic busy, and the capabilities of the caller that lists
/// them.
const TOOLS: usize = 1_000;
const EXACT: usize = 100;
/// How long a call runs.
const RUN: Duration = Duration::from_millis(50);

#[test]
fn an_approval_that_meets_the_end_of_the_run_is_not_confirmed() {
    let runs = Peer::stdio(|message| {
        let answered = match message["method"].as_str() {
            Some("tools/call") => {
                std::thread::sleep(RUN);
                Some(answer(message, r#"{"content":[]}"#))
            }
            _ => small(message, &format!("[{}]", tool("echo"))),
        };
        answered.into_iter().map(String::into_bytes).collect()
    });
    let all: Vec<String> = (0..TOOLS)
        .map(|number| tool(&format!("t{number}")))
        .collect();
    let large = Peer::stdio(move |message| {
        small(message, &format!("[{}]", all.join(",")))
            .into_iter()
            .map(String::into_bytes)
            .collect()
    });
    let exact: Vec<String> = (0..EXACT)
        .map(|number| format!("mcp/request:tools/call:large_t{number}"))
        .collect();
    let exact: Vec<&str> = exact.iter().map(String::as_str).collect();
    let full: &[&str] = &["mcp/*", "chat"];
    let usual = [
        ("agent", crate::reviewed::PROPOSES),
        ("boss", full),
        ("chief", full),
        ("lister", &exact),
    ];
    let (home, config) = people(&usual);
    // More threads than those that wait for the topic, so that an end and an approval wait side by
    // side.
    let home = home.env("TOKIO_WORKER_THREADS", "8");
    let gateway = Gateway::start(
        &home,
        &(config + &runs.child("tools", "tools") + &large.child("large", "large")),
    );
    ["tools", "large"]
        .iter()
        .for_each(|name| gateway.ready(name));
    let mut agent = Socket::enter(&gateway, "agent", crate::reviewed::DIRECTED);
    (0..ROUNDS).for_each(|round| propose(&mut agent, &format!("p{round}")));
    let approve = |who: &str, proposal: &Value| {
        let path = format!("/{}/approve", proposal["id"].as_str().unwrap());
        api(
            gateway.address(),
            who,
            "POST",
            &path,
            &json!({ "digest": proposal["digest"] }),
        )
        .status
    };
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let lister = Client::of(&gateway, &token("lister"));
                while !ended.load(Ordering::Relaxed) {
                    lister.ask("tools/list", json!({}));
                }
            });
        }
        let _end = End(&ended);
        for round in 0..ROUNDS {
            let envelope = format!("p{round}");
            let shown = || {
                let all = api(gateway.address(), "boss", "GET", "?all=true", &Value::Null).json();
                let mut all = all["proposals"].as_array().unwrap().iter();
                all.find(|one| one["envelope"] == *envelope)
                    .unwrap()
                    .clone()
            };
            let proposal = shown();
            assert_eq!(approve("chief", &proposal), 200);
            let over = AtomicBool::new(false);
            let statuses: Vec<u16> = std::thread::scope(|scope| {
                let boss = || {
                    let mut statuses = Vec::new();
                    loop {
                        let is_over = over.load(Ordering::Relaxed);
                        statuses.push(approve("boss", &proposal));
                        if is_over {
                            break statuses;
                        }
                    }
                };
                let bosses = [scope.spawn(boss), scope.spawn(boss)];
                let end = End(&over);
                until("it is over", || {
                    (shown()["state"] == "completed").then_some(())
                });
                drop(end);
                bosses
                    .into_iter()
                    .flat_map(|boss| boss.join().unwrap())
                    .collect()
            });
            assert!(
                statuses.iter().all(|status| *status == 409),
                "round {round}: {statuses:?}"
            );
            assert_eq!(shown()["decided_by"], "chief");
        }
    });
    assert_eq!(runs.calls("echo"), ROUNDS);
}

/// Ends the threads of a scope, also after a failed check.
struct End<'e>(&'e AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
