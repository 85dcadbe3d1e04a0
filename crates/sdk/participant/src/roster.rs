//! Knowledge of the other participants: who is in the topic and what it allows, by the latest
//! welcome and presence (MCPx v0.1, 3.4 and 3.5.1), their recent envelopes, and their protocol
//! violations (4.3 suggests to track them).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::{collections::hash_map::RandomState, hash::BuildHasher};

use model::{Capabilities, KindRef};
use wire::mcpx::system::{ParticipantInfo, PresenceChange, Welcome};

/// The participants of the topic.
#[derive(Debug, Default)]
pub(crate) struct Roster {
    /// This participant; `None` before the first welcome.
    pub(crate) you: Option<ParticipantInfo>,
    /// The number of welcomes of this connection. All after the first have new capabilities.
    welcomes: u64,
    allowed: Capabilities,
    /// The other participants, by id.
    pub(crate) others: BTreeMap<String, ParticipantInfo>,
}

impl Roster {
    /// Applies a welcome, the first or a later one: it replaces everything.
    pub(crate) fn welcome(&mut self, welcome: &Welcome) {
        self.welcomes += 1;
        self.allowed = welcome.you.allowed();
        self.you = Some(welcome.you.clone());
        self.others = welcome
            .participants
            .iter()
            .map(|seen| (seen.id.clone(), seen.clone()))
            .collect();
    }

    /// The connection is lost: the next welcome is the first of another one.
    pub(crate) fn disconnected(&mut self) {
        self.welcomes = 0;
    }

    /// Applies a join or a leave. One of this participant itself changes nothing. Returns whether
    /// it is a join of a participant that is in the topic already: then only its capabilities have
    /// changed.
    pub(crate) fn change(&mut self, change: &PresenceChange) -> bool {
        match change {
            PresenceChange::Join(seen) if self.is_me(&seen.id) => self.welcomes > 1,
            PresenceChange::Join(seen) => {
                self.others.insert(seen.id.clone(), seen.clone()).is_some()
            }
            PresenceChange::Leave(seen) => {
                self.others.remove(&seen.id);
                false
            }
        }
    }

    /// The id of this participant; empty before the first welcome.
    pub(crate) fn id(&self) -> &str {
        self.you.as_ref().map_or("", |you| &you.id)
    }

    /// Whether this is the id of this participant.
    pub(crate) fn is_me(&self, id: &str) -> bool {
        self.you.as_ref().is_some_and(|you| you.id == id)
    }

    /// Whether this participant is paused, by the latest welcome.
    pub(crate) fn is_paused(&self) -> bool {
        self.you.as_ref().is_some_and(|you| you.paused)
    }

    /// Whether the latest welcome allows this.
    pub(crate) fn allows(&self, kind: &str, to: &[&str]) -> bool {
        KindRef::parse(kind).is_ok_and(|kind| self.allowed.admits(kind, to))
    }
}

/// Participants whose violations are counted; those of further ones are not.
pub const VIOLATORS_MAX: usize = 1024;

/// The counts.
#[derive(Debug, Default)]
pub(crate) struct Violations(pub(crate) BTreeMap<String, u64>);

impl Violations {
    /// Counts one violation.
    pub(crate) fn add(&mut self, from: &str) {
        if let Some(count) = self.0.get_mut(from) {
            *count = count.saturating_add(1);
        } else if self.0.len() < VIOLATORS_MAX {
            self.0.insert(from.to_owned(), 1);
        }
    }
}

/// Envelopes whose duplicate is recognized; older ones are forgotten.
pub const RECENT_ENVELOPES_MAX: usize = 4096;
/// Proposals whose proposer is known; older ones are forgotten.
pub const RECENT_PROPOSALS_MAX: usize = 1024;

/// The recent envelopes.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    hasher: RandomState,
    envelopes: HashSet<u64>,
    envelopes_by_age: VecDeque<u64>,
    proposers: HashMap<String, String>,
    proposals_by_age: VecDeque<String>,
}

impl Recent {
    /// Adds an envelope. True when its sender has used the id before.
    pub(crate) fn is_duplicate(&mut self, from: &str, id: &str) -> bool {
        // A keyed hash of 64 bits: a sender cannot cause a collision on purpose.
        let hash = self.hasher.hash_one((from, id));
        if !self.envelopes.insert(hash) {
            return true;
        }
        self.envelopes_by_age.push_back(hash);
        if self.envelopes_by_age.len() > RECENT_ENVELOPES_MAX
            && let Some(oldest) = self.envelopes_by_age.pop_front()
        {
            self.envelopes.remove(&oldest);
        }
        false
    }

