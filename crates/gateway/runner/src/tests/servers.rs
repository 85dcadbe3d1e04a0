//! Three nodes over three real servers, each on a thread of its own.

use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cluster::{NotStored, Shard};
use fabric::nats::{Nats, NatsConfig, NatsError};
use fabric::{ClusterSubjects, Log as _};
use harness::NatsServers;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use super::{Seen, Ways, eventually, line, started, store};
use crate::{MachineClock, Runner, UserEffect};

const LONG: Duration = Duration::from_secs(30);
/// The goal of a take-over.
const TAKE_OVER_MAX: Duration = Duration::from_secs(15);

async fn connected(urls: Vec<String>) -> Arc<Nats> {
    let config = NatsConfig {
        cluster: "test".to_owned(),
        servers: urls,
        ..NatsConfig::default()
    };
    Arc::new(Nats::connect(&config).await.unwrap())
}

async fn make_stream(nats: &Nats) {
    let start = Instant::now();
    loop {
        match nats.make_stream(3).await {
            Ok(_) => return,
            // No leader yet.
            Err(NatsError::Stream(_)) if start.elapsed() < LONG => {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            Err(why) => panic!("{why}"),
        }
    }
}

/// A node with a thread of its own, which can be kept from running.
struct Node {
    runner: Arc<Runner>,
    seen: Arc<Seen>,
    /// Each one keeps the thread until its sender is dropped.
    stops: UnboundedSender<mpsc::Receiver<()>>,
    thread: JoinHandle<()>,
}

impl Node {
    async fn start(number: usize, servers: &NatsServers) -> Self {
        let urls = servers.urls_from(number);
        let seen = Arc::new(Seen::new());
        let (stops, mut stopped) = unbounded_channel::<mpsc::Receiver<()>>();
        let (begun, runner) = oneshot::channel();
        let user = Arc::clone(&seen);
        let life = async move {
            let nats = connected(urls).await;
            let ways = Ways {
                log: nats.clone(),
                bus: nats,
                subjects: ClusterSubjects::of("test").unwrap(),
            };
            let name = format!("node-{number}");
            let runner = started(&name, ways, Arc::new(MachineClock), user).await;
            begun.send(runner).unwrap();
            while let Some(stop) = stopped.recv().await {
                // Blocks the only thread.
                let _ended = stop.recv();
            }
        };
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(life);
        });
        let runner = runner.await.unwrap();
        Self {
            runner,
            seen,
            stops,
            thread,
        }
    }

    /// Withholds the node's turn, until what is returned is dropped.
    fn stop(&self) -> mpsc::Sender<()> {
        let (release, stop) = mpsc::channel();
        self.stops.send(stop).unwrap();
        release
    }

    /// Ends the node without a word.
    fn kill(self) {
        drop(self.runner);
        drop(self.stops);
        self.thread.join().unwrap();
    }

    fn homes(&self) -> usize {
        self.seen.homes(&Shard::Common)
    }

    fn refused(&self, number: u64) -> bool {
        let is_refused = |one: &UserEffect| matches!(one, UserEffect::NotStored { ticket, why: NotStored::NotHome, .. } if *ticket == number);
        self.seen.count(is_refused) == 1
    }
}

