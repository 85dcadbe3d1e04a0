//! `kill -9` under load: no announced proposal is lost, no call is executed twice, interrupted
//! calls are reported as `outcome_unknown`. `PORTMOOT_CRASHES` sets the number of kills; the
//! default is 15.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use model::ProposalState;
use participant::{Event, Participant, ParticipantSpec};
use serde_json::{Value, json};

use crate::home::Home;
use crate::http::Connection;
use crate::peer::{Peer, worker};
use crate::stage::pages_of;
use crate::support::{Gateway, until};

const AGENT: &str = "token-of-an-agent-that-proposes";
const BOSS: &str = "token-of-the-boss-who-approves-it";

/// What the gateway has reported to clients.
#[derive(Default)]
struct Reported {
    pending: BTreeSet<String>,
    approved: BTreeSet<String>,
    /// Number of calls reported as interrupted.
    unknown: usize,
}

fn api(address: &str, method: &str, path: &str, body: &str) -> Option<Value> {
    let bearer = format!("Bearer {BOSS}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    // The gateway may be killed during the request.
    let asked = std::panic::catch_unwind(|| {
        Connection::open(address).exchange(method, path, &headers, body)
    });
    asked
        .ok()
        .filter(|reply| reply.status == 200)
        .map(|reply| reply.json())
}

/// Approves every pending proposal until the gateway is killed.
fn approve(address: &str, reported: &Mutex<Reported>, done: &std::sync::atomic::AtomicBool) {
    while !done.load(std::sync::atomic::Ordering::SeqCst) {
        let Some(list) = api(address, "GET", "/api/v1/proposals", "") else {
            continue;
        };
        for proposal in list["proposals"].as_array().unwrap() {
            if proposal["state"] != "pending" {
                continue;
            }
            let path = format!(
                "/api/v1/proposals/{}/approve",
                proposal["id"].as_str().unwrap()
            );
            if api(
                address,
                "POST",
                &path,
                &json!({"digest": proposal["digest"]}).to_string(),
            )
            .is_some()
            {
                reported
                    .lock()
                    .unwrap()
                    .approved
                    .insert(proposal["envelope"].as_str().unwrap().to_owned());
            }
        }
    }
}

/// Proposes until the gateway is killed, `life` after the first approval.
fn load(gateway: &Gateway, reported: &Arc<Mutex<Reported>>, first: u64, life: Duration) {
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| approve(gateway.address(), reported, &done));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let spec = ParticipantSpec::new(&gateway.url(), Some(AGENT), "main");
            let agent = Participant::connect(spec).await.unwrap();
            let mut events = agent.events();
            let shared = Arc::clone(reported);
            let receiving = tokio::spawn(async move {
                while let Some(event) = events.next().await {
                    if let Event::ProposalState {
                        proposal,
                        state: ProposalState::Pending,
                        ..
                    } = event
                    {
                        shared.lock().unwrap().pending.insert(proposal);
                    }
                }
            });
            let proposing = async {
                for number in first.. {
                    let params = json!({"name": "work", "arguments": {"n": number}});
                    let _ = agent.propose(&["worker"], "tools/call", &params);
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            // Waits for a first approval, so that slow machines have load too.
            let approved = || reported.lock().unwrap().approved.len();
            let before = approved();
            let death = async {
                while approved() == before {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                // The time of the kill; this waits for no event.
                tokio::time::sleep(life).await;
            };
            tokio::select! {
                () = proposing => {}
                () = death => {}
            }
            gateway.signal("KILL");
            receiving.abort();
        });
        done.store(true, std::sync::atomic::Ordering::SeqCst);
    });
}

/// Checks that everything the gateway reported still holds.
fn check(gateway: &Gateway, reported: &mut Reported, worker: &Peer) {
    let all = pages_of(|query| {
        let path = format!("/api/v1/proposals?all=true&{query}");
        until("the gateway answers", || {
            api(gateway.address(), "GET", &path, "")
        })
    });
    let mut known = BTreeMap::new();
    for proposal in &all {
        known.insert(
            proposal["envelope"].as_str().unwrap().to_owned(),
            proposal.clone(),
        );
    }
    let mut ran: BTreeMap<u64, usize> = BTreeMap::new();
    for line in worker.received() {
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "tools/call" {
            *ran.entry(message["params"]["arguments"]["n"].as_u64().unwrap())
                .or_default() += 1;
        }
    }
    for (number, times) in &ran {
        assert_eq!(*times, 1, "{number} was carried out {times} times");
    }
    for envelope in &reported.pending {
        assert!(
            known.contains_key(envelope),
            "{envelope} was reported as pending and is lost"
        );
    }
    for (envelope, proposal) in &known {
        let state = proposal["state"].as_str().unwrap();
        let number = proposal["params"]["arguments"]["n"].as_u64().unwrap();
        if reported.approved.contains(envelope) {
            assert_ne!(
                state, "pending",
                "{envelope} was reported as approved: {proposal}"
            );
        }
        if ran.contains_key(&number) {
            assert!(
                ["running", "completed", "failed"].contains(&state),
                "{number} ran: {proposal}"
            );
        }
        if state == "failed" {
            assert!(
                proposal["reason"]
                    .as_str()
                    .unwrap()
                    .starts_with("outcome_unknown"),
                "{proposal}"
            );
            reported.unknown += 1;
        }
    }
    // The gateway may forget ended proposals.
    reported
        .pending
        .retain(|envelope| known[envelope]["state"] == "pending");
}

#[test]
fn a_killed_gateway_loses_no_proposal_and_runs_none_twice() {
    let rounds: usize = std::env::var("PORTMOOT_CRASHES")
        .ok()
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(15);
    let worker = worker();
    let home = Home::new().env("AGENT", AGENT).env("BOSS", BOSS);
    let config = format!(
        "[server]\ndata_dir = \"{}\"\n{}\
         [participants.agent]\ntoken_env = \"AGENT\"\ncapabilities = [\"mcp/proposal:*\", \"chat\"]\n\
         [participants.boss]\ntoken_env = \"BOSS\"\ncapabilities = [\"mcp/*\", \"chat\"]\n",
        home.path().join("data").display(),
        worker.child("worker", "worker"),
    );
    let reported = Arc::new(Mutex::new(Reported::default()));
    for round in 0..rounds {
        let mut gateway = Gateway::start(&home, &config);
        check(&gateway, &mut reported.lock().unwrap(), &worker);
        let life = Duration::from_millis(60 + (round as u64 * 37) % 140);
        load(&gateway, &reported, round as u64 * 10_000, life);
        gateway.wait();
    }
    let gateway = Gateway::start(&home, &config);
    check(&gateway, &mut reported.lock().unwrap(), &worker);
    let reported = reported.lock().unwrap();
    println!(
        "{} approvals, {} interrupted (counted at every start)",
        reported.approved.len(),
        reported.unknown
    );
    assert!(reported.approved.len() >= rounds, "there was no load");
}
