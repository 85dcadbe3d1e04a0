//! Faults of nodes and of servers of NATS, while proposals are made, decided by people and rules,
//! revoked and run.
//!
//! `PORTMOOT_FAULTS` sets their number, the default is 12; `PORTMOOT_FAULTS_SEED` the first of their
//! kinds, and `PORTMOOT_FAULTS_SERVERS` the number of servers, the default is 3.

use std::collections::BTreeMap;
use std::thread::Scope;
use std::time::{Duration, Instant};

use harness::Link;
use serde_json::Value;

use crate::support::until;

use super::callers::{Worker, listed, number_of};
use super::load::{Load, REVOKED, RULED};
use super::nodes::{Nodes, SHORT};
use super::{revoked, ruled};

/// Callers at one time, and those who decide.
const CALLERS: usize = 8;
const DECIDERS: usize = 2;
/// The time for which a fault lasts that nothing else ends.
const FAULT: Duration = Duration::from_millis(1_500);

/// The code of an end after which a call may have run.
const UNSURE: &str = "outcome_unknown";
/// The reason of the end of a call whose connection ended with its node: it may have run.
const CANCELLED: &str = "the call was cancelled while it ran";

/// Starts the load.
fn start<'s>(load: &'s Load, scope: &'s Scope<'s, '_>) {
    for _ in 0..CALLERS {
        scope.spawn(|| load.call());
    }
    for _ in 0..DECIDERS {
        scope.spawn(|| load.decide());
    }
    for way in ruled::WAYS {
        scope.spawn(move || ruled::rule(load, way));
    }
    scope.spawn(|| revoked::revoke(load));
}

/// A kind of fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    KillHome,
    KillOther,
    EndHome,
    StopHome,
    StopOther,
    StopHomeShortly,
    CutHome,
    CutOther,
    DropAll,
    StallHome,
    HalfOpenHome,
    ThrottleAll,
    Nats(Harm),
}

/// The fault of one server of NATS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Harm {
    Kill,
    Stop,
    Part(Link),
}

/// All faults, those of different kinds one after the other.
const FAULTS: [Fault; 17] = [
    Fault::KillHome,
    Fault::Nats(Harm::Kill),
    Fault::StopHome,
    Fault::Nats(Harm::Part(Link::Cut)),
    Fault::CutHome,
    Fault::Nats(Harm::Stop),
    Fault::DropAll,
    Fault::KillOther,
    Fault::StallHome,
    Fault::ThrottleAll,
    Fault::EndHome,
    Fault::Nats(Harm::Part(Link::HalfOpen)),
    Fault::HalfOpenHome,
    Fault::StopOther,
    Fault::Nats(Harm::Part(Link::Stalled)),
    Fault::StopHomeShortly,
    Fault::CutOther,
];

/// Has a fault happen, to this server of NATS if it is one of theirs, and ends it.
fn happen(nodes: &mut Nodes, fault: Fault, server: usize) {
    let home = nodes.home();
    let other = nodes.other();
    match fault {
        Fault::KillHome => restart(nodes, home.node, "KILL"),
        Fault::KillOther => restart(nodes, other, "KILL"),
        Fault::EndHome => restart(nodes, home.node, "TERM"),
        Fault::StopHome => {
            nodes.signal(home.node, "STOP");
            nodes.next_home(home.epoch);
            nodes.signal(home.node, "CONT");
        }
        Fault::StopOther => stop(nodes, other),
        Fault::StopHomeShortly => stop(nodes, home.node),
        Fault::CutHome => isolate(nodes, Link::Cut),
        Fault::StallHome => isolate(nodes, Link::Stalled),
        Fault::HalfOpenHome => isolate(nodes, Link::HalfOpen),
        Fault::CutOther => {
            nodes.link(other, Link::Cut);
            std::thread::sleep(FAULT);
            nodes.link(other, Link::Whole);
        }
        Fault::DropAll => (0..nodes.count()).for_each(|node| nodes.drop_connections(node)),
        Fault::ThrottleAll => {
            let link = |link| (0..nodes.count()).for_each(|node| nodes.link(node, link));
            link(Link::Throttled(20_000));
            std::thread::sleep(FAULT);
            link(Link::Whole);
        }
        Fault::Nats(harm) => happen_to(nodes, server, harm),
    }
}