/// The only node of these that became the home once.
async fn one_home(nodes: &[&Node], within: Duration) -> usize {
    let count = || nodes.iter().map(|node| node.homes()).sum::<usize>();
    eventually(within, "a home", || count() > 0).await;
    assert_eq!(count(), 1);
    nodes.iter().position(|node| node.homes() == 1).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_falls_silent_has_a_successor_with_its_lines() {
    let servers = NatsServers::start(3);
    make_stream(&*connected(servers.urls_from(0)).await).await;
    let mut nodes = Vec::new();
    for number in 0..3 {
        nodes.push(Node::start(number, &servers).await);
    }
    let first = one_home(&nodes.iter().collect::<Vec<_>>(), LONG).await;
    let are_members = |node: &Node| node.runner.view(|homes| homes.members().count()) == 3;
    eventually(LONG, "all are members", || nodes.iter().all(are_members)).await;
    let deposed = nodes.remove(first);
    store(&deposed.runner, Shard::Common, 1, "one");
    eventually(LONG, "confirmed", || deposed.seen.has_confirmed(1)).await;
    for node in nodes.iter().chain([&deposed]) {
        assert!(node.seen.has_applied("one"), "confirmed before it counts");
        assert!(node.runner.admits());
    }

    let release = deposed.stop();
    let second = one_home(&[&nodes[0], &nodes[1]], TAKE_OVER_MAX).await;
    store(&deposed.runner, Shard::Common, 2, "of the deposed");
    eventually(LONG, "it admits nothing", || !deposed.runner.admits()).await;
    drop(release);
    eventually(LONG, "an answer", || deposed.refused(2)).await;
    let home = nodes.remove(second);
    store(&home.runner, Shard::Common, 3, "two");
    eventually(LONG, "confirmed", || home.seen.has_confirmed(3)).await;

    home.kill();
    let left = [&nodes[0], &deposed];
    let before = [left[0].homes(), left[1].homes()];
    let has_home = || [left[0].homes(), left[1].homes()] != before;
    eventually(TAKE_OVER_MAX, "a successor", has_home).await;
    let third = usize::from(left[1].homes() != before[1]);
    assert!(left[third].seen.has_applied("one") && left[third].seen.has_applied("two"));
    store(&left[third].runner, Shard::Common, 4, "three");
    eventually(LONG, "stored", || left[third].seen.has_stored(4)).await;
    eventually(LONG, "applied", || {
        left.iter().all(|node| node.seen.has_applied("three"))
    })
    .await;
    assert!(
        left.iter()
            .all(|node| !node.seen.has_applied("of the deposed"))
    );
    assert!(!deposed.seen.has_stored(2));
    for node in nodes.into_iter().chain([deposed]) {
        node.kill();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_that_is_compacted_has_few_records_and_new_nodes_have_all_of_it() {
    let servers = NatsServers::start(3);
    let nats = connected(servers.urls_from(0)).await;
    make_stream(&nats).await;
    let mut nodes = Vec::new();
    for number in 0..2 {
        nodes.push(Node::start(number, &servers).await);
    }
    let home = one_home(&nodes.iter().collect::<Vec<_>>(), LONG).await;
    let home = nodes.remove(home);
    for ticket in 1..=40 {
        store(&home.runner, Shard::Common, ticket, "line");
        eventually(LONG, "stored", || home.seen.has_stored(ticket)).await;
    }
    let lines = vec![line("in force")];
    home.runner.compact(Shard::Common, 50, lines).unwrap();
    eventually(LONG, "whole", || home.seen.has_stored(50)).await;
    store(&home.runner, Shard::Common, 51, "later");
    eventually(LONG, "confirmed", || home.seen.has_confirmed(51)).await;
    let common = nats.subjects().journals().with_name("@common").unwrap();
    let start = Instant::now();
    while !matches!(nats.read(&common.all_below(), 1).await, Ok(page) if page.records.len() < 10) {
        assert!(start.elapsed() < LONG, "nothing is removed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let new = Node::start(2, &servers).await;
    let lines = [line("in force")];
    let begins =
        |one: &UserEffect| matches!(one, UserEffect::Reset { lines: all, .. } if *all == lines);
    eventually(LONG, "it begins", || new.seen.count(begins) == 1).await;
    eventually(LONG, "it admits", || {
        new.seen.has_applied("later") && new.runner.admits()
    })
    .await;
    home.kill();
    let left = [&nodes[0], &new];
    one_home(&left, TAKE_OVER_MAX).await;
    let stops = |one: &UserEffect| matches!(one, UserEffect::StopTopic { .. });
    assert!(left.iter().all(|node| node.seen.count(stops) == 0));
    for node in nodes.into_iter().chain([new]) {
        node.kill();
    }
}
