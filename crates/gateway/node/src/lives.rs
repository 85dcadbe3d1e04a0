//! Lives of a node in its data directory, so that the next one knows what this one was.

use cluster::NodeLife;
use serde::{Deserialize, Serialize};
use store::{Fold, Ledger, StoreError};

/// What the journal of a node's own data directory has of its lives.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeLives {
    latest: Option<Life>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Life {
    directory: u64,
    number: u64,
    was_home: bool,
}

/// A fact about the lives of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub enum NodeRecord {
    /// A life began.
    LifeBegan {
        /// The number of the data directory, random, in decimal digits: JSON has no such numbers.
        directory: String,
        /// The number of the life, from 1.
        life: u64,
    },
    /// The node became the home, or is it no more.
    HomeChanged {
        /// Whether it is the home.
        is_home: bool,
    },
}

impl Fold for NodeLives {
    const OWNER: &'static str = "node";
    type Record = NodeRecord;

    fn apply(&mut self, record: &NodeRecord) {
        match record {
            NodeRecord::LifeBegan { directory, life } => {
                let was_home = self.latest.is_some_and(|latest| latest.was_home);
                self.latest = Some(Life {
                    directory: directory.parse().unwrap_or_default(),
                    number: *life,
                    was_home,
                });
            }
            NodeRecord::HomeChanged { is_home } => {
                if let Some(latest) = &mut self.latest {
                    latest.was_home = *is_home;
                }
            }
        }
    }

    fn live(&self) -> usize {
        2 * usize::from(self.latest.is_some())
    }

    fn records(&mut self, _: u64) -> Vec<NodeRecord> {
        let Some(latest) = self.latest else {
            return Vec::new();
        };
        let began = NodeRecord::LifeBegan {
            directory: latest.directory.to_string(),
            life: latest.number,
        };
        let is_home = latest.was_home;
        vec![began, NodeRecord::HomeChanged { is_home }]
    }
}

/// The life that begins, and whether the one before ended as the home.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NextLife {
    pub(crate) life: NodeLife,
    pub(crate) was_home: bool,
}

/// Begins a life; `random` is the number of the data directory if it has none.
pub(crate) fn begin(lives: &Ledger<NodeLives>, random: u64) -> Result<NextLife, StoreError> {
    let before = lives.state(|lives| lives.latest);
    let life = NodeLife {
        directory: before.map_or(random, |before| before.directory),
        life: before.map_or(1, |before| before.number + 1),
    };
    lives.append(&[NodeRecord::LifeBegan {
        directory: life.directory.to_string(),
        life: life.life,
    }])?;
    Ok(NextLife {
        life,
        was_home: before.is_some_and(|before| before.was_home),
    })
}

#[cfg(test)]
mod tests {
    use store::JournalWriter;

    use super::*;

    #[test]
    fn each_life_has_the_next_number_and_knows_whether_the_last_one_was_the_home() {
        let folder = tempfile::tempdir().unwrap();
        let open = || {
            let journal = JournalWriter::open(folder.path()).unwrap();
            journal.ledger::<NodeLives>().unwrap()
        };
        let first = begin(&open(), u64::MAX).unwrap();
        assert_eq!((first.life.life, first.was_home), (1, false));
        let second = {
            let lives = open();
            let second = begin(&lives, 5).unwrap();
            lives
                .append(&[NodeRecord::HomeChanged { is_home: true }])
                .unwrap();
            second
        };
        assert_eq!(second.life.directory, u64::MAX);
        let third = begin(&open(), 5).unwrap();
        assert!(second.life.is_before(third.life));
        assert_eq!((third.life.life, third.was_home), (3, true));
    }

    #[test]
    fn a_compaction_keeps_what_the_golden_lines_say() {
        let golden = [
            r#"{"record":"life_began","directory":"18446744073709551615","life":7}"#,
            r#"{"record":"home_changed","is_home":true}"#,
        ];
        let mut lives = NodeLives::default();
        for line in golden {
            lives.apply(&serde_json::from_str(line).unwrap());
        }
        let kept = lives.records(0);
        assert_eq!(kept.len(), lives.live());
        let kept = kept.iter().map(|one| serde_json::to_string(one).unwrap());
        assert_eq!(kept.collect::<Vec<_>>(), golden);
    }
}
