#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)] // all of it is a test

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::NodeTime;
use fabric::ClusterSubjects;
use fabric::nats::NatsConfig;
use fabric::sim::{Faults, Simulated};
use runner::NodeClock;
use serde::{Deserialize, Serialize};
use store::{Fold, JournalWriter, StoreError};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::Instant;
use zeroize::Zeroizing;

use crate::conveyed::{Conveyed, ConveyedEnds, NotConveyed};
use crate::node::{NodeParts, Ways, begin};
use crate::{ClusterNode, HomeJournal, NoFlight, NodeStanding};

const LONG: Duration = Duration::from_secs(120);

/// Texts, as an owner of records keeps them.
#[derive(Debug, Default)]
struct Texts(Vec<String>);

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Text {
    text: String,
}

impl Fold for Texts {
    const OWNER: &'static str = "texts";
    type Record = Text;

    fn apply(&mut self, record: &Text) {
        self.0.push(record.text.clone());
    }

    fn live(&self) -> usize {
        self.0.len()
    }

    fn records(&mut self, _: u64) -> Vec<Text> {
        let texts = self.0.iter();
        texts.map(|text| Text { text: text.clone() }).collect()
    }
}

/// The clock of a test's runtime.
struct TestClock(Instant);

impl NodeClock for TestClock {
    fn now(&self) -> NodeTime {
        let steady_ms = platform::millis(self.0.elapsed());
        NodeTime {
            steady_ms,
            wall_ms: 1_000_000 + steady_ms,
        }
    }
}

struct Nodes {
    world: Simulated,
    start: Instant,
    folders: Vec<TempDir>,
    nodes: Vec<ClusterNode>,
}

impl Nodes {
    /// So many nodes, of which one is the home.
    async fn start(number: u32) -> Self {
        let mut all = Self {
            world: Simulated::new(7, Faults::default()),
            start: Instant::now(),
            folders: Vec::new(),
            nodes: Vec::new(),
        };
        for _ in 0..number {
            all.folders.push(tempfile::tempdir().unwrap());
            all.join(all.nodes.len()).await;
        }
        all
    }

    async fn join(&mut self, index: usize) {
        let way = self.world.node(u16::try_from(index).unwrap());
        let way = Arc::new(way);
        let ways = Ways {
            log: way.clone(),
            bus: way,
            subjects: ClusterSubjects::of("sim").unwrap(),
            clock: Arc::new(TestClock(self.start)),
        };
        let joined = begin(parts(index, self.folders[index].path()), ways).await;
        self.nodes.push(ClusterNode::of(joined.unwrap()));
    }

