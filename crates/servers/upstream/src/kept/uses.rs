//! Uses of servers: which participants used which server in the last days, and with which clients
//! by sessions of their own.

use std::collections::BTreeMap;

use platform::unix_ms;
use serde::{Deserialize, Serialize};

/// A use counts for this many days.
pub(crate) const USED_DAYS: u64 = 7;
/// Participants that are remembered for one server: the one that used it longest ago makes way.
const PARTICIPANTS_MAX: usize = 1_000;
/// Clients that are remembered for one participant at one server.
const CLIENTS_MAX: usize = 16;
/// The longest name of a client that is remembered, in bytes.
const CLIENT_BYTES_MAX: usize = 64;
/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3_600 * 1_000;

/// Use of a server by a participant in the last days.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Used {
    /// Not at all.
    No,
    /// By the session that all share, or with other clients.
    Shared,
    /// With this client, by a session of its own.
    Own,
}

/// The days on which servers were used, by server and participant. Days are counted from 1970.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Uses(BTreeMap<String, BTreeMap<String, Use>>);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Use {
    /// The last day of any use.
    day: u64,
    /// The last day on which each client used a session of its own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    own: BTreeMap<String, u64>,
}

/// The day now, counted from 1970.
#[must_use]
pub fn today() -> u64 {
    unix_ms() / DAY_MS
}

impl Uses {
    /// Notes a use; false if it was noted on this day before.
    pub(super) fn note(
        &mut self,
        server: &str,
        participant: &str,
        own: Option<&str>,
        today: u64,
    ) -> bool {
        let own = own.filter(|name| name.len() <= CLIENT_BYTES_MAX);
        if self.is_noted(server, participant, own, today) {
            return false;
        }
        let of_server = self.0.entry(server.to_owned()).or_default();
        of_server.retain(|_, one| is_recent(one.day, today));
        if of_server.len() >= PARTICIPANTS_MAX && !of_server.contains_key(participant) {
            let oldest = of_server
                .iter()
                .min_by_key(|(_, one)| one.day)
                .map(|(name, _)| name.clone());
            oldest.map(|oldest| of_server.remove(&oldest));
        }
        let noted = of_server.entry(participant.to_owned()).or_default();
        noted.day = today;
        noted.own.retain(|_, day| is_recent(*day, today));
        if let Some(client) =
            own.filter(|client| noted.own.len() < CLIENTS_MAX || noted.own.contains_key(*client))
        {
            noted.own.insert(client.to_owned(), today);
        }
        self.0
            .retain(|_, of_server| of_server.values().any(|one| is_recent(one.day, today)));
        true
    }

    /// Use of a server by a participant in the last days.
    pub(super) fn used(
        &self,
        server: &str,
        participant: &str,
        client: Option<&str>,
        today: u64,
    ) -> Used {
        let noted = self
            .0
            .get(server)
            .and_then(|of_server| of_server.get(participant));
        let Some(noted) = noted.filter(|noted| is_recent(noted.day, today)) else {
            return Used::No;
        };
        match client.and_then(|client| noted.own.get(client)) {
            Some(day) if is_recent(*day, today) => Used::Own,
            Some(_) | None => Used::Shared,
        }
    }

    fn is_noted(&self, server: &str, participant: &str, own: Option<&str>, today: u64) -> bool {
        let noted = self
            .0
            .get(server)
            .and_then(|of_server| of_server.get(participant));
        noted.is_some_and(|noted| {
            let has_room = noted.own.len() < CLIENTS_MAX;
            let is_new = own.is_some_and(|client| match noted.own.get(client) {
                Some(day) => *day != today,
                None => has_room,
            });
            noted.day == today && !is_new
        })
    }
}

/// Whether a use on this day still counts. A clock that went back makes no use older.
fn is_recent(day: u64, today: u64) -> bool {
    today.saturating_sub(day) < USED_DAYS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_counts_for_its_days() {
        let mut uses = Uses::default();
        assert!(uses.note("files", "ann", None, 100));
        assert!(
            !uses.note("files", "ann", None, 100),
            "it is written once a day"
        );
        for (today, used) in [
            (100, Used::Shared),
            (106, Used::Shared),
            (107, Used::No),
            (99, Used::Shared),
        ] {
            assert_eq!(uses.used("files", "ann", None, today), used, "{today}");
        }
        assert!(uses.note("files", "ann", Some("cursor"), 104));
        assert_eq!(uses.used("files", "ann", Some("cursor"), 110), Used::Own);
        assert_eq!(uses.used("files", "ann", Some("other"), 110), Used::Shared);
        assert!(uses.note("git", "bob", None, 200));
        assert_eq!(uses.0.len(), 1, "what is long ago is forgotten");
    }

    #[test]
    fn participants_and_clients_are_limited() {
        let mut uses = Uses::default();
        for number in 0..=PARTICIPANTS_MAX {
            uses.note(
                "files",
                &format!("p{number}"),
                None,
                100 + u64::from(number > 0),
            );
        }
        assert_eq!(uses.0["files"].len(), PARTICIPANTS_MAX);
        assert_eq!(
            uses.used("files", "p0", None, 101),
            Used::No,
            "it used it longest ago"
        );
        for number in 0..=CLIENTS_MAX {
            let is_noted = uses.note("files", "p1", Some(&format!("c{number}")), 101);
            assert_eq!(is_noted, number < CLIENTS_MAX);
        }
        assert!(!uses.note("files", "p1", Some(&"x".repeat(CLIENT_BYTES_MAX + 1)), 101));
    }
}
