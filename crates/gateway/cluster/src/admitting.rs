//! Admission: the time until which a node may admit requests.

use crate::effect::{Admission, HomeEffect, NoAdmission};
use crate::homes::Homes;
use crate::record::HomeLine;
use crate::shard::Shard;
use crate::timing::CLOCKS_APART_MS;

impl<R: HomeLine> Homes<R> {
    /// Says so when the admission of requests has changed.
    pub(crate) fn review_admission(&mut self) {
        self.meet_home();
        let admission = self.judge_admission();
        if self.admission != admission {
            self.admission = admission;
            self.push(HomeEffect::Admit(admission));
        }
    }

    fn judge_admission(&self) -> Admission {
        let own = self.common.history.head;
        if self.is_replaced {
            return Admission::No(NoAdmission::Replaced);
        }
        let claimed = self.peers.claimed(&Shard::Common);
        let is_stopped =
            claimed.is_some_and(|(_, _, claim)| claim.stopped && claim.epoch >= own.epoch);
        if self.common.is_lost || is_stopped {
            return Admission::No(NoAdmission::Lost);
        }
        if !self.common.members.has(&self.me.name) {
            let why = if self.is_clock_apart() {
                NoAdmission::ClockApart
            } else {
                NoAdmission::NotMember
            };
            return Admission::No(why);
        }
        let newest = self.newest();
        match self.contact_until_ms() {
            Some(until_ms) if until_ms > self.now_ms() => Admission::Until(until_ms),
            _ if (newest.epoch, newest.number) > (own.epoch, own.number) => {
                Admission::No(NoAdmission::Behind)
            }
            _ => Admission::No(NoAdmission::CutOff),
        }
    }

    /// The time until which contacts last: with the home of the common journal, or with a majority.
    fn contact_until_ms(&self) -> Option<u64> {
        let cut_off_ms = self.config.cut_off_ms;
        let own = self.common.history.head;
        let as_home = self.lease_ms(&Shard::Common);
        let homes = self
            .peers
            .all()
            .filter_map(|(_, peer)| peer.home_contact_ms(&own));
        let home = homes.max();
        let majority = self
            .common
            .has_met_home
            .then(|| self.majority_ms(Some(own)))
            .flatten();
        let contact_ms = home.max(majority);
        as_home.max(contact_ms.map(|at| at.saturating_add(cut_off_ms)))
    }

    /// Whether all other clocks are apart from this one.
    fn is_clock_apart(&self) -> bool {
        let now_ms = self.now_ms();
        let mut live = self.peers.live(now_ms).peekable();
        let apart = |received_ms: u64, wall_ms: u64| {
            let there_ms = wall_ms.saturating_add(now_ms.saturating_sub(received_ms));
            there_ms.abs_diff(self.now.wall_ms) > CLOCKS_APART_MS
        };
        live.peek().is_some() && live.all(|(_, peer)| apart(peer.received_ms, peer.beat.wall_ms))
    }
}