    /// The home's place, and its journal.
    async fn home(&self) -> (usize, Arc<HomeJournal>) {
        let look = async {
            loop {
                for (index, node) in self.nodes.iter().enumerate() {
                    if let NodeStanding::Home(journal) = &*node.standing().borrow() {
                        return (index, Arc::clone(journal));
                    }
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(LONG, look).await.unwrap()
    }
}

fn parts(index: usize, directory: &Path) -> NodeParts {
    NodeParts {
        nats: NatsConfig::default(),
        replicas: None,
        key: Zeroizing::new([3; 32]),
        name: format!("node-{index}"),
        cut_off: Duration::from_secs(10),
        directory: directory.to_owned(),
        local: JournalWriter::open(directory).unwrap(),
    }
}

async fn write(journal: &Arc<HomeJournal>, text: &str) -> Result<(), StoreError> {
    let ledger = journal.writer()?.ledger::<Texts>()?;
    let (sender, end) = tokio::sync::oneshot::channel();
    let record = Text {
        text: text.to_owned(),
    };
    ledger.submit(&[record], |end| drop(sender.send(end)));
    tokio::time::timeout(LONG, end).await.unwrap().unwrap()
}

fn texts(journal: &Arc<HomeJournal>) -> Vec<String> {
    let ledger = journal.writer().unwrap().ledger::<Texts>().unwrap();
    ledger.state(|texts| texts.0.clone())
}

async fn convey(front: &ClusterNode) -> Result<fabric::Tunnel, NotConveyed> {
    let home = front.other_home().ok_or(NotConveyed::NoHome)?;
    front.convey(&home, ends()).await
}

fn ends() -> ConveyedEnds {
    ConveyedEnds {
        client: "192.0.2.7:50000".parse().unwrap(),
        node: "127.0.0.1:7070".parse().unwrap(),
        is_for_node: false,
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_home_has_stored_its_successor_has() {
    let nodes = Nodes::start(2).await;
    let (first, journal) = nodes.home().await;
    let large = "x".repeat(3 * runner::LINE_BYTES_MAX);
    write(&journal, "one").await.unwrap();
    write(&journal, &large).await.unwrap();
    nodes.nodes[first].drain(LONG).await;
    let late = write(&journal, "late").await;
    assert!(matches!(late, Err(StoreError::Elsewhere)), "{late:?}");
    assert!(!nodes.nodes[first].leads());
    let (second, journal) = nodes.home().await;
    assert_ne!(first, second);
    assert_eq!(texts(&journal), ["one".to_owned(), large]);
    write(&journal, "two").await.unwrap();
    assert_eq!(texts(&journal).len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_home_that_is_cut_off_reports_that_it_is_none() {
    let nodes = Nodes::start(3).await;
    let (first, journal) = nodes.home().await;
    while nodes.nodes[first].members().len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let number = u16::try_from(first).unwrap();
    nodes.world.world(|world| {
        world.cut_log(number, true);
        for other in (0..3).filter(|other| *other != number) {
            world.cut(number, other, true);
            world.cut(other, number, true);
        }
    });
    let cut = write(&journal, "cut").await;
    assert!(matches!(cut, Err(StoreError::Elsewhere)), "{cut:?}");
    assert!(journal.is_over() && !nodes.nodes[first].leads());
    let (second, _) = nodes.home().await;
    assert_ne!(first, second);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_conveyed_to_the_home_with_its_ends() {
    let nodes = Nodes::start(2).await;
    let (home, _) = nodes.home().await;
    let front = &nodes.nodes[1 - home];
    let echo = async {
        let mut all = nodes.nodes[home].conveyed().unwrap();
        let conveyed: Conveyed = all.recv().await.unwrap();
        assert_eq!(conveyed.ends, ends());
        let mut taken = conveyed.take().await.unwrap();
        let mut bytes = [0; 5];
        taken.read_exact(&mut bytes).await.unwrap();
        taken.write_all(&bytes).await.unwrap();
        taken.shutdown().await.unwrap();
        assert_eq!(
            taken.read(&mut bytes).await.unwrap(),
            0,
            "its client has ended"
        );
    };
    let client = async {
        let mut tunnel = loop {
            match convey(front).await {
                Ok(tunnel) => break tunnel,
                Err(NotConveyed::NoHome) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(why) => panic!("{why}"),
            }
        };
        tunnel.write_all(b"hello").await.unwrap();
        tunnel.shutdown().await.unwrap();
        let mut back = Vec::new();
        tunnel.read_to_end(&mut back).await.unwrap();
        back
    };
    let ((), back) = tokio::join!(echo, client);
    assert_eq!(back, b"hello");
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_the_home_drops_was_not_conveyed() {
    let nodes = Nodes::start(2).await;
    let (home, _) = nodes.home().await;
    let front = &nodes.nodes[1 - home];
    let mut all = nodes.nodes[home].conveyed().unwrap();
    let refuse = async { drop(all.recv().await.unwrap()) };
    let client = async {
        loop {
            match convey(front).await {
                Err(NotConveyed::NoHome) => tokio::time::sleep(Duration::from_millis(50)).await,
                other => break other,
            }
        }
    };
    let ((), refused) = tokio::join!(refuse, client);
    assert!(
        matches!(refused, Err(NotConveyed::Refused(_))),
        "{refused:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_refresh_token_is_used_once_at_a_time() {
    let nodes = Nodes::start(1).await;
    let (_, journal) = nodes.home().await;
    let first = journal.fly("ada at jira").await.unwrap();
    let other = journal.fly("bob at jira").await.unwrap();
    drop(other);
    let second = {
        let journal = Arc::clone(&journal);
        tokio::spawn(async move { journal.fly("ada at jira").await })
    };
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!second.is_finished(), "the first is under way");
    first.end();
    let second = tokio::time::timeout(LONG, second).await.unwrap().unwrap();
    assert!(matches!(second, Err(NoFlight::Over)), "{second:?}");
    let third = tokio::time::timeout(LONG, journal.fly("ada at jira")).await;
    third.unwrap().unwrap().end();
}

#[tokio::test(start_paused = true)]
async fn a_successor_waits_for_a_use_that_may_be_under_way() {
    let nodes = Nodes::start(2).await;
    let (first, journal) = nodes.home().await;
    let flight = journal.fly("ada at jira").await.unwrap();
    nodes.nodes[first].drain(LONG).await;
    let late = journal.fly("ada at jira").await;
    assert!(matches!(late, Err(NoFlight::Elsewhere)), "{late:?}");
    let (_, journal) = nodes.home().await;
    let begun = Instant::now();
    let next = loop {
        match tokio::time::timeout(LONG, journal.fly("ada at jira")).await {
            Ok(Ok(next)) => break next,
            Ok(Err(NoFlight::Over)) => {}
            other => panic!("{other:?}"),
        }
    };
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_millis(cluster::RENEWAL_MS),
        "{waited:?}"
    );
    // It comes too late to be the latest.
    flight.end();
    next.end();
}

#[tokio::test(start_paused = true)]
async fn what_is_in_force_is_written_in_place_of_all_before() {
    let nodes = Nodes::start(2).await;
    let (first, journal) = nodes.home().await;
    let writer = journal.writer().unwrap();
    let ledger = writer.ledger::<Latest>().unwrap();
    for round in 0..60_u64 {
        let (sender, end) = tokio::sync::oneshot::channel();
        let texts: Vec<Text> = (0..50)
            .map(|number| number_of(50 * round + number))
            .collect();
        ledger.submit(&texts, |end| drop(sender.send(end)));
        tokio::time::timeout(LONG, end)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }
    assert!(ledger.state(|latest| latest.0.as_deref() == Some("2999")));
    for node in &nodes.nodes {
        eventually("the copy is small", || node.entries() < 1_200).await;
    }
    nodes.nodes[first].drain(LONG).await;
    let (second, journal) = nodes.home().await;
    assert_ne!(first, second);
    let ledger = journal.writer().unwrap().ledger::<Latest>().unwrap();
    assert!(ledger.state(|latest| latest.0.as_deref() == Some("2999")));
}

#[tokio::test(start_paused = true)]
async fn the_log_has_what_is_in_force_and_a_new_node_all_of_it() {
    let mut nodes = Nodes::start(2).await;
    let (first, journal) = nodes.home().await;
    write(&journal, "kept").await.unwrap();
    let writer = journal.writer().unwrap();
    let latest = writer.ledger::<Latest>().unwrap();
    let _texts = writer.ledger::<Texts>().unwrap();
    for round in 0..300_u64 {
        let (sender, end) = tokio::sync::oneshot::channel();
        let texts: Vec<Text> = (0..10)
            .map(|number| number_of(10 * round + number))
            .collect();
        latest.submit(&texts, |end| drop(sender.send(end)));
        let end = tokio::time::timeout(LONG, end).await;
        end.expect("an answer").unwrap().unwrap();
    }
    let records = || nodes.world.world(|world| world.records().count());
    let latest = || {
        let latest = |world: &mut fabric::sim::World| world.records().map(|one| one.sequence).max();
        nodes.world.world(latest)
    };
    assert!(latest() > Some(300), "{:?}", latest());
    eventually("the log is compacted", || records() < 120).await;
    let entries = nodes.nodes[first].entries();
    nodes.folders.push(tempfile::tempdir().unwrap());
    nodes.join(2).await;
    eventually("the new node has all", || {
        nodes.nodes[2].entries() == entries && nodes.nodes[2].members().len() == 3
    })
    .await;
    for node in &nodes.nodes[..2] {
        node.drain(LONG).await;
    }
    let (home, journal) = nodes.home().await;
    assert_eq!((home, texts(&journal)), (2, vec!["kept".to_owned()]));
    let latest = journal.writer().unwrap().ledger::<Latest>().unwrap();
    assert!(latest.state(|latest| latest.0.as_deref() == Some("2999")));
}

/// The latest text alone.
#[derive(Debug, Default)]
struct Latest(Option<String>);

impl Fold for Latest {
    const OWNER: &'static str = "latest";
    type Record = Text;

    fn apply(&mut self, record: &Text) {
        self.0 = Some(record.text.clone());
    }

    fn live(&self) -> usize {
        usize::from(self.0.is_some())
    }

    fn records(&mut self, _: u64) -> Vec<Text> {
        let text = self.0.iter().cloned();
        text.map(|text| Text { text }).collect()
    }
}

fn number_of(number: u64) -> Text {
    Text {
        text: number.to_string(),
    }
}

/// Waits until something is so.
async fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LONG, "not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn every_append_has_its_answer_while_what_is_in_force_is_written() {
    let nodes = Nodes::start(2).await;
    let (first, journal) = nodes.home().await;
    let writer = journal.writer().unwrap();
    let latest = writer.ledger::<Latest>().unwrap();
    let texts = writer.ledger::<Texts>().unwrap();
    let mut ends = Vec::new();
    for number in 0..3_000_u64 {
        let (sender, end) = tokio::sync::oneshot::channel();
        latest.submit(&[number_of(number)], |end| drop(sender.send(end)));
        ends.push(end);
        if number % 100 == 0 {
            let (sender, end) = tokio::sync::oneshot::channel();
            texts.submit(&[number_of(number)], |end| drop(sender.send(end)));
            ends.push(end);
        }
        if number % 7 == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    for end in ends {
        let end = tokio::time::timeout(LONG, end).await;
        end.expect("an answer").unwrap().unwrap();
    }
    assert!(nodes.nodes[first].entries() < 1_200);
    nodes.nodes[first].drain(LONG).await;
    let (_, journal) = nodes.home().await;
    let writer = journal.writer().unwrap();
    let kept = writer.ledger::<Texts>().unwrap();
    let hundreds: Vec<String> = (0..30).map(|one| (100 * one).to_string()).collect();
    assert_eq!(kept.state(|texts| texts.0.clone()), hundreds);
    let latest = writer.ledger::<Latest>().unwrap();
    assert!(latest.state(|latest| latest.0.as_deref() == Some("2999")));
}
