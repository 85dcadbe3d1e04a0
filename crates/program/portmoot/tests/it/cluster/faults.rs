//! Faults while proposals are made, decided and run. `PORTMOOT_FAULTS` sets their number, the
//! default is 12; `PORTMOOT_FAULTS_SEED` the first of their kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};

use harness::Link;
use serde_json::Value;

use crate::support::until;

use super::callers::{Caller, Learned, Worker, decide, listed, number_of};
use super::nodes::{AddressBook, Nodes, SHORT};

/// Callers at one time, and those who decide.
const CALLERS: usize = 8;
const DECIDERS: usize = 2;
/// The time for which a fault lasts that nothing else ends.
const FAULT: Duration = Duration::from_millis(1_500);
/// The number of proposals of which one is rejected.
const REJECTED: u64 = 5;

/// The code of an end after which a call may have run.
const UNSURE: &str = "outcome_unknown";

/// The reports to callers and to the one who decides.
#[derive(Default)]
struct Book {
    /// Callers that learned that they are to come back, and learned no end yet.
    waiting: BTreeMap<u64, Caller>,
    /// The end that each caller learned.
    ended: BTreeMap<u64, Value>,
    /// Calls that were made and not answered: they may have been proposed.
    unanswered: BTreeSet<u64>,
    pending: BTreeSet<u64>,
    approved: BTreeSet<u64>,
    rejected: BTreeSet<u64>,
}

/// The load, and what it learned.
#[derive(Default)]
struct Load {
    book: Mutex<Book>,
    next: AtomicU64,
    is_over: AtomicBool,
    turn: AtomicU64,
}

impl Load {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    fn address(&self, nodes: &AddressBook) -> Option<String> {
        let turn = self.turn.fetch_add(1, Ordering::SeqCst);
        nodes.in_turn(usize::try_from(turn).unwrap())
    }

    /// The number of decisions that were acknowledged.
    fn decided(&self) -> usize {
        let book = self.book();
        book.approved.len() + book.rejected.len()
    }

    /// Makes one call after the other, each of which comes back until it learns the end.
    fn call(&self, nodes: &AddressBook) {
        while !self.is_over() {
            let number = self.next.fetch_add(1, Ordering::SeqCst);
            let mut caller = Caller::new(number);
            loop {
                let learned = self.address(nodes).map(|at| caller.ask(&at, SHORT));
                match learned.unwrap_or(Learned::Nothing) {
                    Learned::End(end) => {
                        let before = self.book().ended.insert(number, end);
                        assert!(before.is_none(), "{number} learned two ends");
                        break;
                    }
                    Learned::Nothing if !caller.has_state() => {
                        self.book().unanswered.insert(number);
                        break;
                    }
                    Learned::Later | Learned::Nothing if self.is_over() => {
                        self.book().waiting.insert(number, caller);
                        break;
                    }
                    Learned::Later | Learned::Nothing => {}
                }
            }
        }
    }

    /// Decides about every pending proposal.
    fn decide(&self, nodes: &AddressBook) {
        while !self.is_over() {
            let all = self.address(nodes).and_then(|at| listed(&at, SHORT));
            for proposal in all.unwrap_or_default() {
                if proposal["state"] != "pending" {
                    continue;
                }
                let number = number_of(&proposal);
                self.book().pending.insert(number);
                let is_rejected = number.is_multiple_of(REJECTED);
                let what = if is_rejected { "reject" } else { "approve" };
                let decided = self.address(nodes);
                let decided = decided.and_then(|at| decide(&at, SHORT, &proposal, what));
                if decided == Some(200) {
                    let mut book = self.book();
                    book.pending.remove(&number);
                    let into = if is_rejected {
                        &mut book.rejected
                    } else {
                        &mut book.approved
                    };
                    assert!(into.insert(number), "{number} was decided twice");
                }
            }
        }
    }

