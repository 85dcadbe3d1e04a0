//! Three nodes over a simulated log and bus.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::{CommonEntry, HomeRecord, NotStored, Shard, StepDownCause, StoredMessage};
use fabric::sim::{Faults, NodeNumber, Simulated};
use fabric::{ClusterKeys, ClusterSubjects, Record};

use super::{KEY, Seen, TestClock, Ways, eventually, line, started, store, topic};
use crate::encoding::{Content, read_message};
use crate::{LINE_BYTES_MAX, LineTooLong, Runner, ShardLine, UserEffect};

const LONG: Duration = Duration::from_secs(120);
const NODES: [NodeNumber; 3] = [0, 1, 2];

struct Node {
    runner: Arc<Runner>,
    seen: Arc<Seen>,
    clock: Arc<TestClock>,
}

struct Three {
    world: Simulated,
    nodes: Vec<Node>,
}

impl Three {
    /// Three nodes, each of which knows all members.
    async fn start(seed: u64, faults: Faults) -> Self {
        let world = Simulated::new(seed, faults);
        let mut nodes = Vec::new();
        for number in NODES {
            let (clock, seen) = (Arc::new(TestClock::new()), Arc::new(Seen::new()));
            let ways = Ways {
                log: Arc::new(world.node(number)),
                bus: Arc::new(world.node(number)),
                subjects: ClusterSubjects::of("sim").unwrap(),
            };
            let name = format!("node-{number}");
            let runner = started(&name, ways, clock.clone(), seen.clone()).await;
            nodes.push(Node {
                runner,
                seen,
                clock,
            });
        }
        let three = Self { world, nodes };
        let is_member = |node: &Node| node.runner.view(|homes| homes.members().count()) == 3;
        eventually(LONG, "all are members", || {
            three.nodes.iter().all(is_member)
        })
        .await;
        three
    }

    /// The node that is the home of a shard by its own word.
    fn home(&self, shard: &Shard) -> Option<usize> {
        let is_home = |node: &Node| {
            let of = |homes: &cluster::Homes<ShardLine>| {
                homes.home_of(shard).map(|(node, _)| node.clone()) == Some(homes.node().clone())
            };
            node.runner.view(of)
        };
        self.nodes.iter().position(is_home)
    }

    /// All messages that the log has, opened.
    fn messages(&self) -> Vec<StoredMessage<ShardLine>> {
        let records: Vec<Record> = self.world.world(|world| world.records().cloned().collect());
        records.iter().map(opened).collect()
    }

    fn times_in_log(&self, text: &str) -> usize {
        let line = CommonEntry::Line(line(text));
        let has = |one: &StoredMessage<ShardLine>| matches!(&one.message.record, HomeRecord::Lines(all) if all.contains(&line));
        self.messages().iter().filter(|one| has(one)).count()
    }

    /// Cuts a node from the others.
    fn cut(&self, node: usize, is_cut: bool) {
        let own = NODES[node];
        self.world.world(|world| {
            for other in NODES.into_iter().filter(|other| *other != own) {
                world.cut(own, other, is_cut);
                world.cut(other, own, is_cut);
            }
        });
    }
}

fn opened(record: &Record) -> StoredMessage<ShardLine> {
    let content = ClusterKeys::new(&KEY).open_record(record).unwrap();
    let (above, epoch) = record.subject.as_str().rsplit_once('.').unwrap();
    let common = format!("pm.sim.j.{}", fabric::token("@common"));
    let shard = if above == common {
        Shard::Common
    } else {
        topic()
    };
    let Content::Read(message) = read_message(&Bytes::from(content)) else {
        panic!("it is no message");
    };
    StoredMessage {
        subject: cluster::ShardSubject {
            shard,
            epoch: epoch.parse().unwrap(),
        },
        sequence: record.sequence,
        message,
    }
}

