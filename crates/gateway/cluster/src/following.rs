//! Copy of the common journal that each node has: messages in order, from its home or from the log.

use std::sync::Arc;

use crate::effect::HomeEffect;
use crate::history::Unfit;
use crate::homes::{Homes, Role};
use crate::reading::ReadingStart;
use crate::record::{CommonEntry, HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::shard::Shard;
use crate::timing::LOG_RETRY_MS;

impl<R: HomeLine> Homes<R> {
    /// A message that the home of the common journal published.
    pub(crate) fn spread(&mut self, stored: &StoredMessage<R>) {
        let is_common = stored.subject.shard == Shard::Common;
        if !is_common || self.is_at_home() || self.take_common(stored) != Err(Unfit::Gap) {
            return;
        }
        self.read_common();
    }

    /// Whether this node writes the common journal itself, or is about to.
    fn is_at_home(&self) -> bool {
        let role = self.shards.get(&Shard::Common).map(|state| &state.role);
        matches!(role, Some(Role::Home(_)))
    }

    /// Messages that were asked for.
    pub(crate) fn read(&mut self, shard: &Shard, request: u64, messages: &[StoredMessage<R>]) {
        if let Some(Role::Taking(taking)) = self.shards.get(shard).map(|state| &state.role)
            && taking.question.is_some_and(|one| one.request == request)
        {
            return self.replayed(shard, messages);
        }
        let is_asked = self.common.asked.is_some_and(|(asked, _)| asked == request);
        if *shard != Shard::Common || !is_asked || self.is_at_home() {
            return;
        }
        self.common.asked = None;
        self.common.is_read = true;
        self.take_reading(messages);
    }

    /// Takes messages that were read from the log, from where a reader of them begins.
    pub(crate) fn take_reading(&mut self, messages: &[StoredMessage<R>]) {
        let rest = match ReadingStart::of(&self.common.history, messages) {
            ReadingStart::First => Some(messages),
            ReadingStart::Nowhere => None,
            ReadingStart::Snapshot { at, messages: of } => {
                self.begin_common(messages.get(at..at + of).unwrap_or_default());
                messages.get(at + of..)
            }
        };
        let rest = rest.unwrap_or_default();
        rest.iter().for_each(|stored| self.take_read(stored));
    }

    /// Has the copy begin anew with the messages of a snapshot.
    fn begin_common(&mut self, snapshot: &[StoredMessage<R>]) {
        let before = self.common.history.head;
        let mut lines = Vec::new();
        for stored in snapshot {
            match &stored.message.record {
                HomeRecord::Kept(kept) => self.common.begin(stored, kept),
                HomeRecord::Lines(entries) if self.common.history.take(stored).is_ok() => {
                    lines.extend(self.take_entries(stored.message.number, entries));
                }
                _ => {}
            }
        }
        let revision = self.common.history.head;
        self.learn(&Shard::Common, &revision);
        self.common.is_lost |= self.common.history.contradicts(&before);
        self.check_common();
        self.push(HomeEffect::Reset { revision, lines });
        self.is_beat_due = true;
    }

    /// Takes a message that was read from the log. What the log has is whole, so a gap is a loss.
    fn take_read(&mut self, stored: &StoredMessage<R>) {
        if self.take_common(stored) == Err(Unfit::Gap) {
            self.common.is_lost = true;
        }
    }

    /// Takes the next message of the common journal.
    pub(crate) fn take_common(&mut self, stored: &StoredMessage<R>) -> Result<(), Unfit> {
        let taken = self.common.history.take(stored);
        if taken == Err(Unfit::Broken) {
            self.common.is_lost = true;
        }
        taken?;
        let head = stored.head();
        self.learn(&Shard::Common, &head);
        self.check_common();
        match &stored.message.record {
            HomeRecord::Lost { .. } => self.common.is_lost = true,
            // The copy goes on where the journal that was accepted does.
            HomeRecord::Accepted => self.common.is_lost = false,
            HomeRecord::Kept(kept) => self.common.take_kept(kept),
            HomeRecord::Lines(entries) => self.apply(head, entries),
            HomeRecord::Begun { .. } | HomeRecord::Fenced { .. } => {}
        }
        self.is_beat_due = true;
        Ok(())
    }

    /// Compares the copy with the places that are known to have been written.
    pub(crate) fn check_common(&mut self) {
        let history = &self.common.history;
        let mut known = self.heads.of(&Shard::Common);
        self.common.is_lost |= known.any(|head| history.contradicts(head));
    }

    fn apply(&mut self, revision: JournalHead, entries: &[CommonEntry<R>]) {
        let lines = self.take_entries(revision.number, entries);
        if !lines.is_empty() {
            self.push(HomeEffect::Apply { revision, lines });
        }
    }

    /// Takes the entries of a message, and returns the lines of those.
    fn take_entries(&mut self, number: u64, entries: &[CommonEntry<R>]) -> Vec<R> {
        let mut lines = Vec::new();
        for entry in entries {
            match entry {
                CommonEntry::Line(line) => lines.push(line.clone()),
                CommonEntry::NodeJoined { name, slot } => {
                    self.members_change(number);
                    self.common.members.join(name, *slot);
                }
                CommonEntry::NodeLeft { name } => {
                    self.members_change(number);
                    self.common.members.leave(name);
                }
                CommonEntry::Renewing { account } => self.note_use(account, number, true),
                CommonEntry::Renewed { account } => {
                    self.common.renewing.remove(account);
                }
                CommonEntry::Used {
                    account,
                    flight,
                    is_open,
                } => self.note_use(account, *flight, *is_open),
            }
        }
        lines
    }

    /// Notes the latest use of an account's refresh token.
    fn note_use(&mut self, account: &Arc<str>, flight: u64, is_open: bool) {
        self.common.flights.insert(Arc::clone(account), flight);
        if is_open {
            self.common.renewing.insert(Arc::clone(account));
        } else {
            self.common.renewing.remove(account);
        }
    }

    fn members_change(&mut self, number: u64) {
        self.common.before = self.common.members.clone();
        self.common.changed = number;
    }

    /// Asks the log for what this copy has not.
    pub(crate) fn read_common(&mut self) {
        let now_ms = self.now_ms();
        let asked = self.common.asked;
        if asked.is_some_and(|(_, asked_ms)| asked_ms + LOG_RETRY_MS > now_ms) {
            return;
        }
        // Under one number until it has an answer, however long the reading takes.
        let number = self.next_number();
        let request = asked.map_or(number, |(request, _)| request);
        self.common.asked = Some((request, now_ms));
        self.push(HomeEffect::Read {
            shard: Shard::Common,
            request,
            after: self.common.history.sequence,
        });
    }

    /// The newest revision that this node knows of: of others, and of its lives before.
    pub(crate) fn newest(&self) -> JournalHead {
        self.heads
            .of(&Shard::Common)
            .max()
            .copied()
            .unwrap_or_default()
    }

    /// Notes that this node was as new as a home of the common journal, and as its own lives before
    /// were. Until then all that it has
    /// may come from a replica that lags, and with it the members of which it counts majorities.
    pub(crate) fn meet_home(&mut self) {
        if self.common.has_met_home {
            return;
        }
        let own = self.common.history.head;
        let newest = self.newest();
        let claimed = self.peers.claimed(&Shard::Common);
        let is_met = claimed
            .is_some_and(|(_, peer, claim)| peer.echoed_ms.is_some() && claim.epoch >= own.epoch);
        let is_new = (own.epoch, own.number) >= (newest.epoch, newest.number);
        self.common.has_met_home = is_new && (is_met || self.is_at_home());
    }

    /// Reads the journal at first, and whenever another node is ahead.
    pub(crate) fn follow(&mut self) {
        let own = self.common.history.head;
        let newest = self.newest();
        let is_behind = (newest.epoch, newest.number) > (own.epoch, own.number);
        if !self.is_at_home() && (!self.common.is_read || is_behind) {
            self.read_common();
        }
    }
}
