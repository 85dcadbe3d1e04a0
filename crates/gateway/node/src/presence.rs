//! Presence: under which incarnation of the mesh each node is reached.
//!
//! The home is known by the name and life of its node; a tunnel needs the incarnation of its mesh,
//! a random name that is new with each process. So each node says both, in one sealed message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::{NodeId, NodeLife};
use fabric::{Broadcast, Broadcasts, Incarnation, Mesh, SubjectName};
use platform::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::MissedTickBehavior;

/// The time between two words of a node about itself.
const EVERY: Duration = Duration::from_millis(500);
/// The most nodes that are remembered: as many as members can be.
const NODES_MAX: usize = cluster::SLOT_MAX as usize;

/// A node's word about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Present {
    name: String,
    directory: u64,
    life: u64,
}

/// The incarnations of other nodes, by name, with the life that each is of.
#[derive(Debug, Default)]
pub(crate) struct Presences(Mutex<BTreeMap<Arc<str>, (NodeLife, Incarnation)>>);

impl Presences {
    /// The incarnation of this life of a node, if it is known.
    pub(crate) fn of(&self, node: &NodeId) -> Option<Incarnation> {
        let known = self.0.lock();
        let (life, incarnation) = known.get(&node.name)?;
        (*life == node.incarnation).then_some(*incarnation)
    }

    fn note(&self, word: Present, sender: Incarnation) {
        let life = NodeLife {
            directory: word.directory,
            life: word.life,
        };
        let mut known = self.0.lock();
        let latest = known.get(&*word.name).map(|(latest, _)| *latest);
        let is_late = latest.is_some_and(|latest| life.is_before(latest));
        if !is_late && (latest.is_some() || known.len() < NODES_MAX) {
            known.insert(word.name.into(), (life, sender));
        }
    }
}

/// Says of this node where it is, until the task is dropped.
pub(crate) async fn say(mesh: Arc<Mesh>, subject: SubjectName, me: NodeId) {
    let word = Present {
        name: me.name.to_string(),
        directory: me.incarnation.directory,
        life: me.incarnation.life,
    };
    // Numbers and a name are always written.
    let word = serde_json::to_vec(&word).unwrap_or_default();
    let mut times = tokio::time::interval(EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        times.tick().await;
        if let Err(why) = mesh.broadcast(&subject, &word).await {
            tracing::debug!(%why, "the other nodes are not reached");
        }
    }
}

/// Notes where the other nodes are, until the bus ends.
pub(crate) async fn hear(presences: Arc<Presences>, mut words: Broadcasts) {
    while let Some(word) = words.next().await {
        let Broadcast::From {
            sender, content, ..
        } = word
        else {
            continue;
        };
        match serde_json::from_slice(&content) {
            Ok(word) => presences.note(word, sender),
            Err(why) => tracing::warn!(%sender, %why, "a node says what this version cannot read"),
        }
    }
}