/// Stores a line at the home of the common journal, until all nodes have it and it is confirmed.
async fn a_change_is_in_force(three: &Three, ticket: u64, text: &str) {
    eventually(LONG, "a home", || three.home(&Shard::Common).is_some()).await;
    let home = &three.nodes[three.home(&Shard::Common).unwrap()];
    store(&home.runner, Shard::Common, ticket, text);
    eventually(LONG, "confirmed", || home.seen.has_confirmed(ticket)).await;
    assert!(home.seen.has_stored(ticket));
    for node in &three.nodes {
        assert!(node.seen.has_applied(text), "confirmed before it counts");
    }
    assert_eq!(three.times_in_log(text), 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_at_the_one_home_is_applied_on_all_and_confirmed() {
    let three = Three::start(1, Faults::default()).await;
    a_change_is_in_force(&three, 7, "one").await;
    let homes = three
        .nodes
        .iter()
        .map(|node| node.seen.homes(&Shard::Common));
    assert_eq!(homes.sum::<usize>(), 1);
    assert!(three.nodes.iter().all(|node| node.runner.admits()));
    let kept = three.nodes.iter().map(|node| node.seen.kept.lock().clone());
    let kept: Vec<_> = kept.flatten().collect();
    assert!(!kept.is_empty());
    for (applied, on_disk) in kept {
        assert_eq!(applied, on_disk, "on the disk before it is stored");
    }
}

#[tokio::test(start_paused = true)]
async fn nodes_without_the_log_follow_what_the_home_sends() {
    let three = Three::start(6, Faults::default()).await;
    let home = three.home(&Shard::Common).unwrap();
    for number in NODES
        .into_iter()
        .filter(|number| usize::from(*number) != home)
    {
        three.world.world(|world| world.cut_log(number, true));
    }
    a_change_is_in_force(&three, 1, "one").await;
}

#[tokio::test(start_paused = true)]
async fn a_topic_s_lines_come_to_its_next_home() {
    let mut three = Three::start(2, Faults::default()).await;
    eventually(LONG, "a home", || three.home(&topic()).is_some()).await;
    let first = three.home(&topic()).unwrap();
    for ticket in 0..400 {
        store(
            &three.nodes[first].runner,
            topic(),
            ticket,
            &format!("line {ticket}"),
        );
    }
    let seen = Arc::clone(&three.nodes[first].seen);
    eventually(LONG, "stored", || seen.has_stored(399)).await;
    drop(three.nodes.remove(first));
    let noted = seen.count(|_| true);
    eventually(LONG, "another home", || three.home(&topic()).is_some()).await;
    let next = &three.nodes[three.home(&topic()).unwrap()].seen;
    let has_all = |one: &UserEffect| {
        let UserEffect::BecomeHome { shard, lines, .. } = one else {
            return false;
        };
        let all: Vec<_> = (0..400)
            .map(|number| line(&format!("line {number}")))
            .collect();
        *shard == topic() && *lines == all
    };
    eventually(LONG, "all lines", || next.count(has_all) == 1).await;
    assert_eq!(seen.count(|_| true), noted, "nothing after the drop");
}

#[tokio::test(start_paused = true)]
async fn an_append_without_an_answer_is_stored_once() {
    for seed in 0..2 {
        let faults = Faults {
            log_drops: 150,
            stale: 2,
            bus_drops: 100,
            bus_doubles: 100,
            ..Faults::default()
        };
        let three = Three::start(seed, faults).await;
        for ticket in 0..3 {
            a_change_is_in_force(&three, ticket, &format!("line {ticket}")).await;
        }
    }
}

fn is_step_down(effect: &UserEffect) -> bool {
    matches!(
        effect,
        UserEffect::StepDown {
            shard: Shard::Common,
            ..
        }
    )
}

/// A home whose clock stands still takes itself for the home: the fence alone keeps it out.
#[tokio::test(start_paused = true)]
async fn a_deposed_home_appends_nothing() {
    let three = Three::start(3, Faults::default()).await;
    a_change_is_in_force(&three, 1, "one").await;
    let old = three.home(&Shard::Common).unwrap();
    let deposed = &three.nodes[old];
    deposed.clock.stop();
    three.cut(old, true);
    let others = || three.nodes.iter().enumerate().filter(|(at, _)| *at != old);
    let has_taken = || others().any(|(_, node)| node.seen.homes(&Shard::Common) == 1);
    eventually(LONG, "another home", has_taken).await;
    let says = |node: &Node| node.seen.count(is_step_down) == 0;
    assert!(says(deposed), "it takes itself for the home");
    store(&deposed.runner, Shard::Common, 2, "of the deposed");
    let is_fenced = |one: &UserEffect| {
        matches!(
            one,
            UserEffect::StepDown {
                shard: Shard::Common,
                why: StepDownCause::Fenced,
                ..
            }
        )
    };
    eventually(LONG, "fenced", || deposed.seen.count(is_fenced) == 1).await;
    assert!(!deposed.seen.has_stored(2));
    assert_eq!(three.times_in_log("of the deposed"), 0);
    store(&deposed.runner, Shard::Common, 3, "again");
    let refused = |one: &UserEffect| {
        matches!(
            one,
            UserEffect::NotStored {
                ticket: 3,
                why: NotStored::NotHome,
                ..
            }
        )
    };
    eventually(LONG, "refused", || deposed.seen.count(refused) == 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_node_whose_disk_takes_no_heads_acknowledges_nothing() {
    let three = Three::start(4, Faults::default()).await;
    a_change_is_in_force(&three, 1, "one").await;
    let old = three.home(&Shard::Common).unwrap();
    let node = &three.nodes[old];
    let (folder, aside) = (
        node.seen.folder.path(),
        node.seen.folder.path().with_extension("aside"),
    );
    std::fs::rename(folder, &aside).unwrap();
    store(&node.runner, Shard::Common, 2, "two");
    let has_another = || {
        let others = three.nodes.iter().enumerate().filter(|(at, _)| *at != old);
        let homes = others.map(|(_, node)| node.seen.homes(&Shard::Common));
        homes.sum::<usize>() == 1
    };
    eventually(LONG, "another home", has_another).await;
    eventually(LONG, "it admits nothing", || !node.runner.admits()).await;
    assert!(!node.seen.has_stored(2));
    std::fs::rename(&aside, folder).unwrap();
    eventually(LONG, "it goes on", || node.seen.has_stored(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_line_that_no_record_takes_is_refused_and_the_longest_is_stored() {
    let three = Three::start(5, Faults::default()).await;
    let home = &three.nodes[three.home(&Shard::Common).unwrap()];
    let store = |bytes: usize| {
        let line = ShardLine(vec![b'x'; bytes].into());
        home.runner.store(Shard::Common, 1, line)
    };
    let refused = store(LINE_BYTES_MAX + 1);
    assert_eq!(refused, Err(LineTooLong(LINE_BYTES_MAX + 1)));
    store(LINE_BYTES_MAX).unwrap();
    eventually(LONG, "confirmed", || home.seen.has_confirmed(1)).await;
}
