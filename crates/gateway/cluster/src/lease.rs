//! Leases: until when a home takes itself for one without a word of the log or of a majority.

use crate::effect::StepDownCause;
use crate::homes::Homes;
use crate::members::majority;
use crate::record::{HomeLine, JournalHead};
use crate::shard::Shard;
use crate::timing::ALONE_MS;

impl<R: HomeLine> Homes<R> {
    /// The time until which a home may take itself for one, milliseconds: some time after the log
    /// acknowledged an append, or a majority echoed a heartbeat.
    pub(crate) fn lease_ms(&self, shard: &Shard) -> Option<u64> {
        let home = self.home(shard)?;
        // An echo of a node that is ahead in the common journal may be one of a later home's.
        let is_compared = *shard == Shard::Common && home.is_serving();
        let own = is_compared.then_some(self.common.history.head);
        let latest = home.acked_ms.max(self.majority_ms(own).unwrap_or_default());
        Some(latest + ALONE_MS)
    }

    /// The time since which this node has contact with a majority of the members; with those alone
    /// that are not ahead of this place of the common journal, if there is one.
    pub(crate) fn majority_ms(&self, own: Option<JournalHead>) -> Option<u64> {
        let members = &self.common.members;
        let mine = usize::from(members.has(&self.me.name) || members.len() == 0);
        let others = majority(members.len()) - mine;
        if others == 0 {
            return Some(self.now_ms());
        }
        let names = members.names().filter(|name| **name != self.me.name);
        self.peers.contact_ms(names, others, own)
    }

    /// Whether a majority has echoed a heartbeat within this time.
    pub(crate) fn is_echoed_within(&self, ms: u64) -> bool {
        let echoed_ms = self.majority_ms(None);
        echoed_ms.is_some_and(|at| at + ms > self.now_ms())
    }

    /// Ends homes that are alone for too long. One that has just begun has some time to hear of
    /// others, however long its take-over was; it admits nothing by that.
    pub(crate) fn end_leases(&mut self) {
        for shard in self.own_shards() {
            let began_ms = self.home(&shard).map(|home| home.became_ms + ALONE_MS);
            let until_ms = self.lease_ms(&shard).max(began_ms);
            if until_ms.is_some_and(|until_ms| until_ms < self.now_ms()) {
                self.step_down(&shard, StepDownCause::Alone);
            }
        }
    }
}
