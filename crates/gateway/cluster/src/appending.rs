//! Appends of a home: one at a time, each behind the one before it.

use crate::effect::{HomeEffect, NotStored, StepDownCause};
use crate::event::AppendResult;
use crate::heartbeat::HomeLeft;
use crate::home::{Home, HomeState, JournalEnd, NextRecord, Sending, Unconfirmed};
use crate::homes::{Homes, Role};
use crate::queue::Queued;
use crate::record::{AppendId, CommonEntry, HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::renewal::Renewals;
use crate::shard::Shard;
use crate::timing::{ALIVE_MS, ALONE_MS, APPEND_OPEN_MS, SILENCE_MS, TICK_MS};

impl<R: HomeLine> Homes<R> {
    /// A line of the runner's is to be stored.
    pub(crate) fn store(&mut self, shard: Shard, ticket: u64, line: R) {
        let why = match self.home(&shard) {
            None => Some(NotStored::NotHome),
            Some(home) => home.refusal(self.now_ms()),
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
        if home.sending.is_some() || home.is_broken || now_ms < home.waits_until_ms {
            return;
        }
        let compaction = home.queue.pop_compaction();
        let next = match compaction {
            Some(compaction) => self.begin_compaction(shard, compaction),
            None => home.take_next(&me),
        };
        let (Some(NextRecord { record, tickets }), Some(home)) = (next, self.home_mut(shard))
        else {
            return;
        };
        let after = JournalEnd {
            head: home.head,
            sequence: home.sequence,
        };
        let mut sending = Sending::new(id, home.subject.clone(), after, record, now_ms);
        sending.tickets = tickets;
        let effect = sending.effect();
        home.sending = Some(sending);
        self.push(effect);
    }

    /// The log has answered.
    pub(crate) fn appended(&mut self, shard: &Shard, id: AppendId, result: AppendResult) {
        let now_ms = self.now_ms();
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
            AppendResult::Unknown => sending.asked_ms = now_ms,
            // An earlier try may be stored yet.
            AppendResult::NotTaken if !sending.is_first_try() => sending.asked_ms = now_ms,
            _ if !is_home => self.taking_appended(shard, result),
            AppendResult::NotTaken => self.not_taken(shard),
            AppendResult::Acked { sequence } => self.acked(shard, sequence),
            AppendResult::Refused { last } => self.refused(shard, last),
        }
    }

    /// Takes back the append of a shard that the log does not take now: its records that no caller
    /// waits for are sent later, as another append.
    fn not_taken(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let refused = self.home_mut(shard).map(|home| home.take_back(now_ms));
        self.refuse(shard, refused.unwrap_or_default());
    }

    /// Tells callers that their lines are not stored, as the log takes none.
    fn refuse(&mut self, shard: &Shard, tickets: Vec<u64>) {
        for ticket in tickets {
            let (shard, why) = (shard.clone(), NotStored::Unavailable);
            self.push(HomeEffect::NotStored { shard, ticket, why });
        }
    }

    fn acked(&mut self, shard: &Shard, sequence: u64) {
        let now_ms = self.now_ms();
        // A successor that a majority supports has to come between two appends.
        let is_unheard = !self.is_echoed_within(ALONE_MS);
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        let Some(mut sending) = home.sending.take() else {
            return;
        };
        let head = sending.head();
        (home.head, home.sequence, home.acked_ms) = (head, sequence, sending.first_ms);
        home.note_acked(sending.id, sequence);
        if is_unheard {
            home.waits_until_ms = now_ms + TICK_MS;
        }
        let tickets = std::mem::take(&mut sending.tickets);
        let tickets: Vec<u64> = tickets.into_iter().flatten().collect();
        let stored = sending.stored(sequence);
        self.take_own(shard, &stored, &tickets);
        for ticket in tickets {
            let shard = shard.clone();
            self.push(HomeEffect::Stored { shard, ticket });
        }
        self.compaction_stored(shard, &stored);
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
        let members = entries
            .iter()
            .any(CommonEntry::changes_members)
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
    /// it acknowledged. None at all means that, or that a later home has purged the epoch: the next
    /// take-over tells.
    fn refused(&mut self, shard: &Shard, last: u64) {
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        if last > home.sequence || last == 0 {
            return self.step_down(shard, StepDownCause::Fenced);
        }
        let known = home.head;
        home.is_broken = true;
        home.sending = None;
        self.stop(shard, known);
    }

    /// Stops a shard of which messages are lost.
    pub(crate) fn stop(&mut self, shard: &Shard, known: JournalHead) {
        if self.home(shard).is_none_or(Home::is_stopped) {
            return;
        }
        self.give_results_back(shard);
        let Some(home) = self.home_mut(shard) else {
            return;
        };
        home.state = HomeState::Stopped(known);
        home.queue.clear();
        home.unconfirmed.clear();
        home.renewals = Renewals::default();
        home.compacting = None;
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
        self.give_results_back(shard);
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

    /// Repeats appends without an answer, and has an idle home without a majority append.
    pub(crate) fn tend_home(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let is_echoed = self.is_echoed_within(ALIVE_MS);
        let Some(home) = self.home_mut(shard).filter(|home| !home.is_broken) else {
            return;
        };
        if let Some(sending) = &mut home.sending {
            let is_open = sending.first_ms + APPEND_OPEN_MS <= now_ms;
            let effect = sending.again(now_ms);
            let refused = is_open.then(|| home.queue.take_tickets());
            self.effects.extend(effect);
            return self.refuse(shard, refused.unwrap_or_default());
        }
        if home.queue.is_empty() && !is_echoed && home.acked_ms + ALIVE_MS <= now_ms {
            home.queue.push_back(Queued::Alive);
        }
        self.send_next(shard);
    }

    /// The node is about to stop: each home ends its own epoch, in favour of the next one.
    pub(crate) fn drain(&mut self) {
        self.is_draining = true;
        self.is_beat_due = true;
        self.end_takings();
        for shard in self.own_shards() {
            self.hand_over(&shard);
        }
    }

    /// Has a home end its own epoch.
    pub(crate) fn hand_over(&mut self, shard: &Shard) {
        let next = self.best(shard);
        if let Some(home) = self.home_mut(shard).filter(|home| home.is_serving()) {
            home.state = HomeState::Moving;
            self.enqueue(shard, Queued::Fence { next });
        }
    }
}
