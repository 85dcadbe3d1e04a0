//! Word of the home to the other nodes: for which calls it is not needed.

use serde::{Deserialize, Serialize};

/// The most topics and servers that a word names. Beyond it no call is plain.
pub const HOME_WORD_NAMES_MAX: usize = 1_024;

/// The word: what the other nodes need to know before they make plain calls themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct HomeWord {
    /// The epoch of its time as the home.
    pub epoch: u64,
    /// The digest of its configuration ([`crate::ClusterNode::set_config`]).
    pub config: u64,
    /// The topics whose calls are shown to participants at the home.
    pub watched: Vec<String>,
    /// The servers that an operator has disabled.
    pub off: Vec<String>,
}

impl HomeWord {
    /// Whether another node may make calls in this topic. Which servers are disabled the home knows.
    #[must_use]
    pub fn lets_be(&self, topic: &str) -> bool {
        self.off.is_empty() && !self.watched.iter().any(|watched| watched == topic)
    }

    /// Whether it names no more than other nodes can be sent.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.watched.len() + self.off.len() <= HOME_WORD_NAMES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_watched_topics_are_the_homes() {
        let word = HomeWord {
            watched: vec!["main".to_owned()],
            ..HomeWord::default()
        };
        assert!(!word.lets_be("main") && word.lets_be("other"));
        assert!(HomeWord::default().lets_be("main"));
        let off = HomeWord {
            off: vec!["files".to_owned()],
            ..word
        };
        assert!(!off.lets_be("other"));
    }

    #[test]
    fn a_word_at_its_limit_fits() {
        let named = |count: usize| HomeWord {
            off: vec![String::new(); count - 1],
            watched: vec![String::new()],
            ..HomeWord::default()
        };
        assert!(named(HOME_WORD_NAMES_MAX).fits());
        assert!(!named(HOME_WORD_NAMES_MAX + 1).fits());
    }
}