    /// Adds a proposal. Of two with the same id, the first one counts.
    pub(crate) fn add_proposal(&mut self, id: &str, proposer: &str) {
        if self.proposers.contains_key(id) {
            return;
        }
        self.proposers.insert(id.to_owned(), proposer.to_owned());
        self.proposals_by_age.push_back(id.to_owned());
        if self.proposals_by_age.len() > RECENT_PROPOSALS_MAX
            && let Some(oldest) = self.proposals_by_age.pop_front()
        {
            self.proposers.remove(&oldest);
        }
    }

    /// The proposer of this proposal, if it is recent.
    pub(crate) fn proposer(&self, id: &str) -> Option<&str> {
        self.proposers.get(id).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: &str, capabilities: &[&str]) -> ParticipantInfo {
        let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
        ParticipantInfo {
            id: id.into(),
            capabilities,
            ..ParticipantInfo::default()
        }
    }

    #[test]
    fn welcomes_and_presence_change_the_roster() {
        let mut roster = Roster::default();
        let names = |roster: &Roster| {
            roster
                .others
                .values()
                .map(|seen| seen.id.clone())
                .collect::<Vec<_>>()
        };
        assert!(!roster.is_me(""));
        let welcome = Welcome {
            you: seen("me", &["chat"]),
            participants: vec![seen("b", &[])],
            history: None,
        };
        roster.welcome(&welcome);
        for (change, expect) in [
            (PresenceChange::Join(seen("me", &["chat"])), vec!["b"]),
            (PresenceChange::Join(seen("a", &[])), vec!["a", "b"]),
            (PresenceChange::Leave(seen("b", &[])), vec!["a"]),
            (PresenceChange::Leave(seen("unknown", &[])), vec!["a"]),
        ] {
            roster.change(&change);
            assert_eq!(names(&roster), expect);
        }
    }

    #[test]
    fn the_latest_welcome_decides_what_is_allowed() {
        let mut roster = Roster::default();
        let allows = |roster: &Roster| {
            [
                "mcp/request:tools/call:x",
                "mcp/proposal:tools/call:x",
                "chat",
                "system/x",
            ]
            .map(|kind| roster.allows(kind, &["t"]))
        };
        assert_eq!(allows(&roster), [false; 4]);
        for (capabilities, expect) in [
            (
                &["mcp/proposal:*", "**not one**"][..],
                [false, true, false, false],
            ),
            (&["mcp/*", "chat"], [true, true, true, false]),
            (&[], [false; 4]),
        ] {
            roster.welcome(&Welcome {
                you: seen("me", capabilities),
                participants: Vec::new(),
                history: None,
            });
            assert_eq!(allows(&roster), expect);
        }
    }

    #[test]
    fn counts_are_bounded() {
        let mut violations = Violations::default();
        for number in 0..2 * VIOLATORS_MAX {
            violations.add(&number.to_string());
        }
        violations.add("0");
        assert_eq!((violations.0.len(), violations.0["0"]), (VIOLATORS_MAX, 2));
    }

    #[test]
    fn a_duplicate_has_the_same_sender_and_id() {
        let mut recent = Recent::default();
        for (from, id, duplicate) in [
            ("a", "1", false),
            ("b", "1", false),
            ("a", "1", true),
            ("a", "2", false),
            ("a1", "", false),
        ] {
            assert_eq!(recent.is_duplicate(from, id), duplicate, "{from} {id}");
        }
    }

    #[test]
    fn older_envelopes_and_proposals_are_forgotten() {
        let mut recent = Recent::default();
        for number in 0..=RECENT_ENVELOPES_MAX {
            assert!(!recent.is_duplicate("a", &number.to_string()));
        }
        assert_eq!(recent.envelopes.len(), RECENT_ENVELOPES_MAX);
        assert!(!recent.is_duplicate("a", "0"), "the oldest is forgotten");
        for number in 0..=RECENT_PROPOSALS_MAX {
            recent.add_proposal(&number.to_string(), "b");
        }
        assert_eq!(
            (recent.proposer("0"), recent.proposer("1")),
            (None, Some("b"))
        );
        assert_eq!(recent.proposers.len(), RECENT_PROPOSALS_MAX);
    }

    #[test]
    fn a_later_proposal_of_the_same_id_changes_nothing() {
        let mut recent = Recent::default();
        recent.add_proposal("p", "a");
        recent.add_proposal("p", "mallory");
        assert_eq!(recent.proposer("p"), Some("a"));
    }
}