/// Harms a server of NATS, and mends it.
fn happen_to(nodes: &mut Nodes, server: usize, harm: Harm) {
    match harm {
        Harm::Kill => {
            nodes.nats.kill(server);
            nodes.nats.begin(server);
        }
        Harm::Stop => {
            nodes.nats.signal(server, "STOP");
            std::thread::sleep(FAULT);
            nodes.nats.signal(server, "CONT");
        }
        Harm::Part(link) => {
            nodes.link_server(server, link);
            std::thread::sleep(FAULT);
            nodes.link_server(server, Link::Whole);
        }
    }
}

fn restart(nodes: &mut Nodes, node: usize, signal: &str) {
    nodes.end(node, signal);
    nodes.restart(node);
}

fn stop(nodes: &Nodes, node: usize) {
    nodes.signal(node, "STOP");
    std::thread::sleep(FAULT);
    nodes.signal(node, "CONT");
}

/// Parts the home from the servers of NATS until another node is the home.
fn isolate(nodes: &Nodes, link: Link) {
    let home = nodes.home();
    nodes.link(home.node, link);
    nodes.next_home(home.epoch);
    nodes.link(home.node, Link::Whole);
}

/// Checks that all that was reported still holds.
#[track_caller]
fn check(nodes: &Nodes, load: &Load, worker: &Worker) {
    // What was so before the list was asked for.
    let (pending, approved, rejected) = {
        let book = load.book();
        let sets = (&book.pending, &book.approved, &book.rejected);
        (sets.0.clone(), sets.1.clone(), sets.2.clone())
    };
    let ran = worker.ran();
    let known = known(nodes);
    let ran_by_now = worker.ran();
    for (number, times) in &ran {
        assert_eq!(*times, 1, "{number} was carried out {times} times");
        assert!(!rejected.contains(number), "{number} was rejected, and ran");
        assert!(!load.book().never.contains(number), "{number} ran");
    }
    for number in &pending {
        // The gateway may forget ended proposals.
        let is_ended = load.book().ended.contains_key(number) || ran.contains_key(number);
        let is_there = is_ended || known.contains_key(number);
        assert!(is_there, "{number} was pending and is lost");
    }
    for (number, proposal) in &known {
        let is_decided = approved.contains(number) || rejected.contains(number);
        check_state(proposal, is_decided, ran.contains_key(number));
        let is_so = proposal["state"] != "completed" || ran_by_now.contains_key(number);
        assert!(is_so, "it never ran: {proposal}");
    }
    let mut book = load.book();
    for number in pending {
        if known
            .get(&number)
            .is_none_or(|one| one["state"] != "pending")
        {
            book.pending.remove(&number);
        }
    }
}

/// Checks that the state of a proposal is one that goes with what was reported before.
#[track_caller]
fn check_state(proposal: &Value, is_decided: bool, has_run: bool) {
    let state = proposal["state"].as_str().unwrap();
    assert!(!is_decided || state != "pending", "decided: {proposal}");
    let after = ["running", "completed", "failed"];
    assert!(!has_run || after.contains(&state), "it ran: {proposal}");
    let reason = proposal["reason"].as_str().unwrap_or_default();
    // The call of one whose token is revoked may be cancelled.
    let may_fail = number_of(proposal) >= REVOKED || is_unsure(reason);
    let is_known = state != "failed" || may_fail;
    assert!(is_known, "{proposal}");
}

/// Whether a text says that a call may have run.
fn is_unsure(text: &str) -> bool {
    text.contains(UNSURE) || text.contains(CANCELLED)
}

