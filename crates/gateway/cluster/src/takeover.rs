//! Take-over of a shard: end the former epoch, begin a new one, then read what there is.
//!
//! The order is that of BookKeeper's recovery and of Kafka's leader epochs: fence first, then read.
//! After the fence no other node appends to the former epoch, so that the journal that is read is
//! whole.

use crate::common::Common;
use crate::effect::HomeEffect;
use crate::event::{AppendResult, LastMessage};
use crate::history::History;
use crate::home::{Beginning, Home, JournalEnd, Sending};
use crate::homes::{Homes, Role};
use crate::queue::Queued;
use crate::reading::TopicReading;
use crate::record::{HomeLine, HomeRecord, JournalHead, StoredMessage};
use crate::shard::{Shard, ShardSubject};
use crate::taking::{Question, Taking, TakingStep};
use crate::timing::{LOG_RETRY_MS, SILENCE_MS, TICK_MS};

impl<R: HomeLine> Homes<R> {
    fn taking(&mut self, shard: &Shard) -> Option<&mut Taking<R>> {
        match self.shards.get_mut(shard).map(|state| &mut state.role) {
            Some(Role::Taking(taking)) => Some(taking),
            _ => None,
        }
    }

    /// Begins a take-over, or begins it anew.
    pub(crate) fn take(&mut self, shard: &Shard, taking: Taking<R>) {
        self.set_role(shard, Role::Taking(Box::new(taking)));
        self.look(shard);
    }

    /// Asks for the end of the journal, from the beginning of this or at a later tick.
    fn look(&mut self, shard: &Shard) {
        self.look_at(shard, self.now_ms());
        self.ask_for_taking(shard);
    }

    fn look_at(&mut self, shard: &Shard, at_ms: u64) {
        if let Some(taking) = self.taking(shard) {
            taking.step = TakingStep::Look;
            (taking.question, taking.asks_at_ms) = (None, at_ms);
        }
    }

    /// Asks the log what the step of a take-over needs, or asks it again.
    fn ask_for_taking(&mut self, shard: &Shard) {
        let (number, now_ms) = (self.next_number(), self.now_ms());
        let copied = self.common.history.sequence;
        let Some(taking) = self.taking(shard) else {
            return;
        };
        let question = taking.question.get_or_insert(Question {
            request: number,
            first_ms: now_ms,
        });
        let (request, shard) = (question.request, shard.clone());
        taking.asks_at_ms = now_ms + LOG_RETRY_MS;
        let effect = match (&taking.step, &shard) {
            (TakingStep::Look, _) => HomeEffect::Look { shard, request },
            (_, Shard::Common) => HomeEffect::Read {
                shard,
                request,
                after: copied,
            },
            (_, Shard::Topic(_)) => HomeEffect::Read {
                shard,
                request,
                after: 0,
            },
        };
        self.push(effect);
    }

    /// The end of the journal, or of an older state of it: the fence tells.
    pub(crate) fn looked(&mut self, shard: &Shard, request: u64, last: Option<LastMessage>) {
        let now_ms = self.now_ms();
        let Some(taking) = self.taking(shard) else {
            return;
        };
        if !matches!(taking.step, TakingStep::Look) || taking.answer(request).is_none() {
            return;
        }
        let wrote = taking.wrote.filter(|wrote| {
            let is_own = |last: LastMessage| last.head == wrote.begun;
            last.is_some_and(is_own)
        });
        if let Some(beginning) = wrote {
            return self.replay(shard, beginning, now_ms);
        }
        let history = &self.common.history;
        if let Some(last) = last.filter(|_| *shard == Shard::Common) {
            // A message that this copy has, or a later one, at an earlier place: those between are
            // gone.
            let is_earlier = last.sequence < history.sequence;
            self.common.is_lost |= is_earlier && last.head >= history.head;
        }
        let Some(taking) = self.taking(shard) else {
            return;
        };
        let epoch = last.map_or(0, |last| last.head.epoch);
        let ends = *taking.ends.get_or_insert(epoch);
        if epoch > ends && last.is_some_and(|last| !last.fenced) && !taking.accepts {
            // Another node took the shard over meanwhile.
            return self.rest(shard);
        }
        match last {
            Some(last) if !last.fenced => self.fence(shard, last),
            Some(last) => self.begin(shard, last.head),
            None => self.begin(shard, JournalHead::default()),
        }
    }

    /// Leaves a shard to others for a while.
    fn rest(&mut self, shard: &Shard) {
        let rests_until_ms = self.now_ms() + SILENCE_MS;
        self.set_role(shard, Role::Away);
        if let Some(state) = self.shards.get_mut(shard) {
            state.rests_until_ms = rests_until_ms;
        }
    }

