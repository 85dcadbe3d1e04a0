//! Servers of NATS that come back with an older state.

use std::path::Path;
use std::process::Command;

use crate::support::until;

use super::callers::{Caller, Learned, Worker, decide, listed, proposal};
use super::nodes::{LONG, Nodes, SHORT};

const LOST: &str = "the cluster's log has lost messages that it had acknowledged";

/// Puts a copy of one folder of the server in the place of another one, while it does not run.
fn replace(nodes: &mut Nodes, from: &Path, to: &Path) {
    nodes.nats.kill(0);
    let _ = std::fs::remove_dir_all(to);
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
    nodes.nats.begin(0);
}

/// Whether no node serves anything.
fn is_closed(nodes: &Nodes) -> bool {
    let is_unready = |number| nodes.readiness(number) == Some(503);
    // A connection waits for a home.
    (0..nodes.count()).all(is_unready)
        && std::thread::scope(|scope| {
            let asked = nodes
                .addresses()
                .into_iter()
                .map(|address| scope.spawn(move || listed(&address, SHORT)));
            let asked: Vec<_> = asked.collect();
            asked.into_iter().all(|one| one.join().unwrap().is_none())
        })
}

#[test]
fn lost_acknowledged_records_stop_a_topic() {
    let worker = Worker::new();
    let mut nodes = Nodes::start(2, 1, &worker.config("200ms"));
    let address = nodes.node(1).address().to_owned();
    for number in [1, 2] {
        let learned = Caller::new(number).ask(&address, LONG);
        assert!(matches!(learned, Learned::Later), "{learned:?}");
    }
    let [one, two] = [1, 2].map(|number| proposal(&nodes, 0, number, "pending"));
    let [store, older] = ["n0", "older"].map(|name| nodes.nats.folder().join(name));
    replace(&mut nodes, &store, &older);
    (0..nodes.count()).for_each(|number| _ = nodes.wait_until_served(number));
    assert_eq!(decide(&address, LONG, &one, "approve"), Some(200));
    proposal(&nodes, 0, 1, "completed");

    replace(&mut nodes, &older, &store);
    // The next change finds out, or the next home.
    let _ = decide(&address, SHORT, &two, "approve");
    until("no node serves", || is_closed(&nodes).then_some(()));
    let logs = (0..nodes.count()).map(|number| nodes.node(number).log());
    assert!(logs.into_iter().any(|log| log.contains(LOST)));
    // Those that begin anew know it too.
    for number in 0..nodes.count() {
        nodes.kill(number);
    }
    nodes.restart_all(&[0, 1]);
    until("no node serves", || is_closed(&nodes).then_some(()));
    // A connection to a node that knows of the loss does not wait for a home.
    let decided = nodes.addresses().into_iter();
    let decided: Vec<_> = decided
        .map(|address| decide(&address, SHORT, &one, "approve"))
        .collect();
    assert!(decided.contains(&Some(503)), "{decided:?}");
    assert!(!decided.contains(&Some(200)), "{decided:?}");
    assert_eq!(worker.ran().into_iter().collect::<Vec<_>>(), [(1, 1)]);
    accepted(&nodes);
    assert_eq!(worker.ran().into_iter().collect::<Vec<_>>(), [(1, 1)]);
}

/// Has a person accept the loss: the cluster goes on with what there is, and runs nothing by
/// itself.
#[track_caller]
fn accepted(nodes: &Nodes) {
    let accept = ["cluster", "accept", "--yes", "--config", "n0.toml"];
    nodes.folder.run(&accept).expect(0);
    for number in 0..nodes.count() {
        nodes.wait_until_served(number);
    }
    for number in [1, 2] {
        proposal(nodes, 1, number, "pending");
    }
    let address = nodes.node(0).address();
    let learned = Caller::new(3).ask(address, LONG);
    assert!(matches!(learned, Learned::Later), "{learned:?}");
    let three = proposal(nodes, 1, 3, "pending");
    assert_eq!(decide(address, LONG, &three, "reject"), Some(200));
}
