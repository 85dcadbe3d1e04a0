//! Appends of a home: one at a time, each behind the one before it.

use crate::effect::{HomeEffect, NotStored, StepDownCause};
use crate::event::AppendResult;
use crate::heartbeat::HomeLeft;
use crate::home::{HomeState, Queued, Sending, Unconfirmed};
use crate::homes::{Homes, Role};
use crate::members::majority;
use crate::record::{AppendId, CommonEntry, HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::shard::Shard;
use crate::timing::{ALIVE_MS, ALONE_MS, LOG_RETRY_MS, SILENCE_MS, WAITING_LINES_MAX};

impl<R: HomeLine> Homes<R> {
    /// A line of the runner's is to be stored.
    pub(crate) fn store(&mut self, shard: Shard, ticket: u64, line: R) {
        let why = match self.home(&shard) {
            None => Some(NotStored::NotHome),
            Some(home) => match home.state {
                HomeState::Moving => Some(NotStored::Moving),
                HomeState::Stopped(_) => Some(NotStored::Lost),
                HomeState::Serving if home.queue.len() >= WAITING_LINES_MAX => {
                    Some(NotStored::Busy)
                }
                HomeState::Serving => None,
            },
        };
        if let Some(why) = why {
            return self.push(HomeEffect::NotStored { shard, ticket, why });
        }
        let entry = CommonEntry::Line(line);
        self.enqueue(
            &shard,
            Queued::Entry {
                entry,
                ticket: Some(ticket),
            },
        );
    }

    /// Has a home append a record behind those that wait.
    pub(crate) fn enqueue(&mut self, shard: &Shard, queued: Queued<R>) {
        if let Some(home) = self.home_mut(shard) {
            home.queue.push_back(queued);
            self.send_next(shard);
        }
    }

    /// Sends the next append, if none is under way.
    pub(crate) fn send_next(&mut self, shard: &Shard) {
        let id = self.append_id();
        let (now_ms, me) = (self.now_ms(), self.me.clone());
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        if home.sending.is_some() || home.is_broken {
            return;
        }
        let Some((record, tickets)) = home.take_next(&me) else {
            return;
        };
        let after = (home.head, home.sequence);
        let mut sending = Sending::new(id, home.subject.clone(), after, record, now_ms);
        sending.tickets = tickets;
        let effect = sending.effect();
        home.sending = Some(sending);
        self.push(effect);
    }

    /// The log has answered.
    pub(crate) fn appended(&mut self, shard: &Shard, id: AppendId, result: AppendResult) {
        let Some(state) = self.shards.get_mut(shard) else {
            return;
        };
        if let Role::Home(home) = &state.role
            && home.was_elsewhere(id, result)
        {
            let known = home.head;
            return self.stop(shard, known);
        }
        let (sending, is_home) = match &mut state.role {
            Role::Away => (None, false),
            Role::Taking(taking) => (taking.sending(), false),
            Role::Home(home) => (home.sending.as_mut(), true),
        };
        let Some(sending) = sending.filter(|one| one.id == id) else {
            return;
        };
        match result {
            AppendResult::Unknown => sending.asked_ms = 0,
            _ if !is_home => self.taking_appended(shard, result),
            AppendResult::Acked { sequence } => self.acked(shard, sequence),
            AppendResult::Refused { last } => self.refused(shard, last),
        }
    }

    fn acked(&mut self, shard: &Shard, sequence: u64) {
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        let Some(mut sending) = home.sending.take() else {
            return;
        };
        let head = sending.head();
        (home.head, home.sequence, home.acked_ms) = (head, sequence, sending.first_ms);
        home.note_acked(sending.id, sequence);
        let tickets = std::mem::take(&mut sending.tickets);
        let stored = sending.stored(sequence);
        self.take_own(shard, &stored, &tickets);
        for ticket in tickets {
            let shard = shard.clone();
            self.push(HomeEffect::Stored { shard, ticket });
        }
        if let HomeRecord::Fenced { next, .. } = stored.message.record {
            return self.leave(
                shard,
                HomeLeft {
                    shard: shard.clone(),
                    epoch: head.epoch,
                    next,
                },
            );
        }
        if *shard == Shard::Common {
            self.renewals_stored(&stored);
            self.confirm();
        }
        self.send_next(shard);
    }

    /// Takes a message of this home's own that is durable.
    fn take_own(&mut self, shard: &Shard, stored: &StoredMessage<R>, tickets: &[u64]) {
        self.learn(shard, &stored.head());
        if *shard == Shard::Common {
            // The copy may have it already, from the log.
            let _ = self.take_common(stored);
            self.push(HomeEffect::Spread(stored.clone()));
            self.await_confirmation(stored, tickets);
        } else if let Some(home) = self.home_mut(shard) {
            // A home's own messages follow each other.
            let _ = home.history.take(stored);
        }
    }

    fn await_confirmation(&mut self, stored: &StoredMessage<R>, tickets: &[u64]) {
        let HomeRecord::Lines(entries) = &stored.message.record else {
            return;
        };
        let changes = |entry: &CommonEntry<R>| {
            matches!(
                entry,
                CommonEntry::NodeJoined { .. } | CommonEntry::NodeLeft { .. }
            )
        };
        let members = entries
            .iter()
            .any(changes)
            .then(|| self.common.members.clone());
        if tickets.is_empty() && members.is_none() {
            return;
        }
        let unconfirmed = Unconfirmed {
            number: stored.message.number,
            tickets: tickets.to_vec(),
            members,
        };
        if let Some(home) = self.home_mut(&Shard::Common) {
            home.unconfirmed.push_back(unconfirmed);
        }
    }

    /// The last message of the home's subject is not the one that it wrote last. A later one is
    /// another node's, which has ended the epoch. An earlier one means that the log has lost what
    /// it acknowledged.
    fn refused(&mut self, shard: &Shard, last: u64) {
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        if last > home.sequence {
            return self.step_down(shard, StepDownCause::Fenced);
        }
        let known = home.head;
        home.is_broken = true;
        self.stop(shard, known);
    }

    /// Stops a shard of which messages are lost.
    pub(crate) fn stop(&mut self, shard: &Shard, known: JournalHead) {
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        if matches!(home.state, HomeState::Stopped(_)) {
            return;
        }
        home.state = HomeState::Stopped(known);
        home.queue.clear();
        home.unconfirmed.clear();
        home.renewals.clear();
        if *shard == Shard::Common {
            self.common.is_lost = true;
        }
        let effect = HomeEffect::StopTopic {
            shard: shard.clone(),
            known,
        };
        self.push(effect);
        self.is_beat_due = true;
        self.enqueue(shard, Queued::Lost { known });
    }

    /// This node is the home no more.
    pub(crate) fn step_down(&mut self, shard: &Shard, why: StepDownCause) {
        let Some(epoch) = self.home(shard).map(|home| home.epoch()) else {
            return;
        };
        self.set_role(shard, Role::Away);
        let rests_until_ms = self.now_ms() + SILENCE_MS;
        if let Some(state) = self.shards.get_mut(shard) {
            state.rests_until_ms = rests_until_ms;
        }
        self.is_beat_due = true;
        let shard = shard.clone();
        self.push(HomeEffect::StepDown { shard, epoch, why });
    }

    fn leave(&mut self, shard: &Shard, left: HomeLeft) {
        let next = left.next.clone();
        self.step_down(shard, StepDownCause::Moved { next });
        if let Some(state) = self.shards.get_mut(shard) {
            state.left = Some(left);
        }
        self.beat();
    }

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

    /// Ends homes that are alone for too long.
    pub(crate) fn end_leases(&mut self) {
        for shard in self.own_shards() {
            if self
                .lease_ms(&shard)
                .is_some_and(|until_ms| until_ms < self.now_ms())
            {
                self.step_down(&shard, StepDownCause::Alone);
            }
        }
    }

    /// Repeats appends without an answer, and has an idle home without a majority append.
    pub(crate) fn tend_home(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let is_echoed = self
            .majority_ms(None)
            .is_some_and(|at| at + ALIVE_MS > now_ms);
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        match &mut home.sending {
            Some(sending) if sending.asked_ms + LOG_RETRY_MS <= now_ms => {
                sending.asked_ms = now_ms;
                let effect = sending.effect();
                self.push(effect);
            }
            Some(_) => {}
            None if !is_echoed && home.acked_ms + ALIVE_MS <= now_ms => {
                self.enqueue(shard, Queued::Alive);
            }
            None => {}
        }
    }

    /// The node is about to stop: each home ends its own epoch, in favour of the next one.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
        self.is_beat_due = true;
        for shard in self.own_shards() {
            let next = self.best(&shard);
            let Some(home) = self.home_mut(&shard) else {
                continue;
            };
            if home.is_serving() {
                home.state = HomeState::Moving;
                self.enqueue(&shard, Queued::Fence { next });
            }
        }
    }
}