    fn fence(&mut self, shard: &Shard, last: LastMessage) {
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch: last.head.epoch,
        };
        let record = HomeRecord::Fenced {
            by: self.me.clone(),
            next: None,
        };
        let after = JournalEnd {
            head: last.head,
            sequence: last.sequence,
        };
        self.send_taking(shard, subject, after, record, TakingStep::Fence);
    }

    fn begin(&mut self, shard: &Shard, follows: JournalHead) {
        let subject = ShardSubject {
            shard: shard.clone(),
            epoch: follows.epoch + 1,
        };
        let record = HomeRecord::Begun {
            node: self.me.clone(),
            follows,
        };
        let after = JournalEnd {
            head: follows,
            sequence: 0,
        };
        self.send_taking(shard, subject, after, record, TakingStep::Begin);
    }

    fn send_taking(
        &mut self,
        shard: &Shard,
        subject: ShardSubject,
        after: JournalEnd,
        record: HomeRecord<R>,
        step: impl FnOnce(Box<Sending<R>>) -> TakingStep<R>,
    ) {
        let sending = Sending::new(self.append_id(), subject, after, record, self.now_ms());
        let effect = sending.effect();
        if let Some(taking) = self.taking(shard) {
            taking.step = step(Box::new(sending));
            self.push(effect);
        }
    }

    /// The log's answer to a fence or to a beginning.
    pub(crate) fn taking_appended(&mut self, shard: &Shard, result: AppendResult) {
        let now_ms = self.now_ms();
        let Some(taking) = self.taking(shard) else {
            return;
        };
        let Some(sending) = taking.sending() else {
            return;
        };
        let sequence = match result {
            AppendResult::Unknown => return,
            AppendResult::NotTaken => return self.look_at(shard, now_ms + LOG_RETRY_MS),
            // Another message came first, or what was read is gone, or a replica lags: at the next
            // tick its place tells.
            AppendResult::Refused { .. } => return self.look_at(shard, now_ms + TICK_MS),
            AppendResult::Acked { sequence } => sequence,
        };
        let (begun, sent_ms) = (sending.head(), sending.first_ms);
        match &taking.step {
            TakingStep::Fence(_) => self.begin(shard, begun),
            TakingStep::Begin(sending) => {
                let HomeRecord::Begun { follows, .. } = sending.message.record else {
                    return;
                };
                let beginning = Beginning {
                    begun,
                    follows,
                    sequence,
                    sent_ms,
                };
                taking.wrote = Some(beginning);
                if taking.accepts && *shard == Shard::Common {
                    self.reset(begun.epoch);
                }
                self.replay(shard, beginning, now_ms);
            }
            TakingStep::Look | TakingStep::Replay { .. } => {}
        }
    }

    /// Reads the journal up to a beginning that is known to be in the log from now on.
    fn replay(&mut self, shard: &Shard, beginning: Beginning, known_ms: u64) {
        if let Some(taking) = self.taking(shard) {
            taking.step = TakingStep::Replay {
                beginning,
                known_ms,
            };
            taking.question = None;
            self.ask_for_taking(shard);
        }
    }

    /// The copy of the common journal begins anew; what stands before this epoch is taken as it is.
    pub(crate) fn reset(&mut self, lenient_below: u64) {
        self.common = Common::default();
        self.peers.forget_contacts();
        self.common.history.lenient_below = lenient_below;
        self.push(HomeEffect::Reset {
            revision: JournalHead::default(),
            lines: Vec::new(),
        });
    }

    /// Repeats what has no answer.
    pub(crate) fn tend_taking(&mut self, shard: &Shard) {
        let now_ms = self.now_ms();
        let Some(taking) = self.taking(shard) else {
            return;
        };
        if let Some(sending) = taking.sending() {
            let effect = sending.again(now_ms);
            self.effects.extend(effect);
        } else if taking.asks_at_ms <= now_ms {
            self.ask_for_taking(shard);
        }
    }

    /// Ends the take-overs of a node that is about to stop, or is over. An epoch that it has begun
    /// is for it to end.
    pub(crate) fn end_takings(&mut self) {
        let is_over = self.is_replaced;
        for state in self.shards.values_mut() {
            if let Role::Taking(taking) = &state.role
                && (is_over || taking.is_early())
            {
                state.role = Role::Away;
            }
        }
    }

    /// Messages of a journal that is being taken over. A replica may lag: the reader goes on until
    /// it has the beginning of its own epoch.
    pub(crate) fn replayed(&mut self, shard: &Shard, messages: &[StoredMessage<R>]) {
        let Some(taking) = self.taking(shard) else {
            return;
        };
        let TakingStep::Replay {
            beginning,
            known_ms,
        } = taking.step
        else {
            return;
        };
        let Beginning {
            begun, sequence, ..
        } = beginning;
        let accepts = taking.accepts;
        let question = taking.question.take();
        let is_whole = if *shard == Shard::Common {
            self.take_reading(messages);
            let history = self.common.history.clone();
            // What this copy has at a later place than the beginning that was just written, and does
            // not follow it, is gone.
            let is_same = history.sequence == sequence && history.head == begun;
            self.common.is_lost |=
                history.sequence >= sequence && history.head <= begun && !is_same;
            let is_whole = self.common.is_lost || history.head >= begun;
            if is_whole {
                self.finish_taking(shard, &history, self.common.is_lost, Vec::new());
            }
            is_whole
        } else {
            let read = TopicReading::of(if accepts { begun.epoch } else { 0 }, messages);
            let is_whole = read.is_broken || read.history.head >= begun;
            if is_whole {
                self.finish_taking(shard, &read.history, read.is_broken, read.lines);
            }
            is_whole
        };
        // No replica lags for so long: a reading that began then, and has not the beginning, says
        // that it is gone. A reading that merely takes long says nothing.
        let is_late = |question: Question| question.first_ms >= known_ms + SILENCE_MS;
        if !is_whole && question.is_some_and(is_late) {
            self.learn(shard, &begun);
            self.look(shard);
        }
    }

    fn finish_taking(&mut self, shard: &Shard, history: &History, broken: bool, lines: Vec<R>) {
        let Some(taking) = self.taking(shard) else {
            return;
        };
        let TakingStep::Replay { beginning, .. } = taking.step else {
            return;
        };
        let begun = beginning.begun;
        let accepts = taking.accepts;
        if !broken && history.head > begun {
            // Another node has ended the new epoch meanwhile.
            return self.rest(shard);
        }
        if self.is_beyond(shard, &begun, accepts) {
            // Either another node has ended the new epoch meanwhile, or epochs are gone. Nodes
            // follow the highest one that they know of, so that the next one is to be beyond.
            return self.take(shard, Taking::new(accepts));
        }
        let missing = self
            .missing(shard, history, &begun)
            .or(broken.then_some(begun));
        let known = history.lost.or(missing).filter(|_| !accepts);
        let mut home = Home::new(shard, beginning, history.clone(), self.now_ms());
        home.unconfirmed
            .extend(self.common.unconfirmed(begun.number));
        home.confirmed = self.common.before.clone();
        self.set_role(shard, Role::Home(Box::new(home)));
        self.common.is_read = true;
        self.learn(shard, &begun);
        if accepts {
            self.accept_before(shard, begun.epoch);
        }
        match known {
            Some(known) => self.stop(shard, known),
            None => self.become_home(shard, begun.epoch, accepts, lines),
        }
        if self.is_draining {
            self.hand_over(shard);
        }
        self.beat();
    }

    /// Whether a place is known that is beyond the beginning of the new epoch.
    fn is_beyond(&self, shard: &Shard, begun: &JournalHead, accepts: bool) -> bool {
        self.heads.of(shard).any(|head| {
            let is_later = (head.epoch, head.number) > (begun.epoch, begun.number);
            is_later || accepts && head.epoch == begun.epoch && head != begun
        })
    }

    /// A place that is known, and is not in the journal.
    fn missing(
        &self,
        shard: &Shard,
        history: &History,
        begun: &JournalHead,
    ) -> Option<JournalHead> {
        let gone = |head: &&JournalHead| {
            history.contradicts(head) || head.epoch == begun.epoch && *head != begun
        };
        self.heads.of(shard).filter(gone).max().copied()
    }

    /// From now on no loss before this epoch counts.
    fn accept_before(&mut self, shard: &Shard, epoch: u64) {
        if *shard == Shard::Common {
            self.common.history.accepted = epoch;
            self.common.is_lost = false;
        } else if let Some(home) = self.home_mut(shard) {
            home.history.accepted = epoch;
        }
    }

    fn become_home(&mut self, shard: &Shard, epoch: u64, accepts: bool, lines: Vec<R>) {
        if accepts {
            self.enqueue(shard, Queued::Accepted);
        }
        let effect = HomeEffect::BecomeHome {
            shard: shard.clone(),
            epoch,
            lines,
        };
        self.push(effect);
        if *shard == Shard::Common {
            self.inherit_renewals();
        }
    }

    /// A person has looked at what was lost.
    pub(crate) fn accept(&mut self, shard: &Shard) {
        let is_over = self.is_draining || self.is_replaced;
        if !is_over && self.home(shard).is_some_and(Home::is_stopped) {
            self.take(shard, Taking::new(true));
        }
    }
}
