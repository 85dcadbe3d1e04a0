//! Observer: a program that is no node, and looks at the cluster or says a person's word to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cluster::{Heartbeat, NodeId, Shard};
use fabric::nats::{Nats, NatsConfig, NatsError, NatsRights, StreamFacts};
use fabric::{
    Broadcast, Broadcasts, BusError, ClusterKeys, Incarnation, Mesh, PeerCallError, SubjectError,
};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout, timeout_at};
use zeroize::Zeroizing;

use crate::audit_words::{AuditQuestion, NodeEntries, NodeLog};
use crate::words::{AUDIT_ANSWER_MAX, ClusterWord, NodeAnswer};

/// The time in which a node answers.
const ANSWER_MAX: Duration = Duration::from_secs(3);
/// The most nodes of which heartbeats are noted.
const NODES_MAX: usize = cluster::SLOT_MAX as usize;

/// Why a cluster cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum ObserverError {
    /// The servers of NATS cannot be used.
    #[error(transparent)]
    Nats(#[from] NatsError),
    /// The name of the cluster is no subject.
    #[error(transparent)]
    Subject(#[from] SubjectError),
    /// The bus cannot be used.
    #[error(transparent)]
    Bus(#[from] BusError),
    /// A node cannot be called.
    #[error(transparent)]
    Call(#[from] PeerCallError),
    /// A node does not answer, or not as this version can read.
    #[error("the node does not answer")]
    Silent,
}

/// A connection to the servers of a cluster, without its key.
#[derive(Debug)]
pub struct Observer {
    nats: Arc<Nats>,
}

/// An observer with the cluster's key.
#[derive(Debug)]
pub struct NodesWatch {
    mesh: Mesh,
    beats: Broadcasts,
}

/// The cluster, as its nodes' heartbeats say.
#[derive(Debug, Clone)]
pub struct ClusterView {
    /// The nodes whose heartbeats came, by name.
    pub nodes: Vec<NodeView>,
    /// Messages that were not sealed with the cluster's key.
    pub refused: u64,
}

/// A node, as its latest heartbeat says.
#[derive(Debug, Clone)]
pub struct NodeView {
    /// Its name and life.
    pub node: NodeId,
    /// Its number, once it is a member.
    pub slot: Option<u16>,
    /// The time since its life began, milliseconds.
    pub up_ms: u64,
    /// Its clock, ahead of the observer's, milliseconds.
    pub ahead_ms: i64,
    /// The epoch of the last message of the log that it has.
    pub epoch: u64,
    /// The number of that message in its epoch.
    pub number: u64,
    /// Its time as the home, if it is.
    pub home: Option<HomeView>,
    /// Whether its copy has messages that the log has lost.
    pub lost: bool,
    /// Whether it is about to stop.
    pub draining: bool,
    /// The nodes that it hears, with the time since, milliseconds.
    pub hears: BTreeMap<String, u64>,
    at: Incarnation,
}

/// A node's time as the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HomeView {
    /// Its epoch.
    pub epoch: u64,
    /// Whether it serves nothing, because messages were lost.
    pub stopped: bool,
}

impl Observer {
    /// Connects.
    ///
    /// # Errors
    /// [`ObserverError`] when the servers cannot be used.
    pub async fn connect(config: &NatsConfig) -> Result<Self, ObserverError> {
        let nats = Arc::new(Nats::connect(config).await?);
        Ok(Self { nats })
    }

    /// The version of the server that is reached.
    #[must_use]
    pub fn version(&self) -> String {
        self.nats.version()
    }

    /// The name of the stream.
    #[must_use]
    pub fn stream_name(&self) -> &str {
        self.nats.stream_name()
    }

    /// The stream, if it is there.
    ///
    /// # Errors
    /// [`NatsError`] when the servers do not say, or it is not fit.
    pub async fn stream(&self) -> Result<Option<StreamFacts>, NatsError> {
        self.nats.stream().await
    }

    /// The rights of the user. The stream has to be there.
    ///
    /// # Errors
    /// [`ObserverError`] when a subject would be none.
    pub async fn rights(&self) -> Result<NatsRights, ObserverError> {
        Ok(self.nats.rights().await?)
    }

    /// Listens to the nodes from now on.
    ///
    /// # Errors
    /// [`ObserverError`] when the bus cannot be listened to.
    pub async fn watch(&self, key: &Zeroizing<[u8; 32]>) -> Result<NodesWatch, ObserverError> {
        let subjects = self.nats.subjects();
        let nodes = subjects.nodes().clone();
        let (keys, own) = (ClusterKeys::new(key), Incarnation::random());
        let mesh = Mesh::join(self.nats.clone(), nodes, keys, own).await?;
        let beats = runner::heartbeats(&mesh, subjects).await?;
        Ok(NodesWatch { mesh, beats })
    }
}

impl NodesWatch {
    /// The nodes whose heartbeats come within this time.
    pub async fn look(&mut self, within: Duration) -> ClusterView {
        let until = Instant::now() + within;
        let before = self.mesh.counts().refused;
        let mut nodes = BTreeMap::new();
        while let Ok(Some(message)) = timeout_at(until, self.beats.next()).await {
            let Broadcast::From {
                sender, content, ..
            } = message
            else {
                continue;
            };
            if let Some(beat) = runner::heartbeat(&content)
                && (nodes.len() < NODES_MAX || nodes.contains_key(&beat.node))
            {
                nodes.insert(beat.node.clone(), NodeView::of(beat, sender));
            }
        }
        ClusterView {
            nodes: nodes.into_values().collect(),
            refused: self.mesh.counts().refused - before,
        }
    }

    /// Says a word to a node, and returns its answer.
    ///
    /// # Errors
    /// [`ObserverError`] when it does not answer; whether it has taken the word is not known then.
    pub async fn say(
        &self,
        node: &NodeView,
        word: &ClusterWord,
    ) -> Result<NodeAnswer, ObserverError> {
        self.ask(node, word, ANSWER_MAX).await
    }

    /// The newest entries of a node's audit log that match.
    ///
    /// # Errors
    /// [`ObserverError`] when it does not answer.
    pub async fn audit(
        &self,
        node: &NodeView,
        question: AuditQuestion,
    ) -> Result<NodeEntries, ObserverError> {
        let word = ClusterWord::Audit(question);
        self.ask(node, &word, AUDIT_ANSWER_MAX).await
    }

    /// The check of a node's audit log; `None` if it keeps none.
    ///
    /// # Errors
    /// [`ObserverError`] when it does not answer.
    pub async fn verify_audit(&self, node: &NodeView) -> Result<Option<NodeLog>, ObserverError> {
        self.ask(node, &ClusterWord::VerifyAudit, AUDIT_ANSWER_MAX)
            .await
    }

    async fn ask<A: DeserializeOwned>(
        &self,
        node: &NodeView,
        word: &ClusterWord,
        within: Duration,
    ) -> Result<A, ObserverError> {
        // Words are always written.
        let request = Bytes::from(serde_json::to_vec(word).unwrap_or_default());
        let asked = async {
            let mut call = self.mesh.call(node.at, request).await?;
            call.next().await
        };
        let answer = timeout(within, asked).await;
        let answer = answer.map_err(|_| ObserverError::Silent)??;
        let answer = answer.ok_or(ObserverError::Silent)?;
        serde_json::from_slice(&answer).map_err(|_| ObserverError::Silent)
    }
}

impl ClusterView {
    /// The home: the node with the latest epoch of those that say to be it.
    #[must_use]
    pub fn home(&self) -> Option<&NodeView> {
        let homes = self.nodes.iter().filter(|node| node.home.is_some());
        homes.max_by_key(|node| node.home.map(|home| home.epoch))
    }

    /// The names under which several processes run.
    #[must_use]
    pub fn doubled(&self) -> Vec<&str> {
        let pairs = self.nodes.iter().zip(self.nodes.iter().skip(1));
        let same = pairs.filter(|(one, next)| {
            let (one, next) = (&one.node, &next.node);
            // A process that was restarted is seen twice for a moment.
            one.name == next.name && one.incarnation.directory != next.incarnation.directory
        });
        same.map(|(one, _)| &*one.node.name).collect()
    }
}

impl NodeView {
    fn of(beat: Heartbeat, at: Incarnation) -> Self {
        let mut claims = beat.homes.iter();
        let claim = claims.find(|claim| claim.shard == Shard::Common);
        let hears = beat.hears.iter();
        let hears = hears.map(|other| (other.node.name.to_string(), other.age_ms));
        let here = i64::try_from(platform::unix_ms()).unwrap_or(i64::MAX);
        let there = i64::try_from(beat.wall_ms).unwrap_or(i64::MAX);
        Self {
            slot: beat.slot.map(|slot| slot.0),
            up_ms: beat.up_ms,
            ahead_ms: there.saturating_sub(here),
            epoch: beat.revision.epoch,
            number: beat.revision.number,
            home: claim.map(|claim| HomeView {
                epoch: claim.epoch,
                stopped: claim.stopped,
            }),
            lost: beat.lost.is_some(),
            draining: beat.draining,
            hears: hears.collect(),
            at,
            node: beat.node,
        }
    }
}
