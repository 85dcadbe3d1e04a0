//! Participants of the topic and this one's capabilities, by the latest welcome and presence (MCPx v0.1, 3.4 and 3.5.1).

use std::collections::BTreeMap;

use model::{Capabilities, KindRef};
use wire::mcpx::system::{ParticipantInfo, PresenceChange, Welcome};

/// The participants of the topic.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// This participant; `None` before the first welcome.
    pub(super) you: Option<ParticipantInfo>,
    allowed: Capabilities,
    /// The other participants, by id.
    pub(super) others: BTreeMap<String, ParticipantInfo>,
}

impl Roster {
    /// Applies a welcome, the first or a later one: it replaces everything.
    pub(super) fn welcome(&mut self, welcome: &Welcome) {
        self.allowed = welcome.you.allowed();
        self.you = Some(welcome.you.clone());
        self.others = welcome.participants.iter().map(|seen| (seen.id.clone(), seen.clone())).collect();
    }

    /// Applies a join or a leave. One of this participant itself changes nothing.
    pub(super) fn change(&mut self, change: &PresenceChange) {
        match change {
            PresenceChange::Join(seen) if !self.is_me(&seen.id) => {
                self.others.insert(seen.id.clone(), seen.clone());
            }
            PresenceChange::Leave(seen) => {
                self.others.remove(&seen.id);
            }
            PresenceChange::Join(_) => {}
        }
    }

    /// The id of this participant; empty before the first welcome.
    pub(super) fn id(&self) -> &str {
        self.you.as_ref().map_or("", |you| &you.id)
    }

    /// Whether this is the id of this participant.
    pub(super) fn is_me(&self, id: &str) -> bool {
        self.you.as_ref().is_some_and(|you| you.id == id)
    }

    /// Whether the latest welcome allows this.
    pub(super) fn allows(&self, kind: &str, to: &[&str]) -> bool {
        KindRef::parse(kind).is_ok_and(|kind| self.allowed.admits(kind, to))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: &str, capabilities: &[&str]) -> ParticipantInfo {
        let capabilities = capabilities.iter().map(|text| (*text).to_owned()).collect();
        ParticipantInfo { id: id.into(), capabilities, ..ParticipantInfo::default() }
    }

    #[test]
    fn welcomes_and_presence_change_the_roster() {
        let mut roster = Roster::default();
        let names = |roster: &Roster| roster.others.values().map(|seen| seen.id.clone()).collect::<Vec<_>>();
        assert!(!roster.is_me(""));
        let welcome = Welcome { you: seen("me", &["chat"]), participants: vec![seen("b", &[])] };
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
            ["mcp/request:tools/call:x", "mcp/proposal:tools/call:x", "chat", "system/x"]
                .map(|kind| roster.allows(kind, &["t"]))
        };
        assert_eq!(allows(&roster), [false; 4]);
        for (capabilities, expect) in [
            (&["mcp/proposal:*", "**not one**"][..], [false, true, false, false]),
            (&["mcp/*", "chat"], [true, true, true, false]),
            (&[], [false; 4]),
        ] {
            roster.welcome(&Welcome { you: seen("me", capabilities), participants: Vec::new() });
            assert_eq!(allows(&roster), expect);
        }
    }
}