/// The proposals that a node lists, by number.
#[track_caller]
fn known(nodes: &Nodes) -> BTreeMap<u64, Value> {
    let book = nodes.book();
    let mut turns = 0..;
    let all = until("a node lists the proposals", || {
        let address = book.in_turn(turns.next()?)?;
        listed(&address, SHORT)
    });
    all.into_iter().map(|one| (number_of(&one), one)).collect()
}

/// Checks what each caller learned against what was carried out.
#[track_caller]
fn check_callers(load: &Load, worker: &Worker) {
    let ran = worker.ran();
    let book = load.book();
    let mut unsure = 0;
    for (number, end) in &book.ended {
        let text = end.to_string();
        if end["result"]["content"] == Value::Array(Vec::new()) {
            assert_eq!(ran.get(number), Some(&1), "learned that it ran: {text}");
        } else if is_unsure(&text) {
            unsure += 1;
        } else {
            assert_eq!(ran.get(number), None, "learned that it did not run: {text}");
        }
    }
    let by_rule = ran.range(RULED..REVOKED).count();
    assert!(by_rule > 0, "no rule decided anything");
    println!(
        "{} calls of the agent, {} rules and {} tokens: {} learned the end ({unsure} of them that it is not known), {} without an answer; {} approved, {} rejected, {} run ({by_rule} by rules, {} of tokens that were revoked)",
        load.made(),
        book.over.range(RULED..REVOKED).count(),
        book.revoked.len(),
        book.ended.len(),
        book.unanswered.len(),
        book.approved.len(),
        book.rejected.len(),
        ran.len(),
        ran.range(REVOKED..).count(),
    );
}

/// A number of the environment.
fn setting(name: &str, default: usize) -> usize {
    let set = std::env::var(name).ok().and_then(|text| text.parse().ok());
    set.unwrap_or(default)
}

#[test]
fn no_fault_runs_a_proposal_twice() {
    let faults = setting("PORTMOOT_FAULTS", 12);
    let seed = setting("PORTMOOT_FAULTS_SEED", 0);
    let servers = setting("PORTMOOT_FAULTS_SERVERS", 3);
    let worker = Worker::new();
    let mut nodes = Nodes::start(3, servers, &worker.config("300ms"));
    let load = Load::of(nodes.book());
    let mut times = BTreeMap::<Fault, Vec<Duration>>::new();
    std::thread::scope(|scope| {
        start(&load, scope);
        let over = OverAtEnd(&load);
        for turn in 0..faults {
            let fault = FAULTS[(seed + turn) % FAULTS.len()];
            decided_after(&load, "the load began");
            happen(&mut nodes, fault, turn % servers);
            let healed = Instant::now();
            decided_after(&load, &format!("{fault:?}"));
            times.entry(fault).or_default().push(healed.elapsed());
            check(&nodes, &load, &worker);
            ruled::check(&load, &worker);
            revoked::check(&load, false);
        }
        until("rules and tokens were taken away", || {
            let are_gone = ruled::has_had_all(&load) && !load.book().revoked.is_empty();
            are_gone.then_some(())
        });
        drop(over);
    });
    println!("until the next decision after each fault: {times:?}");
    finish(&load);
    check(&nodes, &load, &worker);
    revoked::check(&load, true);
    check_callers(&load, &worker);
}

/// Waits for one more decision.
#[track_caller]
fn decided_after(load: &Load, what: &str) {
    let before = load.decided();
    until(&format!("decisions after {what}"), || {
        (load.decided() > before).then_some(())
    });
}

/// Ends the load, also when a check fails.
struct OverAtEnd<'l>(&'l Load);

impl Drop for OverAtEnd<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Decides what is pending; every caller that learned to come back learns the end.
#[track_caller]
fn finish(load: &Load) {
    until("nothing is pending", || load.decide_rest());
    let waiting = std::mem::take(&mut load.book().waiting);
    for (number, mut caller) in waiting {
        let end = caller.end(load.nodes());
        load.book().end(number, end);
    }
}
