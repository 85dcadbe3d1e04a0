//! Limits that no step exceeds.

use std::collections::BTreeMap;

use model::{LinkId, ParticipantId};
use topic::Limits;

use super::{Books, calls::Place, deals::Deal};

/// Small, so that each is met.
pub(crate) const LIMITS: Limits = Limits {
    participants_max: 8,
    links_per_participant_max: 3,
    operations_max: 24,
    operations_per_link_max: 6,
    operations_per_participant_max: 9,
    asks_per_link_max: 3,
    asks_per_server_max: 3,
    asks_per_server_and_participant_max: 2,
    rounds_max: 3,
    gather_ms: 400,
    pause_ms: 1_500,
    away_ms: 700,
    proposals_max: 8,
    proposals_per_participant_max: 4,
    proposal_bytes_max: 24,
    proposal_bytes_per_participant_max: 14,
    items_per_list_max: 10_000,
    templates_max: 256,
    name_bytes_max: 512,
    uri_bytes_max: 8_192,
};

impl Books {
    /// The open operations of one link: calls whose callers wait, and questions.
    pub(crate) fn open_of(&self, link: LinkId) -> usize {
        let calls = self
            .calls
            .values()
            .filter(|open| open.link == link && !open.answered)
            .count();
        calls + self.asks_of(link)
    }

    pub(crate) fn asks_of(&self, link: LinkId) -> usize {
        self.questions
            .values()
            .filter(|open| open.link == link)
            .count()
    }

    pub(crate) fn asks_by(&self, server: &ParticipantId) -> usize {
        self.questions
            .values()
            .filter(|open| open.server == *server)
            .count()
    }

    /// The questions of a server that wait for a participant.
    pub(crate) fn asks_between(
        &self,
        server: &ParticipantId,
        participant: &ParticipantId,
    ) -> usize {
        let links = self.links_of(participant);
        self.questions
            .values()
            .filter(|open| open.server == *server && links.contains(&open.link))
            .count()
    }

    /// The open operations on all links of a caller.
    pub(crate) fn open_by(&self, participant: &ParticipantId) -> usize {
        self.links_of(participant)
            .into_iter()
            .map(|link| self.open_of(link))
            .sum()
    }

    /// The open operations of the topic, without parked calls.
    pub(crate) fn open_len(&self) -> usize {
        self.calls
            .values()
            .filter(|open| open.place != Place::Parked)
            .count()
            + self.questions.len()
    }

    pub(crate) fn parked_len(&self) -> usize {
        self.calls
            .values()
            .filter(|open| open.place == Place::Parked)
            .count()
    }

    /// Whether one more call of a link is too many. Of a server's link its questions count.
    pub(crate) fn is_full(&self, link: LinkId, by: &ParticipantId) -> bool {
        let own = if self.links.contains_key(&link) {
            self.open_by(by)
        } else {
            self.open_of(link) + self.asks_by(by)
        };
        self.open_of(link) >= LIMITS.operations_per_link_max
            || self.open_len() >= LIMITS.operations_max
            || own >= LIMITS.operations_per_participant_max
    }

    pub(crate) fn check_limits(&self) {
        for (link, own) in &self.links {
            assert!(
                self.open_of(*link) <= LIMITS.operations_per_link_max,
                "{link}"
            );
            assert!(self.asks_of(*link) <= LIMITS.asks_per_link_max, "{link}");
            // Questions about its calls count extra.
            let asked: usize = self
                .links_of(&own.participant)
                .into_iter()
                .map(|link| self.asks_of(link))
                .sum();
            assert!(
                self.open_by(&own.participant) - asked <= LIMITS.operations_per_participant_max,
                "{own:?}"
            );
            assert!(
                self.links_of(&own.participant).len() <= LIMITS.links_per_participant_max,
                "{own:?}"
            );
        }
        for server in self.servers.keys() {
            assert!(
                self.asks_by(server) <= LIMITS.asks_per_server_max,
                "{server}"
            );
        }
        // Calls that were parked and are carried out count extra; each had its proposal.
        let released = self
            .calls
            .values()
            .filter(|open| open.answered && open.place == Place::AtServer);
        assert!(self.open_len() - released.count() <= LIMITS.operations_max);
        assert!(self.parked_len() <= LIMITS.proposals_max);
        // A proposal whose end could not be written is pending again after a restart, besides later
        // ones.
        self.check_open(
            |_| 1,
            LIMITS.proposals_max,
            LIMITS.proposals_per_participant_max,
        );
        self.check_open(
            Deal::bytes,
            LIMITS.proposal_bytes_max,
            LIMITS.proposal_bytes_per_participant_max,
        );
    }

    /// Checks a sum over the proposals that are not over.
    fn check_open(&self, amount: fn(&Deal) -> usize, all_max: usize, own_max: usize) {
        let mut all = (0, 0);
        let mut own = BTreeMap::new();
        for deal in self
            .deals
            .values()
            .filter(|deal| deal.is_known() && deal.over.is_none())
        {
            let own: &mut (usize, usize) = own.entry(&deal.by).or_default();
            for sum in [&mut all, own] {
                sum.0 += amount(deal);
                sum.1 += if deal.restored { amount(deal) } else { 0 };
            }
        }
        assert!(all.0 <= all_max.max(all.1));
        assert!(
            own.values()
                .all(|(sum, restored)| *sum <= own_max.max(*restored))
        );
    }
}
