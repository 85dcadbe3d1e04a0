//! Ends of a node: it is stopped, or a part of it fails.

use std::sync::Arc;
use std::time::Duration;

use cluster::{HomesConfig, NODE_NAME_BYTES_MAX, NodeId, NodeLife, TOPICS_MAX};
use fabric::sim::{Faults, Simulated};
use fabric::{ClusterKeys, ClusterSubjects, Incarnation, Mesh};
use model::TopicName;
use tempfile::TempDir;

use super::{KEY, Seen, TestClock, Ways, eventually, started};
use crate::{
    HeadsError, HeadsFile, HomeUser, Runner, RunnerError, RunnerParts, TooManyTopics, UserEffect,
};

const LONG: Duration = Duration::from_secs(60);

fn ways(world: &Simulated) -> Ways {
    Ways {
        log: Arc::new(world.node(0)),
        bus: Arc::new(world.node(0)),
        subjects: ClusterSubjects::of("sim").unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_stopped_leaves_its_folder_and_admits_nothing() {
    let world = Simulated::new(1, Faults::default());
    let seen = Arc::new(Seen::new());
    let clock = Arc::new(TestClock::new());
    let runner = started("a", ways(&world), clock, Arc::clone(&seen)).await;
    eventually(LONG, "it admits", || runner.admits()).await;
    let again = HeadsFile::open(seen.folder.path());
    assert!(matches!(again, Err(HeadsError::Locked(_))));
    runner.stop().await;
    assert!(!runner.admits());
    assert!(
        !HeadsFile::open(seen.folder.path())
            .unwrap()
            .all()
            .is_empty()
    );
    let noted = seen.count(|_| true);
    runner.drain();
    tokio::time::sleep(LONG).await;
    assert_eq!(seen.count(|_| true), noted);
    runner.stop().await;
}

/// A user that fails.
struct Fails(TempDir);

impl HomeUser for Fails {
    fn carry_out(&self, effect: UserEffect) {
        assert!(
            !matches!(effect, UserEffect::BecomeHome { .. }),
            "on purpose"
        );
    }
}

fn parts(world: &Simulated, mesh: Mesh, config: HomesConfig) -> RunnerParts {
    let user = Fails(tempfile::tempdir().unwrap());
    let Ways { log, subjects, .. } = ways(world);
    RunnerParts {
        config,
        log,
        mesh: Arc::new(mesh),
        keys: ClusterKeys::new(&KEY),
        subjects,
        heads: HeadsFile::open(user.0.path()).unwrap(),
        clock: Arc::new(TestClock::new()),
        user: Arc::new(user),
    }
}

async fn mesh(world: &Simulated) -> Mesh {
    let nodes = "pm.sim.n".parse().unwrap();
    let (keys, own) = (ClusterKeys::new(&KEY), Incarnation::random());
    Mesh::join(ways(world).bus, nodes, keys, own).await.unwrap()
}

fn config(name: &str, topics: usize) -> HomesConfig {
    let incarnation = NodeLife {
        directory: 1,
        life: 1,
    };
    let name = name.into();
    let topics = (0..topics).map(|number| TopicName::new(&format!("t{number}")).unwrap());
    HomesConfig::new(NodeId { name, incarnation }, topics.collect())
}

#[tokio::test(start_paused = true)]
async fn a_task_that_fails_ends_the_node() {
    let world = Simulated::new(1, Faults::default());
    let parts = parts(&world, mesh(&world).await, config("a", 0));
    let runner = Runner::start(parts).await.unwrap();
    tokio::time::timeout(LONG, runner.ended()).await.unwrap();
    assert!(!runner.admits());
}

#[tokio::test(start_paused = true)]
async fn names_and_topics_have_limits() {
    let world = Simulated::new(1, Faults::default());
    let long = "n".repeat(NODE_NAME_BYTES_MAX + 1);
    for (name, topics) in [("", 0), (&*long, 0), ("a", TOPICS_MAX + 1)] {
        let parts = parts(&world, mesh(&world).await, config(name, topics));
        let refused = Runner::start(parts).await.unwrap_err();
        assert_eq!(matches!(refused, RunnerError::Name(_)), topics == 0);
    }
    let parts = parts(&world, mesh(&world).await, config("a", TOPICS_MAX));
    let runner = Runner::start(parts).await.unwrap();
    let many = config("a", TOPICS_MAX + 1).topics;
    assert_eq!(runner.set_topics(many), Err(TooManyTopics(TOPICS_MAX + 1)));
}
