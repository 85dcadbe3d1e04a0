//! Python participants through `kill -9` of their gateway: no confirmed proposal is lost, and
//! nothing runs twice.
//! `PORTMOOT_CRASHES` sets the number of kills; the default is 15.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::time::Duration;

use serde_json::Value;

use super::python;
use crate::program::Program;
use crate::stage::pages_of;
use crate::support::Gateway;
use crate::ws::{people, token};

#[test]
fn python_participants_lose_no_proposal_and_run_none_twice() {
    let rounds: u64 = std::env::var("PORTMOOT_CRASHES")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(15);
    let (home, config) = people(&[
        ("agent", &["mcp/proposal:*"]),
        ("boss", &["mcp/*"]),
        ("worker", &["mcp/response:*"]),
    ]);
    home.write("portmoot.toml", &config);
    // The participants come back to the same address.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
        .to_string();
    let start =
        || Gateway::serve(home.command(&["serve", "--listen", &free, "--config", "portmoot.toml"]));
    let mut gateway = start();
    let mut command = python("tests/programs/crash.py");
    command.arg("asyncio").env("PORTMOOT_URL", gateway.url());
    for (variable, who) in [("AGENT", "agent"), ("BOSS", "boss"), ("WORKER", "worker")] {
        command.env(variable, token(who));
    }
    let mut program = Program::start(command);
    for round in 0..rounds {
        // A first decision under this gateway, so that slow machines have load too.
        program.wait_for_line("here");
        program.wait_for_line("decided ");
        // The time of the kill; this waits for no event.
        std::thread::sleep(Duration::from_millis(60 + (round * 37) % 140));
        gateway.signal("KILL");
        gateway.wait();
        gateway = start();
    }
    program.wait_for_line("here");
    program.wait_for_line("decided ");
    program.close_input();
    let report: Value = serde_json::from_str(&program.wait_for_line("{")).unwrap();
    let (code, printed) = program.wait_for_exit();
    assert_eq!(code, 0, "{printed}");

    for (number, times) in report["ran"].as_object().unwrap() {
        assert_eq!(*times, 1, "{number} was carried out {times} times");
    }
    let known = pages_of(|query| {
        let path = format!("/api/v1/proposals?all=true&{query}");
        gateway.get(&path, Some(&token("boss"))).json()
    });
    let known: BTreeMap<&str, &Value> = known
        .iter()
        .map(|proposal| (proposal["envelope"].as_str().unwrap(), proposal))
        .collect();
    let (confirmed, outcomes) = (report["confirmed"].as_array().unwrap(), &report["outcomes"]);
    // Ended ones beyond these are kept without their content.
    const KEPT: usize = 256;
    let mut states = BTreeMap::<String, usize>::new();
    for id in confirmed {
        let id = id.as_str().unwrap();
        let Some(proposal) = known.get(id) else {
            assert!(known.len() >= KEPT, "{id} was confirmed and is lost");
            continue;
        };
        let (state, ran) = (
            proposal["state"].as_str().unwrap(),
            &report["ran"][report["proposed"][id].as_str().unwrap()],
        );
        match state {
            "completed" => assert_eq!(*ran, 1, "{proposal}"),
            // Interrupted, or its server was away: it may have run, and never runs again.
            "failed" => assert!(proposal["reason"].is_string(), "{proposal}"),
            other => panic!("{other}: {proposal}"),
        }
        if outcomes[id] == "done" {
            // The worker's answer reaches the proposer before the end is on disk: a kill in between
            // leaves the outcome unknown.
            let unknown = proposal["reason"]
                .as_str()
                .is_some_and(|why| why.starts_with("outcome_unknown"));
            assert!(*ran == 1 && (state == "completed" || unknown), "{proposal}");
        }
        *states.entry(state.to_owned()).or_default() += 1;
    }
    let calls = report["calls"].as_object().unwrap();
    for (number, outcome) in calls {
        if outcome == "done" {
            assert_eq!(report["ran"][number], 1, "{number}");
        }
    }
    let count = |wanted: &str| {
        let outcomes = outcomes.as_object().unwrap().values().chain(calls.values());
        outcomes.filter(|outcome| *outcome == wanted).count()
    };
    let lost = count("Lost");
    println!(
        "{} confirmed: {states:?}; {} calls; {} done, {lost} lost",
        confirmed.len(),
        calls.len(),
        count("done")
    );
    assert!(
        confirmed.len() as u64 >= rounds && states["completed"] as u64 >= rounds / 2,
        "there was no load"
    );
}
