//! Presence: under which incarnation of the mesh each node is reached.
//!
//! The home is known by the name and life of its node; a tunnel needs the incarnation of its mesh,
//! a random name that is new with each process. So each node says both, in one sealed message.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use cluster::{NODES_MAX, NodeId, NodeLife};
use fabric::{Broadcast, Broadcasts, Incarnation, Mesh, SubjectName};
use platform::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use crate::home_word::HomeWord;

/// The time between two words of a node about itself.
const EVERY: Duration = Duration::from_millis(500);
/// The time without a word after which the channels with a node end.
const SILENT_MAX: Duration = Duration::from_secs(10);

/// A node's word about itself.
#[derive(Debug, Serialize, Deserialize)]
struct Present {
    name: String,
    directory: u64,
    life: u64,
    /// Of the home.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    home: Option<HomeWord>,
}

/// Another node, as it said last.
#[derive(Debug, Clone, Copy)]
struct Presence {
    incarnation: Incarnation,
    at: Instant,
}

/// The other nodes that say where they are.
#[derive(Debug, Default)]
pub(crate) struct Presences {
    known: Mutex<BTreeMap<NodeId, Presence>>,
    /// The latest home's latest word.
    home: watch::Sender<Option<HomeWord>>,
}

impl Presences {
    /// The latest word of a home, and each new one.
    pub(crate) fn home_words(&self) -> watch::Receiver<Option<HomeWord>> {
        self.home.subscribe()
    }

    /// The incarnation of the latest life of a node of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Incarnation> {
        let known = self.known.lock();
        let mut named = known.iter().filter(|(node, _)| *node.name == *name);
        named.next_back().map(|(_, known)| known.incarnation)
    }

    fn note_home(&self, word: HomeWord) {
        self.home.send_if_modified(|known| {
            let is_late = known.as_ref().is_some_and(|known| known.epoch > word.epoch);
            let is_new = !is_late && known.as_ref() != Some(&word);
            if is_new {
                *known = Some(word);
            }
            is_new
        });
    }

    /// The incarnation of this life of a node, if it is known.
    pub(crate) fn of(&self, node: &NodeId) -> Option<Incarnation> {
        self.known.lock().get(node).map(|known| known.incarnation)
    }

    /// Notes a node's word, and returns the incarnations that ended before this life of it.
    fn note(&self, word: Present, incarnation: Incarnation) -> Vec<Incarnation> {
        if let Some(home) = word.home {
            self.note_home(home);
        }
        let incarnation_of_node = NodeLife {
            directory: word.directory,
            life: word.life,
        };
        let node = NodeId {
            name: word.name.into(),
            incarnation: incarnation_of_node,
        };
        let at = Instant::now();
        let mut known = self.known.lock();
        let is_late = |other: &NodeId| incarnation_of_node.is_before(other.incarnation);
        if known.keys().any(is_late) {
            return Vec::new();
        }
        let mut ended = Vec::new();
        known.retain(|other, one| {
            let is_over = other.incarnation.is_before(incarnation_of_node);
            if is_over {
                ended.push(one.incarnation);
            }
            !is_over
        });
        if known.len() < NODES_MAX || known.contains_key(&node) {
            known.insert(node, Presence { incarnation, at });
        }
        ended
    }

    /// Forgets the nodes that say nothing any more, and returns their incarnations.
    pub(crate) fn forget_silent(&self) -> Vec<Incarnation> {
        let mut silent = Vec::new();
        self.known.lock().retain(|_, one| {
            let says_nothing = one.at.elapsed() >= SILENT_MAX;
            if says_nothing {
                silent.push(one.incarnation);
            }
            !says_nothing
        });
        silent
    }
}

/// Says of this node where it is, and what it says as the home, until the task is dropped.
pub(crate) async fn say(
    mesh: Arc<Mesh>,
    subject: SubjectName,
    me: NodeId,
    mut home: watch::Receiver<Option<HomeWord>>,
) {
    let mut times = tokio::time::interval(EVERY);
    times.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = times.tick() => {}
            changed = home.changed() => if changed.is_err() {
                return;
            },
        }
        let word = Present {
            name: me.name.to_string(),
            directory: me.incarnation.directory,
            life: me.incarnation.life,
            home: home.borrow_and_update().clone(),
        };
        // Numbers and names are always written.
        let word = serde_json::to_vec(&word).unwrap_or_default();
        if let Err(why) = mesh.broadcast(&subject, &word).await {
            tracing::debug!(%why, "the other nodes are not reached");
        }
    }
}

/// Notes where the other nodes are, until the bus ends.
pub(crate) async fn hear(presences: Arc<Presences>, mesh: Arc<Mesh>, mut words: Broadcasts) {
    while let Some(word) = words.next().await {
        let Broadcast::From {
            sender, content, ..
        } = word
        else {
            continue;
        };
        match serde_json::from_slice(&content) {
            Ok(word) => {
                for ended in presences.note(word, sender) {
                    mesh.peer_ended(ended);
                }
            }
            Err(why) => tracing::debug!(%sender, %why, "a node says what this version cannot read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Incarnation = Incarnation([1; 16]);
    const SECOND: Incarnation = Incarnation([2; 16]);

    fn word(life: u64) -> Present {
        Present {
            name: "a".to_owned(),
            directory: 7,
            life,
            home: None,
        }
    }

    fn id(life: u64) -> NodeId {
        NodeId {
            name: "a".into(),
            incarnation: NodeLife { directory: 7, life },
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_later_life_ends_the_one_before_and_an_older_word_ends_none() {
        let presences = Presences::default();
        assert_eq!(presences.note(word(1), FIRST), []);
        assert_eq!(presences.of(&id(1)), Some(FIRST));
        assert_eq!(presences.note(word(2), SECOND), [FIRST]);
        assert_eq!(presences.note(word(1), FIRST), []);
        let known = [presences.of(&id(1)), presences.of(&id(2))];
        assert_eq!(known, [None, Some(SECOND)]);
    }

    #[test]
    fn the_word_of_a_former_home_replaces_none_of_its_successor() {
        let presences = Presences::default();
        let said = |epoch, config| HomeWord {
            epoch,
            config,
            ..HomeWord::default()
        };
        let words = presences.home_words();
        for word in [said(1, 1), said(2, 2), said(1, 3)] {
            presences.note_home(word);
        }
        assert_eq!(*words.borrow(), Some(said(2, 2)));
        presences.note_home(said(2, 4));
        assert_eq!(*words.borrow(), Some(said(2, 4)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_says_nothing_for_a_while_is_forgotten() {
        let presences = Presences::default();
        presences.note(word(1), FIRST);
        tokio::time::advance(SILENT_MAX - EVERY).await;
        assert_eq!(presences.forget_silent(), []);
        tokio::time::advance(EVERY).await;
        assert_eq!(presences.forget_silent(), [FIRST]);
        assert_eq!(presences.of(&id(1)), None);
        presences.note(word(1), FIRST);
        assert_eq!(presences.of(&id(1)), Some(FIRST));
    }
}
