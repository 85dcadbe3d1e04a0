#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic
)] // all of it is a test

mod admitting;
mod ending;
mod heads;
mod journals;
mod servers;
mod simulated;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cluster::{HomesConfig, JournalHead, NodeId, NodeLife, NodeTime, Shard};
use fabric::{Bus, ClusterKeys, ClusterSubjects, Incarnation, Log, Mesh};
use model::TopicName;
use platform::Mutex;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::heads::places;
use crate::{HeadsFile, HomeUser, NodeClock, Runner, RunnerParts, ShardLine, UserEffect};

const KEY: [u8; 32] = [9; 32];

fn line(text: &str) -> ShardLine {
    ShardLine(text.to_owned().into())
}

fn topic() -> Shard {
    Shard::Topic(TopicName::new("main").unwrap())
}

/// Waits until something is so.
async fn eventually(within: Duration, what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < within, "in {within:?} not: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A user that notes all effects. After each `Stored` it notes what the disk has of the shard.
#[derive(Debug)]
struct Seen {
    folder: TempDir,
    effects: Mutex<Vec<UserEffect>>,
    kept: Mutex<Vec<(JournalHead, JournalHead)>>,
}

impl HomeUser for Seen {
    fn carry_out(&self, effect: UserEffect) {
        if let UserEffect::Stored {
            shard: Shard::Common,
            ..
        } = &effect
        {
            let applied = self.last_applied().unwrap();
            let kept = self.on_disk(&Shard::Common).unwrap();
            self.kept.lock().push((applied, kept));
        }
        self.effects.lock().push(effect);
    }
}

impl Seen {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            effects: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    fn count(&self, is_so: impl Fn(&UserEffect) -> bool) -> usize {
        self.effects.lock().iter().filter(|one| is_so(one)).count()
    }

    /// Times that this node became the home of a shard.
    fn homes(&self, of: &Shard) -> usize {
        self.count(|one| matches!(one, UserEffect::BecomeHome { shard, .. } if shard == of))
    }

    fn has_applied(&self, text: &str) -> bool {
        let line = line(text);
        self.count(|one| matches!(one, UserEffect::Apply { lines, .. } if lines.contains(&line)))
            == 1
    }

    fn has_stored(&self, number: u64) -> bool {
        self.count(|one| matches!(one, UserEffect::Stored { ticket, .. } if *ticket == number)) == 1
    }

    fn has_confirmed(&self, number: u64) -> bool {
        self.count(|one| matches!(one, UserEffect::Confirmed { ticket } if *ticket == number)) == 1
    }

    fn last_applied(&self) -> Option<JournalHead> {
        let effects = self.effects.lock();
        let mut latest = effects.iter().rev();
        latest.find_map(|one| match one {
            UserEffect::Apply { revision, .. } => Some(*revision),
            _ => None,
        })
    }

    fn on_disk(&self, of: &Shard) -> Option<JournalHead> {
        let all = places(self.folder.path()).unwrap();
        let of_shard = all.all().filter(|(shard, _)| *shard == of);
        of_shard.map(|(_, head)| *head).max()
    }
}

/// The clock of a test's runtime, which can be stopped.
#[derive(Debug)]
struct TestClock {
    start: Instant,
    stopped: Mutex<Option<NodeTime>>,
}

impl TestClock {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            stopped: Mutex::default(),
        }
    }

    fn stop(&self) {
        let now = self.now();
        *self.stopped.lock() = Some(now);
    }
}

impl NodeClock for TestClock {
    fn now(&self) -> NodeTime {
        let stopped = *self.stopped.lock();
        let steady_ms = platform::millis(self.start.elapsed());
        stopped.unwrap_or(NodeTime {
            steady_ms,
            wall_ms: 1_000_000 + steady_ms,
        })
    }
}

/// The ways of a node to the others.
struct Ways {
    log: Arc<dyn Log>,
    bus: Arc<dyn Bus>,
    subjects: ClusterSubjects,
}

/// Starts a node.
async fn started(
    name: &str,
    ways: Ways,
    clock: Arc<dyn NodeClock>,
    user: Arc<Seen>,
) -> Arc<Runner> {
    let incarnation = NodeLife {
        directory: name.bytes().map(u64::from).sum(),
        life: 1,
    };
    let node = NodeId {
        name: name.into(),
        incarnation,
    };
    let keys = ClusterKeys::new(&KEY);
    let nodes = ways.subjects.nodes().clone();
    let own = Incarnation::random();
    let mesh = Mesh::join(ways.bus, nodes, keys.clone(), own);
    let parts = RunnerParts {
        config: HomesConfig::new(node, vec![TopicName::new("main").unwrap()]),
        log: ways.log,
        mesh: Arc::new(mesh.await.unwrap()),
        keys,
        subjects: ways.subjects,
        heads: heads(user.folder.path()),
        clock,
        user,
    };
    Arc::new(Runner::start(parts).await.unwrap())
}

fn heads(folder: &Path) -> HeadsFile {
    HeadsFile::open(folder).unwrap()
}

fn store(runner: &Runner, shard: Shard, ticket: u64, text: &str) {
    runner.store(shard, ticket, line(text)).unwrap();
}