    fn start<'s>(&'s self, scope: &'s Scope<'s, '_>, nodes: &AddressBook) {
        for _ in 0..CALLERS {
            let nodes = nodes.clone();
            scope.spawn(move || self.call(&nodes));
        }
        for _ in 0..DECIDERS {
            let nodes = nodes.clone();
            scope.spawn(move || self.decide(&nodes));
        }
    }
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
    KillNats,
    StopNats,
}

const FAULTS: [Fault; 14] = [
    Fault::KillHome,
    Fault::DropAll,
    Fault::StopHome,
    Fault::KillOther,
    Fault::CutHome,
    Fault::KillNats,
    Fault::StallHome,
    Fault::StopOther,
    Fault::EndHome,
    Fault::HalfOpenHome,
    Fault::ThrottleAll,
    Fault::StopNats,
    Fault::StopHomeShortly,
    Fault::CutOther,
];

/// Has a fault happen, and ends it.
fn happen(nodes: &mut Nodes, fault: Fault) {
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
        Fault::KillNats => {
            nodes.nats.kill(0);
            nodes.nats.begin(0);
        }
        Fault::StopNats => {
            nodes.nats.signal(0, "STOP");
            std::thread::sleep(FAULT);
            nodes.nats.signal(0, "CONT");
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
    for (number, times) in &ran {
        assert_eq!(*times, 1, "{number} was carried out {times} times");
        assert!(!rejected.contains(number), "{number} was rejected, and ran");
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
    let is_known = state != "failed" || reason.starts_with("outcome_unknown");
    assert!(is_known, "{proposal}");
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
        } else if text.contains(UNSURE) {
            unsure += 1;
        } else {
            assert_eq!(ran.get(number), None, "learned that it did not run: {text}");
        }
    }
    println!(
        "{} calls: {} learned the end ({} of them that it is not known), {} without an answer; {} approved, {} rejected, {} run",
        load.next.load(Ordering::SeqCst),
        book.ended.len(),
        unsure,
        book.unanswered.len(),
        book.approved.len(),
        book.rejected.len(),
        ran.len(),
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
    let worker = Worker::new();
    let mut nodes = Nodes::start(3, 1, &worker.config("300ms"));
    let (load, book) = (Load::default(), nodes.book());
    let mut times = BTreeMap::<Fault, Vec<Duration>>::new();
    std::thread::scope(|scope| {
        load.start(scope, &book);
        let over = OverAtEnd(&load);
        for turn in 0..faults {
            let fault = FAULTS[(seed + turn) % FAULTS.len()];
            let before = load.decided();
            until("there is load", || (load.decided() > before).then_some(()));
            happen(&mut nodes, fault);
            let (healed, before) = (Instant::now(), load.decided());
            until(&format!("decisions after {fault:?}"), || {
                (load.decided() > before).then_some(())
            });
            times.entry(fault).or_default().push(healed.elapsed());
            check(&nodes, &load, &worker);
        }
        drop(over);
    });
    println!("until the next decision after each fault: {times:?}");
    finish(&nodes, &load);
    check(&nodes, &load, &worker);
    check_callers(&load, &worker);
}

/// Ends the load, also when a check fails.
struct OverAtEnd<'l>(&'l Load);

impl Drop for OverAtEnd<'_> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

/// Decides what is pending; every caller that learned to come back learns the end.
#[track_caller]
fn finish(nodes: &Nodes, load: &Load) {
    until("nothing is pending", || {
        let address = nodes.book().in_turn(0)?;
        let all = listed(&address, SHORT)?;
        let mut open = all
            .iter()
            .filter(|one| one["state"] == "pending")
            .peekable();
        if open.peek().is_none() {
            return Some(());
        }
        for proposal in open {
            if decide(&address, SHORT, proposal, "approve") == Some(200) {
                load.book().approved.insert(number_of(proposal));
            }
        }
        None
    });
    let waiting = std::mem::take(&mut load.book().waiting);
    for (number, mut caller) in waiting {
        let end = caller.end(&nodes.book());
        let before = load.book().ended.insert(number, end);
        assert!(before.is_none(), "{number} learned two ends");
    }
}
